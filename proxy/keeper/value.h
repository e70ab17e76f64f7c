/* What a secret's value may be, and how it becomes a header field. Errors never
 * repeat the value. */
#ifndef PROXY_KEEPER_VALUE_H
#define PROXY_KEEPER_VALUE_H

#include "common/err.h"
#include "common/crypto/secret.h"
#include "policy/policy.h"

/* Shortest: what is shorter turns up by chance, so answers could not be scrubbed of it (proxy/carrier/scrub/scrub.h).
 * Longest: what still fits, as Basic, into a head that upstreams take. */
enum { VALUE_MIN = 8, VALUE_MAX = 8 * 1024 };

/* One line feed at the end (with its carriage return) is an editor's, not the secret's. */
struct span value_trim(struct span raw);
/* A key and certificates as text. They may have lines, as may a key to sign with; neither goes into a field. */
bool value_is_pem(struct span v);
/* Neither too short nor too long, no control byte but the line ends of a key, no space at either end. 0, or -1 with
 * words. */
int value_check(struct span v, struct err *e) MUSTCHECK;
/* What goes into this credential's slot: its format, escaped as the slot needs it, or Basic. NULL with words when
 * they do not fit together. */
struct secret *value_render(const struct credential *c, struct span v, struct err *e) MUSTCHECK;
/* "user:secret", which Basic carries; NULL when the credential is not Basic, or memory is out. */
struct secret *value_basic(const struct credential *c, struct span v) MUSTCHECK;
/* What comes after "user:" when the value itself is such a pair (the user, when nothing does) and that part can be
 * told from chance; or empty. */
struct span value_password(const struct credential *c, struct span v);
/* Can this credential carry the value? Not what its slot cannot hold, nor a pair without a password, or with one
 * shorter than VALUE_MIN. 0, or -1
 * with words. */
int value_fits(const struct credential *c, struct span v, struct err *e) MUSTCHECK;
/* The name of the field: the policy's, or Authorization; empty where it goes into none. */
struct span value_header(const struct credential *c);

#endif
