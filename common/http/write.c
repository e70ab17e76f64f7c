#include "common/http/chars.h"
#include "common/http/http.h"

static int crlf(struct dynbuf *out)
{
    return dynbuf_add(out, SPAN("\r\n"));
}

int http_write_request_line(struct dynbuf *out, struct span method, struct span target)
{
    if (!http_is_token(method) || method.n > HTTP_METHOD_MAX || target.n == 0 || target.n > HTTP_TARGET_MAX ||
        http_run(target, CH_TARGET) != target.n)
        return -1;
    (void)dynbuf_add(out, method);
    (void)dynbuf_add_byte(out, ' ');
    (void)dynbuf_add(out, target);
    return dynbuf_add(out, SPAN(" HTTP/1.1\r\n"));
}

int http_write_status_line(struct dynbuf *out, unsigned status, struct span reason)
{
    if (status < 100 || status > HTTP_STATUS_MAX || http_value_run(reason, CH_OBS) != reason.n)
        return -1;
    (void)dynbuf_add(out, SPAN("HTTP/1.1 "));
    (void)dynbuf_add_u64(out, status);
    (void)dynbuf_add_byte(out, ' ');
    (void)dynbuf_add(out, reason);
    return crlf(out);
}

int http_write_field(struct dynbuf *out, struct span name, struct span value)
{
    value = span_trim(value);
    if (!http_is_token(name) || http_value_run(value, CH_OBS) != value.n)
        return -1;
    if (http_is_framing(name) && !span_ieq(name, SPAN("host")))
        return -1;
    (void)dynbuf_add(out, name);
    (void)dynbuf_add(out, SPAN(": "));
    (void)dynbuf_add(out, value);
    return crlf(out);
}

int http_write_end(struct dynbuf *out, enum http_framing framing, uint64_t length)
{
    if (framing == HTTP_LENGTH) {
        if (length > INT64_MAX)
            return -1;
        (void)dynbuf_add(out, SPAN("Content-Length: "));
        (void)dynbuf_add_u64(out, length);
        (void)crlf(out);
    } else if (framing == HTTP_CHUNKED) {
        (void)dynbuf_add(out, SPAN("Transfer-Encoding: chunked\r\n"));
    }
    return crlf(out);
}

int http_write_chunk(struct dynbuf *out, struct span data)
{
    while (data.n) {
        struct span part = span_first(data, HTTP_CHUNK_MAX);
        (void)dynbuf_addf(out, "%zx\r\n", part.n);
        (void)dynbuf_add(out, part);
        if (crlf(out))
            return -1;
        data = span_from(data, part.n);
    }
    return dynbuf_ok(out) ? 0 : -1;
}
