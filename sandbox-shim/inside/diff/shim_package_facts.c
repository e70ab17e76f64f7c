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
enum { COMMANDS_MAX = 500, NAME_SHORT = 256, SECTIONS = sizeof(sections) / sizeof(sections[0]) };

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

/* Of any other form npm makes something of its own, or drops it. */
static bool has_form(const char *which, struct value of)
{
    bool flag = json_is(of, 't') || json_is(of, 'f');

    if (of.n == 0)
        return true;
    if (strcmp(which, "gypfile") == 0)
        return flag;
    if (strncmp(which, "bundle", 6) == 0)
        return flag || json_is(of, '[') || json_is(of, '{');
    if (strstr(which, "ependencies") && json_is(of, '[')) /* as npm makes an object of it: of names it is none here */
        return !json_next(of, &(const char *){NULL}, &(struct value){.n = 0}, &(struct value){.n = 0});
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
    struct value own; /* all of the file */
    const struct unpacked *package;
    const char *which;
};

static const struct pair *pair_of(const struct pairs *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].name, name) == 0)
            return &list->at[i];
    return NULL;
}

/* As it stands, or as npm writes what the file says. */
static bool says_same(struct value file, struct value request, const char *which)
{
    static char one[PACKAGE_MANIFEST_MAX + 1], other[PACKAGE_MANIFEST_MAX + 1];

    if (strcmp(which, "bundleDependencies") == 0)
        return true; /* the names are all of it */
    if (json_text(file, one, sizeof(one)) < 0 || json_text(request, other, sizeof(other)) < 0)
        return json_same(file, request, 0);
    if (strcmp(one, other) == 0)
        return true;
    package_npm(which, one, sizeof(one));
    return strcmp(one, other) == 0;
}

static bool text_is(const struct pair *p, const char *name, const char *text)
{
    char is[64];

    return p && strcmp(p->name, name) == 0 && json_text(p->is, is, sizeof(is)) >= 0 && strcmp(is, text) == 0;
}

/* Is there a file of that name in the package, or a folder? ending: any of that ending, in no folder. */
static bool has_file(const struct unpacked *u, const char *name, bool ending)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < u->n; i++) {
        const char *is = u->entry[i].name;
        size_t all = strlen(is);
        if (ending ? all > n && *is != '.' && !strchr(is, '/') && strcmp(is + all - n, name) == 0
                   : strncmp(is, name, n) == 0 && (is[n] == '\0' || is[n] == '/'))
            return true;
    }
    return false;
}

/* Each file below directories.bin is a command, where "bin" says none. */
static bool is_of_folder(const struct sides *s, const struct pair *request)
{
    static char folder[PACKAGE_TARGET_MAX + 2], path[PACKAGE_TARGET_MAX + 1];
    bool twice = false;
    struct value of = json_member(json_member(s->own, "directories", &twice), "bin", &twice);
    const char *base;

    if (twice || s->file.n > 0 || json_text(of, folder, PACKAGE_TARGET_MAX) <= 0 ||
        json_text(request->is, path, sizeof(path)) <= 0)
        return false;
    package_path(folder);
    size_t n = strlen(folder);
    if (n > 0 && folder[n - 1] != '/')
        (void)strcpy(folder + n++, "/");
    base = strrchr(path, '/');
    return strncmp(path, folder, n) == 0 && path[n] != '.' && strcmp(base ? base + 1 : path, request->name) == 0 &&
           has_file(s->package, path, false);
}

static bool is_empty(struct value v)
{
    return v.n == 0 || (json_is(v, '"') && v.n == 2);
}

/* A build has its script: where there is what it builds, and the file does not say otherwise. */
static bool is_built(const struct sides *s)
{
    bool twice = false;
    struct value list = json_member(s->own, "scripts", &twice), gyp = json_member(s->own, "gypfile", &twice);

    return !twice && !json_is(gyp, 'f') && has_file(s->package, ".gyp", true) &&
           is_empty(json_member(list, "preinstall", &twice)) && is_empty(json_member(list, "install", &twice));
}

/* Of all dependencies of the file: does the request say that each is bundled? */
static bool has_all(const struct sides *s)
{
    for (size_t i = 0; i < s->all.n; i++)
        if (!pair_of(&s->request, s->all.at[i].name) && !pair_of(&s->optional, s->all.at[i].name))
            return false;
    return true;
}

/* npm itself makes these of the file: the optional ones stand among the others or not, what is no text is left out.
 */
static bool npm_made(const struct sides *s, const struct pair *file, const struct pair *request)
{
    const struct pair *is = file ? file : request, *optional = pair_of(&s->optional, is->name);
    bool text = json_is(is->is, '"');

    if (strcmp(s->which, "dependencies") == 0 && optional)
        return says_same(is->is, optional->is, s->which);
    /* a server that the package may leave out: no installation starts it */
    if (strcmp(s->which, "scripts") == 0 && request)
        return text_is(request, "start", "node server.js") ||
               (text_is(request, "install", "node-gyp rebuild") && is_built(s));
    if (strcmp(s->which, "bin") == 0 && request)
        return is_of_folder(s, request);
    if (strcmp(s->which, "bundleDependencies") == 0)
        return file ? json_is(file->is, 'f') || (json_is(file->is, 't') && has_all(s))
                    : s->file.n == 1 && json_is(s->file.at[0].is, 't') && pair_of(&s->all, request->name);
    return file && !text;
}

static void contradiction_put(const char *which, const struct pair *file, const struct pair *request, uint64_t *total)
{
    static struct pair one, other;
    const char *name = (file ? file : request)->name;

    if (file)
        one.is = file->is;
    if (request)
        other.is = request->is;
    (void)snprintf(one.name, sizeof(one.name), "%.100s%s%.800s", which, *name ? ": " : "", name);
    (void)memcpy(other.name, one.name, sizeof(other.name));
    fact_put("request", file ? &one : NULL, request ? &other : NULL, total);
}

static void otherwise_put(const struct sides *s, const struct pair *file, const struct pair *request, uint64_t *total)
{
    if (file && request && strcmp(s->which, "scripts") == 0 && text_is(file, "install", "") &&
        npm_made(s, NULL, request))
        return; /* an empty one is none */
    if ((file && request && says_same(file->is, request->is, s->which)) ||
        ((!file || !request) && npm_made(s, file, request)))
        return;
    contradiction_put(s->which, file, request, total);
}

/* The names of commands are the last steps of what is said, where these are different ones; other clients leave them
 * as they are. */
static void commands_npm(struct pairs *list, const struct pairs *request)
{
    static char names[COMMANDS_MAX][NAME_SHORT];
    bool good = list->n <= COMMANDS_MAX;

    for (size_t i = 0; i < list->n && good; i++) {
        good = strlen(list->at[i].name) < NAME_SHORT;
        if (!good)
            return;
        (void)strcpy(names[i], list->at[i].name);
        const char *base = NULL;
        if (!pair_of(request, names[i])) {
            package_path(names[i]);
            base = strrchr(names[i], '/');
        }
        if (base)
            (void)memmove(names[i], base + 1, strlen(base + 1) + 1);
        for (size_t k = 0; k < i && good; k++)
            good = strcmp(names[i], names[k]) != 0;
    }
    for (size_t i = 0; i < list->n && good; i++)
        (void)strcpy(list->at[i].name, names[i]);
}

/* False: it is not read here. */
static bool section_held(struct sides *s, struct value request, const char *name, uint64_t *total)
{
    bool twice = false, bundle = strcmp(s->which, "bundleDependencies") == 0;
    bool old_name = bundle && json_member(s->own, s->which, &twice).n == 0;
    bool other_name = bundle && json_member(request, s->which, &twice).n == 0;

    s->file = section_read(s->own, old_name ? "bundledDependencies" : s->which, name);
    s->request = section_read(request, other_name ? "bundledDependencies" : s->which, name);
    s->optional = section_read(request, "optionalDependencies", name);
    s->all = section_read(s->own, "dependencies", name);
    bool good = !twice && !s->file.bad && !s->request.bad && !s->optional.bad && !s->all.bad;
    if (good && strcmp(s->which, "bin") == 0)
        commands_npm(&s->file, &s->request);
    for (size_t k = 0; good && k < s->file.n; k++)
        otherwise_put(s, &s->file.at[k], pair_of(&s->request, s->file.at[k].name), total);
    for (size_t k = 0; good && k < s->request.n; k++)
        if (!pair_of(&s->file, s->request.at[k].name))
            otherwise_put(s, NULL, &s->request.at[k], total);
    free(s->file.at);
    free(s->request.at);
    free(s->optional.at);
    free(s->all.at);
    return good;
}

static bool listed(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return true;
    return false;
}

static const char *const others[] = {"name",
                                     "version",
                                     "scripts",
                                     "bin",
                                     "dependencies",
                                     "optionalDependencies",
                                     "peerDependencies",
                                     "devDependencies",
                                     "bundleDependencies",
                                     "_id",
                                     "_nodeVersion",
                                     "_npmVersion",
                                     "_npmUser",
                                     "_from",
                                     "_resolved",
                                     "_integrity",
                                     "dist",
                                     "gitHead",
                                     "readme",
                                     "readmeFilename",
                                     "author",
                                     "contributors",
                                     "maintainers",
                                     "keywords",
                                     "description",
                                     "bugs",
                                     "homepage",
                                     "repository",
                                     "license",
                                     "licenses",
                                     "man",
                                     "types",
                                     "files",
                                     "funding",
                                     NULL};

/* A member that clients write for what is there: a build, or a hash that dist has as well; and of two names of one
 * section that which is held above. */
static bool is_written(const struct sides *s, struct value request, const char *name, struct value v, bool *twice)
{
    struct value dist = json_member(request, "dist", twice);

    if (strcmp(name, "gypfile") == 0)
        return json_is(v, 't') && is_built(s);
    if (strcmp(name, "integrity") == 0 || strcmp(name, "shasum") == 0)
        return json_same(v, json_member(dist, name, twice), 0);
    return strcmp(name, "bundledDependencies") == 0 && json_member(request, "bundleDependencies", twice).n == 0;
}

/* What no section is about: as in the file, but for what npm makes of its own, and what changes nothing for who
 * installs it. */
static bool members_held(struct sides *s, struct value request, uint64_t *total)
{
    static const char *const needed[] = {"os", "cpu", "libc", "engines", "peerDependenciesMeta"};
    static char name[JSON_KEY_MAX + 1];
    static struct pair file, is;
    struct value key, v;
    bool twice = false;

    for (const char *at = NULL; json_next(request, &at, &key, &v);) {
        if (json_text(key, name, sizeof(name)) < 0)
            return false;
        if (listed(name, others) || is_written(s, request, name, v, &twice))
            continue;
        file.is = json_member(s->own, name, &twice);
        is.is = v;
        if (strcmp(name, "deprecated") == 0 && !json_is(v, 'f'))
            file.is.n = 0; /* a warning to all who install it, which is never a package's own to say */
        if (file.is.n == 0 || !json_same(file.is, v, 0))
            contradiction_put(name, file.is.n ? &file : NULL, &is, total);
    }
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        file.is = json_member(s->own, needed[i], &twice);
        if (file.is.n > 0 && json_member(request, needed[i], &twice).n == 0)
            contradiction_put(needed[i], &file, NULL, total);
    }
    return !twice;
}

/* Where the file is, and its hash, are held against it elsewhere; of more than that nobody here knows. */
static bool dist_held(struct value file, struct value request, uint64_t *total)
{
    static const char *const known[] = {"integrity", "shasum", "tarball", "fileCount", "unpackedSize", NULL};
    static struct pair one;
    char name[JSON_KEY_MAX + 1];
    struct value key;
    bool twice = false;
    struct value dist = json_member(request, "dist", &twice), own = json_member(file, "dist", &twice);

    for (const char *at = NULL; json_next(dist, &at, &key, &one.is);) {
        if (json_text(key, name, sizeof(name)) < 0)
            return false;
        if (!listed(name, known) && !json_same(json_member(own, name, &twice), one.is, 0)) {
            (void)snprintf(one.name, sizeof(one.name), "%s", name);
            contradiction_put("dist", NULL, &one, total);
        }
    }
    return !twice;
}

/* npm resolves by what the request says, and runs what is in the package. False: it is not read here. */
static bool request_put(struct value file, const struct unpacked *u, struct value request, const char *own,
                        uint64_t *total, const char **key)
{
    static const char *const which[] = {"name",
                                        "version",
                                        "scripts",
                                        "bin",
                                        "dependencies",
                                        "optionalDependencies",
                                        "peerDependencies",
                                        "devDependencies",
                                        "bundleDependencies"};
    bool good = json_is(request, '{'), twice = false;
    struct sides s = {.own = file, .package = u};

    for (size_t i = 0; i < sizeof(which) / sizeof(which[0]) && good; i++) {
        static struct pair alone[2];
        s.which = which[i];
        *key = which[i];
        if (i >= 2) {
            good = section_held(&s, request, own, total);
            continue;
        }
        alone[0] = (struct pair){.is = json_member(file, which[i], &twice)};
        alone[1] = (struct pair){.is = json_member(request, which[i], &twice)};
        good = !twice;
        if (good && (alone[0].is.n || alone[1].is.n))
            otherwise_put(&s, alone[0].is.n ? &alone[0] : NULL, alone[1].is.n ? &alone[1] : NULL, total);
    }
    if (good)
        *key = NULL;
    return good && dist_held(file, request, total) && members_held(&s, request, total);
}

/* Beside what it says of the version. */
static void beside_put(const struct publish *p, uint64_t *total)
{
    static struct pair one;

    one.is = p->beside;
    if (p->beside.n > 0)
        contradiction_put(p->besides, NULL, &one, total);
    one.is = p->access;
    (void)strcpy(one.name, "access");
    if (json_is(p->access, '"'))
        fact_put("access", NULL, &one, total);
    one.name[0] = '\0';
}

static void unread_put(const char *side, const char *key)
{
    out_raw(",\"unread\":\"");
    out_raw(side);
    out_raw(key ? "\",\"unread_key\":\"" : "");
    out_raw(key ? key : "");
    out_raw("\"");
}

bool package_legible(const struct unpacked *u, const char *name)
{
    struct value is = package_json(u);
    bool good = json_is(is, '{');

    for (size_t i = 0; i < SECTIONS && good; i++) {
        struct pairs list = section_read(is, sections[i], name);
        good = !list.bad;
        free(list.at);
    }
    return good;
}

bool package_facts(const struct unpacked *old, const struct unpacked *new, const char *name,
                   const struct publish *request)
{
    struct value is = package_json(new), was = old ? package_json(old) : (struct value){.n = 0};
    struct pairs before[SECTIONS], after[SECTIONS];
    const char *side = !json_is(is, '{') ? "new" : old && !json_is(was, '{') ? "old" : NULL, *key = NULL;
    uint64_t total = 0;

    for (size_t i = 0; i < SECTIONS; i++) {
        before[i] = section_read(was, sections[i], name);
        after[i] = section_read(is, sections[i], name);
        if (!side && (before[i].bad || after[i].bad)) {
            side = after[i].bad ? "new" : "old";
            key = sections[i];
        }
    }
    bool good = side == NULL;
    if (good)
        out_raw(",\"facts\":[");
    bool known = !good || !request || request_put(is, new, request->manifest, name, &total, &key);
    if (good && known && request)
        beside_put(request, &total);
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
    else
        unread_put(good ? "request" : side, key);
    return good && known;
}
