/* common/net/loop: the order of a turn, timers, watches, signals, listeners. attacks.tsv: F7 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/net/loop_in.h"

struct trace {
    struct loop *l;
    char text[64];
    unsigned rounds;
    struct watch *w;
    struct timer *t;
    int fd;
    struct task task;
};

static void note(struct trace *t, const char *what)
{
    strncat(t->text, what, sizeof(t->text) - strlen(t->text) - 1);
}

static void on_stop(void *arg)
{
    struct trace *t = arg;
    note(t, "S");
    loop_stop(t->l);
}

static void on_deferred(void *arg)
{
    note(arg, "d");
}

static void on_flush(void *arg)
{
    note(arg, "f");
}

static void on_timer(void *arg)
{
    struct trace *t = arg;
    note(t, "t");
    task_flush(t->l, &t->task);
    task_flush(t->l, &t->task); /* twice is once */
    assert_int_equal(loop_defer(t->l, on_deferred, t), 0);
    assert_int_equal(loop_defer(t->l, on_stop, t), 0);
}

static void test_turn(void **state)
{
    struct trace t = {.l = loop_new()};
    (void)state;
    assert_non_null(t.l);
    task_init(&t.task, on_flush, &t);
    t.t = timer_new(t.l, on_timer, &t);
    timer_set(t.t, 1);
    assert_int_equal(loop_run(t.l), 0);
    assert_string_equal(t.text, "tdSf"); /* what was written in the last turn still leaves */
    timer_free(&t.t);
    loop_free(&t.l);
}

static void again(void *arg)
{
    struct trace *t = arg;
    if (++t->rounds < 100)
        assert_int_equal(loop_defer(t->l, again, t), 0);
}

/* A call that defers itself for ever starves nobody. */
static void test_defer_is_fair(void **state)
{
    struct trace t = {.l = loop_new()};
    (void)state;
    t.t = timer_new(t.l, on_stop, &t);
    timer_set(t.t, 0);
    assert_int_equal(loop_defer(t.l, again, &t), 0);
    assert_int_equal(loop_run(t.l), 0);
    assert_true(t.rounds < 100);
    timer_free(&t.t);
    loop_free(&t.l); /* with one still waiting */
}

static void cancel_other(void *arg)
{
    struct trace *t = arg;
    note(t, "c");
    task_cancel(&t->task);
}

static void test_cancel(void **state)
{
    struct trace t = {.l = loop_new()};
    (void)state;
    task_init(&t.task, on_flush, &t);
    assert_int_equal(loop_defer(t.l, cancel_other, &t), 0);
    task_later(t.l, &t.task);
    assert_int_equal(loop_defer(t.l, on_stop, &t), 0);
    assert_int_equal(loop_run(t.l), 0);
    assert_string_equal(t.text, "cS");
    loop_free(&t.l);
}

static void on_watch(void *arg, unsigned ready)
{
    struct trace *t = arg;
    note(t, ready == WATCH_READ ? "r" : "w");
    watch_free(&t->w); /* inside its own callback */
    loop_stop(t->l);
}

static void test_watch(void **state)
{
    struct trace t = {.l = loop_new()};
    int fd[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    assert_int_equal(write(fd[1], "x", 1), 1);
    t.w = watch_new(t.l, fd[0], WATCH_READ | WATCH_WRITE, on_watch, &t);
    assert_non_null(t.w);
    assert_int_equal(loop_run(t.l), 0);
    assert_null(t.w);
    assert_int_equal(strlen(t.text), 1);

    t.text[0] = '\0';
    t.w = watch_new(t.l, fd[0], WATCH_READ, on_watch, &t);
    watch_set(t.w, 0);
    assert_int_equal(loop_defer(t.l, on_stop, &t), 0);
    assert_int_equal(loop_run(t.l), 0);
    assert_string_equal(t.text, "S");
    watch_set(t.w, WATCH_READ);
    assert_int_equal(loop_run(t.l), 0);
    assert_string_equal(t.text, "Sr");
    close(fd[0]);
    close(fd[1]);
    loop_free(&t.l);
}

static void count(void *arg, unsigned ready)
{
    struct trace *t = arg;
    (void)ready;
    t->rounds++;
}

/* A descriptor that another process (here: a duplicate) still holds open is forgotten all the same. */
static void test_watch_of_shared(void **state)
{
    struct trace t = {.l = loop_new()};
    int fd[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    int held = dup(fd[0]);
    assert_int_equal(write(fd[1], "x", 1), 1);
    t.w = watch_new(t.l, fd[0], WATCH_READ, count, &t);
    t.t = timer_new(t.l, on_stop, &t);
    timer_set(t.t, 5);
    assert_int_equal(loop_run(t.l), 0);
    assert_true(t.rounds > 0);
    watch_free(&t.w);
    close(fd[0]);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    timer_set(t.t, 200);
    assert_int_equal(loop_run(t.l), 0);
    getrusage(RUSAGE_SELF, &after);
    long us =
        (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
        after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
    assert_true(us < 100000);
    close(held);
    close(fd[1]);
    timer_free(&t.t);
    loop_free(&t.l);
}

static void on_signal(void *arg, int signo)
{
    struct trace *t = arg;
    assert_int_equal(signo, SIGUSR1);
    note(t, "s");
    loop_stop(t->l);
}

static void test_signal(void **state)
{
    struct trace t = {.l = loop_new()};
    (void)state;
    assert_int_equal(loop_on_signal(t.l, SIGUSR1, on_signal, &t), 0);
    raise(SIGUSR1);
    assert_int_equal(loop_run(t.l), 0);
    assert_string_equal(t.text, "s");
    loop_free(&t.l);
}

static void test_clock(void **state)
{
    struct trace t = {.l = loop_new()};
    (void)state;
    uint64_t now = loop_now(t.l);
    assert_true(now > 0);
    assert_true(loop_now(t.l) == now); /* one reading a turn */
    assert_true(loop_wall(t.l) > 1600000000000u);
    t.t = timer_new(t.l, on_stop, &t);
    timer_set(t.t, 600000);
    timer_set(t.t, 5); /* replaces */
    assert_int_equal(loop_run(t.l), 0);
    assert_true(loop_now(t.l) >= now + 5);
    assert_true(loop_now(t.l) < now + 600000);
    timer_set(t.t, 1);
    timer_clear(t.t);
    timer_free(&t.t);
    timer_free(&t.t);
    loop_free(&t.l);
}

static void test_stop_before_run(void **state)
{
    struct trace t = {.l = loop_new()};
    (void)state;
    loop_stop(t.l);
    assert_int_equal(loop_run(t.l), 0);
    loop_free(&t.l);
}

static void test_listen_tcp(void **state)
{
    static const char *const bad[] = {"",         "127.0.0.1",     "127.0.0.1:",   "127.0.0.1:65536", "127.0.0.1:-1",
                                      "127.1:80", "localhost:1",   "[::1]",        "[::1:80",         "::1:80",
                                      "[::1]80",  "127.0.0.1:080", "127.0.0.1:8 0"};
    struct sockaddr_in a = {.sin_family = AF_INET};
    int on = 0;
    socklen_t n = sizeof(on);
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        errno = 0;
        if (listen_tcp(bad[i]) != -1 || errno != EINVAL)
            fail_msg("\"%s\" was taken for an address to listen on", bad[i]);
    }
    int fd = listen_tcp("127.0.0.1:0");
    assert_true(fd >= 0);
    assert_int_equal(listen_accept(fd), -1);
    assert_int_equal(errno, EAGAIN);
    a.sin_port = htons((uint16_t)listen_port(fd));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int c = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(c, (struct sockaddr *)&a, sizeof(a)), 0);
    int got = listen_accept(fd);
    assert_true(got >= 0);
    assert_int_equal(getsockopt(got, IPPROTO_TCP, TCP_NODELAY, &on, &n), 0);
    assert_int_equal(on, 1);
    char text[32];
    snprintf(text, sizeof(text), "127.0.0.1:%d", listen_port(fd));
    assert_int_equal(listen_tcp(text), -1);
    assert_int_equal(errno, EADDRINUSE);
    close(got);
    close(c);
    close(fd);
}

/* F7: out of descriptors is a word to the caller, not an endless loop. */
static void test_accept_without_descriptors(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    struct rlimit was, now;
    (void)state;
    int fd = listen_tcp("127.0.0.1:0");
    a.sin_port = htons((uint16_t)listen_port(fd));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int c = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(c, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    now = was;
    now.rlim_cur = (rlim_t)(c > fd ? c : fd) + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    int got = listen_accept(fd), error = errno;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(got, -1);
    assert_int_equal(error, EMFILE);
    got = listen_accept(fd);
    assert_true(got >= 0);
    close(got);
    close(c);
    close(fd);
}

static void test_listen_unix(void **state)
{
    char dir[] = "/tmp/loop-XXXXXX", path[64];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/s", dir);
    int fd = listen_unix(path, 0600);
    assert_true(fd >= 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    int second = listen_unix(path, 0660); /* an old one is replaced */
    assert_true(second >= 0);
    memcpy(a.sun_path, path, strlen(path));
    int c = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(c, (struct sockaddr *)&a, sizeof(a)), 0);
    int got = listen_accept(second);
    assert_true(got >= 0);
    assert_int_equal(unlink(path), 0);
    FILE *f = fopen(path, "w"); /* but never a file */
    assert_non_null(f);
    fclose(f);
    assert_int_equal(listen_unix(path, 0600), -1);
    assert_int_equal(errno, EEXIST);
    unlink(path);
    rmdir(dir);
    char longer[200];
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(listen_unix(longer, 0600), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    close(got);
    close(c);
    close(fd);
    close(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turn),
        cmocka_unit_test(test_defer_is_fair),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_watch_of_shared),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_stop_before_run),
        cmocka_unit_test(test_listen_tcp),
        cmocka_unit_test(test_accept_without_descriptors),
        cmocka_unit_test(test_listen_unix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
