/* Callers who bring no key: the operator, on the socket of this machine, and who is signed in at the desk, which says
 * so over its channel. Nothing else is taken for either. */
#include "broker/serve/caller.h"

#include <stdio.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/conn.h"

/* On the socket of this machine: root, and whoever the gateway belongs to; the kernel says who it is. */
void known_own(struct caller *c)
{
    unsigned uid = 0;
    if (conn_peer_pid(c->conn, &uid) < 0 || (uid != 0 && uid != c->serve->owner)) {
        caller_drop(c, false);
        return;
    }
    c->own = true;
    (void)snprintf(c->tenant, sizeof(c->tenant), "default");
    (void)snprintf(c->who, sizeof(c->who), "uid %u", uid);
}

void known_from_desk(struct serve *s, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span tenant = msg_get_span(&m, TENANT), who = msg_get_span(&m, OPERATOR);
    int fd = frame_take_fd(f, 0);
    if (msg_end(&m) != 0 || tenant.n == 0 || who.n == 0 || span_index(tenant, '\0') < tenant.n ||
        span_index(who, '\0') < who.n || fd < 0) {
        log_error("the desk said %u, which cannot be read", f->type);
        if (fd >= 0)
            close(fd);
        return;
    }
    struct caller *c = caller_add(s, SERVE_CLIENTS + SERVE_OWN_CLIENTS + SERVE_DESK_CLIENTS, fd);
    if (c == NULL)
        return;
    c->desk = true;
    (void)snprintf(c->tenant, sizeof(c->tenant), "%.*s", SPAN_FMT(tenant));
    (void)snprintf(c->who, sizeof(c->who), "%.*s", SPAN_FMT(who));
}
