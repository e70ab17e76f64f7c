/* What the judge, the carrier and the parent of a play hear and say. */
#ifndef TESTS_PLAY_FRONT_FRONT_PEERS_H
#define TESTS_PLAY_FRONT_FRONT_PEERS_H

#include "tests/play/front/front_kit.h"

/* A new judge or carrier in place of the one before. */
void stage_peer(struct stage *s, unsigned role);
struct got take(struct stage *s, struct fake *from, uint16_t type);
/* Nothing (more) was said. */
void silent(struct stage *s, struct fake *from);
/* The next M_REQUEST, read. */
struct ask {
    uint64_t id;
    struct wire_request r;
    struct span reason, inlined;
    uint8_t body;
    uint64_t declared;
};
struct ask take_request(struct stage *s);
uint64_t take_connect(struct stage *s, const char *host, uint16_t port);
void give_leaf(struct stage *s, uint64_t id, const char *host);
void give_refused_leaf(struct stage *s, uint64_t id, unsigned status, const char *body);
void give_reply(struct stage *s, uint64_t id, unsigned status, const char *body, bool close);
void give_wanted(struct stage *s, uint64_t id, uint8_t mode, uint64_t max);
void give_body_credit(struct stage *s, uint64_t id, uint32_t n);
void give_answer(struct stage *s, uint64_t id, unsigned status, enum http_framing framing, uint64_t length, bool end,
                 struct span first);
void give_body(struct stage *s, uint64_t id, struct span data);
void give_end(struct stage *s, uint64_t id, bool ok);

#endif
