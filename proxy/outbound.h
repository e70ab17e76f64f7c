/* Which of a client's fields leave with a request, and what stands in their
 * place: one rule for what a ticket shows and for what the carrier sends. Pure.
 *
 *   always gone          framing, hop-by-hop, forwarding, Expect, Proxy-*, Countersign-*
 *   beside a credential  its field (in any case and number, and with any sign for '-': servers that read fields as
 *                        variables take all for one), other fields that are known to carry credentials (Cookie,
 *                        X-Api-Key and the like: they could make it another account's request), the date of a
 *                        signature, and of other methods than GET and HEAD Range and If-Range, which mean nothing
 *                        there
 *
 *   at a host of secrets Accept-Encoding becomes identity: an answer must be one that can be looked at; so where
 *                        JSON-RPC is held, whose answer is given the id of the retry that collects it */
#ifndef PROXY_OUTBOUND_H
#define PROXY_OUTBOUND_H

#include "proxy/wire.h"

enum { OUTBOUND_SLOTS_MAX = 4 }; /* as many as a signature has fields */
struct outbound {
    bool beside;                          /* a credential goes along, wherever in the request */
    struct span slot[OUTBOUND_SLOTS_MAX]; /* its fields; none: it goes elsewhere, or there is none */
    size_t nslots;
    bool secrets; /* a secret is bound to the host, or the answer has to be plain for another reason */
    bool ranges;  /* a Range means something to this method */
};
/* slot: empty for none. */
struct outbound outbound_of(const struct wire_request *r, bool beside, struct span slot, bool secrets);
/* One more field of the credential's. Past OUTBOUND_SLOTS_MAX no field of the client's leaves. */
void outbound_add_slot(struct outbound *l, struct span name);

/* Does a client's field leave? Upgrade does as what the front makes of a proper WebSocket request: in no other. */
bool outbound_keeps(const struct outbound *l, const struct http_field *f);
bool outbound_is_upgrade(const struct wire_request *r);
/* Drop from r what does not leave, and put Accept-Encoding in its place. Twice is as once. */
void outbound_apply(const struct outbound *l, struct wire_request *r);
/* A field that is known to carry a credential: in a request as it leaves, the sandbox's own. */
bool outbound_is_credential(struct span name);
/* Such a field's value for people, and for the store's readers: "Bearer, 47 bytes, SHA-256 1a2b3c4d5e6f". The first
 * word only where it cannot be the secret. */
void outbound_mask(struct span name, struct span value, struct dynbuf *out);
#define OUTBOUND_MASKED "masked: " /* before it, in the place of a value */
/* May a credential be put into this field at all? */
bool outbound_slot_ok(struct span header);

#endif
