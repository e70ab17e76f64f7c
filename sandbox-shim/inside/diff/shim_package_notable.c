/* Which files of a package run: by their names, and by what its package.json says of them. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { TARGETS_MAX = 500, TARGET_MAX = 1024, SCRIPTS_MAX = PACKAGE_MANIFEST_MAX };

static char target[TARGETS_MAX][TARGET_MAX + 1];
static size_t ntargets;
static char scripts[SCRIPTS_MAX + 1]; /* of the installation, one after the other */
static bool all_of_them;              /* nobody can tell which */

static void target_add(struct value v)
{
    char text[TARGET_MAX + 1], *p = text;

    if (!json_is(v, '"'))
        return;
    if (json_text(v, text, sizeof(text)) < 0 || ntargets == TARGETS_MAX || strstr(text, "..") || strchr(text, '\\')) {
        all_of_them = true;
        return;
    }
    for (; *p == '/' || (*p == '.' && (p[1] == '/' || p[1] == '\0')); p++)
        ;
    p[strcspn(p, "*")] = '\0'; /* behind a star it is any */
    size_t n = strlen(p);
    while (n > 0 && p[n - 1] == '/')
        p[--n] = '\0';
    memcpy(target[ntargets++], p, n + 1);
}

/* exports has conditions in each other, and bin is one name or several. */
static void targets_add(struct value v, unsigned deep)
{
    struct value key, each;

    target_add(v);
    if (deep == JSON_DEEP)
        all_of_them = true;
    else
        for (const char *at = NULL; json_next(v, &at, &key, &each);)
            targets_add(each, deep + 1);
}

static void script_add(struct value v)
{
    size_t n = strlen(scripts);

    if (v.n == 0)
        return;
    if (json_text(v, scripts + n, sizeof(scripts) - n - 1) < 0) {
        scripts[n] = '\0';
        all_of_them = true;
    } else
        (void)strcat(scripts, "\n");
}

void package_targets(const struct unpacked *u)
{
    static const char *const where[] = {"bin",     "directories", "main",    "module",
                                        "browser", "exports",     "imports", "man"};
    static const char *const when[] = {"preinstall", "install", "postinstall"};
    struct value is = json_whole(u->manifest, u->nmanifest), key, v;
    bool twice = false;

    ntargets = 0;
    scripts[0] = '\0';
    all_of_them = !json_is(is, '{');
    for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++)
        targets_add(json_member(is, where[i], &twice), 0);
    struct value list = json_member(is, "scripts", &twice);
    for (size_t i = 0; i < sizeof(when) / sizeof(when[0]); i++)
        script_add(json_member(list, when[i], &twice));
    if (strcasestr(scripts, "run") || strcasestr(scripts, "npm") || strcasestr(scripts, "yarn")) {
        scripts[0] = '\0'; /* they go on to others */
        for (const char *at = NULL; json_next(list, &at, &key, &v);)
            script_add(v);
    }
    all_of_them |= twice || scripts[strcspn(scripts, "*?[$`\\")] != '\0'; /* a shell finds the name */
}

static bool is_target(const char *path)
{
    const char *base = strrchr(path, '/');
    char stem[TARGET_MAX + 1];

    for (size_t i = 0; i < ntargets; i++) { /* itself, with an ending, or in a folder of that name */
        size_t n = strlen(target[i]);
        if (strncasecmp(path, target[i], n) == 0) /* empty: any of them */
            return true;
    }
    base = base ? base + 1 : path;
    (void)snprintf(stem, sizeof(stem), "%s", base);
    char *dot = strrchr(stem, '.');
    if (dot && dot > stem)
        *dot = '\0';
    return scripts[0] && strcasestr(scripts, stem);
}

bool package_notable(const struct changed *c)
{
    static const char *const is[] = {"package.json", "npm-shrinkwrap.json"};
    static const char *const ends[] = {".js",  ".cjs", ".mjs", ".node", ".wasm", ".so",  ".dll", ".dylib",
                                       ".exe", ".sh",  ".cmd", ".bat",  ".ps1",  ".gyp", ".gypi"};
    const char *base = strrchr(c->path, '/');
    size_t n = strlen(c->path);

    base = base ? base + 1 : c->path;
    for (size_t i = 0; i < sizeof(is) / sizeof(is[0]); i++)
        if (strcasecmp(base, is[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        size_t m = strlen(ends[i]);
        if (n > m && strcasecmp(c->path + n - m, ends[i]) == 0)
            return true;
    }
    return all_of_them || is_target(c->path);
}
