/* Which steps of a path a grant may leave open: those that a pack's row leaves open itself, and its resource too. */
#include "policy/classify/classify.h"

#include "common/dynbuf.h"
#include "policy/image/glob.h"

enum { STEP_MAX = 128 };

/* Nothing that some server might take for more than one step, or for none. */
static bool is_plain(struct span step)
{
    bool dots = true;
    for (size_t i = 0; i < step.n; i++) {
        uint8_t c = step.p[i], letter = c | 0x20;
        if (!(letter >= 'a' && letter <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '_' && c != '.' &&
            c != '~')
            return false;
        dots = dots && c == '.';
    }
    return step.n > 0 && step.n <= STEP_MAX && !dots;
}

/* Does the template say {k}? */
static bool is_said(struct span template, size_t k)
{
    for (size_t i = 0; i + 3 <= template.n; i++)
        if (template.p[i] == '{' && template.p[i + 1] == '0' + k && template.p[i + 2] == '}')
            return true;
    return false;
}

static size_t steps(struct span s)
{
    size_t n = 1;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == '/';
    return n;
}

int classify_open_path(struct span pattern, struct span resource, struct span path, struct arena *a, struct span *out)
{
    struct span want, is;
    struct dynbuf b;
    size_t k = 0;
    /* Without a resource nobody said which of them is what it is about. */
    bool opens = resource.n > 0 && steps(pattern) == steps(path);
    dynbuf_init(&b, path.n + steps(path) * sizeof(POLICY_OPEN));
    for (bool more = true, first = true; more; first = false) {
        more = span_cut(path, '/', &is, &path);
        (void)span_cut(pattern, '/', &want, &pattern);
        opens = opens && !span_eq(want, SPAN("**"));
        k += span_index(want, '*') < want.n;
        bool open = opens && span_eq(want, SPAN("*")) && k <= GLOB_CAPTURES && !is_said(resource, k) && is_plain(is);
        if (!first)
            (void)dynbuf_add(&b, SPAN("/"));
        (void)dynbuf_add(&b, open ? SPAN(POLICY_OPEN) : is);
    }
    *out = arena_copy(a, dynbuf_span(&b));
    int rc = dynbuf_ok(&b) && out->n == b.n ? 0 : -1;
    dynbuf_free(&b);
    return rc;
}
