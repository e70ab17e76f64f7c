#include "cli/doctor/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/control/api.h"
#include "common/http/http.h"
#include "common/id.h"
#include "common/json/json.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "common/net/tls.h"

enum { DIAL_MS = 3000, READ_S = 10, ANSWER_MAX = 64 * 1024, TLS_MS = 10 * 1000 };

/* --- a connection --------------------------------------------------------- */

static int dial_one(const struct addrinfo *a, int ms)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), why = 0;
    struct timeval wait = {.tv_sec = READ_S};
    socklen_t n = sizeof(why);

    if (fd < 0)
        return -1;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
        if (errno != EINPROGRESS)
            why = errno;
        else if (poll(&p, 1, ms) != 1)
            why = ETIMEDOUT;
        else
            (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &n);
    }
    if (why == 0 && fcntl(fd, F_SETFL, 0) == 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) == 0)
        return fd;
    close(fd);
    errno = why;
    return -1;
}

enum probe_result probe_dial(struct span host, uint16_t port, int ms, int *fd, struct err *e)
{
    struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    char name[256], service[8];
    int rc;

    *fd = -1;
    if (span_starts(host, SPAN("[")) && span_ends(host, SPAN("]")))
        host = span_of(host.p + 1, host.n - 2);
    (void)snprintf(name, sizeof(name), "%.*s", SPAN_FMT(host));
    (void)snprintf(service, sizeof(service), "%u", port);
    rc = getaddrinfo(name, service, &hints, &list);
    if (rc != 0) {
        (void)err_set(e, "%s: %s", name, gai_strerror(rc));
        return PROBE_NAME;
    }
    for (const struct addrinfo *a = list; a && *fd < 0; a = a->ai_next)
        *fd = dial_one(a, ms);
    if (*fd < 0)
        (void)err_errno(e, "%s port %s", name, service);
    freeaddrinfo(list);
    return *fd < 0 ? PROBE_CLOSED : PROBE_OK;
}

/* One more piece, at most `max` bytes. 1, 0 at the end, -1. */
static int receive(int fd, struct dynbuf *in, size_t max)
{
    uint8_t *to = dynbuf_room(in, max);
    ssize_t n;

    do
        n = to ? recv(fd, to, max, 0) : -1;
    while (n < 0 && to && errno == EINTR);
    if (n > 0)
        dynbuf_grew(in, (size_t)n);
    return n < 0 ? -1 : n > 0;
}

/* --- HTTP ----------------------------------------------------------------- */

/* Basic with the user and password of the proxy's URL; nothing without them. */
static int put_basic(struct dynbuf *out, const struct env_url *u)
{
    char plain[512], field[1024] = "Basic ";

    if (u->user.n == 0 && u->password.n == 0)
        return 0;
    int n = snprintf(plain, sizeof(plain), "%.*s:%.*s", SPAN_FMT(u->user), SPAN_FMT(u->password));
    if (n < 0 || n >= (int)sizeof(plain))
        return -1;
    size_t m = base64_encode(span_of(plain, (size_t)n), field + 6);
    return http_write_field(out, SPAN("Proxy-Authorization"), span_of(field, 6 + m));
}

static enum probe_result of_status(unsigned status, struct span why, struct err *e)
{
    if (status == 200)
        return PROBE_OK;
    (void)err_set(e, "it answers %u %.*s", status, SPAN_FMT(why));
    return status == 407 ? PROBE_TOKEN : PROBE_BAD;
}

static enum probe_result read_head(int fd, struct dynbuf *in, struct span method, struct http_head *h, size_t *used,
                                   struct err *e)
{
    size_t seen = 0;
    struct http_err why;

    for (;;) {
        enum http_result rc = http_parse_response(dynbuf_span(in), method, &seen, h, used, &why);
        if (rc == HTTP_OK)
            return of_status(h->status, h->reason, e);
        if (rc == HTTP_BAD) {
            (void)err_set(e, "what answers is not an HTTP proxy: %s", why.why);
            return PROBE_BAD;
        }
        int got = receive(fd, in, 4096);
        if (got <= 0) {
            (void)err_set(e, got < 0 ? "no answer: %s" : "it closes without an answer", strerror(errno));
            return PROBE_BAD;
        }
    }
}

static enum probe_result http_tunnel(int fd, const struct env_url *u, const char *host, uint16_t port, struct err *e)
{
    struct dynbuf out, in;
    struct http_head h;
    char authority[300];
    size_t used;

    (void)snprintf(authority, sizeof(authority), "%s:%u", host, port);
    dynbuf_init(&out, ANSWER_MAX);
    dynbuf_init(&in, ANSWER_MAX);
    int bad = http_write_request_line(&out, SPAN("CONNECT"), span_str(authority)) ||
              http_write_field(&out, SPAN("Host"), span_str(authority)) || put_basic(&out, u) ||
              http_write_end(&out, HTTP_NO_BODY, 0) || api_send(fd, dynbuf_span(&out));
    enum probe_result rc = PROBE_BAD;
    if (bad)
        (void)err_set(e, "it cannot be asked");
    else
        rc = read_head(fd, &in, SPAN("CONNECT"), &h, &used, e);
    dynbuf_wipe(&out);
    dynbuf_free(&in);
    return rc;
}

/* --- SOCKS5 --------------------------------------------------------------- */

static int exactly(int fd, uint8_t *to, size_t n)
{
    for (size_t have = 0; have < n;) {
        ssize_t got = recv(fd, to + have, n - have, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        have += (size_t)got;
    }
    return 0;
}

static int put_short(struct dynbuf *b, struct span s)
{
    return s.n == 0 || s.n > 255 || dynbuf_add_byte(b, (uint8_t)s.n) != 0 || dynbuf_add(b, s) != 0 ? -1 : 0;
}

static enum probe_result socks_login(int fd, const struct env_url *u, struct dynbuf *out, struct err *e)
{
    uint8_t answer[2];

    if (dynbuf_add(out, SPAN("\5\1\2")) != 0 || api_send(fd, dynbuf_span(out)) != 0 || exactly(fd, answer, 2) != 0 ||
        answer[0] != 5) {
        (void)err_set(e, "what answers is not a SOCKS5 proxy");
        return PROBE_BAD;
    }
    dynbuf_wipe(out);
    dynbuf_init(out, ANSWER_MAX);
    if (answer[1] != 2 || dynbuf_add_byte(out, 1) != 0 || put_short(out, u->user) != 0 ||
        put_short(out, u->password) != 0 || api_send(fd, dynbuf_span(out)) != 0 || exactly(fd, answer, 2) != 0 ||
        answer[1] != 0) {
        (void)err_set(e, "it refuses the name and token");
        return PROBE_TOKEN;
    }
    dynbuf_wipe(out);
    dynbuf_init(out, ANSWER_MAX);
    return PROBE_OK;
}

static enum probe_result socks_tunnel(int fd, const struct env_url *u, const char *host, uint16_t port, struct err *e)
{
    uint8_t answer[10];
    struct dynbuf out;

    dynbuf_init(&out, ANSWER_MAX);
    enum probe_result rc = socks_login(fd, u, &out, e);
    if (rc != PROBE_OK)
        goto out;
    rc = PROBE_BAD;
    if (dynbuf_add(&out, span_of("\5\1\0\3", 4)) != 0 || put_short(&out, span_str(host)) != 0 ||
        dynbuf_add_byte(&out, (uint8_t)(port >> 8)) != 0 || dynbuf_add_byte(&out, (uint8_t)port) != 0 ||
        api_send(fd, dynbuf_span(&out)) != 0 || exactly(fd, answer, sizeof(answer)) != 0)
        (void)err_set(e, "it closes instead of answering");
    else if (answer[1] != 0)
        (void)err_set(e, "it refuses %s with reply %u", host, answer[1]);
    else
        rc = PROBE_OK;
out:
    dynbuf_wipe(&out);
    return rc;
}

/* --- the gateway's own words ---------------------------------------------- */

enum probe_result probe_open(const struct env_url *proxy, const char *host, uint16_t port, int *fd, struct err *e)
{
    uint64_t proxy_port = port;
    enum probe_result rc;

    if (proxy && span_u64(proxy->port, 65535, &proxy_port) != 0)
        return PROBE_BAD;
    rc = probe_dial(proxy ? proxy->host : span_str(host), (uint16_t)proxy_port, DIAL_MS, fd, e);
    if (rc != PROBE_OK || !proxy)
        return rc;
    rc = proxy->socks ? socks_tunnel(*fd, proxy, host, port, e) : http_tunnel(*fd, proxy, host, port, e);
    if (rc != PROBE_OK) {
        close(*fd);
        *fd = -1;
    }
    return rc;
}

/* In absolute form to an HTTP proxy, in origin form through a tunnel or straight. */
static int ask_whoami(int fd, const struct env_url *plain)
{
    struct dynbuf out;

    dynbuf_init(&out, ANSWER_MAX);
    int bad = http_write_request_line(&out, SPAN("GET"),
                                      plain ? SPAN("http://" PROBE_HOST "/v1/whoami") : SPAN("/v1/whoami")) ||
              http_write_field(&out, SPAN("Host"), SPAN(PROBE_HOST)) || (plain && put_basic(&out, plain)) ||
              http_write_field(&out, SPAN("Connection"), SPAN("close")) || http_write_end(&out, HTTP_NO_BODY, 0) ||
              api_send(fd, dynbuf_span(&out));
    dynbuf_wipe(&out);
    return bad ? -1 : 0;
}

static enum probe_result take_whoami(int fd, struct probe_who *who, struct err *e)
{
    struct dynbuf in;
    struct arena a;
    struct http_head h;
    size_t used = 0, more = 0;
    struct http_body body;
    struct span part = SPAN_NONE;

    dynbuf_init(&in, ANSWER_MAX);
    arena_init(&a, ANSWER_MAX);
    enum probe_result rc = read_head(fd, &in, SPAN("GET"), &h, &used, e);
    if (rc == PROBE_OK) {
        http_body_begin(&body, &h);
        dynbuf_drop(&in, used);
        while (receive(fd, &in, 4096) > 0)
            ;
        const struct json *j =
            http_body_step(&body, dynbuf_span(&in), &more, &part) != HTTP_BAD && part.n ? json_parse(part, &a) : NULL;
        (void)snprintf(who->sandbox, sizeof(who->sandbox), "%.*s", SPAN_FMT(json_text(j, SPAN("sandbox"))));
        if (!j || json_u64(j, SPAN("time_ms"), &who->time_ms) != 0) {
            (void)err_set(e, "what answers as " PROBE_HOST " is not this gateway, or an older one");
            rc = PROBE_BAD;
        }
    }
    dynbuf_free(&in);
    arena_free(&a);
    return rc;
}

enum probe_result probe_whoami(const struct env_url *proxy, struct probe_who *who, struct err *e)
{
    const struct env_url *plain = proxy && !proxy->socks ? proxy : NULL;
    uint64_t port = 80;
    enum probe_result rc;
    int fd = -1;

    *who = (struct probe_who){.time_ms = 0};
    if (plain && span_u64(plain->port, 65535, &port) != 0)
        return PROBE_BAD;
    rc = plain ? probe_dial(plain->host, (uint16_t)port, DIAL_MS, &fd, e) : probe_open(proxy, PROBE_HOST, 80, &fd, e);
    if (rc != PROBE_OK)
        return rc;
    rc = ask_whoami(fd, plain) == 0 ? take_whoami(fd, who, e) : PROBE_BAD;
    close(fd);
    return rc;
}

/* --- TLS ------------------------------------------------------------------ */

struct shake {
    struct loop *loop;
    struct err *e;
    int rc;
};

static void shaken(void *arg, struct conn *c, enum conn_event ev)
{
    struct shake *s = arg;

    s->rc = ev == CONN_TLS_READY ? 0 : -1;
    if (s->rc != 0)
        (void)err_set(s->e, "%s", ev == CONN_FAILED ? conn_why(c) : "it closed, or took too long");
    loop_stop(s->loop);
}

int probe_tls(int fd, struct span roots, struct err *e)
{
    const struct tls_trust trust = {.roots_pem = roots};
    struct shake s = {loop_new(), e, -1};
    struct tls_client *t = tls_client_new(&trust, e);
    struct conn *c = NULL;

    if (!s.loop || !t || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        close(fd);
        if (t)
            (void)err_set(e, "no memory");
    } else if ((c = conn_new(s.loop, fd, ANSWER_MAX, shaken, &s)) == NULL ||
               conn_tls_connect(c, t, SPAN(PROBE_HOST)) != 0) {
        (void)err_set(e, "TLS cannot be begun");
    } else {
        conn_deadline(c, TLS_MS);
        if (loop_run(s.loop) != 0)
            s.rc = err_set(e, "the event loop failed");
    }
    if (c)
        conn_free(&c);
    tls_client_free(&t);
    loop_free(&s.loop);
    return s.rc;
}
