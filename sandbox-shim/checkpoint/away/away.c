#include "sandbox-shim/checkpoint/away/away.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crypto/seal.h"
#include "common/file.h"
#include "common/log.h"

enum { FOLDER = 32, NAME_MAX_ = SHELF_FILE, KEY_BYTES = 32, SHELF_KEY = SHELF_NAME + FORM_MAC, TMP = 4 + ID_TEXT };

/* --- keys ------------------------------------------------------------------------------ */

/* A file of the folder that whoever comes first writes: its bytes, made at random if there is none. */
static int key_of_all(int store, uint8_t key[KEY_BYTES])
{
    struct id fresh[KEY_BYTES / ID_BYTES], own;
    char text[ID_TEXT + 1], tmp[TMP + 1];
    int rc = -1, fd = openat(store, "store-key", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT && id_new(&fresh[0]) == 0 && id_new(&fresh[1]) == 0 && id_new(&own) == 0) {
        id_text(&own, text);
        (void)snprintf(tmp, sizeof(tmp), "tmp-%s", text);
        fd = openat(store, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        bool ok = fd >= 0 && file_write_fd(fd, span_of(fresh, sizeof(fresh))) == 0 && fsync(fd) == 0 &&
                  (linkat(store, tmp, store, "store-key", 0) == 0 || errno == EEXIST);
        if (fd >= 0)
            close(fd);
        (void)unlinkat(store, tmp, 0);
        fd = ok && fsync(store) == 0 ? openat(store, "store-key", O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    }
    if (fd >= 0 && read(fd, key, KEY_BYTES) == KEY_BYTES)
        rc = 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

static struct secret *key_for(const struct away *a, const char *purpose, const char *shelf)
{
    char info[16 + SHELF_NAME];

    (void)snprintf(info, sizeof(info), "%s %s", purpose, shelf);
    return seal_key_derive(a->key, span_str(info));
}

static int folder_of(const struct away *a, const char *shelf, char folder[FOLDER + 1])
{
    struct secret *k = key_for(a, "folder", shelf);

    if (k == NULL)
        return -1;
    hex_text(span_first(secret_bytes(k), FOLDER / 2), folder);
    secret_free(&k);
    return 0;
}

int away_open(struct away *a, int store, uint64_t most, const struct away_carrier *by, struct err *e)
{
    uint8_t key[KEY_BYTES];

    *a = (struct away){.by = by, .store = store, .most = most};
    if (key_of_all(store, key) != 0)
        return err_errno(e,
                         "the key of the checkpoint store (store-key in the folder of checkpoints) cannot be read");
    a->key = secret_new(span_of(key, sizeof(key)));
    explicit_bzero(key, sizeof(key));
    return a->key != NULL ? 0 : err_set(e, "there is no memory for it");
}

void away_close(struct away *a)
{
    secret_free(&a->key);
}

/* --- parts ------------------------------------------------------------------------------ */

static int no_memory(struct err *e)
{
    return err_set(e, "there is no memory for it");
}

struct part {
    char folder[FOLDER + 1], name[NAME_MAX_ + 1];
    unsigned i, n;
};

static void part_key(const struct part *p, char key[AWAY_KEY_MAX])
{
    (void)snprintf(key, AWAY_KEY_MAX, "%s/%s.%u-%u", p->folder, p->name, p->i, p->n);
}

static int number_of(struct span s, unsigned *out)
{
    uint64_t v;
    int rc = span_u64(s, AWAY_PARTS_MAX, &v);

    *out = rc == 0 ? (unsigned)v : 0;
    return rc;
}

/* What a listing says is the store's: whatever is not exactly of this form is no part. */
static bool part_read(const char *key, struct part *p)
{
    struct span all = span_str(key), folder, name, i, n;
    size_t dot = 0;

    if (!span_cut(all, '/', &folder, &all) || folder.n != FOLDER)
        return false;
    for (size_t at = 0; at < all.n; at++)
        if (all.p[at] == '.')
            dot = at;
    name = span_first(all, dot);
    if (dot == 0 || !span_cut(span_from(all, dot + 1), '-', &i, &n) || number_of(i, &p->i) != 0 ||
        number_of(n, &p->n) != 0 || p->n == 0 || p->i >= p->n)
        return false;
    bool pack = span_ends(name, SPAN(".pack"));
    if (!span_eq(name, SPAN("key")) && !form_is_id(pack ? span_first(name, name.n - 5) : name))
        return false;
    (void)snprintf(p->folder, sizeof(p->folder), "%.*s", SPAN_FMT(folder));
    (void)snprintf(p->name, sizeof(p->name), "%.*s", SPAN_FMT(name));
    return true;
}

static int part_put(const struct away *a, const struct secret *k, const struct part *p, struct span plain,
                    uint8_t *room, struct err *e)
{
    char key[AWAY_KEY_MAX];

    part_key(p, key);
    if (seal_bytes(k, span_str(key), plain, room) != 0)
        return err_set(e, "what is kept elsewhere cannot be sealed");
    return a->by->put(a->by->arg, key, span_of(room, plain.n + SEAL_EXTRA), e);
}

/* 0 with its bytes in out; 1: there is none. */
static int part_get(const struct away *a, const struct secret *k, const struct part *p, struct dynbuf *out,
                    struct err *e)
{
    char key[AWAY_KEY_MAX];
    struct dynbuf sealed;

    part_key(p, key);
    dynbuf_init(&sealed, AWAY_PART + SEAL_EXTRA);
    int rc = a->by->get(a->by->arg, key, &sealed, e);
    size_t n = sealed.n >= SEAL_EXTRA ? sealed.n - SEAL_EXTRA : 0;
    bool fits = n < out->max - out->n; /* else it is another object's */
    uint8_t *room = rc == 0 && fits ? dynbuf_room(out, n + 1) : NULL;
    if (rc == 0 && fits && room == NULL)
        rc = no_memory(e);
    else if (rc == 0 && (!fits || seal_open(k, span_str(key), dynbuf_span(&sealed), room) != 0))
        rc = err_set(e, "what lies in the checkpoint store as %s is damaged, or of another key than store-key",
                     p->name);
    else if (rc == 0)
        dynbuf_grew(out, n);
    dynbuf_free(&sealed);
    return rc;
}

/* --- a file ------------------------------------------------------------------------------- */

static int file_up(const struct away *a, const struct shelf *s, const char *file, const char *name, struct err *e)
{
    struct part p = {.i = 0};
    struct stat st;
    uint8_t *plain = malloc(AWAY_PART), *room = malloc(AWAY_PART + SEAL_EXTRA);
    struct secret *k = key_for(a, "seal", s->name);
    int rc = -1, fd = openat(s->dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    (void)snprintf(p.name, sizeof(p.name), "%s", name);
    if (plain == NULL || room == NULL || k == NULL || folder_of(a, s->name, p.folder) != 0)
        rc = no_memory(e);
    else if (fd < 0 || fstat(fd, &st) != 0 || st.st_size > (off_t)AWAY_PART * AWAY_PARTS_MAX)
        rc = err_errno(e, "%s", name);
    else
        rc = 0;
    if (rc == 0)
        p.n = st.st_size > 0 ? (unsigned)((st.st_size + AWAY_PART - 1) / AWAY_PART) : 1;
    for (; rc == 0 && p.i < p.n; p.i++) {
        ssize_t n = pread(fd, plain, AWAY_PART, (off_t)p.i * AWAY_PART);
        rc = n >= 0 ? part_put(a, k, &p, span_of(plain, (size_t)n), room, e) : err_errno(e, "%s", name);
    }
    if (fd >= 0)
        close(fd);
    secret_free(&k);
    free(plain);
    free(room);
    return rc;
}

static int part_down(const struct away *a, const struct secret *k, const struct part *p, int fd, struct err *e)
{
    struct dynbuf plain;

    dynbuf_init(&plain, AWAY_PART + 1);
    int rc = part_get(a, k, p, &plain, e);
    if (rc == 1)
        rc = err_set(e, "what lies in the checkpoint store as %s is damaged: a part of it is missing", p->name);
    else if (rc == 0 && p->i + 1 < p->n && plain.n != AWAY_PART)
        rc = err_set(e, "what lies in the checkpoint store as %s is damaged", p->name);
    if (rc == 0 && file_write_fd(fd, dynbuf_span(&plain)) != 0)
        rc = err_errno(e, "what comes from the checkpoint store cannot be written");
    dynbuf_free(&plain);
    return rc;
}

/* It has its name when all of it is on the disk. */
static int file_down(const struct away *a, const struct shelf *s, const struct part *of, struct err *e)
{
    char tmp[4 + NAME_MAX_ + 1];
    struct part p = *of;
    struct secret *k = key_for(a, "seal", s->name);

    if ((uint64_t)p.n * AWAY_PART > a->most + AWAY_PART)
        return err_set(e, "%s in the checkpoint store is larger than what is kept for one owner", p.name);
    (void)snprintf(tmp, sizeof(tmp), "tmp-%s", p.name);
    (void)unlinkat(s->dir, tmp, 0);
    int fd = openat(s->dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd >= 0 && k != NULL ? 0 : err_errno(e, "what comes from the checkpoint store cannot be written");
    for (p.i = 0; rc == 0 && p.i < p.n; p.i++)
        rc = part_down(a, k, &p, fd, e);
    if (rc == 0 && (fsync(fd) != 0 || renameat(s->dir, tmp, s->dir, p.name) != 0 || fsync(s->dir) != 0))
        rc = err_errno(e, "what comes from the checkpoint store cannot be written");
    if (fd >= 0)
        close(fd);
    if (rc != 0)
        (void)unlinkat(s->dir, tmp, 0);
    secret_free(&k);
    return rc;
}

/* --- what there is ---------------------------------------------------------------------- */

struct listing {
    struct dynbuf names; /* each with its NUL */
};

static int list_one(void *arg, const char *key)
{
    struct listing *l = arg;

    return dynbuf_add(&l->names, span_of(key, strlen(key) + 1)) == 0 ? 0 : -1;
}

static int list_all(const struct away *a, const char *begins, struct listing *l, struct err *e)
{
    dynbuf_init(&l->names, AWAY_LISTED_MAX);
    return a->by->list(a->by->arg, begins, list_one, l, e);
}

/* The next part in a listing. */
static bool list_next(struct span *rest, struct part *p)
{
    while (rest->n > 0) {
        const char *key = (const char *)rest->p;
        *rest = span_from(*rest, strlen(key) + 1);
        if (part_read(key, p))
            return true;
    }
    return false;
}

static int list_of(const struct away *a, const struct shelf *s, struct listing *l, struct err *e)
{
    char begins[FOLDER + 2];

    dynbuf_init(&l->names, AWAY_LISTED_MAX);
    if (folder_of(a, s->name, begins) != 0)
        return no_memory(e);
    (void)strcat(begins, "/");
    return list_all(a, begins, l, e);
}

/* --- a shelf's key --------------------------------------------------------------------- */

/* The name and the key of the shelf that has this folder there. 1: it has none. */
static int shelf_there(const struct away *a, const char *folder, char shelf[SHELF_NAME + 1], uint8_t key[FORM_MAC],
                       struct err *e)
{
    struct part p = {.name = "key", .n = 1};
    struct secret *k = key_for(a, "shelves", "");
    char is[FOLDER + 1];
    struct dynbuf plain;

    dynbuf_init(&plain, SHELF_KEY + 1);
    (void)snprintf(p.folder, sizeof(p.folder), "%s", folder);
    int rc = k != NULL ? part_get(a, k, &p, &plain, e) : no_memory(e);
    if (rc == 0 && plain.n == SHELF_KEY) {
        (void)snprintf(shelf, SHELF_NAME + 1, "%.*s", SHELF_NAME, (const char *)plain.p);
        memcpy(key, plain.p + SHELF_NAME, FORM_MAC);
    }
    if (rc == 0 &&
        (plain.n != SHELF_KEY || strlen(shelf) != SHELF_NAME || span_find(span_str(shelf), SPAN("/")) != SHELF_NAME ||
         folder_of(a, shelf, is) != 0 || strcmp(is, folder) != 0))
        rc = err_set(e, "a key in the checkpoint store is damaged");
    dynbuf_wipe(&plain);
    secret_free(&k);
    return rc;
}

static int key_here(const struct shelf *s, uint8_t key[FORM_MAC])
{
    int fd = openat(s->dir, "key", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd >= 0 && read(fd, key, FORM_MAC) == FORM_MAC ? 0 : -1;

    if (fd >= 0)
        close(fd);
    return rc;
}

static int key_up(const struct away *a, const struct shelf *s, struct err *e)
{
    struct part p = {.name = "key", .n = 1};
    uint8_t plain[SHELF_KEY], there[FORM_MAC], room[SHELF_KEY + SEAL_EXTRA];
    char shelf[SHELF_NAME + 1];
    struct secret *k = key_for(a, "shelves", "");

    memcpy(plain, s->name, SHELF_NAME);
    if (k == NULL || folder_of(a, s->name, p.folder) != 0 || key_here(s, plain + SHELF_NAME) != 0) {
        secret_free(&k);
        return err_errno(e, "the key of the checkpoints cannot be read");
    }
    int rc = shelf_there(a, p.folder, shelf, there, e);
    if (rc == 1)
        rc = part_put(a, k, &p, span_of(plain, sizeof(plain)), room, e);
    else if (rc == 0 && memcmp(there, plain + SHELF_NAME, FORM_MAC) != 0)
        rc = err_set(e, "the checkpoint store has checkpoints of this owner by another key: one gateway at a time "
                        "may keep its checkpoints there");
    explicit_bzero(plain, sizeof(plain));
    secret_free(&k);
    return rc;
}

static int shelf_make(const struct away *a, const char *shelf, const uint8_t key[FORM_MAC], struct err *e)
{
    int rc = -1, fd = -1, dir = -1;

    if (mkdirat(a->store, shelf, 0700) == 0 || errno == EEXIST)
        dir = openat(a->store, shelf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0)
        fd = openat(dir, "tmp-key", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && file_write_fd(fd, span_of(key, FORM_MAC)) == 0 && fsync(fd) == 0 &&
        (linkat(dir, "tmp-key", dir, "key", 0) == 0 || errno == EEXIST) && fsync(dir) == 0 && fsync(a->store) == 0)
        rc = 0;
    if (fd >= 0)
        close(fd);
    if (dir >= 0) {
        (void)unlinkat(dir, "tmp-key", 0);
        close(dir);
    }
    return rc == 0 ? 0 : err_errno(e, "the folder of checkpoints cannot be written");
}

static bool is_here(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int away_shelf(const struct away *a, const char *shelf, struct err *e)
{
    char folder[FOLDER + 1], name[SHELF_NAME + 1];
    uint8_t key[FORM_MAC];

    if (is_here(a->store, shelf))
        return 0;
    if (folder_of(a, shelf, folder) != 0)
        return no_memory(e);
    int rc = shelf_there(a, folder, name, key, e);
    if (rc == 0)
        rc = shelf_make(a, shelf, key, e);
    explicit_bzero(key, sizeof(key));
    return rc < 0 ? -1 : 0;
}

/* --- up ----------------------------------------------------------------------------------- */

static int mark(const struct shelf *s, const char *name)
{
    int fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return -1;
    close(fd);
    return fsync(s->dir);
}

struct lifting {
    const struct away *a;
    const struct shelf *s;
    struct err *e;
};

static int pack_up(void *arg, const char *name)
{
    const struct lifting *l = arg;
    char up[3 + NAME_MAX_ + 1];

    (void)snprintf(up, sizeof(up), "up-%s", name);
    if (strlen(name) != SHELF_FILE || is_here(l->s->dir, up))
        return 0;
    if (file_up(l->a, l->s, name, name, l->e) != 0)
        return -1;
    return mark(l->s, up) == 0 ? 0 : err_errno(l->e, "the folder of checkpoints cannot be written");
}

int away_packs_up(const struct away *a, const struct shelf *s, struct err *e)
{
    struct lifting l = {a, s, e};

    if (!is_here(s->dir, "up-key") && (key_up(a, s, e) != 0 || mark(s, "up-key") != 0))
        return -1;
    return shelf_each(s->dir, "ck-", ".pack", pack_up, &l) == 0 ? 0 : -1;
}

int away_up(const struct away *a, const struct shelf *s, const char *file, const char *name, struct err *e)
{
    return file_up(a, s, file, name, e);
}

/* --- down --------------------------------------------------------------------------------- */

static int pack_down(const struct away *a, const struct shelf *s, const struct part *p, struct err *e)
{
    char up[3 + NAME_MAX_ + 1];

    if (file_down(a, s, p, e) != 0)
        return -1;
    (void)snprintf(up, sizeof(up), "up-%s", p->name);
    return mark(s, up) == 0 ? 0 : err_errno(e, "the folder of checkpoints cannot be written");
}

int away_packs_down(const struct away *a, const struct shelf *s, struct err *e)
{
    struct listing l;
    struct part p;
    int bad = 0, rc = list_of(a, s, &l, e);

    struct span rest = dynbuf_span(&l.names);
    while (rc == 0 && list_next(&rest, &p))
        if (p.i == 0 && span_ends(span_str(p.name), SPAN(".pack")) && !is_here(s->dir, p.name) &&
            pack_down(a, s, &p, e) != 0)
            bad = -1;
    dynbuf_free(&l.names);
    return rc == 0 ? bad : -1;
}

/* Which shelf has this folder; names come sorted, so that one is asked for once. */
struct looking {
    char folder[FOLDER + 1], shelf[SHELF_NAME + 1];
};

static int look_shelf(const struct away *a, const char *folder, struct looking *l, struct err *e)
{
    uint8_t key[FORM_MAC];
    int rc;

    if (strcmp(l->folder, folder) == 0)
        return 0;
    l->folder[0] = '\0';
    if ((rc = shelf_there(a, folder, l->shelf, key, e)) == 1)
        return err_set(e, "a key in the checkpoint store is missing");
    if (rc == 0 && !is_here(a->store, l->shelf))
        rc = shelf_make(a, l->shelf, key, e);
    explicit_bzero(key, sizeof(key));
    if (rc == 0)
        (void)snprintf(l->folder, sizeof(l->folder), "%s", folder);
    return rc;
}

/* One that a listing told of. 1: it is here already. */
static int look_one(const struct away *a, const struct part *p, struct looking *l, struct err *e)
{
    struct shelf s;

    if (look_shelf(a, p->folder, l, e) != 0)
        return -1;
    int rc = shelf_open(a->store, l->shelf, false, &s, e);
    if (rc == 0 && is_here(s.dir, p->name))
        rc = 1;
    if (rc == 0 && (rc = shelf_share(&s)) == 0)
        rc = file_down(a, &s, p, e);
    shelf_close(&s);
    return rc;
}

int away_look(const struct away *a, struct span which, struct err *e)
{
    struct listing l;
    struct part p;
    struct err why = {""};
    struct looking at = {.folder = ""};
    int rc = list_all(a, "", &l, e);

    struct span rest = dynbuf_span(&l.names);
    while (rc == 0 && list_next(&rest, &p)) {
        if (p.i != 0 || !form_is_id(span_str(p.name)) || look_one(a, &p, &at, &why) >= 0)
            continue;
        if (span_eq(span_str(p.name), which))
            rc = err_set(e, "%s", why.text);
        else
            log_warn("checkpoints: %s", why.text);
    }
    dynbuf_free(&l.names);
    return rc;
}

/* --- ends ---------------------------------------------------------------------------------- */

int away_drop(const struct away *a, const struct shelf *s, const char *name, struct err *e)
{
    char key[AWAY_KEY_MAX];
    struct listing l;
    struct part p;
    int rc = list_of(a, s, &l, e);

    struct span rest = dynbuf_span(&l.names);
    while (rc == 0 && list_next(&rest, &p))
        if (strcmp(p.name, name) == 0) {
            part_key(&p, key);
            rc = a->by->remove(a->by->arg, key, e);
        }
    dynbuf_free(&l.names);
    return rc;
}

static int pack_gone(void *arg, const char *up)
{
    const struct lifting *l = arg;

    if (is_here(l->s->dir, up + 3))
        return 0;
    if (away_drop(l->a, l->s, up + 3, l->e) != 0)
        return -1;
    return unlinkat(l->s->dir, up, 0) == 0 ? 0 : err_errno(l->e, "the folder of checkpoints cannot be written");
}

int away_tidy(const struct away *a, const struct shelf *s, struct err *e)
{
    struct lifting l = {a, s, e};

    if (away_packs_up(a, s, e) != 0)
        return -1;
    return shelf_each(s->dir, "up-", ".pack", pack_gone, &l) == 0 ? 0 : -1;
}
