/* Proposed rules as a unified diff that puts them at the end of a file's rules:, wherever that stands. The file is
 * read and never written. */
#include "policy/cli/learn.h"
#include "policy/load/disk.h"

enum { PATCHED_MAX = 8 * 1024 * 1024, CONTEXT = 3 };

struct rules_end {
    size_t at, indent; /* behind the last rule; of its "-" */
    bool found, item;
};

static struct span next_line(struct span *rest)
{
    struct span line = span_first(*rest, span_index(*rest, '\n') + 1);
    *rest = span_from(*rest, line.n);
    return line;
}

/* Without what ends the line, and the blanks around it. */
static struct span bare(struct span line)
{
    while (line.n && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
        line.n--;
    return span_trim(line);
}

static int rules_begin(struct span line, struct rules_end *r, struct err *e)
{
    struct span behind = bare(span_from(line, SPAN("rules:").n));
    r->found = true;
    if (behind.n && behind.p[0] != '#')
        return err_set(e,
                       "its rules: is not a list of lines that begin with \"- \": write it so, or leave --patch out "
                       "and copy the rules");
    return 0;
}

/* One line below rules:. 1: it is no longer of them. */
static int rules_line(struct span line, size_t end, struct rules_end *r)
{
    size_t spaces = 0;
    while (spaces < line.n && line.p[spaces] == ' ')
        spaces++;
    struct span text = bare(line);
    bool dash = text.n && text.p[0] == '-', comment = text.n && text.p[0] == '#';
    if (text.n == 0 || (comment && (!r->item || spaces <= r->indent)))
        return 0;
    if (!r->item) {
        if (!dash)
            return 1;
        r->item = true;
        r->indent = spaces;
    } else if (spaces < r->indent || (spaces == r->indent && !dash)) {
        return 1;
    }
    r->at = end;
    return 0;
}

static int find_end(struct span text, struct rules_end *r, struct err *e)
{
    for (struct span rest = text; rest.n;) {
        struct span line = next_line(&rest);
        if (r->found && rules_line(line, (size_t)(rest.p - text.p), r) != 0)
            break;
        if (!r->found && span_starts(line, SPAN("rules:")) && rules_begin(line, r, e) != 0)
            return -1;
    }
    if (!r->item)
        return err_set(e, "it has no rule yet: leave --patch out, and write \"rules:\" and the rules below it");
    if (text.p[text.n - 1] != '\n')
        return err_set(e, "its last line has no line end: add one");
    return 0;
}

static void put_lines(struct dynbuf *out, char mark, struct span text, size_t indent)
{
    for (struct span rest = text; rest.n;) {
        struct span line = next_line(&rest);
        (void)dynbuf_addf(out, "%c%*s", mark, (int)indent, "");
        (void)dynbuf_add(out, line);
    }
}

static size_t count_lines(struct span text)
{
    size_t n = 0;
    while (text.n) {
        (void)next_line(&text);
        n++;
    }
    return n;
}

/* The last CONTEXT lines, or the first. */
static struct span near_end(struct span text)
{
    size_t n = text.n;
    for (size_t lines = 0; n; n--)
        if (text.p[n - 1] == '\n' && n != text.n && ++lines == CONTEXT)
            break;
    return span_from(text, n);
}

static struct span near_begin(struct span text)
{
    struct span rest = text;
    for (size_t i = 0; i < CONTEXT && rest.n; i++)
        (void)next_line(&rest);
    return span_first(text, text.n - rest.n);
}

int learn_patch(const char *path, struct span rules, struct dynbuf *out, struct err *e)
{
    struct arena a;
    struct span text = SPAN_NONE;
    struct rules_end r = {0};
    struct dynbuf added;
    arena_init(&a, 2 * PATCHED_MAX);
    dynbuf_init(&added, 2 * LEARNT_MAX);
    int rc = policy_read_file(path, PATCHED_MAX, &a, &text, e);
    if (rc == 0)
        rc = find_end(text, &r, e);
    for (struct span rest = rules; rc == 0 && rest.n;) {
        struct span line = next_line(&rest);
        if (line.p[0] == ' ') /* the others say what was left out */
            put_lines(&added, '+', span_from(line, 2), r.indent);
    }
    if (rc == 0 && added.n) {
        struct span before = near_end(span_first(text, r.at)), after = near_begin(span_from(text, r.at));
        size_t first = count_lines(span_first(text, r.at)) - count_lines(before) + 1;
        size_t both = count_lines(before) + count_lines(after);
        (void)dynbuf_addf(out, "--- %s\n+++ %s\n@@ -%zu,%zu +%zu,%zu @@\n", path, path, first, both, first,
                          both + count_lines(dynbuf_span(&added)));
        put_lines(out, ' ', before, 0);
        (void)dynbuf_add(out, dynbuf_span(&added));
        put_lines(out, ' ', after, 0);
    }
    if (rc == 0 && (!dynbuf_ok(&added) || !dynbuf_ok(out)))
        rc = err_set(e, "the patch would be too long");
    dynbuf_free(&added);
    arena_free(&a);
    return rc;
}
