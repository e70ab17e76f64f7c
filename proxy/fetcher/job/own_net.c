#include "proxy/fetcher/job/own_net.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "common/role/role.h"
#include "common/role/wall.h"
#include "proxy/fetcher/job/relay.h"

enum { LISTENER = 1 /* the one frame between the two */ };

/* ---- the relay's process ---- */

static int copy_places(const struct job *j, struct relay_place *to)
{
    for (size_t i = 0; i < j->ask.nhosts; i++) {
        const struct wire_upstream *from = &j->ask.host[i];
        if (from->host.n == 0 || from->host.n > HTTP_HOST_MAX)
            return -1;
        memcpy(to[i].host, from->host.p, from->host.n);
        to[i].nhost = from->host.n;
        to[i].port = from->port;
        to[i].at = j->place[i];
    }
    return 0;
}

/* What follows is read behind its wall: heads that the program writes. */
static void be_relay(struct job *j, int from, int job) __attribute__((noreturn));
static void be_relay(struct job *j, int from, int job)
{
    static struct relay_place places[FETCH_HOSTS_MAX];
    uint16_t ports[FETCH_HOSTS_MAX];
    size_t n = j->ask.nhosts;
    const struct wall wall = {.calls = WALL_ACCEPT | WALL_CONNECT, .ports = ports, .nports = n};
    struct dynbuf none;
    struct frame f;
    int bad = copy_places(j, places);
    for (size_t i = 0; i < n; i++)
        ports[i] = places[i].port;
    dynbuf_wipe(&j->payload);
    j->ask = (struct wire_fetch){.kind = j->ask.kind};
    close(JOB_FD);
    dynbuf_init(&none, CHAN_PAYLOAD_MAX);
    if (bad || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != job ||
        chan_read_one(from, &f, &none) != 0 || f.type != LISTENER || f.nfds != 1)
        _exit(1); /* there is no program that would need it, and it has said why */
    close(from);
    struct loop *l = loop_new();
    struct relay *r = l != NULL ? relay_new(l, f.fd[0], places, n) : NULL;
    if (r == NULL)
        log_die("no memory for the relay of a program");
    role_confine_alone(&wall);
    _exit(loop_run(l) == 0 ? 0 : 1);
}

int own_net_relay(struct job *j, int *to, struct err *e)
{
    int fd[2], self = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        return err_errno(e, "the relay of the program cannot be started");
    int pid = fork();
    if (pid == 0) {
        close(fd[0]);
        be_relay(j, fd[1], self);
    }
    int saved = errno;
    close(fd[1]);
    *to = fd[0];
    if (pid > 0)
        return 0;
    close(fd[0]);
    errno = saved;
    return err_errno(e, "the relay of the program cannot be started");
}

/* ---- in there ---- */

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    int saved = errno;
    close(fd);
    errno = saved;
    return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* The same user in there as outside: programs look at who they are and whose their files are. */
static int map_user(unsigned uid, unsigned gid)
{
    char users[64], groups[64];
    snprintf(users, sizeof(users), "%u %u 1", uid, uid);
    snprintf(groups, sizeof(groups), "%u %u 1", gid, gid);
    return write_text("/proc/self/setgroups", "deny") != 0 || write_text("/proc/self/uid_map", users) != 0 ||
                   write_text("/proc/self/gid_map", groups) != 0
               ? -1
               : 0;
}

static int loopback_up(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int rc = ioctl(fd, SIOCSIFFLAGS, &lo), saved = errno;
    close(fd);
    errno = saved;
    return rc;
}

static void nothing_comes(void *arg, struct chan *c, struct frame *f)
{
}

static void is_gone(void *arg, struct chan *c)
{
}

static int hand_over(int to, int listener)
{
    static const struct chan_ops ops = {nothing_comes, is_gone};
    struct loop *l = loop_new();
    struct chan *c = l != NULL ? chan_new(l, to, &ops, NULL) : NULL;
    int rc = c != NULL ? chan_send_fd(c, LISTENER, 0, SPAN_NONE, listener) : -1;
    chan_free(&c); /* and it is sent */
    loop_free(&l);
    if (rc != 0)
        errno = ENOMEM;
    return rc;
}

int own_net_enter(int to)
{
    unsigned uid = geteuid(), gid = getegid();
    struct err unused;
    int rc = -1, listener = -1;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return -1;
    /* Else what is below its own /proc belongs to root. What it becomes is no more hidden than that. */
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 || map_user(uid, gid) != 0 || loopback_up() != 0 ||
        (listener = listen_tcp(OWN_NET_PROXY)) < 0)
        goto out;
    rc = hand_over(to, listener) == 0 ? wall_no_privileges(&unused) : -1;
out:
    if (listener >= 0) {
        int saved = errno;
        close(listener);
        errno = saved;
    }
    return rc;
}
