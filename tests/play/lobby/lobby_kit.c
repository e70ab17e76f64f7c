#include "tests/play/lobby/lobby_kit.h"

#include "tests/play/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct stage *s;

void stage_stop(void *arg)
{
    loop_stop(arg);
}

void turn(void)
{
    assert_int_equal(loop_defer(s->l, stage_stop, s->l), 0);
    assert_int_equal(loop_run(s->l), 0);
    clock_turn();
}

void settle(void)
{
    for (int i = 0; i < 6; i++)
        turn();
}

static void at_judge(void *arg, struct chan *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    (void)arg, (void)c;
    assert_int_equal(f->type, M_IDENTIFY);
    assert_true(s->nasked < FRAMES_MAX);
    struct span token = msg_get_span(&m, 256);
    assert_int_equal(msg_end(&m), 0);
    s->asked[s->nasked].id = f->id;
    s->asked[s->nasked].n = token.n;
    memcpy(s->asked[s->nasked++].token, token.p, token.n);
}

static void at_parent(void *arg, struct chan *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    (void)arg, (void)c;
    if (f->type == M_REFUSED) {
        assert_int_equal(wire_get_refusals(&m, SPAN_NONE, &s->refused), 0);
        return;
    }
    assert_int_equal(f->type, M_HANDOVER);
    s->given.way = msg_get_u8(&m);
    s->given.port = msg_get_u16(&m);
    struct span sandbox = msg_get_span(&m, 255), auth = msg_get_span(&m, 8192), rest = msg_get_span(&m, 65536);
    assert_int_equal(msg_end(&m), 0);
    memcpy(s->given.sandbox, sandbox.p, s->given.nsandbox = sandbox.n);
    memcpy(s->given.auth, auth.p, s->given.nauth = auth.n);
    memcpy(s->given.rest, rest.p, s->given.nrest = rest.n);
    s->given.fd = frame_take_fd(f, 0);
    assert_true(s->given.fd >= 0);
    s->ngiven++;
}

static void gone(void *arg, struct chan *c)
{
    (void)arg, (void)c;
    chan_free(&s->judge);
}

static void lobby_hears(void *arg, struct chan *c, struct frame *f)
{
    (void)c;
    lobby_frame(arg, f);
}

static struct chan *pair(const struct chan_ops *ops, int *other)
{
    int sv[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv), 0);
    *other = sv[1];
    struct chan *c = chan_new(s->l, sv[0], ops, s);
    assert_non_null(c);
    return c;
}

void new_judge(void)
{
    static const struct chan_ops ops = {at_judge, gone};
    int fd;
    chan_free(&s->judge);
    s->judge = pair(&ops, &fd);
    lobby_peer(&s->lobby, ROLE_JUDGE, 0, SPAN_NONE, fd);
}

void listen_as(const char *name, const struct wire_listener *w, const int *files, unsigned nfiles)
{
    int fd[CHAN_FDS_MAX];
    if (s->listener >= 0)
        s->old[s->nold++] = s->listener;
    fd[0] = s->listener = listen_tcp("127.0.0.1:0");
    assert_true(s->listener >= 0);
    for (unsigned i = 0; i < nfiles; i++)
        fd[i + 1] = files[i];
    struct dynbuf *b = chan_begin(s->parent, M_LISTEN, 0);
    msg_put_u8(b, w->way == WAY_SOCKS ? LISTEN_SOCKS : LISTEN_HTTP);
    msg_put_span(b, span_str(name));
    wire_put_listener(b, w);
    assert_int_equal(chan_commit_fds(s->parent, fd, nfiles + 1), 0);
    settle();
}

uint64_t refused(const char *listener, const char *code)
{
    for (size_t i = 0; i < s->refused.n; i++)
        if (strcmp(s->refused.row[i].listener, listener) == 0 && strcmp(s->refused.row[i].code, code) == 0)
            return s->refused.row[i].count;
    return 0;
}

int stage_open(void **state)
{
    static const struct chan_ops parent = {.frame = at_parent}, own = {.frame = lobby_hears};
    int fd;
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    s = calloc(1, sizeof(*s));
    s->fds = open_fds();
    s->l = loop_new();
    assert_int_equal(lobby_init(&s->lobby, s->l), 0);
    s->parent = pair(&parent, &fd);
    s->lobby.parent = chan_new(s->l, fd, &own, &s->lobby);
    new_judge();
    static struct wire_listener token;
    token = (struct wire_listener){.way = WAY_HTTP, .identity = IDENTITY_TOKEN};
    s->listener = -1;
    listen_as("agents", &token, NULL, 0);
    assert_int_equal(s->lobby.ndoors, 1);
    return 0;
}

int stage_close(void **state)
{
    (void)state;
    lobby_done(&s->lobby);
    chan_free(&s->lobby.parent);
    chan_free(&s->parent);
    chan_free(&s->judge);
    close(s->listener);
    while (s->nold > 0)
        close(s->old[--s->nold]);
    loop_free(&s->l);
    assert_int_equal(open_fds(), s->fds);
    free(s);
    return 0;
}

int dial(void)
{
    return dial_from(INADDR_LOOPBACK);
}

int dial_from(uint32_t source)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)listen_port(s->listener))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(source)};
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
    assert_true(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 || errno == EINPROGRESS);
    turn();
    return fd;
}

void say(int fd, const char *text)
{
    say_bytes(fd, span_str(text));
}

void say_bytes(int fd, struct span bytes)
{
    const uint8_t *text = bytes.p;
    size_t n = bytes.n;
    for (uint64_t until = now_ms() + 5000; n > 0 && now_ms() < until;) {
        ssize_t w = write(fd, text, n);
        if (w > 0) {
            text += w;
            n -= (size_t)w;
        }
        turn();
    }
    settle();
}

/* What came until the text did; to the end of the connection if there is none. */
const char *hear(int fd, const char *text)
{
    static char in[8192];
    size_t n = 0;
    in[0] = '\0';
    for (uint64_t until = now_ms() + 5000; now_ms() < until; turn()) {
        ssize_t got = read(fd, in + n, sizeof(in) - 1 - n);
        if (got > 0) {
            n += (size_t)got;
            in[n] = '\0';
        }
        if (text != NULL && strstr(in, text) != NULL)
            return in;
        if (got == 0 && text == NULL)
            return in;
        if (got == 0 || (got < 0 && errno != EAGAIN))
            break;
    }
    fail_msg("\"%s\" did not come, but \"%s\"", text ? text : "the end", in);
    return in;
}

uint64_t next_asked(const char *token)
{
    UNTIL(s->nasked > s->nseen);
    size_t i = s->nseen++;
    if (!span_eq(span_of(s->asked[i].token, s->asked[i].n), span_str(token)))
        fail_msg("asked about \"%.*s\"", (int)s->asked[i].n, s->asked[i].token);
    return s->asked[i].id;
}

void answer(uint64_t id, enum identity known, const char *sandbox)
{
    struct dynbuf *b = chan_begin(s->judge, M_IDENTITY, id);
    msg_put_u8(b, (uint8_t)known);
    msg_put_span(b, span_str(sandbox));
    assert_int_equal(chan_commit(s->judge), 0);
    settle();
}

void was_given(const char *sandbox, const char *auth, const char *rest)
{
    UNTIL(s->ngiven == 1);
    s->ngiven = 0;
    assert_true(span_eq(span_of(s->given.sandbox, s->given.nsandbox), span_str(sandbox)));
    assert_true(span_eq(span_of(s->given.auth, s->given.nauth), span_str(auth)));
    if (!span_eq(span_of(s->given.rest, s->given.nrest), span_str(rest)))
        fail_msg("handed over with \"%.*s\"", (int)s->given.nrest, s->given.rest);
}
