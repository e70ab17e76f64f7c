/* What the readers of the three protocols put an answer together with. */
#ifndef BROKER_MODELS_ANSWER_ANSWER_IN_H
#define BROKER_MODELS_ANSWER_ANSWER_IN_H

#include "broker/models/answer/answer.h"
#include "common/control/sse.h"

/* A text, a call or an opaque block on its way. */
struct piece {
    enum block_kind kind;
    uint64_t key;        /* by which the provider's events name it */
    bool ended;          /* the provider said that it is whole */
    bool spoiled;        /* opaque: not understood, and not kept */
    bool over;           /* a call: more arguments than are kept */
    struct span foreign; /* a call's id at the provider */
    struct span name;    /* a call's tool; of an opaque block the name of its text */
    struct span extra;   /* a call: what the provider added; Anthropic, opaque: as it began, as an object */
    struct span json;    /* opaque: the block, when it is known whole */
    struct dynbuf text;  /* a text, a call's arguments, an opaque block's text */
    struct span sign;    /* Anthropic: the signature */
    const char *broken;  /* a call: why it is not run */
};

struct answer {
    enum model_protocol protocol;
    struct model_origin origin;
    struct span prefix;
    answer_delta_fn *fn;
    void *ctx;
    struct sse sse;
    struct arena kept, event; /* as long as the answer; of one event */
    struct piece *piece;
    size_t n, bytes; /* pieces; bytes that they hold */
    bool begun, refused;
    struct answer_result result;
};

/* One event that is JSON. name is the event's or its type's. */
void anthropic_event(struct answer *a, struct span name, const struct json *j);
void chat_event(struct answer *a, struct span name, const struct json *j);
void responses_event(struct answer *a, struct span name, const struct json *j);

/* It has ended. */
void answer_fail(struct answer *a, enum fault_kind k, const char *words);
void answer_fail_said(struct answer *a, const struct json *error);
/* It is whole: what came of it is put together (settle.c). */
void answer_complete(struct answer *a);

/* A new piece; NULL, and the answer has failed: there are too many. */
struct piece *piece_new(struct answer *a, enum block_kind kind, uint64_t key);
/* The newest with this key, or NULL. */
struct piece *piece_of(struct answer *a, uint64_t key);
/* Add to its text, and show it as what. A call's arguments past their bound spoil the call; anything else past one is
 * the end of the answer. */
void piece_add(struct answer *a, struct piece *p, enum delta_kind what, struct span text);
void piece_show(struct answer *a, const struct piece *p, enum delta_kind what, struct span text);
/* A copy that lives as long as the answer, within its bound of bytes; empty, and the answer has failed: no room. */
struct span answer_keep(struct answer *a, struct span s);
/* The first ANSWER_ID_MAX bytes of a name. */
struct span answer_keep_name(struct answer *a, struct span s);
/* The members of an object but those that are null or named (NULL ends these), as an object of at most max bytes;
 * empty: there are none, or they are longer, or nested deeper than is kept. */
struct span answer_rest(struct answer *a, const struct json *object, const char *const *but, size_t max);
/* More of the arguments of a call. One that was whole already is spoiled. */
void call_add(struct answer *a, struct piece *p, struct span text);
void call_name(struct answer *a, struct piece *p, struct span name);
/* Take a number of usage, if it is there. */
void usage_take(struct answer *a, const struct json *from, const char *name, uint64_t *to);

#endif
