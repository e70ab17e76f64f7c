/* A checkpoint becomes the files of a workspace. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox-shim/checkpoint/pack.h"
#include "sandbox-shim/checkpoint/store.h"
#include "sandbox-shim/checkpoint/stream.h"

static struct loading {
    struct shelf shelf;
    struct pieces pieces;
    struct stream to;
    bool looks; /* pieces are read and held against their names, and nothing is put */
    struct tar_member member;
    uint8_t head[TAR_HEAD_MAX], piece[FORM_PIECE];
    enum store_end *how;
    struct err *err;
} loading;

static const uint8_t zero[2 * TAR_BLOCK];

static int gone(struct loading *v)
{
    struct stream_end end;
    size_t n;

    while (stream_get(v->to.fd, v->piece, &n, &end) == STREAM_BYTES)
        ;
    return err_set(v->err, "its files cannot be written: who writes them has ended");
}

static int head_put(struct loading *v, const struct form_row *r)
{
    struct tar_member *m = &v->member;

    if (v->looks) {
        memcpy(m->name, r->name.p, r->name.n);
        m->name[r->name.n] = '\0';
        return 0;
    }
    m->type = r->type;
    m->mode = r->mode;
    m->size = r->size;
    m->mtime = r->mtime;
    memcpy(m->name, r->name.p, r->name.n);
    m->name[r->name.n] = '\0';
    if (r->target.n > 0)
        memcpy(m->target, r->target.p, r->target.n);
    m->target[r->target.n] = '\0';
    return stream_put(&v->to, v->head, tar_head(v->head, m));
}

/* -2: who takes it has ended. */
static int content_put(struct loading *v, const struct form_row *r)
{
    uint64_t left = r->size;

    for (size_t i = 0; left > 0; i++) {
        const struct piece *p = pieces_find(&v->pieces, r->pieces.p + i * FORM_MAC);
        uint64_t size = left < FORM_PIECE ? left : FORM_PIECE;
        if (p == NULL || p->size != size || piece_read(&v->shelf, &v->pieces, p, v->piece) != 0)
            return err_set(v->err, "the checkpoint is damaged: a piece of %s is not what was written",
                           v->member.name);
        if (!v->looks && stream_put(&v->to, v->piece, (size_t)size) != 0)
            return -2;
        left -= size;
    }
    return v->looks || stream_put(&v->to, zero, tar_pad(r->size)) == 0 ? 0 : -2;
}

/* Folders come a second time, from the last one to the first: then nothing is put into them any more, and they get
 * their mode and time. */
static int folders_put(struct loading *v, const struct form_row *folder, size_t n)
{
    while (n-- > 0)
        if (head_put(v, &folder[n]) != 0)
            return -2;
    return v->looks || stream_put(&v->to, zero, sizeof(zero)) == 0 ? 0 : -2;
}

static int rows_put(struct loading *v, struct span rows, uint64_t folders)
{
    struct msg_in m = msg_in(rows);
    struct form_row r, *folder = folders < FORM_ROWS_MAX ? calloc((size_t)folders + 1, sizeof(*folder)) : NULL;
    size_t n = 0;
    int rc = folder != NULL ? 0 : err_set(v->err, "there is no memory for it");

    while (rc == 0 && m.rest.n > 0) {
        if (form_get_row(&m, &r) != 0 || (r.type == TAR_FOLDER && n == folders))
            rc = err_set(v->err, "the checkpoint is damaged: its list cannot be read");
        else if (head_put(v, &r) != 0)
            rc = -2;
        else if (r.type == TAR_FILE)
            rc = content_put(v, &r);
        else if (r.type == TAR_FOLDER)
            folder[n++] = r;
    }
    if (rc == 0)
        rc = folders_put(v, folder, n);
    free(folder);
    return rc;
}

/* Who writes the files says how that went, also when it ends before all of them are there. */
static int written(struct loading *v)
{
    struct stream_end end = {.code = 0};
    size_t n;
    int rc;

    while ((rc = stream_get(v->to.fd, v->piece, &n, &end)) == STREAM_BYTES)
        ;
    if (rc != 0)
        return gone(v);
    if (end.code == ENOSPC || end.code == EDQUOT)
        return err_set(v->err, "its disk is full: it needs a larger one");
    if (end.code != 0)
        return err_set(v->err, "its files cannot be written: %s: %.*s", strerror((int)end.code), (int)end.nwords,
                       end.words);
    return end.left_out == 0 ? 0 : err_set(v->err, "%u of its files cannot be written", end.left_out);
}

/* Before what is there goes, all that comes instead is known to be as it was written. */
static int give(struct loading *v, const struct form_file *f, const struct form_head *h, bool replace)
{
    const struct stream_end end = {.code = 0};
    int rc = 0;

    v->looks = replace;
    if (replace)
        rc = rows_put(v, f->rows, h->folders);
    v->looks = false;
    if (rc != 0)
        return -1;
    *v->how = STORE_FAILED;
    if (stream_ask(v->to.fd, replace ? STREAM_REPLACE : STREAM_UNPACK, 0) != 0)
        return gone(v);
    rc = rows_put(v, f->rows, h->folders);
    if (rc == -1)
        return -1;
    if (rc == 0 && stream_end_put(&v->to, &end) != 0)
        rc = -2;
    return written(v);
}

/* Is a piece of it not here? What cannot be read is not looked for elsewhere either. */
static bool is_missing(struct loading *v, struct span rows)
{
    return pieces_want(&v->pieces, rows) == 1;
}

static int pieces_have(struct loading *v, const struct store *s, const struct form_file *f)
{
    if (pieces_load(&v->shelf, &v->pieces, v->err) != 0)
        return -1;
    if (s->away == NULL || !is_missing(v, f->rows))
        return 0;
    pieces_free(&v->pieces);
    struct err why = {""};
    int bad = away_packs_down(s->away, &v->shelf, &why);
    if (pieces_load(&v->shelf, &v->pieces, v->err) != 0)
        return -1;
    return bad != 0 && is_missing(v, f->rows) ? err_set(v->err, "%s", why.text) : 0;
}

int store_load(const struct store *s, const struct order *o, int stream, struct dynbuf *out, struct err *e)
{
    struct loading *v = &loading;
    char id[FORM_ID + 1];
    struct form_file f;
    struct form_head h;
    struct dynbuf file;

    *v = (struct loading){.pieces = {.fd = -1}, .to = {.fd = stream}, .how = s->how, .err = e};
    if (span_eq(o->name, FORM_OF_UNDO)) /* until what is there is touched */
        *s->how = STORE_REFUSED;
    dynbuf_init(&file, FORM_ROWS_MAX + 2 * FORM_HEAD_MAX);
    int rc = store_find(s, o, &v->shelf, id, e);
    if (rc == 0 && shelf_share(&v->shelf) != 0)
        rc = err_errno(e, "the folder of checkpoints cannot be locked");
    if (rc == 0)
        rc = shelf_read(&v->shelf, id, &file, &f, e);
    if (rc == 1) {
        *s->how = STORE_MISSING;
        rc = err_set(e, ORDER_NO_SUCH);
    }
    if (rc == 0)
        rc = pieces_have(v, s, &f);
    if (rc == 0 && (form_get_kept(f.head, &h) != 0 || give(v, &f, &h, span_eq(o->name, FORM_OF_UNDO)) != 0))
        rc = -1;
    if (rc == 0)
        form_put_head(out, &h);
    dynbuf_free(&file);
    pieces_free(&v->pieces);
    shelf_close(&v->shelf);
    return rc;
}
