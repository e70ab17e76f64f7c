#include "cli/table.h"

#include <stdio.h>
#include <unistd.h>

#include "common/text/visible.h"

enum { ROWS_BYTES = 64 * 1024 * 1024, GAP = 2 };

void table_begin(struct table *t, const char *heads)
{
    *t = (struct table){.people = isatty(STDOUT_FILENO), .heads = heads};
    dynbuf_init(&t->rows, ROWS_BYTES);
}

void table_add(struct table *t, const char *words)
{
    (void)dynbuf_add(&t->rows, span_str(words));
}

void table_add_text(struct table *t, struct span s)
{
    visible_text(&t->rows, s, false);
}

void table_next(struct table *t)
{
    (void)dynbuf_add_byte(&t->rows, '\t');
}

void table_cell(struct table *t, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    table_add(t, text);
    table_next(t);
}

void table_text(struct table *t, struct span s)
{
    table_add_text(t, s);
    table_next(t);
}

void table_row(struct table *t)
{
    (void)dynbuf_add_byte(&t->rows, '\n');
}

/* In characters, not bytes: what is shown is one column wide, but for some scripts. */
static size_t wide(struct span s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += (s.p[i] & 0xc0) != 0x80;
    return n;
}

/* The next cell of a row, and what is left of the row. */
static struct span cut(struct span *row)
{
    struct span cell, rest;

    if (!span_cut(*row, '\t', &cell, &rest)) {
        cell = *row;
        rest = SPAN_NONE;
    }
    *row = rest;
    return cell;
}

static void measure(struct table *t, struct span row)
{
    for (size_t i = 0; row.n > 0 && i < TABLE_COLUMNS; i++) {
        size_t n = wide(cut(&row));
        if (n > t->width[i])
            t->width[i] = n;
    }
}

/* Blanks are owed until something follows: no line ends with them. */
static void print_row(const struct table *t, struct span row)
{
    size_t owed = 0;

    for (size_t i = 0; row.n > 0; i++) {
        struct span cell = cut(&row);
        if (cell.n > 0) {
            printf("%*s%.*s", (int)owed, "", SPAN_FMT(cell));
            owed = 0;
        }
        owed += GAP + (t->people && i < TABLE_COLUMNS ? t->width[i] - wide(cell) : 0);
    }
    putchar('\n');
}

void table_flush(struct table *t)
{
    struct span rows = dynbuf_ok(&t->rows) ? dynbuf_span(&t->rows) : SPAN("(too long to show)\n"), row, rest;

    if (rows.n == 0)
        return;
    if (t->people && !t->headed)
        measure(t, span_str(t->heads));
    for (struct span at = rows; t->people && span_cut(at, '\n', &row, &rest); at = rest)
        measure(t, row);
    if (t->people && !t->headed)
        print_row(t, span_str(t->heads));
    for (struct span at = rows; span_cut(at, '\n', &row, &rest); at = rest)
        print_row(t, row);
    t->headed = true;
    dynbuf_reset(&t->rows);
}

void table_end(struct table *t, const char *empty)
{
    table_flush(t);
    if (!t->headed)
        fprintf(t->people ? stdout : stderr, "%s\n", empty);
    dynbuf_free(&t->rows);
}
