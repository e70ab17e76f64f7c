/* TLS to the proxy itself ends here; the front gets one end of a pair of sockets and the plain bytes pass through.
 * What one side does not read, the other may not send: each way keeps at most two buffers. */
#ifndef PROXY_LOBBY_RELAY_H
#define PROXY_LOBBY_RELAY_H

#include "proxy/lobby/lobby.h"

struct relay;
/* How many there are of this sandbox; of all, when it is empty. */
size_t relay_count(const struct lobby *l, struct span sandbox);
/* May this sandbox have one more? */
bool relay_room(const struct lobby *l, struct span sandbox);
/* Takes over the client's connection, with its unread input. Returns the front's end, or -1 (the connection is then
 * still the caller's). */
int relay_new(struct lobby *l, struct span sandbox, struct conn **client) MUSTCHECK;
/* Cuts all of them. */
void relay_free_all(struct lobby *l);

#endif
