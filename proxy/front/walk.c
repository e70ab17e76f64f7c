/* The front's rows of the walk (proxy/walk.h), and which of them a connection stands at. */
#include "proxy/front/client.h"

typedef enum walk_next step_fn(struct client *c, struct http_err *e);
static step_fn *const rows[WALK_END] = {
    [WALK_ACCEPT] = step_accept, [WALK_INTERCEPT] = step_intercept, [WALK_PARSE] = step_parse};

static enum walk_step step_of(const struct client *c)
{
    switch (c->state) {
    case CLIENT_FIRST:
    case CLIENT_STEP:
    case CLIENT_SOCKS: return WALK_ACCEPT;
    case CLIENT_LOOK: return WALK_INTERCEPT;
    case CLIENT_PLAIN:
    case CLIENT_PROXY:
    case CLIENT_TUNNEL: return WALK_PARSE;
    case CLIENT_LEAF: /* the judge is to speak next, or TLS reads for itself */
    case CLIENT_HANDSHAKE:
    case CLIENT_CLOSING:
    case CLIENT_GONE: break;
    }
    return WALK_NONE;
}

void client_go_on(struct client *c)
{
    struct http_err e;
    enum walk_next said = WALK_NEXT;
    if (c->state == CLIENT_CLOSING)
        conn_consume(c->conn, conn_input(c->conn).n);
    while (said == WALK_NEXT) {
        enum walk_step step = step_of(c);
        e = (struct http_err){400, walk_code(step), "what came cannot be understood"};
        said = step == WALK_NONE ? WALK_WAIT : rows[step](c, &e);
    }
    if (said == WALK_FAIL)
        front_refuse(c, e.status, e.code, e.why);
}
