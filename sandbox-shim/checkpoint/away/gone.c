/* What is to go from the store elsewhere: marks that say so, and whoever does it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include "sandbox-shim/checkpoint/away/away_in.h"

int unwritten(struct err *e)
{
    return err_errno(e, "the folder of checkpoints cannot be written");
}

bool is_here(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_pack(const char *name)
{
    return span_ends(span_str(name), SPAN(".pack"));
}

/* --- marks ----------------------------------------------------------------------------- */

static void mark_name(const char *what, const char *name, char path[MARK_NAME + 1])
{
    (void)snprintf(path, MARK_NAME + 1, "%s-%s", what, name);
}

bool mark_is(const struct shelf *s, const char *what, const char *name)
{
    char path[MARK_NAME + 1];

    mark_name(what, name, path);
    return is_here(s->dir, path);
}

int mark(int dir, const char *what, const char *name, struct span bytes)
{
    char path[MARK_NAME + 1], tmp[AWAY_TMP + 1];

    mark_name(what, name, path);
    int fd = tmp_name(tmp) == 0 ? openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return -1;
    int rc = file_write_fd(fd, bytes) == 0 && (bytes.n == 0 || fsync(fd) == 0) ? 0 : -1;
    close(fd);
    if (rc == 0)
        rc = renameat(dir, tmp, dir, path) == 0 ? fsync(dir) : -1;
    if (rc != 0)
        (void)unlinkat(dir, tmp, 0);
    return rc;
}

int unmark(const struct shelf *s, const char *what, const char *name)
{
    char path[MARK_NAME + 1];

    mark_name(what, name, path);
    return unlinkat(s->dir, path, 0) == 0 || errno == ENOENT ? 0 : -1;
}

bool away_is_gone(const struct shelf *s, const char *name)
{
    return mark_is(s, "gone", name);
}

int away_gone(const struct shelf *s, const char *name)
{
    return mark_is(s, "up", "key") ? mark(s->dir, "gone", name, SPAN_NONE) : 0;
}

/* --- what was removed --------------------------------------------------------------------- */

/* A name between line ends each, also behind one that was half written. */
static int removed_read(const struct shelf *s, struct dynbuf *b)
{
    dynbuf_init(b, 2 * AWAY_REMOVED_MAX);
    int fd = openat(s->dir, "removed", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    int rc = file_read_fd(fd, b);
    close(fd);
    return rc;
}

static bool removed_has(const struct dynbuf *b, const char *name)
{
    char line[SHELF_FILE + 3];

    (void)snprintf(line, sizeof(line), "\n%s\n", name);
    return span_find(dynbuf_span(b), span_str(line)) < b->n;
}

static int removed_write(const struct shelf *s, struct span all)
{
    char tmp[AWAY_TMP + 1];
    int fd = tmp_name(tmp) == 0 ? openat(s->dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;

    if (fd < 0)
        return -1;
    int rc = file_write_fd(fd, all) == 0 && fsync(fd) == 0 ? renameat(s->dir, tmp, s->dir, "removed") : -1;
    close(fd);
    if (rc != 0)
        (void)unlinkat(s->dir, tmp, 0);
    return rc == 0 ? fsync(s->dir) : -1;
}

int is_dead(const struct shelf *s, const char *name)
{
    struct dynbuf b;

    if (!is_pack(name) && (mark_is(s, "gone", name) || mark_is(s, "tmp", name)))
        return 1;
    int rc = removed_read(s, &b) == 0 ? removed_has(&b, name) : -1;
    dynbuf_free(&b);
    return rc;
}

/* --- who does it ------------------------------------------------------------------------------ */

static int hold(const struct shelf *s, int how)
{
    int rc, fd = openat(s->dir, "away", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return -1;
    do
        rc = flock(fd, how);
    while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return fd;
    rc = errno;
    close(fd);
    errno = rc;
    return -1;
}

int away_hold(const struct shelf *s)
{
    return hold(s, LOCK_SH);
}

struct tidying {
    const struct away *a;
    const struct shelf *s;
    struct pieces pieces;
    struct dynbuf gone, removed; /* gone: those that were marked when it began, each with its NUL */
    bool known;                  /* what all checkpoints there need */
    bool none;                   /* there are none, nor here */
    bool wanted[PACKS_MAX];
};

static int collect(void *arg, const char *name)
{
    struct tidying *t = arg;

    return dynbuf_add(&t->gone, span_of(name + 5, strlen(name + 5) + 1)) == 0 ? 0 : -2;
}

static bool is_marked(const struct tidying *t, const char *name)
{
    char whole[SHELF_FILE + 2];
    struct span all = dynbuf_span(&t->gone);
    size_t n = (size_t)snprintf(whole, sizeof(whole), "%s", name) + 1;

    for (size_t at; (at = span_find(all, span_of(whole, n))) < all.n; all = span_from(all, at + 1))
        if (all.p + at == t->gone.p || all.p[at - 1] == 0)
            return true;
    return false;
}

static bool was_removed(const struct tidying *t, const char *name)
{
    return is_marked(t, name) || removed_has(&t->removed, name);
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

void packs_wanted(const struct pieces *all, bool wanted[PACKS_MAX])
{
    for (size_t i = 0; i < all->nslots; i++)
        if (all->slot[i].there && all->slot[i].wanted)
            wanted[all->slot[i].pack] = true;
}

/* What those that lie there need, and how many they are. */
static size_t want_all(struct tidying *t, struct span rest)
{
    struct part p;
    size_t n = 0;

    t->known = true;
    while (list_next(&rest, &p))
        if (p.i == 0 && form_is_id(span_str(p.name)) && !was_removed(t, p.name)) {
            t->known = want_one(t, p.name) && t->known;
            n++;
        }
    packs_wanted(&t->pieces, t->wanted);
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
    if (strcmp(name, "key") == 0 || (is_pack(name) && !t->known))
        return false;
    if (is_pack(name) && is_here(t->s->dir, name))
        return !is_wanted(t, name);
    return was_removed(t, name) || (t->none && !is_here(t->s->dir, name));
}

static int drop_gone(struct tidying *t, struct span rest, struct err *e)
{
    char key[AWAY_KEY_MAX];
    struct part p;

    while (list_next(&rest, &p)) {
        if (!is_to_go(t, p.name))
            continue;
        part_key(&p, key);
        if (t->a->by->remove(t->a->by->arg, key, e) != 0)
            return -1;
    }
    return 0;
}

/* Of these nothing lies there any more. A checkpoint that is here nevertheless, as who removed it was killed, is
 * nobody's only by its mark, until it goes (waste_clear). */
static bool is_settled(const struct tidying *t, const char *name)
{
    return is_pack(name) ? t->known : !is_here(t->s->dir, name);
}

/* They are known as removed before their marks go, but a pack that was written here anew meanwhile. */
static int settle(struct tidying *t, struct err *e)
{
    struct dynbuf *all = &t->removed;
    const char *name;

    if (all->n > AWAY_REMOVED_MAX) /* the first half is forgotten */
        dynbuf_drop(all, all->n / 2);
    for (struct span rest = dynbuf_span(&t->gone); rest.n > 0; rest = span_from(rest, strlen(name) + 1)) {
        name = (const char *)rest.p;
        if (is_settled(t, name) && !(is_pack(name) && is_here(t->s->dir, name)))
            (void)dynbuf_addf(all, "\n%s\n", name);
    }
    if (!dynbuf_ok(all) || removed_write(t->s, dynbuf_span(all)) != 0)
        return unwritten(e);
    for (struct span rest = dynbuf_span(&t->gone); rest.n > 0; rest = span_from(rest, strlen(name) + 1)) {
        name = (const char *)rest.p;
        if (is_settled(t, name) && unmark(t->s, "gone", name) != 0)
            return unwritten(e);
    }
    return 0;
}

static int tidy(struct tidying *t, struct err *e)
{
    struct listing l;
    int rc = list_of(t->a, t->s, &l, e);

    if (rc == 0 && removed_read(t->s, &t->removed) != 0)
        rc = err_errno(e, "what was removed of checkpoints cannot be read");
    if (rc == 0)
        rc = pieces_load(t->s, &t->pieces, e);
    if (rc == 0) {
        t->none = want_all(t, dynbuf_span(&l.names)) == 0 && shelf_kept(t->s) == 0;
        if (!t->known)
            log_info(
                "checkpoints: what is not needed any more stays in the checkpoint store for now: of a checkpoint "
                "there something is not here");
        rc = packs_up(t->a, t->s, &t->pieces, dynbuf_span(&l.names), e);
    }
    if (rc == 0)
        rc = drop_gone(t, dynbuf_span(&l.names), e);
    if (rc == 0)
        rc = settle(t, e);
    dynbuf_free(&l.names);
    return rc;
}

/* Where its tenant's lie there the mark of its key says. 1: in another store, where it is to go as soon as that is
 * this gateway's again. */
static int place_read(const struct away *a, struct shelf *s, struct err *e)
{
    struct dynbuf b;
    int fd = openat(s->dir, "up-key", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    dynbuf_init(&b, KEY_MARK);
    int rc = fd >= 0 && file_read_fd(fd, &b) == 0 && b.n == KEY_MARK ? 0 : -1;
    if (rc == 0)
        (void)snprintf(s->there, sizeof(s->there), "%.*s", AWAY_FOLDER, (const char *)b.p);
    else
        (void)err_set(e, "where a folder of checkpoints lies in the checkpoint store is not known");
    if (rc == 0 && !span_eq(span_from(dynbuf_span(&b), AWAY_FOLDER), span_str(a->place)))
        rc = 1;
    if (fd >= 0)
        close(fd);
    dynbuf_free(&b);
    return rc;
}

int away_tidy(const struct away *a, struct shelf *s, struct err *e)
{
    struct tidying t = {.a = a, .s = s, .pieces = {.fd = -1}};
    int rc = 0, held = -1, place = 0;

    dynbuf_init(&t.gone, AWAY_LISTED_MAX);
    dynbuf_init(&t.removed, 0);
    if (shelf_each(s->dir, "gone-", "", collect, &t) != 0)
        rc = err_errno(e, "what is to go from the checkpoint store cannot be read");
    if (rc == 0 && t.gone.n > 0)
        place = place_read(a, s, e);
    if (place > 0)
        dynbuf_reset(&t.gone);
    rc = place < 0 ? -1 : rc;
    if (rc == 0 && t.gone.n > 0 && (held = hold(s, LOCK_EX | LOCK_NB)) < 0)
        rc = errno == EWOULDBLOCK ? 1 : unwritten(e);
    if (rc == 0 && t.gone.n > 0)
        rc = tidy(&t, e);
    if (held >= 0)
        close(held);
    pieces_free(&t.pieces);
    dynbuf_free(&t.gone);
    dynbuf_free(&t.removed);
    return rc;
}
