#include "common/http/chars.h"
#include "common/id.h"
#include "common/http/head.h"

enum state {
    BODY_BAD = 0,
    BODY_PLAIN, /* not chunked, or no body */
    BODY_SIZE,
    BODY_EXTENSION, /* behind a ';' */
    BODY_EXTENSION_NAME,
    BODY_EXTENSION_VALUE, /* behind its '=' */
    BODY_EXTENSION_TOKEN,
    BODY_EXTENSION_QUOTED,
    BODY_EXTENSION_END, /* behind the closing quote */
    BODY_SIZE_LF,
    BODY_DATA,
    BODY_DATA_CR,
    BODY_DATA_LF,
    BODY_LINE, /* trailers: at the start of a line */
    BODY_NAME,
    BODY_VALUE,
    BODY_LINE_LF,
    BODY_LAST_LF,
    BODY_DONE
};

void http_body_begin(struct http_body *b, const struct http_head *h)
{
    *b = (struct http_body){.framing = h->framing, .left = h->length, .state = BODY_PLAIN};
    b->response = h->status != 0;
    if (h->framing == HTTP_CHUNKED) {
        b->state = BODY_SIZE;
        b->left = 0;
    } else if (h->framing == HTTP_NO_BODY || (h->framing == HTTP_LENGTH && h->length == 0)) {
        b->state = BODY_DONE;
    } else if (h->framing != HTTP_LENGTH && (h->framing != HTTP_UNTIL_CLOSE || !b->response)) {
        b->state = BODY_BAD;
    }
}

static enum http_result refuse(struct http_body *b, const char *code, const char *why)
{
    b->state = BODY_BAD;
    return http_refuse(&b->err, b->response ? 502 : 400, code, why);
}

/* RFC 9112 section 7.1.1, without its blanks and without '\\' in quotes, which parsers read differently. */
static enum state in_extension(enum state s, uint8_t c)
{
    bool token = http_char_is(c, CH_TOKEN);
    switch (s) {
    case BODY_EXTENSION: return token ? BODY_EXTENSION_NAME : BODY_BAD;
    case BODY_EXTENSION_VALUE: return token ? BODY_EXTENSION_TOKEN : c == '"' ? BODY_EXTENSION_QUOTED : BODY_BAD;
    case BODY_EXTENSION_QUOTED:
        if (c == '"')
            return BODY_EXTENSION_END;
        return http_char_is(c, CH_VALUE) && c != '\\' ? s : BODY_BAD;
    case BODY_EXTENSION_NAME:
        if (c == '=')
            return BODY_EXTENSION_VALUE;
        break;
    default: break;
    }
    if (token && (s == BODY_EXTENSION_NAME || s == BODY_EXTENSION_TOKEN))
        return s;
    return c == ';' ? BODY_EXTENSION : c == '\r' ? BODY_SIZE_LF : BODY_BAD;
}

/* They mean nothing to who does not know them, and are dropped. */
static enum http_result extension_byte(struct http_body *b, uint8_t c)
{
    if (++b->extension > HTTP_EXTENSIONS_MAX)
        return refuse(b, "chunk-extensions-too-long", "the extensions of the chunks are over the limit");
    b->state = b->state == BODY_SIZE ? BODY_EXTENSION : in_extension((enum state)b->state, c);
    if (b->state == BODY_BAD)
        return refuse(b, "bad-chunk-extension", "a chunk's extension is not ;name, ;name=value or ;name=\"value\"");
    return HTTP_MORE;
}

static enum http_result size_byte(struct http_body *b, uint8_t c)
{
    int v = hex_digit(c);
    if (c == '\r' && b->digits > 0) {
        b->state = BODY_SIZE_LF;
        return HTTP_MORE;
    }
    if (c == ';' && b->digits > 0)
        return extension_byte(b, c);
    if (v < 0)
        return refuse(b, "bad-chunk-size", "a chunk size is not plain hexadecimal digits");
    if (b->digits == 16 || (b->digits > 0 && b->left == 0 && !b->response))
        return refuse(b, "bad-chunk-size", "a chunk size has leading zeros or too many digits");
    b->left = b->left * 16 + (unsigned)v;
    b->digits++;
    if (b->left > HTTP_CHUNK_MAX)
        return refuse(b, "chunk-too-long", "a single chunk is over the limit");
    return HTTP_MORE;
}

static enum http_result trailer_byte(struct http_body *b, uint8_t c)
{
    unsigned value = CH_VALUE | (b->response ? CH_OBS : 0);
    if (++b->trailer > HTTP_TRAILERS_MAX)
        return refuse(b, "trailers-too-long", "the trailer fields are over the limit");
    if (b->state == BODY_LINE && c == '\r')
        b->state = BODY_LAST_LF;
    else if ((b->state == BODY_LINE || b->state == BODY_NAME) && http_char_is(c, CH_TOKEN))
        b->state = BODY_NAME;
    else if (b->state == BODY_NAME && c == ':')
        b->state = BODY_VALUE;
    else if (b->state == BODY_VALUE && c == '\r')
        b->state = BODY_LINE_LF;
    else if (b->state == BODY_LINE_LF && c == '\n')
        b->state = BODY_LINE;
    else if (b->state == BODY_LAST_LF && c == '\n')
        b->state = BODY_DONE;
    else if (b->state != BODY_VALUE || !http_char_is(c, value))
        return refuse(b, "bad-trailer", "what follows the last chunk is not trailer fields and an empty line");
    return b->state == BODY_DONE ? HTTP_OK : HTTP_MORE;
}

/* One byte between the data of two chunks. */
static enum http_result frame_byte(struct http_body *b, uint8_t c)
{
    switch ((enum state)b->state) {
    case BODY_SIZE: return size_byte(b, c);
    case BODY_EXTENSION:
    case BODY_EXTENSION_NAME:
    case BODY_EXTENSION_VALUE:
    case BODY_EXTENSION_TOKEN:
    case BODY_EXTENSION_QUOTED:
    case BODY_EXTENSION_END: return extension_byte(b, c);
    case BODY_SIZE_LF:
        if (c != '\n')
            return refuse(b, "bad-chunk-size", "a chunk size does not end in CRLF");
        b->state = b->left ? BODY_DATA : BODY_LINE;
        return HTTP_MORE;
    case BODY_DATA_CR:
    case BODY_DATA_LF:
        if (c != (b->state == BODY_DATA_CR ? '\r' : '\n'))
            return refuse(b, "bad-chunk-end", "the data of a chunk is not followed by CRLF");
        b->digits = 0;
        b->state = b->state == BODY_DATA_CR ? BODY_DATA_LF : BODY_SIZE;
        return HTTP_MORE;
    case BODY_LINE:
    case BODY_NAME:
    case BODY_VALUE:
    case BODY_LINE_LF:
    case BODY_LAST_LF: return trailer_byte(b, c);
    default: return refuse(b, "bad-state", "this body is not being read");
    }
}

static void take(struct http_body *b, struct span in, size_t *used, struct span *data)
{
    struct span rest = span_from(in, *used);
    *data = b->left < rest.n ? span_first(rest, (size_t)b->left) : rest;
    b->left -= data->n;
    *used += data->n;
}

static enum http_result chunked_step(struct http_body *b, struct span in, size_t *used, struct span *data)
{
    while (*used < in.n) {
        if (b->state == BODY_DATA) {
            if (data->n) /* one span a step */
                return HTTP_MORE;
            take(b, in, used, data);
            if (b->left == 0)
                b->state = BODY_DATA_CR;
            continue;
        }
        enum http_result r = frame_byte(b, in.p[*used]);
        *used += r != HTTP_BAD;
        if (r != HTTP_MORE)
            return r;
    }
    return HTTP_MORE;
}

enum http_result http_body_step(struct http_body *b, struct span in, size_t *used, struct span *data)
{
    *used = 0;
    *data = SPAN_NONE;
    if (b->state == BODY_DONE)
        return HTTP_OK;
    if (b->state == BODY_BAD)
        return b->err.code ? HTTP_BAD : refuse(b, "bad-state", "this body is not being read");
    if (b->framing == HTTP_CHUNKED) {
        enum http_result r = chunked_step(b, in, used, data);
        if (r == HTTP_BAD)
            *data = SPAN_NONE;
        return r;
    }
    if (b->framing == HTTP_UNTIL_CLOSE) {
        *data = in;
        *used = in.n;
        return HTTP_MORE;
    }
    take(b, in, used, data);
    if (b->left == 0)
        b->state = BODY_DONE;
    return b->left == 0 ? HTTP_OK : HTTP_MORE;
}

enum http_result http_body_eof(struct http_body *b)
{
    if (b->state == BODY_PLAIN && b->framing == HTTP_UNTIL_CLOSE)
        b->state = BODY_DONE;
    if (b->state == BODY_DONE)
        return HTTP_OK;
    if (b->state == BODY_BAD && b->err.code)
        return HTTP_BAD;
    return refuse(b, "body-cut-short", "the connection ended before the body did");
}
