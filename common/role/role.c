/* Starting and confining a role. See role.h. */
#include "common/role/role.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/role/role_in.h"
#include "common/trace.h"

enum { PAIRS_MAX = 256, KEY_MAX = 64, VALUE_MAX = 64 * 1024, INFO_MAX = 4096 };

/* A peer's channel, by its descriptor. */
struct peer {
    struct peer *next;
    int fd;
    uint8_t role;
    uint64_t instance, link; /* link: the parent's number of this channel */
};

struct role {
    const struct role_ops *ops;
    void *arg;
    struct chan *parent;
    int config_fd[CHAN_FDS_MAX];
    unsigned nconfig_fds;
    struct role_user user;
    struct peer *peers;
};

static struct role role; /* one a process */

/* ---- frames of the parent ---- */

static void stop(struct role *r)
{
    if (r->ops->stop != NULL)
        r->ops->stop(r->arg);
    else
        exit(0);
}

/* A descriptor that ends here and is used again would be taken for the one before: there is one of each. */
static void note_peer(struct role *r, int fd, unsigned peer, uint64_t instance, uint64_t link)
{
    struct peer *p = r->peers;
    while (p != NULL && p->fd != fd)
        p = p->next;
    if (p == NULL) {
        if ((p = malloc(sizeof(*p))) == NULL)
            log_die("no memory");
        p->next = r->peers;
        r->peers = p;
    }
    *p = (struct peer){.next = p->next, .fd = fd, .role = (uint8_t)peer, .instance = instance, .link = link};
}

/* Of a peer that has died the parent knows; of one that lives it makes another channel. */
static void peer_lost(int fd)
{
    struct peer **at = &role.peers, *p;
    while ((p = *at) != NULL && p->fd != fd)
        at = &p->next;
    if (p == NULL)
        return;
    *at = p->next;
    struct dynbuf *b = role.parent ? chan_begin(role.parent, ROLE_MSG_LOST, 0) : NULL;
    if (b != NULL) {
        msg_put_u8(b, p->role);
        msg_put_u64(b, p->instance);
        msg_put_u64(b, p->link);
        (void)chan_commit(role.parent);
    }
    free(p);
}

static void on_peer(struct role *r, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    unsigned peer = msg_get_u8(&m);
    uint64_t instance = msg_get_u64(&m);
    struct span info = msg_get_span(&m, INFO_MAX);
    uint64_t link = msg_get_u64(&m);
    int fd = msg_end(&m) == 0 ? frame_take_fd(f, 0) : -1;
    if (fd < 0)
        log_die("the parent's message about a peer cannot be read; is this the same version of countersignd?");
    note_peer(r, fd, peer, instance, link);
    if (r->ops->peer != NULL)
        r->ops->peer(r->arg, peer, instance, info, fd);
    else
        close(fd);
}

static void on_log(struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct log_setting s = {.level = (enum log_level)msg_get_u8(&m)};
    s.from = msg_get_u64(&m);
    s.upto = msg_get_u64(&m);
    if (msg_end(&m) != 0)
        log_die("the parent's message about the log cannot be read");
    log_set(&s);
}

static void on_trace(struct role *r, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint64_t exchange = msg_get_u64(&m);
    struct dynbuf *b = msg_end(&m) == 0 ? chan_begin(r->parent, ROLE_MSG_TRACE, f->id) : NULL;
    if (b == NULL)
        return;
    trace_put(b, exchange);
    (void)chan_commit(r->parent);
}

static void on_frame(void *arg, struct chan *c, struct frame *f)
{
    struct role *r = arg;
    (void)c;
    if (f->type == ROLE_MSG_PEER)
        on_peer(r, f);
    else if (f->type == ROLE_MSG_LOG)
        on_log(f);
    else if (f->type == ROLE_MSG_TRACE)
        on_trace(r, f);
    else if (f->type == ROLE_MSG_STOP)
        stop(r);
    else if (f->type == ROLE_MSG_SYNC) /* all that was said before it has been acted on */
        (void)chan_send(r->parent, ROLE_MSG_SYNC, f->id, SPAN_NONE);
    else if (r->ops->frame != NULL)
        r->ops->frame(r->arg, f);
}

static void on_gone(void *arg, struct chan *c)
{
    struct role *r = arg;
    (void)c;
    chan_free(&r->parent);
    stop(r);
}

static const struct chan_ops parent_ops = {on_frame, on_gone};

/* ---- start ---- */

static void read_config(struct role *r)
{
    struct dynbuf payload;
    struct frame f;
    dynbuf_init(&payload, CHAN_PAYLOAD_MAX);
    role_take_channel("parent");
    if (chan_read_one(ROLE_PARENT_FD, &f, &payload) != 0) {
        role_end_if_alone();
        log_die("what the parent sent first is no configuration");
    }
    struct msg_in m = msg_in(f.payload);
    if (f.type != ROLE_MSG_CONFIG || msg_get_u32(&m) != MSG_VERSION)
        log_die("the parent speaks another version of the messages; stop countersignd, install once more, start it");
    unsigned n = msg_get_u16(&m);
    for (unsigned i = 0; i < n && n <= PAIRS_MAX && !m.bad; i++) {
        struct span key = msg_get_span(&m, KEY_MAX), value = msg_get_span(&m, VALUE_MAX);
        if (span_eq(key, SPAN("boot")))
            log_boot(value);
        if (span_eq(key, SPAN("log_form")))
            log_form(span_eq(value, SPAN("json")) ? LOG_JSON : span_eq(value, SPAN("text")) ? LOG_TEXT : LOG_AUTO);
        else if (!m.bad && r->ops->config != NULL)
            r->ops->config(r->arg, key, value);
    }
    if (n > PAIRS_MAX || msg_end(&m) != 0)
        log_die("the configuration from the parent cannot be read");
    memcpy(r->config_fd, f.fd, f.nfds * sizeof(int));
    r->nconfig_fds = f.nfds;
    dynbuf_wipe(&payload);
}

struct role *role_start(const char *name, struct loop *l, const struct role_ops *ops, void *arg)
{
    struct role *r = &role;
    log_init(name, LOG_INFO);
    *r = (struct role){.ops = ops, .arg = arg};
    role_user_read(&r->user);
    /* With a TZ the C library never looks at /etc/localtime again; the logs are in UTC anyway. */
    if (setenv("TZ", "UTC0", 1) != 0)
        log_die("no memory");
    tzset();
    role_open_crypto();
    signal(SIGPIPE, SIG_IGN);
    /* A Ctrl-C, a hangup or a service manager's TERM reach the whole group: the parent says when it is our turn. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    role_close_inherited();
    role_limits();
    role_die_with_parent();
    read_config(r);
    chan_on_end(peer_lost);
    r->parent = chan_new(l, ROLE_PARENT_FD, &parent_ops, r);
    if (r->parent == NULL)
        log_die("no memory");
    return r;
}

int role_config_fd(const struct role *r, unsigned i)
{
    return i < r->nconfig_fds ? r->config_fd[i] : -1;
}

struct chan *role_parent(struct role *r)
{
    return r->parent;
}

void role_confine(struct role *r, const struct wall *w)
{
    role_wipe_environment();
    role_user_become(&r->user);
    role_shut(w, true);
}

void role_ready(struct role *r)
{
    if (chan_send(r->parent, ROLE_MSG_READY, 0, SPAN_NONE) != 0)
        log_die("the parent cannot be told that all is ready");
}
