/* The registry, read by curl: nothing of its configuration, no redirection followed, and nothing asked for but that
 * package of that host; and the hashes that it says, by the programs of coreutils. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    SAYS = 8,
    INTEGRITY_MAX = 2048,
    HEADERS_MAX = 64 * 1024
}; /* SAYS: "\nCCC SSS" at the end: of the way, and of the answer */

/* --- where ------------------------------------------------------------------------------------------ */

struct place {
    const char *scheme, *host, *port, *path;
    size_t nscheme, nhost, nport;
};

static bool place_of(const char *url, struct place *p)
{
    const char *at = strstr(url, "://");

    if (!at)
        return false;
    *p = (struct place){.scheme = url, .nscheme = (size_t)(at - url), .host = at + 3};
    size_t n = strcspn(p->host, "/");
    p->path = p->host + n;
    if (*p->path != '/' || n == 0 || memchr(p->host, '@', n))
        return false;
    p->nhost = n;
    while (p->nhost > 0 && strchr("0123456789", p->host[p->nhost - 1]))
        p->nhost--;
    if (p->nhost > 0 && p->host[p->nhost - 1] == ':') {
        p->port = p->host + p->nhost;
        p->nport = n - p->nhost;
        p->nhost--;
    } else {
        p->nhost = n;
    }
    if (p->nport == 0) {
        p->port = p->nscheme == 5 ? "443" : "80";
        p->nport = strlen(p->port);
    }
    return p->nhost > 0;
}

static bool same(const char *a, size_t n, const char *b, size_t m)
{
    return n == m && strncasecmp(a, b, n) == 0;
}

/* How often it could be written in an address; text ends in what is behind it. */
static bool spelled(char text[PACKAGE_WORD_MAX + 16], const char *name, size_t nth)
{
    static const char *const slashes[] = {"/", "%2f", "%2F"};
    const char *slash = strchr(name, '/');

    if (nth >= (slash ? sizeof(slashes) / sizeof(slashes[0]) : 1))
        return false;
    (void)snprintf(text, PACKAGE_WORD_MAX + 16, "/%.*s%s%s", (int)(slash ? slash - name : (long)strlen(name)), name,
                   slash ? slashes[nth] : "", slash ? slash + 1 : "");
    return true;
}

/* Of a name with a scope both are in it; one without has no scope in front of it. */
bool package_address(const char *url, const char *name)
{
    char text[PACKAGE_WORD_MAX + 16];
    const char *slash = strchr(name, '/');

    if (strpbrk(name, "%?#\\ \t\r\n") || (slash != NULL) != (name[0] == '@') || (slash && strchr(slash + 1, '/')))
        return false;
    for (size_t i = 0; spelled(text, name, i); i++) {
        size_t n = strlen(text), m = strlen(url);
        if (m <= n || strcmp(url + m - n, text) != 0)
            continue;
        size_t part = m - n;
        while (part > 0 && url[part - 1] != '/')
            part--;
        return slash || (url[part] != '@' && strncmp(url + part, "%40", 3) != 0);
    }
    return false;
}

/* The path of one is that of the package, however its slash is written; behind it in *rest. */
static bool path_below(const char *base, const char *name, const char *path, const char **rest)
{
    char text[PACKAGE_WORD_MAX + 16];

    for (size_t i = 0; spelled(text, name, i); i++) {
        size_t n = strlen(text), m = strlen(base);
        if (m < n || strcmp(base + m - n, text) != 0)
            continue;
        for (size_t k = 0; spelled(text, name, k); k++) {
            size_t own = strlen(text);
            *rest = path + m - n + own;
            if (strncmp(path, base, m - n) == 0 && strncmp(path + m - n, text, own) == 0 &&
                strncmp(*rest, "/-/", 3) == 0)
                return true;
        }
    }
    return false;
}

bool package_place(const char *base, const char *name, const char *version, const char *tarball)
{
    char text[2 * PACKAGE_WORD_MAX + 16];
    const char *slash = strchr(name, '/'), *rest = NULL;
    struct place is, to;

    /* npm writes http: there even where it goes by https:, which registries put right. */
    if (!place_of(base, &is) || !place_of(tarball, &to) || !same(is.host, is.nhost, to.host, to.nhost) ||
        (!same(is.port, is.nport, to.port, to.nport) &&
         !(same(is.port, is.nport, "443", 3) && to.nscheme == 4 && same(to.port, to.nport, "80", 2))) ||
        !path_below(is.path, name, to.path, &rest))
        return false;
    (void)snprintf(text, sizeof(text), "/-/%s-%s.tgz", name, version);
    if (strcmp(rest, text) == 0)
        return true;
    (void)snprintf(text, sizeof(text), "/-/%s-%s.tgz", slash ? slash + 1 : name, version);
    return strcmp(rest, text) == 0;
}

bool package_url(const char *base, const char *name, const char *tarball, char url[PACKAGE_URL_MAX])
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%@/+!$&'()*,;=:";
    const char *rest = NULL;
    struct place is, to;

    if (!place_of(base, &is) || !place_of(tarball, &to) || !same(is.scheme, is.nscheme, to.scheme, to.nscheme) ||
        !same(is.host, is.nhost, to.host, to.nhost) || !same(is.port, is.nport, to.port, to.nport))
        return false;
    if (to.path[strspn(to.path, allowed)] != '\0' || strstr(to.path, "/.") || strcasestr(to.path, "%2e") ||
        !path_below(is.path, name, to.path, &rest) || strcasestr(rest, "%2f") || strcasestr(rest, "%5c"))
        return false;
    int n = snprintf(url, PACKAGE_URL_MAX, "%.*s%s", (int)(is.path - base), base, to.path);
    return n > 0 && n < PACKAGE_URL_MAX;
}

/* --- what is there ----------------------------------------------------------------------------------- */

const char *package_lost(const char *error)
{
    return strcmp(error, "not-found") == 0 ? "gone" : strcmp(error, "large") == 0 ? "large" : NULL;
}

const char *package_answer(int code, const char *headers)
{
    bool ours = strcasestr(headers, "\ncountersign-decision:") != NULL; /* and not the registry's */

    return code == 200                  ? NULL
           : code == 401 && !ours       ? "unauthorized"
           : code == 403 && !ours       ? "forbidden"
           : code == 401 || code == 403 ? "denied"
           : code == 404                ? "not-found"
           : code >= 300 && code < 400  ? "moved"
                                        : "unreachable";
}

/* What curl wrote of the headers, as text. */
static void headers_read(char *to, size_t room)
{
    FILE *f = fopen(PACKAGE_HEADERS, "re");
    size_t n = f ? fread(to, 1, room - 1, f) : 0;

    to[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (to[i] == '\0')
            to[i] = ' ';
    if (f)
        (void)fclose(f);
    (void)unlink(PACKAGE_HEADERS);
}

const char *package_fetch(const char *url, const char *accept, size_t max, enum fetch how, struct git_said *body)
{
    static char headers[HEADERS_MAX + 1];
    const char *proto = strncmp(url, "https:", 6) == 0 ? "=https" : "=http";
    char seconds[16];
    (void)snprintf(seconds, sizeof(seconds), "%d", PACKAGE_WAIT_S);
    const char *const words[] = {"curl",
                                 "-q",
                                 "--silent",
                                 "--globoff",
                                 "--path-as-is",
                                 "--proto",
                                 proto,
                                 "--proto-redir",
                                 proto,
                                 "--max-redirs",
                                 how == FETCH_FOLLOWS ? "3" : "0",
                                 how == FETCH_FOLLOWS ? "--location" : "--no-location",
                                 "--max-time",
                                 seconds,
                                 "--header",
                                 accept,
                                 "--dump-header",
                                 PACKAGE_HEADERS,
                                 "--write-out",
                                 "\n%{http_connect} %{http_code}",
                                 "--url",
                                 url,
                                 NULL};
    int way = 0, code = 0, status = program_say(body, max + SAYS, -1, words);

    headers_read(headers, sizeof(headers));
    if (status == 127)
        return "no-program";
    if (body->cut)
        return "large";
    if (body->n < SAYS || sscanf(body->p + body->n - SAYS, "\n%3d %3d", &way, &code) != 2)
        return "unreachable";
    body->n -= SAYS;
    body->p[body->n] = '\0';
    return status == 0                   ? package_answer(code, headers)
           : way == 403                  ? "denied"
           : status == 47 || status == 1 ? "moved" /* too often, or to where no such way leads */
                                         : "unreachable";
}

/* --- is it that ---------------------------------------------------------------------------------------- */

struct kind {
    const char *name, *program;
    size_t bytes;
};
static const struct kind kinds[] = {/* the strongest last */
                                    {"sha1", "sha1sum", 20},
                                    {"sha256", "sha256sum", 32},
                                    {"sha384", "sha384sum", 48},
                                    {"sha512", "sha512sum", 64}};

static const struct kind *kind_of(const char *token)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t n = strlen(kinds[i].name);
        if (strncmp(token, kinds[i].name, n) == 0 && token[n] == '-')
            return &kinds[i];
    }
    return NULL;
}

/* Its hash, in hexadecimal. */
static bool hash_of(const char *file, const struct kind *k, char hex[160])
{
    const char *const words[] = {k->program, NULL};
    struct git_said s = {0};
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && program_say(&s, 159, fd, words) == 0 && s.n >= 2 * k->bytes &&
                strspn(s.p, "0123456789abcdef") == 2 * k->bytes;

    if (good)
        (void)snprintf(hex, 160, "%.*s", (int)(2 * k->bytes), s.p);
    said_free(&s);
    if (fd >= 0)
        close(fd);
    return good;
}

/* Bytes in hexadecimal, as the Base64 of an integrity has them: it ends at what is neither. */
static void base64_of(const char *hex, char to[160])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0, bytes = strlen(hex) / 2;

    for (size_t i = 0; i < bytes; i += 3) {
        unsigned long bits = 0;
        for (size_t k = i; k < i + 3; k++) {
            unsigned byte = 0;
            if (k < bytes)
                (void)sscanf(hex + 2 * k, "%2x", &byte);
            bits = bits << 8 | byte;
        }
        for (size_t k = 0; k < 4; k++)
            to[n++] = i + k > bytes ? '=' : digits[bits >> (18 - 6 * k) & 63];
    }
    to[n] = '\0';
}

/* One and no more: of several npm is content with any. */
static enum hash integrity_fits(const char *file, char *text, const char **named)
{
    const struct kind *best = NULL;
    char hex[160], is[160];
    enum hash found = HASH_WRONG;

    for (char *t = text; *t; t += strcspn(t, " \t\r\n"), t += strspn(t, " \t\r\n"))
        if (kind_of(t) && (!best || kind_of(t) > best))
            best = kind_of(t);
    if (!best)
        return HASH_NONE;
    *named = best->name;
    size_t first = strcspn(text, " \t\r\n");
    if (text[first + strspn(text + first, " \t\r\n")] != '\0')
        return HASH_WRONG;
    if (!hash_of(file, best, hex))
        return HASH_WRONG;
    base64_of(hex, is);
    for (char *t = text; *t; t += strcspn(t, " \t\r\n"), t += strspn(t, " \t\r\n")) {
        const char *said = t + strlen(best->name) + 1;
        if (kind_of(t) == best && strcspn(said, " \t\r\n") == strlen(is) && strncmp(said, is, strlen(is)) == 0)
            found = HASH_GOOD;
    }
    return found;
}

enum hash package_hash(const char *file, struct value integrity, struct value shasum, const char **named)
{
    char text[INTEGRITY_MAX], hex[160];

    *named = NULL;
    if (integrity.n > 0 && json_text(integrity, text, sizeof(text)) < 0)
        return HASH_WRONG;
    if (integrity.n > 0) {
        char *from = text + strspn(text, " \t\r\n");
        enum hash is = integrity_fits(file, from, named);
        if (is != HASH_NONE)
            return is;
    }
    if (shasum.n == 0)
        return HASH_NONE;
    *named = "sha1";
    return json_text(shasum, text, sizeof(text)) == 40 && hash_of(file, &kinds[0], hex) && strcasecmp(hex, text) == 0
               ? HASH_GOOD
               : HASH_WRONG;
}
