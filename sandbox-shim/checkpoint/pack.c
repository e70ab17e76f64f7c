#include "sandbox-shim/checkpoint/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common/file.h"
#include "common/log.h"

enum {
    FIRST_SLOTS = 4096,
    FAST = 1,
    SAMPLE = 48 * 1024, /* bytes that are compressed to see whether a piece shrinks: it does */
    SAVES = 32,         /* if one of so many of them is saved; */
    ASIDE = 4999        /* the second sample lies so far behind the middle, where few patterns begin anew */
};

static void put_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* --- which there are ------------------------------------------------------------------ */

/* Names are as good as random. */
static struct piece *slot_of(const struct pieces *all, const uint8_t name[FORM_MAC])
{
    size_t at = (size_t)get_u32(name) & (all->nslots - 1);

    while (all->slot[at].there && memcmp(all->slot[at].name, name, FORM_MAC) != 0)
        at = (at + 1) & (all->nslots - 1);
    return &all->slot[at];
}

struct piece *pieces_find(const struct pieces *all, const uint8_t name[FORM_MAC])
{
    struct piece *p = all->nslots > 0 ? slot_of(all, name) : NULL;

    return p != NULL && p->there ? p : NULL;
}

int pieces_want(struct pieces *all, struct span rows)
{
    struct msg_in m = msg_in(rows);
    struct form_row r;
    int rc = 0;

    while (m.rest.n > 0) {
        if (form_get_row(&m, &r) != 0)
            return -1;
        for (size_t i = 0; i < r.pieces.n; i += FORM_MAC) {
            struct piece *p = pieces_find(all, r.pieces.p + i);
            if (p != NULL)
                p->wanted = true;
            else
                rc = 1;
        }
    }
    return rc;
}

static int grow(struct pieces *all)
{
    struct pieces more = *all;

    more.nslots = all->nslots > 0 ? 2 * all->nslots : FIRST_SLOTS;
    more.slot = calloc(more.nslots, sizeof(*more.slot));
    if (more.slot == NULL)
        return -1;
    for (size_t i = 0; i < all->nslots; i++)
        if (all->slot[i].there)
            *slot_of(&more, all->slot[i].name) = all->slot[i];
    free(all->slot);
    *all = more;
    return 0;
}

int pieces_add(struct pieces *all, const struct piece *p)
{
    if (all->n >= PIECES_MAX || (all->n >= all->nslots / 2 && grow(all) != 0))
        return -1;
    struct piece *to = slot_of(all, p->name);
    all->n += !to->there;
    *to = *p;
    to->there = true;
    return 0;
}

static int scan(struct pieces *all, int fd, uint64_t size, uint32_t pack)
{
    uint8_t head[FORM_PIECE_HEAD];
    uint64_t at = FORM_MAGIC;

    if (pread(fd, head, FORM_MAGIC, 0) != FORM_MAGIC || memcmp(head, FORM_PACK.p, FORM_MAGIC) != 0)
        return -1;
    while (at < size) {
        struct piece p = {.pack = pack, .at = at + FORM_PIECE_HEAD};
        if (pread(fd, head, sizeof(head), (off_t)at) != (ssize_t)sizeof(head))
            return -1;
        memcpy(p.name, head, FORM_MAC);
        p.size = get_u32(head + FORM_MAC);
        p.stored = get_u32(head + FORM_MAC + 4);
        if (p.size == 0 || p.size > FORM_PIECE || p.stored == 0 || p.stored > p.size || p.stored > size - p.at ||
            p.at > size)
            return -1;
        if (pieces_find(all, p.name) == NULL && pieces_add(all, &p) != 0) {
            errno = ENOMEM;
            return -2;
        }
        at = p.at + p.stored;
    }
    return 0;
}

struct load {
    const struct shelf *shelf;
    struct pieces *all;
};

static int load_pack(void *arg, const char *name)
{
    struct load *l = arg;
    struct pieces *all = l->all;
    struct stat st;

    if (strlen(name) != SHELF_FILE || all->npacks >= PACKS_MAX)
        return 0;
    int rc = -1, fd = openat(l->shelf->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        memcpy(all->pack[all->npacks], name, SHELF_FILE + 1);
        all->bytes[all->npacks] = (uint64_t)st.st_size;
        rc = scan(all, fd, (uint64_t)st.st_size, (uint32_t)all->npacks++);
    }
    if (fd >= 0)
        close(fd);
    if (rc == -1)
        log_warn("the pack %s of checkpoints is damaged: what is behind that place cannot be read", name);
    return rc == -2 ? -1 : 0;
}

int pieces_load(const struct shelf *s, struct pieces *all, struct err *e)
{
    struct load l = {s, all};

    *all = (struct pieces){.fd = -1};
    all->pack = calloc(PACKS_MAX, sizeof(*all->pack));
    all->bytes = calloc(PACKS_MAX, sizeof(*all->bytes));
    if (all->pack == NULL || all->bytes == NULL || grow(all) != 0)
        return err_set(e, "there is no memory for it");
    return shelf_each(s->dir, "ck-", ".pack", load_pack, &l) == 0
               ? 0
               : err_errno(e, "the packs of checkpoints cannot be read");
}

void pieces_free(struct pieces *all)
{
    if (all->open > 0)
        close(all->fd);
    free(all->slot);
    free(all->pack);
    free(all->bytes);
    *all = (struct pieces){.fd = -1};
}

int piece_read(const struct shelf *s, struct pieces *all, const struct piece *p, uint8_t *out)
{
    static uint8_t stored[FORM_PIECE];
    uint8_t mac[FORM_MAC];
    uLongf n = p->size;

    if (all->open != p->pack + 1) {
        if (all->open > 0)
            close(all->fd);
        all->fd = openat(s->dir, all->pack[p->pack], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        all->open = all->fd >= 0 ? p->pack + 1 : 0;
    }
    if (all->open == 0 || pread(all->fd, stored, p->stored, (off_t)p->at) != (ssize_t)p->stored)
        return -1;
    if (p->stored == p->size)
        memcpy(out, stored, p->size);
    else if (uncompress(out, &n, stored, p->stored) != Z_OK || n != p->size)
        return -1;
    shelf_mac(s, 'p', span_of(out, p->size), SPAN_NONE, mac);
    return memcmp(mac, p->name, FORM_MAC) == 0 ? 0 : -1;
}

/* --- one that is written ----------------------------------------------------------------- */

int pack_begin(struct pack_out *o, const struct shelf *s, uint64_t most)
{
    struct id id;
    char text[ID_TEXT + 1];

    *o = (struct pack_out){.shelf = s, .fd = -1, .most = most};
    if (id_new(&id) != 0 || (o->room = malloc(FORM_PIECE_HEAD + compressBound(FORM_PIECE))) == NULL)
        return -1;
    id_text(&id, text);
    (void)snprintf(o->tmp, sizeof(o->tmp), "tmp-%s", text);
    return 0;
}

/* room has its stored bytes behind the place of its head. */
static int put(struct pack_out *o, struct piece *p)
{
    size_t n = FORM_PIECE_HEAD + p->stored, magic = o->fd < 0 ? FORM_MAGIC : 0;

    if (n + magic > o->most - o->bytes)
        return 1;
    if (o->fd < 0) {
        o->fd = openat(o->shelf->dir, o->tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (o->fd < 0 || file_write_fd(o->fd, FORM_PACK) != 0)
            return -1;
        o->bytes = FORM_MAGIC;
    }
    memcpy(o->room, p->name, FORM_MAC);
    put_u32(o->room + FORM_MAC, p->size);
    put_u32(o->room + FORM_MAC + 4, p->stored);
    p->at = o->bytes + FORM_PIECE_HEAD;
    if (file_write_fd(o->fd, span_of(o->room, n)) != 0)
        return -1;
    o->bytes += n;
    return 0;
}

/* Most of what is large is compressed already or has no pattern, and to find that out from all of it takes longer
 * than all else: the beginning tells, where a pattern has room, and another place that few patterns share. */
static bool shrinks(uint8_t *room, struct span piece)
{
    if (piece.n <= 4 * SAMPLE)
        return true;
    for (size_t half = 0; half < 2; half++) {
        uLongf n = compressBound(SAMPLE);
        struct span part = span_first(span_from(piece, half * (piece.n / 2 + ASIDE)), SAMPLE);
        if (compress2(room, &n, part.p, part.n, FAST) == Z_OK && n < part.n - part.n / SAVES)
            return true;
    }
    return false;
}

int pack_put(struct pack_out *o, const uint8_t name[FORM_MAC], struct span piece, struct piece *where)
{
    uLongf n = compressBound(FORM_PIECE);
    uint8_t *at = o->room + FORM_PIECE_HEAD;

    *where = (struct piece){.size = (uint32_t)piece.n};
    memcpy(where->name, name, FORM_MAC);
    if (!shrinks(at, piece) || compress2(at, &n, piece.p, piece.n, FAST) != Z_OK || n >= piece.n) {
        memcpy(at, piece.p, piece.n);
        n = piece.n;
    }
    where->stored = (uint32_t)n;
    return put(o, where);
}

int pack_copy(struct pack_out *o, const struct piece *p, int from, struct piece *where)
{
    *where = *p;
    if (pread(from, o->room + FORM_PIECE_HEAD, p->stored, (off_t)p->at) != (ssize_t)p->stored)
        return -1;
    return put(o, where);
}

int pack_sync(const struct pack_out *o)
{
    return o->fd < 0 ? 0 : fsync(o->fd);
}

int pack_name(struct pack_out *o, const char *id)
{
    char name[SHELF_FILE + 1];

    if (o->fd < 0)
        return 0;
    (void)snprintf(name, sizeof(name), "%s.pack", id);
    if (renameat(o->shelf->dir, o->tmp, o->shelf->dir, name) != 0)
        return -1;
    close(o->fd);
    o->fd = -1;
    return fsync(o->shelf->dir);
}

void pack_drop(struct pack_out *o)
{
    if (o->fd >= 0) {
        close(o->fd);
        (void)unlinkat(o->shelf->dir, o->tmp, 0);
    }
    free(o->room);
    *o = (struct pack_out){.fd = -1};
}
