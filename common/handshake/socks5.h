/* SOCKS5 (RFC 1928) with user and password (RFC 1929), the server's side, sans-io. Each parser takes what came so
 * far, says how much of it was its own, and gives the bytes to answer with. Nothing is sent ahead of the client:
 * bytes behind a message stay. What is not exactly the RFC is refused. */
#ifndef COMMON_HANDSHAKE_SOCKS5_H
#define COMMON_HANDSHAKE_SOCKS5_H

#include "common/span.h"

enum socks5_result { SOCKS5_BAD = 0, SOCKS5_MORE, SOCKS5_OK };
enum socks5_method { SOCKS5_NONE = 0x00, SOCKS5_PASSWORD = 0x02, SOCKS5_NO_METHOD = 0xff };
/* RFC 1928 section 6 */
enum socks5_reply {
    SOCKS5_SUCCEEDED = 0,
    SOCKS5_FAILURE = 1,
    SOCKS5_NOT_ALLOWED = 2,
    SOCKS5_BAD_COMMAND = 7,
    SOCKS5_BAD_ADDRESS = 8
};
enum { SOCKS5_NAME_MAX = 253, SOCKS5_REPLY_BYTES = 10 };

/* The greeting: does it offer `want`? OK: *method is want, or SOCKS5_NO_METHOD (answer it, then close). */
enum socks5_result socks5_greeting(struct span in, enum socks5_method want, enum socks5_method *method,
                                   size_t *used) MUSTCHECK;
/* RFC 1929; both 1 to 255 bytes. */
enum socks5_result socks5_login(struct span in, struct span *user, struct span *password, size_t *used) MUSTCHECK;

struct socks5_request {
    char host[SOCKS5_NAME_MAX + 1]; /* a name as sent (not yet canonical); empty when an address was given */
    size_t nhost;
    uint8_t address[16]; /* then this one, which is a claim and never dialled */
    unsigned family;     /* 4 or 6; 0 with a name */
    uint16_t port;       /* 1 to 65535 */
};
/* CONNECT only. BAD: *why is the reply to give before the close (NUL or other bytes that no name has, port 0, BIND
 * and UDP ASSOCIATE, another version). An address written as a name ("127.0.0.1") is given as a name: the caller's
 * rules for hosts refuse it. */
enum socks5_result socks5_request(struct span in, struct socks5_request *r, size_t *used,
                                  enum socks5_reply *why) MUSTCHECK;
/* The reply, with 0.0.0.0:0 as bound address: nothing about our side is told. */
void socks5_reply(enum socks5_reply r, uint8_t out[SOCKS5_REPLY_BYTES]);

#endif
