/* The judge and leases: one that is good passes and never leaves; one that is not, or stands elsewhere, is refused;
 * one that is another's has leaked. */
#include "tests/play/judge/play_lease.h"

#include <stdio.h>

#define POLICY   "allow read GET / cred=4\nallow write POST / cred=4 rule=w op=api.write\n"
#define REQUIRED POLICY "lease-required\n"

/* a, b and c as one text, good until the sixteenth from now. */
static const char *joined(const char *a, const char *b, const char *c)
{
    static char room[16][1024];
    static unsigned at;
    const char *part[] = {a, b, c};
    char *to = room[at++ % 16];
    size_t n = 0;
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; part[i][k] && n < sizeof(room[0]) - 1; k++)
            to[n++] = part[i][k];
    to[n] = '\0';
    return to;
}

static struct ask *with(struct ask *a, const char *header, const char *before, const char *text)
{
    a->header = header;
    a->value = joined(before, text, "");
    return a;
}

static const char *base64(const char *text)
{
    char out[1400];
    (void)base64_encode(span_str(text), out);
    return joined(out, "", "");
}

static void expect_asked(const struct wire_reply *r, const char *challenge)
{
    struct span said = SPAN_NONE;
    for (size_t i = 0; i < r->head.nfields; i++)
        if (span_ieq(r->head.field[i].name, SPAN("www-authenticate")))
            said = r->head.field[i].value;
    assert_true(span_eq(said, span_str(challenge)));
}

static struct ask *bearer(struct ask *a, uint8_t n)
{
    return with(a, "Authorization", "Bearer ", text_of(n));
}

static struct ask *bearer_of(struct ask *a, const char *text)
{
    return with(a, "Authorization", "Bearer ", text);
}

static void a_good_one_passes_and_never_leaves(void **state)
{
    struct play p;
    struct wire_lease l;
    open_with(&p, REQUIRED, &l);
    give_request(&p, XID(1), bearer(GET("/x"), 1));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_passes(&p, 1);
    /* As gh writes it, and as Git does: the field is the slot, whatever the scheme. */
    give_request(&p, XID(2), with(GET("/x"), "authorization", "token ", text_of(1)));
    expect_passes(&p, 2);
    const char *pair = joined("x-access-token:", text_of(1), "");
    give_request(&p, XID(3), with(GET("/x"), "Authorization", "Basic ", base64(pair)));
    expect_passes(&p, 3);
    play_close(&p);
}

static void without_one_or_with_an_unknown_one(void **state)
{
    struct play p;
    struct wire_lease l;
    open_with(&p, REQUIRED, &l);
    give_request(&p, XID(1), GET("/x")); /* it is asked for one, as clients expect that ask without one first */
    struct wire_reply asked = expect_reply(&p, XID(1), 401, "lease-required");
    expect_asked(&asked, "Basic realm=\"a lease of countersign, as the password\"");
    expect_recorded(&p, 1, "lease-required");
    give_request(&p, XID(2), with(GET("/x"), "Authorization", "Bearer ", "a-real-looking-token-of-somebody"));
    asked = expect_reply(&p, XID(2), 403, "lease-required");
    expect_asked(&asked, "");
    expect_recorded(&p, 2, "lease-required");
    give_request(&p, XID(3), bearer(GET("/x"), 2)); /* our tag, and nobody was told of it */
    expect_refused(&p, 3, "lease-unknown");
    play_close(&p);
    play_all(&p, REQUIRED); /* no lease was ever made */
    give_request(&p, XID(1), bearer(GET("/x"), 1));
    expect_refused(&p, 1, "lease-required");
    play_close(&p);
}

/* D12: wherever else it stands, in whatever coding. */
static void d12_elsewhere(void **state)
{
    char twice[600] = "", hex[300], uni[900] = "";
    const char *t = text_of(1);
    struct play p;
    struct wire_lease l;
    unsigned n = 0;
    open_with(&p, POLICY, &l);
    const char *path = joined("/x/", t, "/y"), *query = joined("a=1&key=", t, "");
    for (size_t i = 0; t[i]; i++) {
        snprintf(twice + 5 * i, 6, "%%25%02X", t[i]);
        snprintf(uni + 6 * i, 7, "\\u%04x", t[i]);
    }
    hex_text(span_str(t), hex);
    struct ask asks[] = {
        {.method = "GET", .path = path},
        {.method = "GET", .path = "/x", .query = query},
        {.method = "GET", .path = "/x", .query = twice},
        {.method = "GET", .path = "/x", .query = hex},
        {.method = "GET", .path = "/x", .reason = t},
        *with(GET("/x"), "X-Api-Key", "", t),
        *with(GET("/x"), "User-Agent", "tool/1 (", t),
    };
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        give_request(&p, XID(++n), &asks[i]);
        expect_refused(&p, n, "lease-misplaced");
    }
    for (size_t pad = 0; pad < 3; pad++) {
        const char *in = joined(&"xyz"[3 - pad], t, "");
        give_request(&p, XID(++n), with(GET("/x"), "Cookie", "s=", base64(in)));
        expect_refused(&p, n, "lease-misplaced");
    }
    const char *bodies[] = {t, joined("{\"q\":\"", t, "\"}"), uni, hex};
    for (size_t i = 0; i < 4; i++) {
        give_request(&p, XID(++n), POST("/x", bodies[i]));
        expect_refused(&p, n, "lease-misplaced");
    }
    /* Nothing of it is in the record. */
    give_request(&p, XID(++n), &asks[0]);
    expect_reply(&p, XID(n), 403, "lease-misplaced");
    (void)expect(&p, ROLE_LEDGER, M_AUDIT, XID(n));
    assert_true(span_find(dynbuf_span(&p.got.payload), span_str(t)) == p.got.payload.n);
    play_close(&p);
    covers("D12");
}

/* D12: in a body that streams through, also across two pieces. */
static void d12_in_a_stream(void **state)
{
    const char *t = text_of(1);
    for (size_t cut = 0; cut <= strlen(t); cut += 7) {
        struct play p;
        struct wire_lease l;
        open_with(&p, POLICY, &l);
        give_request(&p, XID(1), &(struct ask){.method = "POST", .path = "/x", .kind = 2, .declared = 1000});
        expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
        give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
        expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
        expect_forward(&p, XID(1), NULL);
        expect(&p, ROLE_FRONT, M_BODY_WANTED, XID(1));
        dynbuf_add(from(&p), SPAN("harmless "));
        assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY, XID(1), -1), 0);
        expect(&p, ROLE_CARRIER, M_BODY, XID(1));
        dynbuf_add(from(&p), span_of(t, cut));
        assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY, XID(1), -1), 0);
        bool at_once = cut >= strlen("ghp_") + LEASE_TAG;
        if (!at_once)
            expect(&p, ROLE_CARRIER, M_BODY, XID(1));
        else
            expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
        dynbuf_add(from(&p), span_str(t + cut));
        assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY, XID(1), -1), 0);
        if (!at_once)
            expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
        give_result(&p, XID(1), OUTCOME_NOT_SENT, 0, false, "cancelled");
        expect_reply(&p, XID(1), 403, "lease-misplaced");
        expect_outcome(&p, XID(1), false);
        play_close(&p);
    }
    covers("D12");
}

static void expect_leak(struct play *p, unsigned n, const char *words, bool freeze)
{
    struct msg_in m = expect(p, ROLE_LEDGER, M_LEASE_LEAK, XID(n));
    struct id id;
    msg_get_id(&m, &id);
    assert_int_equal(id.b[0], 1);
    assert_true(span_eq(msg_get_span(&m, 256), SPAN("sb")));
    assert_true(span_eq(msg_get_span(&m, 256), SPAN("ses")));
    (void)msg_get_span(&m, 256);
    (void)msg_get_u16(&m);
    struct span said = msg_get_span(&m, 256);
    assert_true(span_find(said, span_str(words)) < said.n);
    assert_int_equal(msg_get_bool(&m), freeze);
    assert_int_equal(msg_end(&m), 0);
}

/* D13, D32: another host's, another sandbox's, of another generation; two of them. */
static void d13_d32_a_leak(void **state)
{
    const char *words[] = {"another sandbox", "another sandbox", "another generation", "a place"};
    struct play p;
    struct wire_lease l;
    for (size_t i = 0; i < 4; i++) {
        play_all(&p, i % 2 ? POLICY "leak-freezes\n" : POLICY);
        l = lease_of(1);
        if (i == 0)
            l.sandbox = SPAN("another");
        else if (i == 1)
            l.session = SPAN("another");
        else if (i == 2)
            l.generation = 7;
        tell_lease(&p, &l);
        struct ask *a = bearer(GET("/x"), 1);
        a->host = i == 3 ? "elsewhere.example" : NULL;
        give_request(&p, XID(1), a);
        expect_leak(&p, 1, words[i], i % 2);
        expect_refused(&p, 1, "lease-leaked");
        give_request(&p, XID(2), a); /* said once */
        expect_refused(&p, 2, "lease-leaked");
        play_close(&p);
    }
    /* In the target or the reason its text is not written down, though it is another's. */
    const char *query = joined("q=", text_of(1), "");
    const struct ask in[] = {{.method = "GET", .path = "/x", .query = query},
                             {.method = "GET", .path = joined("/", text_of(1), "")},
                             {.method = "GET", .path = "/x", .reason = text_of(1)}};
    for (size_t i = 0; i < 3; i++) {
        open_with(&p, POLICY, &l);
        l.sandbox = SPAN("another");
        tell_lease(&p, &l);
        give_request(&p, XID(1), &in[i]);
        expect_leak(&p, 1, "another sandbox", false);
        expect_reply(&p, XID(1), 403, "lease-leaked");
        (void)expect(&p, ROLE_LEDGER, M_AUDIT, XID(1));
        assert_true(span_find(dynbuf_span(&p.got.payload), span_str(text_of(1))) == p.got.payload.n);
        play_close(&p);
    }
    open_with(&p, POLICY, &l);
    const char *pair = joined(text_of(1), ":", text_of(1));
    give_request(&p, XID(1), with(GET("/x"), "Authorization", "Basic ", base64(pair)));
    expect_refused(&p, 1, "lease-misplaced");
    /* A prefix of one, and one with something behind it, are none. */
    give_request(&p, XID(2), bearer_of(GET("/x"), joined(text_of(1), "A", "")));
    expect_refused(&p, 2, "lease-unknown");
    char shorter[LEASE_TEXT_MAX + 1];
    memcpy(shorter, text_of(1), sizeof(shorter));
    shorter[strlen(shorter) - 1] = '\0';
    give_request(&p, XID(3), bearer_of(GET("/x"), shorter));
    expect_refused(&p, 3, "lease-unknown");
    play_close(&p);
    covers("D13 D32");
}

/* A leak while the ledger is away: its lease stays leaked, and the ledger is told at the next use. */
static void a_leak_that_nobody_heard_of(void **state)
{
    struct play p;
    struct wire_lease l;
    open_with(&p, POLICY, &l);
    assert_int_equal(judge_config(p.j, SPAN("store_lost"), SPAN("allow-reads")), JUDGE_CONFIG_OK);
    l.sandbox = SPAN("another");
    tell_lease(&p, &l);
    play_gone(&p, ROLE_LEDGER, 0);
    give_request(&p, XID(1), bearer(GET("/x"), 1));
    expect_reply(&p, XID(1), 403, "lease-leaked");
    play_peer(&p, ROLE_LEDGER, 0, "");
    expect_recorded(&p, 1, "lease-leaked");
    l.sandbox = SPAN("sb"); /* whatever the ledger says of it that does not know */
    tell_lease(&p, &l);
    give_request(&p, XID(2), bearer(GET("/x"), 1));
    expect_refused(&p, 2, "lease-ended");
    l.sandbox = SPAN("another");
    tell_lease(&p, &l);
    give_request(&p, XID(3), bearer(GET("/x"), 1));
    expect_leak(&p, 3, "another sandbox", false);
    expect_refused(&p, 3, "lease-leaked");
    play_close(&p);
}

static void dead_ones(void **state)
{
    struct play p;
    struct wire_lease l, child;
    for (int i = 0; i < 5; i++) {
        open_with(&p, i == 3 ? POLICY "redefined\n" : POLICY, &l);
        uint8_t n = 1;
        if (i == 0)
            l.state = LEASE_REVOKED;
        else if (i == 1)
            l.state = LEASE_EXPIRED;
        else if (i == 2)
            l.expires_ms = 1; /* before anybody says so */
        else if (i == 4) {    /* what it came from is dead */
            child = lease_of(2);
            child.parent = l.id;
            tell_lease(&p, &child);
            l.state = LEASE_REVOKED;
            n = 2;
        }
        tell_lease(&p, &l);
        give_request(&p, XID(1), bearer(GET("/x"), n));
        expect_refused(&p, 1, "lease-ended");
        play_close(&p);
    }
}

/* A reload that takes its credential away or moves it is no leak: who goes on as before is told that it has ended. */
static void a_reload_is_no_leak(void **state)
{
    static const char *const policy[] = {
        "allow read GET /\nrenamed-credential\n",
        POLICY "moved-elsewhere\n",
        POLICY "moved-elsewhere leak-freezes\n",
        POLICY "renamed-credential\n",
    };
    for (size_t i = 0; i < sizeof(policy) / sizeof(policy[0]); i++) {
        struct play p;
        struct wire_lease l;
        open_with(&p, policy[i], &l);
        give_request(&p, XID(1), bearer(GET("/x"), 1));
        expect_refused(&p, 1, i == 0 ? "lease-misplaced" : "lease-ended");
        l = lease_of(2); /* another sandbox's is a leak as before */
        l.sandbox = SPAN("another");
        tell_lease(&p, &l);
        give_request(&p, XID(2), bearer(GET("/x"), 2));
        (void)expect(&p, ROLE_LEDGER, M_LEASE_LEAK, XID(2));
        expect_refused(&p, 2, "lease-leaked");
        play_close(&p);
    }
}

/* Every layer of it, and of what it came from. */
static void bounds(void **state)
{
    struct play p;
    struct wire_lease l, child = lease_of(2);
    static const struct wire_layer wrong[] = {
        {.hosts = {1, {SPAN("other.example")}}}, {.hosts = {1, {SPAN("api.example:8443")}}},
        {.methods = {1, {SPAN("GET")}}},         {.paths = {1, {SPAN("/y/**")}}},
        {.ops = {1, {SPAN("api.read")}}},        {.effects = 1u << EFFECT_READ},
    };
    static const struct wire_layer right = {.hosts = {1, {SPAN("api.example:443")}},
                                            .methods = {2, {SPAN("GET"), SPAN("POST")}},
                                            .paths = {1, {SPAN("/x/**")}},
                                            .ops = {1, {SPAN("api.write")}},
                                            .effects = 1u << EFFECT_WRITE};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        for (int how = 0; how < 3; how++) {
            open_with(&p, POLICY, &l);
            l.nlayers = 1;
            l.layer[0] = how == 1 ? right : wrong[i]; /* 1: a later layer, 2: what it came from */
            if (how == 1)
                l.layer[l.nlayers++] = wrong[i];
            tell_lease(&p, &l);
            child.parent = l.id;
            child.nlayers = 1;
            child.layer[0] = right;
            tell_lease(&p, &child);
            give_request(&p, XID(1), bearer(POST("/x/1", "b"), how == 2 ? 2 : 1));
            expect_refused(&p, 1, "lease-not-for-this");
            play_close(&p);
        }
    open_with(&p, POLICY, &l);
    l.nlayers = 1;
    l.layer[0] = right;
    tell_lease(&p, &l);
    give_request(&p, XID(1), bearer(POST("/x/1", "b"), 1));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_passes(&p, 1);
    play_close(&p);
}

/* What the request may be taken for is inside the bounds as well: with another method, or without an empty segment.
 */
static void bounds_of_all_it_may_be(void **state)
{
    static const struct {
        struct wire_layer layer;
        const char *path, *query;
        bool passes;
    } row[] = {
        {{.methods = {1, {SPAN("GET")}}}, "/x", "_method=DELETE", false},
        {{.methods = {1, {SPAN("GET")}}}, "/x", "a=1", true},
        {{.ops = {1, {SPAN("op")}}}, "/x", "_method=DELETE", false},
        {{.ops = {1, {SPAN("op")}}}, "/x", NULL, true},
        {{.effects = 1u << EFFECT_READ | 1u << EFFECT_WRITE}, "/x", "_method=DELETE", false},
        {{.effects = 1u << EFFECT_READ}, "/x", NULL, true},
        {{.effects = 1u << EFFECT_READ | 1u << EFFECT_WRITE | 1u << EFFECT_DELETE}, "/x", "_method=DELETE", true},
        {{.paths = {1, {SPAN("/p/*/m")}}}, "/p//m", NULL, false},
        {{.paths = {1, {SPAN("/p/*/m")}}}, "/p/1/m", NULL, true},
        {{.paths = {1, {SPAN("/p/**")}}}, "/p//m", NULL, true},
        {{.hosts = {1, {SPAN("api.example")}}}, "/p//m", "_method=DELETE", true},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct play p;
        struct wire_lease l;
        open_with(&p, POLICY, &l);
        l.nlayers = 1;
        l.layer[0] = row[i].layer;
        tell_lease(&p, &l);
        give_request(&p, XID(1),
                     bearer(&(struct ask){.method = "GET", .path = row[i].path, .query = row[i].query}, 1));
        if (row[i].passes) {
            expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
            expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
            expect_passes(&p, 1);
        } else {
            expect_refused(&p, 1, "lease-not-for-this");
        }
        play_close(&p);
    }
}

/* What it counts goes to the ledger, of reads as well, its own and what it came from. */
static void uses_are_counted(void **state)
{
    struct play p;
    struct wire_lease l, child = lease_of(2);
    struct wire_record r;
    struct wire_limits limits;
    struct digest join;
    open_with(&p, POLICY, &l);
    l.nlayers = 2;
    l.layer[0] = (struct wire_layer){.uses = 9};
    l.layer[1] = (struct wire_layer){.uses = 3, .rate = 60};
    tell_lease(&p, &l);
    child.parent = l.id;
    child.nlayers = 1;
    child.layer[0] = (struct wire_layer){.uses = 2};
    tell_lease(&p, &child);
    give_request(&p, XID(1), bearer(GET("/x"), 2));
    struct msg_in m = expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
    assert_int_equal(wire_get_record(&m, &r), 0);
    msg_get_digest(&m, &join);
    assert_int_equal(wire_get_limits(&m, &limits), 0);
    assert_int_equal(limits.n, 3);
    assert_true(limits.limit[0].max == 2 && limits.limit[1].max == 3 && limits.limit[2].max == 60);
    assert_true(span_eq(limits.limit[1].measure, SPAN("uses")) && span_eq(limits.limit[2].measure, SPAN("rate")));
    assert_false(span_eq(limits.limit[0].rule, limits.limit[1].rule));
    struct wire_over over = {.n = 3, .past = {false, true}};
    wire_put_over(from(&p), &over);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_INTENT_OVER, XID(1), -1), 0);
    expect_reply(&p, XID(1), 403, "lease-used-up");
    expect_recorded(&p, 1, "lease-used-up");
    play_close(&p);
}

/* Revoked while something of it is under way: what waits is refused, what the carrier has is cancelled. */
static void revoked_in_flight(void **state)
{
    struct play p;
    struct wire_lease l;
    open_with(&p, POLICY "hold write PUT / cred=4 rule=h\n", &l);
    give_request(&p, XID(1), bearer(GET("/x"), 1));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_forward(&p, XID(1), NULL);
    give_request(&p, XID(2), bearer(POST("/x", "b"), 1));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(2)); /* its answer comes after */
    give_request(&p, XID(3), bearer(&(struct ask){.method = "PUT", .path = "/x", .body = "b"}, 1));
    struct wire_ticket t = expect_ticket_open(&p, XID(3));
    for (size_t i = 0; i < t.request.nfields; i++)
        assert_false(span_ieq(t.request.field[i].name, SPAN("authorization")));
    give_ticket(&p, XID(3), 1, TICKET_PENDING);
    l.state = LEASE_REVOKED;
    tell_lease(&p, &l);
    struct msg_in m = {SPAN_NONE, false};
    for (int i = 0; i < 3; i++) { /* in the order of their table */
        if (p.out[p.first].to == ROLE_CARRIER) {
            m = expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
        } else {
            expect_reply(&p, XID(3), 403, "lease-ended");
            i++;
            expect_recorded(&p, 3, "lease-ended");
        }
    }
    (void)m;
    give_result(&p, XID(1), OUTCOME_NOT_SENT, 0, false, "cancelled");
    expect_reply(&p, XID(1), 403, "lease-ended");
    expect_outcome(&p, XID(1), false);
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(2), true);
    expect_reply(&p, XID(2), 403, "lease-ended");
    expect_outcome(&p, XID(2), false);
    play_close(&p);
}

/* What is outside of new bounds ends as if the lease were dead; what is inside goes on. */
static void narrowed_in_flight(void **state)
{
    struct play p;
    struct wire_lease l;
    open_with(&p, POLICY "hold write PUT / cred=4 rule=h\n", &l);
    give_request(&p, XID(1), bearer(GET("/x"), 1));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_forward(&p, XID(1), NULL);
    give_request(&p, XID(2), bearer(GET("/in/x"), 1));
    expect_forward(&p, XID(2), NULL);
    give_request(&p, XID(3), bearer(&(struct ask){.method = "PUT", .path = "/x", .body = "b"}, 1));
    expect_ticket_open(&p, XID(3));
    give_ticket(&p, XID(3), 1, TICKET_PENDING);
    tell_lease(&p, &l); /* as it was */
    expect_nothing(&p);
    l.nlayers = 1;
    l.layer[0].paths = (struct wire_list){1, {SPAN("/in/**")}};
    tell_lease(&p, &l);
    for (int i = 0; i < 2; i++) { /* in the order of their table */
        if (p.out[p.first].to == ROLE_CARRIER) {
            expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
        } else {
            expect_reply(&p, XID(3), 403, "lease-not-for-this");
            expect_recorded(&p, 3, "lease-not-for-this");
        }
    }
    expect_nothing(&p);
    give_result(&p, XID(1), OUTCOME_NOT_SENT, 0, false, "cancelled");
    expect_reply(&p, XID(1), 403, "lease-ended");
    expect_outcome(&p, XID(1), false);
    give_result(&p, XID(2), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(2), false);
    play_close(&p);
}

static void give_switched(struct play *p, uint64_t xid)
{
    expect_forward(p, xid, NULL);
    from(p);
    assert_int_equal(give(p, ROLE_CARRIER, 0, M_SWITCHED, xid, -1), 0);
    assert_int_equal(expect_outcome(p, xid, false), OUTCOME_ANSWERED);
}

static void give_closed(struct play *p, uint64_t xid)
{
    struct dynbuf *b = from(p);
    msg_put_u64(b, 0);
    msg_put_u64(b, 0);
    msg_put_u16(b, 1008);
    assert_int_equal(give(p, ROLE_CARRIER, 0, M_WS_ENDED, xid, -1), 0);
    give_result(p, xid, OUTCOME_ANSWERED, 101, true, "");
    (void)expect(p, ROLE_LEDGER, M_WEBSOCKET, xid);
}

/* A reload makes its credential another one: what is under way with it ends at once, whatever else it is. */
static void a_reload_ends_what_rides_on_it(void **state)
{
#define SOCKETS POLICY "allow read GET / rule=s ws cred=4\n"
    struct play p;
    struct wire_lease l;
    open_with(&p, SOCKETS, &l);
    give_request(&p, XID(1), bearer(GET("/x"), 1));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_forward(&p, XID(1), NULL);
    give_request(&p, XID(2), bearer(&(struct ask){.method = "GET", .path = "/s", .upgrade = true}, 1));
    give_switched(&p, XID(2));
    give_request(&p, XID(3), &(struct ask){.method = "GET", .path = "/s", .upgrade = true}); /* without a lease */
    give_switched(&p, XID(3));
    play_policy(&p, SOCKETS "a word that changes nothing\n");
    expect_nothing(&p);
    play_policy(&p, SOCKETS "redefined\n");
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
    expect(&p, ROLE_CARRIER, M_WS_CLOSE, XID(2));
    expect(&p, ROLE_CARRIER, M_WS_CLOSE, XID(3));
    give_closed(&p, XID(2));
    give_closed(&p, XID(3));
    give_result(&p, XID(1), OUTCOME_NOT_SENT, 0, false, "cancelled");
    expect_reply(&p, XID(1), 403, "lease-ended");
    expect_outcome(&p, XID(1), false);
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_one_passes_and_never_leaves),
        cmocka_unit_test(without_one_or_with_an_unknown_one),
        cmocka_unit_test(d12_elsewhere),
        cmocka_unit_test(d12_in_a_stream),
        cmocka_unit_test(d13_d32_a_leak),
        cmocka_unit_test(a_leak_that_nobody_heard_of),
        cmocka_unit_test(dead_ones),
        cmocka_unit_test(a_reload_is_no_leak),
        cmocka_unit_test(bounds),
        cmocka_unit_test(bounds_of_all_it_may_be),
        cmocka_unit_test(uses_are_counted),
        cmocka_unit_test(revoked_in_flight),
        cmocka_unit_test(narrowed_in_flight),
        cmocka_unit_test(a_reload_ends_what_rides_on_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
