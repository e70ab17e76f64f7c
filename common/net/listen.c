/* Listening sockets. Addresses are literals of our own configuration. */
#include "common/net/addr.h"
#include "common/net/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    ORIGINAL_DST = 80, /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST: their headers cannot be included together */
};

/* "ADDRESS:PORT" or "[ADDRESS]:PORT" into a socket address, or -1. */
static int parse(const char *text, struct sockaddr_storage *out, socklen_t *n)
{
    struct span s = span_str(text), host, port;
    char name[INET6_ADDRSTRLEN];
    uint64_t number;
    bool six = span_starts(s, SPAN("["));
    if (six) {
        if (!span_cut(span_from(s, 1), ']', &host, &port) || !span_starts(port, SPAN(":")))
            return -1;
        port = span_from(port, 1);
    } else if (!span_cut(s, ':', &host, &port)) {
        return -1;
    }
    if (host.n >= sizeof(name) || span_u64(port, 65535, &number) != 0)
        return -1;
    memcpy(name, host.p, host.n);
    name[host.n] = '\0';
    memset(out, 0, sizeof(*out));
    if (six) {
        struct sockaddr_in6 *a = (struct sockaddr_in6 *)out;
        a->sin6_family = AF_INET6;
        a->sin6_port = htons((uint16_t)number);
        *n = sizeof(*a);
        return inet_pton(AF_INET6, name, &a->sin6_addr) == 1 ? 0 : -1;
    }
    struct sockaddr_in *a = (struct sockaddr_in *)out;
    a->sin_family = AF_INET;
    a->sin_port = htons((uint16_t)number);
    *n = sizeof(*a);
    return inet_pton(AF_INET, name, &a->sin_addr) == 1 ? 0 : -1;
}

static int fail(int fd)
{
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return -1;
}

/* Bound, and not listening yet. */
static int bound(const char *address, int type)
{
    struct sockaddr_storage a;
    socklen_t n;
    int on = 1;
    if (parse(address, &a, &n) != 0) {
        errno = EINVAL;
        return -1;
    }
    int fd = socket(a.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* What is accepted inherits TCP_NODELAY. */
    if (type == SOCK_STREAM && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
                                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0))
        return fail(fd);
    if (a.ss_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0)
        return fail(fd);
    return bind(fd, (struct sockaddr *)&a, n) == 0 ? fd : fail(fd);
}

int listen_tcp(const char *address)
{
    int fd = bound(address, SOCK_STREAM);
    return fd < 0 || listen(fd, BACKLOG) == 0 ? fd : fail(fd);
}

int listen_udp(const char *address)
{
    return bound(address, SOCK_DGRAM);
}

int listen_port(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof(a);
    if (getsockname(fd, (struct sockaddr *)&a, &n) != 0)
        return -1;
    if (a.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&a)->sin_port);
    if (a.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
    errno = EAFNOSUPPORT;
    return -1;
}

int listen_unix(const char *path, unsigned mode)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof(a.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(a.sun_path, path, n);
    /* Only a socket is replaced: a mistyped path must not cost a file. */
    if (lstat(path, &st) == 0) {
        if (!S_ISSOCK(st.st_mode)) {
            errno = EEXIST;
            return -1;
        }
        if (unlink(path) != 0)
            return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* Born without rights, so that nobody connects before the mode is set. */
    mode_t old = umask(0777);
    int rc = bind(fd, (struct sockaddr *)&a, sizeof(a));
    umask(old);
    if (rc != 0)
        return fail(fd);
    if (chmod(path, (mode_t)mode) != 0 || listen(fd, BACKLOG) != 0) {
        fail(fd);
        unlink(path);
        return -1;
    }
    return fd;
}

int listen_accept(int fd)
{
    int got;
    do
        got = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (got < 0 && (errno == EINTR || errno == ECONNABORTED));
    return got;
}

int listen_original_port(int fd, uint16_t *port)
{
    struct sockaddr_storage own = {0}, to = {0};
    socklen_t nown = sizeof(own), nto = sizeof(to);
    struct addr here, there;
    uint16_t own_port;
    if (getsockname(fd, (struct sockaddr *)&own, &nown) != 0 ||
        getsockopt(fd, own.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP, ORIGINAL_DST, &to, &nto) != 0)
        return -1;
    if (addr_of_sockaddr((struct sockaddr *)&own, &here, &own_port) != 0 ||
        addr_of_sockaddr((struct sockaddr *)&to, &there, port) != 0 || *port == 0) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    if (addr_eq(&here, &there) && own_port == *port) {
        errno = EDESTADDRREQ;
        return -1;
    }
    return 0;
}
