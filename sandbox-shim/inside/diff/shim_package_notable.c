/* Which files of a package run: by their names, and by what its package.json says of them. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void target_add(struct targets *t, struct value v, bool script)
{
    char text[PACKAGE_TARGET_MAX + 1];

    if (!json_is(v, '"'))
        return;
    if (json_text(v, text, sizeof(text)) < 0 || t->n == PACKAGE_TARGETS_MAX) {
        t->any = true;
        return;
    }
    package_path(text);
    size_t n = strcspn(text, "*"); /* behind a star it is any */
    if ((t->star[t->n] = text[n] == '*'))
        text[n] = '\0';
    else
        while (n > 0 && text[n - 1] == '/')
            text[--n] = '\0';
    if (n == 0)
        return; /* the folder of the package, or any file in it */
    t->script[t->n] = script;
    memcpy(t->at[t->n++], text, n + 1);
}

/* exports has conditions in each other, and bin is one name or several. */
static void targets_add(struct targets *t, struct value v, bool script, unsigned deep)
{
    struct value key, each;

    target_add(t, v, script);
    if (deep == JSON_DEEP)
        t->any = true;
    else
        for (const char *at = NULL; json_next(v, &at, &key, &each);)
            targets_add(t, each, script, deep + 1);
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           (c & 0x80);
}

/* Does it stand there, and not as a part of another word? more: characters that are part of one, too. */
static const char *word_in(const char *text, const char *word, const char *more)
{
    size_t n = strlen(word);

    for (const char *p = text; n > 0 && (p = strcasestr(p, word)) != NULL; p++) {
        bool begins = p == text || !(in_word(p[-1]) || strchr(more, p[-1]));
        if (begins && (p[n] == '\0' || !(in_word(p[n]) || strchr(more, p[n]))))
            return p;
    }
    return NULL;
}

/* A program that runs other scripts, and is not told which in a way that is understood here. */
static bool runs_others(const char *text)
{
    static const char *const runners[] = {"npm", "pnpm", "yarn", "bun"}, *const told[] = {"run", "run-script",
                                                                                          "exec"};

    for (size_t i = 0; i < sizeof(runners) / sizeof(runners[0]); i++)
        for (const char *p = text; (p = word_in(p, runners[i], ":/.@")) != NULL;) {
            p += strlen(runners[i]);
            const char *next = p + strspn(p, " \t");
            size_t n = strcspn(next, " \t\n\"';&|)");
            bool good = false;
            for (size_t k = 0; k < sizeof(told) / sizeof(told[0]); k++)
                good |= n == strlen(told[k]) && strncmp(next, told[k], n) == 0;
            if (!good)
                return true;
        }
    return false;
}

static void script_add(struct targets *t, struct value v)
{
    size_t n = strlen(t->scripts);

    if (!json_is(v, '"'))
        return;
    if (json_text(v, t->scripts + n, sizeof(t->scripts) - n - 1) < 0) {
        t->scripts[n] = '\0';
        t->any = true;
    } else
        (void)strcat(t->scripts, "\n");
}

/* Is it reached from those that are: named as a word in one, or run before or after one that is? */
static bool is_reached(const struct targets *t, const char *name, bool all)
{
    static const char *const when[] = {"preinstall", "install", "postinstall"};

    for (size_t i = 0; i < sizeof(when) / sizeof(when[0]); i++)
        if (strcmp(name, when[i]) == 0)
            return true;
    if (all || word_in(t->scripts, name, ":/."))
        return true;
    size_t skip = strncmp(name, "pre", 3) == 0 ? 3 : strncmp(name, "post", 4) == 0 ? 4 : 0;
    return skip > 0 && word_in(t->scripts, name + skip, ":/.");
}

static void scripts_add(struct targets *t, struct value list)
{
    enum { SCRIPTS_MAX = 500 };
    char name[JSON_KEY_MAX + 1];
    bool taken[SCRIPTS_MAX] = {false}, more = true;
    struct value key, v;

    while (more) { /* until none leads to another one */
        size_t nth = 0;
        bool all = runs_others(t->scripts);
        more = false;
        for (const char *at = NULL; json_next(list, &at, &key, &v); nth++) {
            if (nth == SCRIPTS_MAX || json_text(key, name, sizeof(name)) < 0) {
                t->any = true;
                return;
            }
            if (taken[nth] || !is_reached(t, name, all))
                continue;
            taken[nth] = more = true;
            script_add(t, v);
        }
    }
}

/* Is a name in it that a shell puts together, or that a program finds which runs what it finds? */
static bool finds_names(const char *text)
{
    static const char *const finders[] = {"find", "xargs"}, apart[] = " \t\n;&|()<>=,/";

    if (text[strcspn(text, "*?[$`\\~")] != '\0')
        return true;
    for (size_t i = 0; i < sizeof(finders) / sizeof(finders[0]); i++)
        if (word_in(text, finders[i], ""))
            return true;
    const char *brace = strchr(text, '{');
    if (brace && strchr(brace, ',')) /* {a,b} and {a..b} */
        return true;
    for (const char *p = brace; p && (p = strstr(p, "..")) != NULL; p++)
        if (p[2] != '.' && p[2] != '/' && !strchr(apart, p[2]))
            return true;
    for (const char *p = text; *(p += strcspn(p, "\"'")) != '\0';) { /* in the midst of a word */
        size_t n = strspn(p, "\"'");
        if (p > text && p[n] != '\0' && !strchr(apart, p[-1]) && !strchr(apart, p[n]))
            return true;
        p += n;
    }
    return false;
}

void package_targets(const struct unpacked *u, struct targets *t)
{
    static const char *const where[] = {"main", "module", "browser", "exports", "imports"};
    struct value is = package_json(u);
    bool twice = false;

    t->n = 0;
    t->scripts[0] = '\0';
    t->any = !json_is(is, '{');
    for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++)
        targets_add(t, json_member(is, where[i], &twice), true, 0);
    targets_add(t, json_member(is, "bin", &twice), false, 0);
    targets_add(t, json_member(json_member(is, "directories", &twice), "bin", &twice), false, 0);
    scripts_add(t, json_member(is, "scripts", &twice));
    t->any |= twice || finds_names(t->scripts);
}

/* By its own name, or that of a folder it is in, as a word of a script; a folder that only leads to another name does
 * not count. */
static bool in_scripts(const struct targets *t, const char *path)
{
    char part[PACKAGE_TARGET_MAX + 1];
    size_t n;

    for (const char *p = path; *p; p += n + (p[n] == '/')) {
        n = strcspn(p, "/");
        (void)snprintf(part, sizeof(part), "%.*s", (int)n, p);
        bool folder = p[n] == '/';
        char *dot = folder ? NULL : strrchr(part, '.');
        if (dot && dot > part)
            *dot = '\0';
        for (const char *at = t->scripts; (at = word_in(at, part, "")) != NULL; at++) {
            const char *end = at + strlen(part);
            if (!folder || !in_word(end[strspn(end, "/.")]))
                return true;
        }
    }
    return false;
}

/* Whoever else nobody can tell of. */
static bool named_outright(const struct targets *t, const char *path, bool by_scripts)
{
    for (size_t i = 0; i < t->n; i++) { /* itself, with an ending, or in a folder of that name */
        size_t n = strlen(t->at[i]);
        if ((by_scripts || !t->script[i]) && strncasecmp(path, t->at[i], n) == 0 &&
            (t->star[i] || strchr("/.", path[n])))
            return true; /* strchr finds the end as well */
    }
    return in_scripts(t, path);
}

bool package_named(const struct targets *t, const char *path, bool by_scripts)
{
    return t->any || named_outright(t, path, by_scripts);
}

bool package_named_now(const struct targets *old, const struct targets *new, const char *path)
{
    bool program = named_outright(new, path, false); /* and not only for JavaScript, which reads no data */

    if (program || named_outright(new, path, true))
        return !named_outright(old, path, !program);
    /* a shell that found others before is not one that found this */
    bool as_before = old->any && strcmp(old->scripts, new->scripts) == 0;
    return new->any && !as_before && !named_outright(old, path, false);
}

static bool ends_in(const char *path, const char *const *list, size_t nlist)
{
    size_t n = strlen(path);

    for (size_t i = 0; i < nlist; i++) {
        size_t m = strlen(list[i]);
        if (n > m && strcasecmp(path + n - m, list[i]) == 0)
            return true;
    }
    return false;
}

/* What comes along of other packages: their own package.json says what of it runs. */
static bool is_brought(const char *path)
{
    return strncasecmp(path, "node_modules/", 13) == 0 || strcasestr(path, "/node_modules/") != NULL;
}

bool package_notable(const struct targets *t, const char *path)
{
    static const char *const is[] = {"package.json", "npm-shrinkwrap.json"};
    static const char *const ends[] = {".js",  ".cjs", ".mjs", ".node", ".wasm", ".so",  ".dll", ".dylib",
                                       ".exe", ".sh",  ".cmd", ".bat",  ".ps1",  ".gyp", ".gypi"};
    const char *base = strrchr(path, '/');

    base = base ? base + 1 : path;
    for (size_t i = 0; i < sizeof(is) / sizeof(is[0]); i++)
        if (strcasecmp(base, is[i]) == 0)
            return true;
    return ends_in(path, ends, sizeof(ends) / sizeof(ends[0])) || is_brought(path) || package_named(t, path, true);
}

bool package_runs(const struct targets *t, const char *path, const char *p, size_t n)
{
    return is_brought(path) || package_named(t, path, false) || !package_data(path, p, n);
}
