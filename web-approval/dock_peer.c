/* The channel to the dock: streams of its callers, each opened with a token. */
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/dock.h"
#include "web-approval/server.h"

/* --- whose token -------------------------------------------------------------- */

struct hunt {
    const struct digest *want;
    struct caller *to;
    bool found;
};

static bool copy(char *to, size_t room, struct span from)
{
    if (from.n == 0 || from.n >= room)
        return false;
    memcpy(to, from.p, from.n);
    to[from.n] = '\0';
    return true;
}

/* Each row is looked at, whichever it is: how long that takes says nothing of any. */
static int compare(void *ctx, const struct token_row *r)
{
    struct hunt *h = ctx;

    if (r->hash.n == DIGEST_BYTES && span_eq_consttime(r->hash, span_of(h->want->b, DIGEST_BYTES)))
        h->found =
            copy(h->to->key, sizeof(h->to->key), r->name) && copy(h->to->tenant, sizeof(h->to->tenant), r->tenant);
    return 0;
}

static enum dock_opened look_up(struct desk *d, const struct digest *hash, struct span box, struct caller *to)
{
    struct hunt h = {hash, to, false};
    struct arena a;
    struct err e;

    *to = (struct caller){.key = ""};
    if (box.n > 0 && (!box_name_ok(box) || !copy(to->box, sizeof(to->box), box)))
        return DOCK_UNKNOWN;
    arena_init(&a, DESK_ARENA_MAX);
    int rc = desk_store_tokens(d->store, box.n ? "access" : "key", box, &a, compare, &h, &e);
    arena_free(&a);
    if (rc != 0)
        log_warn("the dock's caller is told to come again: %s", e.text);
    return rc != 0 ? DOCK_LATER : h.found ? DOCK_OPEN : DOCK_UNKNOWN;
}

static void on_open(struct desk *d, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct digest hash;
    struct caller who;
    enum dock_opened is = DOCK_UNKNOWN;

    msg_get_digest(&m, &hash);
    struct span box = msg_get_span(&m, BOX_NAME_MAX);
    int fd = frame_take_fd(f, 0);
    if (msg_end(&m) != 0 || fd < 0) {
        log_error("the dock said %u, which cannot be read", f->type);
        if (fd >= 0)
            close(fd);
        return;
    }
    is = look_up(d, &hash, box, &who);
    if (is != DOCK_OPEN)
        close(fd);
    else if (server_adopt(d->server, fd, &who) != 0)
        is = DOCK_LATER;
    struct dynbuf *b = chan_begin(d->dock, M_DOCK_OPEN, f->id);
    if (!b)
        return;
    msg_put_u8(b, (uint8_t)is);
    msg_put_span(b, is == DOCK_OPEN ? span_str(who.key) : SPAN_NONE);
    msg_put_span(b, is == DOCK_OPEN ? span_str(who.tenant) : SPAN_NONE);
    (void)chan_commit(d->dock);
}

static void dock_frame(void *arg, struct chan *c, struct frame *f)
{
    if (f->type == M_DOCK_OPEN)
        on_open(arg, f);
    else
        log_error("the dock said %u, which it may not", f->type);
}

static void dock_gone(void *arg, struct chan *c)
{
    struct desk *d = arg;

    chan_free(&d->dock);
}

void dock_peer(struct desk *d, int fd)
{
    static const struct chan_ops ops = {dock_frame, dock_gone};

    chan_free(&d->dock);
    d->dock = chan_new(d->loop, fd, &ops, d);
}
