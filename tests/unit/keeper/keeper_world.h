/* The keeper as a process, with a test as its parent and its peers. */
#ifndef TESTS_UNIT_KEEPER_KEEPER_WORLD_H
#define TESTS_UNIT_KEEPER_KEEPER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/identity.h"
#include "proxy/msgs.h"
#include "proxy/fetcher/wire_fetch.h"
#include "proxy/wire_ticket.h"
#include "tests/unit/policy/policy_kit.h"

struct got {
    uint16_t type;
    uint64_t id;
    uint8_t payload[8192];
    size_t n;
};
extern struct loop *loop;
extern struct chan *parent, *judge, *carrier, *ledger, *fetcher;
extern struct got got[64];
extern size_t ngot, wanted;
extern char folder[64], sock[96];
extern int child, dir;
extern bool ended;
/* Further settings of its configuration: key, value, key, value ... */
extern const char *const *keeper_told;
extern size_t nkeeper_told;
extern struct digest place;
extern struct digest scan;
extern uint64_t watched;
extern bool watched_served;
extern struct span asked_path;

void await(size_t n);
void settle(void);
struct span payload(size_t i);
struct chan *introduce(enum role_id role);
void spawn(void);
void send_image_of(const char *rules, const char *program);
void send_image(void);
void listen_for_secrets(void);
int setup(void **state);
int teardown(void **state);
void ask_release(struct chan *c, uint64_t xid, struct span credential, bool held, struct span signature);
bool says(size_t i, struct span what);
void fetched(uint64_t id, struct span value, struct span why);
/* The fetcher has no room for it now. */
void not_begun(uint64_t id, struct span why);

#define FRESH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
