/* Identifiers and digests. */
#ifndef COMMON_ID_H
#define COMMON_ID_H

#include "common/span.h"

enum { ID_BYTES = 16, ID_TEXT = 26, DIGEST_BYTES = 32 };

/* 128 random bits (getrandom). All zero means "none". */
struct id {
    uint8_t b[ID_BYTES];
};
struct digest {
    uint8_t b[DIGEST_BYTES];
};

/* Fresh from the kernel; 0, or -1 if it has no randomness to give. */
int id_new(struct id *out) MUSTCHECK;
bool id_is_none(const struct id *id);
bool id_eq(const struct id *a, const struct id *b);
/* Crockford base32, lower case, 26 characters and a NUL. */
void id_text(const struct id *id, char out[ID_TEXT + 1]);
/* Exactly the form id_text writes, or -1. */
int id_parse(struct span text, struct id *out) MUSTCHECK;

/* The value of a hexadecimal digit in either case, or -1. */
int hex_digit(uint8_t c);
/* The first n of them (at most 7) as a number; -1: they are not there. */
int hex_number(struct span s, size_t n);
void hex_text(struct span bytes, char *out); /* writes 2n characters and a NUL */
int hex_parse(struct span text, uint8_t *out, size_t n) MUSTCHECK;

/* SHA-256 (FIPS 180-4, OpenSSL EVP), one shot and in pieces. */
void digest_of(struct span bytes, struct digest *out);
struct digest_ctx;
struct digest_ctx *digest_begin(void);
void digest_add(struct digest_ctx *d, struct span bytes);
/* Length first (64-bit big-endian), so that a row of fields cannot be re-cut. */
void digest_add_field(struct digest_ctx *d, struct span bytes);
/* Finish and free. */
void digest_end(struct digest_ctx *d, struct digest *out);

/* What a WebSocket server answers to a key (RFC 6455 section 4.2.2): 28 characters and a NUL. -1: no SHA-1. */
enum { WS_KEY_TEXT = 24, WS_ACCEPT_TEXT = 28 };
int websocket_accept(struct span key, char out[WS_ACCEPT_TEXT + 1]) MUSTCHECK;

/* RFC 4648 section 4. dst needs 4*((n+2)/3)+1. Returns the length written. */
size_t base64_encode(struct span in, char *dst);
/* Strict: canonical padding, no whitespace. dst needs 3*n/4. -1 when it is not base64. */
int base64_decode(struct span in, uint8_t *dst, size_t *n) MUSTCHECK;

#endif
