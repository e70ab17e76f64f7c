#include "common/text/multipart.h"

/* RFC 2046 section 5.1.1: a space may only stand inside. */
static bool is_boundary(struct span s)
{
    return s.n > 0 && s.n <= MULTIPART_BOUNDARY_MAX && s.p[s.n - 1] != ' ' && span_is_of(s, SPAN("'()+_,-./:=? "));
}

int multipart_type(struct span value, struct multipart_type *out)
{
    struct span part, name, is, rest = value;
    size_t found = 0;
    bool more = span_cut(value, ';', &part, &rest);
    *out = (struct multipart_type){.type = span_trim(part)};
    if (!span_ieq(span_first(out->type, 10), SPAN("multipart/")))
        return -1;
    while (more) {
        more = span_cut(rest, ';', &part, &rest);
        part = span_trim(part);
        if (!span_cut(part, '=', &name, &is) || span_index(name, '*') < name.n)
            return -1;
        if (!span_ieq(name, SPAN("boundary"))) {
            if (span_index(is, '"') < is.n || out->nothers == MULTIPART_OTHERS_MAX) /* a ';' may stand in quotes */
                return -1;
            out->other[out->nothers++] = part;
            continue;
        }
        if (is.n > 2 && is.p[0] == '"' && is.p[is.n - 1] == '"')
            is = span_of(is.p + 1, is.n - 2);
        out->boundary = is;
        found++;
    }
    return found == 1 && is_boundary(out->boundary) ? 0 : -1;
}

/* The next occurrence of the boundary, which has to be a delimiter: behind open. *before: what comes before that. */
static bool next_delimiter(struct multipart *m, struct span open, struct span *before)
{
    size_t at = span_find(m->rest, m->boundary);
    if (at == m->rest.n || at < open.n || !span_eq(span_of(m->rest.p + at - open.n, open.n), open))
        return false;
    *before = span_first(m->rest, at - open.n);
    m->rest = span_from(m->rest, at + m->boundary.n);
    return true;
}

enum multipart_next multipart_next(struct multipart *m, struct span *part)
{
    if (!m->begun && (!next_delimiter(m, SPAN("--"), part) || part->n != 0))
        return MULTIPART_BAD;
    m->begun = true;
    if (!span_starts(m->rest, SPAN("\r\n")))
        return span_eq(m->rest, SPAN("--")) || span_eq(m->rest, SPAN("--\r\n")) ? MULTIPART_END : MULTIPART_BAD;
    if (!next_delimiter(m, SPAN("\r\n--"), part) || part->n < 2)
        return MULTIPART_BAD;
    *part = span_from(*part, 2); /* the line end of the delimiter before */
    return MULTIPART_PART;
}
