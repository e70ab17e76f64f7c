#include <stdlib.h>

#include "policy/load/read/model.h"

/* Arena of one load: the trees of all files. */
enum { LOAD_MEMORY_MAX = 256 * 1024 * 1024 };

/* What was written must be what judges can open. */
static void check_opens(struct loader *l, const struct dynbuf *out)
{
    struct err why = {""};
    struct policy *p = policy_open(dynbuf_span(out), &why);
    if (p == NULL)
        load_problem(l, NULL, "P099", "the compiled policy does not open, which is a fault of this program: %.300s",
                     why.text);
    policy_close(p);
}

/* A problem's place, to put them in the order of the lines. */
struct place {
    size_t file, was; /* the first problem of its file; itself */
    unsigned long line, col;
    struct policy_problem problem;
};

static struct place place_of(const struct policy_problems *all, size_t i)
{
    struct place p = {.was = i, .problem = all->v[i]};
    const char *where = all->v[i].where, *col = strrchr(where, ':'), *line = col;
    while (line && line > where && *--line != ':')
        ;
    while (line && p.file < i && strncmp(all->v[p.file].where, where, (size_t)(line - where) + 1) != 0)
        p.file++;
    p.line = line ? strtoul(line + 1, NULL, 10) : 0;
    p.col = col ? strtoul(col + 1, NULL, 10) : 0;
    return p;
}

static int order(unsigned long a, unsigned long b)
{
    return (a > b) - (a < b);
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int c = order(x->file, y->file);
    c = c ? c : order(x->line, y->line);
    c = c ? c : order(x->col, y->col);
    return c ? c : order(x->was, y->was);
}

/* As they are found they come in the order of the checks. Without memory they stay so. */
static void problems_sort(struct policy_problems *all)
{
    struct place *v = all && all->n > 1 ? calloc(all->n, sizeof(*v)) : NULL;
    for (size_t i = 0; v && i < all->n; i++)
        v[i] = place_of(all, i);
    if (v)
        qsort(v, all->n, sizeof(*v), by_place);
    for (size_t i = 0; v && i < all->n; i++)
        all->v[i] = v[i].problem;
    free(v);
}

int policy_load(const struct policy_file *files, size_t nfiles, policy_fetch_fn *fetch, void *arg, uint64_t now_ms,
                struct dynbuf *out, struct policy_problems *problems, struct err *e)
{
    struct loader l = {.problems = problems, .e = e, .fetch = fetch, .fetch_arg = arg, .now_ms = now_ms};
    struct m_file *read[POLICY_FILES_MAX];
    struct model m = {0};
    size_t n = 0;
    arena_init(&l.a, LOAD_MEMORY_MAX);
    /* Files that could not be read leave names unknown; complaints about those would only mislead. */
    if (read_files(&l, files, nfiles, read, &n) == 0) {
        model_gather(&l, read, n, &m);
        read_packs(&l, read, n, &m);
        l.file = files[0].name;
        if (m.rules && m.packs)
            check_model(&l, &m);
    }
    if (!l.failed && load_problem_kept(&l, false))
        warn_model(&l, &m);
    if (!l.failed && emit_image(&l, &m, out) == 0)
        check_opens(&l, out);
    arena_free(&l.a);
    problems_sort(problems);
    return l.failed ? -1 : 0;
}
