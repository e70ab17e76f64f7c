#include "sandbox-shim/run/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What getsockname says inside; RFC 2544's range, like the address of every name (inside/shim_names.c). */
#define INSIDE_ADDRESS "198.18.0.2"

/* conf/nftables has the same for hosts, with the reasons. Here every address is local: only loopback's own are left
 * to the processes inside. The ports are inside/shim_capture.h's. */
static const char rules[] = "table inet countersign {\n"
                            "	chain capture {\n"
                            "		type nat hook output priority -100; policy accept;\n"
                            "		meta l4proto { tcp, udp } th dport 53 redirect to :15053\n"
                            "		ip daddr 127.0.0.0/8 return\n"
                            "		ip6 daddr ::1 return\n"
                            "		meta l4proto tcp redirect to :15001\n"
                            "	}\n"
                            "	chain rest {\n"
                            "		type filter hook output priority filter; policy drop;\n"
                            "		ct state { established, related } accept\n"
                            "		ct status dnat tcp dport { 15001, 15053 } accept\n"
                            "		ct status dnat udp dport 15053 accept\n"
                            "		tcp dport { 15001, 15053 } reject with tcp reset\n"
                            "		ip daddr 127.0.0.0/8 accept\n"
                            "		ip6 daddr ::1 accept\n"
                            "		udp dport 443 reject with icmpx port-unreachable\n"
                            "		meta l4proto tcp reject with tcp reset\n"
                            "		reject with icmpx admin-prohibited\n"
                            "	}\n"
                            "}\n";

const char *network_nft(struct err *e)
{
    static const char *const places[] = {"/usr/sbin/nft", "/usr/local/sbin/nft", "/sbin/nft", NULL};

    for (const char *const *p = places; *p; p++)
        if (access(*p, X_OK) == 0)
            return *p;
    (void)err_set(e, "nft is not installed, and without it nothing can be captured: install it (Debian: `apt-get "
                     "install nftables`)");
    return NULL;
}

/* ---- routes ---- */

struct request {
    struct nlmsghdr head;
    union {
        struct ifaddrmsg address;
        struct rtmsg route;
    } body;
    uint8_t attributes[64];
};

static void request_begin(struct request *r, uint16_t type, size_t body)
{
    memset(r, 0, sizeof(*r));
    r->head.nlmsg_type = type;
    r->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    r->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
}

static void request_add(struct request *r, uint16_t type, const void *value, size_t n)
{
    const struct rtattr a = {.rta_len = (uint16_t)RTA_LENGTH(n), .rta_type = type};
    uint8_t *to = (uint8_t *)r + NLMSG_ALIGN(r->head.nlmsg_len);

    memcpy(to, &a, sizeof(a));
    memcpy(to + RTA_LENGTH(0), value, n);
    r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + (uint32_t)RTA_ALIGN(a.rta_len);
}

/* 0, or -1 with the kernel's errno. */
static int request_send(int fd, const struct request *r)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        uint8_t rest[512];
    } answer;
    ssize_t n;

    if (send(fd, r, r->head.nlmsg_len, 0) != (ssize_t)r->head.nlmsg_len)
        return -1;
    n = recv(fd, &answer, sizeof(answer), 0);
    if (n < (ssize_t)(sizeof(answer.head) + sizeof(answer.error)) || answer.head.nlmsg_type != NLMSG_ERROR) {
        errno = n < 0 ? errno : EPROTO;
        return -1;
    }
    errno = -answer.error.error;
    return errno == 0 ? 0 : -1;
}

static int add_address(int fd, uint32_t lo, const struct in_addr *a)
{
    struct request r;

    request_begin(&r, RTM_NEWADDR, sizeof(r.body.address));
    r.body.address =
        (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_scope = RT_SCOPE_HOST, .ifa_index = lo};
    request_add(&r, IFA_LOCAL, a, sizeof(*a));
    request_add(&r, IFA_ADDRESS, a, sizeof(*a));
    return request_send(fd, &r);
}

/* Every address is one of ours: what the rules would let through by a mistake still ends in here. */
static int add_route(int fd, uint32_t lo, unsigned char family, const struct in_addr *source)
{
    struct request r;

    request_begin(&r, RTM_NEWROUTE, sizeof(r.body.route));
    r.body.route = (struct rtmsg){.rtm_family = family,
                                  .rtm_table = RT_TABLE_LOCAL,
                                  .rtm_protocol = RTPROT_STATIC,
                                  .rtm_scope = RT_SCOPE_HOST,
                                  .rtm_type = RTN_LOCAL};
    request_add(&r, RTA_OIF, &lo, sizeof(lo));
    if (source)
        request_add(&r, RTA_PREFSRC, source, sizeof(*source));
    return request_send(fd, &r);
}

static bool has_ipv6(void)
{
    const struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&a, sizeof(a)) == 0;

    if (fd >= 0)
        close(fd);
    return has;
}

static int set_routes(void)
{
    int rc = -1, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    uint32_t lo = if_nametoindex("lo");
    struct in_addr own;

    if (fd >= 0 && lo != 0 && inet_pton(AF_INET, INSIDE_ADDRESS, &own) == 1 && add_address(fd, lo, &own) == 0 &&
        add_route(fd, lo, AF_INET, &own) == 0 && (!has_ipv6() || add_route(fd, lo, AF_INET6, NULL) == 0))
        rc = 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

/* ---- rules ---- */

/* Kept over the exec also where our user is not 0 in there. */
static int keep_net_admin(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};

    if (syscall(SYS_capget, &head, data) != 0)
        return -1;
    data[0].inheritable |= 1u << CAP_NET_ADMIN;
    return syscall(SYS_capset, &head, data) != 0 ? -1
                                                 : prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0);
}

static void __attribute__((noreturn)) become_nft(const char *nft)
{
    char *const no_environment[] = {NULL};
    int fd = memfd_create("rules", MFD_CLOEXEC);
    sigset_t none;

    sigemptyset(&none);
    if (fd >= 0 && write(fd, rules, sizeof(rules) - 1) == (ssize_t)sizeof(rules) - 1 && lseek(fd, 0, SEEK_SET) == 0 &&
        dup2(fd, STDIN_FILENO) == STDIN_FILENO && dup2(STDERR_FILENO, STDOUT_FILENO) == STDOUT_FILENO &&
        keep_net_admin() == 0 && close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0 &&
        sigprocmask(SIG_SETMASK, &none, NULL) == 0)
        (void)execle(nft, "nft", "-f", "-", (char *)NULL, no_environment);
    fprintf(stderr, "countersign run: cannot start %s: %s\n", nft, strerror(errno));
    _exit(1);
}

static int ended_well(pid_t pid)
{
    int status;
    pid_t got;

    do
        got = waitpid(pid, &status, 0);
    while (got < 0 && errno == EINTR);
    return got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* ---- there ---- */

/* Its own process, since there is no way back from a user namespace. */
static void __attribute__((noreturn)) work_inside(const char *nft, int user, int net)
{
    pid_t pid;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || setns(user, CLONE_NEWUSER) != 0 || setns(net, CLONE_NEWNET) != 0) {
        fprintf(stderr, "countersign run: the sandbox's network cannot be entered: %s\n", strerror(errno));
        _exit(1);
    }
    pid = fork();
    if (pid == 0)
        become_nft(nft);
    if (pid < 0 || ended_well(pid) != 0) {
        fputs("countersign run: the rules of the sandbox's network cannot be loaded\n", stderr);
        _exit(1);
    }
    if (set_routes() != 0) {
        fprintf(stderr, "countersign run: the routes of the sandbox's network cannot be set: %s\n", strerror(errno));
        _exit(1);
    }
    _exit(0);
}

int network_try(const char *nft, struct err *e)
{
    pid_t pid = fork();

    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null < 0 || dup2(null, STDERR_FILENO) != STDERR_FILENO || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
            unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
            _exit(1);
        become_nft(nft);
    }
    if (pid > 0 && ended_well(pid) == 0)
        return 0;
    return err_set(e, "this kernel does not let a user namespace have nftables with NAT (nft_redir, nft_ct, "
                      "nft_reject_inet)");
}

/* Never this machine's own network, whatever went wrong. */
static int network_of(pid_t pid, int pidfd)
{
    char path[64];
    struct stat own, its;
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (poll(&ended, 1, 0) != 0 || stat("/proc/self/ns/net", &own) != 0 || fstat(fd, &its) != 0 ||
        (own.st_ino == its.st_ino && own.st_dev == its.st_dev)) {
        close(fd);
        errno = ESRCH;
        return -1;
    }
    return fd;
}

int network_set_up(const char *nft, pid_t pid, int pidfd, struct err *e)
{
    int rc = -1, user = -1, net = network_of(pid, pidfd);
    pid_t child;

    if (net < 0 || (user = ioctl(net, NS_GET_USERNS)) < 0) {
        (void)err_errno(e, "the sandbox's network cannot be found, and the command was not run");
        goto out;
    }
    child = fork();
    if (child == 0)
        work_inside(nft, user, net);
    if (child < 0)
        (void)err_errno(e, "cannot fork");
    else if (ended_well(child) != 0)
        (void)err_set(e, "the sandbox's network cannot be captured, and the command was not run; the reason stands "
                         "above (this kernel must let a user namespace have nftables with NAT: nft_redir, nft_ct, "
                         "nft_reject_inet). With --no-capture, programs that follow proxy variables work");
    else
        rc = 0;
out:
    if (net >= 0)
        close(net);
    if (user >= 0)
        close(user);
    return rc;
}
