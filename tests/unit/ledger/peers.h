/* A ledger behind its channels, with a test as its judge, its desk and its keeper. */
#ifndef TESTS_UNIT_LEDGER_PEERS_H
#define TESTS_UNIT_LEDGER_PEERS_H

#include "tests/unit/ledger/ledger_fix.h"

#include "proxy/ledger/ledger.h"

struct got {
    uint16_t type;
    uint64_t id;
    uint8_t payload[4096];
    size_t n;
    int fd;
    unsigned heard; /* how often the judge had echoed M_HEARD */
};
extern struct ledger l;
extern struct chan *judge, *desk, *keeper;
extern struct got got[256]; /* what they were sent, M_HEARD excepted */
extern size_t ngot;
extern unsigned heard;
extern bool deaf; /* the judge echoes nothing */

struct chan *connect_as(unsigned role);
/* Until n messages came in all. */
void await(size_t n);
/* The next one of this type, of those that until has not passed. */
const struct got *until(uint16_t type);
/* The last one of this type. */
const struct got *find(uint16_t type);
int peers_setup(void **state);
int peers_teardown(void **state);

#define WITH_LOOP(f) cmocka_unit_test_setup_teardown(f, peers_setup, peers_teardown)

#endif
