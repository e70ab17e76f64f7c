/* The store when things go wrong, its audit chain, its sandboxes: E6 E32 F11 F12. */
#include "tests/unit/ledger/ledger_fix.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static const struct span no_body;

static void refused(const char *word)
{
    struct store *s = store_open(&fix_config, fix_wall, fix_boot, &fix_err);
    assert_null(s);
    if (strstr(fix_err.text, word) == NULL)
        fail_msg("\"%s\" does not say %s", fix_err.text, word);
}

static void f12_what_is_not_our_store_is_refused(void **state)
{
    char aside[120];
    struct stat st;
    snprintf(aside, sizeof(aside), "%s/aside.db", fix_folder);
    (void)fix_hold("s1", 1, 1, no_body);
    assert_int_equal(stat(fix_path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    store_close(&fix);
    assert_int_equal(rename(fix_path, aside), 0);
    assert_int_equal(symlink("aside.db", fix_path), 0);
    refused("cannot open");
    assert_int_equal(unlink(fix_path), 0);
    assert_int_equal(mkfifo(fix_path, 0600), 0);
    refused("not a regular file");
    assert_int_equal(unlink(fix_path), 0);
    assert_int_equal(mkdir(fix_path, 0700), 0);
    refused("cannot open");
    assert_int_equal(rmdir(fix_path), 0);
    FILE *f = fopen(fix_path, "w");
    fputs("this is no database, whoever put it here; it is long enough to be looked at, is it not?", f);
    fclose(f);
    refused("cannot be read");
    assert_int_equal(truncate(fix_path, 0), 0); /* never made anew in silence */
    refused("not a store of this program");
    assert_int_equal(unlink(fix_path), 0);
    assert_int_equal(fix_sql("CREATE TABLE t(x)"), SQLITE_OK);
    refused("not a store of this program");
    assert_int_equal(rename(aside, fix_path), 0);
    fix_open();
}

static void a_record_says_what_the_policy_saw(void **state)
{
    static struct wire_ticket t;
    fix_ticket(&t, "s1", 1, 1);
    t.record.has_body = t.record.upgrade = true;
    t.record.content_type = SPAN("text/\"x\"\xff");
    t.record.refs = SPAN("create refs/heads/a\ndelete refs/heads/\"b\"\n...");
    t.record.range = SPAN("bytes=100-199");
    t.record.range_sent = SPAN("bytes=0-711");
    assert_int_equal(store_audit(fix, 5, &t.record), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(
        fix_count("SELECT count(*) FROM audit WHERE kind='denied' AND json_valid(json)"
                  " AND json->>'body'=1 AND json->>'upgrade'=1 AND json->>'type'='text/\"x\"\xef\xbf\xbd'"
                  " AND json->>'range'='bytes=100-199' AND json->>'range_sent'='bytes=0-711'"
                  " AND json->>'refs'='[\"create refs/heads/a\",\"delete refs/heads/\\\"b\\\"\",\"...\"]'"),
        1);
    /* A ticket keeps it for its later records. */
    struct wire_ticket_state st;
    struct store_bytes kept = {.head = SPAN_NONE};
    dynbuf_init(&kept.body, ANSWER_KEPT_MAX + 1);
    assert_int_equal(store_ticket_open(fix, &t, &fix_limits, no_body, &st, &kept, &fix_over), 0);
    dynbuf_free(&kept.body);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_DENY, NULL), DECIDED_DONE);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind LIKE 'ticket-%' AND json->>'body'=1"
                               " AND json_array_length(json,'$.refs')=3 AND json->>'upgrade'=1"),
                     2);
    t.record = (struct wire_record){.sandbox = SPAN("s2")};
    assert_int_equal(store_audit(fix, 6, &t.record), 0); /* nothing to say: no keys */
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE json->>'sandbox'='s2' AND json->'body' IS NULL"
                               " AND json->'upgrade' IS NULL AND json->'type' IS NULL AND json->'refs' IS NULL"
                               " AND json->'range' IS NULL AND json->'range_sent' IS NULL"),
                     1);
}

static void f12_a_corrupt_page_is_refused(void **state)
{
    uint8_t junk[4096];
    for (unsigned i = 0; i < 40; i++)
        (void)fix_hold("s1", i, i, no_body);
    store_close(&fix);
    assert_int_equal(fix_sql("PRAGMA wal_checkpoint(TRUNCATE)"), SQLITE_OK);
    memset(junk, 0xa5, sizeof(junk));
    int fd = open(fix_path, O_RDWR);
    off_t size = lseek(fd, 0, SEEK_END);
    int refusals = 0, pages = 0;
    for (off_t at = 4096; at + 4096 <= size; at += 4096) {
        uint8_t was[4096];
        assert_int_equal(pread(fd, was, sizeof(was), at), sizeof(was));
        assert_int_equal(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
        struct store *s = store_open(&fix_config, fix_wall, fix_boot, &fix_err);
        refusals += s == NULL;
        pages++;
        assert_null(s);
        assert_int_equal(pwrite(fd, was, sizeof(was), at), sizeof(was));
    }
    close(fd);
    assert_true(pages > 5 && refusals == pages);
    fix_open();
    assert_int_equal(fix_count("SELECT count(*) FROM ticket"), 40);
}

static void f12_a_store_that_somebody_holds_fails_the_turn_and_comes_back(void **state)
{
    sqlite3 *other = NULL;
    static struct wire_ticket t;
    struct wire_ticket_state st;
    struct store_bytes kept = {.head = {NULL, 0}};
    assert_int_equal(sqlite3_open(fix_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    fix_ticket(&t, "s1", 1, 1);
    assert_int_equal(store_ticket_open(fix, &t, &fix_limits, no_body, &st, &kept, &fix_over), -1);
    assert_int_equal(store_commit(fix), -1);
    assert_non_null(strstr(store_why(fix), "locked"));
    assert_int_equal(store_probe(fix), -1);
    sqlite3_close(other);
    assert_int_equal(store_probe(fix), 0);
    assert_int_equal(fix_hold("s1", 1, 1, no_body).state, TICKET_PENDING);
}

/* E6, F11: the disk is full. What the turn did before is undone with the rest; nothing was promised to anybody. */
static void f11_a_full_disk_undoes_the_turn_and_heals(void **state)
{
    static uint8_t big[512 * 1024];
    static struct wire_ticket t;
    struct wire_ticket_state st, first = fix_hold("s1", 1, 1, no_body);
    struct store_bytes kept = {.head = {NULL, 0}};
    struct digest zero = {{0}};
    enum decided r;
    uint8_t s;
    uint64_t before, after;
    int64_t pages = fix_count("PRAGMA page_count");
    before = fix_chain();
    fix_config.max_pages = (unsigned)pages + 8;
    fix_reopen();
    assert_int_equal(fix_say(&first.ticket, DECIDE_APPROVE, "ann", "", &zero, &no_grant, &r, &s), 0);
    fix_ticket(&t, "s1", 2, 2);
    assert_int_equal(store_ticket_open(fix, &t, &fix_limits, span_of(big, sizeof(big)), &st, &kept, &fix_over), -1);
    assert_int_equal(st.state, TICKET_NONE);
    assert_int_equal(fix_say(&first.ticket, DECIDE_DENY, "ann", "", &zero, &no_grant, &r, &s),
                     -1); /* the rest of the turn fails too, whatever it is */
    assert_int_equal(r, DECIDED_STORE);
    assert_int_equal(store_commit(fix), -1);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='pending'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket"), 1);
    assert_int_equal(store_probe(fix), 0);
    assert_int_equal(fix_decide(&first.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    after = fix_chain();
    assert_true(after == before + 2); /* the start, and the approval that was kept */
}

static void e32_no_approval_without_its_record(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    int64_t rows = fix_count("SELECT count(*) FROM audit");
    assert_int_equal(fix_sql("CREATE TRIGGER t BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END"),
                     SQLITE_OK);
    enum decided r;
    uint8_t s;
    struct digest zero = {{0}};
    assert_int_equal(fix_say(&st.ticket, DECIDE_APPROVE, "ann", "", &zero, &no_grant, &r, &s), -1);
    assert_int_equal(store_commit(fix), -1);
    assert_int_equal(fix_sql("DROP TRIGGER t"), SQLITE_OK);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='pending'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM audit"), rows);
    assert_false(fix_claim(&st.ticket, 3, NULL));
}

static void the_chain_is_signed_now_and_then(void **state)
{
    uint8_t key[32], again[32];
    assert_int_equal(store_audit_key(fix, key), 0);
    assert_int_equal(store_sign(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(store_sign(fix), 0); /* there is nothing new */
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM checkpoint WHERE seq=(SELECT max(seq) FROM audit)"), 1);
    for (unsigned i = 0; i < AUDIT_SIGNED; i++)
        assert_int_equal(store_note(fix, SPAN("desk"), SPAN("more"), SPAN("{}")), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM checkpoint"), 1);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM checkpoint"), 2);
    fix_reopen();
    assert_int_equal(store_audit_key(fix, again), 0);
    assert_memory_equal(key, again, sizeof(key));
    assert_int_equal(store_sign(fix), 0);
    store_fail(fix, "by the test"); /* what is not kept is not signed either */
    assert_int_equal(store_commit(fix), -1);
    assert_int_equal(store_sign(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM checkpoint"), 3);
}

static void the_chain_goes_on_over_a_restart(void **state)
{
    uint64_t a, b;
    (void)fix_hold("s1", 1, 1, no_body);
    a = fix_chain();
    fix_reopen();
    (void)fix_hold("s1", 2, 2, no_body);
    b = fix_chain();
    assert_true(b == a + 2);
    assert_int_equal(fix_count("SELECT json->>'seq' FROM audit ORDER BY seq DESC LIMIT 1"), (int64_t)b);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE json_valid(json)=0"), 0);
}

static void reads_are_recorded_or_not_as_configured(void **state)
{
    static struct wire_ticket t;
    fix_ticket(&t, "s1", 1, 1);
    struct store_outcome o = {.xid = 9, .record = t.record, .outcome = OUTCOME_ANSWERED, .status = 200};
    o.record.effect = SPAN("read");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_outcome(fix, &o), 0);
        assert_int_equal(store_commit(fix), 0);
        assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='result' AND exchange='boot1-9'"), 1);
        fix_config.audit_reads = false;
        fix_reopen();
    }
    assert_int_equal(store_audit(fix, 10, &t.record), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='denied' AND exchange='boot1-10'"), 1);
}

static void a_note_is_a_note(void **state)
{
    assert_int_equal(store_note(fix, SPAN("desk"), SPAN("sign-in"), SPAN("{\"operator\":\"ann\"}")), 0);
    assert_int_equal(store_note(fix, SPAN("desk"), SPAN("result"), SPAN("{\"outcome\":\"answered\"},\"x\":{}")), 0);
    assert_int_equal(store_note(fix, SPAN("desk"), SPAN("B\"AD"), SPAN("\xff\0")), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='note' AND json_valid(json)"), 3);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE json->>'$.what.operator'='ann'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='result' OR json->>'outcome' IS NOT NULL"), 0);
}

static unsigned listed;
static uint64_t generation;

static void list(void *arg, const struct wire_sandbox *b)
{
    listed++;
    if (span_eq(b->name, SPAN("vm1"))) {
        generation = b->generation;
        assert_int_equal(b->nlabels, 2);
        assert_true(span_eq(b->label[0].key, SPAN("team")));
        assert_true(span_eq(b->label[0].value, SPAN("a \"quoted\" one")));
        assert_true(b->has_token);
    }
}

/* What cannot be read is not taken for leave to write. */
static void a_freeze_that_cannot_be_read_stands(void **state)
{
    bool frozen = true;
    (void)state;
    assert_int_equal(store_frozen(fix, &frozen), 0);
    assert_false(frozen);
    assert_int_equal(fix_sql("ALTER TABLE meta RENAME TO gone"), 0);
    assert_int_equal(store_frozen(fix, &frozen), -1);
    assert_true(frozen);
    frozen = false;
    assert_int_equal(store_frozen(fix, &frozen), -1); /* the transaction is doomed by now */
    assert_true(frozen);
}

static void sandboxes_are_kept_counted_and_removed(void **state)
{
    struct wire_sandbox b = {.name = SPAN("vm1"),
                             .session = SPAN("work"),
                             .owner = SPAN("ann"),
                             .kind = SPAN("token"),
                             .has_token = true,
                             .token_hash = fix_digest(1),
                             .nlabels = 2,
                             .label = {{SPAN("team"), SPAN("a \"quoted\" one")}, {SPAN("tier"), SPAN("1")}}};
    const char *why;
    for (int i = 0; i < 3; i++)
        assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_sandboxes, 3);
    struct wire_sandbox c = b;
    c.name = SPAN("vm2");
    assert_int_equal(store_sandbox_put(fix, &c, &why), 0);
    assert_non_null(why); /* the same token */
    c.token_hash = fix_digest(2);
    c.label[1].key = SPAN("team");
    assert_int_equal(store_sandbox_put(fix, &c, &why), 0);
    assert_non_null(why);
    c.nlabels = 0;
    c.name = SPAN("with space");
    assert_int_equal(store_sandbox_put(fix, &c, &why), 0);
    assert_non_null(why);
    c.name = SPAN("vm2");
    assert_int_equal(store_sandbox_put(fix, &c, &why), 0);
    assert_null(why);
    assert_int_equal(store_commit(fix), 0);
    fix_reopen();
    listed = 0;
    assert_int_equal(store_sandboxes(fix, list, NULL), 0);
    assert_int_equal(listed, 2);
    assert_true(generation == 3);
}

/* A reload says them all again: nobody is told, and nothing stands in the audit, unless something is different. */
static void a_listeners_sandbox_said_again_is_no_news(void **state)
{
    struct wire_sandbox b = {
        .name = SPAN("vm1"), .owner = SPAN("uid 0"), .tenant = SPAN("t"), .kind = SPAN("channel")};
    const char *why;
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_sandboxes, 1);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='sandbox'"), 1);
    assert_int_equal(fix_count("SELECT generation FROM sandbox"), 1);
    b.owner = SPAN("uid 1");
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_sandboxes, 2);
    assert_int_equal(fix_count("SELECT generation FROM sandbox"), 2);
    b.kind = SPAN("run"); /* a run that comes back is one more of its kind */
    for (int i = 0; i < 2; i++)
        assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT generation FROM sandbox"), 4);
}

static struct wire_sandbox seen;
static void keep(void *arg, const struct wire_sandbox *b)
{
    seen = *b;
}

static bool good(unsigned token)
{
    struct digest d = fix_digest(token);
    bool found = memcmp(seen.token_hash.b, d.b, DIGEST_BYTES) == 0;
    for (size_t i = 0; i < seen.nolder; i++)
        found |= memcmp(seen.older[i].b, d.b, DIGEST_BYTES) == 0;
    return found;
}

/* E10: an earlier token stays good until it is ended, and there are never more than eight. */
static void a_sandbox_may_have_several_tokens(void **state)
{
    struct wire_sandbox b = {.name = SPAN("ci"),
                             .session = SPAN("ci"),
                             .kind = SPAN("token"),
                             .has_token = true,
                             .token_hash = fix_digest(1)};
    struct wire_sandbox run = {.name = SPAN("run"), .session = SPAN("run"), .kind = SPAN("run")};
    struct digest two = fix_digest(2);
    const char *why;
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_int_equal(store_sandbox_token(fix, SPAN("ci"), &two, false, &why), 0);
    assert_null(why);
    assert_int_equal(store_sandbox_token(fix, SPAN("nobody"), &two, false, &why), 0);
    assert_non_null(why);
    assert_int_equal(store_commit(fix), 0);
    fix_reopen();
    assert_int_equal(store_sandboxes(fix, keep, NULL), 0);
    assert_true(good(1) && good(2) && seen.generation == 1);
    run.has_token = true;
    run.token_hash = fix_digest(1);
    assert_int_equal(store_sandbox_put(fix, &run, &why), 0);
    assert_non_null(why); /* an older token is somebody's too */
    for (unsigned i = 3; i <= 9; i++) {
        struct digest d = fix_digest(i);
        assert_int_equal(store_sandbox_token(fix, SPAN("ci"), &d, false, &why), 0);
    }
    assert_int_equal(store_sandboxes(fix, keep, NULL), 0);
    assert_true(!good(1) && good(2) && good(9));
    struct digest last = fix_digest(10);
    assert_int_equal(store_sandbox_token(fix, SPAN("ci"), &last, true, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    fix_reopen();
    assert_int_equal(store_sandboxes(fix, keep, NULL), 0);
    assert_true(!good(2) && !good(9) && good(10));
    run.has_token = false;
    assert_int_equal(store_sandbox_remove(fix, SPAN("ci"), false, &why), 0);
    assert_int_equal(store_sandbox_put(fix, &run, &why), 0);
    assert_int_equal(store_sandbox_token(fix, SPAN("run"), &last, false, &why), 0);
    assert_non_null(why); /* it is known by its listener */
}

static void the_end_of_a_session_cancels_what_it_left_open(void **state)
{
    struct wire_sandbox b = {.name = SPAN("s1"), .session = SPAN("s1"), .kind = SPAN("run")};
    const char *why;
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    struct wire_ticket_state one = fix_hold("s1", 1, 1, no_body), two = fix_hold("s1", 2, 2, no_body),
                             other = fix_hold("s2", 1, 1, no_body);
    assert_int_equal(fix_decide(&two.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), false, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_null(why);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='cancelled'"), 0);
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), true, &why), 0);
    assert_non_null(why);
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), true, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='cancelled'"), 2);
    assert_int_equal(fix_decide(&one.ticket, DECIDE_APPROVE, NULL), DECIDED_NOT_PENDING);
    assert_int_equal(fix_decide(&other.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(fix_gone, 2);
    b.kind = SPAN("token"); /* E45: made by name alone, its session is no longer than it */
    struct digest hash = fix_digest(5);
    b.has_token = true;
    b.token_hash = hash;
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
    one = fix_hold("s1", 3, 3, no_body);
    two = fix_hold("s1", 4, 4, no_body);
    assert_int_equal(fix_decide(&two.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&two.ticket, 9, NULL));
    fix_outcome(&two.ticket, 9, OUTCOME_ANSWERED, false, SPAN("kept"));
    assert_int_equal(fix_count("SELECT count(*) FROM answer"), 1);
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), false, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_decide(&one.ticket, DECIDE_APPROVE, NULL), DECIDED_NOT_PENDING);
    assert_int_equal(fix_count("SELECT count(*) FROM answer"), 0);
}

/* E45: what is on its way when its session ends has its end in the record, and no part in the next session of the
 * name: that one neither waits for it nor is given its answer. */
static void what_a_session_left_executing_is_not_the_next_ones(void **state)
{
    struct wire_sandbox b = {.name = SPAN("s1"), .session = SPAN("s1"), .kind = SPAN("token"), .has_token = true};
    const char *why;
    b.token_hash = fix_digest(5);
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    struct wire_ticket_state one = fix_hold("s1", 1, 1, no_body), two = fix_hold("s1", 2, 2, no_body);
    assert_int_equal(fix_decide(&one.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(fix_decide(&two.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&one.ticket, 8, NULL) && fix_claim(&two.ticket, 9, NULL));
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), false, &why), 0);
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
    assert_int_equal(fix_hold("s1", 1, 1, no_body).state, TICKET_PENDING);
    fix_outcome(&two.ticket, 9, OUTCOME_ANSWERED, false, SPAN("of the one before"));
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='done'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='result'"), 1);
    struct wire_ticket_state next = fix_hold("s1", 2, 2, no_body);
    assert_int_equal(next.state, TICKET_PENDING);
    assert_false(next.has_answer);
    assert_int_equal(store_commit(fix), 0);
}

/* E45: whose work it was that was denied has ended; of the next one somebody is asked again. */
static void a_denial_ends_with_its_session(void **state)
{
    struct wire_sandbox b = {.name = SPAN("s1"), .session = SPAN("s1"), .kind = SPAN("token"), .has_token = true};
    const char *why;
    b.token_hash = fix_digest(5);
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    struct wire_ticket_state denied = fix_hold("s1", 1, 1, no_body), other = fix_hold("s2", 1, 1, no_body);
    assert_int_equal(fix_decide(&denied.ticket, DECIDE_DENY, NULL), DECIDED_DONE);
    assert_int_equal(fix_decide(&other.ticket, DECIDE_DENY, NULL), DECIDED_DONE);
    assert_int_equal(fix_hold("s1", 1, 1, no_body).state, TICKET_DENIED);
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), false, &why), 0);
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    struct wire_ticket_state next = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(next.state, TICKET_PENDING);
    assert_false(id_eq(&next.ticket, &denied.ticket));
    assert_int_equal(fix_hold("s2", 1, 1, no_body).state, TICKET_DENIED);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='denied'"), 2);
    assert_int_equal(store_commit(fix), 0);
}

/* E45: what the judge asked for while the sandbox was removed comes after that. */
static void a_ticket_that_came_too_late_is_not_the_next_ones(void **state)
{
    struct wire_sandbox b = {.name = SPAN("s1"), .session = SPAN("s1"), .kind = SPAN("token"), .has_token = true};
    const char *why;
    b.token_hash = fix_digest(5);
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), false, &why), 0);
    struct wire_ticket_state late = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(fix_decide(&late.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    b.session = SPAN_NONE;
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    struct wire_ticket_state next = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(next.state, TICKET_PENDING);
    assert_false(id_eq(&next.ticket, &late.ticket));
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0); /* another token is no other session */
    assert_int_equal(fix_decide(&next.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(store_commit(fix), 0);
}

static void the_label_of_a_body_is_part_of_its_seal(void **state)
{
    struct wire_ticket_state a = fix_hold("s1", 1, 1, SPAN("the bytes of a")),
                             b = fix_hold("s1", 2, 2, SPAN("the bytes of b"));
    struct dynbuf body;
    bool ok;
    assert_int_equal(fix_count("SELECT count(*) FROM body WHERE instr(sealed, 'bytes')"), 0);
    assert_int_equal(fix_sql("UPDATE body SET sealed=(SELECT sealed FROM body ORDER BY ticket LIMIT 1)"), SQLITE_OK);
    int good = 0;
    const struct id *ids[] = {&a.ticket, &b.ticket};
    for (int i = 0; i < 2; i++) {
        dynbuf_init(&body, 100);
        assert_int_equal(store_body(fix, ids[i], &ok, &body), 0);
        good += ok;
        dynbuf_free(&body);
    }
    assert_int_equal(good, 1); /* swapped bytes do not open */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fix_decide(ids[i], DECIDE_APPROVE, NULL), DECIDED_DONE);
        good -= fix_claim(ids[i], 20 + (uint64_t)i, NULL);
    }
    assert_int_equal(good, 0); /* and are not sent */
}

static void a_reader_without_the_right_to_write_can_read(void **state)
{
    (void)fix_hold("s1", 1, 1, no_body);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket"), 1);
    store_close(&fix);
    char wal[120];
    struct stat st;
    snprintf(wal, sizeof(wal), "%s-wal", fix_path);
    assert_int_equal(stat(wal, &st), 0); /* left behind for readers */
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(f12_what_is_not_our_store_is_refused),
        FRESH(a_record_says_what_the_policy_saw),
        FRESH(f12_a_corrupt_page_is_refused),
        FRESH(f12_a_store_that_somebody_holds_fails_the_turn_and_comes_back),
        FRESH(f11_a_full_disk_undoes_the_turn_and_heals),
        FRESH(e32_no_approval_without_its_record),
        FRESH(the_chain_goes_on_over_a_restart),
        FRESH(the_chain_is_signed_now_and_then),
        FRESH(reads_are_recorded_or_not_as_configured),
        FRESH(a_note_is_a_note),
        FRESH(a_freeze_that_cannot_be_read_stands),
        FRESH(sandboxes_are_kept_counted_and_removed),
        FRESH(a_listeners_sandbox_said_again_is_no_news),
        FRESH(a_sandbox_may_have_several_tokens),
        FRESH(the_end_of_a_session_cancels_what_it_left_open),
        FRESH(what_a_session_left_executing_is_not_the_next_ones),
        FRESH(a_denial_ends_with_its_session),
        FRESH(a_ticket_that_came_too_late_is_not_the_next_ones),
        FRESH(the_label_of_a_body_is_part_of_its_seal),
        FRESH(a_reader_without_the_right_to_write_can_read),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
