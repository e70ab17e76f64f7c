/* What package.json says that matters to who installs it, as facts: scripts, dependencies, programs. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <stdlib.h>
#include <string.h>

struct pair {
    char name[JSON_KEY_MAX + 1];
    struct value is;
};
struct pairs {
    struct pair *at;
    size_t n;
    bool bad; /* it is not read here */
};

static const char *const sections[] = {"scripts",
                                       "bin",
                                       "directories",
                                       "dependencies",
                                       "optionalDependencies",
                                       "peerDependencies",
                                       "bundleDependencies",
                                       "bundledDependencies",
                                       "devDependencies"};
enum { SECTIONS = sizeof(sections) / sizeof(sections[0]) };

static void pair_add(struct pairs *list, struct value name, struct value is)
{
    if (list->n == PACKAGE_PAIRS_MAX || json_text(name, list->at[list->n].name, sizeof(list->at[0].name)) < 0)
        list->bad = true;
    else
        list->at[list->n++].is = is;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

/* "bin" may be one path, of the package's own name; lists of names are pairs of each with itself. */
static struct pairs section_read(struct value manifest, const char *which, const char *own)
{
    struct pairs list = {.at = calloc(PACKAGE_PAIRS_MAX, sizeof(*list.at))};
    struct value of = json_member(manifest, which, &list.bad), key, v;
    const char *bare = strrchr(own, '/');

    list.bad |= list.at == NULL;
    if (!list.bad && strcmp(which, "bin") == 0 && json_is(of, '"')) {
        (void)strncpy(list.at[0].name, bare ? bare + 1 : own, JSON_KEY_MAX);
        list.at[list.n++].is = of;
    }
    for (const char *at = NULL; !list.bad && json_next(of, &at, &key, &v);)
        pair_add(&list, key.n ? key : v, v);
    if (list.at)
        qsort(list.at, list.n, sizeof(*list.at), by_name);
    for (size_t i = 1; i < list.n; i++)
        list.bad |= strcmp(list.at[i - 1].name, list.at[i].name) == 0; /* which counts is not the same for all */
    return list;
}

static bool same(struct value a, struct value b)
{
    return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

static void side_put(const char *key, struct value v)
{
    static char text[PACKAGE_MANIFEST_MAX + 1];
    bool odd = false;
    long n = json_text(v, text, sizeof(text));

    if (v.n == 0)
        return;
    out_raw(key);
    out_text(n >= 0 ? text : v.p, n >= 0 ? (size_t)n : v.n, PACKAGE_FACT_MAX, &odd);
    if ((n >= 0 ? (size_t)n : v.n) > PACKAGE_FACT_MAX)
        out_raw(",\"cut\":true");
}

static void fact_put(const char *which, const struct pair *old, const struct pair *new, uint64_t *total)
{
    const char *name = new ? new->name : old->name;
    bool odd = false;

    if (old && new &&same(old->is, new->is))
        return;
    if ((*total)++ >= PACKAGE_FACTS_MAX)
        return;
    out_raw(*total > 1 ? ",{\"in\":\"" : "{\"in\":\"");
    out_raw(which);
    out_raw("\",\"name\":");
    out_text(name, strlen(name), PACKAGE_WORD_MAX, &odd);
    out_raw(old && new ? ",\"how\":\"M\"" : new ? ",\"how\":\"A\"" : ",\"how\":\"D\"");
    side_put(",\"old\":", old ? old->is : (struct value){.n = 0});
    side_put(",\"new\":", new ? new->is : (struct value){.n = 0});
    out_raw("}");
}

static void section_put(const char *which, const struct pairs *old, const struct pairs *new, uint64_t *total)
{
    size_t i = 0, k = 0;

    while (i < old->n || k < new->n) {
        int order = i == old->n ? 1 : k == new->n ? -1 : strcmp(old->at[i].name, new->at[k].name);
        fact_put(which, order <= 0 ? &old->at[i] : NULL, order >= 0 ? &new->at[k] : NULL, total);
        i += order <= 0;
        k += order >= 0;
    }
}

bool package_facts(const struct unpacked *old, const struct unpacked *new, const char *name)
{
    struct value is = json_whole(new->manifest, new->nmanifest), was = {.n = 0};
    struct pairs before[SECTIONS], after[SECTIONS];
    uint64_t total = 0;
    bool good = json_is(is, '{');

    if (old && good) {
        was = json_whole(old->manifest, old->nmanifest);
        good = json_is(was, '{');
    }
    for (size_t i = 0; i < SECTIONS; i++) {
        before[i] = section_read(was, sections[i], name);
        after[i] = section_read(is, sections[i], name);
        good = good && !before[i].bad && !after[i].bad;
    }
    if (good)
        out_raw(",\"facts\":[");
    for (size_t i = 0; i < SECTIONS; i++) {
        if (good)
            section_put(sections[i], &before[i], &after[i], &total);
        free(before[i].at);
        free(after[i].at);
    }
    if (good)
        out_raw("]");
    if (good)
        out_number("facts_total", total);
    return good;
}
