/* A worker of turns without the rest of its process: one loop and one desk, which are the test's. What asks models is
 * the test's, too, or the worker's own. */
#ifndef TESTS_UNIT_BROKER_BROUGHT_ALONE_H
#define TESTS_UNIT_BROKER_BROUGHT_ALONE_H

#include "broker/work/seen/seen.h"
#include "broker/work/servers/remote.h"
#include "broker/work/tools.h"
#include "broker/work/work.h"
#include "common/net/loop.h"
#include "tests/unit/broker/store_fix.h"

enum { SECOND = 1000 };

static struct work work;
/* The last question to the desk, and how many there were. */
static told_fn *asked;
static uint64_t asked_arg;
static unsigned questions;
/* At the end of this turn of the loop. */
static void (*later)(void *arg);
static void *later_arg;
/* Where the desk was asked last. */
static char asked_for[128];

/* --- instead of the rest of a process ------------------------------------------------------------ */

void desk_ask(struct task *t, const char *method, struct span target, struct span json, told_fn *fn, uint64_t arg)
{
    asked = fn;
    asked_arg = arg;
    (void)snprintf(asked_for, sizeof(asked_for), "%s %.*s", method, SPAN_FMT(target));
    questions++;
}

void desk_put(struct task *t, struct span target, struct span body, told_fn *fn, uint64_t arg)
{
}

void desk_forget(struct task *t)
{
}

struct span desk_box(struct task *t, const char *rest, struct span path)
{
    return span_str(rest);
}

struct span desk_words(struct task *t, unsigned status, struct span body)
{
    return body;
}

void seen_call(struct task *t, uint64_t ord)
{
}

static unsigned turns_seen;

void seen_turn(struct task *t)
{
    turns_seen++;
}

struct seen_parent seen_turns(const struct task *t)
{
    return (struct seen_parent){""};
}

struct seen_parent seen_calls(const struct task *t, uint64_t ord)
{
    return (struct seen_parent){""};
}

struct errand *errand_new(struct errands *d, const struct errand_ask *ask, errand_fn *fn, void *arg)
{
    return NULL;
}

void errand_free(struct errand **e)
{
    *e = NULL;
}

struct remote *remote_begin(struct work *w, struct mcp *m, const struct wire_ask *ask, remote_fn *fn, void *arg)
{
    return NULL;
}

void remote_free(struct remote **r)
{
}

void remote_tell(struct remote *r)
{
}

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    static int some;
    return (struct timer *)&some;
}

void timer_set(struct timer *t, uint64_t ms)
{
}

void timer_clear(struct timer *t)
{
}

void timer_free(struct timer **t)
{
    *t = NULL;
}

uint64_t loop_wall(const struct loop *l)
{
    return fix_now;
}

uint64_t loop_now(const struct loop *l)
{
    return fix_now;
}

int loop_defer(struct loop *l, void (*fn)(void *arg), void *arg)
{
    later = fn;
    later_arg = arg;
    return 0;
}

#endif
