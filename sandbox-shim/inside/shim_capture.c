#include "sandbox-shim/inside/shim_capture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_names.h"

enum { ORIGINAL_DST = 80 /* of both families: linux/netfilter_ipv4.h, netfilter_ipv6/ip6_tables.h */, TURN = 64 };

static socklen_t loopback(int family, uint16_t port, struct sockaddr_storage *out)
{
    const struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    memset(out, 0, sizeof(*out));
    if (family == AF_INET)
        memcpy(out, &v4, sizeof(v4));
    else
        memcpy(out, &v6, sizeof(v6));
    return family == AF_INET ? sizeof(v4) : sizeof(v6);
}

int capture_open(int family, int type, uint16_t port)
{
    struct sockaddr_storage a;
    socklen_t n = loopback(family, port, &a);
    int one = 1, fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if ((family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) != 0) ||
        (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0) ||
        bind(fd, (struct sockaddr *)&a, n) != 0 || (type == SOCK_STREAM && listen(fd, SOMAXCONN) != 0)) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

static bool is_loopback(const struct sockaddr_storage *a)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    memcpy(&v4, a, sizeof(v4));
    memcpy(&v6, a, sizeof(v6));
    return a->ss_family == AF_INET ? ntohl(v4.sin_addr.s_addr) >> 24 == 127 : IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

static uint8_t *put_address(uint8_t *p, const struct sockaddr_storage *a)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    memcpy(&v4, a, sizeof(v4));
    memcpy(&v6, a, sizeof(v6));
    size_t n = a->ss_family == AF_INET ? sizeof(v4.sin_addr) : sizeof(v6.sin6_addr);
    memcpy(p, a->ss_family == AF_INET ? (const void *)&v4.sin_addr : (const void *)&v6.sin6_addr, n);
    return p + n;
}

static uint8_t *put_port(uint8_t *p, const struct sockaddr_storage *a)
{
    struct sockaddr_in v4; /* both families have it in the same place */

    memcpy(&v4, a, sizeof(v4));
    memcpy(p, &v4.sin_port, sizeof(v4.sin_port));
    return p + sizeof(v4.sin_port);
}

size_t capture_header(int fd, uint8_t out[CAPTURE_HEADER_MAX])
{
    static const uint8_t signature[] = {0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a};
    struct sockaddr_storage from = {0}, to = {0};
    socklen_t nfrom = sizeof(from), nto = sizeof(to);
    uint8_t *p = out + sizeof(signature);

    if (getpeername(fd, (struct sockaddr *)&from, &nfrom) != 0)
        return 0;
    bool v6 = from.ss_family == AF_INET6;
    if (getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, ORIGINAL_DST, &to, &nto) != 0 ||
        to.ss_family != from.ss_family || is_loopback(&to))
        return 0;
    memcpy(out, signature, sizeof(signature));
    *p++ = 0x21;             /* version 2, PROXY */
    *p++ = v6 ? 0x21 : 0x11; /* TCP */
    *p++ = 0;
    *p++ = v6 ? 36 : 12;
    p = put_address(put_address(p, &from), &to);
    p = put_port(put_port(p, &from), &to);
    return (size_t)(p - out);
}

void capture_names(int udp)
{
    uint8_t in[NAMES_ASK_MAX + 1], out[NAMES_ANSWER_MAX];
    struct sockaddr_storage from;

    for (int i = 0; i < TURN; i++) {
        socklen_t nfrom = sizeof(from);
        ssize_t n = recvfrom(udp, in, sizeof(in), 0, (struct sockaddr *)&from, &nfrom);
        if (n < 0)
            return;
        size_t m = names_answer(in, (size_t)n, out);
        if (m > 0)
            (void)sendto(udp, out, m, MSG_NOSIGNAL, (struct sockaddr *)&from, nfrom);
    }
}
