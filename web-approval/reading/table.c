#include "web-approval/reading/table.h"

enum { DIFFERS_READ = 64 };

static struct span field_name(const struct json *f)
{
    return f->child ? f->child->text : SPAN_NONE;
}

static struct span field_value(const struct json *f)
{
    struct span v = f->child && f->child->next ? f->child->next->text : SPAN_NONE;
    return v.p ? v : SPAN("");
}

/* The nth field of this name. */
static struct span field(const struct reading *r, struct span name, size_t nth)
{
    const struct json *list = r->asked->fields;

    for (const struct json *f = list ? list->child : NULL; f; f = f->next)
        if (span_ieq(field_name(f), name) && nth-- == 0)
            return field_value(f);
    return SPAN_NONE;
}

/* Those of one that the other has not like this. back: only what the other lacks. */
static size_t fields_differ(const struct reading *was, const struct reading *is, bool back, struct differs *out,
                            size_t n)
{
    const struct json *list = (back ? was : is)->asked->fields;

    for (const struct json *f = list ? list->child : NULL; f; f = f->next) {
        struct span name = field_name(f), v = field_value(f);
        size_t nth = 0;
        if (span_ieq(name, SPAN("content-length"))) /* of a body that is compared itself */
            continue;
        for (const struct json *g = list->child; g != f; g = g->next)
            nth += span_ieq(field_name(g), name);
        struct span w = field(back ? is : was, name, nth);
        if (back ? w.p != NULL : w.p && span_eq(v, w))
            continue;
        if (n < DIFFERS_READ)
            out[n] = back ? (struct differs){name, v, w} : (struct differs){name, w, v};
        n++;
    }
    return n;
}

/* Of the head's fields as well; how many there are, of which DIFFERS_READ are kept. */
static size_t differs(const struct reading *was, const struct reading *is, struct differs *out)
{
    size_t n = reading_differs(was, is, out, DIFFERS_READ);

    n = fields_differ(was, is, false, out, n);
    return fields_differ(was, is, true, out, n);
}

static size_t column_of(struct table *t, struct span name)
{
    size_t i = 0;

    while (i < t->ncolumns && !span_eq(t->name[i], name))
        i++;
    if (i < t->ncolumns)
        return i;
    if (i == TABLE_COLUMNS) {
        t->more++;
        return i;
    }
    t->name[t->ncolumns++] = name;
    return i;
}

/* Every name in which one differs from the first, and what the first has there. */
static void columns(const struct reading *const *rows, size_t n, struct table *t)
{
    struct differs d[DIFFERS_READ];

    for (size_t k = 1; k < n; k++) {
        size_t m = differs(rows[0], rows[k], d);
        t->more += m > DIFFERS_READ ? m - DIFFERS_READ : 0;
        m = m < DIFFERS_READ ? m : DIFFERS_READ;
        for (size_t i = 0; i < m; i++) {
            size_t before = t->ncolumns, c = column_of(t, d[i].name);
            if (c == before && c < TABLE_COLUMNS)
                t->cell[0][c].value = d[i].was;
        }
    }
}

/* A row has what the first has, but for what it differs in. */
static void cells(const struct reading *const *rows, size_t n, struct table *t)
{
    struct differs d[DIFFERS_READ];

    for (size_t k = 1; k < n; k++) {
        bool told[TABLE_COLUMNS] = {false};
        size_t m = differs(rows[0], rows[k], d);
        m = m < DIFFERS_READ ? m : DIFFERS_READ;
        for (size_t c = 0; c < t->ncolumns; c++)
            t->cell[k][c].value = t->cell[0][c].value;
        for (size_t i = 0; i < m; i++) {
            size_t c = column_of(t, d[i].name);
            if (c < t->ncolumns && !told[c]) {
                t->cell[k][c].value = d[i].is;
                told[c] = true;
            }
        }
    }
}

static bool same(struct span a, struct span b)
{
    return !a.p == !b.p && span_eq(a, b);
}

/* What most have, if nearly all do. */
static bool odd_in(struct table *t, size_t n, size_t c)
{
    bool any = false;
    size_t best = 0, most = 0, few = n < 4 ? 1 : n / 4;

    for (size_t k = 0; k < n; k++) {
        size_t alike = 0;
        for (size_t j = 0; j < n; j++)
            alike += same(t->cell[k][c].value, t->cell[j][c].value);
        if (alike > most) {
            most = alike;
            best = k;
        }
    }
    for (size_t k = 0; k < n && n >= 3 && most >= n - few; k++) {
        t->cell[k][c].odd = !same(t->cell[k][c].value, t->cell[best][c].value);
        any |= t->cell[k][c].odd;
    }
    return any;
}

static void swap(struct table *t, size_t n, size_t a, size_t b)
{
    struct span name = t->name[a];

    t->name[a] = t->name[b];
    t->name[b] = name;
    for (size_t k = 0; k < n; k++) {
        struct table_cell cell = t->cell[k][a];
        t->cell[k][a] = t->cell[k][b];
        t->cell[k][b] = cell;
    }
}

void reading_table(const struct reading *const *rows, size_t n, struct table *out)
{
    *out = (struct table){.ncolumns = 0};
    n = n < TABLE_ROWS ? n : TABLE_ROWS;
    if (n < 2)
        return;
    columns(rows, n, out);
    size_t more = out->more;
    cells(rows, n, out);
    out->more = more; /* told once */
    for (size_t c = 0; c < out->ncolumns; c++)
        if (odd_in(out, n, c))
            swap(out, n, c, out->nodd++);
}
