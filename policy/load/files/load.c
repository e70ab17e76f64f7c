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
    return l.failed ? -1 : 0;
}
