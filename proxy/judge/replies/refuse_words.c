/* What each refusal says: one table, and the reply of one that stands for itself. */
#include "proxy/judge/replies/refuse.h"

enum { BARE_MAX = 16 * 1024 };

struct row {
    unsigned status;
    const char *code, *decision, *title, *detail, *next;
    bool retry;
    unsigned retry_after;
};

#define REPEAT    "Repeat the same request, unchanged."
#define NEW_LEASE "Ask the operator for a lease: countersign lease issue, or run --with."

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
    [REFUSE_EXECUTED] = {REFUSE_CARRIED_OUT, "executed", "hold", "This request was carried out already",
                         "This request was approved and carried out. Its answer was given to the connection that "
                         "asked first, or was too large to keep.",
                         "Look at the upstream for its effect; do not send it again unless you want it twice.", false,
                         0},
    [REFUSE_NOT_SENT] = {502, "not-sent", "error", "Approved, but it could not be sent",
                         "This request was approved but could not be sent: it had no effect.",
                         "Repeat the same request to ask again.", true, 0},
    [REFUSE_OUTCOME_UNKNOWN] = {REFUSE_CARRIED_OUT, "outcome-unknown", "error",
                                "It may have been sent; whether it took effect is unknown",
                                "This request was lost from sight when it may have been sent: nobody here knows "
                                "whether it took effect.",
                                REFUSE_CHECK, false, 0},
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
