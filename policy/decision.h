/* What the judge is asked and what it answers. Spans point into the image, the
 * request or the arena of the exchange; nothing here owns memory. The zero of
 * every answer is a denial. */
#ifndef POLICY_DECISION_H
#define POLICY_DECISION_H

#include "common/http/http.h"

enum verdict { VERDICT_DENY = 0, VERDICT_HOLD, VERDICT_ALLOW };
enum effect { EFFECT_UNKNOWN = 0, EFFECT_READ, EFFECT_WRITE, EFFECT_DELETE, EFFECT_ADMIN, EFFECT_SPEND, EFFECT_EXEC };
/* How a refusal must look so that this client shows it, with its word in a pack's `dialect:`. Where no pack says one,
 * it is the first of these that the request is like (proxy/judge/replies/dialect.c); the last is everybody else's. */
#define DIALECTS(X)                                                                                                  \
    X(GIT_INFO_REFS, "git-info-refs")                                                                                \
    X(GIT_RECEIVE_PACK, "git-receive-pack")                                                                          \
    X(NPM, "npm")                                                                                                    \
    X(PIP, "pip")                                                                                                    \
    X(GIT_LFS, "git-lfs")                                                                                            \
    X(S3, "s3")                                                                                                      \
    X(AWS_EC2, "aws-ec2")                                                                                            \
    X(AWS_QUERY, "aws-query")                                                                                        \
    X(AWS_JSON, "aws-json")                                                                                          \
    X(KUBERNETES_DISCOVERY, "kubernetes-discovery")                                                                  \
    X(KUBERNETES, "kubernetes")                                                                                      \
    X(OCI, "oci")                                                                                                    \
    X(STRIPE, "stripe")                                                                                              \
    X(SLACK, "slack")                                                                                                \
    X(ANTHROPIC, "anthropic")                                                                                        \
    X(OPENAI, "openai")                                                                                              \
    X(JSON_RPC, "json-rpc")                                                                                          \
    X(GRAPHQL, "graphql")                                                                                            \
    X(GITHUB, "github")                                                                                              \
    X(PROBLEM, "problem")
enum dialect {
    DIALECT_UNSAID = 0,
#define X(id, word) DIALECT_##id,
    DIALECTS(X)
#undef X
        DIALECT_COUNT
};

struct label {
    struct span key, value;
};

/* What a sandbox may send on a WebSocket once the upgrade was let through; the zero is nothing. What the server
 * sends, and ping, pong and close, are not asked about. */
enum ws_kinds { WS_SENDS_TEXT = 1, WS_SENDS_BINARY = 2 };
struct ws_terms {
    uint32_t send;       /* enum ws_kinds */
    uint64_t max, total; /* bytes of one message, and of all */
    uint64_t within_ms;  /* after the upgrade; then the connection is closed */
};

/* How far the yes to a hold may go beyond this one request: a grant, for others of the same shape. The zero is no
 * further. */
struct grant_terms {
    uint32_t uses;      /* at most */
    uint32_t effects;   /* of which requests: effect e is bit 1 << e */
    bool named;         /* only of operations that a pack names */
    uint64_t within_ms; /* and at most so long */
};

/* Whose yes a held request needs beside their right to it. */
enum { QUORUM_MOST = 8 };
enum {
    GATES_MAX = 8 /* of a policy */,
    GATE_WORDS_MAX = 32,
    GATE_TIMEOUT_MOST = 25 * 1000,
    GATE_TIMEOUT_USUAL = 10 * 1000,
    GATE_MODEL_MAX = 64,          /* bytes of a model's name, */
    GATE_INSTRUCTIONS_MAX = 4096, /* and of what it is told beside what it is shown */
};
enum { ESCALATE_MAX = 32 /* different steps of a policy */, ESCALATE_OF_RULE = 4 };
/* What a gate is. Each can deny, and none can approve. */
enum gate_kind { GATE_NOTHING = 0, GATE_PROGRAM, GATE_WEBHOOK, GATE_MODEL, GATE_KINDS };
/* How a model is spoken to. */
enum gate_api { GATE_API_NONE = 0, GATE_ANTHROPIC, GATE_CHAT, GATE_APIS };
/* What is asked before a person may approve: it gets the request and says allow, deny or abstain. */
struct gate {
    struct span name;
    uint64_t timeout_ms;
    size_t at, words; /* of a program: its full path, and its arguments */
    enum gate_kind kind;
    bool body;               /* it is shown the body, and not its size and hash alone */
    struct span url, secret; /* its address; of a webhook: the name of the stored secret that signs for it */
    struct span host;        /* whom that address is of */
    uint16_t port;
    enum gate_api api;        /* of a model: how it is spoken to, at url, */
    struct span model;        /* by what name, */
    struct span instructions; /* what it is told beside the usual, or empty, */
    int credential;           /* and with which credential; -1: none */
};
enum self_approval { SELF_NO = 0, SELF_OF_MACHINE /* of users of this machine, not of named people */, SELF_YES };
/* Of a push: is what it changes made ready for the page, and does a yes wait for it? */
enum diff_wish { DIFF_NO = 0, DIFF_OPTIONAL, DIFF_REQUIRED };
struct approval_terms {
    uint32_t quorum;   /* so many different people */
    uint32_t self;     /* enum self_approval: may it be who the sandbox belongs to */
    bool step_up;      /* each with a passkey, over this very request */
    uint32_t gates;    /* and each of these has been asked, and none denied it: gate i is bit 1 << i (policy_gate) */
    uint32_t diff;     /* enum diff_wish */
    uint32_t escalate; /* who may approve too once nobody has decided for a while: step i is bit 1 << i, and of holds
                          that name no approvers all are (policy_escalations) */
};

/* Who is asking. */
struct subject {
    struct span sandbox;
    const struct label *labels;
    size_t nlabels;
};

/* What is asked: canonical already (http_canonical_*). */
struct request {
    struct span scheme, host, method, path, query;
    uint16_t port;
    bool has_query;
    const struct http_field *fields; /* with an Upgrade among them it is a WebSocket upgrade */
    size_t nfields;
    bool fields_unknown; /* there may have been others: a recorded request. What asks for one is open, as of a body */
    bool has_body;       /* the request declares a body, even an empty one */
    bool body_complete;  /* body below is all of it */
    struct span body;
};

struct git_ref {
    struct span name, old_id, new_id; /* as in the ref commands, hex */
};
bool git_id_is_zero(struct span id); /* old of a ref that is made, new of one that is deleted */

struct git_push {
    const struct git_ref *refs;
    size_t nrefs;
    bool report_status, side_band; /* what the client can be told (its capabilities) */
    bool report_status_v2;
};

/* One fact for the page and the audit, in words the pack chose. */
struct fact {
    struct span label, value;
};

struct rule_ref { /* where a rule stands; all empty when no rule decided */
    struct span id, file;
    uint32_t line;
};

#define POLICY_OPEN "{any}"

struct decision {
    enum verdict verdict;
    bool need_body; /* not decided yet: read the whole body (at most body_max bytes), then call again */
    uint64_t body_max;
    const char *code; /* stable: "rule", "floor", "no-rule", "host-not-named", "unclassified", "residency" ... */
    struct rule_ref rule;
    struct span say;     /* the rule's own sentence, or empty */
    struct span instead; /* what is allowed instead, in words, or empty */
    struct span op, resource, pack;
    enum effect effect;
    enum dialect dialect;
    int credential;          /* index for policy_credential, -1 for none */
    struct span approve_by;  /* name of the approvers entry, or empty: any operator */
    uint64_t within_ms;      /* how long a ticket lives; 0: the configured default */
    uint64_t inline_wait_ms; /* UINT64_MAX: the configured default */
    bool reason_required;
    struct approval_terms approval;
    struct grant_terms grants;
    struct span open_path; /* where a pack names it by its head alone: its path, with POLICY_OPEN for each step that
                              neither the operation nor the resource says; else empty */
    struct ws_terms messages;
    bool upgrade;             /* a WebSocket upgrade ... */
    struct span subprotocols; /* ... and which of the subprotocols it offers may leave, as a list */
    struct span join_body;    /* the part of the body a retry must repeat exactly (git: the ref commands) */
    const struct git_push *push;
    struct span summary; /* "Push 1 ref to demo/app: refs/heads/main a1b2c3d -> d4e5f6a" */
    const struct fact *facts;
    size_t nfacts;
    uint32_t requests;  /* for so many it stands where requests are limited (body_requests); 0: nobody can tell ... */
    bool requests_more; /* ... or it is at least so many */
    const struct limit *limits; /* policy/limit.h: all must have room before it leaves */
    size_t nlimits;
};

const char *verdict_name(enum verdict v);
const char *effect_name(enum effect e);

#endif
