/* The lobby's doors, and the frames it takes. */
#include "proxy/lobby/lobby.h"

#include <errno.h>
#include <unistd.h>

#include "common/log.h"
#include "proxy/lobby/pending.h"
#include "proxy/lobby/relay.h"

enum { SAY_AGAIN_MS = 10 * 1000, ACCEPTS_A_TURN = 32, SOURCES = 1024 };

static const struct lobby_limits usual = {
    .pending = LOBBY_PENDING_MAX, .head_ms = 10 * 1000, .close_ms = 2 * 1000, .rest_ms = 100};

static void doors(struct lobby *l)
{
    for (size_t i = 0; i < l->ndoors; i++)
        watch_set(l->door[i]->watch, l->resting ? 0 : WATCH_READ);
}

/* Without descriptors or memory a listener stays ready for ever: look away for a while. */
static void rest(struct lobby *l, const char *why)
{
    uint64_t now = loop_now(l->loop);
    if (l->said == 0 || now - l->said > SAY_AGAIN_MS) {
        log_warn("cannot accept connections: %s; trying again until it can be done", why);
        l->said = now;
    }
    l->resting = true;
    timer_set(l->rest, l->limits.rest_ms);
    doors(l);
}

static void on_rested(void *arg)
{
    struct lobby *l = arg;
    l->resting = false;
    doors(l);
}

/* Sources are told apart by their address; of IPv6 by the 64 bits that one subscriber has. */
static unsigned source_of(const struct pending *g)
{
    struct addr a = addr_unwrap(&g->from);
    size_t n = addr_bytes(&a) < 8 ? addr_bytes(&a) : 8;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ a.b[i]) * 16777619u;
    return h % SOURCES;
}

static bool is_silent(const struct pending *g)
{
    return g->tries == 0 && g->step != PENDING_LOGIN && conn_input(g->conn).n == 0;
}

/* Nobody's sandbox is known yet, so room is shared by source: when it is full, the source that has most of it makes
 * room, first with who has said nothing for longest. Who has said his word and waits for the judge stays. */
static struct pending *who_makes_room(struct lobby *l)
{
    uint16_t of[SOURCES] = {0};
    struct pending *goes = NULL;
    for (struct pending *g = l->oldest; g != NULL; g = g->newer)
        of[source_of(g)]++;
    for (struct pending *g = l->oldest; g != NULL; g = g->newer) {
        unsigned here = of[source_of(g)], best = goes ? of[source_of(goes)] : 0;
        if (!g->asked && (here > best || (here == best && is_silent(g) && !is_silent(goes))))
            goes = g;
    }
    return goes;
}

static void on_knock(void *arg, unsigned ready)
{
    struct lobby_door *door = arg;
    struct lobby *l = door->lobby;
    (void)ready;
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        bool full = l->npending >= l->limits.pending;
        struct pending *goes = full ? who_makes_room(l) : NULL;
        if (full && goes == NULL) {
            rest(l, "the judge is asked about as many as there is room for");
            return;
        }
        int fd = listen_accept(door->fd);
        if (fd < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                rest(l, strerror(errno));
            return;
        }
        if (goes != NULL) {
            lobby_refused(l, goes->door, "lobby-full");
            pending_free(goes);
        }
        pending_new(door, fd);
    }
}

static void from_judge(void *arg, struct chan *c, struct frame *f)
{
    struct lobby *l = arg;
    struct msg_in m = msg_in(f->payload);
    uint8_t known = msg_get_u8(&m);
    struct span sandbox = msg_get_span(&m, 255);
    struct pending *g = l->oldest;
    (void)c;
    while (g != NULL && g->asked != f->id)
        g = g->newer;
    if (f->id == 0 || g == NULL || f->type != M_IDENTITY)
        return; /* it left */
    bool bad = msg_end(&m) != 0;
    if (!bad && known == IDENTITY_LATER)
        pending_later(g);
    else if (bad || known != IDENTITY_KNOWN || sandbox.n == 0)
        pending_unknown(g);
    else
        pending_known(g, sandbox);
}

static void judge_gone(void *arg, struct chan *c)
{
    struct lobby *l = arg;
    (void)c;
    chan_free(&l->judge);
    for (struct pending *g = l->oldest, *next; g != NULL; g = next) {
        next = g->newer;
        if (g->asked)
            pending_later(g);
    }
}

/* ---- what was turned away ---- */

static void tell(void *arg)
{
    struct lobby *l = arg;
    struct dynbuf *b = l->parent != NULL ? chan_begin(l->parent, M_REFUSED, 0) : NULL;
    l->telling = false;
    if (b == NULL)
        return; /* counted on, and told with the next */
    wire_put_refusals(b, &l->refused);
    (void)chan_commit(l->parent);
    l->refused.n = 0;
}

void lobby_refused(struct lobby *l, const struct lobby_door *d, const char *code)
{
    refusals_count(&l->refused, span_str(d->name), span_str(code), 1);
    if (!l->telling)
        timer_set(l->tell, REFUSALS_EVERY_MS);
    l->telling = true;
}

static struct lobby_door *door_named(struct lobby *l, const char *name)
{
    for (size_t i = 0; i < l->ndoors; i++)
        if (strcmp(l->door[i]->name, name) == 0)
            return l->door[i];
    return NULL;
}

void lobby_frame(void *arg, struct frame *f)
{
    struct lobby *l = arg;
    struct lobby_door *door = f->type == M_LISTEN ? door_new(l, f) : NULL;
    struct lobby_door *old = door != NULL ? door_named(l, door->name) : NULL;
    if (old != NULL) {
        door_change(old, door);
    } else if (door != NULL && l->ndoors == LOBBY_DOORS_MAX) {
        log_error("listener %s is not opened: there are more than %d", door->name, LOBBY_DOORS_MAX);
        door_free(&door);
    }
    if (old != NULL || door == NULL)
        return;
    if ((door->watch = watch_new(l->loop, door->fd, 0, on_knock, door)) == NULL)
        log_die("out of memory");
    l->door[l->ndoors++] = door;
    doors(l);
}

void lobby_peer(void *arg, unsigned peer, uint64_t instance, struct span info, int fd)
{
    static const struct chan_ops ops = {from_judge, judge_gone};
    struct lobby *l = arg;
    (void)instance, (void)info;
    if (peer != ROLE_JUDGE) {
        close(fd);
        return;
    }
    if (l->judge != NULL)
        judge_gone(l, l->judge);
    if ((l->judge = chan_new(l->loop, fd, &ops, l)) == NULL)
        log_die("out of memory");
}

int lobby_init(struct lobby *l, struct loop *loop)
{
    *l = (struct lobby){.loop = loop, .limits = usual};
    l->rest = timer_new(loop, on_rested, l);
    l->tell = timer_new(loop, tell, l);
    return l->rest == NULL || l->tell == NULL ? -1 : 0;
}

void lobby_done(struct lobby *l)
{
    while (l->newest != NULL)
        pending_free(l->newest);
    relay_free_all(l);
    for (size_t i = 0; i < l->ndoors; i++)
        door_free(&l->door[i]);
    l->ndoors = 0;
    timer_free(&l->rest);
    timer_free(&l->tell);
    chan_free(&l->judge);
}
