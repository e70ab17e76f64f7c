/* Files and packs into one model. */
#include <stdlib.h>

#include "common/text/nearest.h"
#include "policy/load/read/model.h"
#include "policy/load/read/names.h"
#include "policy/load/read/scalar.h"

struct m_file *read_file(struct loader *l, const struct policy_file *f)
{
    const struct table *t = f->floors ? &floors_table : &file_table;
    struct node *root = yaml_tree(l, f->name, f->text);
    struct m_file *out = root ? arena_alloc(&l->a, sizeof(*out)) : NULL;
    if (out == NULL)
        return NULL;
    keys_decode_map(l, root, t, out);
    names_of_file(l, out);
    for (size_t i = 0; i < out->rules.n; i++)
        ((struct m_rule *)out->rules.v)[i].floor = f->floors;
    return out;
}

struct named {
    const struct node *at;
    struct item name;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = *(const struct named *const *)a, *y = *(const struct named *const *)b;
    return span_cmp(x->name.text, y->name.text);
}

/* All members of one kind, sorted by name; names are unique over all files. Lists are found by their
 * offset in struct m_file. Every named struct begins like struct named. */
static void *collect(struct loader *l, struct m_file *const *files, size_t nfiles, size_t at, size_t size,
                     const char *what, size_t *n)
{
    size_t max = 1;
    *n = 0;
    for (size_t i = 0; i < nfiles; i++)
        max += ((const struct list *)(const void *)((const uint8_t *)files[i] + at))->n;
    struct named **v = arena_alloc(&l->a, max * sizeof(*v));
    if (v == NULL) {
        load_problem(l, NULL, "P003", "no memory for the files");
        return NULL;
    }
    for (size_t i = 0; i < nfiles; i++) {
        const struct list *list = (const void *)((const uint8_t *)files[i] + at);
        for (size_t k = 0; k < list->n; k++)
            v[(*n)++] = (void *)((uint8_t *)list->v + size * k);
    }
    if (what == NULL)
        return v;
    qsort(v, *n, sizeof(*v), by_name);
    for (size_t i = 1; i < *n; i++)
        if (v[i]->name.at && by_name(&v[i - 1], &v[i]) == 0)
            load_problem(l, v[i]->name.at, "P012",
                         "the %s \"%.*s\" is also at %s:%u: names are unique over all files", what,
                         SPAN_FMT(v[i]->name.text), v[i - 1]->name.at->file, v[i - 1]->name.at->line);
    return v;
}

_Static_assert(offsetof(struct m_rule, id) == offsetof(struct named, name), "a rule's id sorts like a name");
_Static_assert(offsetof(struct m_scope, name) == offsetof(struct named, name), "named");
_Static_assert(offsetof(struct m_credential, name) == offsetof(struct named, name), "named");
_Static_assert(offsetof(struct m_approver, name) == offsetof(struct named, name), "named");
_Static_assert(offsetof(struct m_gate, name) == offsetof(struct named, name), "named");
_Static_assert(offsetof(struct m_upstream, host) == offsetof(struct named, name), "sorted by host");

static int by_host_and_port(const void *a, const void *b)
{
    const struct m_upstream *x = *(struct m_upstream *const *)a, *y = *(struct m_upstream *const *)b;
    int c = span_cmp(x->host.text, y->host.text);
    return c ? c : (x->port.v > y->port.v) - (x->port.v < y->port.v);
}

void model_gather(struct loader *l, struct m_file *const *files, size_t n, struct model *m)
{
    for (size_t i = n; i > 0; i--)
        if (files[i - 1]->name.at)
            m->name = files[i - 1]->name;
    for (size_t i = 0; i < n; i++) {
        const struct number *v = &files[i]->learning;
        if (v->at && m->learning.at)
            load_problem(l, v->at, "P012", "learning: is also at %s:%u", m->learning.at->file, m->learning.at->line);
        else if (v->at)
            m->learning = *v;
    }
    m->scopes = collect(l, files, n, offsetof(struct m_file, scopes), sizeof(struct m_scope), "scope", &m->nscopes);
    m->credentials = collect(l, files, n, offsetof(struct m_file, credentials), sizeof(struct m_credential),
                             "credential", &m->ncredentials);
    m->approvers = collect(l, files, n, offsetof(struct m_file, approvers), sizeof(struct m_approver),
                           "approvers entry", &m->napprovers);
    m->gates = collect(l, files, n, offsetof(struct m_file, gates), sizeof(struct m_gate), "gate", &m->ngates);
    m->rules = collect(l, files, n, offsetof(struct m_file, rules), sizeof(struct m_rule), "rule", &m->nrules);
    m->upstreams =
        collect(l, files, n, offsetof(struct m_file, upstreams), sizeof(struct m_upstream), NULL, &m->nupstreams);
    if (m->upstreams == NULL)
        return;
    for (size_t i = 0; i < m->nupstreams; i++)
        if (m->upstreams[i]->port.at == NULL)
            m->upstreams[i]->port.v = 443;
    qsort(m->upstreams, m->nupstreams, sizeof(*m->upstreams), by_host_and_port);
    for (size_t i = 1; i < m->nupstreams; i++)
        if (by_host_and_port(&m->upstreams[i - 1], &m->upstreams[i]) == 0)
            load_problem(l, m->upstreams[i]->at, "P012", "the upstream %.*s port %u is also at %s:%u",
                         SPAN_FMT(m->upstreams[i]->host.text), (unsigned)m->upstreams[i]->port.v,
                         m->upstreams[i - 1]->at->file, m->upstreams[i - 1]->at->line);
}

static int find_named(const void *rows, size_t n, struct span name)
{
    const struct named *const *v = rows;
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = span_cmp(v[mid]->name.text, name);
        if (c == 0)
            return (int)mid;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -1;
}

void model_no_such(struct loader *l, const struct item *name, const char *what, const void *rows, size_t n)
{
    enum { NAMES = 200 };
    const struct named *const *v = rows;
    const char *names[NAMES + 1] = {0}, *near;
    size_t have = 0;
    for (size_t i = 0; i < n && have < NAMES && load_problem_kept(l, true); i++) {
        struct span s = v[i]->name.text;
        char *copy = s.n ? arena_alloc(&l->a, s.n + 1) : NULL;
        if (copy) {
            memcpy(copy, s.p, s.n);
            copy[s.n] = '\0';
            names[have++] = copy;
        }
    }
    near = nearest_name(name->text, names);
    load_problem(l, name->at, "P011", "there is no %s \"%.*s\"%s%.128s%s", what,
                 SPAN_FMT(span_first(name->text, 128)), near ? "; did you mean \"" : "", near ? near : "",
                 near ? "\"?" : "");
}

int model_scope(const struct model *m, struct span name)
{
    return find_named(m->scopes, m->nscopes, name);
}

int model_credential(const struct model *m, struct span name)
{
    return find_named(m->credentials, m->ncredentials, name);
}

int model_approver(const struct model *m, struct span name)
{
    return find_named(m->approvers, m->napprovers, name);
}

int model_gate(const struct model *m, struct span name)
{
    return find_named(m->gates, m->ngates, name);
}

int model_rule(const struct model *m, struct span id)
{
    return find_named(m->rules, m->nrules, id);
}

static bool is_pack_name(struct span s)
{
    struct span name, version;
    uint64_t v;
    return span_cut(s, '@', &name, &version) && scalar_is_name(name) && span_u64(version, 9999, &v) == 0;
}

static struct m_pack *read_pack(struct loader *l, const struct m_packuse *u)
{
    struct err why = {""};
    struct span text = SPAN_NONE;
    if (!is_pack_name(u->name.text)) {
        struct span stem = span_first(u->name.text, span_index(u->name.text, '@'));
        bool there = l->fetch && l->fetch(l->fetch_arg, POLICY_REF_PACK, stem, &text, &why) == 0;
        load_problem(l, u->name.at, "P008", "a pack is named with its version, such as git@1%s%.300s",
                     there || !why.text[0] ? "" : "; ", there ? "" : why.text);
        return NULL;
    }
    if (l->fetch == NULL || l->fetch(l->fetch_arg, POLICY_REF_PACK, u->name.text, &text, &why) != 0) {
        load_problem(l, u->name.at, "P011", "there is no pack %.*s%s%.300s", SPAN_FMT(u->name.text),
                     why.text[0] ? ": " : "", why.text);
        return NULL;
    }
    char *file = arena_alloc(&l->a, u->name.text.n + 16);
    struct m_pack *k = arena_alloc(&l->a, sizeof(*k));
    if (file == NULL || k == NULL)
        return NULL;
    memcpy(file, "pack ", 5);
    memcpy(file + 5, u->name.text.p, u->name.text.n);
    struct node *root = yaml_tree(l, file, text);
    if (root == NULL)
        return NULL;
    keys_decode_map(l, root, &pack_table, k);
    names_of_pack(l, k);
    if (!span_eq(k->pack.text, u->name.text)) {
        if (k->pack.at)
            load_problem(l, u->name.at, "P011", "there is no pack %.*s: the one that is there is %.*s",
                         SPAN_FMT(span_first(u->name.text, 60)), SPAN_FMT(span_first(k->pack.text, 60)));
        return NULL;
    }
    k->use = u;
    return k;
}

static int by_pack(const void *a, const void *b)
{
    return span_cmp((*(struct m_pack *const *)a)->pack.text, (*(struct m_pack *const *)b)->pack.text);
}

static const struct m_pack *pack_read(const struct model *m, struct span name)
{
    for (size_t i = 0; i < m->npacks; i++)
        if (span_eq(m->packs[i]->use->name.text, name))
            return m->packs[i];
    return NULL;
}

void read_packs(struct loader *l, struct m_file *const *files, size_t n, struct model *m)
{
    size_t max = 1;
    for (size_t i = 0; i < n; i++)
        max += files[i]->packs.n;
    m->packs = arena_alloc(&l->a, max * sizeof(*m->packs));
    for (size_t i = 0; m->packs && i < n; i++) {
        const struct m_packuse *uses = files[i]->packs.v;
        for (size_t k = 0; k < files[i]->packs.n; k++) {
            const struct m_packuse *u = &uses[k];
            const struct m_pack *old = u->name.at ? pack_read(m, u->name.text) : NULL;
            m->packs_lost |= u->name.at == NULL;
            if (u->name.at == NULL)
                continue;
            if (old && (u->hosts.at || old->use->hosts.at))
                load_problem(l, u->at, "P012", "the pack is also named at %s:%u, and hosts: stands in one of them",
                             old->use->at->file, old->use->at->line);
            struct m_pack *read = old ? NULL : read_pack(l, u);
            if (read)
                m->packs[m->npacks++] = read;
            m->packs_lost |= !old && !read;
        }
    }
    if (m->packs)
        qsort(m->packs, m->npacks, sizeof(*m->packs), by_pack);
    else
        load_problem(l, NULL, "P003", "no memory for the packs");
}
