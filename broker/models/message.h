/* The messages of a conversation, in a form that is no provider's. A prompt is built from these (request/), an answer
 * ends as one of them (answer/), the store keeps them as JSON (message_put, message_get).
 *
 * Ids of calls are ours, minted by the loop: providers' own differ in length and form, and one that another provider
 * made may be refused. What a provider wants back as it wrote it, without our understanding it (signed thinking,
 * encrypted reasoning), is an opaque block with its origin; another target never gets it. */
#ifndef BROKER_MODELS_MESSAGE_H
#define BROKER_MODELS_MESSAGE_H

#include "broker/models/model.h"
#include "common/arena.h"
#include "common/err.h"
#include "common/json/json.h"

enum {
    MESSAGES_MAX = 20000,               /* of one prompt */
    MESSAGE_BLOCKS_MAX = 256,           /* of one message */
    MESSAGE_TEXT_MAX = 4 * 1024 * 1024, /* bytes of one text, of one result, of one opaque block */
    CALL_ARGS_MAX = 1024 * 1024,        /* bytes of one call's arguments */
    CALL_EXTRA_MAX = 64 * 1024,         /* bytes of what a provider adds to a call */
    CALL_ID_MAX = 40,                   /* the shortest limit that a provider has */
    TOOL_NAME_MAX = 64,
    IMAGE_REF_MAX = 128
};

enum message_of { MESSAGE_NOBODY = 0, MESSAGE_USER, MESSAGE_MODEL };
enum block_kind { BLOCK_NONE = 0, BLOCK_TEXT, BLOCK_CALL, BLOCK_RESULT, BLOCK_OPAQUE, BLOCK_IMAGE };

struct block {
    enum block_kind kind;
    struct span text;  /* BLOCK_TEXT, BLOCK_RESULT */
    struct span id;    /* BLOCK_CALL, BLOCK_RESULT: of the call */
    struct span name;  /* BLOCK_CALL: of the tool */
    struct span json;  /* an object as text. BLOCK_CALL: the arguments; BLOCK_OPAQUE: as the provider wrote it */
    struct span extra; /* BLOCK_CALL: an object of what the provider added, or empty */
    struct model_origin origin; /* BLOCK_OPAQUE, and BLOCK_CALL with an extra */
    bool failed;                /* BLOCK_RESULT */
    struct span media, ref;     /* BLOCK_IMAGE, of a user: image/png ...; what names its bytes in the store */
};

struct message {
    enum message_of of;
    const struct block *block;
    size_t n;
};

/* 1 to CALL_ID_MAX of letters, digits, _ and -; 1 to TOOL_NAME_MAX of the same. */
bool call_id_ok(struct span id);
bool tool_name_ok(struct span name);
/* Nothing but blanks: providers refuse such a text, and models write some. */
bool text_is_blank(struct span s);
/* One JSON object, as common/json/json.h has it. */
bool text_is_object(struct span s);

/* What every provider takes: bounds and forms hold, the first and the last message are a user's, each call of a
 * message is answered once in the next one, and each result there answers one. 0; -1 and why. */
int messages_check(const struct message *m, size_t n, struct err *e) MUSTCHECK;

/* As JSON; errors stick in the writer's buffer. */
void message_put(struct jsonw *w, const struct message *m);
/* The same of an answer that is not complete, with why; empty: it is. message_get takes no notice of it. */
void message_put_stopped(struct jsonw *w, const struct message *m, struct span stopped);
struct span message_stopped(const struct json *j);
/* The same of a person's, with the operator who says it; empty: nobody knows. message_get takes no notice of it. */
void message_put_said(struct jsonw *w, const struct message *m, struct span by);
struct span message_by(const struct json *j);
/* Of what message_put wrote; spans are borrowed from the tree, blocks are in the arena. Arguments and opaque blocks
 * are the same to the byte. 0; -1 and why: it is of another form, or past a bound. */
int message_get(const struct json *j, struct arena *a, struct message *m, struct err *e) MUSTCHECK;

#endif
