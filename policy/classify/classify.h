/* What is this request? Packs (rows of the image) name the operation; what no
 * pack knows is named after its method, and is a write unless it is a plain read.
 * Pure; spans point into the image, the request or the arena. */
#ifndef POLICY_CLASSIFY_CLASSIFY_H
#define POLICY_CLASSIFY_CLASSIFY_H

#include "policy/image.h"
#include "policy/unclear.h"

enum {
    READINGS_MAX = 4, /* of one path: as it is, empty segments merged, ;params dropped, both */
    CLASSES_MAX = 4,  /* of one reading: a pack each, and one for a method override */
    PUSH_REFS_MAX = 1000,
    PUSH_COMMANDS_MAX = 1024 * 1024,
};

struct class
{
    struct span op, resource, pack, summary;
    enum effect effect;
    enum dialect dialect;
    uint64_t body_max;
    /* This stands only where a rule could let another thing happen (info/refs before a push). */
    struct span could_op, could_method, could_path;
    uint32_t git_service; /* GIT_*, 0 when it is not git */
    bool pending;         /* the body decides and is not complete yet */
    bool overridden;      /* a server that takes another method from the query or a field: any may be meant */
    uint8_t unclear;      /* enum unclear_cause: of bad, when that is "unclassified" */
    struct span beside;   /* ... instead of this operation */
    const char *bad;      /* the code of a refusal; no rule can help */
    const struct git_push *push;
    struct span join_body;
    const struct fact *facts;
    size_t nfacts;
};

/* The ways a server might read a path, or -1 when it must not be read at all (dot segments,
 * escapes that hide something, not canonical). Usually one. */
int readings_of(struct span path, struct arena *a, struct span out[READINGS_MAX], size_t *n) MUSTCHECK;
/* Is there a %2F? Only packs that ask for it are given one. */
bool path_keeps_slash(struct span path);
/* Classes of r under one reading of its path; at least one. */
size_t classify(const struct policy *p, const struct request *r, struct span path, struct arena *a,
                struct class out[CLASSES_MAX]);
/* Effect of a method without a pack. */
enum effect rest_effect(struct span method, bool has_body);
/* The ref commands of a complete receive-pack body: fills push, join_body, facts, summary, or bad. */
void classify_git_push(const struct request *r, struct arena *a, struct class *c);
/* Does the pack apply to this host and port? */
bool pack_applies(const struct policy *p, const struct img_pack *k, struct span scheme, struct span host,
                  uint16_t port);
bool host_matches(const struct policy *p, const struct img_host *h, struct span host);
uint16_t default_port(struct span scheme);

#endif
