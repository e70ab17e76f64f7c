/* A lobby on a real loop, with the test as its parent, its judge and its clients. */
#ifndef TESTS_PLAY_LOBBY_LOBBY_KIT_H
#define TESTS_PLAY_LOBBY_LOBBY_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "proxy/lobby/pending.h"
#include "tests/kit.h"

enum { FRAMES_MAX = 1200 };

struct stage {
    struct loop *l;
    struct lobby lobby;
    struct chan *judge, *parent; /* the test's ends */
    struct {
        uint64_t id;
        uint8_t token[300];
        size_t n;
    } asked[FRAMES_MAX];
    size_t nasked, nseen;
    struct {
        uint8_t sandbox[300], auth[9000];
        size_t nsandbox, nauth, nrest;
        unsigned way, port;
        uint8_t rest[70000];
        int fd;
    } given;
    size_t ngiven;
    int listener, old[16]; /* the one dial() knocks at, and those before it */
    size_t nold;
    struct refusals refused;
    unsigned fds;
};
extern struct stage *s;

/* Set-up and tear-down of one test: a lobby with one HTTP listener for tokens, called agents. */
int stage_open(void **state);
int stage_close(void **state);
#define PLAY(f) cmocka_unit_test_setup_teardown(f, stage_open, stage_close)
/* One more listener, which dial() knocks at from now on. files: certificate, key, CA of clients; the caller's own. */
void listen_as(const char *name, const struct wire_listener *w, const int *files, unsigned nfiles);

void stage_stop(void *arg);
void turn(void);
void settle(void);
#define UNTIL(what)                                                                                                  \
    for (uint64_t until_ = now_ms() + 5000; !(what); turn())                                                         \
        if (now_ms() > until_)                                                                                       \
    fail_msg("%s did not come to pass", #what)

int dial(void);
int dial_from(uint32_t source); /* an address of 127.0.0.0/8 */
void say(int fd, const char *text);
void say_bytes(int fd, struct span bytes);
/* What came until the text did; to the end of the connection if there is none. */
const char *hear(int fd, const char *text);
void new_judge(void);
uint64_t next_asked(const char *token);
void answer(uint64_t id, enum identity known, const char *sandbox);
/* One connection was handed over: whose, with which Proxy-Authorization, and what had been read. */
void was_given(const char *sandbox, const char *auth, const char *rest);
/* As the parent was told. */
uint64_t refused(const char *listener, const char *code);

#endif
