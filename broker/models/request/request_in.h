/* What the three forms of a body share. */
#ifndef BROKER_MODELS_REQUEST_REQUEST_IN_H
#define BROKER_MODELS_REQUEST_REQUEST_IN_H

#include "broker/models/request/request.h"

struct writing {
    struct jsonw w;
    const struct model_target *t;
    const struct model_request *r;
    struct dynbuf part; /* one value that is put together before it is written */
    bool lost;          /* one had no room */
};

/* The rest of a body whose object and model are begun. */
void request_anthropic(struct writing *x);
void request_chat(struct writing *x);
void request_responses(struct writing *x);

/* Does the target get this block? */
bool block_goes(const struct model_target *t, const struct block *b);
/* Does it get one of these kinds (1 << BLOCK_...) of this message? */
bool message_has(const struct model_target *t, const struct message *m, unsigned kinds);
/* How many of its blocks, from the first, are told: thought that led to nothing is refused at the end of a message.
 */
size_t message_end(const struct model_target *t, const struct message *m);
/* The texts of a message, an empty line between them; borrowed until the next one. */
struct span message_text(struct writing *x, const struct message *m);
/* What a result says where nothing but text is known: whether it failed stands in it. Borrowed as above. */
struct span result_text(struct writing *x, const struct block *b);
struct span result_words(const struct block *b);
/* The bytes of an image in base64, behind "data:...;base64," when url is true. False: they are not to be had, and the
 * text is what to say instead. Borrowed as above. */
bool image_text(struct writing *x, const struct block *b, bool url, struct span *text);
/* The members of an object, as they are, among those of the object that is being written. */
void put_members(struct writing *x, struct span object);

#endif
