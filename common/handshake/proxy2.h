/* The PROXY protocol, version 2 (haproxy's proxy-protocol.txt, section 2.2), sans-io. Only binary version 2, only TCP
 * over IPv4 or IPv6 or LOCAL; TLVs are skipped but must fill their lengths, CRC32c (0x03) is checked when there, and
 * of the first that is for an application's own use (0xE0) the value is given. What it says is a claim of a peer that
 * may make it. */
#ifndef COMMON_HANDSHAKE_PROXY2_H
#define COMMON_HANDSHAKE_PROXY2_H

#include "common/span.h"

enum {
    PROXY2_SIGNATURE = 12,
    PROXY2_MAX = 536
}; /* the longest header taken; the specification's own minimum for receivers */
enum proxy2_result { PROXY2_BAD = 0, PROXY2_MORE, PROXY2_OK };

struct proxy2 {
    bool local;      /* a health check of the peer's own: no addresses */
    unsigned family; /* 4 or 6 */
    uint8_t src[16], dst[16];
    uint16_t src_port, dst_port;
    struct span own; /* the value of the first 0xE0, in what was parsed; empty: there is none */
};
/* in: what came so far. OK: *used bytes were the header. */
enum proxy2_result proxy2_parse(struct span in, struct proxy2 *p, size_t *used) MUSTCHECK;

#endif
