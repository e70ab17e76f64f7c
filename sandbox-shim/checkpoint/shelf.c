#include "sandbox-shim/checkpoint/shelf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include "sandbox-shim/checkpoint/away/away.h"

void shelf_of(struct span tenant, struct span owner, char name[SHELF_NAME + 1])
{
    struct digest_ctx *c = digest_begin();
    struct digest d;

    if (c == NULL)
        log_die("out of memory");
    digest_add_field(c, tenant);
    digest_add_field(c, owner);
    digest_end(c, &d);
    hex_text(span_of(d.b, SHELF_NAME / 2), name);
}

/* --- its key ------------------------------------------------------------------------- */

static EVP_MAC_CTX *mac_new(const uint8_t key[FORM_MAC])
{
    char sha[] = "SHA256";
    const OSSL_PARAM how[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha, 0),
                              OSSL_PARAM_construct_end()};
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *c = hmac != NULL ? EVP_MAC_CTX_new(hmac) : NULL;

    EVP_MAC_free(hmac);
    if (c != NULL && EVP_MAC_init(c, key, FORM_MAC, how) != 1) {
        EVP_MAC_CTX_free(c);
        c = NULL;
    }
    return c;
}

void shelf_mac(const struct shelf *s, char purpose, struct span a, struct span b, uint8_t out[FORM_MAC])
{
    const uint8_t first = (uint8_t)purpose;
    size_t n = 0;

    if (EVP_MAC_init(s->mac, NULL, 0, NULL) != 1 || EVP_MAC_update(s->mac, &first, 1) != 1 ||
        EVP_MAC_update(s->mac, a.p, a.n) != 1 || EVP_MAC_update(s->mac, b.p, b.n) != 1 ||
        EVP_MAC_final(s->mac, out, &n, FORM_MAC) != 1 || n != FORM_MAC)
        log_die("HMAC-SHA256 cannot be had");
}

/* A name of its own each: two that begin at once have one key in the end, whose name was there first. */
static int key_make(int dir)
{
    struct id key[FORM_MAC / ID_BYTES], own;
    char text[ID_TEXT + 1], tmp[4 + ID_TEXT + 1];

    if (id_new(&key[0]) != 0 || id_new(&key[1]) != 0 || id_new(&own) != 0)
        return -1;
    id_text(&own, text);
    (void)snprintf(tmp, sizeof(tmp), "tmp-%s", text);
    int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd >= 0 && file_write_fd(fd, span_of(key, sizeof(key))) == 0 && fsync(fd) == 0 ? 0 : -1;
    if (fd >= 0)
        close(fd);
    if (rc == 0 && linkat(dir, tmp, dir, "key", 0) != 0 && errno != EEXIST && errno != ENOENT)
        rc = -1; /* ENOENT: who has the key already took ours for half written */
    (void)unlinkat(dir, tmp, 0);
    return rc == 0 ? fsync(dir) : -1;
}

static int key_read(struct shelf *s, bool make)
{
    struct dynbuf key;
    int rc = -1, fd = openat(s->dir, "key", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT && make && key_make(s->dir) == 0)
        fd = openat(s->dir, "key", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    dynbuf_init(&key, FORM_MAC);
    if (fd >= 0 && file_read_fd(fd, &key) == 0 && key.n == FORM_MAC && (s->mac = mac_new(key.p)) != NULL)
        rc = 0;
    if (fd >= 0)
        close(fd);
    dynbuf_wipe(&key);
    return rc;
}

/* --- the folder ---------------------------------------------------------------------- */

static int is_one(void *arg, const char *name)
{
    return -1;
}

/* Who makes it comes to its key only then. One that has lost its key has more than a lock. */
static bool is_being_made(const struct shelf *s)
{
    return faccessat(s->dir, "key", F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT &&
           faccessat(s->dir, "up-key", F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
           shelf_each(s->dir, "ck-", "", is_one, NULL) == 0 && shelf_each(s->dir, "gone-", "", is_one, NULL) == 0;
}

int shelf_lock_at(int dir)
{
    return openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int shelf_open(int store, const char *name, bool make, struct shelf *s, struct err *e)
{
    *s = (struct shelf){.dir = -1, .lock = -1};
    (void)snprintf(s->name, sizeof(s->name), "%s", name);
    if (make && mkdirat(store, name, 0700) == 0 && fsync(store) != 0)
        return err_errno(e, "the folder of checkpoints cannot be written");
    s->dir = openat(store, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->dir < 0)
        return errno == ENOENT && !make ? 1 : err_errno(e, "the folder of checkpoints cannot be opened");
    if (!make && is_being_made(s))
        return 1;
    s->lock = shelf_lock_at(s->dir);
    if (s->lock < 0 || key_read(s, make) != 0)
        return err_errno(e, "the key of the checkpoints cannot be read");
    return 0;
}

void shelf_close(struct shelf *s)
{
    EVP_MAC_CTX_free(s->mac);
    if (s->dir >= 0)
        close(s->dir);
    if (s->lock >= 0)
        close(s->lock);
    *s = (struct shelf){.dir = -1, .lock = -1};
}

bool shelf_alone(const struct shelf *s)
{
    return flock(s->lock, LOCK_EX | LOCK_NB) == 0;
}

int shelf_share(const struct shelf *s)
{
    int rc;

    do
        rc = flock(s->lock, LOCK_SH);
    while (rc != 0 && errno == EINTR);
    return rc;
}

int shelf_names_lock(int store)
{
    int rc = 0, fd = shelf_lock_at(store);

    if (fd < 0)
        return -1;
    do
        rc = flock(fd, LOCK_EX);
    while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return fd;
    close(fd);
    return -1;
}

int shelf_each(int dir, const char *begins, const char *ends, shelf_each_fn *fn, void *arg)
{
    int rc = 0, fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    while (rc >= 0 && (entry = readdir(d)) != NULL)
        if (entry->d_name[0] != '.' && span_starts(span_str(entry->d_name), span_str(begins)) &&
            span_ends(span_str(entry->d_name), span_str(ends)))
            rc = fn(arg, entry->d_name);
    closedir(d);
    return rc < 0 ? rc : 0;
}

struct sum {
    int dir;
    uint64_t bytes;
};

static int add_size(void *arg, const char *name)
{
    struct sum *s = arg;
    struct stat st;

    if (fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        s->bytes += (uint64_t)st.st_size;
    return 0;
}

uint64_t shelf_bytes(const struct shelf *s)
{
    struct sum all = {s->dir, 0};

    return shelf_each(s->dir, "ck-", "", add_size, &all) == 0 ? all.bytes : UINT64_MAX;
}

struct kept {
    size_t n;
};

static int add_one(void *arg, const char *name)
{
    struct kept *k = arg;

    k->n += form_is_id(span_str(name));
    return 0;
}

size_t shelf_kept(const struct shelf *s)
{
    struct kept all = {0};

    return shelf_each(s->dir, "ck-", "", add_one, &all) == 0 ? all.n : SIZE_MAX;
}

/* --- what is on it -------------------------------------------------------------------- */

static bool mac_is(const struct shelf *s, char purpose, struct span a, struct span b, struct span said)
{
    uint8_t mac[FORM_MAC];

    shelf_mac(s, purpose, a, b, mac);
    return span_eq_consttime(span_of(mac, FORM_MAC), said);
}

static int damaged(const char *id, struct err *e)
{
    return err_set(e, "the checkpoint %s is damaged: its list is not what was written", id);
}

int shelf_read(const struct shelf *s, const char *id, struct dynbuf *b, struct form_file *f, struct err *e)
{
    int fd = openat(s->dir, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 1 : err_errno(e, "%s", id);
    int rc = file_read_fd(fd, b);
    close(fd);
    if (rc != 0)
        return err_errno(e, "%s", id);
    struct form_head h;
    bool ok = form_split(dynbuf_span(b), f) == 0 && mac_is(s, 'h', f->head, SPAN_NONE, f->head_mac) &&
              mac_is(s, 'r', f->head, f->rows, f->rows_mac);
    return ok && form_get_kept(f->head, &h) == 0 && span_eq(h.id, span_str(id)) ? 0 : damaged(id, e);
}

int shelf_head(const struct shelf *s, const char *id, struct dynbuf *b, struct form_head *h, struct err *e)
{
    enum { MOST = FORM_MAGIC + 4 + FORM_HEAD_MAX + FORM_MAC };
    int fd = openat(s->dir, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    uint8_t *at = dynbuf_room(b, MOST);
    ssize_t n = fd >= 0 && at != NULL ? pread(fd, at, MOST, 0) : -1;

    if (fd >= 0)
        close(fd);
    if (n < 0)
        return errno == ENOENT ? 1 : err_errno(e, "%s", id);
    struct span all = span_of(at, (size_t)n);
    dynbuf_grew(b, (size_t)n);
    struct msg_in m = msg_in(span_from(all, FORM_MAGIC));
    struct span head = msg_get_span(&m, FORM_HEAD_MAX), mac = span_first(m.rest, FORM_MAC);
    bool ok =
        span_starts(all, FORM_CHECKPOINT) && !m.bad && mac.n == FORM_MAC && mac_is(s, 'h', head, SPAN_NONE, mac);
    return ok && form_get_kept(head, h) == 0 && span_eq(h->id, span_str(id)) ? 0 : damaged(id, e);
}

/* --- one of all ------------------------------------------------------------------------- */

struct find {
    int store;
    struct span tenant, which;
    struct shelf *shelf;
    char *id;
};
enum { FOUND = -2 };

/* By its name, on the shelf that is open. What is damaged has none. */
static int look_name(void *arg, const char *name)
{
    struct find *f = arg;
    struct form_head h;
    struct dynbuf b;
    struct err e;
    int rc = 0;

    if (!form_is_id(span_str(name)) || away_is_gone(f->shelf, name))
        return 0;
    dynbuf_init(&b, 2 * FORM_HEAD_MAX);
    if (shelf_head(f->shelf, name, &b, &h, &e) == 0 && span_eq(h.tenant, f->tenant) && span_eq(h.name, f->which)) {
        (void)snprintf(f->id, FORM_ID + 1, "%s", name);
        rc = FOUND;
    }
    dynbuf_free(&b);
    return rc;
}

/* By its id. Whose a damaged one is, nobody can tell any more: the operator alone finds it, who can remove it so. Of
 * another tenant there is none. */
static int look_id(struct find *f)
{
    struct form_head h;
    struct dynbuf b;
    struct err e;

    (void)snprintf(f->id, FORM_ID + 1, "%.*s", SPAN_FMT(f->which));
    dynbuf_init(&b, 2 * FORM_HEAD_MAX);
    int rc = shelf_head(f->shelf, f->id, &b, &h, &e);
    if (away_is_gone(f->shelf, f->id))
        rc = 1;
    bool is = rc < 0 ? span_eq(f->tenant, SHELF_OPERATORS) : rc == 0 && span_eq(h.tenant, f->tenant);
    dynbuf_free(&b);
    return is ? FOUND : 0;
}

static int look_shelf(void *arg, const char *name)
{
    struct find *f = arg;
    struct err e;
    int rc = shelf_open(f->store, name, false, f->shelf, &e);

    if (rc == 0)
        rc = form_is_id(f->which) ? look_id(f) : shelf_each(f->shelf->dir, "ck-", "", look_name, f);
    if (rc != FOUND)
        shelf_close(f->shelf);
    return rc == FOUND ? FOUND : 0; /* a shelf that cannot be read has none */
}

int shelf_find(int store, struct span tenant, struct span which, struct shelf *s, char id[FORM_ID + 1], struct err *e)
{
    struct find f = {store, tenant, which, s, id};

    *s = (struct shelf){.dir = -1, .lock = -1};
    if (!form_is_id(which) && !form_is_name(which))
        return 1;
    int rc = shelf_each(store, "", "", look_shelf, &f);
    if (rc == FOUND)
        return 0;
    return rc == 0 ? 1 : err_errno(e, "the folder of checkpoints cannot be read");
}
