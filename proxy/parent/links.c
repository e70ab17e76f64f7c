/* Who talks to whom. A pair of sockets for each row, made anew whenever one
 * side (re)starts; a peer that gets a new one forgets the old. */
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/parent/parent.h"

static const struct {
    enum role_id a, b;
} links[] = {
    {ROLE_FRONT, ROLE_JUDGE},    {ROLE_FRONT, ROLE_CARRIER}, {ROLE_JUDGE, ROLE_CARRIER},
    {ROLE_JUDGE, ROLE_KEEPER},   {ROLE_JUDGE, ROLE_LEDGER},  {ROLE_LOBBY, ROLE_JUDGE},
    {ROLE_KEEPER, ROLE_CARRIER}, {ROLE_KEEPER, ROLE_LEDGER}, {ROLE_CARRIER, ROLE_RESOLVER},
    {ROLE_DESK, ROLE_LEDGER},
};

static void introduce(struct child *to, const struct child *peer, int fd)
{
    struct dynbuf *b = chan_begin(to->chan, M_PEER, 0);
    if (b != NULL) {
        msg_put_u8(b, (uint8_t)peer->role);
        msg_put_u64(b, peer->instance);
        msg_put_span(b, span_str(peer->info));
        if (chan_commit_fd(to->chan, fd) != 0)
            log_warn("cannot introduce the %s to the %s", role_name(peer->role), role_name(to->role));
    }
    close(fd);
}

static void link_two(struct child *a, struct child *b)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
        log_error("no socketpair for %s and %s", role_name(a->role), role_name(b->role));
        return;
    }
    introduce(a, b, fds[0]);
    introduce(b, a, fds[1]);
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
        if (o != c && o->chan != NULL && !o->leaving && linked(c->role, o->role))
            link_two(c, o);
}
