/* The lobby's start-up. */
#include "proxy/lobby/lobby.h"

#include "common/log.h"
#include "common/net/tls.h"
#include "common/role/role.h"

static struct lobby lobby;

int main(void)
{
    static const struct role_ops ops = {.frame = lobby_frame, .peer = lobby_peer};
    static const struct wall wall = {.calls = WALL_ACCEPT | WALL_PAIR};
    struct err e = {{0}};
    struct loop *loop = loop_new();
    if (loop == NULL)
        log_die("no event loop");
    struct role *role = role_start("lobby", loop, &ops, &lobby);
    if (lobby_init(&lobby, loop) != 0)
        log_die("out of memory");
    struct tls_server *first = tls_server_new(&e); /* the library sets itself up while it still may */
    if (first == NULL)
        log_die("%s", e.text);
    tls_server_free(&first);
    lobby.parent = role_parent(role);
    role_confine(role, &wall);
    role_ready(role);
    return loop_run(loop) == 0 ? 0 : 1;
}
