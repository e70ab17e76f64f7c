#include "proxy/carrier/scrub/decode.h"

#include <stdlib.h>

enum { PIECE = 32 * 1024 };

struct decode {
    struct coder *coder;
    struct scrub_stream raw, look; /* the bytes as they came; what they decode to */
    struct dynbuf held, plain;     /* searched as they came, not yet as decoded; decoded bytes that may go */
    uint64_t in, out;              /* bytes in all: encoded, decoded */
    uint64_t gone, clear;          /* of those, encoded that went on, decoded that may */
    uint64_t edge, edge_out;       /* the block's end waited for, in both counts; 0: none yet */
    bool large;
    size_t have; /* decoded bytes in piece, not yet searched */
    const char *why;
    uint8_t piece[PIECE];
};

struct decode *decode_new(enum coding c, struct scrub *set)
{
    struct decode *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return NULL;
    if ((d->coder = coder_new(c)) == NULL) {
        free(d);
        return NULL;
    }
    d->why = "decoding failed";
    d->large = coding_is_large(c);
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
    coder_free(&(*d)->coder);
    scrub_end(&(*d)->raw);
    scrub_end(&(*d)->look);
    dynbuf_wipe(&(*d)->held);
    dynbuf_wipe(&(*d)->plain);
    explicit_bzero((*d)->piece, PIECE);
    free(*d);
    *d = NULL;
}

bool decode_is_large(const struct decode *d)
{
    return d != NULL && d->large;
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

/* What lies before a cut of the encoding goes on once all that it decodes to may. */
static void note_edge(struct decode *d, const struct coder_step *s)
{
    if (!s->cut || d->edge > d->gone)
        return;
    d->edge = d->in - s->in.n - s->back;
    d->edge_out = d->out;
}

static enum decode_result decode_all(struct decode *d, struct span in)
{
    struct coder_step s = {.in = in};
    /* Also without input while the piece is full. With input and room a decoder always gets on, if only by bits. */
    while (s.in.n > 0 || d->have == PIECE) {
        if (d->have == PIECE && look(d, false) != DECODE_OK)
            return DECODE_REFUSED;
        if (coder_ended(d->coder) && s.in.n == 0)
            break;
        if (coder_ended(d->coder) && !coder_again(d->coder))
            return refuse(d, "bytes follow the end of the encoded body");
        if (!coder_step(d->coder, s.in, d->piece + d->have, PIECE - d->have, &s))
            return refuse(d, "it is not what its Content-Encoding says");
        d->out += s.made;
        d->have += s.made;
        note_edge(d, &s);
    }
    return look(d, false);
}

/* Bytes that were searched as they came wait for what they decode to. */
static enum decode_result take(struct decode *d, struct span part, bool last)
{
    if (scrub_feed(&d->raw, part, last, &d->held) != 0)
        return refuse(d, "too much of it has to wait until it may go on");
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
        if (take(d, part, false) != DECODE_OK || decode_all(d, part) != DECODE_OK)
            return DECODE_REFUSED;
        if (d->edge > d->gone && d->clear >= d->edge_out && give(d, d->edge, out) != DECODE_OK)
            return DECODE_REFUSED;
    }
    if (!last)
        return DECODE_OK;
    if (!coder_ended(d->coder) && d->in > 0)
        return refuse(d, "the encoded body is cut short");
    if (look(d, true) != DECODE_OK)
        return DECODE_REFUSED;
    return take(d, SPAN_NONE, true) == DECODE_OK ? give(d, d->in, out) : DECODE_REFUSED;
}
