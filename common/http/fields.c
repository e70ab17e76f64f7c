#include "common/http/chars.h"
#include "common/http/http.h"

const struct http_field *http_find(const struct http_head *h, struct span name)
{
    for (size_t i = 0; i < h->nfields; i++)
        if (span_ieq(h->field[i].name, name))
            return &h->field[i];
    return NULL;
}

bool http_is_token(struct span s)
{
    return s.n > 0 && http_run(s, CH_TOKEN) == s.n;
}

static bool in_list(struct span name, const struct span *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name.n == list[i].n && http_name_is(name, list[i]))
            return true;
    return false;
}

bool http_lists(const struct http_field *field, size_t n, struct span name, struct span item)
{
    for (size_t i = 0; i < n; i++) {
        struct span one, rest = field[i].value;
        bool more = field[i].name.n == name.n && span_ieq(field[i].name, name);
        while (more) {
            more = span_cut(rest, ',', &one, &rest);
            if (span_ieq(span_trim(one), item))
                return true;
        }
    }
    return false;
}

bool http_is_hop_by_hop(const struct http_head *h, struct span name)
{
    static const struct span list[] = {
        SPAN("connection"),
        SPAN("keep-alive"),
        SPAN("proxy-connection"),
        SPAN("proxy-authenticate"),
        SPAN("proxy-authorization"),
        SPAN("proxy-authentication-info"),
        SPAN("te"),
        SPAN("trailer"),
        SPAN("transfer-encoding"),
        SPAN("upgrade"),
        SPAN("http2-settings"),
    };
    /* The lengths above: most names have another one. */
    const uint32_t lengths =
        1u << 2 | 1u << 7 | 1u << 10 | 1u << 14 | 1u << 16 | 1u << 17 | 1u << 18 | 1u << 19 | 1u << 25;
    if (name.n < 32 && lengths >> name.n & 1 && in_list(name, list, sizeof list / sizeof list[0]))
        return true;
    /* Host and Content-Length cannot be nominated away (A37). */
    return name.n > 0 && !http_is_framing(name) && http_lists(h->field, h->nfields, SPAN("connection"), name);
}

bool http_is_framing(struct span name)
{
    return http_name_is(name, SPAN("content-length")) || http_name_is(name, SPAN("transfer-encoding")) ||
           http_name_is(name, SPAN("host"));
}

bool http_name_begins(struct span name, struct span lower)
{
    return name.n >= lower.n && http_name_is(span_first(name, lower.n), lower);
}

bool http_is_forwarding(struct span name)
{
    static const struct span list[] = {
        SPAN("via"),
        SPAN("forwarded"),
        SPAN("client-ip"),
        SPAN("true-client-ip"),
        SPAN("cf-connecting-ip"),
        SPAN("fastly-client-ip"),
        SPAN("x-real-ip"),
        SPAN("x-client-ip"),
        SPAN("x-cluster-client-ip"),
        SPAN("x-azure-clientip"),
        SPAN("x-remote-ip"),
        SPAN("x-remote-addr"),
        SPAN("x-host"),
        SPAN("x-http-host-override"),
        SPAN("x-proxyuser-ip"),
        SPAN("proxy"), /* becomes HTTP_PROXY in a CGI program */
    };
    static const struct span prefix[] = {
        SPAN("x-forwarded"),   SPAN("x-original"), /* -URL, -Host, -For, -URI */
        SPAN("x-originating"), SPAN("x-rewrite"),  SPAN("x-envoy-"),
    };
    bool x = name.n > 0 && (name.p[0] | 0x20) == 'x';
    for (size_t i = 0; x && i < sizeof prefix / sizeof prefix[0]; i++)
        if (http_name_begins(name, prefix[i]))
            return true;
    return in_list(name, list, sizeof list / sizeof list[0]);
}
