/* common/role: a role as a process, from its first frame to its end. attacks.tsv: D18 F16 G2 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/role/role.h"
#include "common/trace.h"

enum { TOLD = 50 }; /* the frame in which the role under test says what it sees */

struct seen {
    struct role *role;
    struct loop *loop;
    char pairs[128];
};

static void on_config(void *arg, struct span key, struct span value)
{
    struct seen *s = arg;
    size_t n = strlen(s->pairs);
    snprintf(s->pairs + n, sizeof(s->pairs) - n, "%.*s=%.*s;", SPAN_FMT(key), SPAN_FMT(value));
}

static void tell(struct seen *s, const char *text)
{
    (void)chan_send(role_parent(s->role), TOLD, 0, span_str(text));
}

static void on_peer(void *arg, unsigned peer, uint64_t instance, struct span info, int fd)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "peer %u %llu %.*s", peer, (unsigned long long)instance, SPAN_FMT(info));
    if (write(fd, text, (size_t)n) != n)
        abort();
    close(fd);
}

static void on_frame(void *arg, struct frame *f)
{
    char text[64];
    snprintf(text, sizeof(text), "frame %u", f->type);
    trace_step(f->id, "frame", "taken");
    tell(arg, text);
}

/* What a role looks like from inside once it is confined. */
static void look(struct seen *s, int inherited)
{
    struct rlimit core;
    char text[300], got[8] = "";
    int fd = role_config_fd(s->role, 0);
    getrlimit(RLIMIT_CORE, &core);
    if (fd >= 0 && read(fd, got, sizeof(got) - 1) < 0)
        got[0] = '!';
    snprintf(text, sizeof(text), "%s config_fd=%s more=%d secret=%s core=%d inherited=%d uid=%u", s->pairs, got,
             role_config_fd(s->role, 1), getenv("A_SECRET") != NULL ? "seen" : "gone", (int)core.rlim_cur,
             fcntl(inherited, F_GETFD) >= 0, geteuid());
    tell(s, text);
}

/* Runs in a child whose descriptor 3 is the channel. */
static void role_main(int inherited)
{
    static const struct role_ops ops = {on_frame, on_peer, on_config, NULL};
    static const struct wall wall = {.calls = WALL_BASE};
    struct seen s = {.loop = loop_new()};
    setenv("A_SECRET", "shibboleth", 1);
    setenv("COUNTERSIGN_UID", "64321", 1); /* without effect where the parent is not root */
    s.role = role_start("tested", s.loop, &ops, &s);
    if (getenv("A_SECRET") == NULL) /* a role may still take from the environment what is its own */
        abort();
    role_confine(s.role, &wall);
    look(&s, inherited);
    role_ready(s.role);
    _exit(loop_run(s.loop) == 0 ? 0 : 1);
}

struct child {
    pid_t pid;
    int fd;
    struct loop *l;
    struct chan *c;
    char told[400];
    unsigned ready, marks; /* marks: in the last answer of that kind */
    uint64_t marks_id;
    bool gone;
};

static void child_frame(void *arg, struct chan *c, struct frame *f)
{
    struct child *k = arg;
    (void)c;
    if (f->type == ROLE_MSG_READY)
        k->ready++;
    else if (f->type == ROLE_MSG_TRACE) {
        struct msg_in m = msg_in(f->payload);
        k->marks = msg_get_u16(&m);
        k->marks_id = f->id;
    } else
        snprintf(k->told, sizeof(k->told), "%.*s", SPAN_FMT(f->payload));
    loop_stop(k->l);
}

static void child_gone(void *arg, struct chan *c)
{
    struct child *k = arg;
    (void)c;
    chan_free(&k->c);
    k->gone = true;
    loop_stop(k->l);
}

static const struct chan_ops child_ops = {child_frame, child_gone};

static void start(struct child *k)
{
    int fd[2], quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
    *k = (struct child){.l = loop_new(), .fd = fd[0]};
    k->pid = fork();
    assert_true(k->pid >= 0);
    if (k->pid == 0) {
        int inherited = fcntl(STDERR_FILENO, F_DUPFD, 40); /* as through exec: not close-on-exec */
        dup2(quiet, STDERR_FILENO);
        close(fd[0]);
        dup2(fd[1], 3);
        if (fd[1] != 3)
            close(fd[1]);
        role_main(inherited);
    }
    close(fd[1]);
    close(quiet);
    k->c = chan_new(k->l, fd[0], &child_ops, k);
    assert_non_null(k->c);
}

static void configure(struct child *k, uint32_t version, int fd)
{
    struct dynbuf *b = chan_begin(k->c, ROLE_MSG_CONFIG, 0);
    msg_put_u32(b, version);
    msg_put_u16(b, 2);
    msg_put_span(b, SPAN("colour"));
    msg_put_span(b, SPAN("blue"));
    msg_put_span(b, SPAN("empty"));
    msg_put_span(b, SPAN(""));
    assert_int_equal(fd >= 0 ? chan_commit_fd(k->c, fd) : chan_commit(k->c), 0);
}

static int ended(struct child *k)
{
    int status;
    assert_int_equal(waitpid(k->pid, &status, 0), k->pid);
    chan_free(&k->c);
    loop_free(&k->l);
    return status;
}

static void test_life(void **state)
{
    struct child k;
    int pipes[2];
    (void)state;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(write(pipes[1], "hello", 5), 5);
    start(&k);
    configure(&k, MSG_VERSION, pipes[0]);
    assert_int_equal(loop_run(k.l), 0);
    while (!k.ready && !k.gone)
        assert_int_equal(loop_run(k.l), 0);
    char want[200];
    snprintf(want, sizeof(want), "colour=blue;empty=; config_fd=hello more=-1 secret=gone core=0 inherited=0 uid=%u",
             geteuid() == 0 ? 64321 : geteuid());
    assert_string_equal(k.told, want);
    assert_int_equal(k.ready, 1);

    /* A peer is handed over, a frame is passed on. */
    char text[64] = "";
    struct dynbuf *b = chan_begin(k.c, ROLE_MSG_PEER, 0);
    msg_put_u8(b, 7);
    msg_put_u64(b, 1234567890123u);
    msg_put_span(b, SPAN("box"));
    msg_put_u64(b, 77);
    assert_int_equal(chan_commit_fd(k.c, pipes[1]), 0);
    assert_int_equal(chan_send(k.c, 99, 42, SPAN("anything")), 0);
    assert_int_equal(loop_run(k.l), 0);
    assert_string_equal(k.told, "frame 99");
    assert_true(read(pipes[0], text, sizeof(text)) > 0);
    assert_string_equal(text, "peer 7 1234567890123 box");

    /* What became of an exchange is asked of it; what it is told of the log is not passed on. */
    assert_int_equal(chan_send(k.c, ROLE_MSG_LOG, 0, SPAN("\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")), 0);
    for (uint64_t exchange = 41; exchange <= 42; exchange++) {
        b = chan_begin(k.c, ROLE_MSG_TRACE, exchange + 100);
        msg_put_u64(b, exchange);
        assert_int_equal(chan_commit(k.c), 0);
        while (k.marks_id != exchange + 100 && !k.gone)
            assert_int_equal(loop_run(k.l), 0);
        assert_int_equal(k.marks, exchange == 42);
    }
    assert_string_equal(k.told, "frame 99");

    assert_int_equal(chan_send(k.c, ROLE_MSG_STOP, 0, SPAN_NONE), 0);
    assert_int_equal(loop_run(k.l), 0);
    assert_true(k.gone);
    assert_int_equal(ended(&k), 0);
    close(pipes[0]);
    close(pipes[1]);
}

static void test_refuses_to_start(void **state)
{
    struct child k;
    (void)state;
    start(&k); /* another version */
    configure(&k, MSG_VERSION + 1, -1);
    assert_int_equal(loop_run(k.l), 0);
    assert_true(k.gone);
    assert_int_equal(WEXITSTATUS(ended(&k)), 1);

    start(&k); /* not the configuration */
    assert_int_equal(chan_send(k.c, ROLE_MSG_STOP, 0, SPAN_NONE), 0);
    assert_int_equal(loop_run(k.l), 0);
    assert_int_equal(WEXITSTATUS(ended(&k)), 1);

    start(&k); /* cut short inside */
    assert_int_equal(chan_send(k.c, ROLE_MSG_CONFIG, 0, SPAN("\0\0\0\1\0\2\0\0")), 0);
    assert_int_equal(loop_run(k.l), 0);
    assert_int_equal(WEXITSTATUS(ended(&k)), 1);

    start(&k); /* no parent any more */
    chan_free(&k.c);
    assert_int_equal(WEXITSTATUS(ended(&k)), 1);
}

/* Who started a program may have no use for it any more before it has begun: that is no error, and a program that
 * nobody started is one. */
static void begin_alone(void (*begin)(void), bool has_channel, char *said, size_t cap)
{
    int fd[2], text[2], status;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(pipe2(text, O_CLOEXEC), 0);
    close(fd[0]); /* before the program begins: what it writes to somebody who is still there would be no error */
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(text[1], STDERR_FILENO);
        if (fd[1] != 3)
            dup2(fd[1], 3);
        if (!has_channel)
            close(3);
        begin();
        _exit(0);
    }
    close(fd[1]);
    close(text[1]);
    ssize_t n = read(text[0], said, cap - 1);
    close(text[0]);
    assert_true(n > 0);
    said[n] = '\0';
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 1);
}

static void begin_job(void)
{
    role_job_start("tested");
}

static void begin_role(void)
{
    role_main(-1);
}

static void test_nobody_waits(void **state)
{
    void (*const begin[])(void) = {begin_job, begin_role};
    char said[300];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin_alone(begin[i], true, said, sizeof(said));
        assert_non_null(strstr(said, "\"info\",\"msg\":\"who started this program has ended already"));
        begin_alone(begin[i], false, said, sizeof(said));
        assert_non_null(strstr(said, "\"level\":\"error\""));
    }
}

static void order_of_none(void)
{
    struct dynbuf payload;
    struct frame f;
    role_job_order(&f, &payload);
}

static void answer_to_none(void)
{
    struct dynbuf payload;
    dynbuf_init(&payload, 16);
    _exit(role_job_answer(1, 1, &payload) ? 0 : 1);
}

/* Nor is it one that whoever started a program ends while it works; whoever is there and does not understand is one.
 */
static void test_nobody_hears(void **state)
{
    void (*const step[])(void) = {order_of_none, answer_to_none};
    char said[300];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin_alone(step[i], true, said, sizeof(said));
        assert_non_null(strstr(said, "\"info\",\"msg\":\"who started this program has ended"));
        begin_alone(step[i], false, said, sizeof(said));
        assert_non_null(strstr(said, "\"level\":\"error\""));
    }
}

/* A peer without a descriptor is a broken parent. */
static void test_broken_peer(void **state)
{
    struct child k;
    (void)state;
    start(&k);
    configure(&k, MSG_VERSION, -1);
    while (!k.ready && !k.gone)
        assert_int_equal(loop_run(k.l), 0);
    assert_int_equal(chan_send(k.c, ROLE_MSG_PEER, 0, SPAN("\7")), 0);
    assert_int_equal(loop_run(k.l), 0);
    assert_true(k.gone);
    assert_int_equal(WEXITSTATUS(ended(&k)), 1);

    start(&k); /* and so is a message about the log that is cut short */
    configure(&k, MSG_VERSION, -1);
    while (!k.ready && !k.gone)
        assert_int_equal(loop_run(k.l), 0);
    assert_int_equal(chan_send(k.c, ROLE_MSG_LOG, 0, SPAN("\1")), 0);
    assert_int_equal(loop_run(k.l), 0);
    assert_true(k.gone);
    assert_int_equal(WEXITSTATUS(ended(&k)), 1);
}

/* The end of the parent is the end of the role, also when the role does not look at its channel. */
static void test_parent_dies(void **state)
{
    struct child k;
    (void)state;
    start(&k);
    configure(&k, MSG_VERSION, -1);
    while (!k.ready && !k.gone)
        assert_int_equal(loop_run(k.l), 0);
    chan_free(&k.c);
    assert_int_equal(ended(&k), 0);

    int link[2];
    char c;
    assert_int_equal(pipe2(link, O_CLOEXEC), 0);
    pid_t middle = fork();
    assert_true(middle >= 0);
    if (middle == 0) {
        struct child own;
        close(link[0]);
        start(&own); /* holds the writing end of the pipe, too */
        configure(&own, MSG_VERSION, -1);
        while (!own.ready && !own.gone)
            if (loop_run(own.l) != 0)
                _exit(2);
        kill(own.pid, SIGSTOP); /* it can neither read nor end by itself */
        _exit(own.ready == 1 ? 0 : 3);
    }
    close(link[1]);
    int status;
    assert_int_equal(waitpid(middle, &status, 0), middle);
    assert_int_equal(status, 0);
    assert_int_equal(read(link[0], &c, 1), 0); /* returns when the last holder of the pipe is dead */
    close(link[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),         cmocka_unit_test(test_refuses_to_start),
        cmocka_unit_test(test_nobody_waits), cmocka_unit_test(test_nobody_hears),
        cmocka_unit_test(test_broken_peer),  cmocka_unit_test(test_parent_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
