#include "common/sign/aws_chunked.h"

enum { SIGNATURE = 64 };

static bool lower_hex(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (hex_digit(s.p[i]) < 0 || (s.p[i] >= 'A' && s.p[i] <= 'F'))
            return false;
    return s.n == SIGNATURE;
}

enum aws_payload aws_payload_of(struct span value)
{
    if (lower_hex(value))
        return AWS_PAYLOAD_HASH;
    if (span_eq(value, SPAN("UNSIGNED-PAYLOAD")))
        return AWS_PAYLOAD_UNSIGNED;
    if (span_eq(value, SPAN("STREAMING-UNSIGNED-PAYLOAD-TRAILER")))
        return AWS_PAYLOAD_UNSIGNED_TRAILER;
    if (span_eq(value, SPAN("STREAMING-AWS4-HMAC-SHA256-PAYLOAD")))
        return AWS_PAYLOAD_CHUNKS;
    if (span_eq(value, SPAN("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER")))
        return AWS_PAYLOAD_CHUNKS_TRAILER;
    return AWS_PAYLOAD_UNKNOWN;
}

int aws_chunked_begin(struct aws_chunked *c, enum aws_payload payload, struct span body)
{
    bool both = payload == AWS_PAYLOAD_CHUNKS_TRAILER, bare = payload == AWS_PAYLOAD_UNSIGNED_TRAILER;
    *c = (struct aws_chunked){.body = body,
                              .chunks_signed = both || payload == AWS_PAYLOAD_CHUNKS,
                              .trailer_signed = both,
                              .trailer_wanted = both || bare};
    return c->chunks_signed || bare ? 0 : -1;
}

/* A line up to CRLF; the line feed alone ends none. */
static int take_line(struct aws_chunked *c, struct span *line)
{
    struct span rest = span_from(c->body, c->at);
    size_t n = span_find(rest, SPAN("\r\n"));
    if (n == rest.n)
        return -1;
    *line = span_first(rest, n);
    c->at += n + 2;
    return 0;
}

static int take_size(struct span text, size_t *size)
{
    size_t v = 0;
    if (text.n == 0 || text.n > AWS_SIZE_DIGITS || (text.n > 1 && text.p[0] == '0'))
        return -1;
    for (size_t i = 0; i < text.n; i++) {
        int d = hex_digit(text.p[i]);
        if (d < 0)
            return -1;
        v = v << 4 | (size_t)d;
    }
    *size = v;
    return 0;
}

static int take_head(struct aws_chunked *c, size_t *size, size_t *signature)
{
    struct span line, text, extension;
    size_t before = c->at;
    *signature = 0;
    if (take_line(c, &line) != 0)
        return -1;
    bool has = span_cut(line, ';', &text, &extension);
    if (has != c->chunks_signed || take_size(text, size) != 0)
        return -1;
    if (!has)
        return 0;
    if (!span_starts(extension, SPAN("chunk-signature=")) || !lower_hex(span_from(extension, 16)))
        return -1;
    *signature = before + text.n + 1 + 16;
    return 0;
}

static int take_trailer(struct aws_chunked *c, struct span line, size_t at)
{
    struct http_field f;
    if (!span_cut(line, ':', &f.name, &f.value) || !http_is_token(f.name))
        return -1;
    size_t begins = at + f.name.n + 1;
    if (span_ieq(f.name, SPAN("x-amz-trailer-signature"))) {
        if (!c->trailer_signed || c->trailer_signature != 0 || !lower_hex(f.value))
            return -1;
        c->trailer_signature = begins;
        return 0;
    }
    if (f.value.n && f.value.p[f.value.n - 1] == '\n')
        f.value.n--;
    for (size_t i = 0; i < f.value.n; i++)
        if (f.value.p[i] < 0x20 || f.value.p[i] >= 0x7f)
            return -1;
    if (c->ntrailer == AWS_TRAILERS_MAX || c->trailer_signature != 0 || !c->trailer_wanted)
        return -1;
    c->trailer[c->ntrailer++] = f;
    return 0;
}

static int take_trailers(struct aws_chunked *c)
{
    for (;;) {
        struct span line;
        size_t at = c->at;
        if (take_line(c, &line) != 0)
            return -1;
        if (line.n == 0)
            break;
        if (take_trailer(c, line, at) != 0)
            return -1;
    }
    return c->at == c->body.n && c->trailer_signed == (c->trailer_signature != 0) ? 0 : -1;
}

static int next(struct aws_chunked *c, struct aws_chunk *out)
{
    size_t size;
    if (take_head(c, &size, &out->signature) != 0)
        return -1;
    if (size == 0) {
        c->ended = true;
        out->data = SPAN_NONE;
        return take_trailers(c) == 0 ? 1 : -1;
    }
    struct span rest = span_from(c->body, c->at);
    if (rest.n < 2 || size > rest.n - 2 || rest.p[size] != '\r' || rest.p[size + 1] != '\n')
        return -1;
    out->data = span_first(rest, size);
    c->at += size + 2;
    c->decoded += size;
    return 1;
}

int aws_chunked_next(struct aws_chunked *c, struct aws_chunk *out)
{
    *out = (struct aws_chunk){.signature = 0};
    if (c->at > c->body.n)
        return -1;
    if (c->ended)
        return 0;
    int rc = next(c, out);
    if (rc < 0) {
        c->at = c->body.n + 1; /* no later call begins anew in the middle */
        c->ended = true;
    }
    return rc;
}

void aws_chunked_trailer_digest(const struct aws_chunked *c, struct digest *out)
{
    struct digest_ctx *d = digest_begin();
    for (size_t i = 0; i < c->ntrailer; i++) {
        digest_add(d, c->trailer[i].name);
        digest_add(d, SPAN(":"));
        digest_add(d, span_trim(c->trailer[i].value));
        digest_add(d, SPAN("\n"));
    }
    digest_end(d, out);
}
