/* The judge with the policy of a file and the store of a ledger, which does what it is told by the line, for tests
 * that ask thousands of questions of leases. A command is a JSON array; N and X are numbers that the caller gives
 * leases and exchanges. Each is answered by a line.
 *
 *   ["issue", N, LAYER...]  ["child", N, PARENT, LAYER]  ["narrow", N, LAYER]  ["revoke", N]      ok | no WHY
 *   ["time", MS]                                                                                   ok
 *   ["ask", X, N, AT, BY, method, url, "Name: value\n...", body or null]        asks | sent | CODE | refused
 *   ["ledger", X]: it answers what X asked it                                              sent | CODE
 *   ["end", X, "answered" | "not-sent" | "unknown"]                                        ended
 *   ["try", N, AT, BY, method, url, fields, body]: ask, ledger and end in one              sent | CODE | refused
 *
 * LAYER: {"hosts": [...], "methods", "paths", "ops", "effects", "uses": n, "rate": n}, each of which may be missing.
 * AT, BY: the lease's text is changed by hand, to have this character there, or another if it is the one; AT -1: it
 * is as it is. Usage: lease_lines FILE */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/memfd.h"
#include "proxy/identity.h"
#include "tests/play/judge/play_lease.h"
#include "tests/policy/lines/lines.h"
#include "tests/unit/ledger/ledger_fix.h"

enum { LEASES = 256, EXCHANGES = 64, CODE = 64 };

uint64_t play_spent_us;

static struct play p;
static struct policy *policy;
static struct lease_known {
    struct id id;
    char text[LEASE_TEXT_MAX + 1];
} leases[LEASES];
static struct exchange_known {
    uint64_t xid; /* 0: none */
    const char *state;
    char code[CODE];
    struct wire_limits limits;
    struct wire_record record;
    struct dynbuf asked; /* M_INTENT, not answered yet */
} exchanges[EXCHANGES];
static uint64_t last_xid;

static struct exchange_known *of(uint64_t xid)
{
    for (size_t i = 0; i < EXCHANGES; i++)
        if (exchanges[i].xid == xid)
            return &exchanges[i];
    fail_msg("a word of exchange %llx, which is none", (unsigned long long)xid);
    return NULL;
}

/* ---- the ledger ---- */

static void on_change(void *arg, enum store_change what, uint64_t seq, const struct wire_ticket_state *t,
                      const struct wire_sandbox *b)
{
    if (what != CHANGE_SANDBOX)
        return;
    struct dynbuf *to = from(&p);
    wire_put_sandbox(to, b);
    msg_put_u8(to, false);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
}

static void on_lease(void *arg, uint64_t seq, const struct wire_lease *l)
{
    tell_lease(&p, l);
}

static void on_time(uint64_t ms)
{
    give_bool(&p, ROLE_LEDGER, M_STORE, 0, true); /* a sign of life, as each second has one */
    play_time(&p, ms);
    fix_time(ms);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
}

static void take_leak(struct msg_in m, uint64_t xid)
{
    struct lease_leak leak = {.xid = xid};
    msg_get_id(&m, &leak.lease);
    leak.sandbox = msg_get_span(&m, 256);
    leak.session = msg_get_span(&m, 256);
    leak.host = msg_get_span(&m, 256);
    leak.port = msg_get_u16(&m);
    leak.what = msg_get_span(&m, 512);
    leak.freeze = msg_get_bool(&m);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(store_lease_leaked(fix, &leak), 0);
}

static void take_outcome(struct msg_in m, uint64_t xid)
{
    struct store_outcome o = {.xid = xid};
    assert_int_equal(wire_get_record(&m, &o.record), 0);
    msg_get_id(&m, &o.ticket);
    o.outcome = (enum outcome)msg_get_u8(&m);
    o.status = msg_get_u16(&m);
    assert_int_equal(store_outcome(fix, &o), 0);
    from(&p);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_OUTCOME_OK, xid, -1), 0);
}

static void answer_intent(struct exchange_known *x)
{
    struct msg_in m = msg_in(dynbuf_span(&x->asked));
    struct digest join;
    struct wire_over over = {.n = 0};
    bool ok = false;
    assert_int_equal(wire_get_record(&m, &x->record), 0);
    msg_get_digest(&m, &join);
    assert_int_equal(wire_get_limits(&m, &x->limits), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(store_intent(fix, x->xid, &x->record, &join, &x->limits, &ok, &over), 0);
    dynbuf_free(&x->asked);
    if (over.n == 0) {
        give_bool(&p, ROLE_LEDGER, M_INTENT_OK, x->xid, ok);
        return;
    }
    wire_put_over(from(&p), &over);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_INTENT_OVER, x->xid, -1), 0);
}

/* ---- what the judge says ---- */

static void take_code(struct exchange_known *x, struct span payload)
{
    struct wire_record r;
    struct msg_in m = msg_in(payload);
    assert_int_equal(wire_get_record(&m, &r), 0);
    snprintf(x->code, sizeof(x->code), "%.*s", SPAN_FMT(r.code));
    x->state = x->code;
}

static void take(const struct sent *s)
{
    struct span payload = dynbuf_span(&s->payload);
    struct exchange_known *x = s->type == M_INTENT || s->type == M_FORWARD || s->type == M_AUDIT ? of(s->id) : NULL;
    switch (s->type) {
    case M_INTENT:
        x->state = "asks";
        dynbuf_init(&x->asked, 1 << 20);
        assert_int_equal(dynbuf_add(&x->asked, payload), 0);
        break;
    case M_FORWARD:
        x->state = "sent";
        for (size_t i = 0; i < LEASES; i++) /* whichever it was: none leaves */
            if (leases[i].text[0] && span_find(payload, span_str(leases[i].text)) < payload.n)
                fail_msg("a lease's text leaves");
        break;
    case M_AUDIT: take_code(x, payload); break;
    case M_CANCEL: give_result(&p, s->id, OUTCOME_NOT_SENT, 0, false, "cancelled"); break;
    case M_OUTCOME: take_outcome(msg_in(payload), s->id); break;
    case M_LEASE_LEAK: take_leak(msg_in(payload), s->id); break;
    default: break;
    }
}

static void listen(void)
{
    while (p.first < p.n) {
        struct sent s = p.out[p.first++];
        if (p.first == p.n)
            p.first = p.n = 0;
        take(&s);
        dynbuf_free(&s.payload);
        if (s.fd >= 0)
            close(s.fd);
    }
}

/* ---- commands ---- */

/* The members of an array, as they are asked for. */
static const struct json *next(const struct json **at)
{
    const struct json *j = *at;
    if (j == NULL)
        fail_msg("a command is too short");
    *at = j->next;
    return j;
}

static uint64_t number(const struct json **at)
{
    uint64_t n = 0;
    const struct json *j = next(at);
    if (j->type != JSON_NUMBER || span_u64(j->text, UINT32_MAX, &n) != 0)
        fail_msg("a command has no number where one belongs");
    return n;
}

static struct lease_known *lease(const struct json **at)
{
    uint64_t n = number(at);
    assert_true(n < LEASES);
    return &leases[n];
}

static void list(const struct json *layer, const char *key, struct wire_list *out)
{
    const struct json *v = json_get(layer, span_str(key));
    for (const struct json *j = v ? v->child : NULL; j; j = j->next) {
        assert_true(out->n < LEASE_LIST_MAX);
        out->v[out->n++] = j->text;
    }
}

static struct wire_layer layer(const struct json *j)
{
    struct wire_layer l = {.effects = 0};
    struct wire_list effects = {.n = 0};
    list(j, "hosts", &l.hosts);
    list(j, "methods", &l.methods);
    list(j, "paths", &l.paths);
    list(j, "ops", &l.ops);
    list(j, "effects", &effects);
    for (int e = EFFECT_UNKNOWN; e <= EFFECT_EXEC; e++)
        for (size_t i = 0; i < effects.n; i++)
            if (span_eq(effects.v[i], span_str(effect_name((enum effect)e))))
                l.effects |= 1u << e;
    (void)!json_u64(j, SPAN("uses"), &l.uses);
    (void)!json_u64(j, SPAN("rate"), &l.rate);
    return l;
}

static const char *issue(const struct json *at, bool child)
{
    static uint32_t made;
    uint8_t stream[LEASE_STREAM];
    struct wire_lease l = {.sandbox = SPAN("sb"), .by = SPAN("op"), .tag = SPAN("QZ7XWK"), .format = LEASE_GITHUB};
    struct lease_known *k = lease(&at);
    struct credential c;
    const char *why;
    made++;
    for (size_t i = 0; i < sizeof(stream); i++)
        stream[i] = (uint8_t)(made * 167 + i * (2 * made + 1));
    memcpy(l.id.b, &made, sizeof(made));
    l.id.b[sizeof(l.id.b) - 1] = 1;
    if (child)
        l.parent = lease(&at)->id;
    for (; at != NULL; at = at->next)
        l.layer[l.nlayers++] = layer(at);
    assert_true(policy_credential(policy, 0, &c));
    l.credential = c.name;
    assert_int_equal(identity_of_credential(policy, 0, &l.meaning), 0);
    k->text[lease_text(l.format, (const char *)l.tag.p, stream, k->text)] = '\0';
    k->id = l.id;
    digest_of(span_str(k->text), &l.text);
    assert_int_equal(store_lease_put(fix, &l, &why), 0);
    return why;
}

static const char *narrow(const struct json *at)
{
    struct wire_lease now;
    const char *why;
    struct lease_known *k = lease(&at);
    struct wire_layer l = layer(next(&at));
    assert_int_equal(store_lease_narrow(fix, &k->id, &l, 0, SPAN("op"), &now, &why), 0);
    return why;
}

static const char *end_lease(const struct json *at)
{
    const char *why;
    assert_int_equal(store_lease_revoke(fix, &lease(&at)->id, SPAN("op"), SPAN_NONE, &why), 0);
    return why;
}

/* at: from the lease on. False: the gateway would answer 400. */
static bool ask(struct exchange_known *x, const struct json *at)
{
    char value[16 + LEASE_TEXT_MAX];
    static struct wire_request r; /* too large for a stack */
    struct lease_known *k = lease(&at);
    const struct json *where = next(&at), *by = next(&at);
    struct asked q;
    uint64_t change = 0;
    bool refused;
    int n = snprintf(value, sizeof(value), "Bearer %s", k->text);
    if (span_u64(where->text, LEASE_TEXT_MAX, &change) == 0 && by->text.n == 1)
        value[7 + change] =
            value[7 + change] != (char)by->text.p[0] ? (char)by->text.p[0] : (char)(by->text.p[0] ^ 1);
    asked_init(&q);
    if (lines_request(&q, at, &refused) != 0 || asked_header(&q, SPAN("Authorization"), span_of(value, (size_t)n)))
        fail_msg("this is no request");
    *x = (struct exchange_known){.xid = XID(++last_xid), .state = "nothing"};
    if (!refused) {
        const struct request *w = &q.request;
        r = (struct wire_request){.scheme = w->scheme,
                                  .host = w->host,
                                  .port = w->port,
                                  .method = w->method,
                                  .path = w->path,
                                  .query = w->query,
                                  .has_query = w->has_query};
        for (; r.nfields < w->nfields; r.nfields++)
            r.field[r.nfields] = w->fields[r.nfields];
        struct dynbuf *b = from(&p);
        wire_put_request(b, &r);
        msg_put_span(b, SPAN_NONE);
        msg_put_u8(b, w->has_body);
        msg_put_u64(b, w->body.n);
        msg_put_span(b, w->body);
        assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_REQUEST, x->xid, -1), 0);
        listen();
    }
    asked_free(&q);
    return !refused;
}

static void end(struct exchange_known *x, struct span how)
{
    enum outcome o = span_eq(how, SPAN("answered"))   ? OUTCOME_ANSWERED
                     : span_eq(how, SPAN("not-sent")) ? OUTCOME_NOT_SENT
                                                      : OUTCOME_UNKNOWN;
    give_result(&p, x->xid, o, o == OUTCOME_ANSWERED ? 200 : 0, o == OUTCOME_ANSWERED, "");
    listen();
    x->xid = 0;
}

static const char *attempt(const struct json *at)
{
    struct exchange_known *x = &exchanges[0];
    const char *state;
    if (!ask(x, at))
        return "refused";
    if (x->asked.n > 0)
        answer_intent(x);
    listen();
    state = x->state;
    if (strcmp(state, "sent") == 0)
        end(x, SPAN("answered"));
    return state;
}

static const char *of_exchange(struct span verb, const struct json *at)
{
    uint64_t n = number(&at);
    assert_in_range(n, 1, EXCHANGES - 1);
    struct exchange_known *x = &exchanges[n];
    if (span_eq(verb, SPAN("ask")))
        return ask(x, at) ? x->state : "refused";
    if (span_eq(verb, SPAN("end"))) {
        end(x, next(&at)->text);
        return "ended";
    }
    answer_intent(x);
    listen();
    return x->state;
}

static const char *obey(struct span verb, const struct json *at)
{
    const char *why = NULL;
    if (span_eq(verb, SPAN("try")))
        return attempt(at);
    if (span_eq(verb, SPAN("ask")) || span_eq(verb, SPAN("ledger")) || span_eq(verb, SPAN("end")))
        return of_exchange(verb, at);
    if (span_eq(verb, SPAN("time")))
        on_time(number(&at));
    else if (span_eq(verb, SPAN("issue")) || span_eq(verb, SPAN("child")))
        why = issue(at, span_eq(verb, SPAN("child")));
    else if (span_eq(verb, SPAN("narrow")))
        why = narrow(at);
    else if (span_eq(verb, SPAN("revoke")))
        why = end_lease(at);
    else
        why = "there is no such command";
    listen();
    return why ? why : "ok";
}

/* ---- the start ---- */

static void open_all(struct span image)
{
    struct wire_sandbox b = {.name = SPAN("sb"), .session = SPAN("ses"), .kind = SPAN("run"), .has_token = true};
    struct digest d;
    const char *why;
    assert_int_equal(fix_setup(NULL), 0);
    fix_config.changed = on_change;
    fix_config.lease = on_lease;
    fix_reopen();
    play_open(&p);
    p.now = T0 - PLAY_WALL;
    play_peer(&p, ROLE_KEEPER, 0, "");
    play_peer(&p, ROLE_CARRIER, 0, "");
    play_peer(&p, ROLE_LEDGER, 0, "");
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
    play_peer(&p, ROLE_FRONT, FRONT, "sb");
    memcpy(d.b, policy_digest(policy).p, sizeof(d.b));
    int fd = memfd_of(image);
    msg_put_digest(from(&p), &d);
    assert_int_equal(give(&p, ROLE_PARENT, 0, M_IMAGE, 0, fd), 0);
    listen();
}

int main(int argc, char **argv)
{
    struct dynbuf image;
    struct arena a;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    dynbuf_init(&image, POLICY_IMAGE_MAX);
    policy = argc == 2 ? lines_policy((struct policy_place){.paths = (const char *const *)&argv[1], .n = 1}, &image)
                       : NULL;
    if (policy == NULL)
        return 3;
    open_all(dynbuf_span(&image));
    while ((n = getline(&line, &room, stdin)) > 0) {
        arena_init(&a, 1 << 20);
        const struct json *v = json_parse(span_of(line, (size_t)n), &a);
        if (v == NULL || v->type != JSON_ARRAY || v->child == NULL)
            fail_msg("this is no command");
        puts(obey(v->child->text, v->child->next));
        fflush(stdout);
        arena_free(&a);
    }
    free(line);
    judge_free(&p.j);
    policy_close(policy);
    dynbuf_free(&image);
    return fix_teardown(NULL);
}
