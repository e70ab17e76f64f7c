/* One turn: events, then deferred calls, then the flush. See loop.h.
 *
 * The epoll changelist of libevent stays off. It delays EPOLL_CTL_DEL to the
 * next wait; by then a descriptor that was handed to another process is closed
 * here, the kernel still watches it because the other process holds it open,
 * and nothing can take it out any more. With persistent events there is hardly
 * a change a turn that it could save. */
#include "common/time/clock.h"
#include "common/net/loop_in.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct deferred {
    struct task task;
    void (*fn)(void *arg);
    void *arg;
};

struct timer {
    struct event ev;
    void (*fn)(void *arg);
    void *arg;
};

struct watch {
    struct event rd, wr;
    void (*fn)(void *arg, unsigned ready);
    void *arg;
};

struct signal_watch {
    struct event ev;
    struct signal_watch *next;
    void (*fn)(void *arg, int signo);
    void *arg;
};

static void ring_init(struct task *head)
{
    head->next = head->prev = head;
}

static bool ring_empty(const struct task *head)
{
    return head->next == head;
}

static void ring_add(struct task *head, struct task *t)
{
    if (t->next != NULL)
        return;
    t->next = head;
    t->prev = head->prev;
    head->prev->next = t;
    head->prev = t;
}

void task_cancel(struct task *t)
{
    if (t->next == NULL)
        return;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->next = t->prev = NULL;
}

/* Each task that stood in the ring when the call began, once. The mark at its end leaves what is added meanwhile to
 * the next turn; what is cancelled meanwhile does not run. */
static void ring_run(struct loop *l, struct task *head)
{
    if (ring_empty(head))
        return;
    ring_add(head, &l->mark);
    for (;;) {
        struct task *t = head->next;
        task_cancel(t);
        if (t == &l->mark)
            return;
        t->fn(t->arg);
    }
}

void task_init(struct task *t, void (*fn)(void *arg), void *arg)
{
    *t = (struct task){.fn = fn, .arg = arg};
}

void task_later(struct loop *l, struct task *t)
{
    ring_add(&l->later, t);
}

void task_flush(struct loop *l, struct task *t)
{
    ring_add(&l->flush, t);
}

struct loop *loop_new(void)
{
    struct loop *l = calloc(1, sizeof(*l));
    struct event_config *cfg = event_config_new();
    if (l == NULL || cfg == NULL)
        goto fail;
    ring_init(&l->later);
    ring_init(&l->flush);
    event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
    l->base = event_base_new_with_config(cfg);
    l->in = malloc(LOOP_IN_BYTES);
    l->out = malloc(LOOP_OUT_BYTES);
    if (l->base == NULL || l->in == NULL || l->out == NULL)
        goto fail;
    event_config_free(cfg);
    return l;
fail:
    if (cfg != NULL)
        event_config_free(cfg);
    loop_free(&l);
    return NULL;
}

static void deferred_run(void *arg)
{
    struct deferred *d = arg;
    void (*fn)(void *) = d->fn;
    void *of = d->arg;
    free(d);
    fn(of);
}

void loop_free(struct loop **lp)
{
    struct loop *l = *lp;
    struct signal_watch *s;
    struct task *t;
    *lp = NULL;
    if (l == NULL)
        return;
    while ((s = l->signals) != NULL) {
        l->signals = s->next;
        event_del(&s->ev);
        free(s);
    }
    for (t = l->later.next; t != NULL && t != &l->later;) {
        struct task *next = t->next;
        if (t->fn == deferred_run)
            free(t->arg);
        t = next;
    }
    if (l->base != NULL)
        event_base_free(l->base);
    free(l->in);
    free(l->out);
    free(l->spare);
    free(l);
}

int loop_run(struct loop *l)
{
    int rc = 0;
    while (!l->stopped && rc >= 0) {
        bool waiting = ring_empty(&l->later) && ring_empty(&l->flush);
        rc = event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY | (waiting ? EVLOOP_ONCE : EVLOOP_NONBLOCK));
        ring_run(l, &l->later);
        ring_run(l, &l->flush);
        l->now = 0;
    }
    l->stopped = false;
    return rc < 0 ? -1 : 0;
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
    event_base_loopbreak(l->base);
}

uint64_t loop_now(const struct loop *l)
{
    struct loop *own = (struct loop *)l; /* the reading is kept for the rest of the turn */
    if (own->now == 0)
        own->now = clock_ms(CLOCK_MONOTONIC);
    return own->now;
}

uint64_t loop_wall(const struct loop *l)
{
    (void)l;
    return clock_ms(CLOCK_REALTIME);
}

int loop_defer(struct loop *l, void (*fn)(void *arg), void *arg)
{
    struct deferred *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return -1;
    task_init(&d->task, deferred_run, d);
    d->fn = fn;
    d->arg = arg;
    task_later(l, &d->task);
    return 0;
}

static void on_signal(evutil_socket_t signo, short what, void *arg)
{
    struct signal_watch *s = arg;
    (void)what;
    s->fn(s->arg, (int)signo);
}

int loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg)
{
    struct signal_watch *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return -1;
    s->fn = fn;
    s->arg = arg;
    if (evsignal_assign(&s->ev, l->base, signo, on_signal, s) != 0 || evsignal_add(&s->ev, NULL) != 0) {
        free(s);
        return -1;
    }
    s->next = l->signals;
    l->signals = s;
    /* Whoever started us may have had it blocked, and that is inherited. */
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signo);
    return sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct timer *t = arg;
    (void)fd, (void)what;
    t->fn(t->arg);
}

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    struct timer *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return NULL;
    t->fn = fn;
    t->arg = arg;
    if (evtimer_assign(&t->ev, l->base, on_timer, t) == 0)
        return t;
    free(t);
    return NULL;
}

void timer_set(struct timer *t, uint64_t ms)
{
    struct timeval tv = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
    evtimer_add(&t->ev, &tv);
}

void timer_clear(struct timer *t)
{
    evtimer_del(&t->ev);
}

void timer_free(struct timer **tp)
{
    struct timer *t = *tp;
    *tp = NULL;
    if (t == NULL)
        return;
    evtimer_del(&t->ev);
    free(t);
}

void event_want(struct event *ev, bool wanted)
{
    bool is = event_pending(ev, EV_READ | EV_WRITE, NULL) != 0;
    if (wanted && !is)
        event_add(ev, NULL);
    else if (!wanted && is)
        event_del(ev);
}

static void on_watch(evutil_socket_t fd, short what, void *arg)
{
    struct watch *w = arg;
    (void)fd;
    w->fn(w->arg, (what & EV_READ ? WATCH_READ : 0u) | (what & EV_WRITE ? WATCH_WRITE : 0u));
}

struct watch *watch_new(struct loop *l, int fd, unsigned what, void (*fn)(void *arg, unsigned ready), void *arg)
{
    struct watch *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->fn = fn;
    w->arg = arg;
    if (event_assign(&w->rd, l->base, fd, EV_READ | EV_PERSIST, on_watch, w) != 0 ||
        event_assign(&w->wr, l->base, fd, EV_WRITE | EV_PERSIST, on_watch, w) != 0) {
        free(w);
        return NULL;
    }
    watch_set(w, what);
    return w;
}

void watch_set(struct watch *w, unsigned what)
{
    event_want(&w->rd, what & WATCH_READ);
    event_want(&w->wr, what & WATCH_WRITE);
}

void watch_free(struct watch **wp)
{
    struct watch *w = *wp;
    *wp = NULL;
    if (w == NULL)
        return;
    event_del(&w->rd);
    event_del(&w->wr);
    free(w);
}
