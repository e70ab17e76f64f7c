/* The ledger behind its channels: one transaction a turn, and what is said when it fails. E6 E24 F11. */
#include "common/memfd.h"
#include "tests/unit/ledger/peers.h"

#include <openssl/evp.h>
#include <sys/mman.h>

static struct wire_ticket ticket;

static void send_open(uint64_t xid, unsigned n, struct span body, int fd)
{
    struct dynbuf *b = chan_begin(judge, M_TICKET_OPEN, xid);
    fix_ticket(&ticket, "s1", n, n);
    wire_put_ticket(b, &ticket);
    wire_put_limits(b, &fix_limits);
    msg_put_u64(b, body.n);
    msg_put_span(b, fd < 0 ? body : SPAN_NONE);
    assert_int_equal(chan_commit_fd(judge, fd), 0);
}

static void send_open_inline(uint64_t xid, unsigned n)
{
    struct dynbuf *b = chan_begin(judge, M_TICKET_OPEN, xid);
    fix_ticket(&ticket, "s1", n, n);
    wire_put_ticket(b, &ticket);
    wire_put_limits(b, &fix_limits);
    msg_put_u64(b, 4);
    msg_put_span(b, SPAN("body"));
    assert_int_equal(chan_commit(judge), 0);
}

static void send_decide(const struct id *id, enum decide what)
{
    struct dynbuf *b = chan_begin(desk, M_DECIDE, 77);
    struct digest none = {{0}};
    msg_put_id(b, id);
    msg_put_u8(b, (uint8_t)what);
    msg_put_span(b, SPAN("ann"));
    msg_put_span(b, SPAN("page"));
    msg_put_span(b, SPAN("link"));
    msg_put_span(b, SPAN("fine"));
    msg_put_digest(b, &none);
    msg_put_digest(b, &none);
    msg_put_span(b, SPAN_NONE);
    msg_put_u32(b, 0);
    msg_put_u64(b, 0);
    msg_put_span(b, SPAN_NONE);
    assert_int_equal(chan_commit(desk), 0);
}

static void send_claim(uint64_t xid, const struct id *id)
{
    struct dynbuf *b = chan_begin(judge, M_CLAIM, xid);
    struct digest policy = fix_digest(999);
    msg_put_id(b, id);
    msg_put_span(b, SPAN("demo"));
    msg_put_span(b, SPAN("git.example"));
    msg_put_u16(b, 443);
    msg_put_digest(b, &policy);
    msg_put_span(b, SPAN("push"));
    msg_put_digest(b, &fix_terms);
    wire_put_step(b, &(struct wire_step){.number = 0}); /* what ran in no started sandbox, and with no lease */
    msg_put_id(b, &(struct id){{0}});
    assert_int_equal(chan_commit(judge), 0);
}

static struct wire_ticket_state state_in(const struct got *g)
{
    struct wire_ticket_state st;
    struct msg_in m = msg_in(span_of(g->payload, g->n));
    assert_int_equal(wire_get_ticket_state(&m, &st), 0);
    return st;
}

static bool signed_well(struct span key, struct span signature, uint64_t xid, const struct digest *d)
{
    struct dynbuf b;
    EVP_PKEY *k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key.p, key.n);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    dynbuf_init(&b, 4096);
    wire_release_statement(&b, xid, SPAN("demo"), SPAN("git.example"), 443, d);
    assert_int_equal(EVP_DigestVerifyInit(c, NULL, NULL, NULL, k), 1);
    bool ok = EVP_DigestVerify(c, signature.p, signature.n, b.p, b.n) == 1;
    EVP_MD_CTX_free(c);
    EVP_PKEY_free(k);
    dynbuf_free(&b);
    return ok;
}

static void a_held_write_from_first_to_last(void **state)
{
    static uint8_t big[400 * 1024];
    static struct wire_request back;
    memset(big, 'b', sizeof(big));
    int fd = memfd_of(span_of(big, sizeof(big)));
    keeper = connect_as(ROLE_KEEPER);
    await(1);
    assert_int_equal(got[0].type, M_LEDGER_KEY);
    struct span key = span_of(got[0].payload + 4, 32);
    send_open(41, 1, span_of(big, sizeof(big)), fd);
    close(fd);
    await(4); /* the reply, the change to the judge, the event to the desk */
    const struct got *g = find(M_TICKET);
    assert_int_equal(g->id, 41);
    struct wire_ticket_state st = state_in(g);
    assert_int_equal(st.state, TICKET_PENDING);
    assert_int_equal(state_in(find(M_TICKET_CHANGED)).state, TICKET_PENDING);
    assert_true(find(M_EVENT)->id > 0);
    send_decide(&st.ticket, DECIDE_APPROVE);
    await(7);
    assert_int_equal(find(M_DECIDED)->payload[0], DECIDED_DONE);
    assert_int_equal(find(M_DECIDED)->payload[1], TICKET_APPROVED);
    assert_int_equal(find(M_DECIDED)->id, 77);
    send_claim(42, &st.ticket);
    await(10);
    g = find(M_CLAIMED);
    assert_int_equal(g->id, 42);
    struct msg_in m = msg_in(span_of(g->payload, g->n));
    struct digest d, want = fix_digest(1);
    struct span map;
    assert_true(msg_get_bool(&m));
    assert_int_equal(msg_get_u8(&m), TICKET_EXECUTING);
    msg_get_digest(&m, &d);
    assert_memory_equal(&d, &want, sizeof(d));
    struct span signature = msg_get_span(&m, 64);
    assert_true(signed_well(key, signature, 42, &d));
    assert_false(signed_well(key, signature, 43, &d));
    assert_int_equal(wire_get_request(&m, &back), 0);
    assert_int_equal(msg_get_u64(&m), sizeof(big));
    assert_int_equal(msg_get_span(&m, 1).n, 0);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(memfd_map(g->fd, sizeof(big), &map), 0);
    assert_int_equal(map.n, sizeof(big));
    assert_memory_equal(map.p, big, sizeof(big));
    memfd_unmap(&map);
    close(g->fd);
    send_claim(43, &st.ticket);
    await(11);
    assert_int_equal(find(M_CLAIMED)->payload[0], 0);
    assert_int_equal(find(M_CLAIMED)->payload[1], TICKET_EXECUTING);
}

static void a_memory_file_that_can_still_change_is_refused(void **state)
{
    int fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(write(fd, "bytes", 5), 5);
    send_open(41, 1, SPAN("bytes"), fd);
    close(fd);
    await(1);
    assert_int_equal(state_in(find(M_TICKET)).state, TICKET_NONE);
    fd = memfd_of(SPAN("bytes"));
    send_open(42, 1, SPAN("other length"), fd);
    close(fd);
    await(2);
    assert_int_equal(state_in(find(M_TICKET)).state, TICKET_NONE);
}

static void many_requests_of_a_turn_share_one_commit(void **state)
{
    for (unsigned i = 0; i < 40; i++)
        send_open_inline(100 + i, i);
    await(120);
    unsigned opened = 0;
    for (size_t i = 0; i < ngot; i++)
        opened += got[i].type == M_TICKET && state_in(&got[i]).state == TICKET_PENDING;
    assert_int_equal(opened, 40);
}

static void send_intent(uint64_t xid)
{
    struct dynbuf *b = chan_begin(judge, M_INTENT, xid);
    fix_ticket(&ticket, "s1", 1, 1);
    wire_put_record(b, &ticket.record);
    msg_put_digest(b, &ticket.join);
    wire_put_limits(b, &fix_limits);
    assert_int_equal(chan_commit(judge), 0);
}

static void send_outcome(uint64_t xid)
{
    struct id none = {{0}};
    struct dynbuf *b = chan_begin(judge, M_OUTCOME, xid);
    wire_put_record(b, &ticket.record);
    msg_put_id(b, &none);
    msg_put_u8(b, OUTCOME_ANSWERED);
    msg_put_u16(b, 201);
    msg_put_u64(b, 10);
    msg_put_u64(b, 20);
    msg_put_u8(b, 1);
    msg_put_u8(b, 0);
    msg_put_u8(b, 1);
    msg_put_u8(b, 0);
    assert_int_equal(chan_commit(judge), 0);
}

static void off(void *arg)
{
    loop_stop(l.loop);
}

static void run_for(uint64_t ms)
{
    struct timer *t = timer_new(l.loop, off, NULL);
    timer_set(t, ms);
    assert_int_equal(loop_run(l.loop), 0);
    timer_free(&t);
}

static void send_freeze(bool on)
{
    struct dynbuf *b = chan_begin(desk, M_FREEZE, 78);
    msg_put_u8(b, on);
    msg_put_span(b, SPAN("ann"));
    msg_put_span(b, SPAN("an incident"));
    assert_int_equal(chan_commit(desk), 0);
}

static void a_freeze_is_kept_and_told(void **state)
{
    bool frozen = false;
    (void)state;
    send_freeze(true);
    await(3); /* the judge, the desk's event, the desk's answer */
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='freeze'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM meta WHERE key='frozen' AND value LIKE '%an incident%'"), 1);
    assert_int_equal(store_frozen(l.store, &frozen), 0);
    assert_true(frozen);
    send_freeze(true); /* again: nothing to write down, nobody to tell */
    await(4);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='freeze'"), 1);
    ngot = 0;
    send_freeze(false);
    await(3);
    assert_int_equal(store_frozen(l.store, &frozen), 0);
    assert_false(frozen);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='thaw'"), 1);
}

/* Else a lease that was just revoked, or a write after a freeze, would pass for some moments more. */
static void the_desk_hears_of_it_when_the_judge_has(void **state)
{
    (void)state;
    send_freeze(true);
    await(3);
    for (size_t i = 0; i < ngot; i++)
        assert_int_equal(got[i].heard, got[i].type == M_FREEZE && got[i].id == 0 ? 0 : 1);
    send_freeze(true); /* nothing new: nobody is asked */
    await(4);
    assert_int_equal(heard, 1);
    deaf = true;
    send_freeze(false);
    await(5);
    assert_int_equal(got[4].id, 0);
    send_freeze(false); /* in its order behind the other */
    run_for(1);
    assert_int_equal(ngot, 5);
    chan_free(&judge); /* it will never say it; the next one is told before its first request */
    await(8);
}

/* What waited for it goes out, in its order, and it is told all of it anew. */
static void a_judge_that_hears_nothing_is_let_go(void **state)
{
    (void)state;
    deaf = true;
    send_freeze(true);
    await(1); /* the judge's */
    for (size_t i = 0; i < 2 * OUTBOX_REPLIES; i++)
        send_freeze(true);
    run_for(1);
    assert_int_equal(ngot, 1);
    assert_non_null(judge);
    send_freeze(true); /* one more than may wait */
    await(1 + 2 + 2 * OUTBOX_REPLIES + 1);
    run_for(1);
    assert_null(judge);
    deaf = false;
    ngot = 0;
    judge = connect_as(ROLE_JUDGE);
    await(2);
    assert_int_equal(find(M_FREEZE)->payload[0], 1);
}

/* E6, F11: while the store fails everything is refused in its own form; results wait, and are written afterwards. */
static void a_failing_store_refuses_and_forgets_no_result(void **state)
{
    sqlite3 *other = NULL;
    struct id any;
    assert_int_equal(id_new(&any), 0);
    send_intent(7);
    await(1);
    assert_int_equal(find(M_INTENT_OK)->payload[0], 1);
    assert_int_equal(sqlite3_open(fix_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    send_outcome(7);
    send_intent(8);
    await(3);
    assert_int_equal(find(M_STORE)->payload[0], 0);
    assert_int_equal(find(M_INTENT_OK)->payload[0], 0);
    send_open_inline(9, 1);
    send_claim(10, &any);
    await(5);
    assert_int_equal(state_in(find(M_TICKET)).state, TICKET_NONE);
    assert_true(span_eq(state_in(find(M_TICKET)).words, SPAN("store")));
    assert_int_equal(find(M_CLAIMED)->payload[0], 0);
    send_decide(&any, DECIDE_APPROVE);
    await(6);
    assert_int_equal(find(M_DECIDED)->payload[0], DECIDED_STORE);
    sqlite3_close(other);
    await(8); /* within a second it has noticed */
    assert_int_equal(find(M_STORE)->payload[0], 1);
    assert_int_equal(find(M_OUTCOME_OK)->id, 7); /* only now */
    assert_int_equal(fix_count("SELECT count(*) FROM effect WHERE state='answered' AND status=201"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM effect"), 1);
    send_intent(11);
    await(9);
    assert_int_equal(find(M_INTENT_OK)->payload[0], 1);
    send_outcome(7); /* of a judge that has not heard that it is written: said, and nothing changes */
    await(10);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='result'"), 1);
}

static void send_audit(uint64_t xid)
{
    struct dynbuf *b = chan_begin(judge, M_AUDIT, xid);
    fix_ticket(&ticket, "s1", 1, 1);
    wire_put_record(b, &ticket.record);
    assert_int_equal(chan_commit(judge), 0);
}

/* Records nobody waits for are written together: with the next thing that is waited for, when there are many, or
 * after some milliseconds, whatever comes first. */
static void records_nobody_waits_for_are_written_together(void **state)
{
    const char *denied = "SELECT count(*) FROM audit WHERE kind='denied'";
    for (uint64_t i = 1; i <= 9; i++)
        send_audit(i);
    while (l.waiting < 9)
        run_for(0);
    assert_int_equal(fix_count(denied), 0);
    send_intent(20);
    await(2); /* its answer, and one word to the desk of all nine */
    assert_int_equal(fix_count(denied), 9);
    struct msg_in m = msg_in(span_of(find(M_EVENT)->payload, find(M_EVENT)->n));
    assert_true(span_eq(msg_get_span(&m, 64), SPAN("refused")) && msg_get_span(&m, 1).n == 0 && msg_end(&m) == 0);
    assert_int_equal(l.waiting, 0);
    l.refused_next = UINT64_MAX; /* it was told just now */
    send_audit(21);
    run_for(3 * LATER_MS);
    assert_int_equal(fix_count(denied), 10);
    l.waiting = LATER_RECORDS - 1;
    send_audit(22);
    while (l.waiting != 0)
        run_for(0);
    assert_int_equal(fix_count(denied), 11);
    assert_int_equal(chan_send(judge, M_SENT_MARK, 20, SPAN_NONE), 0); /* a write without a ticket: once it left, */
    send_outcome(20);                                                  /* only the record is missing */
    while (l.waiting < 2)
        run_for(0);
    assert_int_equal(fix_count("SELECT count(*) FROM effect WHERE state='intent'"), 1);
    send_intent(23);
    await(4);
    assert_int_equal(find(M_OUTCOME_OK)->id, 20);
    assert_int_equal(fix_count("SELECT count(*) FROM effect WHERE state='answered'"), 1);
    assert_true(l.refused);
    l.refused_next = 0;
    send_audit(24);
    run_for(3 * LATER_MS);
    assert_true(!l.refused && l.refused_next > 0);
}

/* Its upgrade has its result already; its end is a record of its own. */
static void the_end_of_a_websocket_is_a_record(void **state)
{
    struct dynbuf *b = chan_begin(judge, M_WEBSOCKET, 31);
    fix_ticket(&ticket, "s1", 1, 1);
    wire_put_record(b, &ticket.record);
    msg_put_u64(b, 3);
    msg_put_u64(b, 4);
    msg_put_u64(b, 50);
    msg_put_u64(b, 60);
    msg_put_u16(b, 1008);
    assert_int_equal(chan_commit(judge), 0);
    run_for(3 * LATER_MS);
    assert_int_equal(
        fix_count("SELECT count(*) FROM audit WHERE kind='websocket' AND json LIKE "
                  "'%\"messages_out\":3,\"messages_in\":4,\"bytes_out\":50,\"bytes_in\":60,\"closed\":1008,%'"),
        1);
}

static void a_judge_that_comes_again_learns_of_all(void **state)
{
    struct wire_sandbox s = {.name = SPAN("vm1"), .session = SPAN("vm1"), .kind = SPAN("token")}, back;
    struct dynbuf *b = chan_begin(desk, M_SANDBOX_PUT, 5);
    wire_put_sandbox(b, &s);
    assert_int_equal(chan_commit(desk), 0);
    await(3);
    assert_int_equal(find(M_SANDBOX_DONE)->payload[0], 1);
    assert_int_equal(find(M_SANDBOX_DONE)->id, 5);
    send_intent(7);
    await(4);
    chan_free(&judge);
    judge = connect_as(ROLE_JUDGE);
    await(7);
    struct msg_in m = msg_in(span_of(find(M_SANDBOX)->payload, find(M_SANDBOX)->n));
    assert_int_equal(wire_get_sandbox(&m, &back), 0);
    assert_true(span_eq(back.name, SPAN("vm1")));
    assert_int_equal(back.generation, 1);
    assert_false(msg_get_bool(&m));
    assert_int_equal(find(M_STORE)->payload[0], 1);
    assert_int_equal(fix_count("SELECT count(*) FROM effect WHERE state='unknown'"), 1);
}

static void what_is_past_its_limit_is_said_to_the_judge(void **state)
{
    struct wire_over over;
    (void)state;
    fix_limits = (struct wire_limits){
        .n = 1,
        .limit = {{.rule = SPAN("r"), .measure = SPAN("requests"), .max = 1, .window_ms = 60000, .amount = 1}}};
    send_intent(1); /* of two in one turn the second is past it */
    send_intent(2);
    send_open_inline(3, 5);
    await(3);
    assert_int_equal(got[0].type, M_INTENT_OK);
    assert_int_equal(got[0].payload[0], 1);
    assert_int_equal(got[1].type, M_INTENT_OVER);
    struct msg_in m = msg_in(span_of(got[1].payload, got[1].n));
    assert_int_equal(wire_get_over(&m, &over), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_true(over.n == 1 && over.past[0] && over.room_ms > 0);
    m = msg_in(span_of(got[2].payload, got[2].n));
    struct wire_ticket_state st;
    assert_int_equal(wire_get_ticket_state(&m, &st), 0);
    assert_true(st.state == TICKET_NONE && span_eq(st.words, SPAN("over-limit")));
    assert_int_equal(wire_get_over(&m, &over), 0);
    assert_int_equal(msg_end(&m), 0);
    fix_limits.limit[0].rule = SPAN("another");
    send_open_inline(4, 5);
    await(6); /* its state, the change, the desk's event */
    m = msg_in(span_of(find(M_TICKET)->payload, find(M_TICKET)->n));
    assert_int_equal(wire_get_ticket_state(&m, &st), 0);
    assert_int_equal(msg_end(&m), 0); /* nothing of limits behind it */
    assert_int_equal(st.state, TICKET_PENDING);
}

static void send_reviewed(uint64_t number, const struct id *id, bool keep)
{
    struct dynbuf *b = chan_begin(judge, M_REVIEWED, number);
    msg_put_id(b, id);
    msg_put_u8(b, keep);
    assert_int_equal(chan_commit(judge), 0);
}

static struct id shown(const struct got *g)
{
    static struct wire_review w;
    struct msg_in m = msg_in(span_of(g->payload, g->n));
    assert_int_equal(g->type, M_TICKET_REVIEW);
    assert_int_equal(wire_get_review(&m, &w), 0);
    assert_int_equal(msg_get_u64(&m), 4);
    assert_true(span_eq(msg_get_span(&m, 100), SPAN("body")));
    assert_int_equal(msg_end(&m), 0);
    assert_true(span_eq(w.sandbox, SPAN("s1")) && memcmp(&w.terms, &fix_terms, sizeof(fix_terms)) == 0 && w.has_body);
    return w.ticket;
}

/* B52: one at a time, the next when the last was answered. */
static void open_tickets_are_shown_to_a_judge_that_asks(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 3; i++)
        send_open_inline(i, i);
    await(9);
    size_t before = ngot;
    for (uint64_t number = 8; number <= 9; number++) { /* the policy changed twice: only the last counts */
        assert_non_null(chan_begin(judge, M_REVIEW, number));
        assert_int_equal(chan_commit(judge), 0);
    }
    await(before + 2);
    struct id first = shown(&got[before + 1]);
    assert_true(got[before].id == 8 && got[before + 1].id == 9);
    send_reviewed(8, &first, false); /* of the earlier one: not heard */
    send_reviewed(9, &first, true);
    await(before + 3);
    struct id second = shown(&got[before + 2]);
    assert_false(id_eq(&first, &second));
    send_reviewed(9, &second, false);
    await(before + 6); /* the judge, the desk's event, the third */
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='cancelled' AND decided_by='policy'"), 1);
    struct id third = shown(find(M_TICKET_REVIEW));
    assert_false(id_eq(&third, &second) || id_eq(&third, &first));
    send_reviewed(9, &third, true);
    send_intent(50);
    await(before + 7); /* and there is no fourth */
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='pending'"), 2);
}

/* A judge may ask before the keeper has given the key of what is held: it is shown once that has come. */
static void what_is_held_waits_for_its_key_to_be_shown(void **state)
{
    (void)state;
    send_open_inline(1, 1);
    await(3);
    store_data_key(l.store, NULL);
    size_t before = ngot;
    assert_non_null(chan_begin(judge, M_REVIEW, 8));
    assert_int_equal(chan_commit(judge), 0);
    send_intent(50);
    await(before + 1);
    assert_int_equal(got[before].type, M_INTENT_OK); /* and nothing was shown, nor passed over */
    store_data_key(l.store, secret_new(secret_bytes(fix_key)));
    await(before + 2); /* within a second */
    assert_int_equal(got[before + 1].type, M_TICKET_REVIEW);
    assert_int_equal(got[before + 1].id, 8);
}

static void nobody_may_say_what_is_anothers_to_say(void **state)
{
    struct id any = {{1}};
    struct dynbuf *b = chan_begin(desk, M_INTENT, 3);
    fix_ticket(&ticket, "s1", 1, 1);
    wire_put_record(b, &ticket.record);
    assert_int_equal(chan_commit(desk), 0);
    b = chan_begin(judge, M_DECIDE, 4);
    msg_put_id(b, &any);
    assert_int_equal(chan_commit(judge), 0);
    b = chan_begin(judge, M_GRANT_REVOKE, 4);
    msg_put_id(b, &any);
    assert_int_equal(chan_commit(judge), 0);
    b = chan_begin(judge, M_BODY_GET, 4);
    msg_put_id(b, &any);
    assert_int_equal(chan_commit(judge), 0);
    send_intent(9);
    await(1); /* only the last was answered */
    assert_int_equal(got[0].type, M_INTENT_OK);
    assert_int_equal(fix_count("SELECT count(*) FROM effect"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LOOP(a_held_write_from_first_to_last),
        WITH_LOOP(a_memory_file_that_can_still_change_is_refused),
        WITH_LOOP(many_requests_of_a_turn_share_one_commit),
        WITH_LOOP(a_freeze_is_kept_and_told),
        WITH_LOOP(the_desk_hears_of_it_when_the_judge_has),
        WITH_LOOP(a_judge_that_hears_nothing_is_let_go),
        WITH_LOOP(a_failing_store_refuses_and_forgets_no_result),
        WITH_LOOP(records_nobody_waits_for_are_written_together),
        WITH_LOOP(the_end_of_a_websocket_is_a_record),
        WITH_LOOP(a_judge_that_comes_again_learns_of_all),
        WITH_LOOP(what_is_past_its_limit_is_said_to_the_judge),
        WITH_LOOP(open_tickets_are_shown_to_a_judge_that_asks),
        WITH_LOOP(what_is_held_waits_for_its_key_to_be_shown),
        WITH_LOOP(nobody_may_say_what_is_anothers_to_say),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
