/* Between the files that write a manifest: which rules are told to whom, and, for programs that write programs, the
 * operations that these let through, with what a request of each has to bring. */
#ifndef POLICY_EXPLAIN_TYPED_H
#define POLICY_EXPLAIN_TYPED_H

#include "policy/manifest.h"
#include "policy/match/match.h"

/* ---- which rules are told (manifest.c) ---- */

/* Is the rule in the subject's scope, and about a host that was asked for and that it may reach? */
bool manifest_wanted(const struct policy *p, const struct manifest_want *want, const struct img_rule *r);
/* Of whom only the hosts count that it may reach: a subject that may reach only some regions is told no host
 * elsewhere; what is denied is denied everywhere. NULL: all hosts. */
const struct subject *manifest_within(const struct policy *p, const struct subject *s, const struct img_rule *r);
/* The hosts of the match in a region that the subject may reach, by name: a pattern stands for entries of upstreams:.
 * fn NULL: only whether there is one. */
typedef void manifest_host_fn(void *arg, struct span host);
bool manifest_reached(const struct policy *p, const struct img_match *m, const struct subject *s,
                      manifest_host_fn *fn, void *arg);

/* The operations of packs that a match is about: those that it names; or, where it speaks of effects alone, those of
 * packs that name one of its hosts. */
typedef void manifest_op_fn(void *arg, const struct img_pack *k, const struct img_op *op);
void manifest_ops(const struct policy *p, const struct img_match *m, manifest_op_fn *fn, void *arg);

/* ---- what they let through (typed.c) ---- */

enum { TYPED_MAX = 1000, TYPED_ARENA_MAX = 4 * 1024 * 1024 };

/* One method at one path of one origin, by one rule. */
struct typed_op {
    uint32_t index; /* of the rule */
    const struct img_rule *rule;
    const struct img_match *match;
    const struct img_op *op; /* of a pack; or NULL */
    const struct img_pack *pack;
    enum verdict verdict; /* hold, also where another rule holds all of it; or allow */
    uint32_t effects;     /* a mask, 0: not known */
    uint32_t scheme;      /* SCHEME_HTTPS or SCHEME_HTTP */
    uint16_t port;
    bool narrower;      /* the rule's own paths say more than this one */
    struct span method; /* in upper case */
    struct span host;   /* a name, or a pattern "*.example.com" */
    struct span origin; /* "https://api.test:8443"; "{hostName}" for a pattern */
    struct span glob;   /* the path's pattern */
    struct span path; /* the same with names: "/v1/{id}/{+pathRest1}", "+" where it may be several segments. Of all of
                         one shape it is one text */
    struct span shape; /* ... and without: "/v1/{}/{}" */
};
struct typed {
    struct typed_op *v; /* in the order of shape, method, origin; of these held before allowed */
    size_t n, left;     /* left: at least so many found no room */
};
void typed_collect(const struct policy *p, const struct manifest_want *want, struct arena *a, struct typed *out);
/* The next name in a template or origin at or after *at, which moves behind it. False: no more. */
bool typed_param(struct span path, size_t *at, struct span *name, bool *deep);

/* ---- what a request brings (typed_facts.c) ---- */

enum type_kind { TYPE_ANY = 0, TYPE_TEXT, TYPE_NUMBER, TYPE_NEVER, TYPE_OBJECT, TYPE_ALL };
struct type {
    enum type_kind kind;
    const struct span *text; /* TYPE_TEXT: one of these; none: any */
    size_t n;                /* of text; of field; of all */
    bool plain;              /* TYPE_TEXT of JSON: also the number or truth value that is written so */
    bool bounded_above, bounded_below;
    uint64_t most, least; /* TYPE_NUMBER */
    const struct field *field;
    bool open, texts; /* TYPE_OBJECT: others may be there; all are texts */
    const struct type *const *all;
};
struct field {
    struct span name;
    bool required;
    const struct type *type; /* NULL: there was no memory for it */
};

enum body_as { BODY_AS_NONE = 0, BODY_AS_BYTES, BODY_AS_JSON, BODY_AS_FORM };
struct typed_facts {
    const struct type *path, *query, *header; /* objects of texts */
    enum body_as as;
    struct span media; /* of the body; empty: not said */
    const struct type *body;
    bool body_required;
    struct span words; /* whether it is held, and what no type says */
};
/* What one operation wants. False: no memory. */
bool typed_facts(const struct policy *p, const struct manifest_want *want, const struct typed_op *e, struct arena *a,
                 struct typed_facts *out);

#endif
