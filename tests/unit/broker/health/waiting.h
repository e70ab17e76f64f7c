/* Part of test_store_talk.c: turns that wait although somebody could have taken them. */
#ifndef TESTS_UNIT_BROKER_HEALTH_WAITING_H
#define TESTS_UNIT_BROKER_HEALTH_WAITING_H

#include "tests/unit/broker/store_fix.h"

static void waits(uint64_t ms, uint64_t turns, uint64_t since_ms, uint64_t running)
{
    struct bstore_waiting w;
    fix_ok(bstore_waiting(fix, ms, &w));
    assert_true(w.turns == turns && w.since_ms == since_ms && w.running == running);
}

/* What a worker would have taken by then, if one were there: of all tenants, and nothing that has to wait anyway. */
static void what_nobody_takes_is_counted_once_somebody_could_have(void **state)
{
    enum { LATE = 100 };
    struct bstore_chatted one = fix_chat("acme", NULL);
    uint64_t first = fix_now;
    struct id behind = one.conversation;
    (void)fix_chat("acme", &behind); /* which waits for the other */
    waits(LATE, 0, 0, 0);
    fix_now = first + LATE;
    waits(LATE, 1, first, 0);
    (void)fix_chat("other", NULL);
    waits(LATE, 1, first, 0);
    uint64_t second = fix_now;
    struct claim c = fix_claim(1);
    fix_now += LATE;
    waits(LATE, 1, second, 1); /* nobody has taken that, but somebody is there */
    fix_now += CLAIM_MS;       /* a worker that is silent is none */
    waits(LATE, 2, second, 0);
    waits(CLAIM_MS, 1, second, 0);
    c = fix_claim(1); /* the tenant that was not served last is next */
    fix_ok(bstore_release(fix, &c, CLAIM_MS));
    waits(LATE, 1, second + CLAIM_MS, 0); /* since its claim was over; what is given back has its time */
    c = fix_claim(2);
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    waits(LATE, 0, 0, 0); /* nobody could take the next one before that */
    fix_now += LATE;
    waits(LATE, 1, first + 1, 0);
}

#endif
