#include "common/msg.h"

#include <endian.h>

/* n is 1, 2, 4 or 8, known to the compiler: for each it is one load or store. */
static inline void big_endian(uint8_t *to, uint64_t v, size_t n)
{
    v = htobe64(v << (8 * (sizeof(v) - n)));
    memcpy(to, &v, n);
}

static inline uint64_t number(const uint8_t *p, size_t n)
{
    uint64_t u8 = p[0], u64;
    uint32_t u32;
    uint16_t u16;
    switch (n) {
    case 1: return u8;
    case 2: memcpy(&u16, p, sizeof(u16)); return be16toh(u16);
    case 4: memcpy(&u32, p, sizeof(u32)); return be32toh(u32);
    default: memcpy(&u64, p, sizeof(u64)); return be64toh(u64);
    }
}

/* Failure sticks in the buffer. */
static inline void put(struct dynbuf *b, uint64_t v, size_t n)
{
    uint8_t *to = dynbuf_room(b, n);
    if (to == NULL)
        return;
    big_endian(to, v, n);
    dynbuf_grew(b, n);
}

void msg_put_u8(struct dynbuf *b, uint8_t v)
{
    put(b, v, 1);
}

void msg_put_u16(struct dynbuf *b, uint16_t v)
{
    put(b, v, 2);
}

void msg_put_u32(struct dynbuf *b, uint32_t v)
{
    put(b, v, 4);
}

void msg_put_u64(struct dynbuf *b, uint64_t v)
{
    put(b, v, 8);
}

void msg_put_span(struct dynbuf *b, struct span s)
{
    uint8_t *to = dynbuf_room(b, 4 + s.n);
    if (to == NULL)
        return;
    big_endian(to, s.n, 4);
    if (s.n)
        memcpy(to + 4, s.p, s.n);
    dynbuf_grew(b, 4 + s.n);
}

void msg_put_id(struct dynbuf *b, const struct id *id)
{
    (void)dynbuf_add(b, span_of(id->b, ID_BYTES));
}

void msg_put_digest(struct dynbuf *b, const struct digest *d)
{
    (void)dynbuf_add(b, span_of(d->b, DIGEST_BYTES));
}

static inline struct span take(struct msg_in *m, size_t n)
{
    if (m->bad || m->rest.n < n) {
        m->bad = true;
        return SPAN_NONE;
    }
    struct span s = span_of(m->rest.p, n);
    m->rest = span_from(m->rest, n);
    return s;
}

static inline uint64_t get(struct msg_in *m, size_t n)
{
    struct span s = take(m, n);
    return s.n ? number(s.p, n) : 0;
}

uint8_t msg_get_u8(struct msg_in *m)
{
    return (uint8_t)get(m, 1);
}

uint16_t msg_get_u16(struct msg_in *m)
{
    return (uint16_t)get(m, 2);
}

uint32_t msg_get_u32(struct msg_in *m)
{
    return (uint32_t)get(m, 4);
}

uint64_t msg_get_u64(struct msg_in *m)
{
    return get(m, 8);
}

struct span msg_get_span(struct msg_in *m, size_t max)
{
    size_t n = (size_t)get(m, 4);
    if (n > max)
        m->bad = true;
    return take(m, n);
}

void msg_get_id(struct msg_in *m, struct id *out)
{
    struct span s = take(m, ID_BYTES);
    memset(out, 0, sizeof(*out));
    if (s.n)
        memcpy(out->b, s.p, s.n);
}

void msg_get_digest(struct msg_in *m, struct digest *out)
{
    struct span s = take(m, DIGEST_BYTES);
    memset(out, 0, sizeof(*out));
    if (s.n)
        memcpy(out->b, s.p, s.n);
}

bool msg_get_bool(struct msg_in *m)
{
    uint8_t v = msg_get_u8(m);
    if (v > 1)
        m->bad = true;
    return v == 1;
}

int msg_end(const struct msg_in *m)
{
    return m->bad || m->rest.n ? -1 : 0;
}
