/* Proposed rules as a unified diff that puts them at the end of a file's rules:, wherever that stands, or in place of
 * an empty one, or at the end of a file that has none. The file is read and never written. This knows lines, not
 * YAML: whoever calls it loads what comes of it. */
#include "cli/policy/learn/learn.h"
#include "policy/load/disk.h"

enum { PATCHED_MAX = 8 * 1024 * 1024, CONTEXT = 3 };
#define NOT_A_LIST                                                                                                   \
    "its rules: is not a list of lines that begin with \"- \": write it so, or leave --patch out and copy the rules"

struct rules_end {
    size_t at, indent; /* behind the last rule, or where the empty list stands; of the "-" of a rule */
    struct span empty; /* the line of a list without rules */
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

/* What stands behind "[]", without blanks in it; false: it is another value. */
static bool behind_empty(struct span value, struct span *rest)
{
    if (value.n == 0 || value.p[0] != '[')
        return false;
    value = span_from(value, 1);
    while (value.n && value.p[0] == ' ')
        value = span_from(value, 1);
    if (value.n == 0 || value.p[0] != ']')
        return false;
    *rest = span_from(value, 1);
    struct span last = bare(*rest);
    return last.n == 0 || last.p[0] == '#';
}

static int rules_begin(struct span line, size_t begin, struct rules_end *r, struct err *e)
{
    struct span value = span_from(line, SPAN("rules:").n), behind = bare(value), rest;
    r->found = true;
    if (behind_empty(behind, &rest)) {
        r->at = begin;
        r->empty = line;
    } else if (behind.n && behind.p[0] != '#') {
        return err_set(e, NOT_A_LIST);
    }
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
    *r = (struct rules_end){.indent = 2};
    for (struct span rest = text; rest.n;) {
        struct span line = next_line(&rest);
        size_t end = (size_t)(rest.p ? rest.p - text.p : (ptrdiff_t)text.n);
        if (r->found && rules_line(line, end, r) != 0)
            break;
        if (!r->found && span_starts(line, SPAN("rules:")) && rules_begin(line, end - line.n, r, e) != 0)
            return -1;
        if (r->empty.n)
            break;
    }
    if (r->found && !r->item && r->empty.n == 0)
        return err_set(e, NOT_A_LIST);
    if (!r->found)
        r->at = text.n;
    if (text.n == 0 || text.p[text.n - 1] != '\n')
        return err_set(e, "its last line has no line end: add one");
    return 0;
}

static void put_lines(struct dynbuf *out, char mark, struct span text)
{
    for (struct span rest = text; rest.n;) {
        (void)dynbuf_add_byte(out, (uint8_t)mark);
        (void)dynbuf_add(out, next_line(&rest));
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

/* The lines that are new: rules: where there is none with lines, and the rules with the blanks that others have. */
static void put_added(struct dynbuf *out, const struct rules_end *r, struct span rules)
{
    struct span rest = SPAN("\n");
    if (r->empty.n)
        (void)behind_empty(span_trim(span_from(r->empty, SPAN("rules:").n)), &rest);
    if (r->empty.n || !r->found) {
        (void)dynbuf_add(out, SPAN("rules:"));
        (void)dynbuf_add(out, rest);
    }
    while (rules.n) {
        struct span line = next_line(&rules);
        if (line.p[0] != ' ') /* the others say what was left out */
            continue;
        (void)dynbuf_addf(out, "%*s", (int)r->indent, "");
        (void)dynbuf_add(out, span_from(line, 2));
    }
}

static void put_hunk(struct dynbuf *out, const char *path, struct span text, const struct rules_end *r,
                     struct span added)
{
    struct span before = near_end(span_first(text, r->at)), after = near_begin(span_from(text, r->at + r->empty.n));
    size_t first = count_lines(span_first(text, r->at)) - count_lines(before) + 1;
    size_t both = count_lines(before) + count_lines(after);
    (void)dynbuf_addf(out, "--- %s\n+++ %s\n@@ -%zu,%zu +%zu,%zu @@\n", path, path, first,
                      both + count_lines(r->empty), first, both + count_lines(added));
    put_lines(out, ' ', before);
    put_lines(out, '-', r->empty);
    put_lines(out, '+', added);
    put_lines(out, ' ', after);
}

int learn_patch(const char *path, struct span rules, struct dynbuf *out, struct dynbuf *patched, struct err *e)
{
    struct arena a;
    struct span text = SPAN_NONE;
    struct rules_end r;
    struct dynbuf added;
    arena_init(&a, 2 * PATCHED_MAX);
    dynbuf_init(&added, 2 * LEARNT_MAX);
    int rc = policy_read_file(path, PATCHED_MAX, &a, &text, e);
    if (rc == 0)
        rc = find_end(text, &r, e);
    if (rc == 0 && span_find(rules, SPAN("- id: ")) < rules.n) {
        put_added(&added, &r, rules);
        put_hunk(out, path, text, &r, dynbuf_span(&added));
        (void)dynbuf_add(patched, span_first(text, r.at));
        (void)dynbuf_add(patched, dynbuf_span(&added));
        (void)dynbuf_add(patched, span_from(text, r.at + r.empty.n));
    }
    if (rc == 0 && (!dynbuf_ok(&added) || !dynbuf_ok(out) || !dynbuf_ok(patched)))
        rc = err_set(e, "the patch would be too long");
    dynbuf_free(&added);
    arena_free(&a);
    return rc;
}
