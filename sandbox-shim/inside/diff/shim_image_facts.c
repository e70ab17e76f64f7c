/* What a manifest and a configuration say, member by member: what they have in common with the last one is left out,
 * and nothing else. Names come from whoever made the image. */
#include "sandbox-shim/inside/diff/shim_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One, of both sides. n == 0: that side does not say it. */
struct fact {
    const char *in;
    char *name;
    struct value is[2];
    bool raw[2]; /* it is no JSON */
};
static struct fact known[2 * IMAGE_KNOWN_MAX];
static size_t nknown, of_side[2];

void facts_forget(enum side side)
{
    size_t n = 0;

    for (size_t i = 0; i < nknown; i++) {
        known[i].is[side].n = 0;
        if (known[i].is[OLD].n > 0 || known[i].is[NEW].n > 0)
            known[n++] = known[i];
        else
            free(known[i].name);
    }
    nknown = n;
    of_side[side] = 0;
}

static bool fact_add(enum side side, const char *in, const char *name, struct value is)
{
    struct fact *f = NULL;

    if (of_side[side] >= IMAGE_KNOWN_MAX)
        return false;
    for (size_t i = 0; i < nknown && !f; i++)
        if (strcmp(known[i].in, in) == 0 && strcmp(known[i].name, name) == 0)
            f = &known[i];
    if (!f) {
        f = &known[nknown];
        *f = (struct fact){.in = in, .name = strdup(name)};
        if (!f->name)
            return false;
        nknown++;
    }
    if (f->is[side].n > 0 || is.n == 0)
        return false; /* which counts is not the same for all */
    f->is[side] = is;
    of_side[side]++;
    return true;
}

static bool is_one_of(const char *name, const char *const *list)
{
    for (size_t i = 0; list[i]; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

/* All members but those; but NULL: those of a map, whose names are data. Programs that read no case take two of
 * others that differ in it for one: those are not read here. */
static bool members(enum side side, const char *in, struct value of, const char *const *but)
{
    char key[JSON_KEY_MAX + 1];
    struct value k, v;
    bool good = json_is(of, '{') || of.n == 0 || (of.n == 4 && json_is(of, 'n')), twice = false;

    for (const char *at = NULL; good && json_next(of, &at, &k, &v);) {
        good = json_text(k, key, sizeof(key)) >= 0;
        if (but && good)
            (void)json_member(of, key, &twice);
        good = good && !twice;
        if (good && (!but || !is_one_of(key, but)))
            good = json_once(v) && fact_add(side, in, key, v);
    }
    return good;
}

/* "NAME=VALUE": the name is what is told apart by. A value that is only in part a name keeps all of it. */
static bool environment(enum side side, struct value list)
{
    static char text[IMAGE_CONFIG_MAX + 1];
    struct value k, v;
    bool good = json_is(list, '[') || list.n == 0 || (list.n == 4 && json_is(list, 'n'));

    for (const char *at = NULL; good && json_next(list, &at, &k, &v);) {
        good = json_text(v, text, sizeof(text)) >= 0;
        text[good ? strcspn(text, "=") : 0] = '\0';
        good = good && fact_add(side, "environment", text, v);
    }
    return good;
}

static bool configuration(enum side side, struct value config)
{
    static const char *const above[] = {"config", "rootfs", "history", NULL};
    static const char *const within[] = {"Env", "Labels", "ExposedPorts", "Volumes", NULL};
    bool twice = false;
    struct value run = json_member(config, "config", &twice);
    struct value env = json_member(run, "Env", &twice), labels = json_member(run, "Labels", &twice);
    struct value ports = json_member(run, "ExposedPorts", &twice), volumes = json_member(run, "Volumes", &twice);

    return !twice && members(side, "image", config, above) && members(side, "run", run, within) &&
           environment(side, env) && members(side, "label", labels, NULL) && members(side, "port", ports, NULL) &&
           members(side, "volume", volumes, NULL);
}

/* Of something that is no image to be run it is whatever its program wants: all of it as it is written. */
static bool content(enum side side, struct value config, struct value raw)
{
    static const char *const none[] = {NULL};
    bool good = json_is(config, '{')
                    ? members(side, "content", config, none)
                    : (config.n + raw.n == 0 || fact_add(side, "content", "all of it", config.n ? config : raw));

    for (size_t i = 0; i < nknown && raw.n > 0; i++)
        known[i].raw[side] |= known[i].is[side].p == raw.p;
    return good;
}

bool facts_take(enum side side, const struct manifest *m, struct value config, struct value raw)
{
    static const char *const told[] = {"schemaVersion", "config", "layers", "manifests", "annotations", NULL};
    static const char *const of_part[] = {"mediaType", "digest", "size", NULL};
    bool twice = false, good = members(side, "manifest", m->is, told) &&
                               members(side, "annotation", json_member(m->is, "annotations", &twice), NULL);

    if (!m->list)
        good = good && members(side, "configuration", m->config.is, of_part) &&
               fact_add(side, "manifest", "configuration", json_member(m->config.is, "mediaType", &twice));
    return good && !twice && (manifest_is_run(m) ? configuration(side, config) : content(side, config, raw));
}

/* --- said -------------------------------------------------------------------------------- */

static size_t said; /* of all of them */

bool raw_put(const char *key, struct value v)
{
    bool odd = false;
    size_t most = said < IMAGE_SAID_MAX ? IMAGE_SAID_MAX - said : 0;

    if (v.n == 0)
        return true;
    said += v.n;
    out_raw(key);
    return out_text(v.p, v.n, most < IMAGE_FACT_MAX ? most : IMAGE_FACT_MAX, &odd);
}

/* A text that could be taken for another value keeps its quotes. */
bool value_put(const char *key, struct value v)
{
    static char text[IMAGE_CONFIG_MAX + 1];
    long n = v.n > 0 ? json_text(v, text, sizeof(text)) : -1;
    struct value as = n >= 0 ? json_whole(text, (size_t)n) : (struct value){.n = 0};

    if (n == 0) /* it is said, and empty */
        out_raw(key), out_raw("\"\"");
    return n == 0 ||
           raw_put(key, n > 0 && (as.n == 0 || strchr("-0123456789", *as.p)) ? (struct value){text, (size_t)n} : v);
}

static void fact_put(const struct fact *f, bool first)
{
    const struct value *old = &f->is[OLD], *new = &f->is[NEW];
    bool odd = false;

    out_raw(first ? "{\"in\":\"" : ",{\"in\":\"");
    out_raw(f->in);
    out_raw("\",\"name\":");
    bool all = out_text(f->name, strlen(f->name), IMAGE_WORD_MAX, &odd);
    out_raw(old->n && new->n ? ",\"how\":\"M\"" : new->n ? ",\"how\":\"A\"" : ",\"how\":\"D\"");
    bool was = (f->raw[OLD] ? raw_put : value_put)(",\"old\":", *old);
    all = (f->raw[NEW] ? raw_put : value_put)(",\"new\":", *new) && all;
    out_raw(all ? "" : ",\"cut\":true");
    out_raw(was ? "}" : ",\"old_cut\":true}");
}

/* What is new before what is gone. */
void facts_put(void)
{
    uint64_t total = 0;

    out_raw(",\"facts\":[");
    for (int gone = 0; gone <= 1; gone++)
        for (size_t i = 0; i < nknown; i++) {
            const struct value *old = &known[i].is[OLD], *new = &known[i].is[NEW];
            if ((new->n == 0) == (gone == 1) &&
                (old->n != new->n || (old->n > 0 && memcmp(old->p, new->p, old->n) != 0)))
                fact_put(&known[i], total++ == 0);
        }
    out_raw("]");
    out_number("facts_total", total);
}
