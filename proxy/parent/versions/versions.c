/* STATE_DIR/policies: one folder a version, named by the digest of its image. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/json/json.h"
#include "common/log.h"
#include "proxy/parent/versions/versions.h"

enum { ROW_FILES_MAX = 2400, KNOWN_MAX = 4 * VERSIONS_MAX };

int versions_dir(const char *state, char out[VERSIONS_PATH], struct err *e)
{
    int n = snprintf(out, VERSIONS_PATH, "%s/policies", state);
    return n < 0 || n >= VERSIONS_PATH ? err_set(e, "the path of the state directory is too long") : 0;
}

static void join(char out[VERSIONS_PATH + 96], const char *dir, const char *name)
{
    snprintf(out, VERSIONS_PATH + 96, "%s/%s", dir, name);
}

/* Of ours alone: files, no folders in it. */
static void remove_dir(const char *dir, const char *name)
{
    char path[VERSIONS_PATH + 96], file[VERSIONS_PATH + 96 + 300];
    const struct dirent *d;
    join(path, dir, name);
    DIR *at = opendir(path);
    while (at && (d = readdir(at)) != NULL) {
        snprintf(file, sizeof(file), "%s/%s", path, d->d_name);
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 && unlink(file) != 0)
            log_warn("cannot remove %s: %m", file);
    }
    if (at)
        closedir(at);
    if (rmdir(path) != 0 && errno != ENOENT)
        log_warn("cannot remove %s: %m", path);
}

/* Is it there, whole, and as good as this? */
static bool sound(const char *dir, const struct stored *as)
{
    struct stored s;
    bool ok = stored_open(dir, as->hex, &s, NULL) == 0 && stored_read(dir, &s, NULL) == 0 &&
              (stored_is_signed(&s) || !stored_is_signed(as));
    stored_free(&s);
    return ok;
}

static int write_files(const char *dir, const struct stored *s, struct err *e)
{
    struct dynbuf manifest;
    int bad = 0;
    for (size_t i = 0; bad == 0 && i < s->n; i++)
        if (stored_first(s, i))
            bad = versions_put_file(dir, s->v[i].file, s->v[i].text, e);
    dynbuf_init(&manifest, STORED_MANIFEST_MAX);
    stored_manifest(s, &manifest);
    if (bad == 0)
        bad = dynbuf_ok(&manifest) ? versions_put_file(dir, STORED_MANIFEST, dynbuf_span(&manifest), e)
                                   : err_set(e, "no memory for the manifest");
    dynbuf_free(&manifest);
    return bad;
}

/* A name that no version has, until it is whole. */
static int store(const char *dir, const struct stored *s, struct err *e)
{
    char tmp[VERSIONS_PATH + 96], path[VERSIONS_PATH + 96];
    join(tmp, dir, "new-version");
    join(path, dir, s->hex);
    remove_dir(dir, "new-version");
    if (mkdir(tmp, 0700) != 0)
        return err_errno(e, "cannot make %s", tmp);
    if (write_files(tmp, s, e) != 0)
        return -1;
    if (access(path, F_OK) == 0)
        remove_dir(dir, s->hex); /* it was not what it should be */
    if (rename(tmp, path) != 0)
        return err_errno(e, "cannot name %s", path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int bad = fd < 0 || fsync(fd) != 0 ? err_errno(e, "cannot sync %s", dir) : 0;
    if (fd >= 0)
        close(fd);
    return bad;
}

int versions_keep(const char *state, struct span bundle, struct err *e)
{
    char dir[VERSIONS_PATH];
    struct stored s = {.n = 0};
    int bad = versions_dir(state, dir, e);
    if (bad == 0 && mkdir(dir, 0700) != 0 && errno != EEXIST)
        bad = err_errno(e, "cannot make %s", dir);
    if (bad == 0)
        bad = stored_get(bundle, &s, e);
    if (bad == 0 && !sound(dir, &s))
        bad = store(dir, &s, e);
    stored_free(&s);
    return bad;
}

void versions_in_force(const char *state, const char *hex)
{
    char dir[VERSIONS_PATH], path[VERSIONS_PATH + 96 + 16];
    struct err e = {{0}};
    if (versions_dir(state, dir, &e) != 0)
        return;
    snprintf(path, sizeof(path), "%s/%s/" STORED_MANIFEST, dir, hex);
    if (utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) != 0)
        log_warn("version %.12s of the policy is in force, and not among those that are kept: %m", hex);
    if (versions_put_file(dir, "current", span_str(hex), &e) != 0)
        log_warn("%s", e.text);
}

void versions_last(const char *state, char hex[STORED_HEX + 1])
{
    char dir[VERSIONS_PATH], path[VERSIONS_PATH + 96];
    struct dynbuf b;
    uint8_t raw[DIGEST_BYTES];
    hex[0] = '\0';
    if (versions_dir(state, dir, NULL) != 0)
        return;
    join(path, dir, "current");
    dynbuf_init(&b, STORED_HEX);
    if (file_read(path, &b) == 0 && hex_parse(dynbuf_span(&b), raw, sizeof(raw)) == 0)
        snprintf(hex, STORED_HEX + 1, "%.*s", SPAN_FMT(dynbuf_span(&b)));
    dynbuf_free(&b);
}

struct known {
    char hex[STORED_HEX + 1];
    uint64_t used_ms;
};

static int newest_first(const void *a, const void *b)
{
    const struct known *x = a, *y = b;
    return x->used_ms != y->used_ms ? (x->used_ms < y->used_ms) - (x->used_ms > y->used_ms) : strcmp(x->hex, y->hex);
}

/* Whose manifest stands; the others are no versions. */
static size_t all(const char *dir, struct known v[KNOWN_MAX])
{
    uint8_t raw[DIGEST_BYTES];
    const struct dirent *d;
    size_t n = 0;
    DIR *at = opendir(dir);
    while (at && n < KNOWN_MAX && (d = readdir(at)) != NULL) {
        char path[VERSIONS_PATH + 96 + 300];
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s/" STORED_MANIFEST, dir, d->d_name);
        if (hex_parse(span_str(d->d_name), raw, sizeof(raw)) != 0 || lstat(path, &st) != 0)
            continue;
        snprintf(v[n].hex, sizeof(v[n].hex), "%.64s", d->d_name);
        v[n++].used_ms = (uint64_t)st.st_mtim.tv_sec * 1000 + (uint64_t)st.st_mtim.tv_nsec / 1000000;
    }
    if (at)
        closedir(at);
    qsort(v, n, sizeof(*v), newest_first);
    return n;
}

void versions_sweep(const char *state, const char *current, const char *pinned)
{
    char dir[VERSIONS_PATH];
    struct known *v = calloc(KNOWN_MAX, sizeof(*v));
    if (v && versions_dir(state, dir, NULL) == 0) {
        size_t n = all(dir, v);
        for (size_t i = VERSIONS_MAX; i < n; i++)
            if (strcmp(v[i].hex, current) != 0 && strcmp(v[i].hex, pinned) != 0)
                remove_dir(dir, v[i].hex);
        remove_dir(dir, "new-version");
    }
    free(v);
}

/* As many as fit a row; "nfiles" says how many there are. */
static void json_files(struct jsonw *w, const struct stored *s)
{
    size_t used = 0;
    jsonw_kv_u64(w, "nfiles", s->n);
    jsonw_kv_array(w, "files");
    for (size_t i = 0; i < s->n; i++) {
        used += s->v[i].name.n + 40;
        if (used > ROW_FILES_MAX)
            break;
        jsonw_object(w);
        jsonw_kv(w, "kind", span_str(stored_kind(s->v[i].kind)));
        jsonw_kv(w, "name", s->v[i].name);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void json_version(struct jsonw *w, const char *dir, const struct known *k, bool current, bool pinned)
{
    struct stored s;
    struct err e = {{0}};
    jsonw_object(w);
    jsonw_kv(w, "digest", span_str(k->hex));
    jsonw_kv_u64(w, "in_force_ms", k->used_ms);
    jsonw_kv_bool(w, "current", current);
    jsonw_kv_bool(w, "pinned", pinned);
    if (stored_open(dir, k->hex, &s, &e) == 0) {
        jsonw_kv(w, "name", span_first(s.name, 200));
        jsonw_kv_u64(w, "rules", s.rules);
        jsonw_kv_u64(w, "stored_ms", s.stored_ms);
        json_files(w, &s);
    } else {
        jsonw_kv(w, "broken", span_str(e.text));
    }
    stored_free(&s);
    jsonw_end_object(w);
}

int versions_json(const char *state, const char *current, const struct pin *pin, struct dynbuf *out)
{
    char dir[VERSIONS_PATH];
    struct jsonw w;
    struct known *v = calloc(KNOWN_MAX, sizeof(*v));
    size_t n = v && versions_dir(state, dir, NULL) == 0 ? all(dir, v) : 0;
    jsonw_begin(&w, out);
    jsonw_object(&w);
    jsonw_kv(&w, "current", span_str(current));
    if (pin->hex[0]) {
        jsonw_kv(&w, "pinned", span_str(pin->hex));
        jsonw_kv(&w, "pinned_by", span_str(pin->by));
        jsonw_kv_u64(&w, "pinned_ms", pin->since_ms);
    }
    jsonw_kv_array(&w, "versions");
    for (size_t i = 0; i < n && i < VERSIONS_MAX + 2; i++)
        json_version(&w, dir, &v[i], strcmp(v[i].hex, current) == 0, strcmp(v[i].hex, pin->hex) == 0);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    free(v);
    return dynbuf_ok(out) ? 0 : -1;
}
