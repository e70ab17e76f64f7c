/* The certificates that sandboxes trust, as Java wants them: a PKCS#12 file
 * (RFC 7292) in which every certificate carries the attribute that makes the JDK
 * take it for a trust entry, without which the store loads and is empty. What is
 * in it is public: nothing is encrypted, and the password, Java's customary one,
 * serves its checksum only. */
#ifndef PROXY_PARENT_TRUSTSTORE_H
#define PROXY_PARENT_TRUSTSTORE_H

#include "common/dynbuf.h"

#define TRUSTSTORE_PASSWORD "changeit"

/* roots: PEM certificates, one after the other; our own CA comes first in the file, under the alias
 * `countersign-1`.
 * What is not a certificate among the roots is left out. -1: no CA in `ca`, no memory. Nothing is in `out` then. */
int truststore_make(struct span roots, struct span ca, struct dynbuf *out) MUSTCHECK;

#endif
