/* Two connections in one loop that talk to each other, and the keys and certificates for it. */
#ifndef TESTS_UNIT_NET_CONN_WORLD_H
#define TESTS_UNIT_NET_CONN_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/unit/net/certs.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "common/net/tls_in.h"
#include "tests/kit.h"

enum { IN_MAX = 64 * 1024, EVENTS = CONN_TIMEOUT + 1 };

struct side {
    struct loop *l;
    struct conn *c;
    unsigned seen[EVENTS];
    char order[64]; /* one letter an event */
    struct dynbuf got;
    size_t stop_at;   /* bytes after which the loop stops */
    unsigned stop_on; /* bit of events */
    unsigned free_on;
    bool keep; /* leave the input where it is */
    size_t largest;
    char why[160];
};

struct world {
    struct loop *l;
    struct side a, b;
    int fd[2];
};

struct keys {
    EVP_PKEY *ca_key;
    X509 *ca;
    struct span ca_der, ca_pem;
    struct tls_key *key;
    struct tls_server *server;
    struct tls_client *client;
};
extern struct keys keys;

extern const struct cert_wish good_ca, good_leaf;

void side_init(struct side *s, struct loop *l);
void on_event(void *arg, struct conn *c, enum conn_event ev);
/* a and b over a socketpair, both plain. */
void open_world(struct world *w);
void close_world(struct world *w);
/* Run until something stops the loop; a test that waits for what never comes fails. */
void run(struct loop *l);
/* Let everything that is ready happen. */
void settle(struct loop *l);
/* Send `total` bytes from a to b and compare; the output is refilled when it drains. */
void pump(struct world *w, size_t total);

/* Group set-up and tear-down. */
int keys_new(void **state);
int keys_free(void **state);
struct tls_leaf *leaf_for(const struct cert_wish *w);
/* a is the client, b the server; until both are ready or one has failed. */
void shake(struct world *w, struct tls_client *t, struct tls_leaf *leaf, const char *asked, const char *served);

#endif
