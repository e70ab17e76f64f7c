/* A front on a real loop, with a judge, a carrier and a parent played by the
 * test over real channels, and clients on real TCP sockets, plain or TLS. */
#ifndef TESTS_PLAY_FRONT_FRONT_KIT_H
#define TESTS_PLAY_FRONT_FRONT_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <openssl/ssl.h>

#include "proxy/front/client.h"
#include "proxy/front/front.h"
#include "tests/kit.h"

enum { INSTANCE = 7 };

/* A frame the front sent; its payload is valid until the next one is taken from the same peer. */
struct got {
    uint16_t type;
    uint64_t id;
    struct span payload;
    int fd;
    struct got *next;
};

struct fake {
    struct chan *chan;
    struct got *first, *last, *taken;
    size_t n;
    bool gone;
    struct fake *aside; /* where the words about refusals go */
};

struct stage {
    struct loop *l;
    struct front *f;
    struct fake judge, carrier, parent, books;
    int listener;
    unsigned fds; /* open at the start */
    X509 *ca;
    EVP_PKEY *ca_key;
    SSL_CTX *tls;
};

enum ending { END_NOT_YET = 0, END_FIN, END_RESET, END_NOTIFY /* TLS close_notify */, END_CUT /* TLS without it */ };

struct cl {
    struct stage *s;
    int fd;
    SSL *ssl;
    struct dynbuf in;
    enum ending ended;
};

void stage_open(struct stage *s);
void stage_open_as(struct stage *s, enum listen_kind kind);
void stage_close(struct stage *s);
void turn(struct stage *s);   /* one, of the loop, without waiting */
void settle(struct stage *s); /* many, until nothing moves any more */
#define UNTIL(s, what)                                                                                               \
    do {                                                                                                             \
        uint64_t until_ = now_ms() + 5000;                                                                           \
        while (!(what)) {                                                                                            \
            turn(s);                                                                                                 \
            if (now_ms() > until_)                                                                                   \
                fail_msg("%s did not come to pass", #what);                                                          \
        }                                                                                                            \
    } while (0)

void cl_open(struct stage *s, struct cl *c);
/* The same, not waiting for the front to take it. */
void cl_dial(struct stage *s, struct cl *c);
/* Handed over by the lobby: what it identified itself with, and what was read. */
void cl_adopt(struct stage *s, struct cl *c, const char *auth, struct span bytes);
void cl_adopt_way(struct stage *s, struct cl *c, enum way way, uint16_t port, const char *auth, struct span bytes);
void cl_close(struct cl *c);
void cl_say(struct cl *c, struct span bytes);
#define SAY(c, text) cl_say(c, span_str(text))
void cl_read(struct cl *c);                     /* what is there */
void cl_expect(struct cl *c, const char *text); /* until it has arrived */
/* Until the connection has ended; how. */
enum ending cl_end(struct cl *c);
/* All that arrived is exactly this; forget it. */
void cl_is(struct cl *c, const char *text);
void cl_forget(struct cl *c);
bool cl_has(const struct cl *c, const char *text);
/* Be the TLS client on it. False: the handshake failed. sni may be NULL. */
bool cl_tls(struct cl *c, const char *sni, const char *alpn);
/* The same in two: the ClientHello is sent; the rest. */
void cl_tls_begin(struct cl *c, const char *sni, const char *alpn);
bool cl_tls_end(struct cl *c);
/* CONNECT, leaf, handshake: a tunnel to host:443. */
void cl_tunnel(struct stage *s, struct cl *c, const char *host);

#endif
