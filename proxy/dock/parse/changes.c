#include "proxy/dock/parse/changes.h"

#include "common/id.h"

static const struct {
    const char *word, *type;
} words[CHANGES] = {
    [CHANGE_WATCHES] = {"watches", NULL},
    [CHANGE_MISSED] = {"missed", NULL},
    [CHANGE_CREATED] = {"created", "EVENT_TYPE_CREATE"},
    [CHANGE_WRITTEN] = {"written", "EVENT_TYPE_WRITE"},
    [CHANGE_REMOVED] = {"removed", "EVENT_TYPE_REMOVE"},
    [CHANGE_RENAMED] = {"renamed", "EVENT_TYPE_RENAME"},
    [CHANGE_MODE] = {"mode", "EVENT_TYPE_CHMOD"},
};

const char *change_type(enum change_is what)
{
    return what < CHANGES ? words[what].type : NULL;
}

/* -1: it has what is no %XX, a NUL, or more bytes than a path. */
static int path_decode(struct span text, struct change *c)
{
    c->n = 0;
    for (size_t i = 0; i < text.n; i++) {
        int byte = text.p[i] == '%' ? hex_number(span_from(text, i + 1), 2) : text.p[i];
        i += text.p[i] == '%' ? 2 : 0;
        if (byte <= 0 || c->n == CHANGE_PATH_MAX)
            return -1;
        c->path[c->n++] = (uint8_t)byte;
    }
    return 0;
}

enum change_got change_take(struct span in, struct change *c, size_t *used)
{
    struct span word, path, line = span_first(in, span_index(in, '\n'));

    *used = 0;
    if (line.n > CHANGE_LINE_MAX)
        return CHANGE_BAD;
    if (line.n == in.n)
        return CHANGE_MORE;
    bool two = span_cut(line, ' ', &word, &path);
    c->what = CHANGE_NONE;
    for (size_t i = CHANGE_NONE + 1; i < CHANGES; i++)
        if (span_eq(word, span_str(words[i].word)))
            c->what = (enum change_is)i;
    if (!two || c->what == CHANGE_NONE || path_decode(path, c) != 0 || (c->n > 0) != (change_type(c->what) != NULL))
        return CHANGE_BAD;
    *used = line.n + 1;
    return CHANGE_TAKEN;
}
