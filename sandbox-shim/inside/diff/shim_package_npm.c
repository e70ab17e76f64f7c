/* What npm makes of a package.json when it writes the request that publishes it: of the file's side alone, so that
 * two requests are never taken for one. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct value package_json(const struct unpacked *u)
{
    bool mark = u->nmanifest >= 3 && memcmp(u->manifest, "\xef\xbb\xbf", 3) == 0;

    return json_whole(u->manifest + (mark ? 3 : 0), u->nmanifest - (mark ? 3 : 0));
}

void package_path(char *text)
{
    char *to = text;
    size_t n;

    for (char *p = text; *p; p++)
        if (*p == '\\' || *p == ':')
            *p = '/';
    for (const char *p = text; *p; p += n) {
        p += strspn(p, "/");
        n = strcspn(p, "/");
        bool more = p[n] == '/', up = n == 2 && memcmp(p, "..", 2) == 0;
        if (up) {
            to -= to > text; /* its slash */
            while (to > text && to[-1] != '/')
                to--;
        } else if (n > 0 && !(n == 1 && *p == '.')) {
            memmove(to, p, n);
            to += n;
            if (more)
                *to++ = '/';
        }
    }
    *to = '\0';
}

/* A script begins with a program that npm finds by itself. */
static void script_npm(char *text)
{
    size_t n = strncmp(text, "./", 2) == 0 || strncmp(text, ".\\", 2) == 0 ? 2 : 0;
    static const char bin[] = "node_modules/.bin/";

    for (size_t i = 0; bin[i]; i++, n++)
        if (text[n] != bin[i] && !(bin[i] == '/' && text[n] == '\\'))
            return;
    memmove(text, text + n, strlen(text + n) + 1);
}

static void version_npm(char *text)
{
    size_t n = strspn(text, " \t=v");

    memmove(text, text + n, strlen(text + n) + 1);
    text[strcspn(text, "+ \t")] = '\0';
}

/* --- dependencies that are repositories ------------------------------------------------------------- */

static bool word(const char *p, size_t n)
{
    bool good = n > 0 && *p != '.' && *p != '-';

    for (size_t i = 0; i < n; i++)
        good &= (p[i] >= 'a' && p[i] <= 'z') || (p[i] >= 'A' && p[i] <= 'Z') || (p[i] >= '0' && p[i] <= '9') ||
                strchr("._-", p[i]) != NULL;
    return good;
}

/* "owner/name", with .git or without, then nothing or a fragment. */
static bool place_read(const char *p, size_t *owner, size_t *name, const char **rest)
{
    *owner = strcspn(p, "/");
    if (p[*owner] != '/')
        return false;
    const char *at = p + *owner + 1;
    *name = strcspn(at, "/#?");
    *rest = at + *name;
    if (*name > 4 && strncmp(at + *name - 4, ".git", 4) == 0)
        *name -= 4;
    return word(p, *owner) && word(at, *name) && (**rest == '\0' || **rest == '#');
}

static void dependency_npm(char *text, size_t room)
{
    static const char *const hosts[] = {"github.com", "gitlab.com", "bitbucket.org"};
    static const struct {
        const char *begin, *becomes, *end;
    } forms[] = {
        {"git+ssh://git@", "git+ssh://git@", "/"}, {"ssh://git@", "git+ssh://git@", "/"},
        {"git+ssh://git@", "git+ssh://git@", ":"}, {"git@", "git+ssh://git@", ":"},
        {"git+https://", "git+https://", "/"},     {"https://", "git+https://", "/"},
        {"http://", "git+ssh://git@", "/"},        {"git://", "git://", "/"},
    };
    char is[PACKAGE_FACT_MAX + 1], begin[64];
    size_t owner, name;
    const char *rest;

    if (strlen(text) >= sizeof(is))
        return;
    (void)memcpy(is, text, strlen(text) + 1);
    if (place_read(is, &owner, &name, &rest)) {
        (void)snprintf(text, room, "github:%.*s%s", (int)(owner + 1 + name), is, rest);
        return;
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        for (size_t k = 0; k < sizeof(hosts) / sizeof(hosts[0]); k++) {
            (void)snprintf(begin, sizeof(begin), "%s%s%s", forms[i].begin, hosts[k], forms[i].end);
            size_t n = strlen(begin);
            bool git = strncmp(begin, "git:", 4) == 0;
            if (strncmp(is, begin, n) == 0 && place_read(is + n, &owner, &name, &rest))
                (void)snprintf(text, room, "%s%s/%.*s.git%s", forms[i].becomes, hosts[k], (int)(owner + 1 + name),
                               is + n, rest);
            if (git && k == 0)
                break; /* the others speak no git:// */
        }
}

void package_npm(const char *which, char *text, size_t room)
{
    if (strcmp(which, "scripts") == 0)
        script_npm(text);
    else if (strcmp(which, "bin") == 0)
        package_path(text);
    else if (strcmp(which, "version") == 0)
        version_npm(text);
    else if (strcmp(which, "dependencies") == 0 || strcmp(which, "devDependencies") == 0 ||
             strcmp(which, "optionalDependencies") == 0)
        dependency_npm(text, room);
}
