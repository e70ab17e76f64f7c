#include "cli/verbs/watch/watch.h"

enum { LEAST_ROWS = 8, LEAST_COLUMNS = 40, TAB = 8 };

static void add(struct lines *l, size_t at)
{
    if (l->n < LINES_MAX)
        l->at[l->n++] = at;
    else
        l->cut = true;
}

void lines_cut(struct span text, unsigned columns, struct lines *out)
{
    unsigned used = 0;

    out->n = 0;
    out->cut = false;
    if (text.n)
        add(out, 0);
    for (size_t i = 0; i < text.n && !out->cut; i++) {
        uint8_t c = text.p[i];
        unsigned cells = c == '\t' ? TAB : c < 0x80 ? 1 : (c & 0xc0) == 0x80 ? 0 : 2;
        if (c == '\n') {
            used = 0;
            if (i + 1 < text.n)
                add(out, i + 1);
        } else if (used + cells > columns && cells > 0 && used > 0) {
            add(out, i);
            used = cells;
        } else {
            used += cells;
        }
    }
    out->at[out->n] = text.n;
}

bool lines_fit(const struct lines *l, unsigned rows, unsigned columns)
{
    return l->n > 0 && !l->cut && l->n <= rows && rows >= LEAST_ROWS && columns >= LEAST_COLUMNS;
}
