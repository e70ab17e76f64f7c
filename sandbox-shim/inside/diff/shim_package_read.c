/* The request that publishes, and the registry's list of versions. Neither is trusted: what is not as npm writes it
 * is an error. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool word(struct value v, char to[PACKAGE_WORD_MAX + 1])
{
    return json_text(v, to, PACKAGE_WORD_MAX + 1) > 0;
}

/* The one member there is. False: there is none, or more. */
static bool only_one(struct value of, struct value *key, struct value *v)
{
    const char *at = NULL;
    struct value another[2];

    return json_is(of, '{') && json_next(of, &at, key, v) && !json_next(of, &at, &another[0], &another[1]);
}

/* --- the request ------------------------------------------------------------------------------ */

static int digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* Base64 in place. Its bytes; -1: it is none. */
static long base64(char *p, size_t n)
{
    uint32_t bits = 0;
    size_t to = 0, from = 0;

    for (; from < n && p[from] != '='; from++) {
        int is = digit(p[from]);
        if (is < 0)
            return -1;
        bits = bits << 6 | (uint32_t)is;
        if (from % 4 > 0)
            p[to++] = (char)(bits >> (6 - 2 * (from % 4)) & 0xff);
    }
    if (from % 4 == 1 || n % 4 != 0 || n - from > 2 || (n - from == 2 && p[from + 1] != '='))
        return -1;
    return (long)to;
}

/* What it holds: JSON, as text. */
static bool is_signature(struct value v, bool *twice)
{
    struct value data = json_member(v, "data", twice);
    char *text = json_is(data, '"') ? malloc(data.n) : NULL;
    long n = text ? json_text(data, text, data.n) : -1;
    bool good = n > 0 && json_is(json_whole(text, (size_t)n), '{');

    free(text);
    return good;
}

/* The package itself, under its name; beside it there may be a signature, and nothing else. */
static const char *attachment_take(struct value list, struct publish *p, bool *twice)
{
    struct value key, v, data = {.n = 0};
    char name[2 * PACKAGE_WORD_MAX + 16], full[2 * PACKAGE_WORD_MAX + 16], bare[2 * PACKAGE_WORD_MAX + 16];
    const char *slash = strchr(p->name, '/');
    size_t signatures = 0;

    for (const char *at = NULL; json_next(list, &at, &key, &v);) {
        bool text = json_text(key, name, sizeof(name)) > 0;
        (void)snprintf(full, sizeof(full), "%s-%s.tgz", p->name, p->version);
        (void)snprintf(bare, sizeof(bare), "%s-%s.tgz", slash ? slash + 1 : p->name, p->version);
        bool package = text && (strcmp(name, full) == 0 || strcmp(name, bare) == 0);
        (void)snprintf(full, sizeof(full), "%s-%s.sigstore", p->name, p->version);
        /* the package first: a registry stores what is, whatever it is */
        if (!package &&
            (!text || data.n == 0 || strcmp(name, full) != 0 || signatures++ > 0 || !is_signature(v, twice)))
            return "bad-request";
        if (package && data.n > 0)
            return "bad-request";
        if (package)
            data = json_member(v, "data", twice);
    }
    if (!json_is(data, '"') || (p->tgz = malloc(data.n)) == NULL)
        return "bad-request";
    long n = json_text(data, p->tgz, data.n);
    n = n > 0 ? base64(p->tgz, (size_t)n) : -1;
    p->ntgz = n > 0 ? (size_t)n : 0;
    return n <= 0 ? "bad-request" : p->ntgz > PACKAGE_TGZ_MAX ? "new-large" : NULL;
}

/* That it goes by what it says: name, and version. */
static bool manifest_take(struct value v, struct publish *p, bool *twice)
{
    char said[PACKAGE_WORD_MAX + 1];
    char both[sizeof(said) * 2];
    struct value id = json_member(v, "_id", twice);

    p->manifest = v;
    (void)snprintf(both, sizeof(both), "%s@%s", p->name, p->version);
    return word(json_member(v, "version", twice), said) && strcmp(said, p->version) == 0 &&
           word(json_member(v, "name", twice), said) && strcmp(said, p->name) == 0 &&
           (id.n == 0 || (word(id, said) && strcmp(said, both) == 0));
}

/* What stands beside the version: what npm, yarn and pnpm write there. */
static bool rest_take(struct value all, struct publish *p, bool *twice)
{
    static const char *const known[] = {"_id",    "name",   "description",  "dist-tags",      "versions",
                                        "access", "readme", "_attachments", "readmeFilename", NULL};
    char said[PACKAGE_WORD_MAX + 1];
    struct value key, v, id = json_member(all, "_id", twice);

    p->access = json_member(all, "access", twice);
    for (const char *at = NULL; json_next(all, &at, &key, &v) && p->beside.n == 0;) {
        bool is = false;
        if (!word(key, p->besides))
            return false;
        for (size_t i = 0; known[i] && !is; i++)
            is = strcmp(p->besides, known[i]) == 0;
        if (!is)
            p->beside = v;
    }
    return id.n == 0 || (word(id, said) && strcmp(said, p->name) == 0);
}

const char *publish_read(const char *body, size_t n, struct publish *p)
{
    struct value all = json_whole(body, n), key, v, tag;
    char said[PACKAGE_WORD_MAX + 1];
    bool twice = false;

    *p = (struct publish){.ntgz = 0};
    struct value list = json_member(all, "_attachments", &twice), tags = json_member(all, "dist-tags", &twice);
    if (!json_is(all, '{') || twice)
        return "bad-request";
    if (list.n == 0 || !json_next(list, &(const char *){NULL}, &key, &v))
        return "no-package";
    if (!word(json_member(all, "name", &twice), p->name) ||
        !only_one(json_member(all, "versions", &twice), &key, &v) || !word(key, p->version) ||
        !manifest_take(v, p, &twice) || !rest_take(all, p, &twice))
        return "bad-request";
    struct value dist = json_member(v, "dist", &twice);
    p->integrity = json_member(dist, "integrity", &twice);
    p->tarball = json_member(dist, "tarball", &twice);
    p->shasum = json_member(dist, "shasum", &twice);
    if (json_next(tags, &(const char *){NULL}, &key, &v) &&
        (!only_one(tags, &key, &tag) || !word(key, p->tag) || !word(tag, said) || strcmp(said, p->version) != 0))
        return "bad-request";
    const char *error = attachment_take(list, p, &twice);
    return error ? error : twice ? "bad-request" : NULL;
}

/* --- versions ------------------------------------------------------------------------------------ */

/* One number of a version, or one part behind its dash. */
struct part {
    const char *p;
    size_t n;
    bool number;
};

static struct part part_of(const char *p, const char *ends)
{
    struct part one = {p, strcspn(p, ends), false};

    one.number = one.n > 0 && strspn(p, "0123456789") >= one.n && (one.n == 1 || *p != '0');
    return one;
}

/* Numbers of any length; other parts as bytes, which are above numbers. */
static int part_order(struct part a, struct part b)
{
    if (a.number != b.number)
        return a.number ? -1 : 1;
    if (a.number && a.n != b.n)
        return a.n < b.n ? -1 : 1;
    int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
    return order ? order : a.n < b.n ? -1 : a.n > b.n;
}

static bool version_take(const char *v, struct part core[3], const char **pre)
{
    for (int i = 0; i < 3; i++) {
        core[i] = part_of(v, i < 2 ? "." : "-+");
        v += core[i].n;
        if (!core[i].number || (i < 2 && *v++ != '.'))
            return false;
    }
    *pre = *v == '-' ? v + 1 : NULL;
    return true;
}

bool version_before(const char *a, const char *b)
{
    struct part one[3], other[3];
    const char *pa, *pb;
    bool is = version_take(a, one, &pa), other_is = version_take(b, other, &pb);
    int order = 0;

    if (!is || !other_is)
        return !is && other_is;
    for (int i = 0; i < 3 && order == 0; i++)
        order = part_order(one[i], other[i]);
    if (order || !pa || !pb)
        return order ? order < 0 : pa && !pb; /* what has a dash is before what has none */
    for (;;) {
        struct part x = part_of(pa, ".+"), y = part_of(pb, ".+");
        if ((order = part_order(x, y)) != 0)
            return order < 0;
        bool more = pa[x.n] == '.', other_more = pb[y.n] == '.';
        if (!more || !other_more)
            return !more && other_more;
        pa += x.n + 1;
        pb += y.n + 1;
    }
}

/* --- the list ---------------------------------------------------------------------------------------- */

static bool highest(struct value versions, char to[PACKAGE_WORD_MAX + 1])
{
    char name[PACKAGE_WORD_MAX + 1];
    struct value key, v;

    to[0] = '\0';
    for (const char *at = NULL; json_next(versions, &at, &key, &v);)
        if (word(key, name) && (to[0] == '\0' || version_before(to, name)))
            memcpy(to, name, sizeof(name));
    return to[0] != '\0';
}

const char *last_find(const char *list, size_t n, const struct publish *p, struct last *l)
{
    struct value all = json_whole(list, n), versions, key, v;
    char name[PACKAGE_WORD_MAX + 1];
    bool twice = false;

    *l = (struct last){.is = false};
    versions = json_member(all, "versions", &twice);
    struct value tags = json_member(all, "dist-tags", &twice), named = json_member(all, "name", &twice);
    if (!json_is(all, '{') || twice || (versions.n > 0 && !json_is(versions, '{')) ||
        (named.n > 0 && (!word(named, name) || strcmp(name, p->name) != 0)))
        return "bad-list";
    if (!json_next(versions, &(const char *){NULL}, &key, &v))
        return NULL;
    l->already = json_member(versions, p->version, &twice).n > 0;
    l->by_tag = p->tag[0] && word(json_member(tags, p->tag, &twice), l->version) &&
                json_member(versions, l->version, &twice).n > 0;
    if (!l->by_tag && !highest(versions, l->version))
        return "bad-list";
    struct value dist = json_member(json_member(versions, l->version, &twice), "dist", &twice);
    l->tarball = json_member(dist, "tarball", &twice);
    l->integrity = json_member(dist, "integrity", &twice);
    l->shasum = json_member(dist, "shasum", &twice);
    l->is = true;
    return twice || !json_is(l->tarball, '"') ? "bad-list" : NULL;
}
