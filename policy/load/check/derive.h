/* Packs: are they well made, and which hosts does a resource or an operation imply? */
#ifndef POLICY_LOAD_CHECK_DERIVE_H
#define POLICY_LOAD_CHECK_DERIVE_H

#include "policy/load/read/model.h"

void derive_check_pack(struct loader *l, const struct m_pack *k);
/* Fill t->derived (and t->ports) from its resources, or else its operations. Left empty when
 * some of them may be on any host. */
void derive_hosts(struct loader *l, const struct model *m, struct m_match *t);
/* The hosts of a pack: those of the policy's packs: entry, else its own. */
const struct items *derive_pack_hosts(const struct m_pack *k);
/* "HOST" or "HOST:PORT" (port 0: not said); NULL, or why not. */
const char *derive_host_and_port(struct span s, struct span *host, uint64_t *port);

/* The parts of an address that check_https took (check_source.h). NULL, or why it is none that a request can have. */
struct token_url {
    struct span host, path;
    uint64_t port;
};
const char *derive_token_url(struct span url, struct token_url *out);

#endif
