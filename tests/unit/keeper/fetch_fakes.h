/* A policy and a store for the tests of what is asked for elsewhere. */
#ifndef TESTS_UNIT_KEEPER_FETCH_FAKES_H
#define TESTS_UNIT_KEEPER_FETCH_FAKES_H

#include "policy/policy.h"
#include "proxy/keeper/vault.h"

/* Credentials by the number of their settings; from MANY on a program each. */
enum {
    PROGRAM,
    SERVER,
    CLEARTEXT,
    WITHOUT,
    ROTATING,
    ROTATING_TOO,
    SIGNING,
    ROLE,
    NARROW,
    NARROWER,
    WIDE,
    REACHING,
    MANY
};

/* What the policy says of the host of SERVER. */
extern struct upstream server;
/* What the store has under the name "next"; NULL: nothing. */
extern struct secret *stored;

#endif
