/* A request written by a person, as the gateway would see it. */
#include "policy/test/asked.h"

#include <time.h>

#include "common/http/uri.h"
#include "policy/load/read/names.h"

enum { ASKED_MEMORY = 256 * 1024 * 1024, FIELDS_MAX = 64 };

void asked_init(struct asked *q)
{
    *q = (struct asked){0};
    arena_init(&q->a, ASKED_MEMORY);
    q->subject.sandbox = SPAN("sandbox");
    q->request.method = SPAN("GET");
    q->request.body_complete = true;
    q->now_ms = (uint64_t)time(NULL) * 1000;
}

void asked_free(struct asked *q)
{
    arena_free(&q->a);
}

int asked_header(struct asked *q, struct span name, struct span value)
{
    struct http_field *f = (void *)(uintptr_t)q->request.fields;
    if (f == NULL)
        q->request.fields = f = arena_alloc(&q->a, FIELDS_MAX * sizeof(*f));
    if (f == NULL || q->request.nfields == FIELDS_MAX)
        return -1;
    f[q->request.nfields++] = (struct http_field){span_trim(name), span_trim(value)};
    return 0;
}

int asked_label(struct asked *q, struct span key, struct span value)
{
    struct label *l = (void *)(uintptr_t)q->subject.labels;
    if (l == NULL)
        q->subject.labels = l = arena_alloc(&q->a, FIELDS_MAX * sizeof(*l));
    if (l == NULL || q->subject.nlabels == FIELDS_MAX)
        return -1;
    l[q->subject.nlabels++] = (struct label){key, value};
    return 0;
}

static int canonical(struct asked *q, struct span in, bool path, struct span *out)
{
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024);
    /* As the front does: whether %2F may stay is the judge's business. */
    int rc = path ? http_canonical_path(in, true, &b) : http_canonical_query(in, &b);
    if (rc == 0)
        *out = arena_copy(&q->a, dynbuf_span(&b));
    dynbuf_free(&b);
    return rc;
}

/* A person may write a name as it reads; on the wire it is ASCII. */
static bool other_script(struct span s)
{
    bool other = false;
    for (size_t i = 0; i < s.n; i++)
        other |= s.p[i] >= 0x80;
    return other;
}

int asked_url(struct asked *q, struct span url, struct err *e)
{
    struct request *r = &q->request;
    struct span rest, host, target, path, query;
    char name[HTTP_HOST_MAX + 1], ascii[NAMES_TEXT_MAX];
    const char *why = "";
    size_t n = 0, scheme = span_find(url, SPAN("://"));
    r->scheme = span_first(url, scheme);
    if (span_eq(r->scheme, SPAN("wss")) || span_eq(r->scheme, SPAN("ws"))) {
        r->scheme = r->scheme.n == 3 ? SPAN("https") : SPAN("http");
        if (asked_header(q, SPAN("Upgrade"), SPAN("websocket")) != 0)
            return err_set(e, "no memory");
    }
    if (!span_eq(r->scheme, SPAN("https")) && !span_eq(r->scheme, SPAN("http")))
        return err_set(e, "the URL must begin with https://, http://, wss:// or ws://");
    rest = span_from(url, scheme + 3);
    rest = span_first(rest, span_index(rest, '#'));
    size_t end = 0;
    while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?')
        end++;
    if (http_split_authority(span_first(rest, end), &host, &r->port) != 0)
        return err_set(e, "the URL's host is none that the gateway takes");
    if (other_script(host) && names_to_ascii(host, ascii, &why) != 0)
        return err_set(e, "the URL's host is no name of IDNA2008: %s", why);
    if (http_canonical_host(other_script(host) ? span_str(ascii) : host, name, &n) != 0)
        return err_set(e, "the URL's host is none that the gateway takes");
    r->host = arena_copy(&q->a, span_of(name, n));
    if (r->port == 0)
        r->port = span_eq(r->scheme, SPAN("https")) ? 443 : 80;
    target = span_from(rest, end);
    r->has_query = span_cut(target, '?', &path, &query);
    if (path.n == 0)
        path = SPAN("/");
    if (canonical(q, path, true, &r->path) != 0 || (query.n && canonical(q, query, false, &r->query) != 0))
        return err_set(e, "the gateway answers this path or query with 400: it hides something, or is not canonical");
    return r->host.n ? 0 : err_set(e, "no memory");
}

static void pkt(struct dynbuf *b, const struct git_ref *r, bool first)
{
    static const char caps[] = " report-status-v2 side-band-64k object-format=sha1";
    size_t n = 4 + 40 + 1 + 40 + 1 + r->name.n + (first ? sizeof(caps) : 0);
    (void)dynbuf_addf(b, "%04zx", n);
    (void)dynbuf_add(b, r->old_id);
    (void)dynbuf_add_byte(b, ' ');
    (void)dynbuf_add(b, r->new_id);
    (void)dynbuf_add_byte(b, ' ');
    (void)dynbuf_add(b, r->name);
    if (first) {
        (void)dynbuf_add_byte(b, 0);
        (void)dynbuf_add(b, span_of(caps, sizeof(caps) - 1));
    }
}

bool asked_ref(struct span text, struct git_ref *out)
{
    static const struct span none = SPAN("0000000000000000000000000000000000000000");
    static const struct span one = SPAN("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    static const struct span other = SPAN("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    struct span verb;
    bool cut = span_cut(text, ' ', &verb, &out->name);
    bool create = span_eq(verb, SPAN("create")), delete = span_eq(verb, SPAN("delete"));
    out->old_id = create ? none : one;
    out->new_id = delete ? none : other;
    return cut && out->name.n && (create || delete || span_eq(verb, SPAN("update")));
}

int asked_refs(struct arena *a, const struct git_ref *refs, size_t n, struct span *out)
{
    struct dynbuf b;
    bool pack = false;
    dynbuf_init(&b, 1 << 20);
    for (size_t i = 0; i < n; i++) {
        pkt(&b, &refs[i], i == 0);
        for (size_t k = 0; k < refs[i].new_id.n; k++)
            pack |= refs[i].new_id.p[k] != '0';
    }
    (void)dynbuf_add(&b, pack ? SPAN("0000PACK") : SPAN("0000"));
    *out = arena_keep(a, &b);
    return out->p ? 0 : -1;
}

int asked_push(struct asked *q, struct span url, const struct git_ref *refs, size_t n, struct err *e)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    (void)dynbuf_add(&b, url);
    (void)dynbuf_add(&b, SPAN("/git-receive-pack"));
    int rc = asked_url(q, arena_copy(&q->a, dynbuf_span(&b)), e);
    dynbuf_free(&b);
    q->request.method = SPAN("POST");
    q->request.has_body = true;
    rc |= asked_refs(&q->a, refs, n, &q->request.body);
    return rc | asked_header(q, SPAN("Content-Type"), SPAN("application/x-git-receive-pack-request"));
}

void asked_decide(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                  struct arena *a, struct decision *d)
{
    policy_judge(p, s, r, now_ms, a, d);
    if (!d->need_body || !r->body_complete)
        return;
    d->need_body = false; /* it is all there, and not enough: as the gateway says it */
    d->verdict = VERDICT_DENY;
    d->code = "unclassified";
}

bool asked_overrides(struct span method, bool body, struct span op, struct span wrote)
{
    bool bare = span_eq(method, SPAN("GET")) || span_eq(method, SPAN("HEAD")) || span_eq(method, SPAN("OPTIONS"));
    return span_eq(op, SPAN("http.override")) || (bare && !body && span_starts(wrote, SPAN("http.")));
}

bool asked_overrode(const struct decision *d, struct span wrote)
{
    return wrote.n && d->effect == EFFECT_READ && !d->upgrade && span_eq(d->op, wrote);
}

void asked_judge(struct asked *q, const struct policy *p)
{
    asked_decide(p, &q->subject, &q->request, q->now_ms, &q->a, &q->decision);
    if (asked_overrode(&q->decision, q->wrote) &&
        asked_header(q, SPAN("X-HTTP-Method-Override"), SPAN("POST")) == 0) {
        q->wrote = SPAN_NONE;
        asked_decide(p, &q->subject, &q->request, q->now_ms, &q->a, &q->decision);
    }
    asked_past_limits(p, &q->request, q->now_ms, q->used, q->nused, &q->a, &q->decision);
}
