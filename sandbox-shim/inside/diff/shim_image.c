/* The way of one: the manifest is read, then the one that has its name now, then the configurations of both, each
 * held against its digest; and what differs is said. What is wrong with the new one ends it with a word; what is
 * wrong with the old one leaves nothing to compare with, which is said. */
#include "sandbox-shim/inside/diff/shim_image.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox-shim/inside/diff/shim_package.h"

#define ACCEPT_MANIFEST                                                                                              \
    "Accept: application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "                  \
    "application/vnd.docker.distribution.manifest.list.v2+json, "                                                    \
    "application/vnd.docker.distribution.manifest.v2+json"
#define ACCEPT_ANY "Accept: */*"

static const uint64_t SIZE_SUM_MAX = 1000ull * 1000 * 1000 * 1000 * 1000;

struct one { /* of the two */
    bool is;
    char digest[IMAGE_DIGEST_MAX + 1];
    struct manifest manifest;
    struct value config, raw; /* raw: of one that is no JSON */
};
struct image {
    const char *url;
    struct place place;
    struct one old, new;
    bool unread; /* the old one is there, and is nothing that can be read here */
};

static void __attribute__((noreturn)) over_of(const char *what, const char *error)
{
    static char text[64];

    (void)snprintf(text, sizeof(text), "%s-%s", what, error);
    over(strcmp(error, "no-program") == 0 || strcmp(error, "failed") == 0 ? error : text);
}

/* The file's, as registries name it. */
static bool digest_of(const char *file, char to[IMAGE_DIGEST_MAX + 1])
{
    static const char *const words[] = {"sha256sum", NULL};
    struct git_said s = {0};
    int fd = open(file, O_RDONLY | O_CLOEXEC), status = fd < 0 ? -1 : program_say(&s, 159, fd, words);

    if (fd >= 0)
        close(fd);
    if (status == 127)
        over("no-program");
    (void)snprintf(to, IMAGE_DIGEST_MAX + 1, "sha256:%.64s", s.n >= 64 ? s.p : "");
    said_free(&s);
    return status == 0 && image_is_digest(to);
}

static bool digest_is(const struct git_said *bytes, char to[IMAGE_DIGEST_MAX + 1])
{
    FILE *f = fopen(IMAGE_FILE, "we");
    bool good = f && fwrite(bytes->p, 1, bytes->n, f) == bytes->n;

    good = f && fclose(f) == 0 && good;
    return good && digest_of(IMAGE_FILE, to);
}

/* --- what is held ------------------------------------------------------------------------ */

static void request_take(struct image *w, const char *type)
{
    FILE *f = fopen(PUSH_FILE, "re");
    char *body = malloc(IMAGE_MANIFEST_MAX + 1);
    size_t n = f && body ? fread(body, 1, IMAGE_MANIFEST_MAX + 1, f) : 0;

    if (f)
        (void)fclose(f);
    if (n == 0 || !digest_of(PUSH_FILE, w->new.digest))
        over("failed");
    if (n > IMAGE_MANIFEST_MAX)
        over("manifest-large");
    if (w->place.by_digest && strcmp(w->place.reference, w->new.digest) != 0)
        over("other-digest"); /* registries refuse it, too */
    const char *error = manifest_read(body, n, type, &w->new.manifest);
    if (error)
        over(error);
    w->new.is = true;
}

/* --- what is there ----------------------------------------------------------------------- */

static const char *config_fetch(const struct image *w, struct one *one)
{
    const struct part *config = &one->manifest.config;
    char url[IMAGE_URL_MAX + IMAGE_DIGEST_MAX + 8], is[IMAGE_DIGEST_MAX + 1];
    struct git_said bytes = {0};

    (void)snprintf(url, sizeof(url), "%s/blobs/%s", w->place.base, config->digest);
    const char *error = package_fetch(url, ACCEPT_ANY, IMAGE_CONFIG_MAX, FETCH_FOLLOWS, &bytes);
    if (error)
        return error;
    if (!digest_is(&bytes, is))
        return "failed";
    if (strcmp(is, config->digest) != 0 || bytes.n != config->size)
        return "integrity";
    if (!text_is_utf8(bytes.p, bytes.n))
        return "bad";
    one->config = json_whole(bytes.p, bytes.n); /* which stay */
    if (one->config.n == 0)
        one->raw = (struct value){bytes.p, bytes.n};
    return manifest_is_run(&one->manifest) && !json_is(one->config, '{') ? "bad"
           : !manifest_layers(&one->manifest, one->config)               ? "bad"
                                                                         : NULL;
}

static void new_config(struct image *w)
{
    const char *error = w->new.manifest.list ? NULL : config_fetch(w, &w->new);

    if (error && strcmp(error, "bad") != 0)
        over_of("config", error);
    if (error || !facts_take(NEW, &w->new.manifest, w->new.config, w->new.raw))
        over("bad-config");
}

/* What has the name now. Without a name there is none. */
static void old_fetch(struct image *w)
{
    struct git_said bytes = {0};
    const char *error = w->place.by_digest
                            ? "not-found"
                            : package_fetch(w->url, ACCEPT_MANIFEST, IMAGE_MANIFEST_MAX, FETCH_STAYS, &bytes);

    if (error && strcmp(error, "not-found") == 0)
        return;
    if (error && strcmp(error, "large") != 0)
        over_of("manifest", error);
    w->unread =
        error || !digest_is(&bytes, w->old.digest) || manifest_read(bytes.p, bytes.n, NULL, &w->old.manifest) != NULL;
    if (!w->unread && !w->old.manifest.list && (error = config_fetch(w, &w->old)) != NULL) {
        if (strcmp(error, "not-found") != 0 && strcmp(error, "large") != 0 && strcmp(error, "integrity") != 0 &&
            strcmp(error, "bad") != 0)
            over_of("config", error);
        w->unread = true;
    }
    w->unread = w->unread || !facts_take(OLD, &w->old.manifest, w->old.config, w->old.raw);
    w->old.is = !w->unread;
    if (w->unread) {
        facts_forget(OLD);
        manifest_drop(&w->old.manifest);
    }
}

/* --- what is said ------------------------------------------------------------------------ */

static void word_put(const char *key, const char *text, bool first)
{
    bool odd = false;

    out_raw(first ? "\"" : ",\"");
    out_raw(key);
    out_raw("\":");
    out_text(text, strlen(text), IMAGE_WORD_MAX, &odd);
}

/* What comes later, or was kept back for a moment, is asked for again; what is wrong is told. */
static bool child_read(const struct image *w, const struct part *p, struct one *child)
{
    char url[IMAGE_URL_MAX + IMAGE_DIGEST_MAX + 16], is[IMAGE_DIGEST_MAX + 1];
    struct git_said bytes = {0};

    (void)snprintf(url, sizeof(url), "%s/manifests/%s", w->place.base, p->digest);
    const char *error = package_fetch(url, ACCEPT_MANIFEST, IMAGE_MANIFEST_MAX, FETCH_STAYS, &bytes);
    if (error && strcmp(error, "not-found") == 0)
        over("list-early");
    if (error && strcmp(error, "large") != 0)
        over_of("manifest", error);
    if (error || !digest_is(&bytes, is) || strcmp(is, p->digest) != 0 || bytes.n != p->size ||
        manifest_read(bytes.p, bytes.n, p->type, &child->manifest) != NULL || child->manifest.list)
        return false;
    if ((error = config_fetch(w, child)) != NULL && strcmp(error, "bad") != 0 && strcmp(error, "large") != 0)
        over_of("config", error);
    return error == NULL && json_once(child->config);
}

/* What an image of a list is: for which system, how it is run, how many layers, of how many bytes, and from where. */
static void child_put(const struct image *w, const struct part *p)
{
    struct one child = {.is = true};
    bool twice = false, elsewhere = p->elsewhere;
    uint64_t size = 0;

    if (!child_read(w, p, &child)) {
        out_raw(",\"opened\":\"no\"");
        return;
    }
    for (size_t i = 0; i < child.manifest.n; i++) {
        elsewhere |= child.manifest.part[i].elsewhere;
        size += size < SIZE_SUM_MAX ? child.manifest.part[i].size : 0;
    }
    bool run = manifest_is_run(&child.manifest);
    bool all = value_put(",\"run\":", run ? json_member(child.config, "config", &twice) : child.config);
    all = raw_put(",\"run\":", child.raw) && all;
    all = value_put(",\"os\":", json_member(child.config, "os", &twice)) && all;
    all = value_put(",\"architecture\":", json_member(child.config, "architecture", &twice)) && all;
    out_raw(all && !twice ? ",\"opened\":\"yes\"" : ",\"opened\":\"no\"");
    out_raw(elsewhere ? ",\"elsewhere\":true" : "");
    out_number("layers", child.manifest.n);
    out_number("bytes", size < SIZE_SUM_MAX ? size : SIZE_SUM_MAX);
    manifest_drop(&child.manifest);
}

/* What is not as it was is said word for word. */
static void part_put(const struct image *w, const struct one *of, size_t i, char how, size_t nth)
{
    static const char *const words[] = {['s'] = "same", ['m'] = "moved", ['A'] = "A", ['D'] = "D"};
    const struct part *p = &of->manifest.part[i];
    static size_t opened;

    out_raw(nth == 0 ? "{" : ",{");
    word_put("how", words[(unsigned char)how], true);
    word_put("digest", p->digest, false);
    word_put("type", p->type, false);
    out_number("size", p->size);
    bool all = how == 's' || !p->more || value_put(",\"says\":", p->is);
    all = (how == 's' || value_put(",\"unpacked\":", p->id)) && all;
    all = value_put(",\"by\":", p->step) && all;
    out_raw(all || how == 'D' ? "" : ",\"cut\":true");
    bool looks = of->manifest.list && how == 'A';
    if (looks && opened++ < IMAGE_OPENED_MAX)
        child_put(w, p);
    else
        out_raw(p->elsewhere ? ",\"elsewhere\":true" : "");
    if (looks && opened > IMAGE_OPENED_MAX)
        out_raw(",\"opened\":\"no\"");
    out_raw("}");
}

static void parts_put(const struct image *w)
{
    char was[IMAGE_PARTS_MAX], is[IMAGE_PARTS_MAX];
    size_t total = 0;

    parts_compare(&w->old.manifest, &w->new.manifest, was, is);
    out_raw(",\"parts\":[");
    for (size_t i = 0; i < w->new.manifest.n; i++)
        part_put(w, &w->new, i, is[i], total++);
    for (size_t i = 0; i < w->old.manifest.n; i++)
        if (was[i] == 'D')
            part_put(w, &w->old, i, was[i], total++);
    out_raw("]");
    out_number("parts_total", total);
}

static void image_put(const struct image *w)
{
    out_raw("{\"version\":1,\"image\":{");
    word_put("state", w->old.is ? "compared" : w->unread ? "unread" : w->place.by_digest ? "unnamed" : "first", true);
    word_put("kind", w->new.manifest.list ? "list" : "image", false);
    word_put("name", w->place.name, false);
    word_put("reference", w->place.reference, false);
    word_put("new", w->new.digest, false);
    if (w->old.is) {
        word_put("old", w->old.digest, false);
        word_put("was", w->old.manifest.list ? "list" : "image", false);
    }
    facts_put();
    parts_put(w);
    out_raw("}}\n");
}

void image_diff(char **argv)
{
    static struct image w;
    char scheme[8];

    if (!argv[0] || !argv[1] || argv[2] ||
        (strncmp(argv[0], "https://", 8) != 0 && strncmp(argv[0], "http://", 7) != 0))
        _exit(2);
    w.url = argv[0];
    (void)snprintf(scheme, sizeof(scheme), "%.*s", (int)strcspn(w.url, ":"), w.url);
    git_begin(scheme);
    if (!image_place(w.url, &w.place))
        over("bad-address");
    request_take(&w, argv[1]);
    new_config(&w);
    old_fetch(&w);
    out_begin(DIFF_FILE);
    image_put(&w);
    _exit(out_end() == 0 ? 0 : 1);
}
