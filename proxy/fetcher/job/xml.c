#include "proxy/fetcher/job/xml.h"

#include "common/dynbuf.h"

struct reader {
    struct span rest;
    struct span open[XML_DEPTH_MAX]; /* names */
    size_t depth;
    bool ended;                 /* the outermost element was closed */
    struct xml_want *want, *in; /* in: whose text this is */
    size_t nwant;
    struct dynbuf text;
    struct arena *a;
};

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_name(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == ':';
}

static bool take(struct reader *r, struct span word)
{
    bool there = span_starts(r->rest, word);
    if (there)
        r->rest = span_from(r->rest, word.n);
    return there;
}

static void skip_blanks(struct reader *r)
{
    while (r->rest.n && is_blank(r->rest.p[0]))
        r->rest = span_from(r->rest, 1);
}

static struct span take_name(struct reader *r)
{
    size_t n = 0;
    while (n < r->rest.n && is_name(r->rest.p[n]))
        n++;
    struct span name = span_first(r->rest, n);
    r->rest = span_from(r->rest, n);
    return name;
}

/* &amp; and its like; nothing by number, and nothing that a document defines. */
static bool take_entity(struct reader *r)
{
    static const struct {
        const char *name;
        uint8_t is;
    } known[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (take(r, span_str(known[i].name)))
            return dynbuf_add_byte(&r->text, known[i].is) == 0;
    return false;
}

/* ---- where it is ---- */

static bool path_is(const struct reader *r, const char *path)
{
    struct span rest = span_str(path), one;
    for (size_t i = 0; i < r->depth; i++) {
        (void)span_cut(rest, '/', &one, &rest);
        if (!span_eq(r->open[i], one))
            return false;
    }
    return r->depth > 0 && rest.n == 0;
}

static bool opened(struct reader *r, struct span name)
{
    if (r->in != NULL || r->depth == XML_DEPTH_MAX || r->ended) /* in: an element in what is to be a text */
        return false;
    r->open[r->depth++] = name;
    for (size_t i = 0; i < r->nwant; i++)
        if (path_is(r, r->want[i].path)) {
            if (r->want[i].text.p != NULL)
                return false;
            r->in = &r->want[i];
            dynbuf_reset(&r->text);
        }
    return true;
}

static bool closed(struct reader *r, struct span name)
{
    if (r->depth == 0 || !span_eq(r->open[r->depth - 1], name))
        return false;
    if (r->in != NULL) {
        struct span s = dynbuf_span(&r->text);
        while (s.n && is_blank(s.p[0]))
            s = span_from(s, 1);
        while (s.n && is_blank(s.p[s.n - 1]))
            s.n--;
        r->in->text = s.n ? arena_copy(r->a, s) : SPAN("");
        if (r->in->text.p == NULL)
            return false;
        r->in = NULL;
    }
    r->ended = --r->depth == 0;
    return true;
}

/* ---- what comes next ---- */

/* Name="value", of which nothing is kept. */
static bool skip_attribute(struct reader *r)
{
    if (take_name(r).n == 0 || !take(r, SPAN("=")) || r->rest.n == 0 || (r->rest.p[0] != '"' && r->rest.p[0] != '\''))
        return false;
    size_t end = span_index(span_from(r->rest, 1), r->rest.p[0]);
    struct span value = span_first(span_from(r->rest, 1), end);
    bool fine = end + 1 < r->rest.n && span_index(value, '<') == value.n && span_index(value, '&') == value.n;
    r->rest = span_from(r->rest, end + 2);
    return fine;
}

static bool take_tag(struct reader *r)
{
    bool end = take(r, SPAN("/"));
    struct span name = take_name(r);
    if (name.n == 0)
        return false;
    for (;;) {
        bool apart = r->rest.n && is_blank(r->rest.p[0]);
        skip_blanks(r);
        if (take(r, SPAN(">")))
            return end ? closed(r, name) : opened(r, name);
        if (!end && take(r, SPAN("/>")))
            return opened(r, name) && closed(r, name);
        if (end || !apart || !skip_attribute(r))
            return false;
    }
}

static bool take_text(struct reader *r)
{
    uint8_t c = r->rest.p[0];
    if (c == '&')
        return r->depth > 0 && take_entity(r);
    if ((c < 0x20 && !is_blank(c)) || c == 0x7f || (r->depth == 0 && !is_blank(c)))
        return false;
    r->rest = span_from(r->rest, 1);
    return r->in == NULL || dynbuf_add_byte(&r->text, c) == 0;
}

int xml_read(struct span document, struct xml_want *want, size_t n, struct arena *a)
{
    struct reader r = {.rest = document, .want = want, .nwant = n, .a = a};
    bool fine = true;
    dynbuf_init(&r.text, XML_TEXT_MAX);
    for (size_t i = 0; i < n; i++)
        want[i].text = SPAN_NONE;
    if (take(&r, SPAN("<?xml "))) { /* its own declaration, where it may stand */
        size_t end = span_find(r.rest, SPAN("?>"));
        fine = end < r.rest.n && span_index(span_first(r.rest, end), '<') == end;
        r.rest = span_from(r.rest, end + 2);
    }
    while (fine && r.rest.n)
        fine = take(&r, SPAN("<")) ? take_tag(&r) : take_text(&r);
    dynbuf_wipe(&r.text);
    return fine && r.ended && r.depth == 0 ? 0 : -1;
}
