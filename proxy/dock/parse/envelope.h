/* Frames of Connect's streams (connectrpc.com, "streaming"): u8 flags | u32 length, big-endian | payload. Pure. */
#ifndef PROXY_DOCK_PARSE_ENVELOPE_H
#define PROXY_DOCK_PARSE_ENVELOPE_H

#include "common/dynbuf.h"

enum { ENVELOPE_HEAD = 5, ENVELOPE_COMPRESSED = 1, ENVELOPE_END = 2 };

enum envelope_got { ENVELOPE_BAD = 0, ENVELOPE_MORE, ENVELOPE_FRAME };
struct envelope {
    uint8_t flags;
    struct span payload; /* of in */
};
/* The frame that in begins with; *used bytes are it. BAD: it is longer than most, or has flags that nobody knows. */
enum envelope_got envelope_take(struct span in, size_t most, struct envelope *e, size_t *used) MUSTCHECK;
/* -1: no room. */
int envelope_put(struct dynbuf *out, uint8_t flags, struct span payload) MUSTCHECK;

#endif
