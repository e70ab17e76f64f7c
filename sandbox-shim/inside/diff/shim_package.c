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
    struct last last;
    struct git_said list;
    struct unpacked old, new;
    const char *sent_kind, *old_kind; /* by which hash */
    enum hash sent, was;
    const char *unread; /* why the last version could not be: all is new then */
    char empty_blob[DIFF_LINE_MAX], empty_tree[DIFF_LINE_MAX];
};

static void __attribute__((noreturn)) over_of(const char *what, const char *error)
{
    static char text[64];

    (void)snprintf(text, sizeof(text), "%s-%s", what, error);
    over(strcmp(error, "no-program") == 0 || strcmp(error, "failed") == 0 ? error : text);
}

/* With what of it is in the way. */
static void __attribute__((noreturn)) over_new(const char *error, const struct unpacked *u)
{
    bool odd = false;

    if (strcmp(error, "odd") != 0 && strcmp(error, "twice") != 0)
        over_of("new", error);
    out_begin(DIFF_FILE);
    out_raw("{\"version\":1,\"error\":\"new-");
    out_raw(error);
    out_raw(u->why ? "\",\"why\":\"" : "");
    out_raw(u->why ? u->why : "");
    out_raw("\",\"at\":");
    out_text(u->at, strlen(u->at), PACKAGE_WORD_MAX, &odd);
    out_raw("}\n");
    _exit(out_end() == 0 ? 0 : 1);
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
    p[v.n] = '\0';
    return v.n > 0 ? memcpy(p, v.p, v.n) : p;
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
    w->publish.manifest.p = kept(w->publish.manifest);
    w->publish.access.p = kept(w->publish.access);
    w->publish.beside.p = kept(w->publish.beside);
    if (!file_write(PACKAGE_NEW, w->publish.tgz, w->publish.ntgz))
        over("failed");
    w->sent = package_hash(PACKAGE_NEW, w->publish.integrity, w->publish.shasum, &w->sent_kind);
    free(w->publish.tgz);
    free(body); /* and what pointed into it is not read again */
    (void)unlink(PUSH_FILE);
}

/* Why it is compared with nothing; NULL: it is not. */
static const char *last_take(struct package *w, const struct git_said *file)
{
    if (!file_write(PACKAGE_OLD, file->p, file->n))
        over("failed");
    w->was = package_hash(PACKAGE_OLD, w->last.integrity, w->last.shasum, &w->old_kind);
    if (w->was == HASH_WRONG)
        over("integrity");
    const char *error = package_unpack(PACKAGE_OLD, PACKAGE_FOLDER, &w->old);
    (void)unlink(PACKAGE_OLD);
    if (error && (strcmp(error, "no-program") == 0 || strcmp(error, "failed") == 0))
        over(error);
    return error ? error : package_legible(&w->old, w->publish.name) ? NULL : "manifest";
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
    error = package_fetch(url, ACCEPT_FILE, PACKAGE_TGZ_MAX, FETCH_STAYS, &file);
    w->unread = error ? package_lost(error) : last_take(w, &file);
    if (error && !w->unread)
        over_of("file", error);
    said_free(&file);
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

/* By what its package.json says now, and by what that of the last version did. */
static struct targets targets[2];

static bool is_notable(const struct changed *c)
{
    return package_notable(&targets[1], c->path);
}

static bool may_run(const struct changed *c, const char *p, size_t n)
{
    return package_runs(&targets[1], c->path, p, n);
}

/* What is as it was, and is no text, and is named only now. */
static size_t named_now(const struct unpacked *old, const struct unpacked *new, const struct files *f,
                        struct changed **list, size_t n)
{
    enum { MORE = DIFF_FILES_MAX };
    struct changed *more = realloc(*list, (n + MORE) * sizeof(*more));
    size_t i = 0, end = n + MORE;

    if (!more)
        over("failed");
    *list = more;
    for (size_t k = 0; old && k < new->n &&n < end; k++) {
        const struct entry *e = &new->entry[k];
        while (i < old->n && strcmp(old->entry[i].name, e->name) < 0)
            i++;
        if (i == old->n || strcmp(old->entry[i].name, e->name) != 0 || old->entry[i].mode != e->mode ||
            strcmp(old->entry[i].id, e->id) != 0 || !package_named_now(&targets[0], &targets[1], e->name) ||
            file_is_text(e->id, f))
            continue;
        struct changed *c = &more[n++];
        *c = (struct changed){.mode = {e->mode, e->mode}, .how = 'M', .path = e->name};
        memcpy(c->id[0], e->id, sizeof(c->id[0]));
        memcpy(c->id[1], e->id, sizeof(c->id[1]));
    }
    return n;
}

static void files_of(const struct package *w, const struct unpacked *old)
{
    size_t budget = DIFF_TEXT_MAX, n = 0;
    struct files f = {.empty_blob = w->empty_blob, .budget = &budget, .notable = is_notable, .runs = may_run};
    struct changed *list = package_changes(old, &w->new, &n);

    if (!list)
        over("failed");
    package_targets(&w->new, &targets[1]);
    if (old)
        package_targets(old, &targets[0]);
    n = named_now(old, &w->new, &f, &list, n);
    if (!files_list(&f, list, n))
        over("failed");
    files_end(&f);
    free(list);
}

static void package_put(const struct package *w)
{
    static const char *const hashes[] = {[HASH_NONE] = "none", [HASH_GOOD] = "good", [HASH_WRONG] = "wrong"};
    const struct unpacked *old = w->last.is && !w->unread ? &w->old : NULL;

    out_raw("{\"version\":1,\"package\":{\"state\":");
    out_raw(w->unread ? "\"unread\"" : old ? "\"compared\"" : "\"first\"");
    word_put("name", w->publish.name);
    word_put("new", w->publish.version);
    word_put("tag", w->publish.tag);
    word_put("sent", hashes[w->sent]);
    if (w->last.is) {
        word_put("base", w->last.by_tag ? "tag" : "highest");
        word_put("old", w->last.version);
        word_put("hash", w->old_kind ? w->old_kind : "none");
        out_raw(w->last.already ? ",\"already\":true" : ",\"already\":false");
    }
    if (w->unread)
        word_put("unread_old", w->unread);
    (void)package_facts(old, &w->new, w->publish.name, &w->publish);
    files_of(w, old);
    out_raw("}}\n");
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
        over_new(error, &w.new);
    out_begin(DIFF_FILE);
    package_put(&w);
    _exit(out_end() == 0 ? 0 : 1);
}
