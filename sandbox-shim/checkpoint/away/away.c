#include "sandbox-shim/checkpoint/away/away.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crypto/aead.h"
#include "common/file.h"
#include "common/log.h"
#include "sandbox-shim/checkpoint/away/away_in.h"

enum { SHELF_KEY = SHELF_NAME + FORM_MAC, MARK = sizeof("gone-") - 1 + SHELF_FILE };

static int unwritten(struct err *e)
{
    return err_errno(e, "the folder of checkpoints cannot be written");
}

static bool is_here(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

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
    *a = (struct away){.by = by, .store = store, .most = most, .part = AWAY_PART};
    return key_of_all(store, a->key) == 0
               ? 0
               : err_errno(e,
                           "the key of the checkpoint store (store-key in the folder of checkpoints) cannot be read");
}

void away_close(struct away *a)
{
    explicit_bzero(a->key, sizeof(a->key));
}

/* --- marks ----------------------------------------------------------------------------- */

static void mark_name(const char *what, const char *name, char mark[MARK + 1])
{
    (void)snprintf(mark, MARK + 1, "%s-%s", what, name);
}

static int mark_in(int dir, const char *mark)
{
    int fd = openat(dir, mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return -1;
    close(fd);
    return fsync(dir);
}

static int mark(const struct shelf *s, const char *what, const char *name)
{
    char path[MARK + 1];

    mark_name(what, name, path);
    return mark_in(s->dir, path);
}

/* --- a shelf's key --------------------------------------------------------------------- */

/* The name and the key of the shelf that has this folder there. 1: it has none. */
static int shelf_there(const struct away *a, const char *folder, char shelf[SHELF_NAME + 1], uint8_t key[FORM_MAC],
                       struct err *e)
{
    struct part p = {.name = "key", .n = 1};
    char is[AWAY_FOLDER + 1] = "";
    uint8_t k[AWAY_KEY];
    struct dynbuf plain;

    dynbuf_init(&plain, SHELF_KEY + 1);
    (void)snprintf(p.folder, sizeof(p.folder), "%s", folder);
    int rc =
        key_for(a, "shelves", "", k) == 0 ? part_get(a, k, &p, &plain, e) : err_set(e, "there is no memory for it");
    if (rc == 0 && plain.n == SHELF_KEY) {
        (void)snprintf(shelf, SHELF_NAME + 1, "%.*s", SHELF_NAME, (const char *)plain.p);
        memcpy(key, plain.p + SHELF_NAME, FORM_MAC);
        rc = folder_of(a, shelf, is, e);
    }
    if (rc == 0 && (plain.n != SHELF_KEY || strlen(shelf) != SHELF_NAME || strchr(shelf, '/') != NULL ||
                    strcmp(is, folder) != 0))
        rc = err_set(e, "a key in the checkpoint store is damaged");
    dynbuf_wipe(&plain);
    explicit_bzero(k, sizeof(k));
    return rc;
}

static int key_up(const struct away *a, const struct shelf *s, struct err *e)
{
    struct part p = {.name = "key", .n = 1};
    uint8_t plain[SHELF_KEY], there[FORM_MAC], k[AWAY_KEY], room[SHELF_KEY + AEAD_EXTRA];
    char shelf[SHELF_NAME + 1];
    int rc = -1;

    memcpy(plain, s->name, SHELF_NAME);
    if (key_for(a, "shelves", "", k) != 0 || key_read(s->dir, "key", plain + SHELF_NAME) != 0)
        (void)err_errno(e, "the key of the checkpoints cannot be read");
    else if (folder_of(a, s->name, p.folder, e) == 0)
        rc = shelf_there(a, p.folder, shelf, there, e);
    if (rc == 1)
        rc = part_put(a, k, &p, span_of(plain, sizeof(plain)), room, e);
    else if (rc == 0 && memcmp(there, plain + SHELF_NAME, FORM_MAC) != 0)
        rc = err_set(e, "the checkpoint store has checkpoints of this owner by another key: one gateway at a time "
                        "may keep its checkpoints there");
    explicit_bzero(plain, sizeof(plain));
    explicit_bzero(there, sizeof(there));
    explicit_bzero(k, sizeof(k));
    return rc;
}

static bool has_key(const struct away *a, const char *shelf)
{
    char path[SHELF_NAME + sizeof("/key")];

    (void)snprintf(path, sizeof(path), "%s/key", shelf);
    return is_here(a->store, path);
}

/* there: it is the key that it has there, which needs not go there any more, unless another one came here meanwhile.
 */
static int shelf_make(const struct away *a, const char *shelf, const uint8_t key[FORM_MAC], bool there, struct err *e)
{
    uint8_t is[FORM_MAC];
    int rc = -1, dir = -1;

    if (mkdirat(a->store, shelf, 0700) == 0 || errno == EEXIST)
        dir = openat(a->store, shelf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && key_write(dir, "key", span_of(key, FORM_MAC)) == 0 && key_read(dir, "key", is) == 0 &&
        (!there || memcmp(is, key, FORM_MAC) != 0 || mark_in(dir, "up-key") == 0))
        rc = fsync(a->store);
    if (rc != 0)
        (void)unwritten(e);
    if (dir >= 0)
        close(dir);
    explicit_bzero(is, sizeof(is));
    return rc;
}

int away_shelf(const struct away *a, const char *shelf, bool ask, struct err *e)
{
    char folder[AWAY_FOLDER + 1], name[SHELF_NAME + 1];
    uint8_t key[FORM_MAC];

    if (has_key(a, shelf))
        return 0;
    int rc = ask ? folder_of(a, shelf, folder, e) : 1;
    if (rc == 0)
        rc = shelf_there(a, folder, name, key, e);
    bool there = rc == 0;
    if (rc == 1)
        rc = key_for(a, "shelf", shelf, key) == 0 ? 0 : err_set(e, "there is no memory for it");
    if (rc == 0)
        rc = shelf_make(a, shelf, key, there, e);
    explicit_bzero(key, sizeof(key));
    return rc;
}

/* --- up ----------------------------------------------------------------------------------- */

static int pack_up(const struct away *a, const struct shelf *s, const char *name, struct err *e)
{
    char up[MARK + 1];

    mark_name("up", name, up);
    if (is_here(s->dir, up))
        return 0;
    if (file_up(a, s, name, name, e) != 0)
        return -1;
    return mark(s, "up", name) == 0 ? 0 : unwritten(e);
}

/* With a piece that is. */
static void packs_wanted(const struct pieces *all, bool wanted[PACKS_MAX])
{
    for (size_t i = 0; i < all->nslots; i++)
        if (all->slot[i].there && all->slot[i].wanted)
            wanted[all->slot[i].pack] = true;
}

int away_packs_up(const struct away *a, const struct shelf *s, const struct pieces *all, struct err *e)
{
    bool wanted[PACKS_MAX] = {false};
    int rc = 0;

    if (!is_here(s->dir, "up-key")) {
        if (key_up(a, s, e) != 0)
            return -1;
        if (mark(s, "up", "key") != 0)
            return unwritten(e);
    }
    packs_wanted(all, wanted);
    for (size_t i = 0; i < all->npacks && rc == 0; i++)
        rc = wanted[i] ? pack_up(a, s, all->pack[i], e) : 0;
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
    if (file_down(a, s, p, e) != 0)
        return -1;
    return mark(s, "up", p->name) == 0 ? 0 : unwritten(e);
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
    char folder[AWAY_FOLDER + 1], shelf[SHELF_NAME + 1];
    int rc; /* of that */
};

static int look_shelf(const struct away *a, const char *folder, struct looking *l, struct err *e)
{
    uint8_t key[FORM_MAC];

    if (strcmp(l->folder, folder) == 0)
        return l->rc == 0 ? 0 : err_set(e, "a key in the checkpoint store is damaged");
    (void)snprintf(l->folder, sizeof(l->folder), "%s", folder);
    l->rc = shelf_there(a, folder, l->shelf, key, e);
    if (l->rc == 1)
        l->rc = err_set(e, "a key in the checkpoint store is missing");
    if (l->rc == 0 && !has_key(a, l->shelf))
        l->rc = shelf_make(a, l->shelf, key, true, e);
    explicit_bzero(key, sizeof(key));
    return l->rc;
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
    if (rc == 0 && shelf_share(&s) != 0)
        rc = err_errno(e, "the folder of checkpoints cannot be locked");
    if (rc == 0 && shelf_kept(&s) >= SHELF_KEPT_MAX)
        rc = err_set(e, "the checkpoint store has more checkpoints of one owner than what is kept");
    if (rc == 0)
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

static int drop_part(const struct away *a, const struct part *p, struct err *e)
{
    char key[AWAY_KEY_MAX];

    part_key(p, key);
    return a->by->remove(a->by->arg, key, e);
}

int away_drop(const struct away *a, const struct shelf *s, const char *name, struct err *e)
{
    struct listing l;
    struct part p;
    int rc = list_of(a, s, &l, e);

    struct span rest = dynbuf_span(&l.names);
    while (rc == 0 && list_next(&rest, &p))
        if (strcmp(p.name, name) == 0)
            rc = drop_part(a, &p, e);
    dynbuf_free(&l.names);
    return rc;
}

int away_gone(const struct shelf *s, const char *name)
{
    char up[MARK + 1];

    if (!is_here(s->dir, "up-key"))
        return 0;
    mark_name("up", name, up);
    if (mark(s, "gone", name) != 0)
        return -1;
    return unlinkat(s->dir, up, 0) == 0 || errno == ENOENT ? 0 : -1;
}

static int any(void *arg, const char *name)
{
    return -2;
}

struct tidying {
    const struct away *a;
    const struct shelf *s;
    struct pieces pieces;
    bool known; /* what all checkpoints there need */
    bool none;  /* there are none, nor here */
    bool wanted[PACKS_MAX];
};

static bool is_gone(const struct shelf *s, const char *name)
{
    char gone[MARK + 1];

    mark_name("gone", name, gone);
    return is_here(s->dir, gone);
}

static int unmark(void *arg, const char *gone)
{
    const struct tidying *t = arg;

    if (!t->known && span_ends(span_str(gone), SPAN(".pack")))
        return 0;
    return unlinkat(t->s->dir, gone, 0);
}

/* One that lies there: are it and all pieces that it needs here? */
static bool want_one(struct tidying *t, const char *id)
{
    struct form_file f;
    struct dynbuf b;
    struct err e;

    dynbuf_init(&b, FORM_ROWS_MAX + 2 * FORM_HEAD_MAX);
    bool all = shelf_read(t->s, id, &b, &f, &e) == 0 && pieces_want(&t->pieces, f.rows) == 0;
    dynbuf_free(&b);
    return all;
}

/* What those that lie there need, and how many they are. */
static size_t want_all(struct tidying *t, struct span rest)
{
    struct part p;
    size_t n = 0;

    t->known = true;
    while (list_next(&rest, &p))
        if (p.i == 0 && form_is_id(span_str(p.name)) && (is_here(t->s->dir, p.name) || !is_gone(t->s, p.name))) {
            t->known = want_one(t, p.name) && t->known;
            n++;
        }
    return n;
}

static bool is_wanted(const struct tidying *t, const char *pack)
{
    for (size_t i = 0; i < t->pieces.npacks; i++)
        if (strcmp(t->pieces.pack[i], pack) == 0)
            return t->wanted[i];
    return true;
}

/* Of what is here a pack alone: what needs it stays here. What is merely lost here stays there. */
static bool is_to_go(const struct tidying *t, const char *name)
{
    bool pack = span_ends(span_str(name), SPAN(".pack"));

    if (strcmp(name, "key") == 0 || (pack && !t->known))
        return false;
    if (is_here(t->s->dir, name))
        return pack && !is_wanted(t, name);
    return t->none || is_gone(t->s, name);
}

static int drop_gone(struct tidying *t, struct span rest, struct err *e)
{
    struct part p;
    char up[MARK + 1];

    while (list_next(&rest, &p)) {
        if (!is_to_go(t, p.name))
            continue;
        mark_name("up", p.name, up);
        if (unlinkat(t->s->dir, up, 0) != 0 && errno != ENOENT)
            return unwritten(e);
        if (drop_part(t->a, &p, e) != 0)
            return -1;
    }
    return shelf_each(t->s->dir, "gone-", "", unmark, t) == 0 ? 0 : unwritten(e);
}

int away_tidy(const struct away *a, const struct shelf *s, struct err *e)
{
    struct tidying t = {.a = a, .s = s, .pieces = {.fd = -1}};
    struct listing l;

    if (shelf_each(s->dir, "gone-", "", any, NULL) == 0)
        return 0;
    int rc = list_of(a, s, &l, e);
    if (rc == 0)
        rc = pieces_load(s, &t.pieces, e);
    if (rc == 0) {
        size_t n = want_all(&t, dynbuf_span(&l.names));
        if (!t.known)
            log_warn(
                "checkpoints: what is not needed any more stays in the checkpoint store for now: of a checkpoint "
                "there something is not here");
        rc = away_packs_up(a, s, &t.pieces, e);
        t.none = n == 0 && shelf_kept(s) == 0;
        packs_wanted(&t.pieces, t.wanted);
        if (rc == 0)
            rc = drop_gone(&t, dynbuf_span(&l.names), e);
    }
    pieces_free(&t.pieces);
    dynbuf_free(&l.names);
    return rc;
}
