/* A workspace becomes a checkpoint. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include "sandbox-shim/checkpoint/pack.h"
#include "sandbox-shim/checkpoint/seen.h"
#include "sandbox-shim/checkpoint/store.h"

/* What a tar stream is larger than its files: two headers for each, and names. */
#define HEADERS_MAX (UINT64_C(4) << 30)
/* Steps are in no list of checkpoints, and nobody removes one by hand. */
#define ROOM                                                                                                         \
    "`countersign checkpoint rm` makes room, and so does `countersign sandbox undo` or `sandbox destroy` of a "      \
    "sandbox that has steps"

static struct saving {
    const struct store *store;
    const struct order *order;
    struct shelf shelf;
    struct pieces pieces;
    struct seen seen;
    struct seen_file *same; /* whose bytes the next file has; NULL: its own, which follow */
    struct mark mark;       /* of the file that is being told */
    struct pack_out pack;
    struct tar tar;
    struct form_head head;
    struct dynbuf rows;
    size_t n; /* bytes of a piece that is not whole yet */
    uint8_t piece[FORM_PIECE];
    uint8_t in[STREAM_PIECE];
    struct err *err;
} saving;

/* --- pieces ----------------------------------------------------------------------------- */

static int too_much(const struct saving *v)
{
    *v->store->how = STORE_FULL;
    return err_set(v->err,
                   "with this one the checkpoints of %.*s would need more than %llu bytes, which is what is kept for "
                   "one owner: " ROOM,
                   SPAN_FMT(v->order->owner), (unsigned long long)v->store->most);
}

static int too_many(const struct saving *v)
{
    *v->store->how = STORE_FULL;
    return err_set(v->err, "%.*s has %d checkpoints, as many as one owner may: " ROOM, SPAN_FMT(v->order->owner),
                   SHELF_KEPT_MAX);
}

static int full(const struct saving *v)
{
    *v->store->how = STORE_FAILED;
    return errno == ENOSPC || errno == EDQUOT ? err_set(v->err, "the disk that checkpoints are kept on is full")
                                              : err_errno(v->err, "the checkpoint cannot be written");
}

static int piece_keep(struct saving *v)
{
    uint8_t name[FORM_MAC];
    struct piece where;
    const struct span bytes = span_of(v->piece, v->n);

    if (v->n == 0)
        return 0;
    v->n = 0;
    shelf_mac(&v->shelf, 'p', bytes, SPAN_NONE, name);
    if (dynbuf_add(&v->rows, span_of(name, FORM_MAC)) != 0)
        return err_set(v->err, "it has too many files for one checkpoint");
    if (pieces_find(&v->pieces, name) != NULL)
        return 0;
    int rc = pack_put(&v->pack, name, bytes, &where);
    if (rc != 0)
        return rc > 0 ? too_much(v) : full(v);
    return pieces_add(&v->pieces, &where) == 0
               ? 0
               : err_set(v->err,
                         "the checkpoints of %.*s have as many pieces as may be: `countersign checkpoint rm` "
                         "makes room",
                         SPAN_FMT(v->order->owner));
}

static int data_take(struct saving *v, const uint8_t *p, size_t n)
{
    mark_add(&v->mark, p, n);
    while (n > 0) {
        size_t room = FORM_PIECE - v->n, some = n < room ? n : room;
        memcpy(v->piece + v->n, p, some);
        v->n += some;
        p += some;
        n -= some;
        if (v->n == FORM_PIECE && piece_keep(v) != 0)
            return -1;
    }
    return 0;
}

/* --- the stream --------------------------------------------------------------------------- */

static int unknown(const struct saving *v)
{
    return err_set(v->err, "what was told of its files cannot be read: a mark is of a file that was not told");
}

/* All of a file was told: it is known by that from now on. */
static int file_end(struct saving *v)
{
    const uint64_t size = v->mark.n;
    const size_t n = (size_t)form_pieces(size) * FORM_MAC;
    uint8_t mark[MARK];

    if (piece_keep(v) != 0)
        return -1;
    mark_end(&v->mark, mark);
    mark_begin(&v->mark);
    if (size >= MARK_LEAST && n <= v->rows.n)
        seen_add(&v->seen, mark, size, span_from(dynbuf_span(&v->rows), v->rows.n - n));
    return 0;
}

static int same_take(struct saving *v, const uint8_t mark[MARK])
{
    const bool twice = v->same != NULL;

    v->same = seen_find(&v->seen, mark);
    return v->same != NULL && !twice ? 0 : unknown(v);
}

static int member_take(struct saving *v)
{
    const struct tar_member *m = &v->tar.member;
    struct seen_file *same = v->same;
    const uint64_t size = same != NULL ? same->size : m->size;
    const struct form_row r = {m->type, m->mode, size, m->mtime, span_str(m->name), span_str(m->target), SPAN_NONE};

    if (file_end(v) != 0) /* of the one before */
        return -1;
    v->same = NULL;
    if (same != NULL && (m->type != TAR_FILE || m->size != 0))
        return unknown(v);
    if (m->name[0] == '\0') /* the workspace itself */
        return 0;
    if (m->type != TAR_FILE && m->type != TAR_FOLDER && m->type != TAR_LINK)
        return err_set(v->err, "its files were not told in a form that is known here");
    v->head.files += m->type == TAR_FILE;
    v->head.folders += m->type == TAR_FOLDER;
    v->head.links += m->type == TAR_LINK;
    if (size > v->order->disk - v->head.bytes)
        return err_set(v->err,
                       "its files have more bytes than its disk, as those with holes have: it cannot be kept");
    v->head.bytes += size;
    form_put_row(&v->rows, &r);
    if (same != NULL) {
        (void)dynbuf_add(&v->rows, same->pieces);
        seen_again(&v->seen, same);
    }
    return dynbuf_ok(&v->rows) ? 0 : err_set(v->err, "it has too many files for one checkpoint");
}

static int bytes_take(struct saving *v, const uint8_t *p, size_t n)
{
    size_t used;

    for (;;) {
        enum tar_got got = tar_step(&v->tar, p, n, &used);
        p += used;
        n -= used;
        if (got == TAR_MEMBER && member_take(v) != 0)
            return -1;
        if (got == TAR_DATA && data_take(v, v->tar.data, v->tar.ndata) != 0)
            return -1;
        if (got == TAR_MORE || got == TAR_END)
            return 0;
        if (got == TAR_BAD)
            return err_set(v->err, "what was told of its files cannot be read: %s", v->tar.why);
    }
}

static int ended(const struct saving *v)
{
    *v->store->how = STORE_FAILED;
    return err_set(v->err, "its files cannot be read: who read them has ended");
}

/* What fails from now on lies in its files, unless it is said otherwise. */
static int workspace_take(struct saving *v, int stream)
{
    struct stream_end end;
    uint8_t key[MARK];
    enum stream_got got;
    size_t n;

    seen_key(&v->shelf, key);
    if (mark_open(&v->mark, key) != 0)
        return err_set(v->err, "there is no memory for it");
    mark_begin(&v->mark);
    *v->store->how = STORE_REFUSED;
    bool asked = stream_ask(stream, STREAM_PACK, v->order->disk + HEADERS_MAX) == 0 &&
                 stream_marks_put(stream, key, v->seen.marks, v->seen.nmarks) == 0;
    explicit_bzero(key, sizeof(key));
    if (!asked)
        return ended(v);
    while ((got = stream_get(stream, v->in, &n, &end)) > STREAM_ENDED) {
        if ((got == STREAM_BYTES ? bytes_take(v, v->in, n) : same_take(v, v->in)) != 0)
            return -1;
    }
    if (got != STREAM_ENDED)
        return ended(v);
    if (end.code == EFBIG)
        return err_set(v->err, "it has more than its disk could hold, as files with holes have: %.*s",
                       (int)end.nwords, end.words);
    if (end.code != 0)
        return err_set(v->err, "its files cannot be read: %s: %.*s", strerror((int)end.code), (int)end.nwords,
                       end.words);
    if (!v->tar.ended || v->same != NULL)
        return err_set(v->err, "what was told of its files ends too soon");
    if (file_end(v) != 0)
        return -1;
    v->head.left_out = end.left_out;
    return 0;
}

/* --- on the disk ---------------------------------------------------------------------------- */

static int name_is_free(const struct saving *v)
{
    struct shelf other;
    char id[FORM_ID + 1];

    if (v->order->name.n == 0)
        return 0;
    int rc = shelf_find(v->store->dir, v->order->tenant, v->order->name, &other, id, v->err);
    shelf_close(&other);
    if (rc != 0)
        return rc == 1 ? 0 : -1;
    *v->store->how = STORE_TAKEN;
    return err_set(v->err, "a checkpoint of this name exists: %s", id);
}

static int put_list(struct saving *v, struct dynbuf *file)
{
    struct dynbuf head;
    uint8_t mac[FORM_MAC];

    dynbuf_init(&head, FORM_HEAD_MAX);
    form_put_head(&head, &v->head);
    struct span h = dynbuf_span(&head), rows = dynbuf_span(&v->rows);
    (void)dynbuf_add(file, FORM_CHECKPOINT);
    msg_put_span(file, h);
    shelf_mac(&v->shelf, 'h', h, SPAN_NONE, mac);
    (void)dynbuf_add(file, span_of(mac, FORM_MAC));
    msg_put_span(file, rows);
    shelf_mac(&v->shelf, 'r', h, rows, mac);
    (void)dynbuf_add(file, span_of(mac, FORM_MAC));
    bool ok = dynbuf_ok(&head) && dynbuf_ok(file);
    dynbuf_free(&head);
    return ok ? 0 : err_set(v->err, "there is no memory for it");
}

/* May it be kept? One save at a time asks, with the lock of all. */
static int may_stay(struct saving *v, uint64_t file)
{
    uint64_t there = shelf_bytes(&v->shelf), more = v->pack.bytes + file;

    if (there > v->store->most || more > v->store->most - there)
        return too_much(v);
    return shelf_kept(&v->shelf) >= SHELF_KEPT_MAX ? too_many(v) : name_is_free(v);
}

/* NULL: here alone. Such a one is needed for as long as that sandbox is of this gateway, and also while no store
 * answers. */
static const struct away *away_of(const struct saving *v)
{
    return form_stays_here(v->order->name) ? NULL : v->store->away;
}

/* Those that this one needs; others are of what stays here, or lie there already. */
static int packs_up(struct saving *v, const struct away *away)
{
    pieces_free(&v->pieces); /* they do not know its own */
    if (pieces_load(&v->shelf, &v->pieces, v->err) != 0)
        return -1;
    if (pieces_want(&v->pieces, dynbuf_span(&v->rows)) != 0)
        return err_set(v->err, "the checkpoint cannot be read again");
    return away_packs_up(away, &v->shelf, &v->pieces, v->err);
}

/* Elsewhere as well, before it is answered; others do not wait meanwhile. *held: until it has its name here. */
static int keep_away(struct saving *v, const char *tmp, const char *id, int all, int *held)
{
    const struct away *away = away_of(v);

    if (away == NULL)
        return 0;
    *v->store->how = STORE_FAILED;
    /* who looks there meanwhile, or after the end of this machine, finds that it is not kept yet */
    if (fsync(v->shelf.dir) != 0 || flock(all, LOCK_UN) != 0 || (*held = away_hold(&v->shelf)) < 0)
        return full(v);
    if (packs_up(v, away) != 0 || away_up(away, &v->shelf, tmp, id, v->err) != 0)
        return -1;
    return flock(all, LOCK_EX) == 0 ? name_is_free(v) : full(v);
}

/* Pieces before the list that names them; both have their names when all of it is on the disk. */
static int commit(struct saving *v, const char *id, int all)
{
    char tmp[8 + FORM_ID + 1];
    struct dynbuf file;
    int rc = -1, fd = -1, held = -1, dir = v->shelf.dir;

    (void)snprintf(tmp, sizeof(tmp), "tmp-%s", id);
    dynbuf_init(&file, FORM_ROWS_MAX + 2 * FORM_HEAD_MAX);
    if (put_list(v, &file) != 0)
        goto out;
    if (pack_sync(&v->pack) != 0 ||
        (fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0 ||
        file_write_fd(fd, dynbuf_span(&file)) != 0 || fsync(fd) != 0 || flock(all, LOCK_EX) != 0) {
        full(v);
        goto out;
    }
    if (may_stay(v, file.n) != 0)
        goto out;
    if (pack_name(&v->pack, id) != 0) {
        full(v);
        goto out;
    }
    if (keep_away(v, tmp, id, all, &held) != 0)
        goto out;
    rc = renameat(dir, tmp, dir, id) == 0 && fsync(dir) == 0 ? 0 : full(v);
out:
    if (fd >= 0)
        close(fd);
    if (held >= 0)
        close(held);
    /* Some of it may lie there: that goes as well. Without a mark that says so it stays half written. */
    if (rc != 0 && (held < 0 || (waste_mark(&v->shelf) == 0 && away_gone(&v->shelf, id) == 0)))
        (void)unlinkat(dir, tmp, 0);
    dynbuf_free(&file);
    return rc;
}

static int begin(struct saving *v, char id[FORM_ID + 1])
{
    char text[ID_TEXT + 1], folder[SHELF_NAME + 1];
    const struct order *o = v->order;
    const struct away *away = away_of(v);
    struct timespec now;
    struct id fresh;

    if (id_new(&fresh) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return err_set(v->err, "the system has no randomness to give");
    id_text(&fresh, text);
    (void)snprintf(id, FORM_ID + 1, "ck-%s", text);
    v->head = (struct form_head){.id = span_str(id),
                                 .tenant = o->tenant,
                                 .owner = o->owner,
                                 .name = o->name,
                                 .sandbox = o->sandbox,
                                 .reach = o->reach,
                                 .generation = o->generation,
                                 .created_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000};
    shelf_of(o->tenant, o->owner, folder);
    if (away != NULL && o->name.n > 0 && away_look(away, o->tenant, SPAN_NONE, v->err) != 0)
        return -1;
    if (v->store->away != NULL && away_shelf(v->store->away, o->tenant, folder, away != NULL, v->err) != 0)
        return -1;
    if (name_is_free(v) != 0 || shelf_open(v->store->dir, folder, true, &v->shelf, v->err) != 0)
        return -1;
    if (away != NULL && away_place(away, &v->shelf, o->tenant, v->err) != 0)
        return -1;
    if (shelf_alone(&v->shelf) && waste_clear(&v->shelf, false, v->err) != 0)
        return -1;
    if (shelf_share(&v->shelf) != 0)
        return err_errno(v->err, "the folder of checkpoints cannot be locked");
    uint64_t there = shelf_bytes(&v->shelf);
    if (there >= v->store->most)
        return too_much(v);
    if (shelf_kept(&v->shelf) >= SHELF_KEPT_MAX)
        return too_many(v);
    if (pack_begin(&v->pack, &v->shelf, v->store->most - there) != 0)
        return err_set(v->err, "there is no memory for it");
    if (pieces_load(&v->shelf, &v->pieces, v->err) != 0)
        return -1;
    return seen_begin(&v->seen, &v->shelf, &v->pieces, o->sandbox, v->store->most) == 0
               ? 0
               : err_set(v->err, "there is no memory for it");
}

/* What is to go for it (order.h). If it does not, nobody hears of it: then there is no room either. */
static void make_room(const struct store *s, const struct order *o)
{
    const struct order old = {.what = ORDER_FORGET, .tenant = o->tenant, .which = o->which};
    struct dynbuf gone;
    struct err e;

    if (o->which.n == 0)
        return;
    dynbuf_init(&gone, 2 * FORM_ID);
    if (store_remove(s, &old, &gone, &e) != 0)
        log_warn("checkpoints: %s", e.text);
    dynbuf_free(&gone);
}

int store_save(const struct store *s, const struct order *o, int stream, struct dynbuf *out, struct err *e)
{
    struct saving *v = &saving;
    char id[FORM_ID + 1];
    int rc = -1, all = shelf_lock_at(s->dir);

    *v = (struct saving){
        .store = s, .order = o, .shelf = {.dir = -1, .lock = -1}, .pieces = {.fd = -1}, .pack = {.fd = -1}, .err = e};
    dynbuf_init(&v->rows, FORM_ROWS_MAX);
    make_room(s, o);
    if (all < 0)
        (void)err_errno(e, "the folder of checkpoints cannot be locked");
    else if (begin(v, id) == 0 && workspace_take(v, stream) == 0) {
        v->head.added = v->pack.bytes;
        rc = commit(v, id, all);
    }
    if (rc == 0)
        seen_write(&v->seen, &v->shelf);
    if (rc == 0)
        form_put_head(out, &v->head);
    if (rc == 0 && span_eq(o->name, FORM_OF_UNDO))
        msg_put_u64(out, v->rows.n);
    if (all >= 0)
        close(all);
    pack_drop(&v->pack);
    pieces_free(&v->pieces);
    seen_end(&v->seen);
    mark_close(&v->mark);
    dynbuf_free(&v->rows);
    shelf_close(&v->shelf);
    return rc;
}
