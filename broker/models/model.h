/* What a model is to the broker: the protocol that it speaks, where it is, who may be shown what, what it counted.
 * There is no key here and none is ever in a body: the gateway puts it into the head. */
#ifndef BROKER_MODELS_MODEL_H
#define BROKER_MODELS_MODEL_H

#include "common/span.h"

enum { MODEL_NAME_MAX = 128 }; /* bytes of each part of an origin, and of the name of a model in conf/models.yaml */

enum model_protocol { MODEL_NONE = 0, MODEL_ANTHROPIC, MODEL_CHAT, MODEL_RESPONSES };
/* "anthropic", "chat", "responses", or ""; MODEL_NONE: of no protocol. */
const char *model_protocol_name(enum model_protocol p);
enum model_protocol model_protocol_of(struct span name);
/* What is added to an endpoint to reach its messages: "/messages", "/chat/completions", "/responses". */
const char *model_path(enum model_protocol p);

/* Where a block came from. What a provider signs is bound to all three. */
struct model_origin {
    struct span provider; /* "anthropic", "deepseek", "ours" */
    struct span model;    /* as the provider calls it */
    struct span endpoint; /* the URL that model_path is added to */
};
/* False also when a part of either is empty: nobody knows then where it came from. */
bool model_origin_eq(const struct model_origin *a, const struct model_origin *b);
/* All three are there, within MODEL_NAME_MAX (an endpoint within twice that), without control characters. */
bool model_origin_ok(const struct model_origin *o);

struct model_target {
    struct span name; /* what conf/models.yaml calls it, and what a private conversation lists */
    enum model_protocol protocol;
    struct model_origin origin;
    bool reasoning; /* Responses: its reasoning is asked for, encrypted, to be given back; Chat: it is given back */
    bool old_limit; /* MODEL_CHAT: it knows max_tokens and not max_completion_tokens */
};

/* Whether all models may see a conversation, or those of a list alone. What was not said lets nobody see it. */
enum model_who { WHO_NOBODY = 0, WHO_LISTED, WHO_ALL };
struct model_privacy {
    enum model_who who;
    const struct span *name; /* WHO_LISTED: names of targets */
    size_t n;
};
bool model_may_see(const struct model_privacy *p, struct span name);

/* Tokens, each counted once: input is what was neither read from a cache nor written to one; reasoning is a part of
 * output that some providers tell. */
struct model_usage {
    bool known; /* the provider has said something */
    uint64_t input, cache_read, cache_write, output, reasoning;
};

#endif
