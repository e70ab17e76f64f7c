/* What no checkpoint of an owner needs any more. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sandbox-shim/checkpoint/seen.h"
#include "sandbox-shim/checkpoint/store.h"

int waste_mark(const struct shelf *s)
{
    int fd = openat(s->dir, "waste", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return -1;
    close(fd);
    return fsync(s->dir);
}

/* --- what was half written ------------------------------------------------------------------ */

struct half {
    const struct shelf *shelf;
    bool any;
};

static int drop(void *arg, const char *name)
{
    struct half *h = arg;
    const char *id = name + sizeof("tmp-") - 1;

    h->any = true;
    if (form_is_id(span_str(id)) && away_gone(h->shelf, id) != 0) /* some of it may be elsewhere already */
        return -1;
    return unlinkat(h->shelf->dir, name, 0) == 0 || errno == ENOENT ? 0 : -1;
}

/* Who removed it was killed between its mark and its end. */
static int finish(void *arg, const char *name)
{
    struct half *h = arg;
    const char *id = name + sizeof("gone-") - 1;

    if (form_is_id(span_str(id)) && unlinkat(h->shelf->dir, id, 0) == 0)
        h->any = true;
    return 0;
}

/* --- what is needed ------------------------------------------------------------------------- */

struct need {
    const struct shelf *shelf;
    struct pieces *all;
    struct err *err;
};

static int need_one(void *arg, const char *id)
{
    const struct need *n = arg;
    struct form_file f;
    struct dynbuf b;

    if (!form_is_id(span_str(id)))
        return 0;
    dynbuf_init(&b, FORM_ROWS_MAX + 2 * FORM_HEAD_MAX);
    int rc = shelf_read(n->shelf, id, &b, &f, n->err);
    if (rc == 0 && pieces_want(n->all, f.rows) < 0)
        rc = err_set(n->err, "the checkpoint %s is damaged: its list cannot be read", id);
    dynbuf_free(&b);
    return rc < 0 ? -1 : 0;
}

/* --- packs ------------------------------------------------------------------------------------ */

/* Those that are wanted into a pack of their own, which has its name before the old one has none. */
static int pack_again(const struct shelf *s, struct pieces *all, uint32_t pack)
{
    struct pack_out o;
    struct piece where;
    struct id fresh;
    char text[ID_TEXT + 1], id[FORM_ID + 1];
    int rc = -1, fd = openat(s->dir, all->pack[pack], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && id_new(&fresh) == 0)
        rc = pack_begin(&o, s, UINT64_MAX);
    if (rc != 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    for (size_t i = 0; i < all->nslots && rc == 0; i++)
        if (all->slot[i].there && all->slot[i].wanted && all->slot[i].pack == pack)
            rc = pack_copy(&o, &all->slot[i], fd, &where);
    id_text(&fresh, text);
    (void)snprintf(id, sizeof(id), "ck-%s", text);
    if (rc == 0)
        rc = pack_sync(&o) == 0 && pack_name(&o, id) == 0 ? 0 : -1;
    pack_drop(&o);
    close(fd);
    return rc;
}

/* One that is needed by half of it or more stays as it is. */
static int packs_clear(const struct shelf *s, struct pieces *all, struct err *e)
{
    uint64_t *needed = calloc(PACKS_MAX, sizeof(*needed));
    int rc = needed != NULL ? 0 : err_set(e, "there is no memory for it");

    for (size_t i = 0; i < all->nslots && rc == 0; i++)
        if (all->slot[i].there && all->slot[i].wanted)
            needed[all->slot[i].pack] += FORM_PIECE_HEAD + all->slot[i].stored;
    for (uint32_t i = 0; i < all->npacks && rc == 0; i++) {
        if (needed[i] >= all->bytes[i] / 2)
            continue;
        if ((needed[i] > 0 && pack_again(s, all, i) != 0) || away_gone(s, all->pack[i]) != 0 ||
            unlinkat(s->dir, all->pack[i], 0) != 0)
            rc = err_errno(e, "a pack of checkpoints cannot be written anew");
    }
    free(needed);
    return rc;
}

int waste_clear(const struct shelf *s, bool all, struct err *e)
{
    struct half half = {s, false};
    struct pieces pieces = {.fd = -1};
    struct need need = {s, &pieces, e};

    if (shelf_each(s->dir, "tmp-", "", drop, &half) != 0 || shelf_each(s->dir, "gone-ck-", "", finish, &half) != 0)
        return err_errno(e, "what was half written cannot be removed");
    if (!all && !half.any && faccessat(s->dir, "waste", F_OK, 0) != 0)
        return 0;
    int rc = pieces_load(s, &pieces, e);
    if (rc == 0)
        rc = shelf_each(s->dir, "ck-", "", need_one, &need);
    if (rc == 0)
        rc = packs_clear(s, &pieces, e);
    if (rc == 0 && shelf_kept(s) == 0)
        (void)unlinkat(s->dir, SHELF_SEEN, 0);
    if (rc == 0)
        (void)unlinkat(s->dir, "waste", 0);
    if (rc == 0)
        rc = fsync(s->dir) == 0 ? 0 : err_errno(e, "the folder of checkpoints cannot be written");
    pieces_free(&pieces);
    return rc;
}
