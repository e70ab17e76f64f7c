#include <string.h>

#include "common/http/uri.h"
#include "web-approval/rooms/rooms.h"

/* The next line, without its end. */
static bool line(struct span *rest, struct span *out)
{
    if (rest->n == 0)
        return false;
    (void)span_cut(*rest, '\n', out, rest);
    if (out->n && out->p[out->n - 1] == '\r')
        out->n--;
    return true;
}

static bool canonical(struct arena *a, struct span in, bool path, struct span *out)
{
    struct dynbuf b;

    dynbuf_init(&b, 3 * HTTP_TARGET_MAX);
    bool good = (path ? http_canonical_path(in, true, &b) : http_canonical_query(in, &b)) == 0 && dynbuf_ok(&b);
    *out = good ? arena_copy(a, dynbuf_span(&b)) : SPAN_NONE;
    dynbuf_free(&b);
    return good && (out->p || in.n == 0);
}

static const char *place(struct pasted *p, struct span authority)
{
    struct request *r = &p->request;
    struct span host;
    uint16_t port;
    size_t n;

    if (http_split_authority(authority, &host, &port) != 0 || http_canonical_host(host, p->host, &n) != 0)
        return "The host is none that the gateway takes: letters, digits and -, a port, no user. Write other letters "
               "as xn--.";
    r->host = span_of(p->host, n);
    r->port = port ? port : span_eq(r->scheme, SPAN("https")) ? 443 : 80;
    return NULL;
}

static const char *url(struct pasted *p, struct span text, struct arena *a)
{
    struct request *r = &p->request;
    struct span rest, target, authority, path, query = SPAN_NONE;

    r->scheme = span_starts(text, SPAN("http://")) ? SPAN("http") : SPAN("https");
    if (!span_starts(text, SPAN("http://")) && !span_starts(text, SPAN("https://")))
        return "The first line is a method and a URL: POST https://api.example.com/v1/things";
    rest = span_from(text, r->scheme.n + 3);
    (void)span_cut(rest, '#', &rest, &target);
    authority = span_first(rest, span_index(rest, '/'));
    if (span_index(authority, '?') < authority.n)
        authority = span_first(authority, span_index(authority, '?'));
    target = span_from(rest, authority.n);
    r->has_query = span_cut(target, '?', &path, &query);
    const char *why = place(p, authority);
    if (why)
        return why;
    if (!canonical(a, path.n ? path : SPAN("/"), true, &r->path) || !canonical(a, query, false, &r->query))
        return "The gateway refuses a target like this one, whatever the policy says: dot segments, a broken or "
               "control-byte escape, or bytes that may not stand in it.";
    return NULL;
}

static const char *fields(struct pasted *p, struct span *rest)
{
    struct span l, name, value;

    while (line(rest, &l) && l.n) {
        if (!span_cut(l, ':', &name, &value) || !http_is_token(name))
            return "A line below the first is a header field, NAME: VALUE. An empty line ends them; the body "
                   "follows.";
        if (p->request.nfields == sizeof p->field / sizeof p->field[0])
            return "There are more header fields than this page reads: at most 64.";
        p->field[p->request.nfields++] = (struct http_field){name, span_trim(value)};
    }
    return NULL;
}

const char *pasted_read(struct span text, struct arena *a, struct pasted *out)
{
    struct span first, method, target;

    memset(out, 0, sizeof *out);
    out->request.fields = out->field;
    while (line(&text, &first) && span_trim(first).n == 0)
        ;
    if (!span_cut(span_trim(first), ' ', &method, &target) || !http_is_token(method))
        return "The first line is a method and a URL: POST https://api.example.com/v1/things";
    out->request.method = method;
    const char *why = url(out, span_trim(target), a);
    if (!why)
        why = fields(out, &text);
    out->request.body = text;
    out->request.has_body = text.n > 0;
    out->request.body_complete = true;
    return why;
}
