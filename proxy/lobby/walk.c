/* The lobby's row of the walk (proxy/walk.h), IDENTIFY: the steps of a handshake, until it is known whose it is. */
#include "proxy/lobby/pending.h"

typedef enum walk_next step_fn(struct pending *g);
static step_fn *const rows[PENDING_STEPS] = {
    [PENDING_PROXY] = pending_proxy,       [PENDING_TLS] = NULL, /* there the connection reads for itself */
    [PENDING_GREETING] = pending_greeting, [PENDING_LOGIN] = pending_login,
    [PENDING_HEAD] = pending_head,
};

void pending_go_on(struct pending *g)
{
    enum walk_next said = WALK_NEXT;
    while (said == WALK_NEXT)
        said = !g->asked && rows[g->step] != NULL ? rows[g->step](g) : WALK_WAIT;
}
