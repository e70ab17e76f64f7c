/* What ran in started sandboxes, in the store and through the ledger's channel of the warden. */
#include "tests/unit/ledger/peers.h"

#include "proxy/ledger/store/runs/runs.h"

static const char *why;
static struct id id;

static struct wire_run a_run(const char *sandbox, uint32_t number)
{
    static const struct span words[] = {SPAN("deploy"), SPAN("--now")};
    static const struct span variables[] = {SPAN("TOKEN=s3cret=x"), SPAN("EMPTY=")};
    struct wire_run r = {.sandbox = span_str(sandbox),
                         .packages = SPAN("sha256:ab"),
                         .generation = 2,
                         .born = 1,
                         .number = number,
                         .dir = SPAN("/tmp"),
                         .user = SPAN("1000"),
                         .timeout_ms = 5000};
    wire_words_of(&r.argv, words, 2, 0);
    wire_words_of(&r.env, variables, 2, '=');
    return r;
}

static void begin(const char *sandbox, uint32_t number)
{
    const struct wire_run r = a_run(sandbox, number);
    assert_int_equal(store_run_begin(fix, &r, &id), 0);
}

static struct wire_run_end an_end(void)
{
    struct wire_run_end e = {
        .how = SB_EXITED, .code = 3, .user_us = 7, .cut = 5, .out = {{.bytes = 4}, {.bytes = 0}}};
    digest_of(SPAN("four"), &e.out[0].digest);
    digest_of(SPAN_NONE, &e.out[1].digest);
    return e;
}

static void end(const struct id *run)
{
    const struct wire_run_end e = an_end();
    assert_int_equal(store_run_end(fix, run, &e), 0);
}

static void commit(void)
{
    assert_int_equal(store_commit(fix), 0);
}

static void box(const char *name)
{
    const struct wire_sandbox b = {.name = span_str(name),
                                   .session = span_str(name),
                                   .owner = SPAN("uid 0"),
                                   .tenant = SPAN("acme"),
                                   .kind = SPAN("started"),
                                   .generation = 1};
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
}

static void a_command_is_written_down_before_and_once_after(void **state)
{
    box("sb");
    assert_int_equal(store_run_policy(fix, SPAN("{\"policy\":\"0123456789abcdef0123456789abcdef0123456789abcdef"
                                                "0123456789abcdef\"}")),
                     0);
    begin("sb", 7);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE what='command' AND state='running' AND end_seq IS NULL"
                               " AND sandbox='sb' AND tenant='acme' AND generation=2 AND command='1.7'"),
                     1);
    assert_int_equal(fix_count("SELECT count(*) FROM run r JOIN audit a ON a.seq=r.begin_seq WHERE a.kind='run' AND"
                               " json_extract(a.json,'$.run')=r.id AND json_extract(a.json,'$.argv.words')="
                               "'[\"deploy\",\"--now\"]' AND json_extract(a.json,'$.variables.words')="
                               "'[\"TOKEN\",\"EMPTY\"]' AND json_extract(a.json,'$.policy') LIKE '0123456789abcdef%'"
                               " AND json_extract(a.json,'$.digest')='sha256:ab'"),
                     1);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE json LIKE '%s3cret%'"), 0);
    fix_time(1000);
    end(&id);
    end(&id); /* once */
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='run-end'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM run r JOIN audit a ON a.seq=r.end_seq WHERE r.state='ended' AND"
                               " r.ended_ms=r.began_ms+1000 AND json_extract(a.json,'$.status')=3 AND"
                               " json_extract(a.json,'$.stdout.bytes')=4 AND json_extract(a.json,'$.cut')=5 AND"
                               " json_extract(a.json,'$.how')='exited'"),
                     1);
    const struct id other = {{1}};
    end(&other); /* of none */
    commit();
    assert_true(fix_chain() > 0);
}

static void whose_end_nobody_can_tell_is_unknown(void **state)
{
    box("sb");
    begin("sb", 1);
    const struct id kept = id;
    begin("sb", 2);
    const struct id lost = id;
    assert_int_equal(store_runs_unknown(fix, &kept, 1, "the warden ended"), 0);
    end(&lost); /* too late: that it is unknown stays */
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE state='unknown' AND command='1.2'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE state='running' AND command='1.1'"), 1);
    assert_int_equal(
        fix_count("SELECT count(*) FROM run r JOIN audit a ON a.seq=r.end_seq WHERE r.state='unknown' AND"
                  " json_extract(a.json,'$.how')='unknown' AND json_extract(a.json,'$.why')="
                  "'the warden ended'"),
        1);
    assert_int_equal(store_sandbox_ended(fix, SPAN("sb"), 1), 0); /* nothing runs in what is over */
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE what='command' AND state='running'"), 0);
}

static int64_t life(const char *what, const char *states)
{
    char sql[256];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM run WHERE what='%s' AND state='%s'", what, states);
    return fix_count(sql);
}

static void what_becomes_of_a_sandbox_has_rows(void **state)
{
    box("sb");
    commit();
    assert_int_equal(life("start", "running"), 1);
    assert_int_equal(store_run_life(fix, SPAN("sandbox-started"), SPAN("sb"), 1, SPAN("{}")), 0);
    assert_int_equal(store_run_life(fix, SPAN("sandbox-paused"), SPAN("sb"), 1, SPAN("{}")), 0);
    box("sb");
    assert_int_equal(store_run_life(fix, SPAN("sandbox-resumed"), SPAN("sb"), 2, SPAN("{}")), 0);
    assert_int_equal(store_run_life(fix, SPAN("sandbox-ended"), SPAN("sb"), 2, SPAN("{}")), 0); /* a note alone */
    commit();
    assert_int_equal(life("start", "ended"), 1);
    assert_int_equal(life("pause", "ended"), 1);
    assert_int_equal(life("resume", "ended"), 1);
    assert_int_equal(store_sandbox_ended(fix, SPAN("sb"), 2), 0);
    commit();
    assert_int_equal(life("end", "ended"), 1);
    box("sb"); /* and this one's warden is killed before it has come up */
    assert_int_equal(store_sandboxes_run(fix, NULL, 0), 0);
    commit();
    assert_int_equal(life("start", "unknown"), 1);
    assert_int_equal(life("end", "ended"), 2);
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE begin_seq NOT IN (SELECT seq FROM audit)"), 0);
}

static void so_many_are_kept_of_one_sandbox(void **state)
{
    begin("neighbour", 1);
    begin("sb", 1); /* runs on */
    for (uint32_t i = 2; i < STORE_RUNS_MAX + 10; i++) {
        begin("sb", i);
        end(&id);
    }
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE sandbox='sb'"), STORE_RUNS_MAX + 1);
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE sandbox='sb' AND state='running'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE sandbox='sb' AND command='1.2'"), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE sandbox='neighbour'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='run'"), STORE_RUNS_MAX + 10);
}

static void a_task_is_one_record_and_what_it_was_made_of(void **state)
{
    struct dynbuf out;
    struct digest d, other;
    dynbuf_init(&out, STORE_BLOB_MAX + 1);
    digest_of(SPAN("an input"), &d);
    digest_of(SPAN("another"), &other);
    assert_int_equal(store_blob_put(fix, SPAN("acme"), SPAN("an input")), 0);
    assert_int_equal(store_task(fix, SPAN("acme"), SPAN("sb"), 3, SPAN("{\"task\":\"count\"}"), &id), 0);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM run r JOIN audit a ON a.seq=r.begin_seq WHERE r.what='task' AND"
                               " r.state='ended' AND r.begin_seq=r.end_seq AND r.generation=3 AND r.tenant='acme' AND"
                               " json_extract(a.json,'$.about')='task'"
                               " AND json_extract(a.json,'$.what.task')='count'"),
                     1);
    assert_int_equal(store_blob_get(fix, SPAN("acme"), &d, &out), 1);
    assert_true(span_eq(dynbuf_span(&out), SPAN("an input")));
    assert_int_equal(store_blob_get(fix, SPAN("other"), &d, &out), 0); /* nor does anybody learn that it is there */
    assert_int_equal(store_blob_get(fix, SPAN("acme"), &other, &out), 0);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM blob WHERE instr(sealed,'an input')>0"), 0);
    assert_int_equal(fix_sql("UPDATE blob SET tenant='other'"), SQLITE_OK); /* whose it is is part of its seal */
    assert_int_equal(store_blob_get(fix, SPAN("other"), &d, &out), 0);
    dynbuf_free(&out);
    commit();
    assert_true(fix_chain() > 0);
}

static void so_many_bytes_are_kept_of_one_tenant(void **state)
{
    static uint8_t much[STORE_BLOB_MAX + 1];
    struct dynbuf out;
    struct digest first, last;
    uint32_t n = STORE_BLOBS_MAX / STORE_BLOB_MAX + 2;
    dynbuf_init(&out, STORE_BLOB_MAX + 1);
    assert_int_equal(store_blob_put(fix, SPAN("neighbour"), SPAN("its own")), 0);
    assert_int_equal(store_blob_put(fix, SPAN("acme"), span_of(much, sizeof(much))), 0); /* too large for one */
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM blob"), 1);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(much, &i, sizeof(i));
        fix_time(1);
        assert_int_equal(store_blob_put(fix, SPAN("acme"), span_of(much, STORE_BLOB_MAX)), 0);
        digest_of(span_of(much, STORE_BLOB_MAX), i == 0 ? &first : &last);
        if (i % 64 == 0)
            commit();
    }
    commit();
    assert_true(fix_count("SELECT sum(size) FROM blob WHERE tenant='acme'") <= STORE_BLOBS_MAX);
    assert_true(fix_count("SELECT count(*) FROM blob WHERE tenant='acme'") > n / 2);
    assert_int_equal(fix_count("SELECT count(*) FROM blob WHERE tenant='neighbour'"), 1);
    assert_int_equal(store_blob_get(fix, SPAN("acme"), &first, &out), 0); /* named longest ago */
    assert_int_equal(store_blob_get(fix, SPAN("acme"), &last, &out), 1);
    dynbuf_free(&out);
    commit();
}

static void the_old_are_forgotten(void **state)
{
    begin("sb", 1);
    begin("sb", 2);
    end(&id);
    commit();
    assert_int_equal(store_tick(fix), 0);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM run"), 2);
    assert_int_equal(store_blob_put(fix, SPAN("acme"), SPAN("an input")), 0);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM blob"), 1);
    fix_time(STORE_RUNS_AGE_MAX + 1);
    assert_int_equal(store_tick(fix), 0);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE state='running'"), 1); /* what runs is no old one */
    assert_int_equal(fix_count("SELECT count(*) FROM run"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM blob"), 0);
}

static void of_long_words_the_first_are_kept_and_all_are_digested(void **state)
{
    static uint8_t much[RUN_BYTES_KEPT];
    struct wire_words w, again;
    struct span word[RUN_WORDS_KEPT + 5];
    memset(much, 'a', sizeof(much));
    const struct span three[] = {SPAN("x"), span_of(much, sizeof(much)), SPAN("gone")};
    wire_words_of(&w, three, 3, 0);
    assert_int_equal(w.n, 2);
    assert_int_equal(w.word[1].n, RUN_BYTES_KEPT - 1);
    assert_int_equal(w.all, 3);
    assert_int_equal(w.cut, 1 + 4);
    wire_words_of(&again, three, 2, 0);
    assert_memory_not_equal(&w.digest, &again.digest, sizeof(w.digest));
    for (size_t i = 0; i < RUN_WORDS_KEPT + 5; i++)
        word[i] = SPAN("");
    wire_words_of(&w, word, RUN_WORDS_KEPT + 5, 0);
    assert_int_equal(w.n, RUN_WORDS_KEPT);
    assert_int_equal(w.all, RUN_WORDS_KEPT + 5);
}

/* ---- the ledger as a process ---- */

static struct chan *warden;

static void say_running(const struct id *run, size_t n)
{
    struct dynbuf *b = chan_begin(warden, M_SANDBOX_RUN, 0);
    msg_put_u16(b, 0);
    msg_put_u32(b, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        msg_put_id(b, &run[i]);
    assert_int_equal(chan_commit(warden), 0);
    ngot = 0;
    await(1);
    assert_int_equal(got[0].type, M_SANDBOX_DONE);
}

static bool asks(uint64_t number, struct id *run)
{
    const struct wire_run r = a_run("sb", (uint32_t)number);
    wire_put_run(chan_begin(warden, M_RUN_BEGIN, number), &r);
    assert_int_equal(chan_commit(warden), 0);
    ngot = 0;
    await(1);
    assert_int_equal(got[0].type, M_RUN_BEGUN);
    assert_int_equal(got[0].id, number);
    struct msg_in m = msg_in(span_of(got[0].payload, got[0].n));
    bool ok = msg_get_bool(&m);
    msg_get_id(&m, run);
    assert_int_equal(msg_end(&m), 0);
    return ok;
}

static void it_is_in_the_store_when_the_warden_hears_of_it(void **state)
{
    struct id run[2];
    warden = connect_as(ROLE_WARDEN);
    say_running(NULL, 0);
    assert_true(asks(1, &run[0]));
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE state='running'"), 1);
    assert_true(asks(2, &run[1]));
    assert_false(id_eq(&run[0], &run[1]));
    const struct wire_run_end e = an_end();
    struct dynbuf *b = chan_begin(warden, M_RUN_END, 0);
    msg_put_id(b, &run[0]);
    wire_put_run_end(b, &e);
    assert_int_equal(chan_commit(warden), 0);
    struct id third;
    assert_true(asks(3, &third));
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE state='ended'"), 1);
    say_running(&run[1], 1); /* as to a new ledger: of the third nobody will tell */
    assert_true(asks(4, &third));
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE state='unknown' AND command='1.3'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE state='running'"), 2);
    chan_free(&warden);
}

static void what_cannot_be_written_down_is_said_to_be_none(void **state)
{
    struct id run;
    warden = connect_as(ROLE_WARDEN);
    say_running(NULL, 0);
    assert_int_equal(fix_sql("CREATE TRIGGER full BEFORE INSERT ON run BEGIN SELECT RAISE(ABORT, 'full'); END"),
                     SQLITE_OK);
    const struct wire_run r = a_run("sb", 1);
    wire_put_run(chan_begin(warden, M_RUN_BEGIN, 1), &r);
    assert_int_equal(chan_commit(warden), 0);
    ngot = 0;
    await(2); /* the judge hears that the store fails */
    assert_int_equal(find(M_RUN_BEGUN)->payload[0], 0);
    struct msg_in m = msg_in(span_of(find(M_RUN_BEGUN)->payload + 1, ID_BYTES));
    msg_get_id(&m, &run);
    assert_true(id_is_none(&run));
    assert_int_equal(fix_count("SELECT count(*) FROM run"), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='run'"), 0);
    assert_int_equal(fix_sql("DROP TRIGGER full"), SQLITE_OK);
    chan_free(&warden);
}

#define PEERS(f) cmocka_unit_test_setup_teardown(f, peers_setup, peers_teardown)

static void sent(uint64_t xid, struct wire_step by, uint8_t outcome, uint64_t out, uint64_t in, uint8_t lease)
{
    const struct store_outcome o = {
        .xid = xid,
        .outcome = outcome,
        .out = out,
        .in = in,
        .record = {.sandbox = SPAN("sb"), .effect = SPAN("read"), .by = by, .lease = {{lease}}}};
    assert_int_equal(store_outcome(fix, &o), 0);
}

/* By its step, also behind its end; what is of another one, of none, or of one that is forgotten is not its own. */
static void what_a_command_sent_stands_with_it(void **state)
{
    const struct wire_record denied = {.sandbox = SPAN("sb"), .verdict = SPAN("deny"), .by = {1, 7}};
    box("sb");
    box("other");
    begin("other", 7);
    begin("sb", 8);
    begin("sb", 7);
    const struct id own = id;
    sent(1, (struct wire_step){1, 7}, OUTCOME_ANSWERED, 100, 1000, 0);
    sent(2, (struct wire_step){1, 7}, OUTCOME_ANSWERED, 10, 20, 5);
    sent(3, (struct wire_step){1, 7}, OUTCOME_NOT_SENT, 0, 0, 0);
    sent(4, (struct wire_step){1, 8}, OUTCOME_ANSWERED, 1, 1, 0);
    sent(5, (struct wire_step){0, 0}, OUTCOME_ANSWERED, 1, 1, 0);
    sent(6, (struct wire_step){2, 7}, OUTCOME_ANSWERED, 1, 1, 0);
    assert_int_equal(store_audit(fix, 7, &denied), 0);
    end(&own);
    sent(8, (struct wire_step){1, 7}, OUTCOME_ANSWERED, 5, 5, 5);
    commit();
    assert_int_equal(
        fix_count("SELECT count(*) FROM run WHERE sandbox='sb' AND command='1.7' AND requests=3 AND refused=2"
                  " AND bytes_out=115 AND bytes_in=1025"),
        1);
    assert_int_equal(fix_count("SELECT count(*) FROM run WHERE requests=0 AND sandbox='other' AND what='command'"),
                     1);
    assert_int_equal(fix_count("SELECT count(*) FROM run_effect e JOIN run r ON r.id=e.run WHERE r.command='1.7' AND"
                               " r.sandbox='sb' AND sent=1"),
                     3);
    assert_int_equal(fix_count("SELECT count(*) FROM run_effect WHERE lease<>''"), 2);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='run-end' AND json_extract(json,"
                               "'$.egress.requests')=2 AND json_extract(json,'$.egress.refused')=2 AND"
                               " json_extract(json,'$.egress.bytes_in')=1020"),
                     1);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE json_extract(json,'$.step')='1.7'"), 5);
    assert_int_equal(fix_sql("PRAGMA foreign_keys=ON; DELETE FROM run WHERE sandbox='sb' AND state='ended'"),
                     SQLITE_OK);
    assert_int_equal(fix_count("SELECT count(*) FROM run_effect"), 1);
}

static void so_many_exchanges_of_a_command_are_named(void **state)
{
    box("sb");
    begin("sb", 7);
    begin("sb", 8);
    for (unsigned i = 1; i <= STORE_EFFECTS_MAX + 2; i++)
        sent(i, (struct wire_step){1, 7}, OUTCOME_ANSWERED, 1, 0, 0);
    sent(5000, (struct wire_step){1, 8}, OUTCOME_ANSWERED, 1, 0, 0); /* its neighbour */
    commit();
    assert_int_equal(fix_count("SELECT requests FROM run WHERE command='1.7'"), STORE_EFFECTS_MAX + 2);
    assert_int_equal(fix_count("SELECT count(*) FROM run_effect e JOIN run r ON r.id=e.run WHERE r.command='1.7'"),
                     STORE_EFFECTS_MAX);
    assert_int_equal(fix_count("SELECT count(*) FROM run_effect e JOIN run r ON r.id=e.run WHERE r.command='1.8'"),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(a_command_is_written_down_before_and_once_after),
        FRESH(whose_end_nobody_can_tell_is_unknown),
        FRESH(what_becomes_of_a_sandbox_has_rows),
        FRESH(what_a_command_sent_stands_with_it),
        FRESH(so_many_exchanges_of_a_command_are_named),
        FRESH(so_many_are_kept_of_one_sandbox),
        FRESH(a_task_is_one_record_and_what_it_was_made_of),
        FRESH(so_many_bytes_are_kept_of_one_tenant),
        FRESH(the_old_are_forgotten),
        FRESH(of_long_words_the_first_are_kept_and_all_are_digested),
        PEERS(it_is_in_the_store_when_the_warden_hears_of_it),
        PEERS(what_cannot_be_written_down_is_said_to_be_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
