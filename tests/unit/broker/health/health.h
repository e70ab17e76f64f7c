/* Whether anybody runs turns, as who asks is told, and the desk: a part of test_serve.c, with its desk and callers.
 */
#ifndef TESTS_UNIT_BROKER_HEALTH_HEALTH_H
#define TESTS_UNIT_BROKER_HEALTH_HEALTH_H

#include "broker/serve/health.h"
#include "broker/store/ops.h"

static void health_says(struct door *at, const char *key, const char *what, const char *never)
{
    struct asker *a = knocks(at);
    asks(a, key, "GET /health", "");
    until(a, "}");
    if (!heard(a, "HTTP/1.1 200 ") || !heard(a, what) || (never != NULL && heard(a, never)))
        fail_msg("%s: %.*s", what, SPAN_FMT(dynbuf_span(&a->heard)));
    leaves(a);
}

static void a_heart_beats(void)
{
    struct timer *turn = timer_new(loop, turned, NULL);
    heart(&serve);
    for (int i = 0; i < 8 || lanes_busy(&serve); i++) { /* what it has to do is done in turns of the loop */
        timer_set(turn, 0);
        assert_int_equal(loop_run(loop), 0);
    }
    /* What it tells the desk is there before whose key that is. */
    health_says(&door, "csb_other", "\"does\":\"stream\"", NULL);
    timer_free(&turn);
}

static enum bstore_result cannot_be_asked(struct bstore *s, uint64_t ms, struct bstore_waiting *out)
{
    return BS_FAIL;
}

static void it_is_said_that_nobody_runs_turns(void **state)
{
    const struct id worker = fix_id(1);
    struct claim c;
    (void)fix_chat("acme", NULL);
    serve.workers = 2;
    health_says(&own_door, "",
                "\"ok\":true,\"does\":\"stream\",\"workers\":2,\"turns\":{\"running\":0,\"waiting\":0}", "problem");
    fix_now += SERVE_LATE_MS;
    health_says(&own_door, "",
                "\"problem\":\"no process runs turns: 1 waits since 1970-01-01T00:16:40Z; those of this gateway",
                NULL);
    serve.workers = 0;
    health_says(&own_door, "", "this gateway has none (`broker: only:`)", NULL);
    /* A key is not told what others wait for. */
    health_says(&door, "csb_other", "\"ok\":false,\"does\":\"stream\",\"problem\":\"no process runs turns\"}",
                "1970");
    a_heart_beats();
    assert_true(waits_said == 0 && !serve.says_idle); /* once is none */
    a_heart_beats();
    assert_true(waits_said == 1 && serve.says_idle);
    /* A look at a store that cannot be asked knows nothing, and begins the count anew. */
    const struct bstore_ops deaf = {.waiting = cannot_be_asked};
    struct bstore gone = {.ops = &deaf};
    health_look(&serve, &gone);
    assert_true(serve.idle_looks == 0 && !serve.says_idle);
    a_heart_beats();
    assert_true(waits_said == 0 && !serve.says_idle);
    health_look(&serve, &gone);
    a_heart_beats();
    assert_true(waits_said == 0 && !serve.says_idle); /* nor are these two of them in a row */
    a_heart_beats();
    assert_true(waits_said == 1 && serve.says_idle);
    (void)fix_chat("other", NULL);
    fix_now += SERVE_LATE_MS;
    fix_ok(bstore_claim(fix, &worker, BSTORE_CLAIM_MAX, &c)); /* one is run: the other waits for whoever does that */
    health_says(&own_door, "", "\"turns\":{\"running\":1,\"waiting\":1,", "problem");
    a_heart_beats();
    assert_true(waits_said == 0 && !serve.says_idle);
}

#endif
