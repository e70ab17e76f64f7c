/* The front as a whole: its doors, and the frames it takes. */
#include "proxy/front/front.h"

#include <errno.h>
#include <unistd.h>

#include "common/log.h"
#include "proxy/front/client.h"

enum { SAY_AGAIN_MS = 10 * 1000, END_MS = 500, END_LOOK_MS = 10 };

static const struct front_limits usual = {
    .clients = FRONT_CLIENTS,
    .head_ms = 10 * 1000,
    .idle_ms = 120 * 1000,
    .leaf_ms = 10 * 1000,
    .tls_ms = 10 * 1000,
    .body_ms = 60 * 1000,
    .write_ms = 60 * 1000,
    .close_ms = 2 * 1000,
    .gone_ms = 30 * 1000,
    .rest_ms = 100,
};

/* ---- doors ---- */

static void doors(struct front *f)
{
    bool open = f->nclients < f->limits.clients && !f->resting && !f->going && !f->ending;
    for (size_t i = 0; i < f->ndoors; i++)
        watch_set(f->door[i].watch, open ? WATCH_READ : 0);
}

void front_counted(struct front *f)
{
    doors(f);
    if (f->nclients == 0)
        timer_set(f->idle, f->limits.gone_ms);
    else
        timer_clear(f->idle);
}

/* Without descriptors or memory a listener stays ready for ever: look away for a while. */
static void rest(struct front *f, int error)
{
    uint64_t now = loop_now(f->loop);
    if (f->said == 0 || now - f->said > SAY_AGAIN_MS) {
        log_warn("cannot accept connections: %s; trying again until it can be done", strerror(error));
        f->said = now;
    }
    f->resting = true;
    timer_set(f->rest, f->limits.rest_ms);
    doors(f);
}

static void on_rested(void *arg)
{
    struct front *f = arg;
    f->resting = false;
    doors(f);
}

static void let_in(const struct front_door *door, int fd)
{
    struct arrival a = {.way = WAY_HTTP};
    if (door->kind == LISTEN_STEPS)
        a.way = WAY_STEP;
    if (door->kind == LISTEN_CAPTURED_UNIX)
        a = (struct arrival){.way = WAY_CAPTURED, .header = true};
    if (door->kind == LISTEN_CAPTURED) {
        a.way = WAY_CAPTURED;
        if (listen_original_port(fd, &a.port) != 0) {
            client_not_captured(door->front, fd);
            return;
        }
    }
    client_adopt(door->front, fd, &a);
}

static void on_knock(void *arg, unsigned ready)
{
    struct front_door *door = arg;
    struct front *f = door->front;
    (void)ready;
    for (int i = 0; i < 32 && f->nclients < f->limits.clients; i++) {
        int fd = listen_accept(door->fd);
        if (fd < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                rest(f, errno);
            return;
        }
        let_in(door, fd);
    }
}

static void add_door(struct front *f, enum listen_kind kind, int fd)
{
    struct front_door *door = &f->door[f->ndoors];
    bool known =
        kind == LISTEN_OWN || kind == LISTEN_CAPTURED || kind == LISTEN_CAPTURED_UNIX || kind == LISTEN_STEPS;
    if (f->ndoors == FRONT_DOORS_MAX || !known) {
        log_error("a listener of kind %d cannot be taken over; one sandbox has at most %d", (int)kind,
                  FRONT_DOORS_MAX);
        close(fd);
        return;
    }
    *door =
        (struct front_door){.front = f, .fd = fd, .kind = kind, .watch = watch_new(f->loop, fd, 0, on_knock, door)};
    if (door->watch == NULL)
        log_die("out of memory");
    f->ndoors++;
    doors(f);
}

/* ---- the judge and the carrier ---- */

/* Who waits is told, unless an answer has begun: that can only be cut, and only the carrier's end does that. */
static void refuse_waiting(struct front *f)
{
    for (struct client *c = f->clients, *next; c != NULL; c = next) {
        next = c->next;
        if (c->x.state != EXCHANGE_ASKED)
            continue;
        if (c->x.writes) /* who was sent a 5xx may send it again by itself */
            front_refuse(c, 409, "gateway-restarting",
                         "a part of the gateway is restarting, and whether this was sent only its audit says; if it "
                         "waited for a person, repeat the request");
        else
            front_refuse(c, 503, "gateway-restarting", "a part of the gateway is restarting; repeat the request");
    }
}

static void cut_answers(struct front *f)
{
    for (struct client *c = f->clients, *next; c != NULL; c = next) {
        next = c->next;
        if (client_answered(c))
            client_cut(c);
    }
}

static void from_judge(void *arg, struct chan *ch, struct frame *fr)
{
    struct client *c = client_of(arg, fr->id);
    (void)ch;
    if (c == NULL)
        return; /* a late answer for a client that left */
    switch (fr->type) {
    case M_LEAF: front_leaf(c, fr); break;
    case M_REPLY: front_reply(c, fr->payload); break;
    case M_BODY_WANTED: front_body_wanted(c, fr); break;
    case M_BODY_CREDIT: front_body_credit(c, fr); break;
    default: log_exchange(LOG_ERROR, fr->id, "the judge sends message %u, which the front does not know", fr->type);
    }
}

static void judge_gone(void *arg, struct chan *ch)
{
    struct front *f = arg;
    (void)ch;
    chan_free(&f->judge);
    refuse_waiting(f);
}

static void from_carrier(void *arg, struct chan *ch, struct frame *fr)
{
    struct client *c = client_of(arg, fr->id);
    (void)ch;
    if (c == NULL || c->state == CLIENT_LEAF)
        return;
    switch (fr->type) {
    case M_ANSWER: front_answer(c, fr); break;
    case M_ANSWER_BODY: front_answer_body(c, fr->payload); break;
    case M_ANSWER_END: front_answer_end(c, fr); break;
    case M_SWITCH: front_switch(c, fr); break;
    case M_ANSWER_MESSAGE: front_websocket_message(c, fr->payload); break;
    default: log_exchange(LOG_ERROR, fr->id, "the carrier sends message %u, which the front does not know", fr->type);
    }
}

/* What it had not begun to answer, the judge will. */
static void carrier_gone(void *arg, struct chan *ch)
{
    struct front *f = arg;
    (void)ch;
    chan_free(&f->carrier);
    cut_answers(f);
}

void front_peer(void *arg, unsigned peer, uint64_t instance, struct span info, int fd)
{
    static const struct chan_ops judge_ops = {from_judge, judge_gone}, carrier_ops = {from_carrier, carrier_gone};
    struct front *f = arg;
    (void)instance, (void)info;
    if (peer == ROLE_JUDGE) {
        if (f->judge != NULL)
            judge_gone(f, f->judge);
        f->judge = chan_new(f->loop, fd, &judge_ops, f);
        struct dynbuf *b = f->judge ? chan_begin(f->judge, M_FRONT_KEY, 0) : NULL;
        if (b == NULL)
            log_die("out of memory");
        msg_put_span(b, tls_key_spki(f->key));
        (void)chan_commit(f->judge); /* if not, judge_gone follows */
    } else if (peer == ROLE_CARRIER) {
        if (f->carrier != NULL)
            carrier_gone(f, f->carrier);
        if ((f->carrier = chan_new(f->loop, fd, &carrier_ops, f)) == NULL)
            log_die("out of memory");
    } else {
        close(fd);
    }
}

/* ---- the parent ---- */

void front_frame(void *arg, struct frame *fr)
{
    struct front *f = arg;
    struct msg_in m = msg_in(fr->payload);
    int fd = frame_take_fd(fr, 0);
    if (fd < 0)
        return;
    if (fr->type == M_ADOPT) {
        struct arrival a = {.way = (enum way)msg_get_u8(&m)};
        a.port = msg_get_u16(&m);
        a.auth = msg_get_span(&m, FRONT_AUTH_MAX);
        a.bytes = msg_get_span(&m, FRONT_INPUT_MAX);
        f->adopted++;
        f->going = false;
        doors(f);
        if (msg_end(&m) == 0)
            client_adopt(f, fd, &a);
        else
            close(fd);
    } else if (fr->type == M_LISTEN) {
        add_door(f, (enum listen_kind)msg_get_u8(&m), fd);
    } else {
        close(fd);
    }
}

/* Nothing to do for a while: ask to go. The parent says M_STOP if nothing is on its way here. */
static void on_idle(void *arg)
{
    struct front *f = arg;
    if (f->nclients > 0 || f->parent == NULL)
        return;
    f->going = true;
    doors(f);
    timer_set(f->idle, f->limits.gone_ms);
    struct dynbuf *b = chan_begin(f->parent, M_IDLE, 0);
    if (b == NULL)
        return;
    msg_put_u64(b, f->adopted);
    (void)chan_commit(f->parent);
}

static void on_tell(void *arg)
{
    front_tell(arg);
}

/* ---- the end ---- */

/* The judge's last words come before its own end does; who has waited for them in vain is told here. */
static void on_end(void *arg)
{
    struct front *f = arg;
    bool late = loop_now(f->loop) >= f->end_by, more = false;
    if (late)
        refuse_waiting(f);
    for (struct client *c = f->clients, *next; c != NULL; c = next) {
        next = c->next;
        if (!client_asks(c) && c->state != CLIENT_CLOSING && conn_queued(c->conn) == 0)
            client_finish(c);
    }
    for (const struct client *c = f->clients; c != NULL; c = c->next)
        more |= client_asks(c) || conn_queued(c->conn) > 0;
    if (late || !more)
        loop_stop(f->loop);
    else
        timer_set(f->end, END_LOOK_MS);
}

void front_end(struct front *f)
{
    if (f->ending)
        return;
    f->ending = true;
    f->end_by = loop_now(f->loop) + END_MS;
    if (f->nclients > 0)
        f->end = timer_new(f->loop, on_end, f);
    if (f->end == NULL) {
        loop_stop(f->loop);
        return;
    }
    doors(f);
    on_end(f);
}

int front_init(struct front *f, struct loop *l, uint64_t instance, struct err *e)
{
    *f = (struct front){.loop = l, .limits = usual, .instance = instance};
    dynbuf_init(&f->path, 3 * HTTP_TARGET_MAX);
    dynbuf_init(&f->query, 3 * HTTP_TARGET_MAX);
    dynbuf_init(&f->out, 2 * HTTP_ANSWER_HEAD_MAX);
    if (instance == 0 || instance > FRONT_INSTANCE_MAX)
        return err_set(e, "no instance number");
    if ((f->tls = tls_server_new(e)) == NULL)
        return -1;
    f->key = tls_key_new();
    f->idle = timer_new(l, on_idle, f);
    f->rest = timer_new(l, on_rested, f);
    f->tell = timer_new(l, on_tell, f);
    if (f->key == NULL || f->idle == NULL || f->rest == NULL || f->tell == NULL)
        return err_set(e, "no memory for a leaf key or a timer");
    timer_set(f->idle, f->limits.gone_ms);
    return 0;
}

void front_done(struct front *f)
{
    while (f->clients != NULL)
        client_free(f->clients);
    for (size_t i = 0; i < f->ndoors; i++) {
        watch_free(&f->door[i].watch);
        close(f->door[i].fd);
    }
    f->ndoors = 0;
    timer_free(&f->idle);
    timer_free(&f->rest);
    front_tell(f);
    timer_free(&f->tell);
    timer_free(&f->end);
    chan_free(&f->judge);
    chan_free(&f->carrier);
    front_leafs_free(f);
    tls_key_free(&f->key);
    tls_server_free(&f->tls);
    dynbuf_free(&f->path);
    dynbuf_free(&f->query);
    dynbuf_free(&f->out);
}
