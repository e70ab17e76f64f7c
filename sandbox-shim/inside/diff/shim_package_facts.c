/* What package.json says that matters to who installs it, as facts: scripts, dependencies, programs. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <stdio.h>
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
                                       "devDependencies",
                                       "gypfile"};
enum { SECTIONS = sizeof(sections) / sizeof(sections[0]) };

static void pair_add(struct pairs *list, struct value name, struct value is)
{
    if (list->n == PACKAGE_PAIRS_MAX || !json_is(is, '"') ||
        json_text(name, list->at[list->n].name, sizeof(list->at[0].name)) < 0)
        list->bad = true;
    else
        list->at[list->n++].is = is;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

/* Of any other form npm makes something of its own, or drops it. */
static bool has_form(const char *which, struct value of)
{
    bool flag = json_is(of, 't') || json_is(of, 'f');

    if (of.n == 0)
        return true;
    if (strcmp(which, "gypfile") == 0)
        return flag;
    if (strncmp(which, "bundle", 6) == 0)
        return flag || json_is(of, '[');
    return json_is(of, '{') || (strcmp(which, "bin") == 0 && json_is(of, '"'));
}

/* "bin" may be one path, of the package's own name; lists of names are pairs of each with itself. */
static struct pairs section_read(struct value manifest, const char *which, const char *own)
{
    struct pairs list = {.at = calloc(PACKAGE_PAIRS_MAX, sizeof(*list.at))};
    struct value of = json_member(manifest, which, &list.bad), key, v;
    const char *bare = strrchr(own, '/');

    list.bad |= list.at == NULL || !has_form(which, of);
    if (!list.bad && (json_is(of, 't') || json_is(of, 'f'))) {
        (void)snprintf(list.at[0].name, sizeof(list.at[0].name), "%s",
                       which[0] == 'g'    ? which
                       : json_is(of, 't') ? "all of its dependencies"
                                          : "none");
        list.at[list.n++].is = of;
    }
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
    if (!out_text(n >= 0 ? text : v.p, n >= 0 ? (size_t)n : v.n, PACKAGE_FACT_MAX, &odd))
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

/* --- what the request says of it --------------------------------------------------------------------- */

struct sides { /* of one section: what the package's own file says, and what the request does */
    struct pairs file, request, optional, all;
    const char *which;
};

static const struct pair *pair_of(const struct pairs *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].name, name) == 0)
            return &list->at[i];
    return NULL;
}

/* Of commands "./a" is "a": npm leaves that out. */
static bool says_same(struct value a, struct value b, bool path)
{
    static char one[PACKAGE_MANIFEST_MAX + 1], other[PACKAGE_MANIFEST_MAX + 1];

    if (json_text(a, one, sizeof(one)) < 0 || json_text(b, other, sizeof(other)) < 0)
        return same(a, b);
    size_t n = path && strncmp(one, "./", 2) == 0 ? 2 : 0, m = path && strncmp(other, "./", 2) == 0 ? 2 : 0;
    return strcmp(one + n, other + m) == 0;
}

static bool text_is(const struct pair *p, const char *name, const char *text)
{
    char is[64];

    return p && strcmp(p->name, name) == 0 && json_text(p->is, is, sizeof(is)) >= 0 && strcmp(is, text) == 0;
}

/* npm itself makes these of the file: the optional ones stand among the others or not, a build has its script. */
static bool npm_made(const struct sides *s, const struct pair *file, const struct pair *request)
{
    const struct pair *is = file ? file : request, *optional = pair_of(&s->optional, is->name);

    if (strcmp(s->which, "dependencies") == 0)
        return optional && says_same(is->is, optional->is, false);
    if (strcmp(s->which, "scripts") == 0)
        return text_is(request, "start", "node server.js") ||
               (text_is(request, "install", "node-gyp rebuild") && !pair_of(&s->file, "preinstall"));
    if (strcmp(s->which, "bundleDependencies") == 0)
        return file ? json_is(file->is, 't') || json_is(file->is, 'f')
                    : s->file.n == 1 && json_is(s->file.at[0].is, 't') && pair_of(&s->all, request->name);
    return false;
}

static void otherwise_put(const struct sides *s, const struct pair *file, const struct pair *request, uint64_t *total)
{
    static struct pair one, other;

    if ((file && request && says_same(file->is, request->is, strcmp(s->which, "bin") == 0)) ||
        ((!file || !request) && npm_made(s, file, request)))
        return;
    if (file)
        one.is = file->is;
    if (request)
        other.is = request->is;
    (void)snprintf(one.name, sizeof(one.name), "%s: %.800s", s->which, (file ? file : request)->name);
    (void)memcpy(other.name, one.name, sizeof(other.name));
    fact_put("request", file ? &one : NULL, request ? &other : NULL, total);
}

/* npm resolves by what the request says, and runs what is in the package. False: it is not read here. */
static bool request_put(struct value file, struct value request, const char *own, uint64_t *total)
{
    static const char *const which[] = {"name",
                                        "version",
                                        "scripts",
                                        "bin",
                                        "dependencies",
                                        "optionalDependencies",
                                        "peerDependencies",
                                        "bundleDependencies"};
    bool good = json_is(request, '{');

    for (size_t i = 0; i < sizeof(which) / sizeof(which[0]) && good; i++) {
        static struct pair alone[2];
        struct sides s = {.which = which[i]};
        if (i < 2) {
            bool twice = false;
            alone[0] = (struct pair){.is = json_member(file, which[i], &twice)};
            alone[1] = (struct pair){.is = json_member(request, which[i], &twice)};
            good = !twice;
            if (good && (alone[0].is.n || alone[1].is.n))
                otherwise_put(&s, alone[0].is.n ? &alone[0] : NULL, alone[1].is.n ? &alone[1] : NULL, total);
            continue;
        }
        bool twice = false, bundle = strcmp(which[i], "bundleDependencies") == 0;
        bool old_name = bundle && json_member(file, which[i], &twice).n == 0;
        bool other_name = bundle && json_member(request, which[i], &twice).n == 0;
        s.file = section_read(file, old_name ? "bundledDependencies" : which[i], own);
        s.request = section_read(request, other_name ? "bundledDependencies" : which[i], own);
        s.optional = section_read(request, "optionalDependencies", own);
        s.all = section_read(file, "dependencies", own);
        good = !twice && !s.file.bad && !s.request.bad && !s.optional.bad && !s.all.bad;
        for (size_t k = 0; good && k < s.file.n; k++)
            otherwise_put(&s, &s.file.at[k], pair_of(&s.request, s.file.at[k].name), total);
        for (size_t k = 0; good && k < s.request.n; k++)
            if (!pair_of(&s.file, s.request.at[k].name))
                otherwise_put(&s, NULL, &s.request.at[k], total);
        free(s.file.at);
        free(s.request.at);
        free(s.optional.at);
        free(s.all.at);
    }
    return good;
}

bool package_facts(const struct unpacked *old, const struct unpacked *new, const char *name, struct value request)
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
    bool known = !good || request.n == 0 || request_put(is, request, name, &total);
    for (size_t i = 0; i < SECTIONS; i++) {
        if (good)
            section_put(sections[i], &before[i], &after[i], &total);
        free(before[i].at);
        free(after[i].at);
    }
    if (good)
        out_raw("]");
    if (good && known) /* without it they are not complete */
        out_number("facts_total", total);
    return good && known;
}
