/* Which kind of body it is, and whether it is what its type says. */
#include "web-approval/reading/parts.h"

#include "common/text/visible.h"

enum { LINE_SHOWN = 200 };

/* Of several, servers differ in which they take. */
static struct span field(struct reading *r, struct span want)
{
    const struct json *list = r->asked->fields;
    struct span value = SPAN_NONE;
    size_t n = 0;

    for (const struct json *f = list ? list->child : NULL; f; f = f->next)
        if (f->child && f->child->next && span_ieq(f->child->text, want) && n++ == 0)
            value = f->child->next->text;
    if (n > 1)
        flag_block(r, "A field that says what the body is stands more than once", want, value);
    return value;
}

/* Letters may be others in another charset than the one that is shown: "+ADw-" is one in UTF-7. */
static void charset_look(struct reading *r, struct span type)
{
    for (size_t at; (at = span_index(type, '=')) < type.n; type = span_from(type, at + 1)) {
        struct span name = span_trim(span_first(type, at)), value = span_trim(span_from(type, at + 1));
        value = span_trim(span_first(value, span_index(value, ';')));
        if (value.n > 1 && value.p[0] == '"')
            value = span_of(value.p + 1, value.n - 1 - (value.p[value.n - 1] == '"'));
        if (name.n >= 7 && span_ieq(span_from(name, name.n - 7), SPAN("charset")) &&
            !span_ieq(value, SPAN("utf-8")) && !span_ieq(value, SPAN("utf8")) && !span_ieq(value, SPAN("us-ascii")))
            flag_add(r, "The body is said to be in another charset than it is shown in", SPAN("Content-Type"), value);
    }
}

/* XML says its own charset, and may give names to text that stands elsewhere in it. */
static void xml_look(struct reading *r)
{
    struct span head = span_first(r->text, span_find(r->text, SPAN("?>")));
    size_t at = span_starts(head, SPAN("<?xml")) ? span_find(head, SPAN("encoding")) : head.n;
    struct span rest = span_from(head, at < head.n ? at + sizeof("encoding") - 1 : at), value;

    rest = span_trim(span_from(rest, span_index(rest, '=') + 1));
    value = rest.n > 1 ? span_first(span_from(rest, 1), span_index(span_from(rest, 1), rest.p[0])) : SPAN_NONE;
    if (at < head.n && !span_ieq(value, SPAN("utf-8")) && !span_ieq(value, SPAN("us-ascii")))
        flag_add(r, "The body is said to be in another charset than it is shown in", SPAN("<?xml"), value);
    at = span_find(r->text, SPAN("<!ENTITY"));
    if (at < r->text.n)
        flag_add(r, "The body defines names for other text: what a server reads may not stand where it is shown",
                 SPAN_NONE, span_first(span_from(r->text, at), LINE_SHOWN));
}

static bool type_ends(struct span type, struct span end)
{
    return type.n >= end.n && span_ieq(span_from(type, type.n - end.n), end);
}

static bool type_begins(struct span type, struct span begin)
{
    return span_ieq(span_first(type, begin.n), begin);
}

const struct json *text_json(struct reading *r, struct span text, enum json_fault *why)
{
    struct span s = text;

    *why = JSON_MALFORMED;
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\n' || s.p[0] == '\t' || s.p[0] == '\r'))
        s = span_from(s, 1);
    return s.n && (s.p[0] == '{' || s.p[0] == '[') ? json_parse_twice(text, r->arena, why) : NULL;
}

static void not_as_said(struct reading *r)
{
    const char *is = bytes_are(r->text);

    flag_block(r, "The body is not what its content type says", r->type,
               is                         ? span_str(is)
               : visible_is_text(r->text) ? SPAN("some other text")
                                          : SPAN("bytes that are no text"));
}

static void json_read(struct reading *r)
{
    enum json_fault why;
    const struct json *j = json_parse_twice(r->text, r->arena, &why);

    if (j)
        tree_read(r, j);
    else if (why == JSON_OVER_LIMIT)
        flag_add(r, "The body has more values than are listed here: read all of it", SPAN_NONE, SPAN_NONE);
    else
        not_as_said(r);
}

struct span body_all(const struct reading *r)
{
    return r->asked->cut ? r->asked->all : r->text;
}

/* Of a type whose first bytes are known, others are no such picture; of another type nobody here knows. */
static void picture_read(struct reading *r)
{
    static const char *const known[] = {"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"};
    const char *is = bytes_are(r->text);
    bool picture = is && span_starts(span_str(is), SPAN("a picture")), is_known = false;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        is_known |= span_ieq(r->type, span_str(known[i]));
    if (!picture && (is_known || is || (visible_is_text(r->text) && !type_ends(r->type, SPAN("svg+xml"))))) {
        not_as_said(r);
        return;
    }
    r->is_picture = true;
    picture_add(r, SPAN_NONE, r->type, body_all(r));
}

/* By its type it is neither JSON, a form nor a picture. */
static void other_read(struct reading *r, bool form, bool text)
{
    static const char list[] = "The body has more values than are listed here: read all of it";
    bool git = type_begins(r->type, SPAN("application/x-git-")); /* told by its facts, and no text of anybody's */
    enum json_fault why;
    const struct json *j = text_json(r, r->text, &why);

    if (j) {
        flag_add(r, "The body is JSON, and its content type does not say so", SPAN_NONE, r->type);
        tree_read(r, j);
    } else if (why == JSON_OVER_LIMIT) {
        flag_add(r, list, SPAN_NONE, SPAN_NONE);
    }
    if (form && (!j || span_index(r->text, '&') < r->text.n)) {
        if (j)
            flag_add(r, "To a server that goes by its content type the body is a form, and says something else",
                     SPAN_NONE, r->type);
        form_read(r, r->text, !j);
    } else if (!j && !form && !git && (text || visible_is_text(r->text))) {
        value_look(r, SPAN("body"), r->text, VALUE_TEXT);
    }
    if (type_ends(r->type, SPAN("xml")))
        xml_look(r);
}

void body_read(struct reading *r)
{
    struct span value = field(r, SPAN("content-type"));

    r->coding = field(r, SPAN("content-encoding"));
    r->type = span_trim(span_first(value, span_index(value, ';')));
    charset_look(r, value);
    if (!coding_open(r))
        return;
    bool json = span_ieq(r->type, SPAN("application/json")) || type_ends(r->type, SPAN("+json"));
    bool form = span_ieq(r->type, SPAN("application/x-www-form-urlencoded"));
    bool text = type_begins(r->type, SPAN("text/")) || type_ends(r->type, SPAN("xml")) ||
                type_ends(r->type, SPAN("yaml")) || type_ends(r->type, SPAN("javascript"));
    /* Of a type that says nothing of what it is (none, application/octet-stream, a store's own) the bytes say it;
     * what says that it is text, and begins so, is not what it says. */
    bool other = !json && !form && !text && !type_begins(r->type, SPAN("multipart/"));
    if (picture_said(r->type) || (other && picture_begins(r->text))) {
        picture_read(r);
        return;
    }
    bool files = type_begins(r->type, SPAN("multipart/form-data"));
    if (type_begins(r->type, SPAN("multipart/")) && (r->asked->cut || !files))
        multipart_pictures(r, value, files);
    if (r->asked->cut) {
        flag_add(r, "The body is longer than is taken apart here: read all of it", SPAN_NONE, SPAN_NONE);
        return;
    }
    if (json) {
        json_read(r);
    } else if (files) {
        multipart_read(r, value);
    } else if ((form || text) && !visible_is_text(r->text)) {
        not_as_said(r);
    } else {
        other_read(r, form, text);
    }
}
