/* A desk with a store of tickets, a person who is signed in, and a ledger that says what a test has it say. */
#ifndef TESTS_UNIT_DESK_DECIDING_DESK_WORLD_H
#define TESTS_UNIT_DESK_DECIDING_DESK_WORLD_H

#include "proxy/msgs.h"
#include "proxy/words.h"
#include "web-approval/ask.h"
#include "web-approval/desk.h"

#define DIGEST "1111111111111111111111111111111111111111111111111111111111111111"

extern struct desk desk;
extern struct exchange x; /* of the last request */
extern char cookie[GUARD_COOKIE_TEXT + 1];
extern struct dynbuf sent; /* what another role was asked last */
extern unsigned sent_type, nsent;
extern uint64_t clock_now;

int world_setup(void **state);
int world_teardown(void **state);

void sql(const char *text);
struct row {
    const char *id, *state, *effect, *resource, *path, *facts, *fields;
    unsigned size, created;
};
void ticket(const struct row *r);

/* Two that wait from the beginning: one that deletes, and one whose body is gzip by its own word. */
#define REPO  "aaaa0000000000000000000000"
#define CODED "bbbb0000000000000000000000"

/* One request; its status, 0 when another role was asked. */
unsigned ask(enum desk_place place, const char *line, const char *type, struct span body);
unsigned control(const char *line, const char *body);
unsigned get(const char *target);
bool says(const char *needle);

/* What the ledger says to the last question; no_answer: that its time is over. */
void answer(uint16_t type, struct span payload);
void answer_body(struct span body);
void answer_decided(enum ticket_state state);
void no_answer(void);

#endif
