/* The channels to the dock and to the broker's processes: streams of the dock's callers, each opened with a token,
 * and of the broker's turns, each of a tenant. */
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/broker/broker.h"
#include "web-approval/broker/tally.h"
#include "web-approval/dock.h"
#include "web-approval/server.h"
#include "web-approval/talks/talks.h"

/* One of them. */
struct dock_link {
    struct desk *desk;
    struct chan *chan;
    bool broker;
    uint64_t instance;
    struct dock_link *next;
};

/* Of the broker's processes the first one serves (broker/role/main.c). */
static bool serves(const struct dock_link *l)
{
    return l->broker && l->instance == 0;
}

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

/* How often a sandbox was restored is read before the token: one that is good after that is none of before. */
static enum dock_opened look_up(struct desk *d, const struct digest *hash, struct span box, struct caller *to)
{
    struct hunt h = {hash, to, false};
    struct sandbox_row row;
    struct arena a;
    struct err e;

    *to = (struct caller){.key = ""};
    if (box.n > 0 && (!box_name_ok(box) || !copy(to->box, sizeof(to->box), box)))
        return DOCK_UNKNOWN;
    arena_init(&a, DESK_ARENA_MAX);
    int rc = box.n ? desk_store_sandbox(d->store, box, &a, &row, &e) : 0;
    to->restored = rc == 1 ? row.restored : 0;
    rc = rc < 0 ? rc : desk_store_tokens(d->store, box.n ? "access" : "key", box, &a, compare, &h, &e);
    arena_free(&a);
    if (rc != 0)
        log_warn("the dock's caller is told to come again: %s", e.text);
    return rc != 0 ? DOCK_LATER : h.found ? DOCK_OPEN : DOCK_UNKNOWN;
}

static void answer(struct dock_link *l, uint64_t id, enum dock_opened is, const struct caller *who)
{
    struct dynbuf *b = chan_begin(l->chan, M_DOCK_OPEN, id);

    if (!b)
        return;
    msg_put_u8(b, (uint8_t)is);
    msg_put_span(b, is == DOCK_OPEN ? span_str(who->key) : SPAN_NONE);
    msg_put_span(b, is == DOCK_OPEN ? span_str(who->tenant) : SPAN_NONE);
    (void)chan_commit(l->chan);
}

static void adopt(struct dock_link *l, uint64_t id, int fd, enum dock_opened is, const struct caller *who)
{
    if (is != DOCK_OPEN)
        close(fd);
    else if (server_adopt(l->desk->server, fd, who) != 0)
        is = DOCK_LATER;
    answer(l, id, is, who);
}

static void on_open(struct dock_link *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct digest hash;
    struct caller who;

    msg_get_digest(&m, &hash);
    struct span box = msg_get_span(&m, BOX_NAME_MAX);
    int fd = frame_take_fd(f, 0);
    if (msg_end(&m) != 0 || fd < 0) {
        log_error("the dock said %u, which cannot be read", f->type);
        if (fd >= 0)
            close(fd);
        return;
    }
    enum dock_opened is = look_up(l->desk, &hash, box, &who);
    adopt(l, f->id, fd, is, &who);
}

static void on_broker_open(struct dock_link *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span tenant = msg_get_span(&m, CALLER_TENANT);
    struct caller who;
    int fd = frame_take_fd(f, 0);

    if (msg_end(&m) != 0 || fd < 0) {
        log_error("the broker said %u, which cannot be read", f->type);
        if (fd >= 0)
            close(fd);
        return;
    }
    enum dock_opened is = broker_tenant(l->desk, tenant, &who);
    adopt(l, f->id, fd, is, &who);
}

static void on_broker_who(struct dock_link *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct digest hash;
    struct dynbuf *b;

    msg_get_digest(&m, &hash);
    if (msg_end(&m) != 0 || !(b = chan_begin(l->chan, M_BROKER_WHO, f->id)))
        return;
    broker_who(l->desk, &hash, b);
    (void)chan_commit(l->chan);
}

static void dock_frame(void *arg, struct chan *c, struct frame *f)
{
    struct dock_link *l = arg;

    if (f->type == M_DOCK_OPEN && !l->broker)
        on_open(l, f);
    else if (f->type == M_BROKER_OPEN && l->broker)
        on_broker_open(l, f);
    else if (f->type == M_BROKER_WHO && l->broker)
        on_broker_who(l, f);
    else if (((f->type == M_BROKER_SEEN || f->type == M_BROKER_SPANS || f->type == M_BROKER_METRICS) && l->broker) ||
             (f->type == M_BROKER_WAITS && serves(l)))
        broker_tally_frame(l->desk, f);
    else
        log_error("the %s said %u, which it may not", l->broker ? "broker" : "dock", f->type);
}

static void dock_gone(void *arg, struct chan *c)
{
    struct dock_link *l = arg;

    if (serves(l)) {
        talks_peer(l->desk, NULL);
        broker_tally_unsure(l->desk->tally);
    }
    for (struct dock_link **at = &l->desk->docks; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    chan_free(&l->chan);
    free(l);
}

void dock_peer(struct desk *d, bool broker, uint64_t instance, int fd)
{
    static const struct chan_ops ops = {dock_frame, dock_gone};
    struct dock_link *l = d->docks;

    while (l && (l->broker != broker || l->instance != instance))
        l = l->next;
    if (l)
        dock_gone(l, l->chan);
    if (!(l = calloc(1, sizeof(*l)))) {
        close(fd);
        return;
    }
    *l = (struct dock_link){.desk = d, .broker = broker, .instance = instance, .next = d->docks};
    d->docks = l;
    l->chan = chan_new(d->loop, fd, &ops, l);
    if (!l->chan) {
        d->docks = l->next;
        free(l);
    } else if (serves(l)) {
        talks_peer(d, l->chan);
    }
}
