/* What a request is between front and judge: in the one spelling of each of its parts, without the fields that are
 * between client and gateway. The front makes it so, the judge believes nobody. */
#ifndef PROXY_CANONICAL_H
#define PROXY_CANONICAL_H

#include "proxy/wire.h"

/* Is a field of this name never sent on: what would tell an origin another method than the one decided, or is between
 * client and gateway? */
bool canonical_never_leaves(struct span name);
/* Does an upgrade to a WebSocket make fields of this name anew: Sec-WebSocket-* but the subprotocols? */
bool canonical_made_anew(struct span name);

/* Is every field that may be a credential ASCII alone? In others bytes above it stand as they came, in whatever
 * charset; nobody here decodes them. */
bool canonical_credentials(const struct wire_request *r);

/* A host that its canonical form does not change? */
bool canonical_host(struct span host);
/* Is it one that a front may have made: host, path and query that their canonical forms do not change, no query where
 * there is none, a method and field names that are tokens, values without control characters, credentials in ASCII,
 * no field that does not leave, and no Upgrade but one to a WebSocket? */
enum canonical { CANONICAL_NOT = 0, CANONICAL_NO_MEMORY, CANONICAL };
enum canonical canonical_request(const struct wire_request *r) MUSTCHECK;

#endif
