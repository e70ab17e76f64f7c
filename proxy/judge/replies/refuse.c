#include "common/sign/claim.h"
#include "proxy/judge/evaluation/signing.h"
#include "proxy/judge/replies/refuse.h"

#include <stdio.h>

#include "policy/manifest.h"
#include "policy/near_change.h"
#include "policy/next_change.h"
#include "proxy/judge/evaluation/rate_limit.h"
#include "proxy/judge/leases/swap.h"

enum { ALLOWED_MAX = 4, WAIT_BY_ITSELF = 60 };

static struct span format(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
static struct span format(struct arena *a, const char *fmt, ...)
{
    char text[8192];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0)
        return SPAN_NONE;
    return arena_copy(a, span_of(text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1));
}

/* METHOD URL, without the query: it may be long, and it may hold what should not be repeated. */
static struct span asked(struct exchange *x)
{
    const struct wire_request *q = &x->request;
    char port[8] = "";
    if (q->port != (span_eq(q->scheme, SPAN("https")) ? 443 : 80))
        (void)snprintf(port, sizeof(port), ":%u", q->port);
    return format(&x->arena, "%.*s %.*s://%.*s%s%.*s",
                  SPAN_FMT(x->now.d.upgrade ? SPAN("A WebSocket to") : q->method), SPAN_FMT(q->scheme),
                  SPAN_FMT(q->host), port, SPAN_FMT(span_first(q->path, 300)));
}

/* What this sandbox may ask there: nothing that its manifest does not say. */
static void add_allowed(struct exchange *x, struct refusal *r)
{
    const struct wire_request *q = &x->request;
    struct label own[SANDBOX_LABELS];
    struct subject who = sandbox_who(x->sandbox, x->lane, own);
    struct request at = {.scheme = q->scheme, .host = q->host, .port = q->port};
    struct span *v = arena_alloc(&x->arena, ALLOWED_MAX * sizeof(*v));
    if (v == NULL || x->now.image == NULL)
        return;
    r->nallowed = policy_allowed_here(x->now.image->policy, &who, &at, &x->arena, v, ALLOWED_MAX);
    r->allowed = v;
}

/* Another sentence after what is said. */
static void add_sentence(struct exchange *x, struct refusal *r, struct span more)
{
    struct span said = span_trim(r->detail);
    bool ended = said.n && span_index(SPAN(".!?"), said.p[said.n - 1]) < 3;
    r->detail = format(&x->arena, "%.*s%s %.*s", SPAN_FMT(said), ended ? "" : ".", SPAN_FMT(more));
}

/* Denied for the hours of a rule: then the same request is good later, and when that is can be said. */
static void add_hours(struct exchange *x, struct refusal *r)
{
    struct label own[SANDBOX_LABELS];
    struct subject who = sandbox_who(x->sandbox, x->lane, own);
    struct request q = exchange_asks(x);
    uint64_t now = x->judge->ports.wall(x->judge->ports.arg);
    struct next_change o;
    if (x->now.image == NULL || x->now.d.verdict != VERDICT_DENY ||
        !policy_next_change(x->now.image->policy, &who, &q, &x->now.d, x->now.at_ms, &x->now.facts, &o))
        return;
    const char *how = o.decision.need_body                 ? "may be allowed, depending on its body,"
                      : o.decision.verdict == VERDICT_HOLD ? "is held for approval"
                                                           : "is allowed";
    r->retry = true;
    r->retry_after = o.at_ms > now ? (unsigned)((o.at_ms - now + 999) / 1000) : 1;
    r->next = format(&x->arena, "Repeat the same request after %.*s.", SPAN_FMT(o.at));
    add_sentence(x, r,
                 format(&x->arena, "It %s %.*s%sfrom %.*s on.", how, SPAN_FMT(o.hours), o.hours.n ? ", next " : "",
                        SPAN_FMT(o.at)));
}

/* The smallest change that would let it through: nothing that its manifest does not say. */
static void add_near(struct exchange *x, struct refusal *r)
{
    struct request q = exchange_asks(x);
    if (x->sandbox == NULL || x->now.image == NULL)
        return;
    struct label own[SANDBOX_LABELS];
    struct subject who = sandbox_who(x->sandbox, x->lane, own);
    struct span near = policy_near_change(x->now.image->policy, &who, &q, &x->now.d, x->now.at_ms, &x->now.facts);
    if (near.n)
        add_sentence(x, r, near);
}

static void denied(struct exchange *x, struct refusal *r)
{
    const struct decision *d = &x->now.d;
    r->instead = d->instead;
    r->asked = asked(x);
    if (d->say.n) {
        r->title = dialect_one_line(d->say, 200, &x->arena);
        r->detail = d->say;
    } else {
        r->detail = format(&x->arena, "%.*s is not allowed by the policy.", SPAN_FMT(r->asked));
    }
    if (x->sandbox) {
        add_allowed(x, r);
        add_near(x, r);
        add_hours(x, r);
    }
    if (x->judge->config.disclose_rules)
        r->rule = d->rule.id;
}

/* What was not understood, in a word for programs and in words that say what to send instead. */
static void unclassified(struct exchange *x, struct refusal *r)
{
    const struct ambiguity *u = &x->now.ambiguity;
    r->asked = asked(x);
    if (u->told == NULL || u->told_words.n == 0)
        return;
    r->cause = span_str(u->told);
    r->detail = format(&x->arena, "The policy needs to understand this request to decide it, and could not: %.*s.",
                       SPAN_FMT(u->told_words));
}

/* A client may wait by itself for a minute; one that would wait for a day is to tell who uses it. */
static void over_limit(struct exchange *x, struct refusal *r)
{
    struct span say = span_trim(x->now.d.say), words = rate_limit_words(x);
    denied(x, r);
    r->retry_after = rate_limit_wait(x);
    r->retry = r->retry_after > 0;
    if (r->retry && r->retry_after <= WAIT_BY_ITSELF)
        r->status = 429;
    if (r->retry)
        r->next = format(&x->arena, "Repeat the same request after %.*s.",
                         SPAN_FMT(dialect_time(x->exceeded->room_ms + 999, &x->arena)));
    if (say.n == 0 && words.n)
        r->title = format(&x->arena, "Over its limit: %.*s", SPAN_FMT(words));
    r->detail = format(&x->arena, "%.*s is over its limit%s%.*s.%s%.*s", SPAN_FMT(r->asked), words.n ? ": " : "",
                       SPAN_FMT(words), say.n ? " " : "", SPAN_FMT(say));
}

enum { EGRESS_BUSY_S = 2 };

/* Of what was sent, or answered: what is missing is the answer, or the rest of it. */
static void egress_past(struct exchange *x, struct refusal *r)
{
    uint64_t until, now = x->judge->ports.wall(x->judge->ports.arg);
    struct span words = egress_words(x, &until);
    bool sent = x->outcome != OUTCOME_NOT_SENT && x->delivery >= DELIVERY_FORWARDED;
    r->asked = asked(x);
    if (words.n)
        r->title = format(&x->arena, "Over the limit of egress: %.*s", SPAN_FMT(words));
    r->detail = format(&x->arena, "%.*s is over the limit of egress%s%.*s. %s", SPAN_FMT(r->asked),
                       words.n ? ": " : "", SPAN_FMT(words),
                       !sent                            ? "Nothing was sent."
                       : x->outcome == OUTCOME_ANSWERED ? "It was sent, and its answer is too large to pass."
                                                        : "Some of it was sent.");
    if (exchange_in_doubt(x) && sent) {
        r->status = REFUSE_CARRIED_OUT;
        r->next = span_str(REFUSE_CHECK);
    } else if (x->egress.busy && !sent) {
        r->retry = true;
        r->retry_after = EGRESS_BUSY_S;
        r->status = 429;
        r->next = SPAN("Other requests hold what is left of it: repeat the same request in a moment.");
    } else if (until > now) {
        r->retry = true;
        r->retry_after = (unsigned)((until - now + 999) / 1000);
        r->status = r->retry_after <= WAIT_BY_ITSELF ? 429 : r->status;
        r->next =
            format(&x->arena, "Repeat the same request after %.*s.", SPAN_FMT(dialect_time(until + 999, &x->arena)));
    }
}

/* A person's words are the title too: for some clients it is all that is shown. */
static void decided(struct exchange *x, struct refusal *r)
{
    const char *what = x->ticket.state == TICKET_CANCELLED ? "Cancelled" : "Denied";
    struct span by = span_first(x->ticket.by, 100), words = span_trim(wire_ticket_told(&x->ticket));
    struct span until = dialect_time(x->ticket.expires_ms, &x->arena);
    if (by.n == 0 ||
        span_starts(by, SPAN("uid "))) /* a number of this machine tells nobody in a sandbox who it was */
        by = SPAN("an operator");
    if (x->ticket.state == TICKET_DENIED && until.n) {
        r->expires_ms = x->ticket.expires_ms;
        r->next =
            format(&x->arena, "Do not repeat it unchanged: until %.*s the answer is the same.", SPAN_FMT(until));
    }
    if (words.n == 0) {
        r->title = format(&x->arena, "%s by %.*s", what, SPAN_FMT(by));
        return;
    }
    r->title = format(&x->arena, "%s by %.*s: %.*s", what, SPAN_FMT(by), SPAN_FMT(span_first(words, 150)));
    r->detail = format(&x->arena, "%s by %.*s: %.*s", what, SPAN_FMT(by), SPAN_FMT(words));
}

/* By the sandbox, and so it leaves: what a retry is signed with is not what leaves. */
static bool signed_by_client(const struct exchange *x)
{
    struct sign_claim c;
    bool is = false;
    for (size_t i = 0; i < x->request.nfields; i++)
        is |= span_ieq(x->request.field[i].name, SPAN("authorization")) &&
              sign_claim_read(x->request.field[i].value, &c) == 0;
    return is;
}

static void held(struct exchange *x, struct refusal *r)
{
    struct span what = span_first(x->now.d.summary, 500), when = dialect_time(x->ticket.expires_ms, &x->arena);
    r->title = format(&x->arena, "Held for approval, ticket %.*s: repeat the same request", SPAN_FMT(r->ticket));
    r->detail = format(&x->arena, "%.*s%sa person must approve it before it is sent. Ticket %.*s, open until %.*s.%s",
                       SPAN_FMT(what), what.n ? ": " : "", SPAN_FMT(r->ticket), SPAN_FMT(when),
                       signed_by_client(x) ? " It leaves with the signature that it was first sent with, which is "
                                             "good for some minutes only."
                                           : "");
    add_near(x, r);
    r->expires_ms = x->ticket.expires_ms;
    if (!refuse_elicits(x))
        return;
    r->elicit = x->elicit.by;
    r->elicit_state = elicit_state(span_str(x->judge->config.desk_url), x->elicit.round, r->ticket, &x->arena);
    r->next = SPAN("Who may decide it does so on its page. To decline here takes the request back.");
}

static void accepted(struct exchange *x, struct refusal *r)
{
    struct span what = span_first(x->now.d.summary, 500), when = dialect_time(x->ticket.expires_ms, &x->arena);
    r->detail =
        format(&x->arena,
               "%.*s%sonce a person has approved it the gateway sends it, once, whether anybody waits or not. "
               "Nothing was sent yet. Ticket %.*s, open until %.*s.",
               SPAN_FMT(what), what.n ? ": " : "", SPAN_FMT(r->ticket), SPAN_FMT(when));
    r->expires_ms = x->ticket.expires_ms;
}

static void name_ticket(struct exchange *x, struct refusal *r)
{
    char id[ID_TEXT + 1];
    if (id_is_none(&x->ticket.ticket))
        return;
    id_text(&x->ticket.ticket, id);
    r->ticket = arena_copy(&x->arena, span_of(id, ID_TEXT));
    r->status_url = format(&x->arena, "http://countersign.internal/v1/tickets/%s", id);
    if (x->judge->config.desk_url[0])
        r->approval_url = format(&x->arena, "%s/tickets/%s", x->judge->config.desk_url, id);
}

/* Git with a credential helper, registry clients and the libraries of several languages ask without a credential
 * first, and bring it when a 401 asks for it: as Basic, which is taken for any credential of the Authorization field.
 * Not npm (which names its command, where no pack knows it) and pip: they send it at once where they have it, and
 * show words of their own for a 401. Who brought something else is told 403: what is wrong then is not that it was
 * not asked for. Of a token of an answer it is the policy that says whom to ask, also when one has ended. What the
 * policy denies anyway asks nobody to come again with another one. */
static void ask_for_lease(struct exchange *x, enum refuse_why why, struct refusal *r)
{
    struct credential c;
    enum dialect d = x->now.d.dialect;
    if (x->now.image == NULL || x->now.d.credential < 0 || x->now.d.verdict == VERDICT_DENY ||
        !policy_credential(x->now.image->policy, (size_t)x->now.d.credential, &c))
        return;
    struct span challenge = swap_challenge(x->now.image->policy, &c);
    if (challenge.n) {
        r->status = 401;
        r->challenge = challenge;
    }
    if (why != REFUSE_LEASE_REQUIRED || c.source == SOURCE_ANSWER || d == DIALECT_NPM || d == DIALECT_PIP ||
        c.slot != SLOT_HEADER || c.sign != SIGN_NONE || (c.header.n && !span_ieq(c.header, SPAN("authorization"))))
        return;
    for (size_t i = 0; i < x->request.nfields; i++)
        if (span_ieq(x->request.field[i].name, SPAN("authorization")) ||
            span_ieq(x->request.field[i].name, SPAN("npm-command")))
            return;
    r->status = 401;
    r->challenge = SPAN("Basic realm=\"a lease of countersign, as the password\"");
}

bool refuse_elicits(const struct exchange *x)
{
    return x->elicit.by != ELICIT_NO && x->rpc_id.n > 0 && x->judge->config.desk_url[0] != '\0';
}

enum refuse_why refuse_unknown(const struct judge *j)
{
    return j->told ? REFUSE_UNKNOWN_SANDBOX : REFUSE_STORE;
}

enum walk_next refuse(struct exchange *x, enum refuse_why why)
{
    struct refusal *r = &x->refusal;
    if (x->client == CLIENT_ANSWERED)
        return WALK_REPLY;
    /* A new ledger has not said yet whether writes are frozen: nobody's decision, and over in a moment. */
    if (why == REFUSE_FROZEN && !x->judge->frozen)
        why = x->sandbox && x->sandbox->frozen ? REFUSE_SANDBOX_FROZEN : REFUSE_STORE;
    if (why == REFUSE_UNKNOWN_SANDBOX)
        why = refuse_unknown(x->judge);
    refuse_words(why, r);
    name_ticket(x, r);
    if (why == REFUSE_DENIED)
        denied(x, r);
    else if (why == REFUSE_OVER_LIMIT)
        over_limit(x, r);
    else if (why == REFUSE_EGRESS)
        egress_past(x, r);
    else if (why == REFUSE_UNCLASSIFIED)
        unclassified(x, r);
    else if (why == REFUSE_TICKET_DENIED || why == REFUSE_TICKET_CANCELLED)
        decided(x, r);
    else if (why == REFUSE_HELD)
        held(x, r);
    else if (why == REFUSE_ACCEPTED)
        accepted(x, r);
    else if (why == REFUSE_LEASE_REQUIRED || why == REFUSE_LEASE_ENDED || why == REFUSE_LEASE_UNKNOWN)
        ask_for_lease(x, why, r);
    else if (why == REFUSE_CREDENTIAL && x->now.credential.n && x->judge->config.disclose_rules)
        r->detail = format(&x->arena,
                           "This request needs the credential \"%.*s\", which the gateway could not get. "
                           "Nothing was sent.",
                           SPAN_FMT(x->now.credential));
    else if (why == REFUSE_ANSWER && exchange_in_doubt(x))
        r->status = REFUSE_CARRIED_OUT;
    else if (why == REFUSE_LEASE_UNPROVEN && x->unproven != NULL)
        r->detail = format(&x->arena, "%sNothing was sent.", x->unproven);
    else if (why == REFUSE_SIGN && signing_refuses(x) != NULL)
        r->detail = format(&x->arena, "%sNothing was sent.", signing_refuses(x));
    else if (why == REFUSE_BODY_TOO_LARGE)
        r->detail = format(&x->arena,
                           "This request must be read whole before it is decided, and its body is over "
                           "%llu bytes.",
                           (unsigned long long)x->body_max);
    r->close = x->upload >= UPLOAD_TO_COME; /* what follows on the connection is a body nobody reads */
    return WALK_REPLY;
}

enum refuse_why refuse_why_of(const struct exchange *x)
{
    struct span code = span_str(x->now.d.code);
    if (span_eq(code, SPAN("over-limit")))
        return REFUSE_OVER_LIMIT;
    return span_eq(code, SPAN("unclassified")) && x->now.d.say.n == 0 ? REFUSE_UNCLASSIFIED : REFUSE_DENIED;
}

enum walk_next refuse_denial(struct exchange *x)
{
    return refuse(x, refuse_why_of(x));
}

enum walk_next refuse_step(struct exchange *x, enum walk_step s)
{
    bool store = s == WALK_RECORD_INTENT, credential = s == WALK_RELEASE;
    if (x->broken)
        return refuse(x, REFUSE_INTERNAL);
    return refuse(x, store ? REFUSE_STORE : credential ? REFUSE_CREDENTIAL : REFUSE_INTERNAL);
}
