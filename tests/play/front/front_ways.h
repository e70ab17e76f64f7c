/* What the plays of the ways in have in common: the bytes of SOCKS and PROXY, and what is expected of them. */
#ifndef TESTS_PLAY_FRONT_FRONT_WAYS_H
#define TESTS_PLAY_FRONT_FRONT_WAYS_H

#include "tests/play/front/front_peers.h"

#define PROXY_HEADER   "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\0\0\2\x0a\0\0\3\x80\0"
#define PROXY_TO(port) PROXY_HEADER port
#define SOCKS_NAME(n)  "\5\1\0\3" n
#define SOCKS_A_443    SOCKS_NAME("\6a.test\1\xbb")
#define SOCKS_A_80     SOCKS_NAME("\6a.test\0\x50")
#define SOCKS_V4_443   "\5\1\0\1\x5d\xb8\xd8\x22\1\xbb"
#define SOCKS_V4_80    "\5\1\0\1\x5d\xb8\xd8\x22\0\x50"
#define SOCKS_V6_443   "\5\1\0\4\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\1\xbb"
#define SOCKS_GRANTED  "\5\0\0\1\0\0\0\0\0\0"
#define GET_A          "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n"
#define ALERT(d)       "\x15\3\3\0\2\2" d

/* What the front says of a refusal, to the judge. */
void took_note(struct stage *s, enum walk_step step, const char *code, const char *scheme, const char *host,
               uint16_t port);
/* Exactly these come next. */
void expect_bytes(struct cl *c, struct span want);
/* The ClientHello of a client that asks for this name (or none). To be freed. */
struct span hello_of(struct stage *s, const char *sni);
/* Past a SOCKS login; this request is granted. */
void socks_open(struct stage *s, struct cl *c, struct span request);

#endif
