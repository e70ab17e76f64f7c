#include "common/sign/canonical.h"

static bool unreserved(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

static void put(struct dynbuf *out, uint8_t c, bool slash)
{
    static const char hex[] = "0123456789ABCDEF";
    if (unreserved(c) || (slash && c == '/')) {
        (void)dynbuf_add_byte(out, c);
        return;
    }
    (void)dynbuf_add(out, span_of((const uint8_t[]){'%', (uint8_t)hex[c >> 4], (uint8_t)hex[c & 15]}, 3));
}

/* Decoded, then encoded again: every byte in its one spelling. -1: a broken escape. */
static int respell(struct span s, bool slash, bool plus, struct dynbuf *out)
{
    for (size_t i = 0; i < s.n; i++) {
        int c = s.p[i];
        if (c == '%') {
            if ((c = hex_number(span_from(s, i + 1), 2)) < 0)
                return -1;
            i += 2;
            /* A slash that was written as an escape is no separator, and stays one. */
            put(out, (uint8_t)c, false);
            continue;
        }
        put(out, plus && c == '+' ? ' ' : (uint8_t)c, slash);
    }
    return 0;
}

/* Dot segments (RFC 3986 section 5.2.4) and empty ones removed, as AWS means it: what remains ends in '/' only where
 * the path itself does. */
static void without_dots(struct span path, struct dynbuf *out)
{
    struct span rest = path, segment;
    for (bool more = true; more && dynbuf_ok(out);) {
        more = span_cut(rest, '/', &segment, &rest);
        if (segment.n == 0 || span_eq(segment, SPAN(".")))
            continue;
        if (!span_eq(segment, SPAN(".."))) {
            (void)dynbuf_add_byte(out, '/');
            (void)dynbuf_add(out, segment);
            continue;
        }
        while (out->n > 0 && out->p[--out->n] != '/')
            ;
    }
    if (out->n == 0 || path.p[path.n - 1] == '/')
        (void)dynbuf_add_byte(out, '/');
}

int sign_canonical_path(struct span path, enum sign_path how, struct dynbuf *out)
{
    struct dynbuf plain;
    if (path.n == 0 || path.p[0] != '/')
        return -1;
    if (how == SIGN_PATH_AS_SENT)
        return dynbuf_add(out, path);
    if (how == SIGN_PATH_ONCE)
        return respell(path, true, false, out) == 0 && dynbuf_ok(out) ? 0 : -1;
    dynbuf_init(&plain, path.n + 1);
    without_dots(path, &plain);
    for (size_t i = 0; i < plain.n; i++)
        put(out, plain.p[i], true);
    int rc = dynbuf_ok(&plain) && dynbuf_ok(out) ? 0 : -1;
    dynbuf_free(&plain);
    return rc;
}

struct part {
    size_t at, name, n; /* in the respelled bytes: name, '=', value */
};

static int compare_parts(const struct dynbuf *b, const struct part *x, const struct part *y)
{
    int c = span_cmp(span_of(b->p + x->at, x->name), span_of(b->p + y->at, y->name));
    return c ? c : span_cmp(span_of(b->p + x->at, x->n), span_of(b->p + y->at, y->n));
}

static int take_part(struct span one, struct dynbuf *b, struct part *p)
{
    struct span name, value;
    (void)span_cut(one, '=', &name, &value);
    p->at = b->n;
    if (respell(name, false, true, b) != 0)
        return -1;
    p->name = b->n - p->at;
    (void)dynbuf_add_byte(b, '=');
    if (respell(value, false, true, b) != 0 || !dynbuf_ok(b))
        return -1;
    p->n = b->n - p->at;
    return 0;
}

int sign_canonical_query(struct span query, struct dynbuf *out)
{
    struct part part[SIGN_QUERY_MAX], one;
    struct dynbuf b;
    size_t n = 0;
    int rc = -1;
    dynbuf_init(&b, 3 * query.n + SIGN_QUERY_MAX + 1);
    for (bool more = query.n > 0; more;) {
        struct span text;
        more = span_cut(query, '&', &text, &query);
        if (text.n == 0)
            continue;
        if (n == SIGN_QUERY_MAX || take_part(text, &b, &one) != 0)
            goto out;
        size_t at = n++;
        for (; at > 0 && compare_parts(&b, &one, &part[at - 1]) < 0; at--)
            part[at] = part[at - 1];
        part[at] = one;
    }
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            (void)dynbuf_add_byte(out, '&');
        (void)dynbuf_add(out, span_of(b.p + part[i].at, part[i].n));
    }
    rc = dynbuf_ok(out) ? 0 : -1;
out:
    dynbuf_free(&b);
    return rc;
}

bool sign_is_presigned(struct span query)
{
    static const char *const names[] = {"x-amz-signature", "x-amz-algorithm", "x-amz-credential",
                                        "awsaccesskeyid",  "signature",       "x-amz-security-token"};
    bool found = false;
    for (bool more = query.n > 0; more && !found;) {
        struct span text, name, value;
        struct dynbuf b;
        more = span_cut(query, '&', &text, &query);
        (void)span_cut(text, '=', &name, &value);
        dynbuf_init(&b, 3 * name.n + 1);
        found = respell(name, false, true, &b) != 0 || !dynbuf_ok(&b); /* what cannot be read may be one */
        for (size_t i = 0; !found && i < sizeof(names) / sizeof(names[0]); i++)
            found = span_ieq(dynbuf_span(&b), span_str(names[i]));
        dynbuf_free(&b);
    }
    return found;
}

/* Runs of white space become one space, none at the ends. n bytes at to. */
static size_t squeeze(struct span value, uint8_t *to)
{
    size_t n = 0;
    bool gap = false;
    for (size_t i = 0; i < value.n; i++) {
        uint8_t c = value.p[i];
        if (c == ' ' || c == '\t') {
            gap = n > 0;
            continue;
        }
        if (gap)
            to[n++] = ' ';
        gap = false;
        to[n++] = c;
    }
    return n;
}

static struct span lowered(struct arena *a, struct span name)
{
    uint8_t *to = http_is_token(name) ? arena_alloc(a, name.n) : NULL;
    if (to == NULL)
        return SPAN_NONE;
    for (size_t i = 0; i < name.n; i++)
        to[i] = name.p[i] >= 'A' && name.p[i] <= 'Z' ? (uint8_t)(name.p[i] + 32) : name.p[i];
    return span_of(to, name.n);
}

int sign_add_field(struct sign_request *r, struct arena *a, struct span name, struct span value)
{
    struct span low = lowered(a, name);
    size_t at = r->nfields;
    if (low.n == 0)
        return -1;
    while (at > 0 && span_cmp(r->field[at - 1].name, low) > 0)
        at--;
    struct http_field *same = at > 0 && span_eq(r->field[at - 1].name, low) ? &r->field[at - 1] : NULL;
    size_t before = same ? same->value.n + 1 : 0;
    uint8_t *to = arena_alloc(a, before + value.n + 1);
    if (to == NULL || (same == NULL && r->nfields == SIGN_FIELDS_MAX))
        return -1;
    if (same) {
        if (same->value.n)
            memcpy(to, same->value.p, same->value.n);
        to[before - 1] = ',';
        same->value = span_of(to, before + squeeze(value, to + before));
        return 0;
    }
    memmove(&r->field[at + 1], &r->field[at], (r->nfields - at) * sizeof(r->field[0]));
    r->field[at] = (struct http_field){low, span_of(to, squeeze(value, to))};
    r->nfields++;
    return 0;
}

bool sign_covers(struct span name)
{
    if (span_ieq(name, SPAN("x-amz-date")) || span_ieq(name, SPAN("x-amz-security-token")))
        return false;
    return span_ieq(name, SPAN("content-type")) || span_ieq(name, SPAN("content-md5")) ||
           span_ieq(span_first(name, 6), SPAN("x-amz-"));
}

int sign_names(const struct sign_request *r, struct dynbuf *out)
{
    for (size_t i = 0; i < r->nfields; i++) {
        if (i > 0)
            (void)dynbuf_add_byte(out, ';');
        (void)dynbuf_add(out, r->field[i].name);
    }
    return dynbuf_ok(out) ? 0 : -1;
}

static void line(struct digest_ctx *d, struct span s)
{
    digest_add(d, s);
    digest_add(d, SPAN("\n"));
}

void sign_canonical(const struct sign_request *r, struct digest *out)
{
    struct digest_ctx *d = digest_begin();
    line(d, r->method);
    line(d, r->path);
    line(d, r->query);
    for (size_t i = 0; i < r->nfields; i++) {
        digest_add(d, r->field[i].name);
        digest_add(d, SPAN(":"));
        line(d, r->field[i].value);
    }
    digest_add(d, SPAN("\n"));
    for (size_t i = 0; i < r->nfields; i++) {
        digest_add(d, i ? SPAN(";") : SPAN_NONE);
        digest_add(d, r->field[i].name);
    }
    digest_add(d, SPAN("\n"));
    digest_add(d, r->payload);
    digest_end(d, out);
}
