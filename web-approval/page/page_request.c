/* The request as it would leave: method, URL, fields, body. */
#include <stdio.h>
#include <unistd.h>

#include "web-approval/page/page.h"
#include "web-approval/pictures/pictures.h"

enum { PICTURE_HEX = 4096 };

static void url(struct exchange *x, const struct ticket *t)
{
    struct dynbuf *out = &x->out;

    show_text(out, t->scheme);
    PUT(x, "://<b>");
    show_text(out, t->host);
    PUT(x, "</b>");
    page_port(x, t);
    show_text(out, t->path);
    if (t->has_query) {
        PUT(x, "?");
        show_text(out, t->query);
    }
}

/* The same with %xx decoded, where that says something else. */
static void url_decoded(struct exchange *x, const struct ticket *t)
{
    struct dynbuf text;

    dynbuf_init(&text, 2 * HTTP_TARGET_MAX);
    bool changed = show_decode(&text, t->path);
    if (t->has_query) {
        (void)dynbuf_add_byte(&text, '?');
        changed |= show_decode(&text, t->query);
    }
    if (changed) {
        PUT(x, "<p class=\"label\">Path and query, decoded for reading</p>\n<div class=\"url mono\" tabindex=\"0\" "
               "role=\"region\" aria-label=\"Target, decoded\">");
        show_text(&x->out, dynbuf_span(&text));
        PUT(x, "</div>\n");
    }
    dynbuf_free(&text);
}

/* A credential of the sandbox's own is not shown to people. The ledger writes down in its place which it is, but an
 * earlier version of it did not. */
static bool is_masked(struct span name, struct span value)
{
    return !span_starts(value, SPAN("masked: ")) &&
           (span_ieq(name, SPAN("authorization")) || span_ieq(name, SPAN("proxy-authorization")) ||
            span_ieq(name, SPAN("cookie")));
}

static void fields(struct exchange *x, const struct ticket *t)
{
    const struct json *list = json_parse(t->fields_json, &x->arena);
    struct dynbuf *out = &x->out;

    (void)dynbuf_addf(out, "<h3>Header fields <span class=\"count\">%zu</span></h3>\n", list ? list->count : 0);
    PUT(x, "<dl class=\"fields mono\">\n");
    for (const struct json *f = list ? list->child : NULL; f; f = f->next) {
        struct span name = f->child ? f->child->text : SPAN_NONE;
        struct span value = f->child && f->child->next ? f->child->next->text : SPAN_NONE;
        PUT(x, "<div><dt>");
        show_text(out, name);
        PUT(x, "</dt><dd>");
        if (is_masked(name, value))
            (void)dynbuf_addf(out, "<i>%zu bytes, not shown</i>", value.n);
        else
            show_text(out, value);
        PUT(x, "</dd></div>\n");
    }
    PUT(x, "</dl>\n");
}

struct span page_body_bytes(struct exchange *x, const struct body *b, size_t max)
{
    size_t want = b->size < max ? (size_t)b->size : max, n = 0;
    uint8_t *p;

    if (b->fd < 0)
        return span_first(b->bytes, want);
    p = arena_alloc(&x->arena, want);
    while (p && n < want) {
        ssize_t got = pread(b->fd, p + n, want - n, (off_t)n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return span_of(p, n);
}

static void pre(struct exchange *x, const char *label, struct span bytes, void (*show)(struct dynbuf *, struct span))
{
    (void)dynbuf_addf(&x->out, "<pre class=\"body\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">", label);
    show(&x->out, bytes);
    PUT(x, "</pre>\n");
}

static bool spread(struct exchange *x, struct span bytes)
{
    enum json_fault why;
    struct dynbuf text;

    if (bytes.n == 0 || (bytes.p[0] != '{' && bytes.p[0] != '[') || !json_parse_twice(bytes, &x->arena, &why))
        return false;
    dynbuf_init(&text, 8 * PAGE_BODY_WHOLE);
    show_spread_json(&text, bytes);
    bool good = dynbuf_ok(&text);
    if (good) {
        pre(x, "Body, JSON spread over lines", dynbuf_span(&text), show_body);
        PUT(x, "<details><summary>As it was sent</summary>\n");
        pre(x, "Body as sent", bytes, show_body);
        PUT(x, "</details>\n");
    }
    dynbuf_free(&text);
    return good;
}

void page_body_text(struct exchange *x, struct span bytes)
{
    if (!visible_is_text(bytes)) {
        PUT(x, "<p class=\"note\">This is not text. Its bytes:</p>\n");
        pre(x, "Body in hexadecimal", bytes, show_hex);
        return;
    }
    if (!spread(x, bytes))
        pre(x, "Body as text", bytes, show_body);
    if (bytes.n > PAGE_BODY_INLINE)
        return;
    PUT(x, "<details><summary>Its bytes</summary>\n");
    pre(x, "Body in hexadecimal", bytes, show_hex);
    PUT(x, "</details>\n");
}

#define GIT_TYPES "application/x-git-"

/* What stands in a text that one would not see: said before it is read. */
static void warn_of(struct exchange *x, struct span bytes)
{
    struct visible_count n = visible_count(bytes);
    size_t bare, crlf = show_crlf(bytes, &bare); /* as forms with files have them: no mark, and nothing hides there */

    n.escaped -= crlf < n.escaped ? crlf : n.escaped;
    if (!visible_is_text(bytes) || (n.escaped == 0 && n.other == 0 && (crlf == 0 || bare == 0)))
        return;
    if (n.escaped == 0 && n.other == 0) {
        (void)dynbuf_addf(&x->out, "<p class=\"meta\">Lines end in two ways: %zu with CR LF, %zu with LF.</p>\n",
                          crlf, bare);
        return;
    }
    PUT(x, "<p class=\"note\">");
    if (n.escaped) {
        show_count(&x->out, n.escaped, "character");
        PUT(x, " that would hide or rearrange text, shown like <span class=\"esc\">\\u{202e}</span>. ");
    }
    if (n.other) {
        show_count(&x->out, n.other, "letter");
        PUT(x, " outside ASCII, <span class=\"other\">underlined</span>: they may look like others.");
    }
    PUT(x, "</p>\n");
}

/* The bytes as they came, or without their coding: then all of it, for its size says nothing about what it says. */
static void body_shown(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;
    struct dynbuf *out = &x->out;
    struct span bytes = v->r.opened ? v->r.text : span_first(v->bytes, PAGE_BODY_INLINE);

    if (v->r.opened) {
        PUT(x, "<p class=\"note\">It leaves compressed (");
        show_cut(out, v->r.coding, 40);
        PUT(x, "). Opened, it has ");
        show_size(out, bytes.n);
        PUT(x, ":</p>\n");
    } else if (page_is_cut(t) && !v->r.is_picture) {
        PUT(x, "<p class=\"note\">Only the first ");
        show_size(out, bytes.n);
        PUT(x, " of ");
        show_size(out, t->body_size);
        PUT(x, " stand here. <a href=\"/tickets/");
        show_text(out, t->id);
        PUT(x, "/whole\">Read all of it</a></p>\n");
    }
    page_pictures(x, v);
    page_values(x, &v->r);
    if (v->r.is_picture) {
        PUT(x, "<details><summary>Its first bytes</summary>\n");
        pre(x, "Picture in hexadecimal", span_first(bytes, PICTURE_HEX), show_hex);
        PUT(x, "</details>\n");
        return;
    }
    if (!span_ieq(span_first(v->r.type, sizeof(GIT_TYPES) - 1),
                  SPAN(GIT_TYPES))) /* its marks are told by its facts */
        warn_of(x, bytes);
    page_body_text(x, bytes);
}

static void body(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;
    struct dynbuf *out = &x->out;
    char hash[2 * DIGEST_BYTES + 1] = "";

    PUT(x, "<h3>Body</h3>\n");
    if (t->body_size == 0) {
        PUT(x, "<p class=\"meta\">None.</p>\n");
        return;
    }
    if (t->body_sha256.n == DIGEST_BYTES)
        hex_text(t->body_sha256, hash);
    PUT(x, "<p class=\"meta\"><span>");
    show_size(out, t->body_size);
    (void)dynbuf_addf(out, "</span> <span>SHA-256 <span class=\"mono\">%s</span></span></p>\n", hash);
    if (!v->there) {
        PUT(x, "<p class=\"note\">It is not to be had: no longer kept, or the ledger does not answer.</p>\n");
        return;
    }
    body_shown(x, v);
    PUT(x, "<p><a class=\"quiet\" download href=\"/tickets/");
    show_text(out, t->id);
    PUT(x, "/body\">Download the exact bytes</a></p>\n");
}

void page_request(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;
    bool leaves = span_eq(t->state, SPAN("pending")) || span_eq(t->state, SPAN("approved"));

    PUT(x, "<section aria-labelledby=\"request\">\n<h2 id=\"request\">The request");
    show_own(&x->out, leaves ? ", as it leaves" : "");
    PUT(x,
        "</h2>\n<div class=\"url mono\" tabindex=\"0\" role=\"region\" aria-label=\"Target\"><b class=\"method\">");
    show_text(&x->out, t->method);
    PUT(x, "</b> ");
    url(x, t);
    PUT(x, "</div>\n");
    if (t->path.n + t->query.n > 300)
        (void)dynbuf_addf(&x->out, "<p class=\"note\">A long target: %zu bytes.</p>\n", t->path.n + t->query.n);
    url_decoded(x, t);
    fields(x, t);
    body(x, v);
    PUT(x, "</section>\n");
}
