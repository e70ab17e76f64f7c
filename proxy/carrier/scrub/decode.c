#include "proxy/carrier/scrub/decode.h"

#include <stdlib.h>
#include <zlib.h>

enum { PIECE = 32 * 1024 };

struct decode {
    z_stream z;
    enum decode_coding coding;
    struct scrub_stream raw, look; /* the bytes as they came; what they decode to */
    struct dynbuf held, plain;     /* searched as they came, not yet as decoded; decoded bytes that may go */
    uint64_t in, out;              /* bytes in all: encoded, decoded */
    uint64_t gone, clear;          /* of those, encoded that went on, decoded that may */
    uint64_t edge, edge_out;       /* the block's end waited for, in both counts; 0: none yet */
    size_t have;                   /* decoded bytes in piece, not yet searched */
    bool ended;                    /* the compressed stream (or one gzip member) is complete */
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
    scrub_begin(&d->raw, set);
    scrub_begin(&d->look, set);
    return d;
}

void decode_free(struct decode **d)
{
    if (d == NULL || *d == NULL)
        return;
    inflateEnd(&(*d)->z);
    scrub_end(&(*d)->raw);
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

/* Search what was decoded so far. */
static enum decode_result look(struct decode *d, bool last)
{
    if (d->out > DECODE_OUT_MAX)
        return refuse(d, "it decodes to more than can be looked at");
    if (d->out > DECODE_RATIO_FROM && d->out / DECODE_RATIO > d->in)
        return refuse(d, "it decodes to far more than it weighs");
    dynbuf_reset(&d->plain);
    if (scrub_feed(&d->look, span_of(d->piece, d->have), last, &d->plain) != 0)
        return refuse(d, "no memory to look into it");
    d->have = 0;
    d->clear += d->plain.n;
    return d->look.found ? refuse(d, "a secret is in it") : DECODE_OK;
}

/* A block of the encoding says ahead which bytes are in it, by its table, so it goes on as a whole: where inflate has
 * stopped behind one, encoded bytes may be cut once all that they decode to may go. The first bits of the next block
 * may lie in the last byte. */
static void note_edge(struct decode *d)
{
    unsigned state = (unsigned)d->z.data_type;
    if (!(state & 128) || d->edge > d->gone)
        return;
    d->edge = d->in - d->z.avail_in - ((state & 63) + 7) / 8;
    d->edge_out = d->out;
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
    int rc = Z_OK;
    d->z.next_in = (Bytef *)(uintptr_t)in.p;
    d->z.avail_in = (uInt)in.n;
    /* Also without input while the piece is full. With input and room inflate always gets on, if only by bits. */
    while (d->z.avail_in > 0 || d->have == PIECE) {
        if (d->have == PIECE && look(d, false) != DECODE_OK)
            return DECODE_REFUSED;
        if (d->ended && d->z.avail_in > 0 && next_member(d) != DECODE_OK)
            return DECODE_REFUSED;
        d->z.next_out = d->piece + d->have;
        d->z.avail_out = (uInt)(PIECE - d->have);
        rc = inflate(&d->z, Z_BLOCK);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return refuse(d, "it is not what its Content-Encoding says");
        d->out += PIECE - d->have - d->z.avail_out;
        d->have = PIECE - d->z.avail_out;
        note_edge(d);
        d->ended = rc == Z_STREAM_END;
    }
    return look(d, false);
}

/* Bytes that were searched as they came wait for what they decode to. */
static enum decode_result take(struct decode *d, struct span part, bool last)
{
    if (scrub_feed(&d->raw, part, last, &d->held) != 0)
        return refuse(d, "no memory to look into it");
    return d->raw.found ? refuse(d, "a secret is in it") : DECODE_OK;
}

static enum decode_result give(struct decode *d, uint64_t to, struct dynbuf *out)
{
    size_t n = to - d->gone < d->held.n ? (size_t)(to - d->gone) : d->held.n;
    if (dynbuf_add(out, span_of(d->held.p, n)) != 0)
        return refuse(d, "no memory to look into it");
    dynbuf_drop(&d->held, n);
    d->gone += n;
    return DECODE_OK;
}

enum decode_result decode_feed(struct decode *d, struct span in, bool last, struct dynbuf *out)
{
    while (in.n) { /* in pieces, so that there are many moments at which something may go */
        struct span part = span_first(in, 4096);
        in = span_from(in, part.n);
        d->in += part.n;
        if (take(d, part, false) != DECODE_OK || inflate_all(d, part) != DECODE_OK)
            return DECODE_REFUSED;
        if (d->edge > d->gone && d->clear >= d->edge_out && give(d, d->edge, out) != DECODE_OK)
            return DECODE_REFUSED;
    }
    if (!last)
        return DECODE_OK;
    if (!d->ended && d->in > 0)
        return refuse(d, "the encoded body is cut short");
    if (look(d, true) != DECODE_OK)
        return DECODE_REFUSED;
    return take(d, SPAN_NONE, true) == DECODE_OK ? give(d, d->in, out) : DECODE_REFUSED;
}
