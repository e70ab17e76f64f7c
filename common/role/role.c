/* Starting and confining a role. See role.h. */
#include "common/role/role.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/role/wall.h"
#include "common/trace.h"

extern char **environ;

enum { PARENT_FD = 3, PAIRS_MAX = 256, KEY_MAX = 64, VALUE_MAX = 64 * 1024, INFO_MAX = 4096, FILES_MAX = 65536 };

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
    long uid, gid; /* -1: stay who we are */
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

/* What came through exec and was not meant for us: it has no close-on-exec mark, all of our own have. */
static void close_inherited(void)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    if (d == NULL) {
        log_warn("inherited descriptors cannot be looked for: /proc is not there");
        return;
    }
    while ((e = readdir(d)) != NULL) {
        int fd = atoi(e->d_name);
        int flags = fd > PARENT_FD ? fcntl(fd, F_GETFD) : -1;
        if (flags >= 0 && !(flags & FD_CLOEXEC))
            close(fd);
    }
    closedir(d);
}

static bool alone(void)
{
    struct pollfd p = {.fd = PARENT_FD};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

/* Nothing is wrong when who started this one ended, or had no more use for it, before it had begun. */
static void end_if_alone(void)
{
    if (!alone())
        return;
    log_info("who started this program has ended already; so does it");
    exit(1);
}

/* Cleared by the kernel whenever the uid changes, so this is said again after it has. */
static void die_with_parent(void)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        log_die("PR_SET_PDEATHSIG: %s", strerror(errno));
#ifndef COUNTERSIGN_DEV /* the leak check attaches to its own process */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        log_die("PR_SET_DUMPABLE: %s", strerror(errno));
#endif
    end_if_alone();
}

static void limits(void)
{
    struct rlimit none = {0, 0}, files;
    if (setrlimit(RLIMIT_CORE, &none) != 0)
        log_die("RLIMIT_CORE: %s", strerror(errno));
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max < FILES_MAX ? files.rlim_max : FILES_MAX;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static long number_from_env(const char *name)
{
    const char *text = getenv(name);
    uint64_t v;
    if (text == NULL)
        return -1;
    if (span_u64(span_str(text), INT32_MAX, &v) != 0 || v == 0)
        log_die("%s is not the number of an ordinary user or group", name);
    return (long)v;
}

static void read_config(struct role *r)
{
    struct dynbuf payload;
    struct frame f;
    int flags = fcntl(PARENT_FD, F_GETFL);
    dynbuf_init(&payload, CHAN_PAYLOAD_MAX);
    if (flags < 0 || fcntl(PARENT_FD, F_SETFL, flags & ~O_NONBLOCK) != 0 ||
        fcntl(PARENT_FD, F_SETFD, FD_CLOEXEC) != 0)
        log_die("there is no parent on descriptor 3; roles are started by countersignd");
    if (chan_read_one(PARENT_FD, &f, &payload) != 0) {
        end_if_alone();
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

/* Without its configuration file, which a confined process could not read. */
static void open_crypto(void)
{
    if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
        log_die("OpenSSL cannot be set up");
}

struct role *role_start(const char *name, struct loop *l, const struct role_ops *ops, void *arg)
{
    struct role *r = &role;
    log_init(name, LOG_INFO);
    *r = (struct role){.ops = ops, .arg = arg};
    r->uid = number_from_env("COUNTERSIGN_UID");
    r->gid = number_from_env("COUNTERSIGN_GID");
    /* With a TZ the C library never looks at /etc/localtime again; the logs are in UTC anyway. */
    if (setenv("TZ", "UTC0", 1) != 0)
        log_die("no memory");
    tzset();
    open_crypto();
    signal(SIGPIPE, SIG_IGN);
    /* A Ctrl-C, a hangup or a service manager's TERM reach the whole group: the parent says when it is our turn. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    close_inherited();
    limits();
    die_with_parent();
    read_config(r);
    chan_on_end(peer_lost);
    r->parent = chan_new(l, PARENT_FD, &parent_ops, r);
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

/* ---- confinement ---- */

static void change_user(const struct role *r)
{
    if (r->uid < 0 || geteuid() != 0)
        return;
    gid_t gid = (gid_t)(r->gid < 0 ? r->uid : r->gid);
    uid_t uid = (uid_t)r->uid;
    if (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
        log_die("becoming user %ld: %s", r->uid, strerror(errno));
    if (getuid() != uid || geteuid() != uid || getgid() != gid || setuid(0) == 0)
        log_die("becoming user %ld did not last", r->uid);
}

/* The strings lie where the kernel put them at exec, for anybody who can read this process's memory. */
static void wipe_environment(void)
{
    for (char **e = environ; e != NULL && *e != NULL; e++)
        explicit_bzero(*e, strlen(*e));
    if (clearenv() != 0 || setenv("TZ", "UTC0", 1) != 0)
        log_die("the environment cannot be cleared");
    tzset();
}

static void confine(const struct wall *w, bool has_parent)
{
    struct err e = {""};
    int abi = 0;
    if (wall_no_privileges(&e) != 0)
        log_die("cannot give up privileges: %s", e.text);
    if (has_parent)
        die_with_parent();
    if (wall_landlock(w, &abi, &e) != 0)
        log_die("cannot be confined: %s", e.text);
    if (abi == 0)
        log_warn(
            "THIS KERNEL HAS NO LANDLOCK: files are kept from this process by its user and its system calls alone");
#ifdef COUNTERSIGN_DEV
    log_warn("sanitizer build: system calls are NOT restricted");
#else
    if (wall_seccomp(w, &e) != 0)
        log_die("cannot be confined: %s", e.text);
#endif
    log_debug("confined: Landlock ABI %d", abi);
}

void role_confine(struct role *r, const struct wall *w)
{
    wipe_environment();
    change_user(r);
    confine(w, true);
}

void role_confine_alone(const struct wall *w)
{
    open_crypto();
    wipe_environment();
    confine(w, false);
}

void role_ready(struct role *r)
{
    if (chan_send(r->parent, ROLE_MSG_READY, 0, SPAN_NONE) != 0)
        log_die("the parent cannot be told that all is ready");
}

void role_job_start(const char *name)
{
    log_init(name, LOG_INFO);
    role.uid = number_from_env("COUNTERSIGN_UID");
    role.gid = number_from_env("COUNTERSIGN_GID");
    (void)setpgid(0, 0); /* the parent does it as well: whoever comes first */
    signal(SIGPIPE, SIG_IGN);
    int flags = fcntl(PARENT_FD, F_GETFL);
    if (flags < 0 || fcntl(PARENT_FD, F_SETFL, flags & ~O_NONBLOCK) != 0 ||
        fcntl(PARENT_FD, F_SETFD, FD_CLOEXEC) != 0)
        log_die("there is no channel on descriptor 3; countersignd starts this program");
    close_inherited();
    limits();
    change_user(&role);
    die_with_parent();
    wipe_environment();
}

void role_job_order(struct frame *f, struct dynbuf *payload)
{
    dynbuf_init(payload, CHAN_PAYLOAD_MAX);
    if (chan_read_one(PARENT_FD, f, payload) == 0)
        return;
    end_if_alone();
    log_die("no order came; countersignd has this program started");
}

bool role_job_answer(uint16_t type, uint64_t id, const struct dynbuf *payload)
{
    if (dynbuf_ok(payload) && chan_write_one(PARENT_FD, type, id, dynbuf_span(payload)) == 0)
        return true;
    if (alone())
        log_info("who started this program has ended before it heard how it went");
    else
        log_error("how it went cannot be told to who started this program");
    return false;
}
