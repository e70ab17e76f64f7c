/* A manifest and its address, as the registry and those who pull understand them. What programs could take for two
 * things is an error: a list that is an image too, members that stand twice, a type that says otherwise. */
#include "sandbox-shim/inside/diff/shim_image.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- where ------------------------------------------------------------------------------- */

bool image_is_digest(const char *text)
{
    return strncmp(text, "sha256:", 7) == 0 && strspn(text + 7, "0123456789abcdef") == 64 && text[7 + 64] == '\0';
}

static bool is_name(const char *p, size_t n)
{
    bool part = false; /* a letter or a digit was just there */

    if (n == 0 || n > IMAGE_NAME_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool plain = islower((unsigned char)p[i]) || isdigit((unsigned char)p[i]);
        if (!plain && !strchr("._-/", p[i]))
            return false;
        if (p[i] == '/' && !part)
            return false;
        if (!plain && p[i] != '/' && (i == 0 || p[i - 1] == '/'))
            return false;
        part = plain;
    }
    return part;
}

static bool is_tag(const char *p)
{
    size_t n = strlen(p);

    if (n == 0 || n > 128 || *p == '.' || *p == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)p[i]) && !strchr("_.-", p[i]))
            return false;
    return true;
}

bool image_place(const char *url, struct place *p)
{
    const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL, *last;

    *p = (struct place){.by_digest = false};
    if (!path || strlen(url) >= sizeof(p->base) || strncmp(path, "/v2/", 4) != 0)
        return false;
    const char *name = path + 4;
    if ((last = strstr(name, "/manifests/")) == NULL || strlen(last + 11) >= sizeof(p->reference))
        return false;
    for (const char *next; (next = strstr(last + 1, "/manifests/")) != NULL;) /* a repository may have that name */
        last = next;
    (void)snprintf(p->reference, sizeof(p->reference), "%s", last + 11);
    p->by_digest = image_is_digest(p->reference);
    if (!is_name(name, (size_t)(last - name)) || (!p->by_digest && !is_tag(p->reference)))
        return false;
    (void)snprintf(p->name, sizeof(p->name), "%.*s", (int)(last - name), name);
    (void)snprintf(p->base, sizeof(p->base), "%.*s", (int)(last - url), url);
    return true;
}

/* --- what -------------------------------------------------------------------------------- */

static const struct {
    const char *type;
    bool list;
} types[] = {{"application/vnd.oci.image.manifest.v1+json", false},
             {"application/vnd.docker.distribution.manifest.v2+json", false},
             {"application/vnd.oci.image.index.v1+json", true},
             {"application/vnd.docker.distribution.manifest.list.v2+json", true}};

/* Is that a type of a list, or of an image? None but those four are understood. */
static bool is_type(const char *type, bool list)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].type, type) == 0)
            return types[i].list == list;
    return false;
}

static bool number(struct value v, uint64_t *n)
{
    *n = 0;
    if (v.n == 0 || v.n > 15)
        return false;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] < '0' || v.p[i] > '9')
            return false;
        *n = *n * 10 + (uint64_t)(v.p[i] - '0');
    }
    return true;
}

static size_t json_count(struct value of)
{
    struct value key, v;
    size_t n = 0;

    for (const char *at = NULL; json_next(of, &at, &key, &v);)
        n++;
    return n;
}

static bool is_map(const char *name)
{
    static const char *const maps[] = {"annotations", "labels", "exposedports", "volumes"};

    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
        if (strcasecmp(maps[i], name) == 0)
            return true;
    return false;
}

static bool once(struct value of, bool map);

static bool member_once(struct value of, struct value key, struct value v, bool map)
{
    char name[JSON_KEY_MAX + 1], other[JSON_KEY_MAX + 1];
    struct value k, w;
    bool twice = false;

    if (json_text(key, name, sizeof(name)) < 0)
        return false;
    if (!map)
        (void)json_member(of, name, &twice);
    for (const char *at = NULL; map && !twice && json_next(of, &at, &k, &w);)
        twice = k.p != key.p && json_text(k, other, sizeof(other)) >= 0 && strcmp(name, other) == 0;
    return !twice && once(v, !map && is_map(name));
}

static bool once(struct value of, bool map)
{
    struct value key, v;
    bool list = json_is(of, '[');

    if (!list && !json_is(of, '{'))
        return true;
    if (!list && json_count(of) > (map ? IMAGE_KNOWN_MAX : IMAGE_TWICE_MAX))
        return false;
    for (const char *at = NULL; json_next(of, &at, &key, &v);)
        if (list ? !once(v, false) : !member_once(of, key, v, map)) /* as deep as JSON_DEEP at most */
            return false;
    return true;
}

bool json_once(struct value of)
{
    return once(of, false);
}

static bool part_take(struct value v, struct part *p)
{
    bool twice = false;

    *p = (struct part){.is = v};
    struct value urls = json_member(v, "urls", &twice);
    struct value type = json_member(v, "mediaType", &twice);
    p->elsewhere = json_is(urls, '[');
    p->more = json_count(v) > 3;
    return json_is(v, '{') && json_once(v) &&
           json_text(json_member(v, "digest", &twice), p->digest, sizeof(p->digest)) > 0 &&
           image_is_digest(p->digest) && number(json_member(v, "size", &twice), &p->size) &&
           json_text(type, p->type, sizeof(p->type)) > 0 && !twice;
}

static bool parts_take(struct value list, struct manifest *m)
{
    struct value key, v;

    m->part = calloc(IMAGE_PARTS_MAX, sizeof(*m->part));
    if (!m->part || !json_is(list, '['))
        return false;
    for (const char *at = NULL; json_next(list, &at, &key, &v); m->n++)
        if (m->n == IMAGE_PARTS_MAX || !part_take(v, &m->part[m->n]))
            return false;
    return true;
}

const char *manifest_read(const char *bytes, size_t n, const char *type, struct manifest *m)
{
    char said[IMAGE_WORD_MAX + 1];
    bool twice = false;
    uint64_t version;

    *m = (struct manifest){.is = text_is_utf8(bytes, n) ? json_whole(bytes, n) : (struct value){.n = 0}};
    struct value layers = json_member(m->is, "layers", &twice), images = json_member(m->is, "manifests", &twice);
    struct value config = json_member(m->is, "config", &twice), own = json_member(m->is, "mediaType", &twice);
    struct value schema = json_member(m->is, "schemaVersion", &twice);
    struct value old = json_member(m->is, "fsLayers", &twice), history = json_member(m->is, "history", &twice);

    m->list = images.n > 0;
    if (!json_is(m->is, '{') || twice || (m->list && (layers.n > 0 || config.n > 0)) || old.n > 0 || history.n > 0 ||
        !number(schema, &version) || version != 2)
        return "bad-manifest";
    if (own.n > 0 && (json_text(own, said, sizeof(said)) < 0 || !is_type(said, m->list)))
        return "bad-manifest";
    if (type && (!is_type(type, m->list) || (own.n > 0 && strcmp(type, said) != 0)))
        return "bad-manifest";
    if (!m->list && !part_take(config, &m->config))
        return "bad-manifest";
    return parts_take(m->list ? images : layers, m) ? NULL : "bad-manifest";
}

/* --- its layers -------------------------------------------------------------------------- */

bool manifest_is_run(const struct manifest *m)
{
    return !m->list && (strcmp(m->config.type, "application/vnd.oci.image.config.v1+json") == 0 ||
                        strcmp(m->config.type, "application/vnd.docker.container.image.v1+json") == 0);
}

/* As many as there are layers, or none is said. */
static void steps_take(struct manifest *m, struct value history)
{
    struct value key, v, empty;
    bool twice = false;
    size_t n = 0;

    for (const char *at = NULL; json_is(history, '[') && json_next(history, &at, &key, &v);) {
        empty = json_member(v, "empty_layer", &twice);
        if (json_is(empty, 't'))
            continue;
        if (n < m->n)
            m->part[n].step = json_member(v, "created_by", &twice);
        n++;
    }
    for (size_t i = 0; i < m->n && (n != m->n || twice); i++)
        m->part[i].step.n = 0;
}

bool manifest_layers(struct manifest *m, struct value config)
{
    char text[IMAGE_DIGEST_MAX + 1];
    struct value key, v;
    bool twice = false;
    size_t n = 0;
    struct value root = json_member(config, "rootfs", &twice), ids = json_member(root, "diff_ids", &twice);

    if (!manifest_is_run(m)) /* what has them is an image, whatever it is called */
        return root.n == 0 && !twice;
    steps_take(m, json_member(config, "history", &twice));
    if (twice || json_text(json_member(root, "type", &twice), text, sizeof(text)) < 0 || strcmp(text, "layers") != 0)
        return false;
    for (const char *at = NULL; json_is(ids, '[') && json_next(ids, &at, &key, &v); n++) {
        if (n == m->n || json_text(v, text, sizeof(text)) < 0 || !image_is_digest(text))
            return false;
        m->part[n].id = v;
    }
    return n == m->n && !twice && json_count(root) == 2;
}

static bool alike(struct value a, struct value b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static bool same_part(const struct part *a, const struct part *b)
{
    return alike(a->is, b->is) && alike(a->id, b->id);
}

/* The longest way through both that leaves the order of each. */
static void in_order(const struct manifest *old, const struct manifest *new, char *was, char *is)
{
    static uint16_t most[IMAGE_PARTS_MAX + 1][IMAGE_PARTS_MAX + 1];

    memset(most, 0, sizeof(most));
    for (size_t i = old->n; i-- > 0;)
        for (size_t k = new->n; k-- > 0;)
            most[i][k] = same_part(&old->part[i], &new->part[k])
                             ? (uint16_t)(most[i + 1][k + 1] + 1)
                             : (most[i + 1][k] > most[i][k + 1] ? most[i + 1][k] : most[i][k + 1]);
    for (size_t i = 0, k = 0; i < old->n && k < new->n;) {
        if (same_part(&old->part[i], &new->part[k])) {
            was[i++] = 's';
            is[k++] = 's';
        } else if (most[i + 1][k] >= most[i][k + 1]) {
            i++;
        } else {
            k++;
        }
    }
}

void parts_compare(const struct manifest *old, const struct manifest *new, char *was, char *is)
{
    memset(was, 'D', old->n);
    memset(is, 'A', new->n);
    in_order(old, new, was, is);
    for (size_t k = 0; k < new->n; k++)
        for (size_t i = 0; i < old->n && is[k] == 'A'; i++)
            if (was[i] == 'D' && same_part(&old->part[i], &new->part[k]))
                was[i] = is[k] = 'm';
}

void manifest_drop(struct manifest *m)
{
    free(m->part);
    *m = (struct manifest){.n = 0};
}
