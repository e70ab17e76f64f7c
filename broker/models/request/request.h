/* The body of a request to a model, from messages that are no provider's. It asks for a stream, and for nothing that
 * a provider would keep. */
#ifndef BROKER_MODELS_REQUEST_REQUEST_H
#define BROKER_MODELS_REQUEST_REQUEST_H

#include "broker/models/message.h"

enum {
    REQUEST_MAX = 32 * 1024 * 1024, /* bytes of a body: what the first of the providers to refuse one takes */
    REQUEST_TOOLS_MAX = 512,
    TOOL_SCHEMA_MAX = 256 * 1024, /* bytes of a tool's schema */
    TOOL_WORDS_MAX = 64 * 1024,   /* bytes of its description */
    IMAGE_BYTES_MAX = 5 * 1024 * 1024
};

struct model_tool {
    struct span name, description;
    struct span schema; /* JSON Schema of its arguments, an object of "type": "object" */
};

/* Append the bytes of an image. -1: they are not there any more. */
typedef int model_image_fn(void *ctx, struct span ref, struct dynbuf *bytes);

struct model_request {
    struct span system; /* may be empty */
    const struct message *message;
    size_t n;
    const struct model_tool *tool;
    size_t ntools;
    bool no_calls;       /* the tools are told, since the messages have calls of them, and none may be called */
    uint64_t max_tokens; /* of the answer; needed */
    model_image_fn *image;
    void *ctx;
};

/* Append the body to out, which is born with REQUEST_MAX or less. -1 and why, with nothing of use in out: the target
 * may not see this conversation, the messages are not what every provider takes (messages_check), or it is too large.
 * Left out of it: blank texts, opaque blocks of another origin, thought at a message's end. An image that is not
 * there is told in words. */
int request_write(const struct model_target *t, const struct model_privacy *p, const struct model_request *r,
                  struct dynbuf *out, struct err *e) MUSTCHECK;

#endif
