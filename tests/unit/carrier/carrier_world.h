/* A carrier with everything around it played by the test, on one loop: judge, keeper, resolver and a front as
 * channels, the upstream as a plain server on loopback that records what it gets. */
#ifndef TESTS_CARRIER_WORLD_H
#define TESTS_CARRIER_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "common/net/conn.h"
#include "proxy/carrier/carrier.h"

enum { SEEN_MAX = 600, UPS_MAX = 16, FRONT = 7 };
#define XID(n)   (((uint64_t)FRONT << 40) | (n))
#define OTHER(n) (((uint64_t)(FRONT + 1) << 40) | (n)) /* of another sandbox's front: world_other_front */
#define TOKEN    "ghp_16C7e42F292c6912E7710c838347Ae178B4a"

struct seen {
    enum role_id at;
    uint16_t type;
    uint64_t id;
    struct dynbuf payload;
    int fd;
};

struct up {
    struct conn *conn;
    struct dynbuf got;
    bool ended;
};

struct world {
    struct loop *loop;
    struct carrier *carrier;
    struct chan *peer[ROLE_COUNT], *other_front;
    struct seen seen[SEEN_MAX];
    size_t nseen;
    int listener;
    uint16_t port;
    struct watch *watch;
    struct up up[UPS_MAX];
    size_t nups;
    struct timer *limit;
    bool late;
    enum slot_kind slot; /* of the credentials released from now on */
    struct digest place; /* what upstreams and credentials say from now on */
    const char *secret;  /* what the keeper says is to be looked for: TOKEN, unless a test says another */
    bool refuse;         /* that an answer with it is refused */
    uint64_t version;    /* of the value; 0: its source cannot be asked again */
};

struct world *world_new(void);
void world_free(struct world **w);
/* Another resolver. */
void world_resolver(struct world *w);
/* A front beside the first. What it gets is seen at ROLE_FRONT too. */
void world_other_front(struct world *w);
/* The first frame of this type for this exchange that reached the role, waiting for it; fails the test if it never
 * comes. */
struct seen *world_wait(struct world *w, enum role_id at, uint16_t type, uint64_t id);
size_t world_count(const struct world *w, enum role_id at, uint16_t type, uint64_t id);
/* Let things happen for some turns of the loop. */
void world_settle(struct world *w);
/* Upstream connection i has got something that contains this. */
void world_wait_up(struct world *w, size_t i, const char *part);
void world_wait_closed(struct world *w, size_t i);
/* The upstream closes it. */
void world_close_up(struct world *w, size_t i);
void world_answer(struct world *w, size_t i, const char *text);
bool world_up_has(const struct world *w, size_t i, const char *part);

/* Upstream number n: http://up.test:port/ on loopback. */
void world_upstream(struct world *w, uint32_t n, const char *address, bool has_secrets, bool cleartext);
struct request {
    const char *method, *path, *credential, *field, *range;
    enum slot_kind slot;
    uint32_t slot_at;
    uint32_t upstream;
    bool once, upgrade, metered;
    enum wire_release release;
    enum wire_body body;
    struct span data; /* inline */
    struct span swaps, answer_id, reach;
    uint64_t size;
    int fd;
};
void world_forward(struct world *w, uint64_t xid, struct request r);
void world_credential(struct world *w, uint64_t xid, uint32_t ttl, const char *host, const char *name,
                      const char *value);
void world_say(struct world *w, enum role_id from, uint16_t type, uint64_t id, struct span payload);

struct result {
    uint8_t outcome;
    uint16_t status;
    uint64_t out, in, egress;
    bool relayed;
    struct span code, why, range;
};
struct result world_result(struct world *w, uint64_t xid);
/* The whole answer the front has got: head fields as "Name: value\n", then the body. ok: ended well. */
struct answer {
    struct wire_answer head;
    struct dynbuf body;
    bool ended, ok;
};
void world_front_answer(struct world *w, uint64_t xid, struct answer *a);

#define OK5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
void expect_code(struct world *w, uint64_t xid, enum outcome o, const char *code);
/* Ask for /n over connection up, answer that, and expect the body. */
void world_get(struct world *w, uint64_t n, size_t up, const char *answer, const char *body);
void expect_answer(struct world *w, uint64_t xid, const char *body, bool ok);

#endif
