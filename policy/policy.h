/* The decision: facts in, verdict out. Pure: no socket, file, clock, environment
 * or random number; time is a fact. The policy is one read-only image made by
 * policy/load (YAML -> image) and mapped by every process that needs it. */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "common/arena.h"
#include "common/err.h"
#include "common/http/http.h"

struct policy; /* an opened image; opaque */

/* Check an image (magic, version, every offset and string in bounds) and open it.
 * The image must stay mapped, unchanged, until policy_close. NULL: not an image. */
struct policy *policy_open(struct span image, struct err *e) MUSTCHECK;
void policy_close(struct policy *p);
struct span policy_name(const struct policy *p);
/* SHA-256 of the image's content, 32 bytes, stamped by the loader. */
struct span policy_digest(const struct policy *p);

enum verdict { VERDICT_DENY = 0, VERDICT_HOLD, VERDICT_ALLOW };
enum effect { EFFECT_UNKNOWN = 0, EFFECT_READ, EFFECT_WRITE, EFFECT_DELETE, EFFECT_ADMIN, EFFECT_SPEND, EFFECT_EXEC };
/* How a refusal must look so that this client shows it (conf/packs, reference in the docs). */
enum dialect { DIALECT_PROBLEM = 0, DIALECT_GIT_INFO_REFS, DIALECT_GIT_RECEIVE_PACK, DIALECT_NPM, DIALECT_PIP };

struct label {
    struct span key, value;
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
    const struct http_field *fields;
    size_t nfields;
    bool has_body;      /* the request declares a body, even an empty one */
    bool body_complete; /* body below is all of it */
    struct span body;
};

struct git_ref {
    struct span name, old_id, new_id; /* as in the ref commands, hex */
};

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

struct decision {
    enum verdict verdict;
    bool need_body; /* not decided yet: read the whole body (at most body_max bytes), then call again */
    uint64_t body_max;
    const char *code; /* stable: "rule", "floor", "no-rule", "host-not-named", "unclassified", "bad-method" ... */
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
    struct span join_body; /* the part of the body a retry must repeat exactly (git: the ref commands) */
    const struct git_push *push;
    struct span summary; /* "Push 1 ref to demo/app: refs/heads/main a1b2c3d -> d4e5f6a" */
    const struct fact *facts;
    size_t nfacts;
};

/* Classify and decide one request. Never fails: whatever cannot be understood or
 * allocated is VERDICT_DENY with a code. Spans in *d point into the image, the
 * request or the arena. now_ms: Unix time.
 * Without the complete body the answer is final unless d->need_body. */
void policy_judge(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                  struct arena *a, struct decision *d);

/* Is any rule for this subject about this host and port at all? Asked at CONNECT,
 * before a name is resolved or a leaf minted. */
bool policy_names_host(const struct policy *p, const struct subject *s, struct span scheme, struct span host,
                       uint16_t port);

/* Does a pack for this host read %2F in a path as part of a name (npm's /@scope%2Fname)?
 * Then http_canonical_path is called with keep_slash. */
bool policy_keeps_slash(const struct policy *p, struct span scheme, struct span host, uint16_t port);

/* May this operator decide on tickets of this approvers entry? An empty entry: any may. */
bool policy_may_approve(const struct policy *p, struct span approvers, struct span operator_name);

/* The upstreams: entry of a host and port. False: none, defaults apply. */
struct upstream {
    struct span address;              /* literal to dial instead of resolving, or empty */
    struct span ca_pem;               /* trust this instead of the system roots, or empty */
    bool cleartext_credentials;       /* a credential may go over http:// to here */
    const struct span *allow_private; /* CIDRs, text */
    size_t nallow_private;
};
bool policy_upstream(const struct policy *p, struct span host, uint16_t port, struct arena *a, struct upstream *u);

enum source_kind { SOURCE_NONE = 0, SOURCE_FILE, SOURCE_ENV, SOURCE_STORE };
struct credential {
    struct span name;
    enum source_kind source;
    struct span source_arg; /* path, variable, or name in the sealed store */
    struct span header;     /* field to set, e.g. "Authorization" */
    struct span format;     /* "Bearer {}" or, with basic_user, unused */
    struct span basic_user; /* "x-access-token": Authorization is Basic base64(user:secret) */
    bool basic;             /* secret is "user:password" itself when basic_user is empty */
};
size_t policy_credentials(const struct policy *p);
/* False when i is out of range. */
bool policy_credential(const struct policy *p, size_t i, struct credential *c);
/* Does the credential's only: list name this place? Checked by the judge before the
 * decision is acted on and again by the keeper before it releases. */
bool policy_credential_may_go(const struct policy *p, size_t i, struct span scheme, struct span host, uint16_t port,
                              struct span path);
/* Does its only: list name this place, at whatever path? Then its secret is scrubbed from answers from there. */
bool policy_credential_bound(const struct policy *p, size_t i, struct span scheme, struct span host, uint16_t port);
/* Does any credential's? */
bool policy_host_bound(const struct policy *p, struct span scheme, struct span host, uint16_t port);

const char *verdict_name(enum verdict v);
const char *effect_name(enum effect e);

#endif
