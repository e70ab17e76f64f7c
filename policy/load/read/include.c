/* A policy's files: those that were named, and those that they include. Which file a path means is settled here, on
 * the text alone ("..", doubled slashes); whoever fetches it follows no link, so that the text is the truth. */
#include <stdio.h>

#include "policy/load/read/model.h"

enum { CHAIN_TEXT = 300 };

enum walk { NOT_WALKED = 0, WALKING, WALKED };

struct source {
    const char *name;
    struct span text;
    struct m_file *file;
    size_t top; /* how much of the name is the folder of the file that the operator named */
    enum walk walk;
    bool floors;
};

struct reading {
    struct loader *l;
    struct source v[POLICY_FILES_MAX];
    size_t n;
    const struct source *chain[POLICY_FILES_MAX];
    size_t depth;
    bool full;
};

static size_t folder(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) + 1 : 0;
}

/* "a.yaml includes b.yaml includes c.yaml", from the first file that the operator named; of a long one the end. */
static void chain_text(const struct reading *r, struct span last, char out[CHAIN_TEXT])
{
    size_t first = r->depth > 4 ? r->depth - 4 : 0, n = 0;
    out[0] = '\0';
    for (size_t i = first; i < r->depth && n < CHAIN_TEXT; i++)
        n += (size_t)snprintf(out + n, CHAIN_TEXT - n, "%s%.60s includes ", i == first && first ? "... " : "",
                              r->chain[i]->name);
    if (n < CHAIN_TEXT)
        snprintf(out + n, CHAIN_TEXT - n, "%.*s", SPAN_FMT(span_first(last, 60)));
}

static void refuse(struct reading *r, const struct item *at, struct span path, const char *why)
{
    char chain[CHAIN_TEXT];
    chain_text(r, path, chain);
    load_problem(r->l, at->at, "P018", "%.200s (%s)", why, chain);
}

/* The path that the including file's folder and the text make, without "." and ".."; NULL after a problem. */
static const char *join_path(struct reading *r, const struct source *from, const struct item *inc)
{
    size_t n = folder(from->name);
    char *path = arena_alloc(&r->l->a, n + inc->text.n + 2);
    struct span rest = inc->text, part;
    if (path == NULL || rest.n > 512 || span_starts(rest, SPAN("/")) || span_ends(rest, SPAN("/"))) {
        refuse(r, inc, inc->text,
               path ? "an included file is named by a path that is relative to the folder of this one" : "no memory");
        return NULL;
    }
    memcpy(path, from->name, n);
    while (rest.n) {
        bool more = span_cut(rest, '/', &part, &rest);
        if (span_eq(part, SPAN("..")) && n == from->top) {
            refuse(r, inc, inc->text, "this leaves the folder of the policy: include what lies in it or below");
            return NULL;
        }
        if (span_eq(part, SPAN("..")))
            for (n--; n > from->top && path[n - 1] != '/';)
                n--;
        if (part.n == 0 || span_eq(part, SPAN(".")) || span_eq(part, SPAN("..")))
            continue;
        memcpy(path + n, part.p, part.n);
        n += part.n;
        if (more)
            path[n++] = '/';
    }
    path[n] = '\0';
    return path;
}

static struct source *known(struct reading *r, const char *name, struct span text)
{
    for (size_t i = 0; i < r->n; i++) {
        struct source *s = &r->v[i];
        if (!s->floors && (strcmp(s->name, name) == 0 || (text.p && s->text.p == text.p)))
            return s;
    }
    return NULL;
}

static struct source *add(struct reading *r, const char *name, struct span text, size_t top, bool floors)
{
    const struct policy_file f = {name, text, floors};
    struct source *s = &r->v[r->n];
    *s = (struct source){.name = name, .text = text, .top = top, .floors = floors};
    s->file = read_file(r->l, &f);
    if (s->file == NULL)
        return NULL;
    r->n++;
    return s;
}

static void only_in_top(struct reading *r, const struct source *s)
{
    char chain[CHAIN_TEXT];
    const struct node *const at[] = {s->file->name.at, s->file->require_signed.at, s->file->learning.at};
    chain_text(r, span_str(s->name), chain);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
        if (at[i])
            load_problem(r->l, at[i], "P018", "\"%.*s\" stands only in a file that the gateway is given (%s)",
                         SPAN_FMT(at[i]->key->text), chain);
}

/* The source that an entry of include: means, read now or before; NULL after a problem. */
static struct source *included(struct reading *r, const struct source *from, const struct item *inc)
{
    struct err why = {""};
    struct span text = SPAN_NONE;
    const char *name = join_path(r, from, inc);
    struct source *s = name ? known(r, name, SPAN_NONE) : NULL;
    if (name == NULL || s)
        return s;
    if (r->l->fetch == NULL || r->l->fetch(r->l->fetch_arg, POLICY_REF_INCLUDE, span_str(name), &text, &why) != 0) {
        refuse(r, inc, span_str(name), why.text[0] ? why.text : "there is no such file");
        return NULL;
    }
    s = known(r, name, text);
    if (s)
        return s;
    if (r->n == POLICY_FILES_MAX) {
        r->full = true;
        load_problem(r->l, inc->at, "P018", "more than %d files with those that are included: join some",
                     POLICY_FILES_MAX);
        return NULL;
    }
    s = add(r, name, text, from->top, false);
    if (s)
        only_in_top(r, s);
    return s;
}

/* Depth first; at most POLICY_FILES_MAX deep, since no file is walked twice. */
static int walk(struct reading *r, struct source *s)
{
    const struct items *inc = &s->file->include;
    int rc = 0;
    s->walk = WALKING;
    r->chain[r->depth++] = s;
    if (inc->n > POLICY_FILES_MAX) {
        load_problem(r->l, inc->at, "P018",
                     "%zu files are included here, more than the %d of a whole policy: join some", inc->n,
                     POLICY_FILES_MAX);
        rc = -1;
    }
    for (size_t i = 0; rc == 0 && i < inc->n; i++) {
        struct source *next = included(r, s, &inc->v[i]);
        if (next == NULL) {
            rc = -1;
        } else if (next->walk == WALKING) {
            refuse(r, &inc->v[i], span_str(next->name), "files include each other in a circle: remove one include");
            rc = -1;
        } else if (next->walk == NOT_WALKED) {
            rc = walk(r, next);
        }
    }
    r->depth--;
    s->walk = WALKED;
    return rc;
}

static void check_signed(struct reading *r, const struct source *s)
{
    const struct number *n = &s->file->require_signed;
    struct err why = {""};
    struct span none;
    if (n->at == NULL || n->v == 0)
        return;
    if (r->l->fetch == NULL || r->l->fetch(r->l->fetch_arg, POLICY_REF_SIGNED, span_str(s->name), &none, &why) != 0)
        load_problem(r->l, n->at, "P019", "the files of this policy must be signed: %.300s",
                     why.text[0] ? why.text : "nobody here looks at signatures");
}

int read_files(struct loader *l, const struct policy_file *files, size_t n, struct m_file **out, size_t *nout)
{
    struct reading r = {.l = l};
    int rc = n == 0 || n > POLICY_FILES_MAX ? -1 : 0;
    if (rc != 0)
        load_problem(l, NULL, "P017", "%zu policy files: there must be 1 to %d", n, POLICY_FILES_MAX);
    for (size_t i = 0; i < n && n <= POLICY_FILES_MAX; i++)
        if ((files[i].floors || known(&r, files[i].name, files[i].text) == NULL) &&
            add(&r, files[i].name, files[i].text, folder(files[i].name), files[i].floors) == NULL)
            rc = -1;
    size_t tops = r.n;
    for (size_t i = 0; i < tops; i++)
        check_signed(&r, &r.v[i]);
    for (size_t i = 0; rc == 0 && i < tops; i++)
        if (r.v[i].walk == NOT_WALKED)
            rc = walk(&r, &r.v[i]);
    l->file = n ? files[0].name : NULL;
    for (*nout = 0; rc == 0 && *nout < r.n; ++*nout)
        out[*nout] = r.v[*nout].file;
    return rc;
}
