/* A lease that its holder made good for less, without asking anybody: a sub-agent or a tool gets it in place of the
 * whole one, and what it is good for stands in it.
 *
 *   cs_TAG.OF.LAYER.LAYER.MAC       OF: SHA-256 of the lease's text; all but cs_TAG in hex, lower case
 *
 * MAC: HMAC-SHA256 with what this is for over the lease's text, with the result over the first layer, with that over
 * the next. So who has one can narrow it further, nobody can take a layer away who has not the lease's text, and the
 * keeper, which derives that text, can say that nobody did. The form is the gateway's own, whatever the lease's is; a
 * pair has none, for what is signed with it says nothing else. Pure. */
#ifndef COMMON_LEASE_NARROWED_H
#define COMMON_LEASE_NARROWED_H

#include "common/dynbuf.h"
#include "common/lease/wire_lease.h"

enum {
    LEASE_NARROWED_MAX = 4096, /* characters of one */
    LEASE_NARROWED_LAYERS = 4, /* that it has */
    LEASE_NARROWED_BYTES = LEASE_NARROWED_MAX / 2,
};

struct lease_narrowed {
    struct span tag;    /* cs_TAG */
    struct digest of;   /* of the lease's text */
    struct span layers; /* as they stand in the text, with dots between them; of at most LEASE_NARROWED_LAYERS */
    struct digest mac;
};

/* Borrows text. -1: it is none. That nobody changed it is not looked at here. */
int lease_narrowed_read(struct span text, struct lease_narrowed *out) MUSTCHECK;
/* The first of *layers, which it is taken off. Nothing that must be counted is in it. bytes: LEASE_NARROWED_BYTES,
 * which *out points into. expires_ms: Unix time; 0: as the lease. -1: it is none. */
int lease_narrowed_layer(struct span *layers, uint8_t *bytes, struct wire_layer *out, uint64_t *expires_ms) MUSTCHECK;
/* What its MAC must be, by the lease's own text. -1: no HMAC, or layers that are none. */
int lease_narrowed_mac(struct span text, struct span layers, struct digest *out) MUSTCHECK;
/* From text, a lease's own or one that is narrowed already, one with this layer more, appended to *out. -1: text is
 * neither, a pair's, narrowed as often as one can be, or what comes is too long; or the layer has what is counted. */
int lease_narrowed_make(struct span text, const struct wire_layer *layer, uint64_t expires_ms,
                        struct dynbuf *out) MUSTCHECK;

#endif
