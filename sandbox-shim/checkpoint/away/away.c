#include "sandbox-shim/checkpoint/away/away.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crypto/aead.h"
#include "common/file.h"
#include "common/log.h"
#include "sandbox-shim/checkpoint/away/away_in.h"

enum { SHELF_KEY = SHELF_NAME + FORM_MAC, BAD_SAID = 5 };

/* --- keys ------------------------------------------------------------------------------ */

/* A file that has its name with all of its bytes, unless another one has it already. */
static int key_write(int dir, const char *name, struct span bytes)
{
    char tmp[AWAY_TMP + 1];
    int rc = -1, fd = tmp_name(tmp) == 0 ? openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;

    if (fd < 0)
        return -1;
    if (file_write_fd(fd, bytes) == 0 && fsync(fd) == 0 && (linkat(dir, tmp, dir, name, 0) == 0 || errno == EEXIST))
        rc = fsync(dir);
    close(fd);
    (void)unlinkat(dir, tmp, 0);
    return rc;
}

static int key_read(int dir, const char *name, uint8_t key[AWAY_KEY])
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd >= 0 && read(fd, key, AWAY_KEY) == AWAY_KEY ? 0 : -1;

    if (fd >= 0)
        close(fd);
    return rc;
}

/* Made at random if there is none. */
static int key_of_all(int store, uint8_t key[AWAY_KEY])
{
    struct id fresh[AWAY_KEY / ID_BYTES];

    if (!is_here(store, "store-key") && (id_new(&fresh[0]) != 0 || id_new(&fresh[1]) != 0 ||
                                         key_write(store, "store-key", span_of(fresh, sizeof(fresh))) != 0))
        return -1;
    return key_read(store, "store-key", key);
}

int away_open(struct away *a, int store, uint64_t most, const struct away_carrier *by, struct err *e)
{
    struct digest d;

    *a = (struct away){.by = by, .store = store, .most = most, .part = AWAY_PART};
    if (key_of_all(store, a->key) != 0)
        return err_errno(e,
                         "the key of the checkpoint store (store-key in the folder of checkpoints) cannot be read");
    digest_of(span_str(by->place), &d);
    return folder_of(a, "place", span_of(d.b, sizeof(d.b)), a->place, e);
}

void away_close(struct away *a)
{
    explicit_bzero(a->key, sizeof(a->key));
}

/* --- a shelf's key --------------------------------------------------------------------- */

/* The name and the key of the shelf that has this folder there. 1: it has none. */
static int shelf_there(const struct away *a, const struct part *of, char shelf[SHELF_NAME + 1], uint8_t key[FORM_MAC],
                       struct err *e)
{
    struct part p = {.name = "key", .n = 1};
    char is[AWAY_FOLDER + 1] = "";
    uint8_t k[AWAY_KEY];
    struct dynbuf plain;

    dynbuf_init(&plain, SHELF_KEY + 1);
    memcpy(p.tenant, of->tenant, sizeof(p.tenant));
    memcpy(p.folder, of->folder, sizeof(p.folder));
    int rc = key_for(a, "shelves", SPAN_NONE, k) == 0 ? part_get(a, k, &p, &plain, e)
                                                      : err_set(e, "there is no memory for it");
    if (rc == 0 && plain.n == SHELF_KEY) {
        (void)snprintf(shelf, SHELF_NAME + 1, "%.*s", SHELF_NAME, (const char *)plain.p);
        memcpy(key, plain.p + SHELF_NAME, FORM_MAC);
        rc = folder_of(a, "folder", span_str(shelf), is, e);
    }
    if (rc == 0 && (plain.n != SHELF_KEY || strlen(shelf) != SHELF_NAME || strchr(shelf, '/') != NULL ||
                    strcmp(is, of->folder) != 0))
        rc = err_set(e, "a key in the checkpoint store is damaged");
    dynbuf_wipe(&plain);
    explicit_bzero(k, sizeof(k));
    return rc;
}

static int another_key(struct err *e)
{
    return err_set(e, "the checkpoint store has checkpoints of this owner by another key: one gateway at a time may "
                      "keep its checkpoints there");
}

static int key_up(const struct away *a, const struct shelf *s, struct err *e)
{
    struct part p;
    uint8_t plain[SHELF_KEY], there[FORM_MAC], k[AWAY_KEY], room[SHELF_KEY + AEAD_EXTRA];
    char shelf[SHELF_NAME + 1];
    int rc = -1;

    memcpy(plain, s->name, SHELF_NAME);
    if (key_for(a, "shelves", SPAN_NONE, k) != 0 || key_read(s->dir, "key", plain + SHELF_NAME) != 0)
        (void)err_errno(e, "the key of the checkpoints cannot be read");
    else if (part_of(a, s, "key", &p, e) == 0)
        rc = shelf_there(a, &p, shelf, there, e);
    if (rc == 1)
        rc = part_put(a, k, &p, span_of(plain, sizeof(plain)), room, e);
    else if (rc == 0 && memcmp(there, plain + SHELF_NAME, FORM_MAC) != 0)
        rc = another_key(e);
    explicit_bzero(plain, sizeof(plain));
    explicit_bzero(there, sizeof(there));
    explicit_bzero(k, sizeof(k));
    return rc;
}

/* The mark of a shelf's key says below which tenant's folder of which store it is. */
static void key_mark(const struct away *a, const char *tenant, char text[KEY_MARK + 1])
{
    (void)snprintf(text, KEY_MARK + 1, "%s%s", tenant, a->place);
}

static bool key_is_up(const struct away *a, int dir, const char *path, const char *tenant)
{
    char is[KEY_MARK + 1], said[KEY_MARK + 1] = "";
    int fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    key_mark(a, tenant, is);
    bool up = fd >= 0 && read(fd, said, sizeof(said)) == KEY_MARK && memcmp(said, is, KEY_MARK) == 0;
    if (fd >= 0)
        close(fd);
    return up;
}

static int key_mark_put(const struct away *a, int dir, const char *tenant)
{
    char text[KEY_MARK + 1];

    key_mark(a, tenant, text);
    return mark(dir, "up", "key", span_str(text));
}

static bool shelf_is_up(const struct away *a, const char *shelf, const char *tenant)
{
    char path[SHELF_NAME + sizeof("/up-key")];

    (void)snprintf(path, sizeof(path), "%s/up-key", shelf);
    return key_is_up(a, a->store, path, tenant);
}

static bool shelf_has(const struct away *a, const char *shelf, const char *name)
{
    char path[SHELF_NAME + sizeof("/up-key")];

    (void)snprintf(path, sizeof(path), "%s/%s", shelf, name);
    return is_here(a->store, path);
}

/* there: it is the key that it has there, below this tenant's folder, which needs not go there any more, unless
 * another one came here meanwhile. Its lock is had: who else makes it, and is quicker, would take what is half
 * written here for what somebody left. */
static int shelf_make(const struct away *a, const char *shelf, const uint8_t key[FORM_MAC], const char *there,
                      struct err *e)
{
    uint8_t is[FORM_MAC];
    int rc = -1, dir = -1, lock = -1;

    if (mkdirat(a->store, shelf, 0700) == 0 || errno == EEXIST)
        dir = openat(a->store, shelf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0)
        lock = shelf_lock_at(dir);
    if (lock >= 0 && flock(lock, LOCK_SH) == 0 && key_write(dir, "key", span_of(key, FORM_MAC)) == 0 &&
        key_read(dir, "key", is) == 0 &&
        (there == NULL || memcmp(is, key, FORM_MAC) != 0 || key_mark_put(a, dir, there) == 0))
        rc = fsync(a->store);
    if (rc != 0)
        (void)unwritten(e);
    if (lock >= 0)
        close(lock);
    if (dir >= 0)
        close(dir);
    explicit_bzero(is, sizeof(is));
    return rc;
}

int away_place(const struct away *a, struct shelf *s, struct span tenant, struct err *e)
{
    return folder_of(a, "tenant", tenant, s->there, e);
}

int away_shelf(const struct away *a, struct span tenant, const char *shelf, bool ask, struct err *e)
{
    char name[SHELF_NAME + 1];
    uint8_t key[FORM_MAC];
    struct part p;

    if (shelf_has(a, shelf, "key"))
        return 0;
    if (folder_of(a, "tenant", tenant, p.tenant, e) != 0 || folder_of(a, "folder", span_str(shelf), p.folder, e) != 0)
        return -1;
    int rc = ask ? shelf_there(a, &p, name, key, e) : 1;
    bool there = rc == 0;
    if (rc == 1)
        rc = key_for(a, "shelf", span_str(shelf), key) == 0 ? 0 : err_set(e, "there is no memory for it");
    if (rc == 0)
        rc = shelf_make(a, shelf, key, there ? p.tenant : NULL, e);
    explicit_bzero(key, sizeof(key));
    return rc;
}

/* --- up ----------------------------------------------------------------------------------- */

/* How many parts of each pack, and whether the shelf's key, a list of what is there has. The parts of one come one
 * behind another. */
static bool parts_there(const struct pieces *all, struct span rest, const unsigned n[PACKS_MAX],
                        unsigned there[PACKS_MAX])
{
    bool key = false;
    struct part p;

    for (size_t at = 0; list_next(&rest, &p);) {
        key = key || strcmp(p.name, "key") == 0;
        if (at >= all->npacks || strcmp(all->pack[at], p.name) != 0)
            for (at = 0; at < all->npacks && strcmp(all->pack[at], p.name) != 0; at++)
                ;
        if (at < all->npacks)
            there[at] += p.n == n[at];
    }
    return key;
}

/* Of what is wanted. */
static int parts_here(const struct away *a, const struct shelf *s, const struct pieces *all, unsigned n[PACKS_MAX],
                      struct err *e)
{
    bool wanted[PACKS_MAX] = {false};
    struct stat st;

    packs_wanted(all, wanted);
    for (size_t i = 0; i < all->npacks; i++) {
        if (!wanted[i])
            continue;
        if (fstatat(s->dir, all->pack[i], &st, AT_SYMLINK_NOFOLLOW) != 0)
            return err_errno(e, "a pack of checkpoints cannot be read");
        n[i] = parts_in(a, st.st_size);
    }
    return 0;
}

int packs_up(const struct away *a, const struct shelf *s, const struct pieces *all, struct span list, struct err *e)
{
    unsigned n[PACKS_MAX] = {0}, there[PACKS_MAX] = {0}; /* n: 0 of what is not wanted */

    if (parts_here(a, s, all, n, e) != 0)
        return -1;
    bool key = parts_there(all, list, n, there);
    if (!key || !key_is_up(a, s->dir, "up-key", s->there)) {
        if (key_up(a, s, e) != 0)
            return -1;
        if (key_mark_put(a, s->dir, s->there) != 0)
            return unwritten(e);
    }
    for (size_t i = 0; i < all->npacks; i++) {
        if (n[i] > 0 && there[i] < n[i] && file_up(a, s, all->pack[i], all->pack[i], e) != 0)
            return -1;
        if (n[i] > 0 && unmark(s, "gone", all->pack[i]) != 0)
            return unwritten(e);
    }
    return 0;
}

int away_packs_up(const struct away *a, const struct shelf *s, const struct pieces *all, struct err *e)
{
    struct listing l;
    int rc = list_of(a, s, &l, e);

    if (rc == 0)
        rc = packs_up(a, s, all, dynbuf_span(&l.names), e);
    dynbuf_free(&l.names);
    return rc;
}

int away_up(const struct away *a, const struct shelf *s, const char *file, const char *name, struct err *e)
{
    return file_up(a, s, file, name, e);
}

/* --- down --------------------------------------------------------------------------------- */

static int pack_down(const struct away *a, const struct shelf *s, const struct part *p, struct err *e)
{
    if (shelf_bytes(s) > a->most)
        return err_set(e, "the checkpoint store has more of one owner than what is kept");
    int rc = file_down(a, s, p, e);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    return unmark(s, "gone", p->name) == 0 ? 0 : unwritten(e);
}

static int packs_down(const struct away *a, const struct shelf *s, struct err *e)
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

int away_packs_down(const struct away *a, const struct shelf *s, struct err *e)
{
    int held = away_hold(s);

    if (held < 0)
        return unwritten(e);
    int rc = packs_down(a, s, e);
    close(held);
    return rc;
}

/* Which shelf has this folder; names come sorted, so that one is asked for once. */
struct looking {
    char folder[AWAY_FOLDER + 1], shelf[SHELF_NAME + 1];
    int rc;       /* of that */
    unsigned bad; /* which could not be had */
};

struct known {
    const struct away *a;
    const struct part *p;
    char *shelf;
};

static int known_one(void *arg, const char *name)
{
    const struct known *k = arg;
    char folder[AWAY_FOLDER + 1];
    struct err e;

    if (strlen(name) != SHELF_NAME || folder_of(k->a, "folder", span_str(name), folder, &e) != 0 ||
        strcmp(folder, k->p->folder) != 0)
        return 0;
    memcpy(k->shelf, name, SHELF_NAME + 1);
    return shelf_is_up(k->a, name, k->p->tenant) ? -2 : 0;
}

/* Its shelf is here, with the key that it has there: that needs not be asked for. */
static bool is_known(const struct away *a, const struct part *p, char shelf[SHELF_NAME + 1])
{
    struct known k = {a, p, shelf};

    return shelf_each(a->store, "", "", known_one, &k) == -2;
}

static int look_shelf(const struct away *a, const struct part *p, struct looking *l, struct err *e)
{
    uint8_t key[FORM_MAC];

    if (strcmp(l->folder, p->folder) == 0)
        return l->rc == 0 ? 0 : err_set(e, "a key in the checkpoint store is damaged");
    (void)snprintf(l->folder, sizeof(l->folder), "%s", p->folder);
    if (is_known(a, p, l->shelf))
        return l->rc = 0;
    l->rc = shelf_there(a, p, l->shelf, key, e);
    if (l->rc == 1)
        l->rc = err_set(e, "a key in the checkpoint store is missing");
    if (l->rc == 0 && !shelf_is_up(a, l->shelf, p->tenant)) { /* without it nothing that is removed has a mark */
        l->rc = shelf_make(a, l->shelf, key, p->tenant, e);
        if (l->rc == 0 && !shelf_is_up(a, l->shelf, p->tenant))
            l->rc = another_key(e);
    }
    explicit_bzero(key, sizeof(key));
    return l->rc;
}

/* One that a listing told of. 1: it is here already, or was removed here. */
static int look_one(const struct away *a, const struct part *p, struct looking *l, struct err *e)
{
    struct shelf s;

    if (look_shelf(a, p, l, e) != 0)
        return -1;
    int rc = shelf_open(a->store, l->shelf, false, &s, e);
    if (rc == 0 && (rc = is_here(s.dir, p->name) ? 1 : is_dead(&s, p->name)) < 0)
        (void)err_errno(e, "what was removed of checkpoints cannot be read");
    if (rc == 0 && shelf_share(&s) != 0)
        rc = err_errno(e, "the folder of checkpoints cannot be locked");
    if (rc == 0 && shelf_kept(&s) >= SHELF_KEPT_MAX)
        rc = err_set(e, "the checkpoint store has more checkpoints of one owner than what is kept");
    if (rc == 0)
        rc = file_down(a, &s, p, e);
    shelf_close(&s);
    return rc;
}

int away_look(const struct away *a, struct span tenant, struct span which, struct err *e)
{
    char begins[AWAY_FOLDER + 2];
    struct listing l;
    struct part p;
    struct err why = {""};
    struct looking at = {.folder = ""};

    if (folder_of(a, "tenant", tenant, begins, e) != 0)
        return -1;
    (void)strcat(begins, "/");
    int rc = list_all(a, begins, &l, e);
    struct span rest = dynbuf_span(&l.names);
    while (rc == 0 && list_next(&rest, &p)) {
        if (p.i != 0 || !form_is_id(span_str(p.name)) || look_one(a, &p, &at, &why) >= 0)
            continue;
        if (span_eq(span_str(p.name), which))
            rc = err_set(e, "%s", why.text);
        else if (at.bad++ < BAD_SAID) /* what is listed there may be made up, without an end */
            log_warn("checkpoints: %s", why.text);
    }
    if (at.bad > BAD_SAID)
        log_warn("checkpoints: and %u more in the checkpoint store cannot be had", at.bad - BAD_SAID);
    dynbuf_free(&l.names);
    return rc;
}
