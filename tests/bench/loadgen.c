// Load generator for the bench: one thread, epoll, OpenSSL. Requests through a proxy (CONNECT, then TLS
// inside) or straight at a TLS-terminating one (--reverse). Prints one line of JSON and exits 1 on any error.
//
//   loadgen --proxy IP:PORT --target HOST:PORT --ca FILE [--path /small] [--connections 32] [--seconds 2]
//           [--requests N] [--new | --hosts FIRST | --idle] [--reverse] [--auth BASE64] [--post BYTES]
//           [--body BYTES]
//
// --new makes a connection and a full handshake for every request; --hosts FIRST does, too, each to a host of its
// own: hFIRST.HOST and those that follow, HOST being the target's. --idle asks once over every connection, 64 at a
// time, says "ready" on a line and keeps them until its input ends. --post sends POST with a body of that many bytes
// in place of GET. --body is the length every answer must have. Latency is from the first byte of the request (with
// --new: from connect) to the last of the answer.
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    BUF_MAX = 32 * 1024,
    CONN_MAX = 8192,
    SAMPLE_MAX = 4 << 20,
    ERROR_MAX = 100,
    IDLE_MS = 60000,
    HOST_MAX = 256,
    AT_ONCE = 64
};

enum phase { OFF, CONNECTING, ASKING, ASKED, SHAKING, SENDING, UPLOADING, HEAD, BODY, IDLE };

struct conn {
    int fd;
    enum phase phase;
    SSL *ssl;
    size_t sent, have; // of the request; in buf
    uint64_t left;     // body bytes still to go or to come
    uint64_t began;
    bool closes;
    char ask[1024], request[2048 + 1024], host[HOST_MAX];
    size_t ask_len, request_len;
    char *buf; // BUF_MAX
};

struct options {
    struct sockaddr_in proxy;
    const char *target, *host, *port, *ca, *path, *auth;
    unsigned connections;
    double seconds;
    uint64_t requests, body, post, first;
    bool fresh, reverse, hosts, idle;
};

static struct options opt;
static SSL_CTX *ctx;
static int epoll_fd;
static char upload[BUF_MAX]; // what every body is made of
static struct conn *conns;
static uint32_t *samples;
static uint64_t done, started, errors, deadline, opened, idle;
static char first_error[256];

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool finished(void)
{
    if (opt.idle)
        return false;
    if (opt.requests)
        return (opt.hosts ? opened - opt.first : started) >=
               opt.requests; // a host is asked for once, in whatever order
    return now_us() >= deadline;
}

static void conn_close(struct conn *c)
{
    if (c->ssl)
        SSL_free(c->ssl);
    if (c->fd >= 0)
        close(c->fd);
    c->ssl = NULL;
    c->fd = -1;
    c->phase = OFF;
}

static void conn_fail(struct conn *c, const char *what)
{
    unsigned long code = ERR_get_error();
    if (!errors++)
        snprintf(first_error, sizeof first_error, "%s in phase %d: %s", what, (int)c->phase,
                 code ? ERR_reason_error_string(code) : strerror(errno));
    ERR_clear_error();
    conn_close(c);
}

static bool with_head(void)
{
    return opt.post <= 1024;
}

// What this connection asks: a short body goes along with its head, as clients send it.
static int conn_words(struct conn *c)
{
    int h = opt.hosts ? snprintf(c->host, sizeof c->host, "h%llu.%s", (unsigned long long)opened, opt.host)
                      : snprintf(c->host, sizeof c->host, "%s", opt.host);
    opened++;
    int n = snprintf(c->ask, sizeof c->ask, "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n%s%s%s\r\n", c->host, opt.port,
                     c->host, opt.port, opt.auth ? "Proxy-Authorization: Basic " : "", opt.auth ? opt.auth : "",
                     opt.auth ? "\r\n" : "");
    char length[80] = "";
    if (opt.post)
        snprintf(length, sizeof length, "Content-Type: text/plain\r\nContent-Length: %llu\r\n",
                 (unsigned long long)opt.post);
    int m = snprintf(c->request, sizeof c->request - 1024,
                     "%s %s HTTP/1.1\r\nHost: %s:%s\r\nUser-Agent: loadgen\r\nAccept: */*\r\n%s\r\n",
                     opt.post ? "POST" : "GET", opt.path, c->host, opt.port, length);
    if (h < 0 || n < 0 || m < 0 || (size_t)h >= sizeof c->host || (size_t)n >= sizeof c->ask ||
        (size_t)m >= sizeof c->request - 1024)
        return -1;
    c->ask_len = (size_t)n;
    c->request_len = (size_t)m;
    if (with_head()) {
        memcpy(c->request + c->request_len, upload, opt.post);
        c->request_len += opt.post;
    }
    return 0;
}

static int conn_open(struct conn *c)
{
    int one = 1;
    if ((opt.hosts || !c->request_len) && conn_words(c) < 0)
        return -1;
    c->have = c->sent = 0;
    c->closes = false;
    c->began = now_us();
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return -1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(c->fd, (struct sockaddr *)&opt.proxy, sizeof opt.proxy) < 0 && errno != EINPROGRESS)
        return -1;
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &ev) < 0)
        return -1;
    c->phase = CONNECTING;
    return 0;
}

static int tls_begin(struct conn *c)
{
    static const unsigned char alpn[] = "\x08http/1.1";
    c->ssl = SSL_new(ctx);
    if (!c->ssl || !SSL_set_tlsext_host_name(c->ssl, c->host) || !SSL_set1_host(c->ssl, c->host) ||
        SSL_set_alpn_protos(c->ssl, alpn, sizeof alpn - 1) || !SSL_set_fd(c->ssl, c->fd))
        return -1;
    SSL_set_connect_state(c->ssl);
    c->phase = SHAKING;
    return 0;
}

// Each step returns 1 to go on, 0 to wait for the socket, -1 when the connection is no good.

static int tls_result(struct conn *c, int n)
{
    int why = SSL_get_error(c->ssl, n);
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

static int step_connecting(struct conn *c)
{
    int why = 0;
    socklen_t len = sizeof why;
    struct sockaddr_in peer;
    socklen_t peer_len = sizeof peer;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &why, &len) < 0 || why) {
        errno = why;
        return -1;
    }
    if (getpeername(c->fd, (struct sockaddr *)&peer, &peer_len) < 0)
        return errno == ENOTCONN ? 0 : -1;
    if (opt.reverse)
        return tls_begin(c) < 0 ? -1 : 1;
    c->phase = ASKING;
    return 1;
}

static int step_asking(struct conn *c)
{
    ssize_t n = send(c->fd, c->ask + c->sent, c->ask_len - c->sent, MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN ? 0 : -1;
    c->sent += (size_t)n;
    if (c->sent == c->ask_len)
        c->phase = ASKED;
    return 1;
}

static int step_asked(struct conn *c)
{
    ssize_t n = recv(c->fd, c->buf + c->have, BUF_MAX - 1 - c->have, 0);
    if (n <= 0)
        return n < 0 && errno == EAGAIN ? 0 : -1;
    c->have += (size_t)n;
    if (!memmem(c->buf, c->have, "\r\n\r\n", 4))
        return 1;
    if (c->have < 12 || memcmp(c->buf + 8, " 200", 4) != 0)
        return -1;
    return tls_begin(c) < 0 ? -1 : 1;
}

static void request_begin(struct conn *c)
{
    c->sent = c->have = 0;
    c->phase = SENDING;
    started++;
    if (!opt.fresh)
        c->began = now_us();
}

static int step_shaking(struct conn *c)
{
    int n = SSL_do_handshake(c->ssl);
    if (n != 1)
        return tls_result(c, n);
    request_begin(c);
    return 1;
}

static int step_sending(struct conn *c)
{
    int n = SSL_write(c->ssl, c->request + c->sent, (int)(c->request_len - c->sent));
    if (n <= 0)
        return tls_result(c, n);
    c->sent += (size_t)n;
    if (c->sent == c->request_len) {
        c->left = with_head() ? 0 : opt.post;
        c->phase = c->left ? UPLOADING : HEAD;
    }
    return 1;
}

static int step_uploading(struct conn *c)
{
    int n = SSL_write(c->ssl, upload, (int)(c->left < sizeof upload ? c->left : sizeof upload));
    if (n <= 0)
        return tls_result(c, n);
    c->left -= (uint64_t)n;
    if (!c->left)
        c->phase = HEAD;
    return 1;
}

static int answer_done(struct conn *c)
{
    if (done < SAMPLE_MAX)
        samples[done] = (uint32_t)(now_us() - c->began);
    done++;
    if (opt.idle) {
        c->phase = IDLE;
        idle++;
        return 0;
    }
    if (opt.fresh || c->closes || finished()) {
        conn_close(c);
        return 0;
    }
    request_begin(c);
    return 1;
}

// Only Content-Length: the origin sends it, and a proxy of the bench has no reason to take it away.
static int step_head(struct conn *c)
{
    int n = SSL_read(c->ssl, c->buf + c->have, (int)(BUF_MAX - 1 - c->have));
    if (n <= 0)
        return tls_result(c, n);
    c->have += (size_t)n;
    c->buf[c->have] = 0;
    char *end = memmem(c->buf, c->have, "\r\n\r\n", 4);
    if (!end)
        return c->have < BUF_MAX - 1 ? 1 : -1;
    *end = 0;
    char *length = strcasestr(c->buf, "\r\ncontent-length:");
    if (memcmp(c->buf + 8, " 200", 4) != 0 || !length) {
        if (!errors)
            fprintf(stderr, "unexpected answer: %.300s\n", c->buf);
        return -1;
    }
    uint64_t total = strtoull(length + 17, NULL, 10), got = c->have - (size_t)(end + 4 - c->buf);
    c->closes = strcasestr(c->buf, "\r\nconnection: close") != NULL;
    if (total != opt.body || got > total)
        return -1;
    c->left = total - got;
    c->phase = BODY;
    return c->left ? 1 : answer_done(c);
}

static int step_body(struct conn *c)
{
    int n = SSL_read(c->ssl, c->buf, BUF_MAX);
    if (n <= 0)
        return tls_result(c, n);
    if ((uint64_t)n > c->left)
        return -1;
    c->left -= (uint64_t)n;
    return c->left ? 1 : answer_done(c);
}

static int conn_step(struct conn *c)
{
    switch (c->phase) {
    case CONNECTING: return step_connecting(c);
    case ASKING: return step_asking(c);
    case ASKED: return step_asked(c);
    case SHAKING: return step_shaking(c);
    case SENDING: return step_sending(c);
    case UPLOADING: return step_uploading(c);
    case HEAD: return step_head(c);
    case BODY: return step_body(c);
    case IDLE:
    case OFF: break;
    }
    return 0;
}

static void conn_drive(struct conn *c)
{
    int n;
    while ((n = conn_step(c)) > 0)
        ;
    if (n < 0)
        conn_fail(c, "connection");
    if (c->phase == OFF && !finished() && errors < ERROR_MAX && conn_open(c) < 0)
        conn_fail(c, "connect");
}

// All connections stand: whoever started this one looks, and then ends our input.
static int keep(void)
{
    char word;
    puts("ready");
    fflush(stdout);
    while (read(0, &word, 1) > 0)
        ;
    return 0;
}

static int run(void)
{
    struct epoll_event events[256];
    deadline = now_us() + (uint64_t)(opt.seconds * 1e6);
    unsigned next = 0;
    for (;;) {
        for (; next < opt.connections && (!opt.idle || next < idle + AT_ONCE); next++)
            if (conn_open(&conns[next]) < 0)
                conn_fail(&conns[next], "connect");
        unsigned open = 0;
        for (unsigned i = 0; i < opt.connections; i++)
            open += conns[i].phase != OFF;
        if (!open)
            return 0;
        if (opt.idle && idle == opt.connections)
            return keep();
        int n = epoll_wait(epoll_fd, events, 256, IDLE_MS);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            snprintf(first_error, sizeof first_error, "no answer for %d s", IDLE_MS / 1000);
            errors++;
            return -1;
        }
        for (int i = 0; i < n; i++)
            conn_drive(events[i].data.ptr);
    }
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void report(double seconds)
{
    uint64_t n = done < SAMPLE_MAX ? done : SAMPLE_MAX;
    qsort(samples, n, sizeof *samples, by_value);
    for (char *p = first_error; *p; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < 32)
            *p = '.';
    printf("{\"requests\": %llu, \"errors\": %llu, \"seconds\": %.3f, \"p50_us\": %u, \"p99_us\": %u, "
           "\"first_error\": \"%s\"}\n",
           (unsigned long long)done, (unsigned long long)errors, seconds, n ? samples[n / 2] : 0,
           n ? samples[n * 99 / 100] : 0, first_error);
}

static int address_parse(const char *text, struct sockaddr_in *out)
{
    char ip[64];
    const char *colon = strrchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof ip)
        return -1;
    memcpy(ip, text, (size_t)(colon - text));
    ip[colon - text] = 0;
    out->sin_family = AF_INET;
    out->sin_port = htons((uint16_t)atoi(colon + 1));
    return inet_pton(AF_INET, ip, &out->sin_addr) == 1 ? 0 : -1;
}

static int options_parse(int argc, char **argv)
{
    static const struct option known[] = {{"proxy", 1, 0, 'p'},    {"target", 1, 0, 't'},      {"ca", 1, 0, 'c'},
                                          {"path", 1, 0, 'P'},     {"connections", 1, 0, 'n'}, {"seconds", 1, 0, 's'},
                                          {"requests", 1, 0, 'r'}, {"new", 0, 0, 'f'},         {"reverse", 0, 0, 'R'},
                                          {"auth", 1, 0, 'a'},     {"body", 1, 0, 'b'},        {"post", 1, 0, 'o'},
                                          {"hosts", 1, 0, 'h'},    {"idle", 0, 0, 'i'},        {0, 0, 0, 0}};
    opt = (struct options){.path = "/small", .connections = 32, .seconds = 2};
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'p':
            if (address_parse(optarg, &opt.proxy) < 0)
                return -1;
            break;
        case 't': opt.target = optarg; break;
        case 'c': opt.ca = optarg; break;
        case 'P': opt.path = optarg; break;
        case 'n': opt.connections = (unsigned)atoi(optarg); break;
        case 's': opt.seconds = atof(optarg); break;
        case 'r': opt.requests = strtoull(optarg, NULL, 10); break;
        case 'f': opt.fresh = true; break;
        case 'R': opt.reverse = true; break;
        case 'a': opt.auth = optarg; break;
        case 'o': opt.post = strtoull(optarg, NULL, 10); break;
        case 'h':
            opt.hosts = opt.fresh = true;
            opt.first = opened = strtoull(optarg, NULL, 10);
            break;
        case 'i': opt.idle = true; break;
        case 'b': opt.body = strtoull(optarg, NULL, 10); break;
        default: return -1;
        }
    }
    const char *colon = opt.target ? strrchr(opt.target, ':') : NULL;
    if (!colon || !opt.proxy.sin_port || !opt.ca || opt.connections < 1 || opt.connections > CONN_MAX)
        return -1;
    opt.port = colon + 1;
    opt.host = strndup(opt.target, (size_t)(colon - opt.target));
    return opt.host ? 0 : -1;
}

static int prepare(void)
{
    memset(upload, 'u', sizeof upload);
    ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) || !SSL_CTX_load_verify_file(ctx, opt.ca))
        return -1;
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    conns = calloc(opt.connections, sizeof *conns);
    samples = calloc(SAMPLE_MAX, sizeof *samples);
    if (epoll_fd < 0 || !conns || !samples)
        return -1;
    for (unsigned i = 0; i < opt.connections; i++) {
        conns[i].fd = -1;
        if (!(conns[i].buf = malloc(BUF_MAX)))
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (options_parse(argc, argv) < 0) {
        fprintf(stderr, "usage: loadgen --proxy IP:PORT --target HOST:PORT --ca FILE [--path P] [--connections N] "
                        "[--seconds S | --requests N] [--new | --hosts FIRST | --idle] [--reverse] [--auth BASE64] "
                        "[--post BYTES] "
                        "--body BYTES\n");
        return 2;
    }
    if (prepare() < 0) {
        fprintf(stderr, "loadgen: cannot prepare: %s\n", ERR_reason_error_string(ERR_get_error()));
        return 1;
    }
    uint64_t began = now_us();
    int rc = run();
    report((double)(now_us() - began) / 1e6);
    for (unsigned i = 0; i < opt.connections; i++) {
        conn_close(&conns[i]);
        free(conns[i].buf);
    }
    free(conns);
    free(samples);
    free((char *)opt.host);
    SSL_CTX_free(ctx);
    close(epoll_fd);
    return rc < 0 || errors || !done ? 1 : 0;
}
