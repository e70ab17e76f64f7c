/* Which changes the states of a connection and of the exchange on it may go through. */
#include "common/state.h"

#include "proxy/front/client.h"

#define END (STATE(CLIENT_CLOSING) | STATE(CLIENT_GONE))
static const struct state_row clients[] = {
    [CLIENT_GONE] = {"gone", STATE(CLIENT_FIRST) | STATE(CLIENT_STEP) | STATE(CLIENT_SOCKS) | STATE(CLIENT_LOOK) |
                                 STATE(CLIENT_PROXY)},
    [CLIENT_FIRST] = {"first", STATE(CLIENT_PROXY) | STATE(CLIENT_LOOK) | END},
    [CLIENT_STEP] = {"step", STATE(CLIENT_PROXY) | END},
    [CLIENT_SOCKS] = {"socks", STATE(CLIENT_LOOK) | END},
    [CLIENT_LOOK] = {"look", STATE(CLIENT_LEAF) | STATE(CLIENT_HANDSHAKE) | STATE(CLIENT_PLAIN) | END},
    [CLIENT_PLAIN] = {"plain", END},
    [CLIENT_PROXY] = {"proxy", STATE(CLIENT_LEAF) | END},
    [CLIENT_LEAF] = {"leaf", STATE(CLIENT_LOOK) | STATE(CLIENT_HANDSHAKE) | END},
    [CLIENT_HANDSHAKE] = {"handshake", STATE(CLIENT_TUNNEL) | END},
    [CLIENT_TUNNEL] = {"tunnel", END},
    [CLIENT_CLOSING] = {"closing", END},
};
static const struct state_row exchanges[] = {
    [EXCHANGE_NONE] = {"none", STATE(EXCHANGE_ASKED)},
    [EXCHANGE_ASKED] = {"asked", STATE(EXCHANGE_ANSWERING) | STATE(EXCHANGE_SWITCHED) | STATE(EXCHANGE_NONE)},
    [EXCHANGE_ANSWERING] = {"answering", STATE(EXCHANGE_NONE)},
    [EXCHANGE_SWITCHED] = {"switched", STATE(EXCHANGE_NONE)},
};

/* Nothing more is read or passed on, and what was cannot pass for the whole. */
static void broken(struct client *c)
{
    c->reset = true;
    client_wait(c, WAIT_CLOSE);
    c->state = CLIENT_CLOSING;
}

void client_change(struct client *c, enum client_state to)
{
    if (state_may(STATE_KIND("client", clients), client_asks(c) ? c->x.xid : 0, c->state, to))
        c->state = to;
    else
        broken(c);
}

void client_exchange_change(struct client *c, enum exchange_state to)
{
    if (state_may(STATE_KIND("exchange", exchanges), c->x.xid, c->x.state, to))
        c->x.state = to;
    else
        broken(c);
}
