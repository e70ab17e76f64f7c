/* After the upgrade: every message is asked about, nothing is passed on that the rule does not let through. */
#include "proxy/judge/exchange/websocket.h"

#include <stdio.h>

#include "common/log.h"
#include "proxy/identity.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/leases/check.h"

enum {
    WORDS_MAX = 123,           /* of a close frame */
    CONTROL_MAX = 1024 * 1024, /* bytes of ping and pong, each counted with its header */
};

int websocket_offer(struct exchange *x)
{
    struct wire_request *r = &x->request;
    const struct span name = SPAN("Sec-WebSocket-Protocol");
    size_t kept = 0, there = 0;
    struct span one = SPAN_NONE;
    if (!x->now.d.upgrade || x->judge->config.shadow)
        return 0;
    for (size_t i = 0; i < r->nfields; i++)
        if (span_ieq(r->field[i].name, name)) {
            one = r->field[i].value;
            there++;
        }
    if (there == 0 || (there == 1 && span_eq(one, x->now.d.subprotocols)))
        return 0;
    one = arena_copy(&x->arena, x->now.d.subprotocols);
    if (one.n != x->now.d.subprotocols.n)
        return -1;
    for (size_t i = 0; i < r->nfields; i++)
        if (!span_ieq(r->field[i].name, name))
            r->field[kept++] = r->field[i];
    if (one.n)
        r->field[kept++] = (struct http_field){name, one}; /* in the place of one that was there */
    r->nfields = kept;
    return 0;
}

/* "64 KiB": whole ones only, so that nothing is rounded in a sentence somebody approves. */
static int size_words(char *out, size_t max, uint64_t n)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB"};
    unsigned u = 0;
    for (; u < 3 && n >= 1024 && n % 1024 == 0; u++)
        n /= 1024;
    return snprintf(out, max, "%llu %s", (unsigned long long)n, unit[u]);
}

struct span websocket_words(struct exchange *x)
{
    static const char *const kinds[] = {"nothing", "text", "binary data", "text and binary data"};
    const struct ws_terms *t = &x->now.d.messages;
    char text[300], one[32], all[32];
    if (t->send == 0)
        return SPAN("Once it is open, the agent may send nothing over it, only read.");
    (void)size_words(one, sizeof(one), t->max);
    (void)size_words(all, sizeof(all), t->total);
    int n =
        snprintf(text, sizeof(text),
                 "Once it is open, the agent may send %s over it without asking again: messages of up to %s, %s in "
                 "all, for %llu s.",
                 kinds[t->send & 3], one, all, (unsigned long long)(t->within_ms / 1000));
    return arena_copy(&x->arena, span_of(text, n > 0 && (size_t)n < sizeof(text) ? (size_t)n : 0));
}

void websocket_begin(struct exchange *x)
{
    if (x->now.d.upgrade)
        exchange_websocket(x, WEBSOCKET_ON);
    x->socket.credit = BODY_WINDOW;
    x->socket.since = x->judge->ports.now(x->judge->ports.arg);
}

/* By its rule; 1: it is over. */
static uint64_t rule_left(const struct exchange *x)
{
    const struct ws_terms *t = &x->now.d.messages;
    uint64_t past = x->judge->ports.now(x->judge->ports.arg) - x->socket.since;
    if (x->websocket != WEBSOCKET_ON || t->send == 0 || x->judge->config.shadow)
        return 0;
    return past < t->within_ms ? t->within_ms - past : 1;
}

uint64_t websocket_left(const struct exchange *x)
{
    uint64_t rule = rule_left(x), lease = lease_left(x);
    return rule == 0 || (lease != 0 && lease < rule) ? lease : rule;
}

/* End it: the client is told code and words. why: for the record. */
static void end(struct exchange *x, uint16_t code, const char *why, const char *words)
{
    if (x->websocket != WEBSOCKET_ON || x->delivery >= DELIVERY_FINISHED)
        return;
    exchange_websocket(x, WEBSOCKET_ENDING);
    x->socket.code = why;
    log_exchange(LOG_INFO, x->xid, "the WebSocket is closed with %u: %s", code, why);
    struct dynbuf *b = post_begin(x->judge, ROLE_CARRIER, 0, M_WS_CLOSE, x->xid);
    msg_put_u16(b, code);
    msg_put_span(b, span_first(span_str(words), WORDS_MAX));
    post_send(x->judge, "could not be ended at the carrier");
}

/* A message that is not passed on ends the connection, and is a record of its own. */
static void refuse_message(struct exchange *x, uint16_t code, const char *why, const char *words)
{
    char text[WORDS_MAX + 1];
    struct span say = x->now.d.say.n ? x->now.d.say : span_str(words);
    snprintf(text, sizeof(text), "countersign: %.*s", SPAN_FMT(span_first(say, WORDS_MAX - 13)));
    record_message(x, why);
    end(x, code, why, text);
}

/* NULL: it may be sent. */
static const char *not_allowed(const struct exchange *x, enum ws_op op, size_t n, uint16_t *code, const char **words)
{
    const struct ws_terms *t = &x->now.d.messages;
    *code = WS_POLICY;
    if ((t->send & (op == WS_TEXT ? WS_SENDS_TEXT : WS_SENDS_BINARY)) == 0) {
        *words = t->send == 0    ? "not sent: the policy lets nothing be sent on this WebSocket"
                 : op == WS_TEXT ? "not sent: the policy lets no text messages be sent here"
                                 : "not sent: the policy lets no binary messages be sent here";
        return "message-not-allowed";
    }
    if (n > t->max) {
        *code = WS_TOO_BIG;
        *words = "not sent: the message is larger than the policy lets it be";
        return "message-too-large";
    }
    if (x->socket.bytes > t->total || n > t->total - x->socket.bytes) {
        *words = "not sent: all that the policy lets be sent on one WebSocket was sent";
        return "messages-spent";
    }
    return NULL;
}

static bool may_pass(struct exchange *x, enum ws_op op, size_t n)
{
    const char *words = NULL, *why = NULL;
    uint16_t code = WS_POLICY;
    if (op != WS_TEXT && op != WS_BINARY) {
        x->socket.control += n + WS_COST;
        if (x->socket.control > CONTROL_MAX) {
            why = "pings-spent";
            words = "more pings than a connection needs";
        }
    } else if (!x->judge->config.shadow) {
        why = not_allowed(x, op, n, &code, &words);
    }
    if (why == NULL)
        return true;
    refuse_message(x, code, why, words);
    return false;
}

static const char *malformed(uint16_t code)
{
    return code == WS_TOO_BIG ? "message-too-large" : code == WS_NOT_UTF8 ? "message-not-utf8" : "message-malformed";
}

int websocket_message(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct socket_state *s = &x->socket;
    uint8_t op = msg_get_u8(&m);
    uint16_t code = msg_get_u16(&m);
    size_t n = m.rest.n;
    bool data = op == WS_TEXT || op == WS_BINARY;
    if (x->client == CLIENT_ANSWERED)
        return 0;
    if (x->websocket == WEBSOCKET_NONE || x->wait != X_RESULT || m.bad || n > WS_MESSAGE_MAX || s->credit <= 0 ||
        !(data || op == WS_NONE || op == WS_CLOSE || op == WS_PING || op == WS_PONG))
        return -1;
    s->credit -= (int64_t)n + WS_COST;
    if (x->websocket == WEBSOCKET_ENDING)
        return 0;
    if (op == WS_NONE) { /* the front has told the client why */
        record_message(x, malformed(code));
        end(x, WS_GOING, malformed(code), "");
        return 0;
    }
    if (!may_pass(x, (enum ws_op)op, n))
        return 0;
    if (data && !lease_may_pass(x, m.rest)) {
        record_message(x, "lease-misplaced");
        end(x, WS_POLICY, "lease-misplaced", "countersign: a lease may not stand in a message");
        return 0;
    }
    if (data) {
        s->bytes += n;
        s->messages_out++;
    }
    dynbuf_add(post_begin(x->judge, ROLE_CARRIER, 0, M_MESSAGE, x->xid), f->payload);
    post_send(x->judge, "a message could not be passed on");
    return 0;
}

int websocket_frame(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct socket_state *s = &x->socket;
    if (x->websocket == WEBSOCKET_NONE || x->delivery >= DELIVERY_FINISHED)
        return -1;
    if (f->type == M_WS_ENDED) {
        s->messages_out = msg_get_u64(&m);
        s->messages_in = msg_get_u64(&m);
        s->closed = msg_get_u16(&m);
        return msg_end(&m);
    }
    if (x->delivery == DELIVERY_SWITCHED || msg_end(&m) != 0)
        return -1;
    exchange_delivery(x, DELIVERY_SWITCHED);
    x->outcome = OUTCOME_ANSWERED;
    x->status = 101;
    record_outcome(x);
    return 0;
}

bool websocket_spent(struct exchange *x, const char *code)
{
    if (x->websocket == WEBSOCKET_NONE || x->delivery != DELIVERY_SWITCHED)
        return false;
    end(x, WS_POLICY, code, "countersign: the egress of this sandbox is used up, or cannot be counted now");
    return true;
}

void websocket_tick(struct exchange *x)
{
    if (x->websocket == WEBSOCKET_ON && rule_left(x) == 1)
        end(x, WS_POLICY, "websocket-time", "countersign: the time the policy gives this WebSocket is over");
    exchange_wait(x, X_RESULT, websocket_left(x));
}

/* Not only the name of it. */
static bool same_credential(const struct evaluation *a, const struct evaluation *b)
{
    struct digest x, y;
    if (a->d.credential < 0 || b->d.credential < 0)
        return a->d.credential < 0 && b->d.credential < 0;
    return identity_of_credential(a->image->policy, (size_t)a->d.credential, &x) == 0 &&
           identity_of_credential(b->image->policy, (size_t)b->d.credential, &y) == 0 &&
           memcmp(&x, &y, sizeof(x)) == 0;
}

/* By the policy of now: allowed, or held and this one was approved; with the key it was opened with. */
static bool still(struct exchange *x)
{
    struct evaluation v;
    if (x->now.image == x->judge->image || x->judge->config.shadow)
        return true;
    if (x->judge->image == NULL)
        return false;
    exchange_evaluate(x, &v);
    bool same = (v.d.verdict == VERDICT_ALLOW || (v.d.verdict == VERDICT_HOLD && x->claim >= CLAIM_ASKED)) &&
                !v.d.need_body && same_credential(&v, &x->now);
    if (same) {
        evaluation_drop(&x->now);
        x->now = v;
    } else {
        evaluation_drop(&v);
    }
    return same;
}

void websocket_again(struct exchange *x)
{
    if (x->websocket != WEBSOCKET_ON || x->wait != X_RESULT)
        return;
    if (x->judge->ending)
        end(x, WS_GOING, "gateway-ending", "countersign: the gateway is being stopped");
    else if (!exchange_session_lives(x))
        end(x, WS_POLICY, "unknown-sandbox", "countersign: this sandbox is no longer known");
    else if (x->judge->frozen && x->now.d.effect != EFFECT_READ) /* not only not known to be thawed */
        end(x, WS_POLICY, "frozen", "countersign: an operator has frozen all writes");
    else if (x->sandbox->frozen && x->now.d.effect != EFFECT_READ)
        end(x, WS_POLICY, "frozen", "countersign: the writes of this sandbox are frozen");
    else if (!still(x))
        end(x, WS_POLICY, "policy-changed", "countersign: the policy no longer lets this WebSocket stay open");
    else if (lease_still(x) != REFUSE_COUNT) /* by the decision of now */
        end(x, WS_POLICY, "lease-ended", "countersign: the lease it was opened with has ended");
    else
        exchange_wait(x, X_RESULT, websocket_left(x));
}
