#include "common/sign/claim.h"
#include "proxy/judge/evaluation/signing.h"
#include "proxy/judge/replies/refuse.h"

#include <stdio.h>

#include "policy/manifest.h"
#include "policy/near_change.h"
#include "policy/next_change.h"
#include "proxy/judge/evaluation/rate_limit.h"
#include "proxy/judge/leases/swap.h"

enum { BARE_MAX = 16 * 1024, ALLOWED_MAX = 4, WAIT_BY_ITSELF = 60 };
/* The status of what was carried out, or may have been: SDKs, and curl with --retry, send again by themselves what
 * got a 5xx. */
enum { CARRIED_OUT = 409 };

struct row {
    unsigned status;
    const char *code, *decision, *title, *detail, *next;
    bool retry;
    unsigned retry_after;
};

#define REPEAT    "Repeat the same request, unchanged."
#define NEW_LEASE "Ask the operator for a lease: countersign lease issue, or run --with."
#define CHECK     "Check at the upstream whether it happened before you send it again."

static const struct row rows[REFUSE_COUNT] = {
    [REFUSE_INTERNAL] = {503, "internal", "error", "The gateway failed; nothing was sent",
                         "The gateway could not go on with this request. Nothing was sent.", REPEAT, true, 5},
    [REFUSE_DENIED] = {403, "denied", "deny", "Denied by policy", "This request is not allowed by the policy.",
                       "Do not repeat it unchanged: the answer will be the same.", false, 0},
    [REFUSE_UNCLASSIFIED] = {403, "unclassified", "deny", "Denied: the request could not be understood",
                             "The policy needs to understand this request to decide it, and could not.",
                             "Send it in the usual form of this API: no unusual encodings, a complete body.", false,
                             0},
    [REFUSE_OVER_LIMIT] = {403, "over-limit", "deny", "Over its limit",
                           "This request is past what the policy allows in a given time. Nothing was sent.",
                           "Ask for less, or wait until some of what was used no longer counts.", false, 0},
    [REFUSE_EGRESS] = {403, "egress-limit", "deny", "Over the limit of egress",
                       "This sandbox has used all the egress that it may have. Nothing was sent.",
                       "Do not repeat it: tell whoever started this sandbox that its egress is used up, so that they "
                       "start one that may have more.",
                       false, 0},
    [REFUSE_REACH] =
        {403, "network-denied", "deny", "This sandbox may not reach that host",
         "Whoever created this sandbox said what it may reach, and this is none of that. Nothing was sent.",
         "Do not repeat it: ask whoever created the sandbox for one that may reach it.", false, 0},
    [REFUSE_UNKNOWN_SANDBOX] = {403, "unknown-sandbox", "deny", "This sandbox is not known (any more)",
                                "The gateway does not know this sandbox, or its session has ended.",
                                "Ask whoever runs the sandbox to register it again.", false, 0},
    [REFUSE_NO_POLICY] = {503, "policy-unavailable", "error", "No policy is loaded yet",
                          "The gateway has no policy to decide by. Nothing was sent.", REPEAT, true, 5},
    [REFUSE_STORE] = {503, "store-unavailable", "error", "The record cannot be written; nothing was sent",
                      "The gateway cannot write its record now, so it sends nothing.",
                      "Repeat the same request in a few seconds.", true, 5},
    [REFUSE_TOO_MANY] = {429, "too-many-requests", "error", "Too many requests at once",
                         "This sandbox has too many requests open at the gateway.",
                         "Wait for some of them, then repeat this one.", true, 5},
    [REFUSE_BODY_TOO_LARGE] =
        {413, "body-too-large", "deny", "The body is too large to be decided on",
         "This request must be read whole before it is decided, and its body is over the limit.",
         "Send it in smaller pieces.", false, 0},
    [REFUSE_BODY_BAD] = {400, "bad-body", "deny", "The body was cut short or malformed",
                         "The body did not arrive as it was announced. Nothing was sent.", "Send it again, complete.",
                         true, 0},
    [REFUSE_BODIES] = {429, "too-many-bytes", "error", "Too many bytes wait for a decision",
                       "The bodies of this sandbox's open requests are over the limit together.",
                       "Wait until some of them are decided, then repeat this one.", true, 10},
    [REFUSE_HELD] = {403, "held", "hold", "Held for approval",
                     "A person must approve this request before it is sent. Nothing was sent yet.",
                     "Repeat the same request, unchanged: it joins this ticket, and is sent once it is approved.",
                     true, 0},
    [REFUSE_ACCEPTED] =
        {202, "held", "hold", "Accepted: it is sent once a person approves it",
         "A person must approve this request; then the gateway sends it, once, whether anybody waits or "
         "not. Nothing was sent yet.",
         "Ask for status_url until its state is done; what was answered is at status_url/answer then, "
         "for 10 minutes.",
         false, 5},
    [REFUSE_TICKET_DENIED] = {403, "ticket-denied", "deny", "Denied by an operator",
                              "A person has refused this request. Nothing was sent.", "Do not repeat it unchanged.",
                              false, 0},
    [REFUSE_TICKET_EXPIRED] = {403, "ticket-expired", "deny", "Nobody decided in time",
                               "The ticket expired before anybody decided. Nothing was sent.",
                               "Repeat the same request to ask again.", true, 0},
    [REFUSE_TICKET_CANCELLED] = {403, "ticket-cancelled", "deny", "The ticket was cancelled",
                                 "The ticket of this request was cancelled. Nothing was sent.",
                                 "Repeat the same request to ask again, if it is still wanted.", true, 0},
    [REFUSE_EXECUTING] = {409, "executing", "hold", "Approved, and being carried out for an earlier connection",
                          "This request was approved and is being carried out; the connection that asked first gets "
                          "the answer.",
                          "If that connection is gone, repeat the same request in a few seconds to get the answer.",
                          true, 5},
    [REFUSE_EXECUTED] = {CARRIED_OUT, "executed", "hold", "This request was carried out already",
                         "This request was approved and carried out. Its answer was given to the connection that "
                         "asked first, or was too large to keep.",
                         "Look at the upstream for its effect; do not send it again unless you want it twice.", false,
                         0},
    [REFUSE_NOT_SENT] = {502, "not-sent", "error", "Approved, but it could not be sent",
                         "This request was approved but could not be sent: it had no effect.",
                         "Repeat the same request to ask again.", true, 0},
    [REFUSE_OUTCOME_UNKNOWN] = {CARRIED_OUT, "outcome-unknown", "error",
                                "It may have been sent; whether it took effect is unknown",
                                "This request was lost from sight when it may have been sent: nobody here knows "
                                "whether it took effect.",
                                CHECK, false, 0},
    [REFUSE_PENDING_FULL] = {429, "too-many-pending", "error", "Too many requests wait for approval",
                             "This sandbox has as many held requests as it may have.",
                             "Wait until some are decided, then repeat this one.", true, 30},
    [REFUSE_POLICY_CHANGED] = {403, "policy-changed", "deny", "The policy would not hold this any more",
                               "By the policy as it is now, this request would not be held like this, so its ticket "
                               "no longer counts. Nothing was sent.",
                               "Repeat the same request: it is decided anew.", true, 0},
    [REFUSE_CREDENTIAL] = {502, "credential-unavailable", "error", "The credential for this is not available",
                           "This request needs a credential that the gateway could not get. Nothing was sent.",
                           "Ask the operator to check that credential, then repeat the same request.", true, 0},
    [REFUSE_SLOT] = {400, "no-slot", "deny", "There is no place for the credential in this request",
                     "This request needs a credential in a place that it does not have, or that some servers would "
                     "see elsewhere. Nothing was sent.",
                     "Send it in the usual form of this API, with any text in the place of the credential.", false,
                     0},
    [REFUSE_LEASE_REQUIRED] = {403, "lease-required", "deny", "A lease is required",
                               "The credential for this is only given to a request that brings a lease of it, and "
                               "this one brings none. Nothing was sent.",
                               NEW_LEASE, false, 0},
    [REFUSE_LEASE_UNKNOWN] =
        {403, "lease-unknown", "deny", "This lease is not known",
         "What stands in place of the credential looks like a lease of this gateway, and is none "
         "that it knows. Nothing was sent.",
         NEW_LEASE, false, 0},
    [REFUSE_LEASE_ENDED] = {403, "lease-ended", "deny", "This lease has ended",
                            "The lease that this request brings has expired or was revoked, or its credential is "
                            "another one now.",
                            NEW_LEASE, false, 0},
    [REFUSE_LEASE_BOUNDS] = {403, "lease-not-for-this", "deny", "This lease is not for this request",
                             "The lease that this request brings is good for other hosts, methods, paths or "
                             "operations. Nothing was sent.",
                             "Use the lease that is for this, or ask the operator for one.", false, 0},
    [REFUSE_LEASE_UNPROVEN] = {403, "lease-unproven", "deny", "This request is not signed with the lease's key",
                               "This request names a lease and is not signed with its key. Nothing was sent.",
                               "Sign it with both halves of the lease, by a clock that is right, and change nothing "
                               "of it afterwards.",
                               false, 0},
    [REFUSE_LEASE_MISPLACED] = {403, "lease-misplaced", "deny", "A lease stands where none may",
                                "A lease may stand only where its credential will be put, once; this request has one "
                                "elsewhere, or more than one.",
                                "Send the lease where this API takes its credential, and nowhere else.", false, 0},
    [REFUSE_LEASE_LEAKED] =
        {403, "lease-leaked", "deny", "This lease is another sandbox's, or for another place",
         "A lease was used by another sandbox, or for another place, than it was given to. It and "
         "those given with it were revoked.",
         NEW_LEASE, false, 0},
    [REFUSE_LEASE_USED_UP] = {403, "lease-used-up", "deny", "This lease is used up for now",
                              "The lease that this request brings is good for so many requests, and has no room for "
                              "this one. Nothing was sent.",
                              "Wait, if it counts by the minute; or ask the operator for another lease.", false, 0},
    [REFUSE_STUB_TOKEN] =
        {401, "stub-token", "deny", "No session token",
         "The gateway answers here as the metadata of AWS does, which says nothing without a session token.",
         "Of an instance, PUT /latest/api/token first and send what it says as X-aws-ec2-metadata-token; of a "
         "container, set AWS_CONTAINER_AUTHORIZATION_TOKEN.",
         false, 0},
    [REFUSE_STUB_FLAVOR] = {403, "stub-header", "deny", "Metadata-Flavor is missing",
                            "The gateway answers here as the metadata server of Google does, which takes only "
                            "requests that have Metadata-Flavor: Google.",
                            "Send it with that field.", false, 0},
    [REFUSE_STUB_FORWARDED] = {403, "stub-forwarded", "deny", "A forwarded request",
                               "This request says that it is somebody else's, passed on (X-Forwarded-For), and the "
                               "services that the gateway stands for here refuse those.",
                               "Ask from the program itself, without that field.", false, 0},
    [REFUSE_STUB_METHOD] = {405, "bad-method", "deny", "Not with this method",
                            "The service that the gateway stands for here is asked with another method.",
                            "Use an SDK, or the method that its documentation says.", false, 0},
    [REFUSE_STUB_BAD] = {400, "stub-bad-request", "deny", "Not as this service is asked",
                         "X-aws-ec2-metadata-token-ttl-seconds has to be there, from 1 to 21600.",
                         "Send it with that field.", false, 0},
    [REFUSE_STUB_NOT_HERE] = {404, "not-found", "deny", "There is no such thing here",
                              "The gateway answers here as a service that gives credentials, with leases, and has "
                              "nothing else of it.",
                              "Say in the program's configuration what it looks for here.", false, 0},
    [REFUSE_STUB_NONE] = {503, "lease-unavailable", "error", "No lease can be given now",
                          "The gateway answers here with a lease, and could not get one.",
                          "Repeat the same request in a few seconds.", true, 5},
    [REFUSE_STUB_OVER] = {403, "lease-ended", "deny", "No other lease is given here",
                          "A lease of this sandbox was revoked or narrowed by a person, or has leaked, and is not "
                          "replaced without one.",
                          NEW_LEASE, false, 0},
    [REFUSE_SIGN] = {400, "cannot-sign", "deny", "The gateway cannot sign this request",
                     "It has to be signed anew outside the sandbox, and cannot be. Nothing was sent.",
                     "Change what is named here. For AWS and Tencent Cloud: sign it in the Authorization field, with "
                     "any key, and "
                     "send the body with its SHA-256, unsigned or in signed chunks.",
                     false, 0},
    [REFUSE_CARRIER] = {503, "gateway-restarting", "error", "The gateway is restarting a part of itself",
                        "The part of the gateway that sends requests is being restarted. Nothing was sent.",
                        "Repeat the same request in a few seconds.", true, 5},
    [REFUSE_ENDING] = {503, "gateway-ending", "error", "The gateway is being stopped; nothing was sent",
                       "The gateway is being stopped. Nothing was sent; a ticket that waits is kept.",
                       "Repeat the same request, unchanged, when it runs again.", true, 30},
    [REFUSE_FROZEN] = {403, "frozen", "deny", "Writes are frozen",
                       "An operator has frozen all writes. Nothing was sent; reads go on.",
                       "Wait until the operator thaws them, then repeat the same request.", true, 0},
    [REFUSE_SANDBOX_FROZEN] = {403, "frozen", "deny", "Writes of this sandbox are frozen",
                               "A lease was used elsewhere than it was given to, and this sandbox has to do with it. "
                               "Nothing was sent; reads go on.",
                               "Wait until an operator has looked into it and thaws writes.", false, 0},
    [REFUSE_UPSTREAM] = {502, "upstream-failed", "error", "The upstream gave no usable answer",
                         "The request was allowed, but the upstream could not be reached or gave no usable answer.",
                         "Try again later.", true, 0},
    [REFUSE_UPSTREAM_SLOW] = {504, "upstream-timeout", "error", "The upstream did not answer in time",
                              "The request was allowed, but the upstream did not answer in time.", "Try again later.",
                              true, 0},
    [REFUSE_ANSWER] = {502, "answer-refused", "error", "The upstream's answer was refused",
                       "The upstream answered, but its answer could not be passed on safely.",
                       "Do not repeat a request that has an effect: it was carried out.", false, 0},
    [REFUSE_RANGE] =
        {416, "range-refused", "error", "Only a single range of bytes",
         "Of an answer beside a credential only one range of bytes can be had (bytes=0-99, bytes=100- or "
         "bytes=-100), and If-Range only with a strong validator. Nothing was sent.",
         "Ask for one range at a time, or for all of it.", false, 0},
    [REFUSE_PART] = {502, "part-encoded", "error", "A part of an encoded answer",
                     "The upstream answered with a part of an encoded (compressed) answer, which cannot be searched "
                     "for credentials.",
                     "Ask for all of it, without a Range.", false, 0},
    [REFUSE_LEAF] = {503, "tls-refused", "error", "No certificate for this host now",
                     "The gateway could not make a certificate for this host.", "Try again in a few seconds.", true,
                     5},
    [REFUSE_LEAF_BUDGET] = {403, "denied", "deny", "Denied by policy",
                            "No rule of this sandbox's policy names this host with this port and scheme.",
                            "Do not try other hosts: only those "
                            "named by the policy can be reached.",
                            false, 0},
    [REFUSE_METHOD] = {405, "bad-method", "deny", "Only GET and HEAD here",
                       "http://countersign.internal/ only answers questions.", "Use GET.", false, 0},
    [REFUSE_NOT_HERE] =
        {404, "not-found", "deny", "There is no such thing here",
         "http://countersign.internal/ has /v1/whoami, /v1/manifest (also with ?host=NAME) and /v1/tickets/ID "
         "(also with /answer), for your own tickets.",
         "Use one of these.", false, 0},
    [REFUSE_NO_ANSWER] = {404, "no-answer", "deny", "There is no answer of this ticket here",
                          "What was answered is here from when the request was carried out, for 10 minutes, unless a "
                          "connection had it or it was too large to keep or cut short.",
                          "Ask for the ticket itself, without /answer: it says what became of it.", true, 5},
    [REFUSE_NO_FORM] = {400, "unknown-form", "deny", "The manifest is not written like that",
                        "/v1/manifest is JSON, or with ?as=typescript a module of TypeScript, or with ?as=openapi "
                        "OpenAPI 3.1.",
                        "Use one of these.", false, 0},
};

void refuse_words(enum refuse_why why, struct refusal *r)
{
    const struct row *w = &rows[(unsigned)why < REFUSE_COUNT ? why : REFUSE_INTERNAL];
    *r = (struct refusal){.status = w->status,
                          .code = w->code,
                          .decision = w->decision,
                          .title = span_str(w->title),
                          .detail = span_str(w->detail),
                          .next = span_str(w->next),
                          .retry = w->retry,
                          .retry_after = w->retry_after};
}

const char *refuse_bare(enum refuse_why why, struct arena *a, struct wire_reply *out)
{
    struct refusal r;
    refuse_words(why, &r);
    r.close = true;
    arena_init(a, BARE_MAX);
    dialect_reply(&(struct dialect_client){.said = DIALECT_PROBLEM}, &r, a, out);
    return r.code;
}

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
    struct subject who = {x->sandbox->name, x->sandbox->label, x->sandbox->nlabels};
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
    struct subject who = {x->sandbox->name, x->sandbox->label, x->sandbox->nlabels};
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
    struct subject who = {x->sandbox->name, x->sandbox->label, x->sandbox->nlabels};
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
        r->status = CARRIED_OUT;
        r->next = span_str(CHECK);
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
        r->status = CARRIED_OUT;
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
