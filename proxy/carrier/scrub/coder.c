#include "proxy/carrier/scrub/coder.h"

#include <brotli/decode.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

struct coder {
    enum coding coding;
    bool ended, begun, bare;
    z_stream z;
    BrotliDecoderState *br;
    ZSTD_DStream *zstd;
};

static const struct {
    const char *name;
    enum coding coding;
} names[] = {
    {"identity", CODING_IDENTITY}, {"gzip", CODING_GZIP}, {"x-gzip", CODING_GZIP},
    {"deflate", CODING_DEFLATE},   {"br", CODING_BR},     {"zstd", CODING_ZSTD},
};

enum coding coding_of(struct span value)
{
    value = span_trim(value);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (span_ieq(value, span_str(names[i].name)))
            return names[i].coding;
    return value.n == 0 ? CODING_IDENTITY : CODING_UNKNOWN;
}

bool coding_is_large(enum coding c)
{
    return c == CODING_BR || c == CODING_ZSTD;
}

static bool begin(struct coder *c)
{
    switch (c->coding) {
    case CODING_GZIP: return inflateInit2(&c->z, 15 + 16) == Z_OK;
    case CODING_DEFLATE: return inflateInit2(&c->z, 15) == Z_OK;
    case CODING_BR: return (c->br = BrotliDecoderCreateInstance(NULL, NULL, NULL)) != NULL;
    case CODING_ZSTD:
        c->zstd = ZSTD_createDStream();
        return c->zstd != NULL &&
               !ZSTD_isError(ZSTD_DCtx_setParameter(c->zstd, ZSTD_d_windowLogMax, CODER_ZSTD_WINDOW_LOG));
    case CODING_UNKNOWN:
    case CODING_IDENTITY: break;
    }
    return false;
}

struct coder *coder_new(enum coding coding)
{
    struct coder *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->coding = coding;
    if (!begin(c))
        coder_free(&c);
    return c;
}

void coder_free(struct coder **c)
{
    if (c == NULL || *c == NULL)
        return;
    if ((*c)->coding == CODING_GZIP || (*c)->coding == CODING_DEFLATE)
        inflateEnd(&(*c)->z);
    if ((*c)->br != NULL)
        BrotliDecoderDestroyInstance((*c)->br);
    (void)ZSTD_freeDStream((*c)->zstd);
    free(*c);
    *c = NULL;
}

/* Some servers send deflate without its zlib wrapper (RFC 9110 section 8.4.1.2 knows them), and every client takes
 * that. The first byte tells: a wrapper's low half is 8; bare, it would be a stored block with a bit set that no
 * encoder sets. */
static bool without_wrapper(struct coder *c, struct span in)
{
    bool first = !c->begun && in.n > 0;
    c->begun |= first;
    c->bare |= first && c->coding == CODING_DEFLATE && (in.p[0] & 15) != 8;
    return first && c->bare;
}

/* inflate stops behind each block; the first bits of the next may lie in the last byte. */
static bool step_inflate(struct coder *c, struct coder_step *s, uint8_t *out, size_t room)
{
    if (without_wrapper(c, s->in) && inflateReset2(&c->z, -15) != Z_OK)
        return false;
    c->z.next_in = (Bytef *)(uintptr_t)s->in.p;
    c->z.avail_in = (uInt)s->in.n;
    c->z.next_out = out;
    c->z.avail_out = (uInt)room;
    int rc = inflate(&c->z, Z_BLOCK);
    unsigned state = (unsigned)c->z.data_type;
    if (c->bare && rc == Z_OK && (state & 192) == 192)
        rc = inflate(&c->z, Z_BLOCK); /* behind the last block; without a wrapper no byte comes any more */
    c->ended = rc == Z_STREAM_END;
    s->made = room - c->z.avail_out;
    s->in = span_from(s->in, s->in.n - c->z.avail_in);
    s->cut = state & 128;
    s->back = ((state & 63) + 7) / 8;
    return rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR;
}

static bool step_brotli(struct coder *c, struct coder_step *s, uint8_t *out, size_t room)
{
    size_t left = room, n = s->in.n;
    const uint8_t *p = s->in.p;
    BrotliDecoderResult rc = BrotliDecoderDecompressStream(c->br, &n, &p, &left, &out, NULL);
    s->in = span_of(p, n);
    s->made = room - left;
    s->cut = c->ended = rc == BROTLI_DECODER_RESULT_SUCCESS;
    return rc != BROTLI_DECODER_RESULT_ERROR;
}

static bool step_zstd(struct coder *c, struct coder_step *s, uint8_t *out, size_t room)
{
    ZSTD_inBuffer in = {s->in.p, s->in.n, 0};
    ZSTD_outBuffer to = {out, room, 0};
    size_t rc = ZSTD_decompressStream(c->zstd, &to, &in);
    s->in = span_from(s->in, in.pos);
    s->made = to.pos;
    s->cut = c->ended = rc == 0;
    return !ZSTD_isError(rc);
}

bool coder_step(struct coder *c, struct span in, uint8_t *out, size_t room, struct coder_step *step)
{
    *step = (struct coder_step){.in = in};
    switch (c->coding) {
    case CODING_GZIP:
    case CODING_DEFLATE: return step_inflate(c, step, out, room);
    case CODING_BR: return step_brotli(c, step, out, room);
    case CODING_ZSTD: return step_zstd(c, step, out, room);
    case CODING_UNKNOWN:
    case CODING_IDENTITY: break;
    }
    return false;
}

bool coder_ended(const struct coder *c)
{
    return c->ended;
}

bool coder_again(struct coder *c)
{
    c->ended = false; /* zstd begins the next frame by itself */
    return c->coding == CODING_ZSTD || (c->coding == CODING_GZIP && inflateReset(&c->z) == Z_OK);
}
