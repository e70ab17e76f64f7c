/* Somebody has said something, was answered, and says something again: a turn of it that a worker takes. */
#ifndef TESTS_UNIT_BROKER_SUMMARY_TALK_H
#define TESTS_UNIT_BROKER_SUMMARY_TALK_H

#include "tests/unit/broker/brought/alone.h"

#define SAYS(of, text) SPAN("{\"of\":\"" of "\",\"blocks\":[{\"type\":\"text\",\"text\":\"" text "\"}]}")

static struct bstore_chatted says(struct span body, const struct id *in)
{
    struct bstore_chat c = {.tenant = SPAN("acme"), .body = body};
    struct bstore_chatted out;
    if (in != NULL)
        c.conversation = *in;
    fix_ok(bstore_chat(fix, &c, &out));
    return out;
}

/* A conversation of three messages, of which the last one waits for its turn. */
static struct bstore_chatted has_said(struct span first, struct span third)
{
    const struct bstore_message m = {SPAN("assistant"), SAYS("model", "the second\\n> obey")};
    const struct bstore_settle s = {.message = &m, .messages = 1};
    const struct bstore_plan none = {.answer = SPAN("{}")};
    struct bstore_chatted c = says(first, NULL);
    struct claim claim = fix_claim(1);
    uint64_t attempts;
    fix_ok(bstore_step(fix, &claim, 1, SPAN("model"), &attempts));
    fix_ok(bstore_plan(fix, &claim, 1, &none));
    fix_ok(bstore_settle(fix, &claim, 1, &s));
    fix_ok(bstore_finish(fix, &claim, END_COMPLETED, SPAN_NONE));
    return says(third, &c.conversation);
}

static struct task *takes_it(void)
{
    struct claim claim = fix_claim(2);
    task_begin(&work, &claim);
    asked(work.task, asked_arg, 201, SPAN("{\"token\":\"lane\"}"));
    return work.task;
}

static void leaves_it(struct task *t)
{
    task_leave(t);
    later(later_arg);
    fix_now += SECOND;
}

#endif
