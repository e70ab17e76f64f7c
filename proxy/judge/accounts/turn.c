#include "proxy/judge/accounts/turn.h"

#include "common/log.h"
#include "proxy/judge/accounts/account.h"
#include "proxy/judge/exchange/exchange.h"
#include "proxy/judge/stubs/stub.h"

/* What was spent since the last call goes to who had the turn; from now on it is another's. */
static void hand_over(struct judge *j, struct account *to)
{
    if (to == j->turn.pays)
        return;
    uint64_t now_us = j->ports.clock(j->ports.arg);
    if (j->turn.pays != NULL)
        timeshare_spend(&j->turn.pays->time, now_us / 1000, now_us - j->turn.since_us);
    account_unref(j->turn.pays);
    j->turn.pays = to ? account_ref(to) : NULL;
    j->turn.since_us = now_us;
}

void turn_for(struct judge *j, const struct sandbox *s)
{
    hand_over(j, s ? s->account : NULL);
}

void turn_begin(struct judge *j, const struct front *f)
{
    j->turn.began_us = j->ports.clock(j->ports.arg);
    if (f != NULL && f->sandbox != NULL)
        f->sandbox->account->time.asked_ms = j->ports.now(j->ports.arg);
    turn_for(j, f ? f->sandbox : NULL);
}

static bool has_neighbour(const struct judge *j, const struct account *a)
{
    uint64_t now = j->ports.now(j->ports.arg);
    for (const struct front *f = j->fronts; f != NULL; f = f->next)
        if (f->sandbox != NULL && f->sandbox->account != a && timeshare_asks(&f->sandbox->account->time, now))
            return true;
    return false;
}

/* In how many ms to look at it again; 0: it need not wait. */
static uint64_t waits(const struct judge *j, const struct front *f)
{
    struct account *a = f->sandbox ? f->sandbox->account : NULL;
    uint64_t ms = a ? timeshare_wait(&a->time, j->ports.now(j->ports.arg)) : 0;
    if (ms == 0 || j->ending || !has_neighbour(j, a))
        return 0;
    return ms < TIMESHARE_NEIGHBOUR_MS ? ms : TIMESHARE_NEIGHBOUR_MS;
}

static void hold_back(struct judge *j, struct front *f, bool on)
{
    if (f->held_back == on)
        return;
    f->held_back = on;
    if (on && timeshare_to_say(&f->sandbox->account->time, j->ports.now(j->ports.arg)))
        log_info("sandbox \"%.*s\" asks for more of the gateway's time than its share while others ask: it waits",
                 SPAN_FMT(f->name));
    j->ports.hold_back(j->ports.arg, f->instance, on);
}

/* A peer that could not be heard during this turn was not silent. */
static void not_heard(struct judge *j)
{
    uint64_t now_us = j->ports.clock(j->ports.arg), took = now_us - j->turn.began_us;
    if (j->unheard_us != 0)
        j->unheard_us = j->unheard_us + took < now_us ? j->unheard_us + took : now_us;
    for (struct exchange *x = took >= TURN_LONG_US ? j->timed : NULL; x != NULL; x = x->next_timed)
        if (x->wait == X_TICKET || x->wait == X_CLAIM || x->wait == X_INTENT)
            x->deadline += took / 1000;
}

void turn_end(struct judge *j, uint64_t instance)
{
    do
        exchange_end_broken(j);
    while (stub_turns(j));
    hand_over(j, NULL);
    not_heard(j);
    struct front *f = instance ? judge_front(j, instance) : NULL;
    uint64_t ms = f ? waits(j, f) : 0;
    if (ms == 0)
        return;
    hold_back(j, f, true);
    judge_wake_in(j, ms);
}

uint64_t turn_look(struct judge *j)
{
    uint64_t next = UINT64_MAX;
    for (struct front *f = j->fronts; f != NULL; f = f->next) {
        uint64_t ms = f->held_back ? waits(j, f) : 0;
        if (f->held_back && ms == 0)
            hold_back(j, f, false);
        else if (ms != 0 && ms < next)
            next = ms;
    }
    return next;
}
