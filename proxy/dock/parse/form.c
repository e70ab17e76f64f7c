#include "proxy/dock/parse/form.h"

int form_begin(struct form *f, struct span content_type)
{
    struct multipart_type t;

    *f = (struct form){.state = FORM_FAILED};
    if (multipart_type(content_type, &t) != 0 || !span_ieq(t.type, SPAN("multipart/form-data")) ||
        t.boundary.n > MULTIPART_BOUNDARY_MAX)
        return -1;
    memcpy(f->delimiter, "\r\n--", 4);
    memcpy(f->delimiter + 4, t.boundary.p, t.boundary.n);
    f->ndelimiter = 4 + t.boundary.n;
    f->state = FORM_BEGIN;
    return 0;
}

static enum form_got failed(struct form *f)
{
    f->state = FORM_FAILED;
    return FORM_BAD;
}

/* The value of a parameter in quotes: name="...". Percent-escapes, which browsers write for a quote, are left. */
static bool quoted(struct span line, struct span key, struct span *out)
{
    size_t at = 0;

    for (struct span rest = line; (at = span_find(rest, key)) < rest.n; rest = span_from(rest, at + key.n)) {
        struct span value = span_from(rest, at + key.n);
        bool apart = at > 0 && (rest.p[at - 1] == ' ' || rest.p[at - 1] == ';');
        size_t end = span_index(value, '"');
        if (!apart)
            continue;
        *out = span_first(value, end);
        return end < value.n;
    }
    return false;
}

/* The head of a part, without the empty line. -1: it does not say what it is. */
static int part_head(struct span head, struct form_step *out)
{
    struct span line, name, value;

    while (head.n > 0) {
        size_t end = span_find(head, SPAN("\r\n"));
        line = span_first(head, end);
        head = span_from(head, end < head.n ? end + 2 : head.n);
        if (!span_cut(line, ':', &name, &value))
            return -1;
        if (!span_ieq(name, SPAN("content-disposition")))
            continue;
        value = span_trim(value);
        if (out->name.p || !span_starts(value, SPAN("form-data;")) || !quoted(value, SPAN("name=\""), &out->name))
            return -1;
        if (!quoted(value, SPAN("filename=\""), &out->file))
            out->file = SPAN_NONE;
    }
    return out->name.p ? 0 : -1;
}

static enum form_got begin(struct form *f, struct span in, size_t *used)
{
    struct span first = span_of(f->delimiter + 2, f->ndelimiter - 2); /* without the line end */

    if (!span_starts(first, span_first(in, first.n)))
        return failed(f);
    if (in.n < first.n)
        return FORM_MORE;
    *used = first.n;
    f->state = FORM_AFTER;
    return FORM_DATA;
}

/* Behind a delimiter: the next part, or the end. */
static enum form_got after(struct form *f, struct span in, size_t *used)
{
    if (in.n < 2)
        return FORM_MORE;
    *used = 2;
    bool end = span_starts(in, SPAN("--"));
    if (!end && (!span_starts(in, SPAN("\r\n")) || ++f->parts > FORM_PARTS_MAX))
        return failed(f);
    f->state = end ? FORM_OVER : FORM_HEAD;
    return end ? FORM_END : FORM_DATA;
}

static enum form_got head(struct form *f, struct span in, struct form_step *out, size_t *used)
{
    size_t end = span_find(in, SPAN("\r\n\r\n"));

    if (end == in.n)
        return in.n > FORM_HEAD_MAX ? failed(f) : FORM_MORE;
    if (end > FORM_HEAD_MAX || part_head(span_first(in, end), out) != 0)
        return failed(f);
    *used = end + 4;
    f->state = FORM_CONTENT;
    return FORM_PART;
}

static enum form_got content(struct form *f, struct span in, struct form_step *out, size_t *used)
{
    struct span mark = span_of(f->delimiter, f->ndelimiter);
    size_t at = span_find(in, mark);

    if (at == 0 && in.n > 0) {
        *used = mark.n;
        f->state = FORM_AFTER;
        return FORM_PART_END;
    }
    if (at == in.n) { /* what may be the first of one stays */
        size_t may = 0;
        for (size_t n = in.n < mark.n - 1 ? in.n : mark.n - 1; n > 0 && may == 0; n--)
            may = span_starts(mark, span_from(in, in.n - n)) ? n : 0;
        at = in.n - may;
    }
    out->data = span_first(in, at);
    *used = at;
    return at > 0 ? FORM_DATA : FORM_MORE;
}

/* Behind the last delimiter: nothing, or a line end, which some write. */
static enum form_got over(struct form *f, struct span in, size_t *used)
{
    if (in.n == 0)
        return FORM_END;
    if (!span_starts(SPAN("\r\n"), span_first(in, 2)))
        return failed(f);
    if (in.n < 2)
        return FORM_MORE;
    *used = 2;
    f->state = FORM_DONE;
    return FORM_END;
}

enum form_got form_step(struct form *f, struct span in, struct form_step *out, size_t *used)
{
    enum form_got got;

    *used = 0;
    *out = (struct form_step){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    switch (f->state) {
    case FORM_BEGIN: got = begin(f, in, used); break;
    case FORM_AFTER: got = after(f, in, used); break;
    case FORM_HEAD: got = head(f, in, out, used); break;
    case FORM_CONTENT: got = content(f, in, out, used); break;
    case FORM_OVER: got = over(f, in, used); break;
    case FORM_DONE: got = in.n == 0 ? FORM_END : failed(f); break;
    default: got = FORM_BAD;
    }
    return got;
}
