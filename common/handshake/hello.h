/* The first bytes of a TLS client: which name does it ask for? Sans-io; the handshake itself is OpenSSL's, and sees
 * the same bytes again. RFC 8446 section 4.1.2, RFC 5246 section 7.4.1.2, RFC 6066 section 3 (server_name).
 *
 * Strict: the record layer must be TLS handshake records (legacy_version 3.1 to 3.3; fragments over many records are
 * joined), one ClientHello, extensions that fill their lengths exactly and come once each. Exactly one host_name is
 * wanted: LDH labels, no NUL, no trailing dot, no literal address, at most 253 bytes; it is given in lower case. */
#ifndef COMMON_HANDSHAKE_HELLO_H
#define COMMON_HANDSHAKE_HELLO_H

#include "common/span.h"

enum {
    HELLO_MAX = 16 * 1024, /* all its records with their headers: so much must the caller keep; longer is refused */
    HELLO_NAME_MAX = 253,
};

/* HELLO_NO_NAME: a well-formed hello without a name. HELLO_BAD_NAME: with one that this gateway does not take. */
enum hello_result { HELLO_BAD = 0, HELLO_MORE, HELLO_OK, HELLO_NO_NAME, HELLO_BAD_NAME };

struct hello {
    char name[HELLO_NAME_MAX + 1];
    size_t nname;
    bool has_ech; /* an encrypted ClientHello extension (also GREASE) was there; its inner name is never honoured */
};

/* in: everything that came so far, from the first byte. Nothing is consumed. */
enum hello_result hello_parse(struct span in, struct hello *h) MUSTCHECK;
/* Is this the first byte of a TLS record (22)? */
static inline bool hello_begins(uint8_t first)
{
    return first == 0x16;
}

#endif
