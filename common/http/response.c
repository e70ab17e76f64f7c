/* Response heads: status line, framing by the request's method (RFC 9112 section 6.3). */
#include "common/http/chars.h"
#include "common/http/head.h"

static enum http_result status_line(struct span line, struct http_head *h, struct http_err *e)
{
    const uint8_t *p = line.p;
    if (line.n < 12 || memcmp(p, "HTTP/1.", 7) != 0 || (p[7] != '0' && p[7] != '1') || p[8] != ' ')
        return http_refuse(e, 502, "bad-status-line", "the answer does not begin as HTTP/1.1 or HTTP/1.0");
    h->minor = p[7] - '0';
    for (size_t i = 9; i < 12; i++) {
        if (p[i] < '0' || p[i] > '9')
            return http_refuse(e, 502, "bad-status", "the status is not three digits");
        h->status = h->status * 10 + (p[i] - '0');
    }
    if (h->status < 100 || (line.n > 12 && p[12] != ' '))
        return http_refuse(e, 502, "bad-status", "the status is not a number from 100 to 999");
    h->reason = span_from(line, 13);
    if (http_value_run(h->reason, CH_OBS) != h->reason.n)
        return http_refuse(e, 502, "bad-reason", "the reason phrase holds a control byte");
    return HTTP_OK;
}

static enum http_result response_framing(struct http_head *h, struct span method, const struct http_seen *k,
                                         struct http_err *e)
{
    bool declared = k->first[KNOWN_LENGTH] || k->first[KNOWN_CODING];
    if (h->status < 200 && declared)
        return http_refuse(e, 502, "body-on-1xx", "an interim answer declares a body");
    if (http_head_framing(h, true, k, e) != HTTP_OK)
        return HTTP_BAD;
    h->keep_alive = !k->close && (h->minor == 1 || k->keep_alive);
    bool tunnel = span_eq(method, SPAN("CONNECT")) && h->status >= 200 && h->status < 300;
    if (h->status < 200 || h->status == 204 || tunnel) {
        /* A declared body must not be there; if it comes all the same, nothing may read it as an answer. */
        if (declared && (h->framing == HTTP_CHUNKED || h->length > 0))
            h->keep_alive = false;
        h->framing = HTTP_NO_BODY;
        h->length = 0;
    } else if (h->status == 304 || span_eq(method, SPAN("HEAD"))) {
        h->framing = HTTP_NO_BODY; /* length stays: what a GET would have given */
    } else if (!declared) {
        h->framing = HTTP_UNTIL_CLOSE;
        h->keep_alive = false;
    }
    return HTTP_OK;
}

static bool may_fold(struct span line)
{
    return !http_is_framing(span_first(line, http_run(line, CH_TOKEN)));
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* The line that ends at `stop` behind the field's text so far, which ends at `end`: one blank between them, and what
 * is over behind both. Where the text ends now. */
static size_t join(uint8_t *head, size_t end, size_t from, size_t stop)
{
    while (is_blank(head[from]))
        from++;
    while (end > 0 && is_blank(head[end - 1]))
        end--;
    size_t n = stop - from;
    head[end++] = ' ';
    memmove(head + end, head + from, n);
    memset(head + end + n, ' ', stop - end - n);
    return end + n;
}

bool http_unfold(uint8_t *head, size_t n)
{
    bool any = false, first = true;
    size_t line = 0, text = 0; /* where the field begins; where the text of a joined one ends, or 0 */
    uint8_t *lf = n ? memchr(head, '\n', n) : NULL;
    while (lf != NULL) {
        size_t end = (size_t)(lf - head), next = end + 1;
        bool proper = end > line && head[end - 1] == '\r';
        if (proper && end == line + 1)
            break; /* the empty line */
        lf = next < n ? memchr(head + next, '\n', n - next) : NULL;
        bool fold = proper && lf != NULL && lf[-1] == '\r' && is_blank(head[next]);
        if (fold && !first && may_fold(span_of(head + line, end - line))) {
            text = join(head, text ? text : end - 1, next, (size_t)(lf - head) - 1);
            any = true;
            continue;
        }
        first = false;
        line = next;
        text = 0;
    }
    return any;
}

static const struct http_side response_side = {
    .start = status_line, .bytes = HTTP_ANSWER_HEAD_MAX, .fields = HTTP_ANSWER_FIELDS_MAX, .response = true};

enum http_result http_parse_response(struct span in, struct span method, size_t *seen, struct http_head *h,
                                     size_t *used, struct http_err *e)
{
    struct http_seen k;
    *used = 0;
    http_head_reset(h);
    enum http_result r = http_head_scan(in, &response_side, seen, h, used, e);
    if (r == HTTP_OK)
        r = http_head_fields(h, true, &k, e);
    if (r == HTTP_OK) {
        h->upgrade = k.first[KNOWN_UPGRADE] != NULL;
        r = response_framing(h, method, &k, e);
    }
    if (r != HTTP_OK) {
        *used = 0;
        http_head_reset(h);
    }
    return r;
}
