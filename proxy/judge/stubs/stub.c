#include "proxy/judge/stubs/stub.h"

#include "common/log.h"
#include "proxy/identity.h"
#include "proxy/judge/accounts/account.h"
#include "proxy/judge/leases/table.h"
#include "proxy/judge/post.h"

enum { WHY_MAX = 512 };

static enum refuse_why (*const kinds[STUB_KINDS])(struct stub_says *s) = {[STUB_AWS] = stub_aws,
                                                                          [STUB_AWS_CONTAINER] = stub_aws_container,
                                                                          [STUB_GOOGLE] = stub_google,
                                                                          [STUB_OAUTH] = stub_oauth};

bool stub_is(struct exchange *x)
{
    const struct policy *p = x->now.image->policy;
    struct label own[SANDBOX_LABELS];
    struct subject who = sandbox_who(x->sandbox, x->lane, own);
    struct request r = exchange_asks(x);
    struct credential c;
    x->stub.kind = STUB_NONE;
    if (x->judge->config.shadow)
        return false;
    enum stub_kind kind = policy_stub(p, &who, &r, &x->now.d, &x->stub.credential);
    if (kind == STUB_NONE || !policy_credential(p, x->stub.credential, &c))
        return false;
    x->stub.kind = kind;
    x->now.credential = c.name; /* for the record, as the rest */
    x->now.d.verdict = VERDICT_ALLOW;
    x->now.d.code = WIRE_CODE_STUB;
    x->now.d.effect = EFFECT_READ;
    return true;
}

bool stub_wants_body(const struct exchange *x)
{
    return x->stub.kind == STUB_OAUTH;
}

/* ---- the lease ---- */

/* One that asks for all of its sandbox that would, so that no sandbox has more than one question open. */
static enum walk_next ask(struct exchange *x, const struct credential *c)
{
    struct account *account = x->sandbox->account;
    struct digest meaning;
    if (x->sandbox->stubs_over)
        return refuse(x, REFUSE_STUB_OVER);
    if (account->stub_asks) {
        exchange_wait(x, X_STUB_TURN, STUB_WAIT_MS);
        return WALK_WAIT;
    }
    if (identity_of_credential(x->now.image->policy, x->stub.credential, &meaning) != 0)
        return refuse(x, REFUSE_INTERNAL);
    struct dynbuf *b = post_begin(x->judge, ROLE_LEDGER, 0, M_LEASE_STUB, x->xid);
    msg_put_span(b, x->sandbox->name);
    msg_put_span(b, c->name);
    msg_put_digest(b, &meaning);
    msg_put_u8(b, (uint8_t)c->lease);
    if (post_commit(x->judge, -1) != 0)
        return refuse(x, REFUSE_STORE);
    x->stub.asks = account->stub_asks = true;
    exchange_wait(x, X_STUB, STUB_WAIT_MS);
    return WALK_WAIT;
}

/* Is it this sandbox's, and for what the policy of now means? It may have changed while the ledger was asked. */
static bool is_good(struct exchange *x)
{
    const struct lease *l = lease_by_id(x->judge->leases, &x->stub.lease);
    struct digest meaning;
    return l != NULL && lease_lives(x->judge->leases, l, x->judge->ports.wall(x->judge->ports.arg)) &&
           span_eq(l->sandbox, x->sandbox->name) && l->generation == x->sandbox->generation &&
           identity_of_credential(x->now.image->policy, x->stub.credential, &meaning) == 0 &&
           memcmp(&meaning, &l->meaning, sizeof(meaning)) == 0;
}

void stub_settle(struct exchange *x)
{
    if (x->stub.asks) {
        x->sandbox->account->stub_asks = false;
        x->judge->stub_turn = true;
    }
    x->stub.asks = false;
}

/* The first that waits for its turn, of a sandbox whose turn it is. */
static struct exchange *next_turn(struct judge *j)
{
    struct exchange *first = NULL;
    for (size_t i = 0; i < XID_BUCKETS; i++)
        for (struct exchange *x = j->by_xid[i]; x != NULL; x = x->next_xid)
            if (x->wait == X_STUB_TURN && !x->broken && !x->sandbox->account->stub_asks &&
                (first == NULL || x->xid < first->xid))
                first = x;
    return first;
}

bool stub_turns(struct judge *j)
{
    struct exchange *x;
    bool due = j->stub_turn, any = false;
    j->stub_turn = false;
    while (due && (x = next_turn(j)) != NULL) {
        exchange_resume(j, x->xid);
        any = true;
    }
    return any;
}

static void take(struct exchange *x, struct span text, struct span secret, uint64_t expires_ms)
{
    x->stub.text = arena_copy(&x->arena, text);
    x->stub.secret = arena_copy(&x->arena, secret);
    x->stub.expires_ms = expires_ms;
    if (x->stub.secret.n != secret.n)
        x->stub.text = SPAN_NONE;
}

int stub_given(struct judge *j, uint64_t xid, struct span payload)
{
    struct msg_in m = msg_in(payload);
    struct exchange *x = exchange_find(j, xid);
    struct id id;
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);
    msg_get_id(&m, &id);
    uint64_t expires_ms = msg_get_u64(&m);
    struct span text = msg_get_span(&m, LEASE_TEXT_MAX), secret = msg_get_span(&m, LEASE_TEXT_MAX);
    if (msg_end(&m) != 0)
        return -1;
    if (x == NULL || x->wait != X_STUB)
        return 0;
    stub_settle(x);
    if (!ok)
        log_exchange(LOG_WARN, xid, "no lease for a stub: %.*s", SPAN_FMT(why));
    if (ok) {
        x->stub.lease = id;
        take(x, text, secret, expires_ms);
    }
    if (x->client != CLIENT_WAITS)
        exchange_end(x, "the client is gone");
    else if (x->stub.text.n == 0)
        refuse_now(x, REFUSE_STUB_NONE);
    else
        exchange_resume(j, xid);
    return 0;
}

void stub_lease_told(struct judge *j, const struct wire_lease *w)
{
    bool stub = span_eq(w->by, LEASE_STUB_BY), over = w->state == LEASE_LEAKED;
    struct sandbox *s;
    if (stub && w->state != LEASE_LIVE)
        over |= w->state != LEASE_EXPIRED || w->nlayers > 0;
    if (over && (s = sandbox_find(j, w->sandbox)) != NULL && s->generation == w->generation &&
        span_eq(s->session, w->session))
        s->stubs_over = true;
}

/* ---- the answer ---- */

struct span stub_field(const struct exchange *x, struct span name)
{
    struct span value = SPAN_NONE;
    size_t n = 0;
    for (size_t i = 0; i < x->request.nfields; i++)
        if (span_ieq(x->request.field[i].name, name)) {
            value = x->request.field[i].value;
            n++;
        }
    return n == 1 ? value : SPAN_NONE;
}

bool stub_is_get(const struct exchange *x)
{
    return span_eq(x->request.method, SPAN("GET")) || span_eq(x->request.method, SPAN("HEAD"));
}

uint64_t stub_seconds(const struct exchange *x)
{
    uint64_t now = x->judge->ports.wall(x->judge->ports.arg);
    return x->stub.expires_ms > now ? (x->stub.expires_ms - now) / 1000 : 0;
}

int stub_say(struct stub_says *s, const char *type, struct span body)
{
    s->reply.body = arena_copy(&s->x->arena, body);
    dialect_field(&s->reply.head, SPAN("Content-Type"), span_str(type));
    dialect_field(&s->reply.head, SPAN("Cache-Control"), SPAN("no-store"));
    return s->reply.body.n == body.n ? 0 : -1;
}

/* What a program in the sandbox was made to pass on for somebody else is refused, as by the services. */
static enum walk_next said(struct exchange *x, struct stub_says *s)
{
    enum refuse_why why = x->forwarded ? REFUSE_STUB_FORWARDED : kinds[x->stub.kind](s);
    if (why != REFUSE_COUNT)
        return refuse(x, why);
    if (s->wants_lease && x->stub.text.n == 0)
        return ask(x, &s->credential);
    if (s->wants_lease && !is_good(x))
        return refuse(x, REFUSE_STUB_NONE);
    reply_own(x, &s->reply);
    return WALK_REPLY;
}

enum walk_next stub_answer(struct exchange *x)
{
    struct stub_says s = {
        .x = x, .reply = {.head = {.status = 200, .reason = SPAN("OK")}, .close = x->upload >= UPLOAD_TO_COME}};
    return policy_credential(x->now.image->policy, x->stub.credential, &s.credential) ? said(x, &s)
                                                                                      : refuse(x, REFUSE_INTERNAL);
}
