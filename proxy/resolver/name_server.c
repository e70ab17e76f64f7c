#include "proxy/resolver/name_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/conn.h"
#include "proxy/resolver/answer.h"

enum { PREFIX = 2, PAUSE_MS = 100, CONTROL = 128 };

struct pair {
    struct name_server *names;
    int udp, tcp;
    struct watch *datagrams, *knocks;
    struct timer *pause; /* accepting failed for want of descriptors */
};

struct stream {
    struct name_server *names;
    struct conn *conn;
    struct stream *next; /* newest first */
};

struct name_server {
    struct loop *loop;
    struct pair pair[NAME_SERVER_LISTENERS_MAX];
    size_t npairs, nstreams;
    struct stream *streams;
};

/* ---- datagrams ---- */

/* The answer must leave from the address that was asked, which with a wildcard socket only the packet knows. */
static void ask_for_address(int fd)
{
    const int one = 1;
    (void)setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one));
}

/* What recvmsg said of the packet's own address goes back as it came; its interface is the routing's choice. */
static void keep_address(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof(info));
            info.ipi_spec_dst = info.ipi_addr;
            info.ipi_ifindex = 0;
            memcpy(CMSG_DATA(c), &info, sizeof(info));
        }
    }
}

static bool one_datagram(int fd)
{
    uint8_t in[ANSWER_ASK_MAX + 1], out[ANSWER_MAX];
    union {
        char bytes[CONTROL];
        struct cmsghdr align;
    } control;
    struct sockaddr_storage from;
    struct iovec v = {in, sizeof(in)};
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = sizeof(from),
                       .msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(fd, &m, 0);
    if (n < 0)
        return errno == EINTR;
    v.iov_base = out;
    v.iov_len = answer_make(span_of(in, (size_t)n), out);
    keep_address(&m);
    if (v.iov_len > 0)
        (void)sendmsg(fd, &m, 0); /* no room: the client asks again */
    return true;
}

static void on_datagrams(void *arg, unsigned ready)
{
    struct pair *p = arg;
    for (size_t i = 0; i < NAME_SERVER_TURN && one_datagram(p->udp); i++)
        ;
}

/* ---- streams ---- */

static void stream_free(struct stream *s)
{
    for (struct stream **at = &s->names->streams; *at != NULL; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            s->names->nstreams--;
            break;
        }
    if (s->conn != NULL)
        conn_free(&s->conn);
    free(s);
}

/* It asked its last question; the answers may still be on their way. */
static void stream_end(struct stream *s)
{
    if (conn_queued(s->conn) > 0)
        conn_finish(&s->conn);
    stream_free(s);
}

/* -1: the stream is over. */
static int stream_answer(struct stream *s)
{
    uint8_t out[PREFIX + ANSWER_MAX];
    struct span in;
    while ((in = conn_input(s->conn)).n >= PREFIX) {
        size_t n = (size_t)in.p[0] << 8 | in.p[1];
        if (n == 0 || n > ANSWER_ASK_MAX)
            return -1;
        if (in.n < PREFIX + n)
            return 0;
        size_t m = answer_make(span_of(in.p + PREFIX, n), out + PREFIX);
        out[0] = (uint8_t)(m >> 8);
        out[1] = (uint8_t)m;
        /* A client that asks without reading is not kept. */
        if (m == 0 || conn_queued(s->conn) > CONN_OUT_LOW || conn_write(s->conn, span_of(out, PREFIX + m)) != 0)
            return -1;
        conn_consume(s->conn, PREFIX + n);
        conn_deadline(s->conn, NAME_SERVER_IDLE_MS);
    }
    return 0;
}

static void on_stream(void *arg, struct conn *c, enum conn_event ev)
{
    struct stream *s = arg;
    switch (ev) {
    case CONN_DATA:
        if (stream_answer(s) == 0)
            return;
        break;
    case CONN_EOF: stream_end(s); return;
    case CONN_DRAINED: return;
    case CONN_CONNECTED:
    case CONN_TLS_READY:
    case CONN_TRUNCATED:
    case CONN_TIMEOUT:
    case CONN_FAILED: break;
    }
    stream_free(s);
}

static void oldest_out(struct name_server *n)
{
    struct stream *s = n->streams;
    while (s != NULL && s->next != NULL)
        s = s->next;
    if (s != NULL)
        stream_free(s);
}

static void stream_new(struct name_server *n, int fd)
{
    struct stream *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        close(fd);
        return;
    }
    s->names = n;
    s->conn = conn_new(n->loop, fd, PREFIX + ANSWER_ASK_MAX, on_stream, s);
    if (s->conn == NULL) {
        free(s);
        return;
    }
    conn_deadline(s->conn, NAME_SERVER_IDLE_MS);
    s->next = n->streams;
    n->streams = s;
    if (++n->nstreams > NAME_SERVER_STREAMS_MAX)
        oldest_out(n);
}

static void on_knock(void *arg, unsigned ready)
{
    struct pair *p = arg;
    for (size_t i = 0; i < NAME_SERVER_TURN; i++) {
        int fd = listen_accept(p->tcp);
        if (fd >= 0) {
            stream_new(p->names, fd);
        } else if (errno == EAGAIN) {
            return;
        } else {
            watch_set(p->knocks, 0);
            timer_set(p->pause, PAUSE_MS);
            return;
        }
    }
}

static void on_pause(void *arg)
{
    struct pair *p = arg;
    watch_set(p->knocks, WATCH_READ);
}

/* ---- life ---- */

static void pair_end(struct pair *p)
{
    watch_free(&p->datagrams);
    watch_free(&p->knocks);
    timer_free(&p->pause);
    close(p->udp);
    close(p->tcp);
}

int name_server_listen(struct name_server *n, int udp, int tcp)
{
    if (n->npairs == NAME_SERVER_LISTENERS_MAX) {
        close(udp);
        close(tcp);
        return -1;
    }
    struct pair *p = &n->pair[n->npairs];
    *p = (struct pair){.names = n, .udp = udp, .tcp = tcp};
    ask_for_address(udp);
    p->datagrams = watch_new(n->loop, udp, WATCH_READ, on_datagrams, p);
    p->knocks = watch_new(n->loop, tcp, WATCH_READ, on_knock, p);
    p->pause = timer_new(n->loop, on_pause, p);
    if (p->datagrams == NULL || p->knocks == NULL || p->pause == NULL) {
        pair_end(p);
        return -1;
    }
    n->npairs++;
    return 0;
}

struct name_server *name_server_new(struct loop *l)
{
    struct name_server *n = calloc(1, sizeof(*n));
    if (n != NULL)
        n->loop = l;
    return n;
}

void name_server_free(struct name_server **at)
{
    struct name_server *n = *at;
    *at = NULL;
    if (n == NULL)
        return;
    while (n->streams != NULL)
        stream_free(n->streams);
    for (size_t i = 0; i < n->npairs; i++)
        pair_end(&n->pair[i]);
    free(n);
}
