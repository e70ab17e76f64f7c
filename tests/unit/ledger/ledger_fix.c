#include "tests/unit/ledger/ledger_fix.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdlib.h>

/* In memory where there is such a place: thousands of turns need no disk. */
const char *fix_base = "/tmp";
char fix_folder[64], fix_path[96];
struct store *fix;
uint64_t fix_wall, fix_boot;
struct store_config fix_config;
struct err fix_err;
unsigned fix_told[TICKET_UNKNOWN + 1], fix_sandboxes, fix_gone;
struct secret *fix_key;
struct digest fix_terms;
bool fix_no_facts;
struct wire_limits fix_limits;
struct wire_over fix_over;
const struct store_grant no_grant = {.uses = 0};
struct wire_people fix_people;
struct wire_gates fix_gates;
struct store_grant fix_grant;
struct wire_shape fix_shape;
struct digest fix_policy;

void fix_changed(void *arg, enum store_change what, uint64_t seq, const struct wire_ticket_state *t,
                 const struct wire_sandbox *b)
{
    if (what == CHANGE_TICKET)
        fix_told[t->state]++;
    fix_sandboxes += what == CHANGE_SANDBOX;
    fix_gone += what == CHANGE_SANDBOX_GONE;
}

void fix_open(void)
{
    fix = store_open(&fix_config, fix_wall, fix_boot, &fix_err);
    if (fix == NULL)
        fail_msg("%s", fix_err.text);
    store_data_key(fix, secret_new(secret_bytes(fix_key)));
}

void fix_reopen(void)
{
    store_close(&fix);
    fix_open();
}

void fix_time(uint64_t ms)
{
    fix_wall += ms;
    fix_boot += ms;
    store_clock(fix, fix_wall, fix_boot);
}

int fix_setup(void **state)
{
    snprintf(fix_folder, sizeof(fix_folder), "%s/cs-ledger-XXXXXX", fix_base);
    if (mkdtemp(fix_folder) == NULL)
        return -1;
    snprintf(fix_path, sizeof(fix_path), "%s/ledger.db", fix_folder);
    fix_config = (struct store_config){.path = fix_path,
                                       .boot = SPAN("boot1"),
                                       .kernel_boot = SPAN("kernel1"),
                                       .audit_reads = true,
                                       .changed = fix_changed};
    fix_wall = T0;
    fix_boot = 5000;
    memset(fix_told, 0, sizeof(fix_told));
    fix_sandboxes = fix_gone = 0;
    fix_limits.n = 0;
    fix_terms = fix_digest(42);
    fix_policy = fix_digest(999);
    fix_grant = no_grant;
    fix_people = (struct wire_people){.quorum = 1, .self = WIRE_SELF_OF_MACHINE};
    fix_gates = (struct wire_gates){.n = 0};
    fix_shape = (struct wire_shape){.uses = 0};
    fix_no_facts = false;
    fix_key = seal_key_new();
    fix_open();
    return 0;
}

int fix_teardown(void **state)
{
    DIR *d = opendir(fix_folder);
    store_close(&fix);
    secret_free(&fix_key);
    for (struct dirent *f; d && (f = readdir(d)) != NULL;)
        if (f->d_name[0] != '.')
            (void)unlinkat(dirfd(d), f->d_name, 0);
    closedir(d);
    return rmdir(fix_folder);
}

/* One statement on a connection of its own: somebody else's hand in the file. */
int fix_sql(const char *sql)
{
    sqlite3 *c = NULL;
    assert_int_equal(sqlite3_open(fix_path, &c), SQLITE_OK);
    int r = sqlite3_exec(c, sql, NULL, NULL, NULL);
    sqlite3_close(c);
    return r;
}

int64_t fix_count(const char *sql)
{
    sqlite3 *c = NULL;
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_open_v2(fix_path, &c, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(c, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    int64_t v = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(c);
    return v;
}

struct digest fix_digest(unsigned n)
{
    struct digest d;
    digest_of(span_of(&n, sizeof(n)), &d);
    return d;
}

void fix_ticket(struct wire_ticket *t, const char *sandbox, unsigned join, unsigned digest)
{
    memset(t, 0, sizeof(*t));
    t->record = (struct wire_record){.sandbox = span_str(sandbox),
                                     .session = span_str(sandbox),
                                     .method = SPAN("POST"),
                                     .scheme = SPAN("https"),
                                     .host = SPAN("git.example"),
                                     .path = SPAN("/demo.git/git-receive-pack"),
                                     .port = 443,
                                     .verdict = SPAN("hold"),
                                     .code = SPAN("rule"),
                                     .op = SPAN("git.push"),
                                     .effect = SPAN("write"),
                                     .credential = SPAN("demo"),
                                     .rule = {SPAN("push"), SPAN("policy.yaml"), 12},
                                     .policy = fix_policy,
                                     .request = fix_digest(digest)};
    t->join = fix_digest(100000 + join);
    t->request = (struct wire_request){.scheme = SPAN("https"),
                                       .host = SPAN("git.example"),
                                       .method = SPAN("POST"),
                                       .path = SPAN("/demo.git/git-receive-pack"),
                                       .port = 443,
                                       .nfields = 1};
    t->request.field[0] = (struct http_field){SPAN("content-type"), SPAN("application/x-git")};
    t->terms = fix_terms;
    t->shape = fix_shape;
    t->people = fix_people;
    t->gates = fix_gates;
    t->summary = SPAN("Push 1 ref");
    t->facts_json = fix_no_facts ? SPAN_NONE : SPAN("[]");
}

/* Open or join, commit; the state comes back, its texts do not live on. */
struct wire_ticket_state fix_hold(const char *sandbox, unsigned join, unsigned digest, struct span body)
{
    static struct wire_ticket t;
    struct wire_ticket_state st;
    struct store_bytes kept = {.head = {NULL, 0}};
    dynbuf_init(&kept.body, ANSWER_KEPT_MAX + 1);
    fix_ticket(&t, sandbox, join, digest);
    assert_int_equal(store_ticket_open(fix, &t, &fix_limits, body, &st, &kept, &fix_over), 0);
    dynbuf_free(&kept.body);
    assert_int_equal(store_commit(fix), 0);
    return st;
}

int fix_say(const struct id *id, enum decide what, const char *by, const char *reason, const struct digest *shown,
            const struct store_grant *grant, enum decided *r, uint8_t *state)
{
    const struct store_decision d = {.what = what,
                                     .by = span_str(by),
                                     .channel = SPAN("page"),
                                     .how = SPAN("link"),
                                     .reason = span_str(reason),
                                     .shown = *shown,
                                     .grant = *grant};
    return store_decide(fix, id, &d, r, state);
}

enum decided fix_decide(const struct id *id, enum decide what, const struct digest *shown)
{
    static const struct digest none;
    enum decided r;
    uint8_t state;
    assert_int_equal(fix_say(id, what, "ann", "because", shown ? shown : &none, &fix_grant, &r, &state), 0);
    assert_int_equal(store_commit(fix), 0);
    return r;
}

bool fix_claim(const struct id *id, uint64_t xid, uint8_t *state)
{
    struct store_claim c = {.xid = xid,
                            .ticket = *id,
                            .credential = SPAN("demo"),
                            .host = SPAN("git.example"),
                            .port = 443,
                            .policy = fix_policy,
                            .rule = SPAN("push"),
                            .terms = fix_terms};
    struct store_bytes req = {.head = {NULL, 0}};
    struct digest d;
    bool ok;
    uint8_t unused;
    dynbuf_init(&req.body, STORE_BODY_MAX + 1);
    assert_int_equal(store_claim(fix, &c, &ok, state ? state : &unused, &d, &req), 0);
    dynbuf_free(&req.body);
    assert_int_equal(store_commit(fix), 0);
    return ok;
}

void fix_outcome(const struct id *id, uint64_t xid, enum outcome o, bool delivered, struct span kept)
{
    static struct wire_ticket t;
    struct dynbuf head;
    struct wire_answer answer = {.status = 200, .framing = HTTP_LENGTH, .length = kept.n};
    fix_ticket(&t, "s1", 1, 1);
    dynbuf_init(&head, 1024);
    wire_put_answer(&head, &answer);
    struct store_outcome out = {.xid = xid,
                                .record = t.record,
                                .outcome = o,
                                .status = o == OUTCOME_ANSWERED ? 200 : 0,
                                .delivered = delivered,
                                .kept = kept.p != NULL,
                                .answer_head = dynbuf_span(&head),
                                .answer_body = kept};
    if (id != NULL)
        out.ticket = *id;
    assert_int_equal(store_outcome(fix, &out), 0);
    dynbuf_free(&head);
    assert_int_equal(store_commit(fix), 0);
}

uint64_t fix_chain(void)
{
    uint8_t last[SHA256_DIGEST_LENGTH] = {0}, hash[SHA256_DIGEST_LENGTH];
    sqlite3 *c = NULL;
    sqlite3_stmt *q = NULL;
    uint64_t n = 0;
    assert_int_equal(sqlite3_open_v2(fix_path, &c, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(c, "SELECT seq,json,hash FROM audit ORDER BY seq", -1, &q, NULL), SQLITE_OK);
    for (; sqlite3_step(q) == SQLITE_ROW; n++) {
        uint8_t text[sizeof(last) + 16 * 1024];
        size_t size = (size_t)sqlite3_column_bytes(q, 1);
        assert_int_equal(sqlite3_column_int64(q, 0), n + 1);
        assert_true(size > 0 && size <= sizeof(text) - sizeof(last));
        memcpy(text, last, sizeof(last));
        memcpy(text + sizeof(last), sqlite3_column_blob(q, 1), size);
        SHA256(text, sizeof(last) + size, hash);
        assert_int_equal(sqlite3_column_bytes(q, 2), sizeof(hash));
        assert_memory_equal(sqlite3_column_blob(q, 2), hash, sizeof(hash));
        memcpy(last, hash, sizeof(last));
    }
    sqlite3_finalize(q);
    sqlite3_close(c);
    return n;
}
