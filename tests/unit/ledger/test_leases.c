/* Leases in the store: issued, narrowed, ended with what they hang on; a leak ends all its sandbox has. */
#include "tests/unit/ledger/ledger_fix.h"

static struct {
    unsigned n;
    struct id id;
    enum lease_state state;
} told;

static void on_lease(void *arg, uint64_t seq, const struct wire_lease *l)
{
    told.n++;
    told.id = l->id;
    told.state = l->state;
}

static int setup(void **state)
{
    int rc = fix_setup(state);
    told.n = 0;
    fix_config.lease = on_lease;
    fix_reopen();
    return rc;
}

static void sandbox(const char *name)
{
    struct wire_sandbox b = {.name = span_str(name), .session = span_str(name), .kind = SPAN("run")};
    const char *why;
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
    assert_int_equal(store_commit(fix), 0);
}

static struct wire_lease lease_of(uint8_t n, const char *sandbox_name)
{
    struct wire_lease l = {.id = {{n}},
                           .sandbox = span_str(sandbox_name),
                           .credential = SPAN("api"),
                           .by = SPAN("op"),
                           .tag = SPAN("ABCDEF"),
                           .format = LEASE_GITHUB};
    l.text.b[0] = n;
    return l;
}

/* What the store filled in lives until its next operation; this, until the next lease is issued. */
static struct span kept(struct span s, char to[64])
{
    assert_in_range(s.n, 0, 64);
    if (s.n)
        memcpy(to, s.p, s.n);
    return span_of(to, s.n);
}

/* NULL: it was issued. */
static const char *issue(struct wire_lease *l)
{
    static char session[64], credential[64];
    const char *why;
    assert_int_equal(store_lease_put(fix, l, &why), 0);
    l->session = kept(l->session, session);
    l->credential = kept(l->credential, credential);
    assert_int_equal(store_commit(fix), 0);
    return why;
}

static int64_t live(void)
{
    return fix_count("SELECT count(*) FROM lease WHERE state='live'");
}

static void issued_and_revoked_with_what_came_from_it(void **state)
{
    const char *why;
    sandbox("a");
    struct wire_lease l = lease_of(1, "a");
    assert_null(issue(&l));
    assert_true(l.expires_ms == T0 + LEASE_MS && span_eq(l.session, SPAN("a")) && l.generation == 1);
    assert_int_equal(told.state, LEASE_LIVE);
    for (uint8_t n = 2; n <= 5; n++) { /* a chain, as deep as it may be */
        struct wire_lease child = {.id = {{n}}, .parent = {{(uint8_t)(n - 1)}}, .tag = SPAN("ABCDEF")};
        child.text.b[0] = n;
        why = issue(&child);
        if (n <= LEASE_DEPTH_MAX)
            assert_null(why);
        else
            assert_non_null(why);
    }
    struct wire_lease other = lease_of(9, "a");
    assert_null(issue(&other));
    assert_int_equal(live(), 5);
    assert_int_equal(store_lease_revoke(fix, &(struct id){{2}}, SPAN("op"), SPAN_NONE, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(live(), 2);
    struct wire_lease late = {.id = {{7}}, .parent = {{2}}, .tag = SPAN("ABCDEF")};
    assert_non_null(issue(&late)); /* nothing comes from a dead one */
    assert_int_equal(store_lease_revoke(fix, &(struct id){{77}}, SPAN("op"), SPAN_NONE, &why), 0);
    assert_non_null(why);
    fix_chain();
}

/* It took a token's place in an answer, which was asked for with a lease of another credential: it ends with that. */
static void of_a_token_in_an_answer(void **state)
{
    const char *why;
    sandbox("a");
    sandbox("b");
    struct wire_lease l = lease_of(1, "a"), token = lease_of(2, "a"), other = lease_of(3, "b");
    assert_null(issue(&l));
    token.parent = other.parent = l.id;
    token.credential = other.credential = SPAN("token");
    token.by = SPAN(LEASE_BY_ANSWER);
    token.expires_ms = l.expires_ms + 1;
    assert_null(issue(&token));
    assert_true(span_eq(token.credential, SPAN("token")) && token.expires_ms == l.expires_ms);
    assert_non_null(issue(&other));
    struct wire_lease child = {.id = {{4}}, .parent = token.id, .by = SPAN("op"), .tag = SPAN("ABCDEF")},
                      next = token;
    child.text.b[0] = 4;
    assert_non_null(issue(&child)); /* no token would be found by its id */
    assert_int_equal(live(), 2);
    next.id.b[0] = next.text.b[0] = 5; /* which a token may be asked for with, too */
    next.parent = token.id;
    next.sandbox = SPAN("a");
    next.credential = SPAN("token");
    next.by = SPAN(LEASE_BY_ANSWER);
    assert_null(issue(&next));
    assert_int_equal(live(), 3);
    assert_int_equal(store_lease_revoke(fix, &l.id, SPAN("op"), SPAN_NONE, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(live(), 0);
}

static void bound_to_sandbox_and_generation(void **state)
{
    const char *why;
    struct wire_lease l = lease_of(1, "nobody");
    assert_non_null(issue(&l));
    sandbox("a");
    sandbox("b");
    l = lease_of(1, "a");
    assert_null(issue(&l));
    struct wire_lease k = lease_of(2, "b");
    assert_null(issue(&k));
    sandbox("a"); /* again: another generation */
    assert_int_equal(live(), 1);
    assert_true(told.id.b[0] == 1 && told.state == LEASE_REVOKED);
    assert_int_equal(store_sandbox_remove(fix, SPAN("b"), false, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(live(), 0);
}

static void never_widened(void **state)
{
    struct wire_layer layer = {.effects = 2, .uses = 3};
    const char *why;
    sandbox("a");
    struct wire_lease l = lease_of(1, "a"), now;
    assert_null(issue(&l));
    assert_int_equal(store_lease_narrow(fix, &l.id, &layer, T0 + LEASE_MS + 1, SPAN("op"), &now, &why), 0);
    assert_null(why);
    assert_true(now.expires_ms == T0 + LEASE_MS && now.nlayers == 1);
    layer = (struct wire_layer){.uses = 99};
    assert_int_equal(store_lease_narrow(fix, &l.id, &layer, T0 + 1000, SPAN("op"), &now, &why), 0);
    assert_true(now.expires_ms == T0 + 1000 && now.nlayers == 2 && now.layer[0].uses == 3 &&
                now.layer[0].effects == 2);
    struct wire_lease child = {.id = {{2}}, .parent = l.id, .tag = SPAN("ABCDEF"), .expires_ms = T0 + LEASE_MS};
    child.text.b[0] = 2;
    assert_null(issue(&child));
    assert_true(child.expires_ms == T0 + 1000 && span_eq(child.credential, SPAN("api")));
    for (int i = 0; i < LEASE_LAYERS_MAX; i++)
        assert_int_equal(store_lease_narrow(fix, &l.id, &layer, 0, SPAN("op"), &now, &why), 0);
    assert_non_null(why);
    assert_int_equal(store_commit(fix), 0);
}

/* What came from one that is given less time ends then, too, and not at its own time. */
static void narrowed_in_time_with_what_came_from_it(void **state)
{
    static const struct wire_layer none;
    struct wire_lease now;
    const char *why;
    sandbox("a");
    struct wire_lease l = lease_of(1, "a"), token = lease_of(2, "a"), other = lease_of(3, "a");
    assert_null(issue(&l));
    token.parent = l.id;
    token.credential = SPAN("token");
    token.by = SPAN(LEASE_BY_ANSWER);
    assert_null(issue(&token));
    assert_null(issue(&other));
    assert_int_equal(store_lease_narrow(fix, &l.id, &none, T0 + 1000, SPAN("op"), &now, &why), 0);
    assert_null(why);
    assert_int_equal(store_commit(fix), 0);
    fix_time(999);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(live(), 3);
    fix_time(1);
    told.n = 0;
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(live(), 1);
    assert_true(told.n == 2 && told.state == LEASE_EXPIRED);
}

/* Each layer by itself, with names for the effects: no key comes twice in a record. */
static void a_record_has_all_layers(void **state)
{
    static const struct wire_layer wide = {.hosts = {1, {SPAN("a.test:8443")}}, .effects = 1u << 1 | 1u << 2};
    static const struct wire_layer tight = {.methods = {1, {SPAN("GET")}}, .effects = 1u << 1, .uses = 3, .rate = 2};
    struct wire_lease l = lease_of(1, "a"), now;
    const char *why;
    sandbox("a");
    l.nlayers = 2;
    l.layer[0] = wide;
    l.layer[1] = tight;
    assert_null(issue(&l));
    assert_int_equal(store_lease_narrow(fix, &l.id, &tight, 0, SPAN("op"), &now, &why), 0);
    assert_int_equal(store_commit(fix), 0);
#define TIGHT "{\"methods\":[\"GET\"],\"effects\":[\"read\"],\"uses\":3,\"rate\":2}"
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='lease-issued' AND json LIKE "
                               "'%\"layers\":[{\"hosts\":[\"a.test:8443\"],\"effects\":[\"read\",\"write\"]}," TIGHT
                               "]%'"),
                     1);
    assert_int_equal(
        fix_count("SELECT count(*) FROM audit WHERE kind='lease-narrowed' AND json LIKE '%\"layers\":[" TIGHT "]%'"),
        1);
    fix_chain();
}

/* Past what is kept of them it is refused in words, and the store goes on. */
static void bounds_that_are_too_long(void **state)
{
    static uint8_t text[LEASE_BOUND_BYTES];
    static struct wire_layer large;
    struct wire_lease now;
    const char *why;
    memset(text, '/', sizeof(text));
    struct wire_list *lists[] = {&large.hosts, &large.methods, &large.paths, &large.ops};
    for (size_t i = 0; i < 4; i++)
        for (lists[i]->n = 0; lists[i]->n < LEASE_LIST_MAX; lists[i]->n++)
            lists[i]->v[lists[i]->n] = span_of(text, sizeof(text));
    sandbox("a");
    struct wire_lease l = lease_of(1, "a"), k = lease_of(2, "a");
    l.nlayers = 1;
    l.layer[0] = large;
    assert_null(issue(&l));
    assert_int_equal(store_lease_narrow(fix, &l.id, &large, 0, SPAN("op"), &now, &why), 0);
    assert_non_null(why);
    k.nlayers = 2;
    k.layer[0] = k.layer[1] = large;
    assert_non_null(issue(&k));
    k.nlayers = 1;
    assert_null(issue(&k));
    assert_int_equal(live(), 2);
}

static void times(void **state)
{
    sandbox("a");
    struct wire_lease l = lease_of(1, "a"), far = lease_of(2, "a");
    far.expires_ms = T0 + LEASE_MAX_MS + 1;
    assert_non_null(issue(&far));
    assert_null(issue(&l));
    fix_time(LEASE_MS - 1);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(live(), 1);
    fix_time(1);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(told.state, LEASE_EXPIRED);
    fix_time(LEASE_DEAD_MS + 3600 * 1000);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM lease"), 0);
}

/* D32: it and its siblings end, once; with freeze the writes of both stop until a thaw. */
static void a_leak(void **state)
{
    struct wire_sandbox b = {.name = SPAN("b"), .session = SPAN("b"), .kind = SPAN("run")};
    const char *why;
    sandbox("a");
    sandbox("b");
    sandbox("c");
    for (uint8_t n = 1; n <= 3; n++) {
        struct wire_lease l = lease_of(n, n < 3 ? "a" : "b");
        assert_null(issue(&l));
    }
    struct lease_leak leak = {.xid = 5,
                              .lease = {{1}},
                              .sandbox = SPAN("b"),
                              .session = SPAN("b"),
                              .host = SPAN("h.example"),
                              .port = 443,
                              .what = SPAN("used by another sandbox"),
                              .freeze = true};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_lease_leaked(fix, &leak), 0);
        assert_int_equal(store_commit(fix), 0);
        assert_int_equal(live(), 1);
        assert_int_equal(
            fix_count("SELECT count(*) FROM audit WHERE kind='lease-leaked' AND json LIKE '%h.example%'"), 1);
    }
    assert_int_equal(fix_count("SELECT count(*) FROM sandbox WHERE frozen IS NOT NULL"), 2);
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0); /* a new generation does not lift it */
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM sandbox WHERE frozen IS NOT NULL"), 2);
    assert_int_equal(store_freeze(fix, false, SPAN("op"), SPAN_NONE), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM sandbox WHERE frozen IS NOT NULL"), 0);
    fix_chain();
    printf("ok D32 unit\n");
}

/* A sandbox that has all it may have takes nothing from its neighbour. */
static void limit_of_a_sandbox(void **state)
{
    const char *why = NULL;
    sandbox("a");
    sandbox("b");
    for (unsigned n = 0; n <= LEASES_EACH; n++) {
        struct wire_lease l = lease_of((uint8_t)n, "a");
        l.id.b[1] = l.text.b[1] = (uint8_t)(1 + n / 256);
        assert_int_equal(store_lease_put(fix, &l, &why), 0);
        assert_int_equal(why != NULL, n == LEASES_EACH);
    }
    struct wire_lease l = lease_of(1, "b");
    assert_null(issue(&l));
    assert_int_equal(live(), LEASES_EACH + 1);
    assert_int_equal(store_sandbox_remove(fix, SPAN("a"), true, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(live(), 1);
}

static struct wire_lease stub_of(const char *name, bool *there, const char **why)
{
    struct wire_lease l = {.sandbox = span_str(name), .credential = SPAN("api"), .format = LEASE_GITHUB};
    assert_int_equal(store_lease_stub(fix, &l, there, why), 0);
    return l;
}

/* Dead rows, as many as there are from `from` to before `to`. */
static void fill(const char *sandbox_name, const char *by, unsigned from, unsigned to)
{
    char sql[512];
    snprintf(sql, sizeof(sql),
             "WITH RECURSIVE n(i) AS (SELECT %u UNION ALL SELECT i+1 FROM n WHERE i<%u) INSERT INTO lease"
             " SELECT 'x'||i,NULL,'%s','c',1,'api',zeroblob(32),'github','ABCDEF',CAST(printf('%%032d',i) AS BLOB),"
             "x'00','expired',1,'%s',2,%llu,'' FROM n",
             from, to - 1, sandbox_name, by, (unsigned long long)T0);
    assert_int_equal(fix_sql(sql), 0);
}

/* As a stub has one made that may be. */
static void stub_puts(uint8_t n, const char *name)
{
    const char *why;
    bool there;
    struct wire_lease l = stub_of(name, &there, &why);
    assert_true(!there && why == NULL && span_eq(l.by, LEASE_STUB_BY));
    l.id = (struct id){{n}};
    l.text.b[0] = n;
    l.tag = SPAN("ABCDEF");
    assert_null(issue(&l));
}

static void has_stub(uint8_t n, const char *name)
{
    const char *why;
    bool there;
    struct wire_lease l = stub_of(name, &there, &why);
    assert_true(there && why == NULL && l.id.b[0] == n);
}

/* A sandbox that asks and asks has one, and another when little is left of that one's time. */
static void stubs_give_the_same_one(void **state)
{
    struct wire_layer layer = {.uses = 3};
    struct wire_lease now;
    const char *why;
    bool there;
    sandbox("a");
    sandbox("b");
    struct wire_lease hand = lease_of(1, "a"); /* issued to it by a person: not a stub's to give */
    assert_null(issue(&hand));
    stub_puts(2, "a");
    has_stub(2, "a");
    (void)stub_of("b", &there, &why);
    assert_true(!there && why == NULL);
    struct wire_lease other = {
        .sandbox = SPAN("a"), .credential = SPAN("api"), .format = LEASE_GITHUB, .meaning = {{1}}};
    assert_int_equal(store_lease_stub(fix, &other, &there, &why), 0);
    assert_false(there);
    fix_time(LEASE_STUB_MS - LEASE_STUB_MS / 5 - 1);
    has_stub(2, "a");
    fix_time(1);
    stub_puts(3, "a");
    has_stub(3, "a");
    assert_int_equal(live(), 3); /* who has the older one may use it to its end */
    assert_int_equal(store_lease_narrow(fix, &(struct id){{3}}, &layer, 0, SPAN("op"), &now, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    fix_time(LEASE_STUB_MS - LEASE_STUB_MS / 5);
    has_stub(3, "a"); /* narrowed is narrowed: no wider one takes its place */
    (void)stub_of("nobody", &there, &why);
    assert_true(!there && why != NULL);
}

/* Where the table is nearly full, people still get leases, and sandboxes those they have. */
static void stubs_leave_room(void **state)
{
    const char *why;
    bool there;
    sandbox("a");
    sandbox("b");
    stub_puts(1, "a");
    fill("c", "op", 2, LEASES_STUBS);
    (void)stub_of("b", &there, &why);
    assert_true(!there && why == NULL);
    struct wire_lease last = lease_of(2, "b");
    assert_null(issue(&last));
    (void)stub_of("b", &there, &why);
    assert_true(!there && why != NULL);
    has_stub(1, "a");
    last = lease_of(3, "b");
    assert_null(issue(&last));
}

/* Tokens that end at once: the sandbox that asks for many of them takes nothing from its neighbour, nor all of them
 * together from stubs and from people. */
static void limit_of_tokens_in_answers(void **state)
{
    sandbox("a");
    sandbox("b");
    fill("a", LEASE_BY_ANSWER, 0, LEASES_TAKEN_EACH - 1);
    for (uint8_t n = 1; n <= 4; n++) {
        struct wire_lease l = lease_of(n, n < 3 ? "a" : "b");
        l.by = n == 4 ? SPAN("op") : SPAN(LEASE_BY_ANSWER);
        const char *why = issue(&l);
        if (n == 2)
            assert_non_null(why);
        else
            assert_null(why);
    }
    fill("c", "op", LEASES_TAKEN_EACH, LEASES_ANSWERS);
    struct wire_lease token = lease_of(5, "b"), hand = lease_of(6, "b");
    token.by = SPAN(LEASE_BY_ANSWER);
    assert_non_null(issue(&token));
    assert_null(issue(&hand));
    stub_puts(7, "b");
}

static bool is(const char *name, const char *kind, unsigned of)
{
    char sql[256];
    assert_int_equal(store_commit(fix), 0);
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM sandbox WHERE name='%s' AND kind='%s' AND generation=%u",
                   name, kind, of);
    return fix_count(sql) == 1;
}

/* The generation of a sandbox of the warden's ends when it does, and its leases with it, whoever says so and however
 * often; the next start has the one after. */
static void started_sandboxes_end(void **state)
{
    struct wire_sandbox box = {.name = SPAN("box"), .session = SPAN("box"), .kind = SPAN("started")}, two = box;
    struct store_running runs = {SPAN("box"), 3};
    struct wire_lease l = lease_of(1, "box"), other = lease_of(2, "two"), next = lease_of(3, "box");
    const char *why;
    two.name = SPAN("two");
    sandbox("run");
    assert_int_equal(store_sandbox_put(fix, &box, &why), 0);
    assert_int_equal(store_sandbox_put(fix, &two, &why), 0);
    assert_null(issue(&l));
    assert_null(issue(&other));
    assert_int_equal(store_sandbox_ended(fix, SPAN("box"), 2), 0); /* another one of the name */
    assert_int_equal(store_sandbox_ended(fix, SPAN("none"), 1), 0);
    assert_int_equal(store_sandbox_ended(fix, SPAN("run"), 1), 0); /* not the warden's */
    assert_true(is("box", "started", 1) && is("run", "run", 1) && live() == 2);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(store_sandbox_ended(fix, SPAN("box"), i), 0);
    assert_true(is("box", "ended", 2) && live() == 1);
    assert_non_null(issue(&next)); /* nobody would end it */
    assert_int_equal(store_sandbox_put(fix, &box, &why), 0);
    assert_true(is("box", "started", 2));
    assert_int_equal(store_sandbox_put(fix, &box, &why), 0); /* of which nobody said that it ended */
    assert_true(is("box", "started", 3));
    assert_null(issue(&next));
    assert_int_equal(store_sandboxes_run(fix, &runs, 1), 0);
    assert_true(is("box", "started", 3) && is("two", "ended", 2) && is("run", "run", 1) && live() == 1);
    runs.generation = 2;
    assert_int_equal(store_sandboxes_run(fix, &runs, 1), 0);
    assert_true(is("box", "ended", 4) && live() == 0);
    fix_chain();
}

/* Those of before a pause are dead at once, and none that was issued meanwhile lives in what goes on. */
static void a_pause_ends_leases_and_going_on_is_another_generation(void **state)
{
    struct wire_sandbox box = {.name = SPAN("box"), .session = SPAN("box"), .kind = SPAN("started")};
    struct wire_lease before = lease_of(1, "box"), other = lease_of(2, "run"), meanwhile = lease_of(3, "box");
    const char *why;
    sandbox("run");
    assert_int_equal(store_sandbox_put(fix, &box, &why), 0);
    assert_null(issue(&before));
    assert_null(issue(&other));
    assert_int_equal(store_sandbox_paused(fix, SPAN("box"), 2), 0); /* another one of the name */
    assert_int_equal(store_sandbox_paused(fix, SPAN("none"), 1), 0);
    assert_int_equal(store_sandbox_paused(fix, SPAN("run"), 1), 0); /* not the warden's */
    assert_true(is("box", "started", 1) && live() == 2);
    assert_int_equal(store_sandbox_paused(fix, SPAN("box"), 1), 0);
    assert_true(is("box", "started", 1) && is("run", "run", 1) && live() == 1);
    assert_null(issue(&meanwhile));
    assert_true(is("box", "started", 1) && live() == 2);
    assert_int_equal(store_sandbox_put(fix, &box, &why), 0);
    assert_true(is("box", "started", 2) && live() == 1);
    fix_chain();
}

/* All bounds of all leases are told to a judge at once: past what fits there are none with any more, and still others
 * without. */
static void bounds_of_all_that_are_too_long(void **state)
{
    static uint8_t text[LEASE_BOUND_BYTES];
    static struct wire_layer large;
    struct wire_lease now;
    const char *why = NULL;
    memset(text, '/', sizeof(text));
    struct wire_list *lists[] = {&large.hosts, &large.methods, &large.paths, &large.ops};
    for (size_t i = 0; i < 4; i++)
        for (lists[i]->n = 0; lists[i]->n < LEASE_LIST_MAX; lists[i]->n++)
            lists[i]->v[lists[i]->n] = span_of(text, sizeof(text));
    sandbox("a");
    unsigned n = 0;
    while (why == NULL && ++n < LEASES_EACH) {
        struct wire_lease l = lease_of((uint8_t)n, "a");
        l.nlayers = 1;
        l.layer[0] = large;
        why = issue(&l);
    }
    assert_non_null(why);
    assert_in_range(n, LEASES_LAYERS_BYTES / LEASE_LAYERS_BYTES, LEASES_EACH - 1);
    struct wire_lease plain = lease_of((uint8_t)n, "a");
    assert_null(issue(&plain));
    assert_int_equal(store_lease_narrow(fix, &plain.id, &large, 0, SPAN("op"), &now, &why), 0);
    assert_true(why != NULL && now.nlayers == 0);
    assert_int_equal(store_commit(fix), 0);
}

#define LEASES(f) cmocka_unit_test_setup_teardown(f, setup, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASES(issued_and_revoked_with_what_came_from_it),
        LEASES(of_a_token_in_an_answer),
        LEASES(limit_of_tokens_in_answers),
        LEASES(bound_to_sandbox_and_generation),
        LEASES(never_widened),
        LEASES(narrowed_in_time_with_what_came_from_it),
        LEASES(a_record_has_all_layers),
        LEASES(bounds_that_are_too_long),
        LEASES(bounds_of_all_that_are_too_long),
        LEASES(times),
        LEASES(a_leak),
        LEASES(limit_of_a_sandbox),
        LEASES(stubs_give_the_same_one),
        LEASES(stubs_leave_room),
        LEASES(started_sandboxes_end),
        LEASES(a_pause_ends_leases_and_going_on_is_another_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
