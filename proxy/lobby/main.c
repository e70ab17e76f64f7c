/* The lobby's start-up. */
#include "proxy/lobby/lobby.h"

#include "common/log.h"
#include "common/role.h"

static struct lobby lobby;

int main(void)
{
    static const struct role_ops ops = {.frame = lobby_frame, .peer = lobby_peer};
    static const struct wall wall = {.calls = WALL_ACCEPT};
    struct loop *loop = loop_new();
    if (loop == NULL)
        log_die("no event loop");
    struct role *role = role_start("lobby", loop, &ops, &lobby);
    if (lobby_init(&lobby, loop) != 0)
        log_die("out of memory");
    lobby.parent = role_parent(role);
    role_confine(role, &wall);
    role_ready(role);
    return loop_run(loop) == 0 ? 0 : 1;
}
