#include "common/http/head.h"
#include "common/http/chars.h"

enum http_result http_refuse(struct http_err *e, unsigned status, const char *code, const char *why)
{
    *e = (struct http_err){status, code, why};
    return HTTP_BAD;
}

void http_head_reset(struct http_head *h)
{
    memset(h, 0, offsetof(struct http_head, field)); /* of these nfields says how many count */
}

static enum http_result refuse_name(struct span line, size_t at, unsigned status, struct http_err *e)
{
    if (at == 0 && line.n && (line.p[0] == ' ' || line.p[0] == '\t'))
        return http_refuse(e, status, "obs-fold", "a header line begins with white space (line folding is refused)");
    if (at == 0 && line.n && line.p[0] == ':')
        return http_refuse(e, status, "empty-field-name", "a header field has no name");
    if (at == line.n)
        return http_refuse(e, status, "no-colon", "a header line has no colon");
    return http_refuse(e, status, "bad-field-name", "a header field name holds a byte that is not allowed there");
}

/* One field line without its line end. Stored while there is room; http_head_scan counts. */
static enum http_result field_line(struct span line, const struct http_side *side, struct http_head *h,
                                   struct http_err *e)
{
    unsigned status = side->response ? 502 : 400;
    size_t colon = http_run(line, CH_TOKEN);
    if (colon == 0 || colon == line.n || line.p[colon] != ':')
        return refuse_name(line, colon, status, e);
    struct span value = span_of(line.p + colon + 1, line.n - colon - 1);
    if (http_value_run(value, CH_OBS) != value.n)
        return http_refuse(e, status, "bad-field-value", "a header value holds a control byte");
    if (h->nfields < side->fields)
        h->field[h->nfields] = (struct http_field){span_of(line.p, colon), span_trim(value)};
    h->nfields++;
    return HTTP_OK;
}

static enum http_result too_long(const struct http_side *side, bool in_start_line, struct http_err *e)
{
    if (side->response)
        return http_refuse(e, 502, "head-too-long", "the answer's header block is over the limit");
    if (in_start_line)
        return http_refuse(e, 414, "target-too-long", "the request line is over the limit");
    return http_refuse(e, 431, "head-too-long", "the header block is over the limit");
}

/* The head is complete in in[0..n): was everything read in this call? */
static enum http_result head_done(const struct http_side *side, struct http_head *h, struct http_err *e)
{
    if (h->nfields <= side->fields)
        return HTTP_OK;
    h->nfields = 0;
    return http_refuse(e, side->response ? 502 : 431, "too-many-fields",
                       "there are more header fields than the limit");
}

/* Lines are checked as they complete, each once, starting at the line that holds
 * in[from]; with from == 0 the fields stored in h are the whole list. */
static enum http_result scan_from(struct span in, const struct http_side *side, size_t from, struct http_head *h,
                                  size_t *used, struct http_err *e)
{
    unsigned status = side->response ? 502 : 400;
    const uint8_t *before = from ? memrchr(in.p, '\n', from) : NULL;
    size_t line = before ? (size_t)(before - in.p) + 1 : 0;
    for (;;) {
        const uint8_t *lf = from < in.n ? memchr(in.p + from, '\n', in.n - from) : NULL;
        if (lf == NULL)
            return in.n < side->bytes ? HTTP_MORE : too_long(side, line == 0, e);
        size_t end = (size_t)(lf - in.p);
        if (end == line || in.p[end - 1] != '\r')
            return http_refuse(e, status, "bare-lf", "a line ends without CR before its LF");
        struct span text = span_of(in.p + line, end - 1 - line);
        if (line > 0 && text.n == 0) {
            *used = end + 1;
            return HTTP_OK;
        }
        enum http_result r = line == 0 ? side->start(text, h, e) : field_line(text, side, h, e);
        if (r != HTTP_OK)
            return r;
        line = from = end + 1;
    }
}

enum http_result http_head_scan(struct span in, const struct http_side *side, size_t *seen, struct http_head *h,
                                size_t *used, struct http_err *e)
{
    struct span lim = span_first(in, side->bytes);
    size_t from = *seen <= lim.n ? *seen : 0;
    /* Nothing new that could end a line: what is here was checked before. */
    if (from && lim.n < side->bytes && memchr(lim.p + from, '\n', lim.n - from) == NULL) {
        *seen = lim.n;
        return HTTP_MORE;
    }
    enum http_result r = scan_from(lim, side, from, h, used, e);
    if (r == HTTP_OK && from != 0) {
        http_head_reset(h);
        r = scan_from(lim, side, 0, h, used, e);
    }
    *seen = lim.n;
    return r == HTTP_OK ? head_done(side, h, e) : r;
}

/* The fields above by length of name, which leaves one or two to compare. */
static enum http_known known_field(struct span name)
{
    switch (name.n) {
    case 4: return http_name_is(name, SPAN("host")) ? KNOWN_HOST : KNOWN_NONE;
    case 5: return http_name_is(name, SPAN("range")) ? KNOWN_RANGE : KNOWN_NONE;
    case 6:
        if (http_name_is(name, SPAN("cookie")))
            return KNOWN_COOKIE;
        if (http_name_is(name, SPAN("origin")))
            return KNOWN_ORIGIN;
        return http_name_is(name, SPAN("expect")) ? KNOWN_EXPECT : KNOWN_NONE;
    case 7: return http_name_is(name, SPAN("upgrade")) ? KNOWN_UPGRADE : KNOWN_NONE;
    case 10: return http_name_is(name, SPAN("connection")) ? KNOWN_CONNECTION : KNOWN_NONE;
    case 12:
        if (http_name_is(name, SPAN("content-type")))
            return KNOWN_CONTENT_TYPE;
        if (http_name_is(name, SPAN("x-amz-target")))
            return KNOWN_AMZ_TARGET;
        return http_name_is(name, SPAN("max-forwards")) ? KNOWN_MAX_FORWARDS : KNOWN_NONE;
    case 13:
        if (http_name_is(name, SPAN("authorization")))
            return KNOWN_AUTHORIZATION;
        return http_name_is(name, SPAN("content-range")) ? KNOWN_CONTENT_RANGE : KNOWN_NONE;
    case 14: return http_name_is(name, SPAN("content-length")) ? KNOWN_LENGTH : KNOWN_NONE;
    case 16: return http_name_is(name, SPAN("content-encoding")) ? KNOWN_CONTENT_ENCODING : KNOWN_NONE;
    case 17: return http_name_is(name, SPAN("transfer-encoding")) ? KNOWN_CODING : KNOWN_NONE;
    case 19: return http_name_is(name, SPAN("proxy-authorization")) ? KNOWN_PROXY_AUTHORIZATION : KNOWN_NONE;
    default: return KNOWN_NONE;
    }
}

/* Of a known field's name: one that is not spelled as it is. */
static bool has_other_sign(struct span name)
{
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i], letter = c | 0x20;
        if (!(letter >= 'a' && letter <= 'z') && !(c >= '0' && c <= '9') && c != '-')
            return true;
    }
    return false;
}

static bool may_repeat(enum http_known id, bool response)
{
    switch (id) {
    case KNOWN_CONNECTION: /* lists */
    case KNOWN_UPGRADE: return true;
    case KNOWN_LENGTH:
    case KNOWN_CODING:
    case KNOWN_CONTENT_TYPE:
    case KNOWN_CONTENT_ENCODING:
    case KNOWN_CONTENT_RANGE: return false;
    default: /* the rest mean nothing in a response */ return response;
    }
}

static enum http_result connection_options(struct span value, bool response, struct http_seen *k, struct http_err *e)
{
    struct span item;
    bool more = true;
    while (more) {
        more = span_cut(value, ',', &item, &value);
        item = span_trim(item);
        if (item.n && !http_is_token(item))
            return http_refuse(e, response ? 502 : 400, "bad-connection", "Connection is not a list of names");
        k->close = k->close || span_ieq(item, SPAN("close"));
        k->keep_alive = k->keep_alive || span_ieq(item, SPAN("keep-alive"));
    }
    return HTTP_OK;
}

/* Servers behind others say these twice; said in the same bytes, it is one. */
static bool said_again(const struct http_field *first, const struct http_field *f, enum http_known id, bool response)
{
    return response && first != NULL && (id == KNOWN_LENGTH || id == KNOWN_CONTENT_TYPE) &&
           span_eq(first->value, f->value);
}

enum http_result http_head_fields(struct http_head *h, bool response, struct http_seen *k, struct http_err *e)
{
    unsigned status = response ? 502 : 400;
    size_t kept = 0;
    *k = (struct http_seen){0};
    for (size_t i = 0; i < h->nfields; i++) {
        const struct http_field *f = &h->field[kept];
        h->field[kept++] = h->field[i];
        enum http_known id = known_field(f->name);
        if (id == KNOWN_NONE)
            continue;
        if (has_other_sign(f->name))
            return http_refuse(e, status, "field-look-alike",
                               "a field name with another sign for '-' imitates a known field");
        if (!response && http_value_run(f->value, 0) != f->value.n)
            return http_refuse(e, status, "bad-field-value", "a field that is ASCII alone holds another byte");
        if (said_again(k->first[id], f, id, response)) {
            kept--;
            continue;
        }
        if (k->first[id] && !may_repeat(id, response))
            return http_refuse(e, status, "duplicate-field", "a field that may occur once is there twice");
        if (k->first[id] == NULL)
            k->first[id] = f;
        if (id == KNOWN_CONNECTION && connection_options(f->value, response, k, e) != HTTP_OK)
            return HTTP_BAD;
    }
    h->nfields = kept;
    return HTTP_OK;
}

enum http_result http_head_framing(struct http_head *h, bool response, const struct http_seen *k, struct http_err *e)
{
    unsigned status = response ? 502 : 400;
    const struct http_field *length = k->first[KNOWN_LENGTH], *coding = k->first[KNOWN_CODING];
    if (coding) {
        if (length)
            return http_refuse(
                e, status, "length-and-coding",
                "Content-Length and Transfer-Encoding are both there: where the body ends is in doubt");
        if (h->minor == 0)
            return http_refuse(e, status, "coding-in-1.0", "Transfer-Encoding does not exist in HTTP/1.0");
        if (!span_ieq(coding->value, SPAN("chunked"))) /* a name of a coding has no case; it is written anew */
            return http_refuse(e, status, "bad-transfer-encoding", "Transfer-Encoding is not \"chunked\" alone");
        h->framing = HTTP_CHUNKED;
    } else if (length) {
        if (span_u64(length->value, INT64_MAX, &h->length))
            return http_refuse(e, status, "bad-content-length", "Content-Length is not a plain decimal number");
        h->framing = HTTP_LENGTH;
    }
    return HTTP_OK;
}
