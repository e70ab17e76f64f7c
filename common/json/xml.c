#include "common/json/xml.h"

#include "common/text/utf8.h"

struct element {
    struct json *node;           /* its key is the element's name */
    struct json *last, *in_list; /* of what is in it; and of the list that last is */
};
struct reader {
    struct span rest;
    struct element open[XML_DEPTH_MAX + 1]; /* the first is what the outermost one stands in */
    size_t depth, nodes;
    struct dynbuf text; /* since the last tag */
    struct arena *a;
};

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool begins_name(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool take(struct reader *r, struct span word)
{
    bool there = span_starts(r->rest, word);
    if (there)
        r->rest = span_from(r->rest, word.n);
    return there;
}

static bool skip_blanks(struct reader *r)
{
    size_t before = r->rest.n;
    while (r->rest.n && is_blank(r->rest.p[0]))
        r->rest = span_from(r->rest, 1);
    return r->rest.n < before;
}

/* Empty: there is none, or it is too long. */
static struct span take_name(struct reader *r, bool with_prefix)
{
    size_t n = 0;
    while (n < r->rest.n && n <= XML_NAME_MAX) {
        uint8_t c = r->rest.p[n];
        if (!begins_name(c) && (n == 0 || (!is_digit(c) && c != '-' && c != '.' && (c != ':' || !with_prefix))))
            break;
        n++;
    }
    struct span name = span_first(r->rest, n <= XML_NAME_MAX ? n : 0);
    r->rest = span_from(r->rest, n);
    return name;
}

/* ---- text ---- */

static bool is_character(uint32_t c)
{
    return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c < 0xd800) || (c > 0xdfff && c < 0xfffe) ||
           (c > 0xffff && c <= 0x10ffff);
}

/* Behind "&#": 65; or x41; */
static bool take_number(struct reader *r)
{
    uint32_t base = take(r, SPAN("x")) ? 16 : 10, c = 0;
    uint8_t utf8[4];
    size_t n = 0;
    for (; n < r->rest.n && r->rest.p[n] != ';'; n++) {
        uint8_t d = r->rest.p[n], letter = d | 0x20;
        bool hex = base == 16 && letter >= 'a' && letter <= 'f';
        if ((!is_digit(d) && !hex) || c > 0x10ffff)
            return false;
        c = c * base + (hex ? (uint32_t)(letter - 'a' + 10) : (uint32_t)(d - '0'));
    }
    r->rest = span_from(r->rest, n);
    return n > 0 && take(r, SPAN(";")) && is_character(c) &&
           dynbuf_add(&r->text, span_of(utf8, utf8_put(c, utf8))) == 0;
}

/* Nothing that a document defines. */
static bool take_entity(struct reader *r)
{
    static const struct {
        const char *name;
        uint8_t is;
    } known[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (take(r, span_str(known[i].name)))
            return dynbuf_add_byte(&r->text, known[i].is) == 0;
    return take(r, SPAN("&#")) && take_number(r);
}

static bool take_text(struct reader *r)
{
    uint8_t c = r->rest.p[0];
    if (c == '&')
        return take_entity(r);
    if ((c < 0x20 && !is_blank(c)) || c == 0x7f || span_starts(r->rest, SPAN("]]>")) ||
        span_starts(r->rest, SPAN("\xef\xbf\xbe")) || span_starts(r->rest, SPAN("\xef\xbf\xbf")))
        return false;
    r->rest = span_from(r->rest, 1);
    if (c == '\r') { /* every end of a line is one (XML 1.0, 2.11) */
        (void)take(r, SPAN("\n"));
        c = '\n';
    }
    return dynbuf_add_byte(&r->text, c) == 0;
}

static struct span text_so_far(const struct reader *r)
{
    struct span s = dynbuf_span(&r->text);
    while (s.n && is_blank(s.p[0]))
        s = span_from(s, 1);
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* ---- elements ---- */

static struct json *new_node(struct reader *r, enum json_type type)
{
    struct json *j = r->nodes < XML_NODES_MAX ? arena_alloc(r->a, sizeof(*j)) : NULL;
    r->nodes++;
    if (j != NULL)
        j->type = type;
    return j;
}

static bool opened(struct reader *r, struct span name)
{
    bool second = r->depth == 0 && r->open[0].last != NULL;
    struct json *j = r->depth < XML_DEPTH_MAX && !second && text_so_far(r).n == 0 ? new_node(r, JSON_STRING) : NULL;
    if (j == NULL || (j->key = arena_copy(r->a, name)).p == NULL)
        return false;
    r->open[++r->depth] = (struct element){.node = j};
    dynbuf_reset(&r->text);
    return true;
}

/* The one before it, of the same name, becomes the first of a list. */
static bool list(struct reader *r, struct element *in)
{
    struct json *first = new_node(r, JSON_STRING);
    if (first == NULL)
        return false;
    *first = *in->last;
    first->key = SPAN_NONE;
    *in->last = (struct json){.type = JSON_ARRAY, .key = in->last->key, .child = first, .count = 1};
    in->in_list = first;
    return true;
}

static bool put_into(struct reader *r, struct element *in, struct json *j)
{
    bool again = in->last != NULL && span_eq(in->last->key, j->key);
    if (again && in->in_list == NULL && !list(r, in))
        return false;
    if (again) {
        j->key = SPAN_NONE;
        in->in_list->next = j;
        in->in_list = j;
        in->last->count++;
        return true;
    }
    if (json_get(in->node, j->key) != NULL)
        return false;
    in->node->type = JSON_OBJECT;
    in->node->count++;
    if (in->last != NULL)
        in->last->next = j;
    else
        in->node->child = j;
    in->last = j;
    in->in_list = NULL;
    return true;
}

static bool closed(struct reader *r, struct span name)
{
    struct json *j = r->open[r->depth].node;
    struct span text = text_so_far(r);
    if (r->depth == 0 || !span_eq(j->key, name) || (j->type == JSON_OBJECT && text.n > 0))
        return false;
    if (j->type == JSON_STRING) {
        j->text = text.n ? arena_copy(r->a, text) : SPAN("");
        if (j->text.p == NULL)
            return false;
    }
    dynbuf_reset(&r->text);
    r->depth--;
    return put_into(r, &r->open[r->depth], j);
}

/* ---- tags ---- */

/* Name="value"; what would have to be written otherwise is not in it. */
static bool take_attribute(struct reader *r, struct span *name, struct span *value)
{
    *name = take_name(r, true);
    if (name->n == 0 || !take(r, SPAN("=")) || r->rest.n == 0 || (r->rest.p[0] != '"' && r->rest.p[0] != '\''))
        return false;
    size_t end = span_index(span_from(r->rest, 1), r->rest.p[0]);
    bool fine = end + 1 < r->rest.n;
    *value = span_first(span_from(r->rest, 1), end);
    for (size_t i = 0; i < value->n && fine; i++)
        fine = value->p[i] >= 0x20 && value->p[i] != 0x7f && span_index(SPAN("<>&\"'"), value->p[i]) == 5;
    r->rest = span_from(r->rest, end + 2);
    return fine;
}

/* Those of one element, to the end of its tag; none is there twice. */
static bool take_attributes(struct reader *r, struct span *xmlns, bool *empty)
{
    struct span name[XML_ATTRIBUTES_MAX], value;
    *xmlns = SPAN_NONE;
    for (size_t n = 0;; n++) {
        bool apart = skip_blanks(r);
        *empty = take(r, SPAN("/>"));
        if (*empty || take(r, SPAN(">")))
            return true;
        if (!apart || n == XML_ATTRIBUTES_MAX || !take_attribute(r, &name[n], &value))
            return false;
        for (size_t i = 0; i < n; i++)
            if (span_eq(name[i], name[n]))
                return false;
        if (span_eq(name[n], SPAN("xmlns")))
            *xmlns = value;
    }
}

static bool take_tag(struct reader *r)
{
    struct span xmlns;
    bool end = take(r, SPAN("/")), empty = false;
    struct span name = take_name(r, false);
    if (name.n == 0)
        return false;
    if (end) {
        (void)skip_blanks(r);
        return take(r, SPAN(">")) && closed(r, name);
    }
    if (!take_attributes(r, &xmlns, &empty) || !opened(r, name))
        return false;
    struct json *j = r->open[r->depth].node;
    if (r->depth == 1 && xmlns.n && (j->text = arena_copy(r->a, xmlns)).p == NULL)
        return false;
    return !empty || closed(r, name);
}

/* Its own declaration, where it may stand: what it says is known already. */
static bool take_declaration(struct reader *r)
{
    static const struct {
        struct span name, value;
    } known[] = {
        {SPAN("version"), SPAN("1.0")}, {SPAN("encoding"), SPAN("utf-8")}, {SPAN("standalone"), SPAN("yes")}};
    size_t next = 0, n = sizeof(known) / sizeof(known[0]);
    struct span name, value;
    for (;;) {
        bool apart = skip_blanks(r);
        if (take(r, SPAN("?>")))
            return next > 0;
        if (!apart || !take_attribute(r, &name, &value))
            return false;
        while (next < n && !span_eq(known[next].name, name) && next > 0)
            next++;
        if (next == n || !span_eq(known[next].name, name) || !span_ieq(known[next].value, value))
            return false;
        next++;
    }
}

const struct json *xml_parse(struct span document, struct arena *a)
{
    struct reader r = {.rest = document, .a = a};
    struct json *all = new_node(&r, JSON_OBJECT);
    bool fine = all != NULL && utf8_run(document) == document.n;
    r.open[0].node = all;
    dynbuf_init(&r.text, document.n + 1);
    if (fine && take(&r, SPAN("<?xml")))
        fine = take_declaration(&r);
    while (fine && r.rest.n)
        fine = take(&r, SPAN("<")) ? take_tag(&r) : r.depth > 0 ? take_text(&r) : skip_blanks(&r);
    bool whole = fine && r.depth == 0 && r.open[0].last != NULL;
    dynbuf_wipe(&r.text);
    return whole ? all : NULL;
}

void xml_put_text(struct dynbuf *out, struct span text)
{
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = text.p[i];
        if (c == '&' || c == '<' || c == '>' || c == '"' || c == '\r')
            (void)dynbuf_addf(out, "&#%u;", c);
        else
            (void)dynbuf_add_byte(out, c);
    }
}
