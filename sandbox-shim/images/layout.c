#include "sandbox-shim/images/layout.h"

#include <stdio.h>
#include <strings.h>

#include "common/json/json.h"
#include "common/text/visible.h"
#include "sandbox-shim/env.h"

enum {
    NESTED_MAX = 3, /* indexes in indexes */
    WORD_MAX = 240, /* bytes of a foreign word that are said */
    NAME_BYTES = 64,
    VALUE_BYTES = 4096,
    SIZE_MOST = 40, /* bits of a blob's size */
};

struct span layout_machine(void)
{
#if defined(__x86_64__)
    return SPAN("amd64");
#elif defined(__aarch64__)
    return SPAN("arm64");
#elif defined(__i386__)
    return SPAN("386");
#elif defined(__arm__)
    return SPAN("arm");
#elif defined(__riscv) && __riscv_xlen == 64
    return SPAN("riscv64");
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
    return SPAN("ppc64le");
#elif defined(__s390x__)
    return SPAN("s390x");
#else
    return SPAN_NONE;
#endif
}

/* A foreign word in words of ours. */
static const char *shown(struct span s, char out[WORD_MAX + 1])
{
    struct dynbuf b;

    dynbuf_init(&b, 16 * WORD_MAX);
    visible_text(&b, span_first(s, WORD_MAX / 3), false);
    (void)snprintf(out, WORD_MAX + 1, "%.*s", (int)b.n, b.p ? (const char *)b.p : "");
    dynbuf_free(&b);
    return out;
}

/* --- variables ------------------------------------------------------------------------ */

static bool begins(const char *s, const char *with)
{
    return strncasecmp(s, with, strlen(with)) == 0;
}

static bool ends(struct span s, struct span with)
{
    return s.n >= with.n && span_ieq(span_from(s, s.n - with.n), with);
}

/* Each part of it is absolute: where programs are looked for is in the image. */
static bool path_ok(struct span value)
{
    struct span part;

    while (value.n > 0) {
        (void)span_cut(value, ':', &part, &value);
        if (part.n == 0 || part.p[0] != '/')
            return false;
    }
    return true;
}

bool layout_variable_ok(const char *assignment)
{
    /* What the plan sets itself, and what shells and Java read in place of it. */
    static const char *const own[] = {"HOME",     "USER",          "LOGNAME",           "SHELL",
                                      "BASH_ENV", "ENV",           "_JAVA_OPTIONS",     "JDK_JAVA_OPTIONS",
                                      "IFS",      "AWS_CA_BUNDLE", "PYTHONHTTPSVERIFY", NULL};
    static const char *const kinds[] = {"LD_", "GLIBC_", "MALLOC_", "COUNTERSIGN", "npm_config_", NULL};
    const char *eq = strchr(assignment, '=');
    struct span name = span_of(assignment, eq ? (size_t)(eq - assignment) : 0);

    if (name.n == 0 || name.n > NAME_BYTES || strlen(eq + 1) > VALUE_BYTES)
        return false;
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    for (const char *c = eq + 1; *c; c++)
        if ((uint8_t)*c < 0x20 || *c == 0x7f)
            return false;
    for (const struct env_row *r = env_rows; r->name; r++)
        if (span_ieq(name, span_str(r->name)))
            return false;
    for (const char *const *o = own; *o; o++)
        if (span_eq(name, span_str(*o)))
            return false;
    for (const char *const *k = kinds; *k; k++)
        if (begins(assignment, *k))
            return false;
    return !ends(name, SPAN("_proxy")) && (!span_eq(name, SPAN("PATH")) || path_ok(span_str(eq + 1)));
}

static void note(struct span list[LAYOUT_NOTED_MAX], size_t *n, struct span what)
{
    if (*n < LAYOUT_NOTED_MAX)
        list[*n] = what;
    ++*n;
}

static int env_take(struct layout *l, const struct json *env, struct err *e)
{
    struct span name, value;

    if (env && env->type != JSON_ARRAY && env->type != JSON_NULL)
        return err_set(e, "its configuration's Env is no list");
    for (const struct json *v = env ? env->child : NULL; v; v = v->next) {
        if (v->type != JSON_STRING || v->text.n == 0)
            return err_set(e, "a variable of its configuration is none");
        (void)span_cut(v->text, '=', &name, &value);
        if (memchr(v->text.p, '\0', v->text.n) || !layout_variable_ok((const char *)v->text.p)) {
            note(l->variables, &l->nvariables, name);
            continue;
        }
        (void)dynbuf_add(&l->env, v->text);
        (void)dynbuf_add_byte(&l->env, 0);
    }
    return dynbuf_ok(&l->env) ? 0
                              : err_set(e, "its configuration has more than %d bytes of variables", LAYOUT_ENV_MAX);
}

/* --- descriptors ------------------------------------------------------------------------ */

/* Digest and size of one; an `urls` or `data` in it is not looked at. */
static int name_take(const struct json *d, struct blob_name *is, struct err *e)
{
    char word[WORD_MAX + 1];
    struct span digest = json_text(d, SPAN("digest"));

    if (blob_digest(digest, &is->digest) != 0)
        return err_set(e, "it names a blob by `%s`, which is no sha256 digest", shown(digest, word));
    if (json_u64(d, SPAN("size"), &is->size) != 0 || is->size >> SIZE_MOST != 0)
        return err_set(e, "it does not say how large a blob of it is");
    return 0;
}

static const struct json *document(int dir, const struct blob_name *is, struct arena *a, struct err *e)
{
    const struct json *j = NULL;
    struct dynbuf text;

    if (blob_document(dir, is, &text, e) == 0) {
        j = json_parse(dynbuf_span(&text), a);
        if (!j || j->type != JSON_OBJECT)
            (void)err_set(e, "a document of it is no JSON object, or too large");
    }
    dynbuf_free(&text);
    return j && j->type == JSON_OBJECT ? j : NULL;
}

enum media { MEDIA_UNKNOWN = 0, MEDIA_INDEX, MEDIA_MANIFEST, MEDIA_CONFIG, MEDIA_LAYER };

static enum media media_of(struct span type, enum coding *coding)
{
    static const struct {
        const char *name;
        enum media is;
        enum coding coding;
    } known[] = {
        {"application/vnd.oci.image.index.v1+json", MEDIA_INDEX, CODING_UNKNOWN},
        {"application/vnd.docker.distribution.manifest.list.v2+json", MEDIA_INDEX, CODING_UNKNOWN},
        {"application/vnd.oci.image.manifest.v1+json", MEDIA_MANIFEST, CODING_UNKNOWN},
        {"application/vnd.docker.distribution.manifest.v2+json", MEDIA_MANIFEST, CODING_UNKNOWN},
        {"application/vnd.oci.image.config.v1+json", MEDIA_CONFIG, CODING_UNKNOWN},
        {"application/vnd.docker.container.image.v1+json", MEDIA_CONFIG, CODING_UNKNOWN},
        {"application/vnd.oci.image.layer.v1.tar", MEDIA_LAYER, CODING_IDENTITY},
        {"application/vnd.oci.image.layer.v1.tar+gzip", MEDIA_LAYER, CODING_GZIP},
        {"application/vnd.oci.image.layer.v1.tar+zstd", MEDIA_LAYER, CODING_ZSTD},
        {"application/vnd.oci.image.layer.nondistributable.v1.tar", MEDIA_LAYER, CODING_IDENTITY},
        {"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", MEDIA_LAYER, CODING_GZIP},
        {"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", MEDIA_LAYER, CODING_ZSTD},
        {"application/vnd.docker.image.rootfs.diff.tar.gzip", MEDIA_LAYER, CODING_GZIP},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (span_eq(type, span_str(known[i].name))) {
            if (coding)
                *coding = known[i].coding;
            return known[i].is;
        }
    return MEDIA_UNKNOWN;
}

static int unknown_media(struct span type, const char *of, struct err *e)
{
    char word[WORD_MAX + 1];

    return err_set(e, "%s has the media type `%s`, which is not known here", of, shown(type, word));
}

/* --- the index ---------------------------------------------------------------------------- */

struct choice {
    const struct json *it;
    size_t fit;
    struct span foreign, unknown; /* a machine, a media type: of one that does not fit */
};

static bool is_for_us(const struct json *platform)
{
    return span_eq(json_text(platform, SPAN("os")), SPAN("linux")) && layout_machine().n > 0 &&
           span_eq(json_text(platform, SPAN("architecture")), layout_machine());
}

static void choose(const struct json *index, const char *ref, struct choice *c)
{
    const struct json *list = json_get(index, SPAN("manifests"));

    for (const struct json *m = list && list->type == JSON_ARRAY ? list->child : NULL; m; m = m->next) {
        const struct json *platform = json_get(m, SPAN("platform"));
        struct span type = json_text(m, SPAN("mediaType")),
                    name = json_text(json_get(m, SPAN("annotations")), SPAN("org.opencontainers.image.ref.name"));
        enum media media = media_of(type, NULL);
        if (ref && !span_eq(name, span_str(ref)))
            continue;
        if (media != MEDIA_INDEX && media != MEDIA_MANIFEST)
            c->unknown = type;
        else if (platform && !is_for_us(platform))
            c->foreign = json_text(platform, SPAN("architecture"));
        else if (c->fit++ == 0)
            c->it = m;
    }
}

static int none_fits(const struct choice *c, const char *ref, struct err *e)
{
    char word[WORD_MAX + 1];

    if (c->foreign.n > 0)
        return err_set(e, "it holds no image for linux/%.*s, but one for %s", SPAN_FMT(layout_machine()),
                       shown(c->foreign, word));
    if (c->unknown.n > 0)
        return unknown_media(c->unknown, "what its index names", e);
    if (ref)
        return err_set(e, "its index calls no image `%s`", shown(span_str(ref), word));
    return err_set(e, "its index names no image");
}

/* Down to the manifest; *is: its digest and size. */
static const struct json *manifest_find(int dir, const struct json *index, const char *ref, struct blob_name *is,
                                        struct arena *a, struct err *e)
{
    for (int depth = 0; depth < NESTED_MAX; depth++) {
        struct choice c = {.it = NULL};
        choose(index, depth == 0 ? ref : NULL, &c);
        if (!c.it) {
            (void)none_fits(&c, depth == 0 ? ref : NULL, e);
            return NULL;
        }
        if (c.fit > 1 && depth == 0) {
            (void)err_set(e, "it holds %zu images: --ref says which, by the name that index.json has for it", c.fit);
            return NULL;
        }
        enum media media = media_of(json_text(c.it, SPAN("mediaType")), NULL);
        index = name_take(c.it, is, e) == 0 ? document(dir, is, a, e) : NULL;
        struct span own = json_text(index, SPAN("mediaType"));
        if (!index)
            return NULL;
        if (own.n > 0 && media_of(own, NULL) != media) {
            (void)err_set(e, "its index and a document of it do not agree what that is");
            return NULL;
        }
        if (media == MEDIA_MANIFEST)
            return index;
    }
    (void)err_set(e, "its indexes are nested too deeply");
    return NULL;
}

/* --- the manifest and the configuration ---------------------------------------------------- */

static int layers_take(struct layout *l, const struct json *manifest, struct err *e)
{
    const struct json *list = json_get(manifest, SPAN("layers"));

    if (!list || list->type != JSON_ARRAY || list->count == 0 || list->count > LAYOUT_LAYERS_MAX)
        return err_set(e, "its manifest does not have 1 to %d layers", LAYOUT_LAYERS_MAX);
    for (const struct json *d = list->child; d; d = d->next) {
        struct layout_layer *to = &l->layer[l->nlayers];
        struct span type = json_text(d, SPAN("mediaType"));
        if (media_of(type, &to->coding) != MEDIA_LAYER)
            return unknown_media(type, "a layer of it", e);
        if (name_take(d, &to->blob, e) != 0)
            return -1;
        l->nlayers++;
    }
    return 0;
}

static int plain_take(struct layout *l, const struct json *config, struct err *e)
{
    const struct json *fs = json_get(config, SPAN("rootfs")), *list = json_get(fs, SPAN("diff_ids"));
    size_t n = 0;

    if (!span_eq(json_text(fs, SPAN("type")), SPAN("layers")) || !list || list->type != JSON_ARRAY ||
        list->count != l->nlayers)
        return err_set(e, "its configuration does not have as many layers as its manifest");
    for (const struct json *d = list->child; d; d = d->next, n++)
        if (d->type != JSON_STRING || blob_digest(d->text, &l->layer[n].plain) != 0)
            return err_set(e, "its configuration names a layer by what is no sha256 digest");
    return 0;
}

/* What would say how it is run: a sandbox's commands say that themselves. */
static void ignored_take(struct layout *l, const struct json *run)
{
    static const char *const keys[] = {"User",    "WorkingDir",   "Entrypoint", "Cmd",
                                       "Volumes", "ExposedPorts", "OnBuild",    "Healthcheck",
                                       "Shell",   "StopSignal",   NULL};

    for (const char *const *k = keys; *k; k++) {
        const struct json *v = json_get(run, span_str(*k));
        if (v && v->type != JSON_NULL && (v->type == JSON_STRING ? v->text.n > 0 : v->count > 0))
            note(l->ignored, &l->nignored, span_str(*k));
    }
}

static int config_take(struct layout *l, int dir, const struct json *manifest, struct arena *a, struct err *e)
{
    const struct json *d = json_get(manifest, SPAN("config")), *config, *run;
    struct span type = json_text(d, SPAN("mediaType")), machine;
    char word[WORD_MAX + 1];
    struct blob_name is;

    if (media_of(type, NULL) != MEDIA_CONFIG)
        return unknown_media(type, "its configuration", e);
    if (name_take(d, &is, e) != 0 || !(config = document(dir, &is, a, e)))
        return -1;
    machine = json_text(config, SPAN("architecture"));
    if (!is_for_us(config))
        return err_set(e, "it is an image for %s, and this machine is linux/%.*s", shown(machine, word),
                       SPAN_FMT(layout_machine()));
    if (plain_take(l, config, e) != 0)
        return -1;
    run = json_get(config, SPAN("config"));
    ignored_take(l, run);
    return env_take(l, json_get(run, SPAN("Env")), e);
}

static const struct json *plain_document(int dir, const char *name, struct arena *a, struct err *e)
{
    struct dynbuf text;
    const struct json *j = NULL;

    if (blob_plain(dir, name, &text, e) == 0) {
        j = json_parse(dynbuf_span(&text), a);
        if (!j || j->type != JSON_OBJECT)
            (void)err_set(e, "%s is no JSON object, or too large", name);
    }
    dynbuf_free(&text);
    return j && j->type == JSON_OBJECT ? j : NULL;
}

int layout_read(struct layout *l, int dir, const char *ref, struct arena *a, struct err *e)
{
    const struct json *mark, *index, *manifest;
    struct blob_name is;

    memset(l, 0, sizeof(*l));
    dynbuf_init(&l->env, LAYOUT_ENV_MAX);
    if (!(mark = plain_document(dir, "oci-layout", a, e)))
        return -1;
    if (!span_eq(json_text(mark, SPAN("imageLayoutVersion")), SPAN("1.0.0")))
        return err_set(e, "its oci-layout file has a version that is not known here");
    if (!(index = plain_document(dir, "index.json", a, e)) || !(manifest = manifest_find(dir, index, ref, &is, a, e)))
        return -1;
    l->digest = is.digest;
    return layers_take(l, manifest, e) != 0 ? -1 : config_take(l, dir, manifest, a, e);
}

void layout_free(struct layout *l)
{
    dynbuf_free(&l->env);
}
