/* A warden in a process of its own; the test is its parent, its desk, its ledger and the first process of each
 * sandbox. */
#ifndef TESTS_WARDEN_WORLD_H
#define TESTS_WARDEN_WORLD_H

#include "tests/kit.h"

#include "sandbox-shim/warden/warden.h"

#define A_DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum { PARENT, DESK, LEDGER, ENDS };
extern int side[ENDS];
extern uint64_t idle_ms;  /* of what is asked for */
extern bool bound;        /* what is asked for is to end with the desk */
extern bool world_tidies; /* begin: checkpoints are elsewhere as well */
extern struct frame got;  /* what was heard last; its payload borrows from got_bytes */
extern struct dynbuf got_bytes;

/* For cmocka. known: the ledger has heard what runs, so that others may be started. */
int begin(void **state);
int begin_known(void **state);
/* The same, and the test is who writes down what runs: else that is done, and no test hears of it. */
int begin_alone(void **state);
int finish(void **state);

/* The next message to one of them is of this type; its number. */
uint64_t heard(int who, uint16_t type);
/* b is freed; NULL: nothing. */
void say(int who, uint16_t type, uint64_t id, struct dynbuf *b);
struct dynbuf fresh(void);
/* Its end is told to the ledger, for its leases, and for the audit. */
void end_heard(const char *name);
/* The warden asks the parent; *fd is where the first process would be. */
uint64_t ask_for(const char *name, uint64_t desk, uint64_t timeout_ms, int *fd);
void parent_says_started(uint64_t id, uint8_t version);
/* One that runs. */
uint64_t runs(const char *name, uint64_t timeout_ms, int *fd);
/* The first process is told its name, before anything else. */
void is_named(int fd, const char *name);
/* To the warden, by the first process in a sandbox; and of the warden. */
void frame_of(int fd, unsigned type, uint32_t run, struct span payload);
void hello(int fd); /* its first frame, which comes once */
void ends_with(int fd, uint32_t run, unsigned how, unsigned code);
struct dynbuf told(int fd, unsigned *type, uint32_t *run);
/* What is told is this (p NULL: whatever), and of this run. */
uint32_t told_type(int fd, unsigned type, struct span bytes);
/* The desk: true, with a variable, in /tmp. */
void ask_exec(uint64_t desk, const char *name, uint64_t timeout_ms, uint64_t most, enum talk_input input,
              bool detached);
void execute_with(uint64_t desk, const char *name, uint64_t timeout_ms, uint64_t most, enum talk_input input);
void execute(uint64_t desk, const char *name, uint64_t timeout_ms, uint64_t most);
void input(uint64_t desk, struct span bytes);
void exit_heard(uint64_t desk, enum sb_end how, unsigned code);
void destroy(const char *name);

#endif
