/* The way of one: the request is read, the list of versions fetched, then the file of the last one, whose hash is
 * held against the list; both are unpacked and compared. Each step that fails ends it with a word. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACCEPT_LIST "Accept: application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8"
#define ACCEPT_FILE "Accept: */*"

enum { BODY_MAX = 64 * 1024 * 1024 };

struct package {
    const char *url;
    struct publish publish;
    struct value manifest; /* what the request says of this version */
    struct last last;
    struct git_said list;
    struct unpacked old, new;
    const char *sent_kind, *old_kind; /* by which hash */
    enum hash sent, was;
    char empty_blob[DIFF_LINE_MAX], empty_tree[DIFF_LINE_MAX];
};

static void __attribute__((noreturn)) over_of(const char *what, const char *error)
{
    static char text[64];

    (void)snprintf(text, sizeof(text), "%s-%s", what, error);
    over(strcmp(error, "no-program") == 0 || strcmp(error, "failed") == 0 ? error : text);
}

static bool file_write(const char *path, const char *p, size_t n)
{
    FILE *f = fopen(path, "wxe");
    bool good = f && fwrite(p, 1, n, f) == n;

    return f && fclose(f) == 0 && good;
}

/* Of what is borrowed. */
static const char *kept(struct value v)
{
    char *p = malloc(v.n + 1);

    if (!p)
        over("failed");
    return memcpy(p, v.p, v.n);
}

static void request_take(struct package *w)
{
    char where[PACKAGE_URL_MAX];
    FILE *f = fopen(PUSH_FILE, "re");
    char *body = malloc(BODY_MAX + 1);
    size_t n = f && body ? fread(body, 1, BODY_MAX + 1, f) : 0;

    if (f)
        (void)fclose(f);
    if (n == 0 || n > BODY_MAX)
        over("failed");
    const char *error = publish_read(body, n, &w->publish);
    if (error)
        over(error);
    /* Its address is that of the name in it, or what is shown is not what is changed. */
    if (!package_address(w->url, w->publish.name))
        over("other-name");
    if (json_text(w->publish.tarball, where, sizeof(where)) < 0 ||
        !package_place(w->url, w->publish.name, w->publish.version, where))
        over("other-place");
    w->manifest = (struct value){kept(w->publish.manifest), w->publish.manifest.n};
    if (!file_write(PACKAGE_NEW, w->publish.tgz, w->publish.ntgz))
        over("failed");
    w->sent = package_hash(PACKAGE_NEW, w->publish.integrity, w->publish.shasum, &w->sent_kind);
    free(w->publish.tgz);
    free(body); /* and what pointed into it is not read again */
    (void)unlink(PUSH_FILE);
}

static void last_fetch(struct package *w)
{
    struct git_said file = {0};
    char where[PACKAGE_URL_MAX], url[PACKAGE_URL_MAX];
    const char *error = package_fetch(w->url, ACCEPT_LIST, PACKAGE_LIST_MAX, FETCH_STAYS, &w->list);

    if (error && strcmp(error, "not-found") == 0)
        return; /* nobody has published it yet */
    if (error)
        over_of("list", error);
    if ((error = last_find(w->list.p, w->list.n, &w->publish, &w->last)) != NULL)
        over(error);
    if (!w->last.is)
        return;
    if (json_text(w->last.tarball, where, sizeof(where)) < 0 || !package_url(w->url, w->publish.name, where, url))
        over("elsewhere");
    if ((error = package_fetch(url, ACCEPT_FILE, PACKAGE_TGZ_MAX, FETCH_STAYS, &file)) != NULL)
        over_of("file", error);
    if (!file_write(PACKAGE_OLD, file.p, file.n))
        over("failed");
    said_free(&file);
    w->was = package_hash(PACKAGE_OLD, w->last.integrity, w->last.shasum, &w->old_kind);
    if (w->was == HASH_WRONG)
        over("integrity");
    if ((error = package_unpack(PACKAGE_OLD, PACKAGE_FOLDER, &w->old)) != NULL)
        over_of("old", error);
    (void)unlink(PACKAGE_OLD);
}

/* --- what is said ---------------------------------------------------------------------------------- */

static void word_put(const char *key, const char *text)
{
    bool odd = false;

    out_raw(",\"");
    out_raw(key);
    out_raw("\":");
    out_text(text, strlen(text), PACKAGE_WORD_MAX, &odd);
}

static void package_put(const struct package *w)
{
    static const char *const hashes[] = {[HASH_NONE] = "none", [HASH_GOOD] = "good", [HASH_WRONG] = "wrong"};
    const struct unpacked *old = w->last.is ? &w->old : NULL;
    size_t budget = DIFF_TEXT_MAX, n = 0;
    struct files f = {.empty_blob = w->empty_blob, .budget = &budget, .notable = package_notable};
    struct changed *list = package_changes(old, &w->new, &n);

    if (!list)
        over("failed");
    out_raw("{\"version\":1,\"package\":{\"state\":");
    out_raw(old ? "\"compared\"" : "\"first\"");
    word_put("name", w->publish.name);
    word_put("new", w->publish.version);
    word_put("tag", w->publish.tag);
    word_put("sent", hashes[w->sent]);
    if (old) {
        word_put("base", w->last.by_tag ? "tag" : "highest");
        word_put("old", w->last.version);
        word_put("hash", w->old_kind ? w->old_kind : "none");
        out_raw(w->last.already ? ",\"already\":true" : ",\"already\":false");
    }
    package_targets(&w->new);
    (void)package_facts(old, &w->new, w->publish.name, w->manifest);
    if (!files_list(&f, list, n))
        over("failed");
    files_end(&f);
    out_raw("}}\n");
    free(list);
}

void package_diff(char **argv)
{
    static struct package w;
    char scheme[8];

    if (!argv[0] || argv[1] || (strncmp(argv[0], "https://", 8) != 0 && strncmp(argv[0], "http://", 7) != 0))
        _exit(2);
    w.url = argv[0];
    (void)snprintf(scheme, sizeof(scheme), "%.*s", (int)strcspn(w.url, ":"), w.url);
    git_begin(scheme);
    const char *error = git_repository("sha1", w.empty_blob, w.empty_tree);
    if (error)
        over(error);
    request_take(&w);
    last_fetch(&w);
    if ((error = package_unpack(PACKAGE_NEW, PACKAGE_FOLDER, &w.new)) != NULL)
        over_of("new", error);
    out_begin(DIFF_FILE);
    package_put(&w);
    _exit(out_end() == 0 ? 0 : 1);
}
