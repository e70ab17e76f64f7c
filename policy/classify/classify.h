/* What is this request? Packs (rows of the image) name the operation; what no
 * pack knows is named after its method, and is a write unless it is a plain read.
 * Pure; spans point into the image, the request or the arena. */
#ifndef POLICY_CLASSIFY_CLASSIFY_H
#define POLICY_CLASSIFY_CLASSIFY_H

#include "policy/body/body.h"

enum {
    /* Of one path: as it is, empty segments merged, ;params dropped, both; each of them decoded in four ways and
     * folded; and all without the slash at their end. */
    READINGS_MAX = 48,
    CLASSES_MAX = 4, /* of one reading: a pack each, and one for a method override */
};

struct class
{
    struct span op, resource, pack, summary;
    struct span open_path; /* as in struct decision */
    enum effect effect;
    enum dialect dialect;
    uint64_t body_max;
    /* This stands only where a rule could let another thing happen (info/refs before a push). */
    struct span could_op, could_method, could_path;
    uint32_t git_service;    /* GIT_*, 0 when it is not git */
    bool rest;               /* by a row for all that the pack does not name: its path ends in "**" */
    bool pending;            /* the body decides and is not complete yet */
    bool overridden;         /* a server that takes another method from the query or a field: any may be meant */
    uint8_t ambiguity;       /* enum ambiguity_cause: of bad, when that is "unclassified" */
    struct span beside;      /* ... instead of this operation */
    const char *bad;         /* the code of a refusal; no rule can help */
    struct body_found found; /* of a pack that says what the body is */
};

/* One way a server might read a path. What is not decoded is judged whole: something must let it through as well.
 * A decoded one (after the one it was made of) is another spelling of it: what restricts is tried on it, what lets
 * through on what was written. */
enum how_read {
    READ_WHOLE = 0,
    READ_DECODED,
    READ_SLASHES, /* decoded, with a slash for each %2F too */
    READ_FOLDED,  /* as who is careless with names takes the decoded one: path_folded */
    READ_BARE,    /* without the slash at the end of the one before it */
};
struct reading {
    struct span path;
    enum how_read how;
};
/* The ways a server might read a path, or -1 when it must not be read at all (dot segments,
 * escapes that hide something, not canonical). Usually one; `path` itself is the first. */
int readings_of(struct span path, struct arena *a, struct reading out[READINGS_MAX], size_t *n) MUSTCHECK;
/* Every escape decoded; a %2F only with `slashes`. -1: no memory. */
int path_decoded(struct span path, bool slashes, struct arena *a, struct span *out) MUSTCHECK;
/* A decoded path to who folds characters (letters.h), takes '+' for a blank and '\\' for a slash, and drops blanks
 * around a segment (Spring), those and dots at its end (Windows), and what is empty then. -1: no memory, or a dot
 * segment. */
int path_folded(struct span path, struct arena *a, struct span *out) MUSTCHECK;
/* Is there a %2F? Only packs that ask for it are given one. */
bool path_keeps_slash(struct span path);
/* Classes of r under one reading of its path; at least one. body: of the request, not looked at or already. */
size_t classify(const struct policy *p, const struct request *r, struct span path, struct body_view *body,
                struct arena *a, struct class out[CLASSES_MAX]);
/* shape.c: `path`, which fits a row's pattern, with POLICY_OPEN for each step that neither the row nor its resource's
 * template says. -1: no memory. */
int classify_open_path(struct span pattern, struct span resource, struct span path, struct arena *a,
                       struct span *out) MUSTCHECK;
/* Effect of a method without a pack. */
enum effect classify_rest_effect(struct span method, bool has_body);
/* Does the pack apply to this host and port? */
bool classify_pack_fits(const struct policy *p, const struct img_pack *k, struct span scheme, struct span host,
                        uint16_t port);
bool classify_host_fits(const struct policy *p, const struct img_host *h, struct span host);
/* One of them, or there are none. */
bool classify_hosts_fit(const struct policy *p, struct img_range hosts, struct span host);
uint16_t classify_default_port(struct span scheme);

#endif
