/* The part of CBOR (RFC 8949) that CTAP 2 writes: definite lengths, the shortest form of each number; no floats, no
 * tags, few levels. */
#ifndef PROXY_KEEPER_PASSKEY_CBOR_H
#define PROXY_KEEPER_PASSKEY_CBOR_H

#include "common/span.h"

enum cbor_kind { CBOR_NONE = 0, CBOR_UINT, CBOR_NINT, CBOR_BYTES, CBOR_TEXT, CBOR_ARRAY, CBOR_MAP, CBOR_SIMPLE };
struct cbor {
    enum cbor_kind kind;
    uint64_t n;        /* UINT: it; NINT: -1 - n; ARRAY, MAP: how many; SIMPLE: 20 false, 21 true, 22 null */
    struct span bytes; /* of BYTES and TEXT */
};
/* The head of the next item, and all of it of what has no items in it; rest moves on. -1: it is none of these. */
int cbor_next(struct span *rest, struct cbor *out) MUSTCHECK;
/* Past the next item, with all that is in it. */
int cbor_skip(struct span *rest) MUSTCHECK;

#endif
