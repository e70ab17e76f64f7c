/* The decision: facts in, verdict out. Pure: no socket, file, clock, environment
 * or random number; time is a fact. The policy is one read-only image made by
 * policy/load (YAML -> image) and mapped by every process that needs it. */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "common/arena.h"
#include "common/err.h"
#include "common/http/slot.h"
#include "common/lease/lease.h"
#include "common/sign/template.h"
#include "policy/decision.h"

struct policy; /* an opened image; opaque */

/* Check an image (magic, version, every offset and string in bounds) and open it.
 * The image must stay mapped, unchanged, until policy_close. NULL: not an image. */
struct policy *policy_open(struct span image, struct err *e) MUSTCHECK;
void policy_close(struct policy *p);
struct span policy_name(const struct policy *p);
/* SHA-256 of the image's content, 32 bytes, stamped by the loader. */
struct span policy_digest(const struct policy *p);
uint64_t policy_learning_until(const struct policy *p); /* Unix ms; 0: never */

/* Classify and decide one request. Never fails: whatever cannot be understood or
 * allocated is VERDICT_DENY with a code. Spans in *d point into the image, the
 * request or the arena. now_ms: Unix time.
 * Without the complete body the answer is final unless d->need_body. */
void policy_judge(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                  struct arena *a, struct decision *d);

/* What a request was judged as, which is several things where packs, or servers that read its path in their own way,
 * may take it for several. Of a path that is only spelt otherwise (escapes, case) the operation alone is told, where
 * it is another one. */
struct judged {
    struct span method, path, op;
    enum effect effect; /* EFFECT_WRITE of an upgrade too, whatever the rule that decides says it is */
    bool overridden;    /* it names another method in its query or a field: any method may be meant */
};
/* The same evaluation once more. True: fn is true of each, and there is one at least. Without memory it is false. */
bool policy_each_judged(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                        struct arena *a, bool (*fn)(const struct judged *j, void *arg), void *arg) MUSTCHECK;

/* Is any rule for this subject about this host and port at all? Asked at CONNECT,
 * before a name is resolved or a leaf minted. While the policy learns, every host is. */
bool policy_names_host(const struct policy *p, const struct subject *s, struct span scheme, struct span host,
                       uint16_t port, uint64_t now_ms);

/* Does a pack for this host read %2F in a path as part of a name (npm's /@scope%2Fname)?
 * Then http_canonical_path is called with keep_slash. */
bool policy_keeps_slash(const struct policy *p, struct span scheme, struct span host, uint16_t port);

/* Who decides: a person's name or "uid N", the user of this machine they are as well (or empty), and their groups
 * with a space between. */
struct approver {
    struct span name, uid, groups;
};
/* May they decide on tickets of this approvers entry? An empty entry: any may. */
bool policy_may_approve(const struct policy *p, struct span approvers, const struct approver *who);

/* Those of an approvers entry may approve too, once nobody has decided for so long. */
struct escalation {
    uint64_t after_ms;
    struct span to; /* name of the entry */
};
/* Of a decision that holds: its steps, the earliest first, each once; how many. */
size_t policy_escalations(const struct policy *p, const struct decision *d, struct escalation out[ESCALATE_MAX]);

/* A gate by its number, as approval_terms.gates counts them; false past the last. */
bool policy_gate(const struct policy *p, size_t i, struct gate *out);
/* The one of this name; false: there is none. */
bool policy_gate_named(const struct policy *p, struct span name, struct gate *out);
struct span policy_gate_word(const struct policy *p, const struct gate *g, size_t i);

/* The upstreams: entry of a host and port. False: none, defaults apply. */
struct upstream {
    struct span address;    /* literal to dial instead of resolving, or empty */
    struct span ca_pem;     /* trust this instead of the system roots, or empty */
    struct span crl_pem;    /* check every chain against these lists, or empty */
    const struct span *pin; /* SHA-256 of keys, 32 bytes; with any, a chain must have one of them */
    size_t npins;
    bool only_tls13;                  /* not TLS 1.2 */
    bool cleartext_credentials;       /* a credential may go over http:// to here */
    const struct span *allow_private; /* CIDRs, text */
    size_t nallow_private;
};
bool policy_upstream(const struct policy *p, struct span host, uint16_t port, struct arena *a, struct upstream *u);

/* From SOURCE_EXEC on there are settings (policy_setting), by which somebody is asked for the value; but for
 * SOURCE_ANSWER, whose values nobody asks for: they stand in answers to requests with other credentials. */
enum source_kind {
    SOURCE_NONE = 0,
    SOURCE_FILE,
    SOURCE_ENV,
    SOURCE_STORE,
    SOURCE_SYSTEMD,
    SOURCE_EXEC,
    SOURCE_OAUTH2,
    SOURCE_VAULT,
    SOURCE_GITHUB_APP,
    SOURCE_JWT, /* signed here, at once */
    SOURCE_AWS,
    SOURCE_TENCENT,
    SOURCE_ANSWER,
    SOURCE_KINDS
};
/* What is answered in place of a service that SDKs get their credentials from, with leases (stub:). */
enum stub_kind {
    STUB_NONE = 0,
    STUB_AWS,           /* instance metadata, version 2 */
    STUB_AWS_CONTAINER, /* of stub: aws as well */
    STUB_GOOGLE,
    STUB_OAUTH, /* a token endpoint */
    STUB_KINDS
};
static inline bool policy_source_is_asked(enum source_kind k)
{
    return k >= SOURCE_EXEC && k != SOURCE_ANSWER;
}
struct credential {
    struct span name;
    enum source_kind source;
    struct span source_arg; /* path, variable, name in the sealed store or in $CREDENTIALS_DIRECTORY; or empty */
    uint32_t settings, nsettings;
    enum slot_kind slot;
    struct span header;     /* SLOT_HEADER, SLOT_COOKIE: field to set, e.g. "Authorization" */
    struct span where;      /* the others: parameter, JSON pointer, or what the path begins with before it */
    struct span format;     /* "Bearer {}" or, with basic_user, unused */
    struct span basic_user; /* "x-access-token": Authorization is Basic base64(user:secret) */
    bool basic;             /* secret is "user:password" itself when basic_user is empty */
    struct span beside;     /* the credential with a certificate that is shown with this one, or empty */
    bool certificate;       /* secret is PEM, a key and its chain: shown in the TLS handshake, no field is set */
    bool refuse;            /* an answer that has it in it is refused, not covered */
    enum sign_scheme sign;  /* the request is signed with it; but of SIGN_HMAC it is ID:KEY or ID:KEY:TOKEN, */
    struct span region;     /* for this region */
    struct span service;    /* and service; fields of a signature are set, Authorization among them */
    struct signed_as {      /* of SIGN_HMAC (common/sign/template.h) */
        struct span sign;
        enum sign_hash hash;
        enum sign_coding encoding, key;
        enum sign_secret secret;
        uint32_t fields, nfields;
    } hmac;
    enum lease_format lease; /* what its leases look like; LEASE_NONE: there are none */
    bool require_lease;      /* a request that would be given it must bring a lease */
    bool freeze_on_leak;     /* a lease used elsewhere stops the writes of the sandboxes it concerns */
    enum stub_kind stub;     /* as what its leases can be asked for; STUB_NONE: they are given by hand alone */
};
size_t policy_credentials(const struct policy *p);
/* False when i is out of range. */
bool policy_credential(const struct policy *p, size_t i, struct credential *c);
/* One of the places it may go to, as the policy writes it: over https where both are meant; path: with its wildcards,
 * empty for all. False when i or j is out of range. */
struct credential_place {
    struct span scheme, host, path;
    uint16_t port;
};
bool policy_credential_place(const struct policy *p, size_t i, size_t j, struct credential_place *out);
/* Of a source that is asked for its value: one thing it must know, as it is written or to be had from another source.
 */
struct setting {
    struct span key;       /* several may have the same: a list, in its order */
    enum source_kind from; /* SOURCE_NONE: value is it; SOURCE_FILE to SOURCE_SYSTEMD: value says where it is */
    struct span value;
};
/* Of SOURCE_EXEC: entries of hosts:. */
enum { SOURCE_HOSTS_MAX = 8 };
/* Of SOURCE_ANSWER: entries of token:, and of keep:; credentials that have tokens of the same answer. */
enum { ANSWER_POINTERS_MAX = 8, ANSWER_TOKENS_MAX = 4 };
/* Setting i of c; false past its last. */
bool policy_setting(const struct policy *p, const struct credential *c, size_t i, struct setting *out);
/* One of the fields that a signature with a template sets, and what it says; false past the last. */
bool policy_signed_field(const struct policy *p, const struct credential *c, size_t i, struct span *name,
                         struct span *format);
/* "file", "exec" ...; "none" for what is none. */
const char *policy_source_name(enum source_kind k);
/* Does the credential's only: list name this place, and that of the one beside it? Checked by the judge before the
 * decision is acted on and again by the keeper before it releases. */
bool policy_credential_may_go(const struct policy *p, size_t i, struct span scheme, struct span host, uint16_t port,
                              struct span path);
/* Does its only: list name this place, at whatever path? Then its secret is scrubbed from answers from there. */
bool policy_credential_bound(const struct policy *p, size_t i, struct span scheme, struct span host, uint16_t port);
/* Does a stub answer this request, that was decided so (d)? Not what a rule or a floor denies or holds. *credential:
 * of which the leases are, the first of that place that a rule lets this subject use. STUB_NONE: none does. */
enum stub_kind policy_stub(const struct policy *p, const struct subject *s, const struct request *r,
                           const struct decision *d, size_t *credential);
/* Is any at this host and port? */
bool policy_stub_host(const struct policy *p, struct span scheme, struct span host, uint16_t port);
/* Does any credential's? */
bool policy_host_bound(const struct policy *p, struct span scheme, struct span host, uint16_t port);

#endif
