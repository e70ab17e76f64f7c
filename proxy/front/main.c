/* The front's start-up, and the frames it takes. */
#include "proxy/front/front.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"

static struct front front = {.listener = -1};

static void refuse_waiting(struct front *f, bool carrier_lost)
{
    for (struct client *c = f->clients, *next; c != NULL; c = next) {
        next = c->next;
        if (c->state == CLIENT_LEAF || (c->on && !c->x.answering && !carrier_lost)) {
            c->x.mode = BODY_MODE_ASKED; /* the body was not read to its end: the connection cannot go on */
            front_refuse(
                c, 503, "gateway-restarting",
                "a part of the gateway is restarting; whether a write was sent is in its audit; repeat the request");
        } else if (c->on && c->x.answering && carrier_lost) {
            exchange_end(c, "the carrier died");
            client_free(c);
        }
    }
}

static void from_judge(void *arg, struct chan *ch, struct frame *f)
{
    struct client *c = client_of(arg, f->id);
    if (c == NULL)
        return; /* a late answer for a client that left */
    switch (f->type) {
    case M_LEAF: front_leaf(c, f); break;
    case M_REPLY: front_reply(c, f); break;
    case M_BODY_WANTED: front_body_wanted(c, f); break;
    case M_BODY_CREDIT: front_body_credit(c, f); break;
    default: log_error("the judge said %u", f->type);
    }
}

static void judge_gone(void *arg, struct chan *ch)
{
    struct front *f = arg;
    chan_free(&f->judge);
    refuse_waiting(f, false);
}

static void from_carrier(void *arg, struct chan *ch, struct frame *f)
{
    struct client *c = client_of(arg, f->id);
    if (c == NULL || c->state == CLIENT_LEAF)
        return;
    switch (f->type) {
    case M_ANSWER: front_answer(c, f); break;
    case M_ANSWER_BODY: front_answer_body(c, f->payload); break;
    case M_ANSWER_END: front_answer_end(c, f); break;
    default: log_error("the carrier said %u", f->type);
    }
}

static void carrier_gone(void *arg, struct chan *ch)
{
    struct front *f = arg;
    chan_free(&f->carrier);
    refuse_waiting(f, true);
}

static void on_peer(void *arg, unsigned peer, uint64_t instance, struct span info, int fd)
{
    static const struct chan_ops judge_ops = {from_judge, judge_gone}, carrier_ops = {from_carrier, carrier_gone};
    struct front *f = arg;
    if (peer == ROLE_JUDGE) {
        if (f->judge != NULL)
            judge_gone(f, f->judge);
        f->judge = chan_new(f->loop, fd, &judge_ops, f);
        struct dynbuf *b = f->judge ? chan_begin(f->judge, M_FRONT_KEY, 0) : NULL;
        if (b == NULL)
            log_die("out of memory");
        msg_put_span(b, tls_key_spki(f->key));
        (void)chan_commit(f->judge);
    } else if (peer == ROLE_CARRIER) {
        if (f->carrier != NULL)
            carrier_gone(f, f->carrier);
        f->carrier = chan_new(f->loop, fd, &carrier_ops, f);
    } else {
        close(fd);
    }
}

static void on_knock(void *arg, unsigned ready)
{
    struct front *f = arg;
    for (int i = 0; i < 32 && f->nclients < CLIENTS_MAX; i++) {
        int fd = listen_accept(f->listener);
        if (fd < 0)
            return;
        f->adopted += 0; /* only what the parent hands over is counted for it */
        client_adopt(f, fd, SPAN_NONE, SPAN_NONE);
    }
}

static void on_frame(void *arg, struct frame *fr)
{
    struct front *f = arg;
    struct msg_in m = msg_in(fr->payload);
    int fd = frame_take_fd(fr, 0);
    if (fd < 0)
        return;
    if (fr->type == M_ADOPT) {
        struct span auth = msg_get_span(&m, 8 * 1024), bytes = msg_get_span(&m, INPUT_MAX);
        f->adopted++;
        if (f->listening != NULL)
            watch_set(f->listening, WATCH_READ);
        if (msg_end(&m) == 0)
            client_adopt(f, fd, auth, bytes);
        else
            close(fd);
    } else if (fr->type == M_LISTEN && f->listener < 0) {
        f->listener = fd;
        f->listening = watch_new(f->loop, fd, WATCH_READ, on_knock, f);
    } else {
        close(fd);
    }
}

/* Nothing to do for a while: ask to go. The parent says M_STOP if nothing is on its way here. */
static void on_idle(void *arg)
{
    struct front *f = arg;
    if (f->nclients > 0)
        return;
    if (f->listening != NULL)
        watch_set(f->listening, 0);
    struct dynbuf *b = chan_begin(role_parent(f->role), M_IDLE, 0);
    if (b == NULL)
        return;
    msg_put_u64(b, f->adopted);
    (void)chan_commit(role_parent(f->role));
}

static void on_config(void *arg, struct span key, struct span value)
{
    struct front *f = arg;
    if (span_eq(key, SPAN("instance")) && span_u64(value, (1u << 24) - 1, &f->instance) != 0)
        log_die("no instance number");
}

int main(void)
{
    static const struct role_ops ops = {.frame = on_frame, .peer = on_peer, .config = on_config};
    static const struct wall wall = {.calls = WALL_MEMFD | WALL_ACCEPT};
    struct front *f = &front;
    struct err e;
    if ((f->loop = loop_new()) == NULL)
        log_die("no event loop");
    f->role = role_start("front", f->loop, &ops, f);
    if (f->instance == 0 || (f->key = tls_key_new()) == NULL)
        log_die("no leaf key");
    if ((f->tls = tls_server_new(&e)) == NULL)
        log_die("%s", e.text);
    if ((f->idle = timer_new(f->loop, on_idle, f)) == NULL)
        log_die("out of memory");
    timer_set(f->idle, FRONT_IDLE_MS);
    role_confine(f->role, &wall);
    role_ready(f->role);
    return loop_run(f->loop) == 0 ? 0 : 1;
}
