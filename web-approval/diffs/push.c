/* The commands of a push, once more: the judge decided by its own reading; this one finds what a diff is made of. */
#include "common/id.h"
#include "web-approval/diffs/diffs.h"

enum { LINE_MOST = 65520, LINES_MOST = 4096 };
enum line { LINE_NONE = 0, LINE_TEXT, LINE_END };

static enum line line_next(struct span body, size_t *at, struct span *text)
{
    int n = body.n - *at < 4 ? -1 : hex_number(span_from(body, *at), 4);
    size_t used = n > 0 ? (size_t)n : 4;

    if (n < 0 || (n > 0 && n <= 4) || used > LINE_MOST || used > body.n - *at)
        return LINE_NONE;
    *text = span_of(body.p + *at + 4, used - 4);
    *at += used;
    return n == 0 ? LINE_END : LINE_TEXT;
}

static bool is_id(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
            return false;
    return s.n == 40 || s.n == 64;
}

static bool is_zero(struct span id)
{
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] != '0')
            return false;
    return true;
}

static bool has_word(struct span words, struct span word)
{
    struct span one;

    while (words.n > 0) {
        (void)span_cut(words, ' ', &one, &words);
        if (span_eq(one, word))
            return true;
    }
    return false;
}

static const char *command_take(struct span line, struct push *p)
{
    struct span *old = &p->old_id[p->n], *new = &p->new_id[p->n], rest;

    if (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    if (p->n == PUSH_REFS)
        return "it changes more refs than are compared (16)";
    if (!span_cut(line, ' ', old, &rest) || !span_cut(rest, ' ', new, &p->name[p->n]) || !is_id(*old) ||
        !is_id(*new) || old->n != new->n || (p->n > 0 && old->n != p->old_id[0].n))
        return "its commands cannot be read";
    p->n++;
    return NULL;
}

bool diff_names(struct diff *one, const struct push *p)
{
    dynbuf_reset(&one->names);
    one->nrefs = p->n;
    for (size_t i = 0; i < p->n; i++)
        if (dynbuf_add(&one->names, p->name[i]) != 0 || dynbuf_add(&one->names, SPAN("\n")) != 0)
            return false;
    return true;
}

const char *push_read(struct span body, struct push *p)
{
    struct span line, more, capabilities = SPAN_NONE;
    enum line is = LINE_NONE;
    const char *bad = NULL;
    size_t at = 0;
    bool packs = false;

    *p = (struct push){.n = 0};
    for (size_t i = 0; !bad && i < LINES_MOST && (is = line_next(body, &at, &line)) == LINE_TEXT; i++) {
        if (span_starts(line, SPAN("shallow ")))
            return "it comes from a shallow clone, of which not all is there";
        if (p->n == 0 && span_cut(line, '\0', &line, &more))
            capabilities = more;
        bad = command_take(line, p);
        packs |= !bad && !is_zero(p->new_id[p->n - 1]);
    }
    if (bad)
        return bad;
    if (is != LINE_END || p->n == 0)
        return "its commands cannot be read";
    if (capabilities.n > 0 && capabilities.p[capabilities.n - 1] == '\n')
        capabilities.n--;
    if (has_word(capabilities, SPAN("push-options")))
        while ((is = line_next(body, &at, &line)) == LINE_TEXT)
            ;
    p->format = p->old_id[0].n == 64 ? "sha256" : "sha1";
    p->pack_at = packs ? at : 0;
    return is != LINE_END || (packs && !span_starts(span_from(body, at), SPAN("PACK")))
               ? "it has no pack where one belongs"
               : NULL;
}
