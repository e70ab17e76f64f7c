#include "proxy/carrier/decode.h"

#include <stdlib.h>
#include <zlib.h>

enum { PIECE = 32 * 1024 };

struct decode {
    z_stream z;
    enum decode_coding coding;
    struct scrub_stream look;
    struct dynbuf held, plain;
    uint64_t in, out;
    bool ended; /* the compressed stream (or one gzip member) is complete */
    const char *why;
    uint8_t piece[PIECE];
};

enum decode_coding decode_coding_of(struct span value)
{
    value = span_trim(value);
    if (value.n == 0 || span_ieq(value, SPAN("identity")))
        return DECODE_IDENTITY;
    if (span_ieq(value, SPAN("gzip")) || span_ieq(value, SPAN("x-gzip")))
        return DECODE_GZIP;
    if (span_ieq(value, SPAN("deflate")))
        return DECODE_DEFLATE;
    return DECODE_UNKNOWN;
}

struct decode *decode_new(enum decode_coding c, struct scrub *set)
{
    if (c != DECODE_GZIP && c != DECODE_DEFLATE)
        return NULL;
    struct decode *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return NULL;
    if (inflateInit2(&d->z, c == DECODE_GZIP ? 15 + 16 : 15) != Z_OK) {
        free(d);
        return NULL;
    }
    d->coding = c;
    d->why = "decoding failed";
    dynbuf_init(&d->held, DECODE_HELD_MAX);
    dynbuf_init(&d->plain, 2 * (size_t)SCRUB_BYTES_MAX);
    scrub_begin(&d->look, set);
    return d;
}

void decode_free(struct decode **d)
{
    if (d == NULL || *d == NULL)
        return;
    inflateEnd(&(*d)->z);
    scrub_end(&(*d)->look);
    dynbuf_wipe(&(*d)->held);
    dynbuf_wipe(&(*d)->plain);
    explicit_bzero((*d)->piece, PIECE);
    free(*d);
    *d = NULL;
}

const char *decode_why(const struct decode *d)
{
    return d->why;
}

static enum decode_result refuse(struct decode *d, const char *why)
{
    d->why = why;
    return DECODE_REFUSED;
}

static enum decode_result look(struct decode *d, size_t n)
{
    d->out += n;
    if (d->out > DECODE_OUT_MAX)
        return refuse(d, "it decodes to more than can be looked at");
    if (d->out > DECODE_RATIO_FROM && d->out / DECODE_RATIO > d->in)
        return refuse(d, "it decodes to far more than it weighs");
    dynbuf_reset(&d->plain);
    if (scrub_feed(&d->look, span_of(d->piece, n), false, &d->plain) != 0)
        return refuse(d, "no memory to look into it");
    if (d->look.found)
        return refuse(d, "a secret is in it");
    return DECODE_OK;
}

/* The next member of a gzip file, or nothing more may follow. */
static enum decode_result next_member(struct decode *d)
{
    if (d->coding != DECODE_GZIP || inflateReset(&d->z) != Z_OK)
        return refuse(d, "bytes follow the end of the encoded body");
    d->ended = false;
    return DECODE_OK;
}

static enum decode_result inflate_all(struct decode *d, struct span in)
{
    d->z.next_in = (Bytef *)(uintptr_t)in.p;
    d->z.avail_in = (uInt)in.n;
    for (;;) {
        if (d->ended && d->z.avail_in == 0)
            return DECODE_OK;
        if (d->ended && next_member(d) != DECODE_OK)
            return DECODE_REFUSED;
        d->z.next_out = d->piece;
        d->z.avail_out = PIECE;
        int rc = inflate(&d->z, Z_SYNC_FLUSH);
        size_t n = PIECE - d->z.avail_out;
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return refuse(d, "it is not what its Content-Encoding says");
        if (n && look(d, n) != DECODE_OK)
            return DECODE_REFUSED;
        d->ended = rc == Z_STREAM_END;
        if (!d->ended && d->z.avail_in == 0 && d->z.avail_out != 0)
            return DECODE_OK;
        if (rc == Z_BUF_ERROR && n == 0)
            return DECODE_OK;
    }
}

enum decode_result decode_feed(struct decode *d, struct span in, bool last, struct dynbuf *out)
{
    /* In pieces, so that there are many moments at which nothing has to be held. */
    while (in.n) {
        struct span part = span_first(in, 4096);
        in = span_from(in, part.n);
        d->in += part.n;
        if (inflate_all(d, part) != DECODE_OK)
            return DECODE_REFUSED;
        if (dynbuf_add(&d->held, part) != 0)
            return refuse(d, "no memory to look into it");
        if (d->look.held.n == 0) {
            if (dynbuf_add(out, dynbuf_span(&d->held)) != 0)
                return refuse(d, "no memory to look into it");
            dynbuf_reset(&d->held);
        }
    }
    if (!last)
        return DECODE_OK;
    if (!d->ended && d->in > 0)
        return refuse(d, "the encoded body is cut short");
    if (dynbuf_add(out, dynbuf_span(&d->held)) != 0)
        return refuse(d, "no memory to look into it");
    dynbuf_reset(&d->held);
    return DECODE_OK;
}
