/* Fields of a message between processes: written and read in mirrored order.
 * Numbers are big-endian, byte strings carry a 32-bit length. A reader's first
 * failure sticks: after it every get gives zero or nothing, and msg_end says
 * -1. So a decode is a row of gets and one check. */
#ifndef COMMON_MSG_H
#define COMMON_MSG_H

#include "common/dynbuf.h"
#include "common/id.h"

/* The version of the whole message enum (proxy/msgs.h): first word of a role's
 * configuration; a role that reads another one refuses to start. */
enum { MSG_VERSION = 33 };

void msg_put_u8(struct dynbuf *b, uint8_t v);
void msg_put_u16(struct dynbuf *b, uint16_t v);
void msg_put_u32(struct dynbuf *b, uint32_t v);
void msg_put_u64(struct dynbuf *b, uint64_t v);
void msg_put_span(struct dynbuf *b, struct span s);
void msg_put_id(struct dynbuf *b, const struct id *id);
void msg_put_digest(struct dynbuf *b, const struct digest *d);

struct msg_in {
    struct span rest;
    bool bad;
};

static inline struct msg_in msg_in(struct span payload)
{
    return (struct msg_in){payload, false};
}

uint8_t msg_get_u8(struct msg_in *m);
uint16_t msg_get_u16(struct msg_in *m);
uint32_t msg_get_u32(struct msg_in *m);
uint64_t msg_get_u64(struct msg_in *m);
/* Borrowed from the payload; empty when longer than max (and the reader is bad). */
struct span msg_get_span(struct msg_in *m, size_t max);
void msg_get_id(struct msg_in *m, struct id *out);
void msg_get_digest(struct msg_in *m, struct digest *out);
/* True for a byte 1, false for 0; anything else is bad. */
bool msg_get_bool(struct msg_in *m);
/* 0 if every get succeeded and nothing is left over, else -1. */
int msg_end(const struct msg_in *m) MUSTCHECK;

#endif
