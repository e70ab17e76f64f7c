#include "policy/load/model.h"

/* Arena of one load: the trees of all files. */
enum { LOAD_MEMORY_MAX = 256 * 1024 * 1024, FILES_MAX = 64 };

/* What was written must be what judges can open. */
static void check_opens(struct loader *l, const struct dynbuf *out)
{
    struct err why = {""};
    struct policy *p = policy_open(dynbuf_span(out), &why);
    if (p == NULL)
        problem(l, NULL, "P099", "the compiled policy does not open, which is a fault of this program: %.300s",
                why.text);
    policy_close(p);
}

int policy_load(const struct policy_file *files, size_t nfiles, policy_fetch_fn *fetch, void *arg, struct dynbuf *out,
                struct policy_problems *problems, struct err *e)
{
    struct loader l = {.problems = problems, .e = e, .fetch = fetch, .fetch_arg = arg};
    struct m_file *read[FILES_MAX];
    struct model m = {0};
    size_t n = 0;
    arena_init(&l.a, LOAD_MEMORY_MAX);
    if (nfiles == 0 || nfiles > FILES_MAX)
        problem(&l, NULL, "P017", "%zu policy files: there must be 1 to %d", nfiles, FILES_MAX);
    for (size_t i = 0; i < nfiles && i < FILES_MAX; i++) {
        read[n] = read_file(&l, &files[i]);
        n += read[n] != NULL;
    }
    l.file = nfiles ? files[0].name : NULL;
    /* Files that could not be read leave names unknown; complaints about those would only mislead. */
    if (n == nfiles && n > 0) {
        gather(&l, read, n, &m);
        read_packs(&l, read, n, &m);
        l.file = files[0].name;
        if (m.rules && m.packs)
            check_model(&l, &m);
    }
    if (!l.failed)
        warn_model(&l, &m);
    if (!l.failed && emit_image(&l, &m, out) == 0)
        check_opens(&l, out);
    arena_free(&l.a);
    return l.failed ? -1 : 0;
}
