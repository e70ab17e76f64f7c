/* countersign-judge: its start-up, as a checklist; and struct judge_ports made of channels and the loop. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/file.h"
#include "common/log.h"
#include "common/time/clock.h"
#include "common/role/role.h"
#include "proxy/judge/judge.h"
#include "proxy/judge/recording/recorder.h"
#include "proxy/judge/recording/replay.h"
#include "proxy/msgs.h"

enum {
    LINK_BUCKETS = 256,
    END_LOOK_MS = 10,
    RECORDING_BYTES = 128 * 1024 * 1024,
    RECORDING_PIECE = 256 * 1024,
    RECORDING_QUEUE = CHAN_QUEUE_MAX * 3 / 4
};

struct app {
    struct loop *loop;
    struct timer *alarm, *end;
    struct judge *judge;
    struct role *role;
    struct recorder recorder;
    struct saying { /* what was begun last, while something is recorded */
        enum role_id to;
        uint64_t instance, id;
        uint16_t type;
        struct dynbuf *b;
        size_t at; /* where its payload begins */
    } saying;
    struct link *links[LINK_BUCKETS];
};

struct link {
    struct link *next;
    struct app *app;
    enum role_id role;
    uint64_t instance;
    struct chan *chan;
};

static struct link **place(struct app *a, enum role_id role, uint64_t instance)
{
    struct link **at = &a->links[(instance * 16 + role) % LINK_BUCKETS];
    while (*at != NULL && !((*at)->role == role && (*at)->instance == instance))
        at = &(*at)->next;
    return at;
}

/* ---- ports ---- */

static struct chan *chan_of(struct app *a, enum role_id to, uint64_t instance)
{
    const struct link *l = to == ROLE_PARENT ? NULL : *place(a, to, instance);
    return to == ROLE_PARENT ? role_parent(a->role) : l ? l->chan : NULL;
}

static struct dynbuf *port_begin(void *arg, enum role_id to, uint64_t instance, uint16_t type, uint64_t id)
{
    struct app *a = arg;
    struct chan *c = chan_of(a, to, instance);
    struct dynbuf *b = c ? chan_begin(c, type, id) : NULL;
    if (a->recorder.upto != 0)
        a->saying = (struct saying){to, instance, id, type, b, b ? b->n : 0};
    return b;
}

static void record_said(struct app *a, enum role_id to, uint64_t instance)
{
    struct saying *s = &a->saying;
    if (s->b != NULL && s->to == to && s->instance == instance)
        recorder_out(&a->recorder, to, instance, s->type, s->id, span_from(dynbuf_span(s->b), s->at));
    s->b = NULL;
}

static int port_commit(void *arg, enum role_id to, uint64_t instance, int fd)
{
    struct chan *c = chan_of(arg, to, instance);
    if (c == NULL)
        return -1;
    record_said(arg, to, instance);
    return fd >= 0 ? chan_commit_fd(c, fd) : chan_commit(c);
}

static int port_commit_soon(void *arg, enum role_id to, uint64_t instance)
{
    struct chan *c = chan_of(arg, to, instance);
    if (c == NULL)
        return -1;
    record_said(arg, to, instance);
    return chan_commit_soon(c);
}

static uint64_t port_now(void *arg)
{
    return loop_now(((struct app *)arg)->loop);
}

static uint64_t port_wall(void *arg)
{
    return loop_wall(((struct app *)arg)->loop);
}

static uint64_t port_clock(void *arg)
{
    (void)arg;
    return clock_ns(CLOCK_MONOTONIC) / 1000;
}

static void port_hold_back(void *arg, uint64_t instance, bool on)
{
    const struct link *l = *place(arg, ROLE_FRONT, instance);
    if (l != NULL)
        chan_pause(l->chan, on);
}

static void port_wake(void *arg, uint64_t in_ms)
{
    struct app *a = arg;
    if (in_ms == UINT64_MAX)
        timer_clear(a->alarm);
    else
        timer_set(a->alarm, in_ms);
}

static void on_alarm(void *arg)
{
    struct app *a = arg;
    recorder_event(&a->recorder, ENTRY_TICK, ROLE_NONE, 0, SPAN_NONE);
    judge_tick(a->judge);
}

/* ---- peers ---- */

static void drop(struct link *l)
{
    struct app *a = l->app;
    enum role_id role = l->role;
    uint64_t instance = l->instance;
    *place(a, role, instance) = l->next;
    chan_free(&l->chan);
    free(l);
    recorder_event(&a->recorder, ENTRY_GONE, role, instance, SPAN_NONE);
    judge_gone(a->judge, role, instance);
}

static void on_frame(void *arg, struct chan *c, struct frame *f)
{
    struct link *l = arg;
    recorder_in(&l->app->recorder, l->role, l->instance, f);
    if (judge_frame(l->app->judge, l->role, l->instance, f) == 0)
        return;
    log_exchange(LOG_ERROR, f->id, "the %s sent a message %u that breaks the contract; its channel is closed",
                 role_name(l->role), f->type);
    drop(l);
}

static void on_gone(void *arg, struct chan *c)
{
    drop(arg);
}

static void peer(void *arg, unsigned role, uint64_t instance, struct span info, int fd)
{
    static const struct chan_ops ops = {.frame = on_frame, .gone = on_gone};
    struct app *a = arg;
    struct link *old = *place(a, role, instance);
    if (old != NULL)
        drop(old);
    struct link *l = calloc(1, sizeof(*l));
    if (l == NULL)
        log_die("no memory for another channel");
    *l = (struct link){.app = a, .role = (enum role_id)role, .instance = instance};
    l->chan = chan_new(a->loop, fd, &ops, l);
    if (l->chan == NULL)
        log_die("no memory for another channel");
    struct link **at = place(a, role, instance);
    *at = l;
    recorder_event(&a->recorder, ENTRY_PEER, l->role, instance, info);
    judge_peer(a->judge, l->role, instance, info);
}

/* To the parent, which has the file, whole or not at all. A sandbox chooses how much there is to write down: never so
 * much that the parent's channel would end by it. */
static int to_parent(void *arg, struct span bytes)
{
    struct app *a = arg;
    struct chan *c = role_parent(a->role);
    if (c == NULL || chan_queued(c) + bytes.n > RECORDING_QUEUE)
        return -1;
    for (; bytes.n > 0; bytes = span_from(bytes, span_first(bytes, RECORDING_PIECE).n))
        if (chan_send(c, M_RECORDED, 0, span_first(bytes, RECORDING_PIECE)) != 0)
            return -1;
    return 0;
}

static void record(struct app *a, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint64_t from = msg_get_u64(&m), upto = msg_get_u64(&m);
    if (msg_end(&m) != 0)
        log_die("the parent's message about a recording cannot be read");
    recorder_set(&a->recorder, from, upto);
}

static void from_parent(void *arg, struct frame *f)
{
    struct app *a = arg;
    if (f->type == M_RECORD) {
        record(a, f);
        return;
    }
    recorder_in(&a->recorder, ROLE_PARENT, 0, f);
    if (judge_frame(a->judge, ROLE_PARENT, 0, f) != 0) /* the next one begins with what is in force */
        log_die("the parent sent a message %u that cannot be used", f->type);
}

static void config(void *arg, struct span key, struct span value)
{
    struct app *a = arg;
    if (judge_config(a->judge, key, value) == JUDGE_CONFIG_BAD)
        log_die("%.*s: not a value for it", SPAN_FMT(key));
}

static void flush_links(struct app *a)
{
    for (size_t i = 0; i < LINK_BUCKETS; i++)
        for (struct link *l = a->links[i]; l != NULL; l = l->next)
            chan_free(&l->chan);
}

/* What is with the carrier may still end; the parent's patience is the limit. */
static void on_end(void *arg)
{
    struct app *a = arg;
    if (judge_exchanges(a->judge) > 0) {
        timer_set(a->end, END_LOOK_MS);
        return;
    }
    flush_links(a);
    exit(0);
}

static void stop(void *arg)
{
    struct app *a = arg;
    if (a->end != NULL)
        return;
    a->end = timer_new(a->loop, on_end, a);
    judge_end(a->judge);
    if (a->end == NULL)
        exit(0);
    timer_set(a->end, 0);
}

/* --replay FILE NUMBER: no role, but a program of the operator's, who may stop it in a debugger. The requests in the
 * file are a sandbox's: behind the wall they can do no more than in the role. */
static int replay(const char *path, const char *number, const struct wall *wall)
{
    static char out[BUFSIZ]; /* stdio would ask what its descriptor is */
    struct err e = {{0}};
    struct replay_result r;
    struct dynbuf bytes;
    uint64_t exchange = 0;
    log_init("judge", LOG_WARN);
    dynbuf_init(&bytes, RECORDING_BYTES);
    int bad = span_u64(span_str(number), UINT64_MAX - 1, &exchange) != 0 ? err_set(&e, "that is no exchange's number")
              : file_read(path, &bytes) != 0                             ? err_errno(&e, "it cannot be read")
                                                                         : 0;
    log_set(&(struct log_setting){LOG_WARN, exchange, exchange + 1});
    if (setvbuf(stdout, out, _IOLBF, sizeof(out)) == 0)
        role_confine_alone(wall);
    else
        bad = err_errno(&e, "its output cannot be prepared");
    if (bad == 0)
        bad = replay_run(dynbuf_span(&bytes), exchange, stdout, &r, &e);
    if (bad != 0)
        fprintf(stderr, "%s: %s\n", path, e.text);
    else if (r.differs > 0)
        printf("%u messages to the judge, %u from it; %u are not as recorded\n", r.heard, r.said, r.differs);
    else
        printf("%u messages to the judge, %u from it, all as recorded\n", r.heard, r.said);
    dynbuf_free(&bytes);
    return bad != 0 || r.differs > 0;
}

int main(int argc, char **argv)
{
    static struct app a;
    static const struct role_ops ops = {.frame = from_parent, .peer = peer, .config = config, .stop = stop};
    static const struct wall wall = {.calls = WALL_MEMFD};
    const struct judge_ports ports = {&a,        port_begin,       port_commit, port_now,      port_wall,
                                      port_wake, port_commit_soon, port_clock,  port_hold_back};
    if (argc == 4 && span_eq(span_str(argv[1]), SPAN("--replay")))
        return replay(argv[2], argv[3], &wall);
    a.loop = loop_new();
    a.judge = judge_new(&ports);
    a.alarm = a.loop ? timer_new(a.loop, on_alarm, &a) : NULL;
    if (a.judge == NULL || a.alarm == NULL)
        return 1;
    a.recorder = (struct recorder){.judge = a.judge, .sink = to_parent, .arg = &a};
    a.role = role_start("judge", a.loop, &ops, &a);
    role_confine(a.role, &wall);
    role_ready(a.role);
    return loop_run(a.loop) == 0 ? 0 : 1;
}
