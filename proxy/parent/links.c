/* Who talks to whom. A pair of sockets for each row, made anew whenever one
 * side (re)starts; a peer that gets a new one forgets the old. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/parent/parent.h"

static const struct {
    enum role_id a, b;
} links[] = {
    {ROLE_FRONT, ROLE_JUDGE},    {ROLE_FRONT, ROLE_CARRIER},  {ROLE_JUDGE, ROLE_CARRIER},
    {ROLE_JUDGE, ROLE_KEEPER},   {ROLE_JUDGE, ROLE_LEDGER},   {ROLE_LOBBY, ROLE_JUDGE},
    {ROLE_KEEPER, ROLE_CARRIER}, {ROLE_KEEPER, ROLE_LEDGER},  {ROLE_CARRIER, ROLE_RESOLVER},
    {ROLE_DESK, ROLE_LEDGER},    {ROLE_KEEPER, ROLE_FETCHER}, {ROLE_FETCHER, ROLE_RESOLVER},
    {ROLE_DESK, ROLE_WARDEN},    {ROLE_WARDEN, ROLE_LEDGER},  {ROLE_DOCK, ROLE_DESK},
    {ROLE_BROKER, ROLE_DESK},    {ROLE_DESK, ROLE_KEEPER},
};

static void introduce(struct child *to, const struct child *peer, int fd, uint64_t link)
{
    struct dynbuf *b = chan_begin(to->chan, M_PEER, 0);
    char info[sizeof(peer->info) + CELL_OWN];
    snprintf(info, sizeof(info), "%s%s", peer->info, peer->own);
    if (b != NULL) {
        msg_put_u8(b, (uint8_t)peer->role);
        msg_put_u64(b, peer->instance);
        msg_put_span(b, span_str(info));
        msg_put_u64(b, link);
        if (chan_commit_fd(to->chan, fd) != 0)
            log_warn("cannot introduce the %s to the %s", role_name(peer->role), role_name(to->role));
    }
    close(fd);
}

enum { LINK_BYTES = 256 * 1024 };

static void link_two(struct child *a, struct child *b)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
        log_error("no socketpair for %s and %s", role_name(a->role), role_name(b->role));
        return;
    }
    for (int i = 0; i < 2; i++) /* as much as a window of a body; the kernel's own is less, and less is no harm */
        if (setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &(int){LINK_BYTES}, sizeof(int)) != 0)
            log_debug("the channel between the %s and the %s keeps its size", role_name(a->role), role_name(b->role));
    a->link[b->role] = b->link[a->role] =
        ++a->parent->links; /* of fronts a role has many: the number is the front's */
    introduce(a, b, fds[0], a->link[b->role]);
    introduce(b, a, fds[1], a->link[b->role]);
}

/* One whose channel to us has ended is about to be started anew, and meets its peers then. */
static bool can_hear(const struct child *c)
{
    return c->chan != NULL && !chan_is_lost(c->chan) && !c->leaving;
}

enum { HEAL_MS = 200 }; /* so that a channel that breaks at once is not all there is to do, and a death is heard of */

static void heal(void *arg)
{
    struct parent *p = arg;
    for (struct child *c = p->children; c != NULL && !p->stopping; c = c->next)
        for (unsigned r = 0; r < ROLE_COUNT; r++) {
            struct child *o = c->broken[r] != 0 ? parent_child(p, (enum role_id)r, 0) : NULL;
            bool still = c->broken[r] == c->link[r]; /* else one of them was started anew, and linked */
            c->broken[r] = 0;
            if (o == NULL || !still || !can_hear(c) || !can_hear(o))
                continue;
            log_warn("the channel between the %s and the %s broke; they get another one", role_name(c->role),
                     role_name(o->role));
            link_two(c, o);
        }
}

void parent_link_lost(struct parent *p, struct child *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint8_t role = msg_get_u8(&m);
    uint64_t instance = msg_get_u64(&m), link = msg_get_u64(&m);
    struct child *o = parent_child(p, (enum role_id)role, instance);
    if (msg_end(&m) != 0 || role >= ROLE_COUNT || o == NULL)
        return;
    if (o->role == ROLE_FRONT || o->role == ROLE_BROKER) /* of which there are many */
        o->broken[c->role] = link;
    else
        c->broken[o->role] = link;
    if (p->heal == NULL && (p->heal = timer_new(p->loop, heal, p)) == NULL)
        log_die("out of memory");
    timer_set(p->heal, HEAL_MS);
}

static bool linked(enum role_id a, enum role_id b)
{
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        if ((links[i].a == a && links[i].b == b) || (links[i].a == b && links[i].b == a))
            return true;
    return false;
}

void parent_link_all(struct parent *p, struct child *c)
{
    for (struct child *o = p->children; o != NULL; o = o->next)
        if (o != c && can_hear(o) && linked(c->role, o->role))
            link_two(c, o);
}
