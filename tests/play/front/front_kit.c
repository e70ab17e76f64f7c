#include "tests/play/front/front_kit.h"

#include "tests/play/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/play/front/front_peers.h"

enum { CL_IN_MAX = 16 * 1024 * 1024, QUIET_TURNS = 6 };

static void stop(void *arg)
{
    loop_stop(arg);
}

void turn(struct stage *s)
{
    assert_int_equal(loop_defer(s->l, stop, s->l), 0);
    assert_int_equal(loop_run(s->l), 0);
    clock_turn();
}

void settle(struct stage *s)
{
    for (int i = 0; i < QUIET_TURNS; i++)
        turn(s);
}

/* ---- the fakes ---- */

static void on_frame(void *arg, struct chan *c, struct frame *f)
{
    struct fake *to = arg;
    struct got *g = calloc(1, sizeof(*g) + f->payload.n);
    (void)c;
    if (to->aside != NULL && (f->type == M_FRONT_REFUSED || f->type == M_REFUSED))
        to = to->aside;
    assert_non_null(g);
    g->type = f->type;
    g->id = f->id;
    if (f->payload.n)
        memcpy(g + 1, f->payload.p, f->payload.n);
    g->payload = span_of(g + 1, f->payload.n);
    g->fd = frame_take_fd(f, 0);
    *(to->last ? &to->last->next : &to->first) = g;
    to->last = g;
    to->n++;
}

static void on_gone(void *arg, struct chan *c)
{
    struct fake *f = arg;
    (void)c;
    f->gone = true;
    chan_free(&f->chan);
}

/* Both ends of a new channel: ours to the fake, the other is returned. */
static int channel(struct stage *s, struct fake *to)
{
    static const struct chan_ops ops = {on_frame, on_gone};
    int sv[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv), 0);
    to->chan = chan_new(s->l, sv[0], &ops, to);
    assert_non_null(to->chan);
    return sv[1];
}

static void forget(struct fake *f)
{
    for (struct got *g = f->first, *next; g != NULL; g = next) {
        next = g->next;
        if (g->fd >= 0)
            close(g->fd);
        free(g);
    }
    if (f->taken != NULL && f->taken->fd >= 0)
        close(f->taken->fd);
    free(f->taken);
    chan_free(&f->chan);
    *f = (struct fake){0};
}

void stage_peer(struct stage *s, unsigned role)
{
    struct fake *to = role == ROLE_JUDGE ? &s->judge : &s->carrier;
    forget(to);
    to->aside = &s->books;
    front_peer(s->f, role, 0, SPAN_NONE, channel(s, to));
    if (role == ROLE_JUDGE)
        assert_true(take(s, to, M_FRONT_KEY).payload.n > 64);
}

/* What common/role/role.c does for a real front. */
static void from_parent(void *arg, struct chan *c, struct frame *f)
{
    (void)c;
    front_frame(arg, f);
}

/* ---- certificates ---- */

static X509 *certificate(const char *cn, const char *san, EVP_PKEY *of, X509 *issuer, EVP_PKEY *by)
{
    X509 *x = X509_new();
    assert_non_null(x);
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1 + (long)(now_ms() % 1000000));
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, of);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)cn, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer : x));
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer ? issuer : x, x, NULL, NULL, 0);
    X509_EXTENSION *e = san ? X509V3_EXT_conf_nid(NULL, &ctx, NID_subject_alt_name, san)
                            : X509V3_EXT_conf_nid(NULL, &ctx, NID_basic_constraints, "critical,CA:TRUE");
    assert_non_null(e);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
    assert_true(X509_sign(x, by, EVP_sha256()) > 0);
    return x;
}

static struct span der_of(X509 *x)
{
    unsigned char *p = NULL;
    int n = i2d_X509(x, &p);
    assert_true(n > 0);
    return span_of(p, (size_t)n);
}

void give_leaf(struct stage *s, uint64_t id, const char *host)
{
    char san[300];
    struct span spki = tls_key_spki(s->f->key);
    const unsigned char *p = spki.p;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &p, (long)spki.n);
    bool literal = strspn(host, "0123456789.") == strlen(host);
    snprintf(san, sizeof(san), "%s:%s", literal ? "IP" : "DNS", host);
    X509 *x = certificate("leaf", san, key, s->ca, s->ca_key);
    struct span leaf = der_of(x), ca = der_of(s->ca);
    struct dynbuf *b = chan_begin(s->judge.chan, M_LEAF, id);
    msg_put_span(b, leaf);
    msg_put_span(b, ca);
    assert_int_equal(chan_commit(s->judge.chan), 0);
    OPENSSL_free((void *)leaf.p);
    OPENSSL_free((void *)ca.p);
    X509_free(x);
    EVP_PKEY_free(key);
}

/* ---- the stage ---- */

static void listen_as(struct stage *s, enum listen_kind kind)
{
    size_t n = s->f->ndoors;
    struct dynbuf *b = chan_begin(s->parent.chan, M_LISTEN, 0);
    msg_put_u8(b, (uint8_t)kind);
    msg_put_span(b, SPAN("sb"));
    assert_int_equal(chan_commit_fd(s->parent.chan, s->listener), 0);
    UNTIL(s, s->f->ndoors == n + 1);
}

void stage_open(struct stage *s)
{
    stage_open_as(s, LISTEN_OWN);
}

void stage_open_as(struct stage *s, enum listen_kind kind)
{
    struct err e;
    signal(SIGPIPE, SIG_IGN);
    *s = (struct stage){.fds = open_fds()};
    s->l = loop_new();
    s->f = calloc(1, sizeof(*s->f));
    assert_non_null(s->l);
    assert_non_null(s->f);
    if (front_init(s->f, s->l, INSTANCE, &e) != 0)
        fail_msg("%s", e.text);
    static const struct chan_ops ops = {.frame = from_parent};
    s->parent.aside = &s->books;
    s->f->parent = chan_new(s->l, channel(s, &s->parent), &ops, s->f);
    stage_peer(s, ROLE_JUDGE);
    stage_peer(s, ROLE_CARRIER);
    int small = 64 * 1024; /* what the kernel holds for a client that does not read */
    s->listener = listen_tcp("127.0.0.1:0");
    assert_true(s->listener >= 0);
    assert_int_equal(setsockopt(s->listener, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    s->f->name = SPAN("sb");
    listen_as(s, kind);
    s->ca_key = EVP_EC_gen("P-256");
    s->ca = certificate("test CA", NULL, s->ca_key, NULL, s->ca_key);
    s->tls = SSL_CTX_new(TLS_client_method());
    X509_STORE_add_cert(SSL_CTX_get_cert_store(s->tls), s->ca);
    SSL_CTX_set_verify(s->tls, SSL_VERIFY_PEER, NULL);
}

void stage_close(struct stage *s)
{
    front_done(s->f);
    chan_free(&s->f->parent);
    settle(s);
    forget(&s->judge);
    forget(&s->carrier);
    forget(&s->parent);
    forget(&s->books);
    close(s->listener);
    free(s->f);
    loop_free(&s->l);
    X509_free(s->ca);
    EVP_PKEY_free(s->ca_key);
    SSL_CTX_free(s->tls);
    assert_int_equal(open_fds(), s->fds);
}

/* ---- clients ---- */

static void cl_born(struct stage *s, struct cl *c, int fd)
{
    *c = (struct cl){.s = s, .fd = fd};
    dynbuf_init(&c->in, CL_IN_MAX);
}

void cl_dial(struct stage *s, struct cl *c)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)listen_port(s->listener))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int small = 64 * 1024;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_true(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 || errno == EINPROGRESS);
    cl_born(s, c, fd);
}

void cl_open(struct stage *s, struct cl *c)
{
    size_t n = s->f->nclients;
    cl_dial(s, c);
    UNTIL(s, s->f->nclients > n);
}

void cl_adopt(struct stage *s, struct cl *c, const char *auth, struct span bytes)
{
    cl_adopt_way(s, c, WAY_HTTP, 0, auth, bytes);
}

void cl_adopt_way(struct stage *s, struct cl *c, enum way way, uint16_t port, const char *auth, struct span bytes)
{
    int sv[2];
    uint64_t n = s->f->adopted;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv), 0);
    cl_born(s, c, sv[0]);
    struct dynbuf *b = chan_begin(s->parent.chan, M_ADOPT, 0);
    msg_put_u8(b, (uint8_t)way);
    msg_put_u16(b, port);
    msg_put_span(b, span_str(auth));
    msg_put_span(b, bytes);
    assert_int_equal(chan_commit_fd(s->parent.chan, sv[1]), 0);
    close(sv[1]);
    UNTIL(s, s->f->adopted > n);
}

void cl_close(struct cl *c)
{
    SSL_free(c->ssl);
    c->ssl = NULL;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    dynbuf_free(&c->in);
    settle(c->s);
}

void cl_say(struct cl *c, struct span bytes)
{
    uint64_t until = now_ms() + 5000;
    while (bytes.n > 0) {
        ssize_t n;
        if (c->ssl != NULL) {
            size_t done = 0;
            n = SSL_write_ex(c->ssl, bytes.p, bytes.n, &done) == 1 ? (ssize_t)done : -1;
        } else {
            n = write(c->fd, bytes.p, bytes.n);
        }
        if (n > 0)
            bytes = span_from(bytes, (size_t)n);
        turn(c->s);
        if (now_ms() > until)
            fail_msg("the front does not take what a client says");
    }
    settle(c->s);
}

void cl_read(struct cl *c)
{
    uint8_t some[16 * 1024];
    while (!c->ended) {
        ssize_t n;
        errno = 0;
        if (c->ssl != NULL) {
            size_t got = 0;
            ERR_clear_error();
            n = SSL_read_ex(c->ssl, some, sizeof(some), &got) == 1 ? (ssize_t)got : -1;
            int why = n > 0 ? 0 : SSL_get_error(c->ssl, 0);
            if (n < 0 && why == SSL_ERROR_WANT_READ)
                return;
            if (n < 0)
                c->ended = why == SSL_ERROR_ZERO_RETURN ? END_NOTIFY : END_CUT;
        } else {
            n = read(c->fd, some, sizeof(some));
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
                return;
            if (n <= 0)
                c->ended = n == 0 ? END_FIN : END_RESET;
        }
        if (n > 0)
            assert_int_equal(dynbuf_add(&c->in, span_of(some, (size_t)n)), 0);
    }
}

bool cl_has(const struct cl *c, const char *text)
{
    return span_find(dynbuf_span(&c->in), span_str(text)) < c->in.n;
}

void cl_expect(struct cl *c, const char *text)
{
    uint64_t until = now_ms() + 5000;
    for (cl_read(c); !cl_has(c, text); cl_read(c)) {
        if (c->ended || now_ms() > until)
            fail_msg("no \"%s\" in \"%.*s\"%s", text, SPAN_FMT(dynbuf_span(&c->in)),
                     c->ended ? ", and it ended" : "");
        turn(c->s);
    }
}

enum ending cl_end(struct cl *c)
{
    uint64_t until = now_ms() + 5000;
    for (cl_read(c); !c->ended; cl_read(c)) {
        if (now_ms() > until)
            fail_msg("the connection stays open after \"%.*s\"", SPAN_FMT(dynbuf_span(&c->in)));
        turn(c->s);
    }
    return c->ended;
}

void cl_is(struct cl *c, const char *text)
{
    settle(c->s);
    cl_read(c);
    if (!span_eq(dynbuf_span(&c->in), span_str(text)))
        fail_msg("expected \"%s\", got \"%.*s\"", text, SPAN_FMT(dynbuf_span(&c->in)));
    cl_forget(c);
}

void cl_forget(struct cl *c)
{
    dynbuf_reset(&c->in);
}

bool cl_tls(struct cl *c, const char *sni, const char *alpn)
{
    cl_tls_begin(c, sni, alpn);
    return cl_tls_end(c);
}

void cl_tls_begin(struct cl *c, const char *sni, const char *alpn)
{
    c->ssl = SSL_new(c->s->tls);
    assert_non_null(c->ssl);
    SSL_set_fd(c->ssl, c->fd);
    SSL_set_connect_state(c->ssl);
    if (sni != NULL)
        assert_int_equal(SSL_set_tlsext_host_name(c->ssl, sni), 1);
    if (alpn != NULL)
        assert_int_equal(SSL_set_alpn_protos(c->ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn)), 0);
    ERR_clear_error();
    assert_int_equal(SSL_get_error(c->ssl, SSL_do_handshake(c->ssl)), SSL_ERROR_WANT_READ);
    settle(c->s);
}

bool cl_tls_end(struct cl *c)
{
    uint64_t until = now_ms() + 5000;
    for (;;) {
        ERR_clear_error();
        int rc = SSL_do_handshake(c->ssl);
        if (rc == 1)
            break;
        if (SSL_get_error(c->ssl, rc) != SSL_ERROR_WANT_READ)
            return false;
        turn(c->s);
        if (now_ms() > until)
            fail_msg("the handshake does not end");
    }
    settle(c->s);
    return true;
}

void cl_tunnel(struct stage *s, struct cl *c, const char *host)
{
    char head[600];
    cl_open(s, c);
    snprintf(head, sizeof(head), "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", host, host);
    SAY(c, head);
    give_leaf(s, take_connect(s, host, 443), host);
    cl_expect(c, "HTTP/1.1 200 ");
    cl_expect(c, "\r\n\r\n");
    cl_forget(c);
    assert_true(cl_tls(c, host, NULL));
}
