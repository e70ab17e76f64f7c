/* Request heads: request line, target forms, Host (RFC 9112 section 3). */
#include "common/http/chars.h"
#include "common/http/head.h"

static enum http_result bad(struct http_err *e, const char *code, const char *why)
{
    return http_refuse(e, 400, code, why);
}

static enum http_result version(struct span v, struct http_head *h, struct http_err *e)
{
    if (v.n == 8 && memcmp(v.p, "HTTP/1.", 7) == 0 && (v.p[7] == '0' || v.p[7] == '1')) {
        h->minor = v.p[7] - '0';
        return HTTP_OK;
    }
    if (span_eq(v, SPAN("HTTP/2.0")) && span_eq(h->method, SPAN("PRI")))
        return bad(e, "http2-preface", "HTTP/2 is not spoken here; use HTTP/1.1");
    if (v.n == 8 && memcmp(v.p, "HTTP/", 5) == 0 && v.p[5] >= '0' && v.p[5] <= '9' && v.p[6] == '.' &&
        v.p[7] >= '0' && v.p[7] <= '9')
        return http_refuse(e, 505, "bad-version", "only HTTP/1.1 and HTTP/1.0 are spoken here");
    return bad(e, "bad-request-line", "the request line does not end in HTTP/1.1 or HTTP/1.0");
}

static enum http_result request_line(struct span line, struct http_head *h, struct http_err *e)
{
    size_t n = http_run(line, CH_TOKEN);
    if (n > HTTP_METHOD_MAX)
        return http_refuse(e, 501, "method-too-long", "no method has a name as long as this");
    if (n == 0 || n == line.n || line.p[n] != ' ')
        return bad(e, "bad-method", "the request line does not begin with a method and one space");
    h->method = span_first(line, n);
    struct span rest = span_from(line, n + 1);
    n = http_run(rest, CH_TARGET | CH_RAW_QUERY);
    if (n > HTTP_TARGET_MAX)
        return http_refuse(e, 414, "target-too-long", "the request target is over the limit");
    if (n == 0 || n == rest.n || rest.p[n] != ' ')
        return bad(e, "bad-target",
                   "the request target is empty, not followed by one space and the version, "
                   "or holds a byte that must be percent-encoded");
    h->target = span_first(rest, n);
    if (version(span_from(rest, n + 1), h, e) != HTTP_OK)
        return HTTP_BAD;
    /* They echo the request, with whatever was injected. */
    if (span_ieq(h->method, SPAN("TRACE")) || span_ieq(h->method, SPAN("TRACK")) ||
        span_ieq(h->method, SPAN("DEBUG")))
        return http_refuse(e, 405, "method-refused", "this method echoes requests and is never passed on");
    return HTTP_OK;
}

static enum http_result path_and_query(struct span s, struct http_head *h, struct http_err *e)
{
    h->has_query = span_cut(s, '?', &h->path, &h->query);
    if (h->path.n == 0)
        h->path = SPAN("/");
    if (h->path.p[0] != '/' || (h->path.n > 1 && h->path.p[1] == '/'))
        return bad(e, "bad-target", "the path does not begin with exactly one slash");
    if (http_run(h->path, CH_TARGET | CH_RAW_PATH) != h->path.n)
        return bad(e, "bad-target", "the path holds a byte that must be percent-encoded");
    return HTTP_OK;
}

static enum http_result authority(struct span a, struct http_head *h, struct http_err *e)
{
    char name[HTTP_HOST_MAX + 1];
    size_t n;
    if (http_split_authority(a, &h->host, &h->port) || http_canonical_host(h->host, name, &n))
        return bad(e, "bad-authority", "the target's host or port is not a plain name or address and a port number");
    return HTTP_OK;
}

static enum http_result absolute(struct http_head *h, struct http_err *e)
{
    struct span rest = span_from(h->target, 7); /* after http:// */
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
        n++;
    h->form = HTTP_ABSOLUTE;
    h->scheme = span_first(h->target, 4);
    if (authority(span_first(rest, n), h, e) != HTTP_OK)
        return HTTP_BAD;
    return path_and_query(span_from(rest, n), h, e);
}

static enum http_result connect_target(enum http_place place, struct http_head *h, struct http_err *e)
{
    if (place != HTTP_ON_PROXY_PORT)
        return bad(e, "connect-in-tunnel", "CONNECT is taken on the proxy port alone");
    h->form = HTTP_AUTHORITY;
    if (authority(h->target, h, e) != HTTP_OK)
        return HTTP_BAD;
    return h->port ? HTTP_OK : bad(e, "bad-authority", "CONNECT names no port");
}

static enum http_result target_form(enum http_place place, struct http_head *h, struct http_err *e)
{
    if (span_eq(h->method, SPAN("CONNECT")))
        return connect_target(place, h, e);
    if (place == HTTP_ON_PROXY_PORT) {
        if (span_starts(h->target, SPAN("http://")))
            return absolute(h, e);
        if (span_starts(h->target, SPAN("https://")))
            return bad(e, "https-without-connect", "an https:// target needs CONNECT; set HTTPS_PROXY");
        return bad(e, "target-form", "a proxy takes CONNECT host:port or a target that begins with http://");
    }
    if ((place != HTTP_IN_TUNNEL && place != HTTP_ORIGIN_SERVER) || h->target.p[0] != '/')
        return bad(e, "target-form", "here the target must be a path that begins with a slash");
    h->form = HTTP_ORIGIN;
    return path_and_query(h->target, h, e);
}

static bool same_host(struct span a, struct span b)
{
    char ca[HTTP_HOST_MAX + 1], cb[HTTP_HOST_MAX + 1];
    size_t na, nb;
    if (http_canonical_host(a, ca, &na) || http_canonical_host(b, cb, &nb))
        return false;
    return span_eq(span_of(ca, na), span_of(cb, nb));
}

static bool same_port(const struct http_head *h, uint16_t named)
{
    if (h->form == HTTP_AUTHORITY) /* some clients leave it out */
        return named == 0 || named == h->port;
    return (named ? named : 80) == (h->port ? h->port : 80);
}

/* The Host field: exactly one, well-formed, and the same place as the target's authority. */
static enum http_result host_field(struct http_head *h, const struct http_field *f, struct http_err *e)
{
    struct span host;
    uint16_t port;
    char name[HTTP_HOST_MAX + 1];
    size_t n;
    if (f == NULL) {
        if (h->minor == 0 && h->form != HTTP_ORIGIN)
            return HTTP_OK;
        return bad(e, "missing-host", "there is no Host field");
    }
    if (http_split_authority(f->value, &host, &port) || http_canonical_host(host, name, &n))
        return bad(e, "bad-host", "Host is not a plain name or address with an optional port number");
    if (h->form == HTTP_ORIGIN) {
        h->host = host;
        h->port = port;
        return HTTP_OK;
    }
    if (!same_host(host, h->host) || !same_port(h, port))
        return bad(e, "host-mismatch", "Host is not the authority of the request target");
    return HTTP_OK;
}

static enum http_result expectation(struct http_head *h, const struct http_field *f, struct http_err *e)
{
    if (f == NULL)
        return HTTP_OK;
    if (!span_ieq(f->value, SPAN("100-continue")))
        return http_refuse(e, 417, "bad-expect", "the only expectation that is met here is 100-continue");
    h->expect_continue =
        h->minor == 1 && (h->framing == HTTP_CHUNKED || (h->framing == HTTP_LENGTH && h->length > 0));
    return HTTP_OK;
}

static enum http_result check_head(enum http_place place, struct http_head *h, struct http_err *e)
{
    struct http_seen k;
    if (target_form(place, h, e) != HTTP_OK || http_head_fields(h, false, &k, e) != HTTP_OK ||
        host_field(h, k.first[KNOWN_HOST], e) != HTTP_OK || http_head_framing(h, false, &k, e) != HTTP_OK)
        return HTTP_BAD;
    if (h->form == HTTP_AUTHORITY && h->framing != HTTP_NO_BODY)
        return bad(e, "body-on-connect", "CONNECT has no body");
    if (k.first[KNOWN_MAX_FORWARDS])
        return http_refuse(e, 405, "max-forwards",
                           "Max-Forwards asks a proxy to answer for the server; it is refused");
    h->keep_alive = !k.close && (h->minor == 1 || k.keep_alive);
    h->upgrade = k.first[KNOWN_UPGRADE] != NULL;
    return expectation(h, k.first[KNOWN_EXPECT], e);
}

/* What cannot be HTTP is refused at its first bytes: a TLS or SOCKS greeting would
 * otherwise wait for a line end. One empty line is passed over. */
static enum http_result first_bytes(struct span in, size_t *skip, struct http_err *e)
{
    *skip = 0;
    if (in.n && in.p[0] == '\r') {
        if (in.n > 1 && in.p[1] != '\n')
            return bad(e, "bare-cr", "there is a CR without an LF before the request line");
        *skip = in.n > 1 ? 2 : 1;
    }
    if (in.n > *skip && !http_char_is(in.p[*skip], CH_TOKEN))
        return bad(e, "not-http", "what arrived does not begin as an HTTP request");
    return in.n > *skip ? HTTP_OK : HTTP_MORE;
}

static const struct http_side request_side = {
    .start = request_line, .bytes = HTTP_HEAD_MAX, .fields = HTTP_FIELDS_MAX};

enum http_result http_parse_request(struct span in, enum http_place place, size_t *seen, struct http_head *h,
                                    size_t *used, struct http_err *e)
{
    size_t skip;
    *used = 0;
    http_head_reset(h);
    enum http_result r = first_bytes(in, &skip, e);
    if (r == HTTP_OK)
        r = http_head_scan(span_from(in, skip), &request_side, seen, h, used, e);
    if (r == HTTP_OK)
        r = check_head(place, h, e);
    if (r != HTTP_OK) {
        *used = 0;
        http_head_reset(h);
        return r;
    }
    *used += skip;
    return HTTP_OK;
}
