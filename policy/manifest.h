/* What exists for a sandbox, told beforehand: from the rules in its scope. Pure. */
#ifndef POLICY_MANIFEST_H
#define POLICY_MANIFEST_H

#include "common/json/json.h"
#include "policy/policy.h"

struct manifest_want {
    const struct subject *subject;
    struct span host; /* only rules that are about this host, or empty: all */
    bool ids;         /* rule ids too */
    size_t room;      /* bytes for the list */
    uint64_t now_ms;  /* Unix time: a rule outside its hours is said to be so */
};

/* Writes one array value: an object for each rule in the subject's scope, in order of the rules' ids, with what it is
 * about, whether that is allowed, held or denied, and under which bounds. Of what is allowed or held, a subject that
 * may reach only some regions is told no other hosts. The same bytes for the same facts. Returns
 * how many rules found no room. */
size_t policy_manifest(const struct policy *p, const struct manifest_want *want, struct jsonw *w);

/* The same rules for programs that write programs: each operation that they let through, with its parameters, and
 * whether it is held; what a deny is about wholly is left out. A module of TypeScript, or one value of JSON, which is
 * OpenAPI 3.1; text of the policy ends no string and no comment in them. room is for the operations. The same bytes
 * for the same facts. Returns how many operations found no room, at least. */
size_t policy_typescript(const struct policy *p, const struct manifest_want *want, struct dynbuf *out);
size_t policy_openapi(const struct policy *p, const struct manifest_want *want, struct jsonw *w);

/* At most max short sentences of what this subject may ask of this host ("GET /v1/refunds: held for approval"), or,
 * of a host where it may ask nothing, which hosts there are; for a denial. In the arena. Returns how many. */
size_t policy_allowed_here(const struct policy *p, const struct subject *s, const struct request *r, struct arena *a,
                           struct span *out, size_t max);

#endif
