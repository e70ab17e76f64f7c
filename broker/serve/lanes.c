#include "broker/serve/health.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "common/log.h"
#include "common/net/loop.h"

struct lane {
    struct serve *serve;
    struct bstore *store;
    ucontext_t here, loop;
    void *stack;
    size_t stack_n;
    struct call *x; /* NULL: it has gone, or there is none */
    call_fn *fn;    /* NULL: nobody is in it */
    bool busy, streams;
    struct timer *timer;
    uint64_t used;  /* so often: each has its turn, and with that finds out that its connection was lost */
    uint64_t pulse; /* of its store, when nobody was in it last */
};
static struct lane *now; /* the one that runs; NULL: the loop */

static void dispatch(void *arg);

static void look_again(struct serve *s)
{
    if (s->deferred)
        return;
    s->deferred = true;
    if (loop_defer(s->loop, dispatch, s) != 0)
        log_die("out of memory");
}

/* --- a handler and the loop give way to each other --------------------------------------- */

static void resume(struct lane *l)
{
    now = l;
    if (swapcontext(&l->loop, &l->here) != 0)
        log_die("a handler cannot be gone on with");
    now = NULL;
    if (l->busy)
        return;
    struct call *x = l->x;
    l->x = NULL;
    if (x != NULL) {
        bool again = x->again;
        x->lane = NULL;
        x->again = false;
        if (again)
            lanes_run(x, stream_more);
        call_over(x);
    }
    look_again(l->serve);
}

static void woken(void *arg, unsigned ready)
{
    resume(arg);
}

static void late(void *arg)
{
    resume(arg);
}

/* As poll(2) on one descriptor (none: time alone), while the loop serves the others. */
static void give_way(void *arg, int fd, short events, uint64_t ms)
{
    struct lane *l = arg;
    struct pollfd p = {.fd = fd, .events = events};
    if (fd >= 0 && poll(&p, 1, 0) != 0)
        return;
    unsigned what = (events & POLLIN ? WATCH_READ : 0) | (events & POLLOUT ? WATCH_WRITE : 0);
    struct watch *w = fd >= 0 ? watch_new(l->serve->loop, fd, what, woken, l) : NULL;
    if (now != l || (fd >= 0 && w == NULL)) {
        watch_free(&w);
        (void)poll(fd >= 0 ? &p : NULL, fd >= 0, (int)ms);
        return;
    }
    timer_set(l->timer, ms);
    if (swapcontext(&l->here, &l->loop) != 0)
        log_die("a handler cannot give way");
    timer_clear(l->timer);
    watch_free(&w);
}

static void tend(struct serve *s, struct bstore *store)
{
    (void)!bstore_sweep(store);
    health_look(s, store);
}

/* On a stack of its own, for ever: one handler after the other. */
static void live(unsigned high, unsigned low)
{
    struct lane *l = (struct lane *)(((uintptr_t)high << 32) | low);
    for (;;) {
        if (l->x != NULL)
            l->fn(l->x);
        else
            tend(l->serve, l->store);
        l->busy = false;
        if (swapcontext(&l->here, &l->loop) != 0)
            log_die("a handler cannot end");
    }
}

/* --- who is next ---------------------------------------------------------------------------- */

static struct lane *idle(struct serve *s, bool streams)
{
    struct lane *free_one = NULL;
    unsigned asked = 0;
    for (size_t i = 0; i < SERVE_LANES; i++) {
        struct lane *l = &s->lanes[i];
        asked += l->busy && !l->streams;
        if (!l->busy && (free_one == NULL || l->used < free_one->used))
            free_one = l;
    }
    return streams || asked < SERVE_LANES_ASKED ? free_one : NULL;
}

static void enter(struct lane *l, struct call *x, call_fn *fn, bool streams)
{
    l->x = x;
    l->fn = fn;
    l->busy = true;
    l->used++;
    l->streams = streams;
    if (x != NULL)
        x->lane = l;
    resume(l);
}

static bool is_stream(const struct call *x)
{
    return x->todo == stream_more || x->todo == stream_open;
}

/* Does somebody of its tenant's have a lane, for the same: a question, or a stream? */
static bool has_one(const struct serve *s, const struct call *x)
{
    for (size_t i = 0; i < SERVE_LANES; i++) {
        const struct lane *l = &s->lanes[i];
        if (l->busy && l->streams == is_stream(x) && l->x != NULL && span_eq(call_tenant(l->x), call_tenant(x)))
            return true;
    }
    return false;
}

/* The first whose tenant has no lane; if every one has, the first: what one tenant asks for in a row is not what
 * another one waits for. NULL: nobody waits for a lane that is free. */
static struct call **first(struct serve *s)
{
    struct call **any = NULL;
    for (struct call **at = &s->waiting; *at != NULL; at = &(*at)->next) {
        if (idle(s, is_stream(*at)) == NULL)
            continue;
        if (!has_one(s, *at))
            return at;
        any = any != NULL ? any : at;
    }
    return any;
}

static void dispatch(void *arg)
{
    struct serve *s = arg;
    struct lane *l;
    struct call **at;
    s->deferred = false;
    while ((at = first(s)) != NULL) {
        struct call *x = *at;
        bool streams = is_stream(x);
        call_fn *fn = x->todo;
        *at = x->next;
        x->todo = NULL;
        enter(idle(s, streams), x, fn, streams); /* whoever is in there may be gone now */
    }
    if (s->sweeps && (l = idle(s, false)) != NULL) {
        s->sweeps = false;
        enter(l, NULL, NULL, false);
    }
}

void lanes_run(struct call *x, call_fn *fn)
{
    struct serve *s = x->serve;
    struct call **at = &s->waiting;
    if (s->lanes == NULL) {
        fn(x);
        return;
    }
    if (x->lane != NULL) {
        x->again = true;
        return;
    }
    if (x->todo != NULL)
        return;
    while (*at != NULL)
        at = &(*at)->next;
    *at = x;
    x->next = NULL;
    x->todo = fn;
    look_again(s);
}

bool lanes_hold(const struct call *x)
{
    return x->lane != NULL && x->lane != now;
}

void lanes_forget(struct call *x)
{
    if (x->lane != NULL)
        x->lane->x = NULL;
    for (struct call **at = &x->serve->waiting; x->todo != NULL && *at != NULL; at = &(*at)->next)
        if (*at == x) {
            *at = x->next;
            break;
        }
}

struct bstore *call_store(const struct call *x)
{
    return x->lane != NULL ? x->lane->store : x->serve->store;
}

void lanes_sweep(struct serve *s)
{
    if (s->lanes == NULL) {
        tend(s, s->store);
        return;
    }
    s->sweeps = true;
    look_again(s);
}

uint64_t lanes_pulse(struct serve *s)
{
    uint64_t sum = 0;
    if (s->lanes == NULL)
        return bstore_pulse(s->store);
    for (size_t i = 0; i < SERVE_LANES; i++) {
        if (!s->lanes[i].busy)
            s->lanes[i].pulse = bstore_pulse(s->lanes[i].store);
        sum += s->lanes[i].pulse;
    }
    return sum;
}

/* --- made ------------------------------------------------------------------------------------- */

static int make(struct serve *s, struct lane *l, struct bstore *store)
{
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *stack = mmap(NULL, SERVE_LANE_BYTES + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, guard, PROT_NONE) != 0 || getcontext(&l->here) != 0)
        return -1;
    l->serve = s;
    l->store = store;
    l->stack = stack;
    l->stack_n = SERVE_LANE_BYTES + guard;
    l->timer = timer_new(s->loop, late, l);
    l->here.uc_stack.ss_sp = stack + guard;
    l->here.uc_stack.ss_size = SERVE_LANE_BYTES;
    l->here.uc_link = NULL;
    makecontext(&l->here, (void (*)(void))live, 2, (unsigned)((uintptr_t)l >> 32), (unsigned)(uintptr_t)l);
    store->wait = give_way;
    store->wait_arg = l;
    return l->timer != NULL ? 0 : -1;
}

bool lanes_busy(const struct serve *s)
{
    bool busy = false;
    for (size_t i = 0; s->lanes != NULL && i < SERVE_LANES; i++)
        busy |= s->lanes[i].busy;
    return busy || s->waiting != NULL;
}

void lanes_end(struct serve *s)
{
    for (size_t i = 0; s->lanes != NULL && i < SERVE_LANES; i++) {
        struct lane *l = &s->lanes[i];
        l->store->wait = NULL;
        timer_free(&l->timer);
        (void)munmap(l->stack, l->stack_n);
    }
    free(s->lanes);
    s->lanes = NULL;
}

int lanes_begin(struct serve *s)
{
    if (s->more[0] == NULL)
        return 0;
    if ((s->lanes = calloc(SERVE_LANES, sizeof(*s->lanes))) == NULL)
        return -1;
    for (size_t i = 0; i < SERVE_LANES; i++)
        if (make(s, &s->lanes[i], i == 0 ? s->store : s->more[i - 1]) != 0)
            return -1;
    return 0;
}
