/* A command's output as its client gets it, byte for byte: the test is the client and the warden; the desk's server
 * runs in a process of its own. */
#include "tests/kit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/id.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "web-approval/store/store.h"
#include "web-approval/ask.h"
#include "web-approval/server.h"

enum { PIECE = 32 * 1024, ANSWER_MAX = 8 * 1024 * 1024, FINISH_MS = 2000 /* of common/net/conn.c */ };

static char folder[] = "/tmp/test_follow.XXXXXX", path[64];
static int warden = -1; /* our end */
static pid_t desk;
static struct dynbuf got;
static bool broken; /* no head of a stream can be written */

/* --- the desk ----------------------------------------------------------------------- */

int __real_conn_write(struct conn *c, struct span s);
int __wrap_conn_write(struct conn *c, struct span s);
int __wrap_conn_write(struct conn *c, struct span s)
{
    return broken && span_find(s, SPAN("text/event-stream")) < s.n ? -1 : __real_conn_write(c, s);
}

static void from_warden(void *arg, struct chan *c, struct frame *f)
{
    struct desk *d = arg;
    if (f->type == M_SB_OUTPUT || f->type == M_SB_EXIT || f->type == M_SB_FED || f->type == M_SB_CUT)
        server_follow(d->server, f);
    else
        (void)ask_answer(d, ASK_WARDEN, f);
}

static void warden_gone(void *arg, struct chan *c)
{
    _exit(0);
}

static void __attribute__((noreturn)) be_desk(int fd, int listener)
{
    static const struct chan_ops ops = {from_warden, warden_gone};
    static struct desk d;
    d.loop = loop_new();
    d.owner_uid = geteuid();
    d.store = desk_store_new("/nowhere/l.db"); /* who asks is a user of the machine, whom nothing is known of */
    d.idle_none = true;                        /* nor is any sandbox idle: else each request would be about one */
    d.warden = chan_new(d.loop, fd, &ops, &d);
    d.server = server_new(&d);
    if (server_listen(d.server, PLACE_CONTROL, listener) != 0)
        _exit(1);
    _exit(loop_run(d.loop) == 0 ? 0 : 1);
}

static int begin(void **state)
{
    const struct timeval patience = {.tv_sec = 20};
    int fd[2], listener;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(path, sizeof(path), "%s/control.sock", folder);
    if ((listener = listen_unix(path, 0600)) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0 ||
        setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0)
        return -1;
    if ((desk = fork()) == 0) {
        close(fd[0]);
        be_desk(fd[1], listener);
    }
    close(fd[1]);
    close(listener);
    warden = fd[0];
    dynbuf_init(&got, ANSWER_MAX);
    return 0;
}

static int begin_broken(void **state)
{
    broken = true;
    int rc = begin(state);
    broken = false;
    return rc;
}

static int finish(void **state)
{
    int status;
    close(warden);
    dynbuf_free(&got);
    (void)unlink(path);
    (void)rmdir(folder);
    return waitpid(desk, &status, 0) == desk && status == 0 ? 0 : -1;
}

/* --- the warden ---------------------------------------------------------------------- */

/* The next message must be of this type; its number. */
static uint64_t told(uint16_t type)
{
    struct dynbuf bytes;
    struct frame f;
    dynbuf_init(&bytes, CHAN_PAYLOAD_MAX);
    assert_int_equal(chan_read_one(warden, &f, &bytes), 0);
    assert_int_equal(f.type, type);
    dynbuf_free(&bytes);
    return f.id;
}

static void output(uint64_t id, unsigned which, size_t n)
{
    static uint8_t payload[1 + PIECE];
    memset(payload, 'A', 1 + n);
    payload[0] = (uint8_t)which;
    assert_int_equal(chan_write_one(warden, M_SB_OUTPUT, id, span_of(payload, 1 + n)), 0);
}

static void exited(uint64_t id, unsigned status)
{
    struct dynbuf b;
    dynbuf_init(&b, 128);
    msg_put_u8(&b, SB_EXITED);
    msg_put_u8(&b, (uint8_t)status);
    for (int i = 0; i < 5; i++)
        msg_put_u64(&b, 0);
    msg_put_span(&b, SPAN_NONE);
    assert_int_equal(chan_write_one(warden, M_SB_EXIT, id, dynbuf_span(&b)), 0);
    dynbuf_free(&b);
}

/* --- the client ------------------------------------------------------------------------ */

static int call(const char *method, const char *what, struct span body)
{
    char head[256];
    int n = snprintf(head, sizeof(head),
                     "%s /api/v1/%s HTTP/1.1\r\nHost: countersign\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     method, what, body.n);
    const struct timeval patience = {.tv_sec = 20};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(to.sun_path, path);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
    assert_int_equal(send(fd, body.p, body.n, MSG_NOSIGNAL), body.n);
    return fd;
}

static int post(const char *what, struct span body)
{
    return call("POST", what, body);
}

static int execute_in(const char *name)
{
    char what[64];
    (void)snprintf(what, sizeof(what), "sandboxes/%s/exec", name);
    return post(what, SPAN("{\"argv\":[\"ls\"]}"));
}

static int execute(void)
{
    return execute_in("box");
}

static bool has(const char *words)
{
    return span_find(dynbuf_span(&got), span_str(words)) < got.n;
}

/* False: there is no more. */
static bool read_piece(int fd)
{
    uint8_t *room = dynbuf_room(&got, PIECE);
    assert_non_null(room);
    ssize_t n = recv(fd, room, PIECE, 0);
    assert_true(n >= 0);
    dynbuf_grew(&got, (size_t)n);
    return n > 0;
}

/* To the end of it, into `got`. */
static void read_all(int fd)
{
    while (read_piece(fd))
        ;
    close(fd);
}

static void read_some(int fd, const char *until)
{
    while (!has(until))
        assert_true(read_piece(fd));
}

/* Bytes of output in all events of this kind. */
static size_t said(const char *event)
{
    static uint8_t bytes[4 * PIECE];
    struct span rest = dynbuf_span(&got);
    char head[64];
    size_t all = 0, n;
    (void)snprintf(head, sizeof(head), "event: %s\ndata: ", event);
    for (;;) {
        size_t at = span_find(rest, span_str(head));
        if (at >= rest.n)
            return all;
        rest = span_from(rest, at + strlen(head));
        struct span text = span_first(rest, span_index(rest, '\n'));
        assert_true(text.n <= sizeof(bytes));
        assert_int_equal(base64_decode(text, bytes, &n), 0);
        all += n;
    }
}

/* --- */

/* The end of a command does not end what its client has not read yet. */
static void who_reads_slowly_gets_all_of_it(void **state)
{
    const struct timespec longer = {.tv_sec = FINISH_MS / 1000 + 1};
    int fd = execute();
    uint64_t id = told(M_SB_EXEC);
    for (int i = 0; i < SB_WINDOW / PIECE; i++)
        output(id, 1, PIECE);
    exited(id, 3);
    (void)nanosleep(&longer, NULL);
    assert_int_equal(shutdown(fd, SHUT_WR), 0); /* it asks for nothing more, and reads on */
    read_all(fd);
    assert_int_equal(said("stdout"), SB_WINDOW);
    assert_true(has("\"how\":\"exited\",\"status\":3"));
    assert_int_equal(memcmp(got.p + got.n - 5, "0\r\n\r\n", 5), 0);
}

/* Each byte alone as an event is thirty times its size: they wait together for a client that does not read. */
static void who_does_not_read_single_bytes_gets_all_of_them(void **state)
{
    enum { MANY = 60000 };
    uint8_t taken[PIECE];
    int fd = execute();
    uint64_t id = told(M_SB_EXEC);
    for (int i = 0; i < MANY; i++) {
        output(id, 1 + (unsigned)i % 2, 1);
        if (i % 64 == 0)
            (void)recv(warden, taken, sizeof(taken), MSG_DONTWAIT);
    }
    exited(id, 0);
    read_all(fd);
    assert_int_equal(said("stdout"), MANY / 2);
    assert_int_equal(said("stderr"), MANY / 2);
    assert_true(has("\"how\":\"exited\""));
}

/* Of the one that is refused the warden hears nothing. */
static void refused(int fd)
{
    dynbuf_reset(&got);
    read_some(fd, "Too many");
    dynbuf_reset(&got);
    close(fd);
}

/* As many as one sandbox may have followed, and one more: of that one the warden hears nothing. */
static void one_too_many_is_refused_before_it_begins(void **state)
{
    enum { ONE = DESK_FOLLOWS / 2 };
    int fd[ONE];
    uint64_t id = 0;
    for (int i = 0; i < ONE; i++) {
        fd[i] = execute();
        id = told(M_SB_EXEC);
    }
    refused(execute());
    exited(id, 0);
    read_all(fd[ONE - 1]); /* its place is free */
    fd[ONE - 1] = execute();
    uint64_t next = told(M_SB_EXEC);
    assert_true(next > id);
    dynbuf_reset(&got);
    exited(next, 0);
    read_some(fd[ONE - 1], "\r\n0\r\n\r\n"); /* and does not close */
    (void)nanosleep(&(const struct timespec){.tv_sec = 2}, NULL);
    int last = execute();
    (void)told(M_SB_EXEC);
    close(last);
    for (int i = 0; i < ONE; i++)
        close(fd[i]);
}

/* Whatever some do that are full of commands, another one's begin, two of each, as long as there is a place at all.
 */
static void no_sandbox_takes_the_places_of_all(void **state)
{
    static const struct {
        const char *name;
        int may;
        bool full;
    } rows[] = {{"bad", DESK_FOLLOWS / 2, true},
                {"also", DESK_FOLLOWS / 4, true},
                {"c", 2, true},
                {"d", 2, false},
                {"e", 2, false},
                {"f", 2, true},
                {"g", 0, true}};
    int fd[DESK_FOLLOWS], n = 0, stat[DESK_SHORT / 4];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int k = 0; k < rows[i].may; k++) {
            fd[n++] = execute_in(rows[i].name);
            (void)told(M_SB_EXEC);
        }
        if (rows[i].full)
            refused(execute_in(rows[i].name));
    }
    assert_int_equal(n, DESK_FOLLOWS);
    for (int i = 0; i < DESK_SHORT / 4; i++) { /* what is asked of files has places of its own */
        stat[i] = call("GET", "sandboxes/bad/files/stat?path=f", SPAN_NONE);
        (void)told(M_SB_FILES);
    }
    refused(call("GET", "sandboxes/bad/files/stat?path=f", SPAN_NONE));
    refused(call("GET", "sandboxes/bad/files?path=f", SPAN_NONE));
    int other = call("GET", "sandboxes/other/files/stat?path=f", SPAN_NONE);
    exited(told(M_SB_FILES), 2);
    read_some(other, " 404 ");
    close(other);
    for (int i = 0; i < DESK_SHORT / 4; i++)
        close(stat[i]);
    while (n > 0)
        close(fd[--n]);
}

/* It was told to the warden before the answer's head could not be written. */
static void a_command_whose_answer_cannot_be_written_is_killed(void **state)
{
    int fd = execute();
    uint64_t id = told(M_SB_EXEC);
    assert_int_equal(told(M_SB_KILL), id);
    close(fd);
}

/* What is posted there is answered with this status. */
static void asked(const char *what, struct span body, const char *status)
{
    int fd = post(what, body);
    dynbuf_reset(&got);
    read_some(fd, "\r\n\r\n");
    if (!has(status))
        fail_msg("%s: %.*s", what, (int)got.n, got.p);
    close(fd);
    dynbuf_reset(&got);
}

static void input(uint64_t id, struct span bytes, const char *status)
{
    char what[64];
    (void)snprintf(what, sizeof(what), "streams/%llu/input", (unsigned long long)id);
    asked(what, bytes, status);
}

static void told_input(uint64_t id, size_t n)
{
    struct dynbuf bytes;
    struct frame f;
    dynbuf_init(&bytes, CHAN_PAYLOAD_MAX);
    assert_int_equal(chan_read_one(warden, &f, &bytes), 0);
    assert_int_equal(f.type, M_SB_INPUT);
    assert_int_equal(f.id, id);
    assert_int_equal(f.payload.n, n);
    dynbuf_free(&bytes);
}

/* No more than there is room for, which the events say; and nothing behind its end. */
static void a_command_is_given_what_is_posted_for_it(void **state)
{
    static uint8_t large[TALK_IN_WINDOW + 1];
    int fd = post("sandboxes/box/exec", SPAN("{\"argv\":[\"cat\"],\"input\":true}"));
    uint64_t id = told(M_SB_EXEC);
    char hello[64];
    (void)snprintf(hello, sizeof(hello), "data: {\"stream\":%llu,\"input\":%d}\n", (unsigned long long)id,
                   TALK_IN_WINDOW);
    read_some(fd, hello);
    input(id, SPAN("a\0b"), " 204 ");
    told_input(id, 3);
    input(id, span_of(large, TALK_IN_WINDOW), " 409 ");
    input(id, span_of(large, TALK_IN_WINDOW + 1), " 409 ");
    assert_int_equal(chan_write_one(warden, M_SB_FED, id, SPAN("\0\0\0\3")), 0);
    dynbuf_reset(&got);
    read_some(fd, "event: fed\ndata: 3\n\n");
    input(id, span_of(large, TALK_IN_WINDOW), " 204 ");
    told_input(id, TALK_IN_WINDOW);
    input(id, SPAN_NONE, " 204 ");
    told_input(id, 0);
    input(id, SPAN("x"), " 409 ");
    input(id, SPAN_NONE, " 409 ");
    input(id + 1000, SPAN("x"), " 404 ");
    input(0, SPAN("x"), " 404 ");
    int other = execute();
    input(told(M_SB_EXEC), SPAN("x"), " 409 ");
    close(other);
    close(fd);
}

/* Its size is told as it is said; it has no end but a key. */
static void a_terminal_is_resized(void **state)
{
    struct dynbuf bytes;
    struct frame f;
    char what[64];
    int fd = post("sandboxes/box/exec", SPAN("{\"argv\":[\"sh\"],\"tty\":true}"));
    uint64_t id = told(M_SB_EXEC);
    read_some(fd, "event: hello");
    (void)snprintf(what, sizeof(what), "streams/%llu/resize", (unsigned long long)id);
    asked(what, SPAN("{\"rows\":44,\"columns\":77}"), " 204 ");
    dynbuf_init(&bytes, CHAN_PAYLOAD_MAX);
    assert_int_equal(chan_read_one(warden, &f, &bytes), 0);
    assert_true(f.type == M_SB_RESIZE && f.id == id && span_eq(f.payload, SPAN("\0\54\0\115")));
    dynbuf_free(&bytes);
    asked(what, SPAN("{\"rows\":0,\"columns\":77}"), " 400 ");
    asked(what, SPAN("{\"rows\":44}"), " 400 ");
    input(id, SPAN_NONE, " 409 ");
    input(id, SPAN("\4"), " 204 ");
    told_input(id, 1);
    int other = execute();
    id = told(M_SB_EXEC);
    read_some(other, "event: hello");
    (void)snprintf(what, sizeof(what), "streams/%llu/resize", (unsigned long long)id);
    asked(what, SPAN("{\"rows\":44,\"columns\":77}"), " 409 ");
    asked("streams/0/resize", SPAN("{\"rows\":44,\"columns\":77}"), " 404 ");
    asked("streams/x/resize", SPAN("{\"rows\":44,\"columns\":77}"), " 404 ");
    close(other);
    close(fd);
}

/* It stands where the bytes are missing, however slowly the rest is read. */
static void what_is_not_kept_is_said_where_it_is_missing(void **state)
{
    enum { BEFORE = 4, BEHIND = 3 };
    int fd = post("sandboxes/box/attach", SPAN("{\"command\":\"3.7\"}"));
    uint64_t id = told(M_SB_ATTACH);
    assert_int_equal(chan_write_one(warden, M_SB_CUT, id, SPAN("\2\0\0\0\0\0\0\0\5")), 0);
    for (int i = 0; i < BEFORE; i++)
        output(id, 1, PIECE);
    for (int i = 0; i < 2; i++)
        assert_int_equal(chan_write_one(warden, M_SB_CUT, id, SPAN("\1\0\0\0\0\0\0\1\0")), 0);
    assert_int_equal(chan_write_one(warden, M_SB_CUT, id, SPAN("\3\0\0\0\0\0\0\1\0")), 0); /* of neither */
    for (int i = 0; i < BEHIND; i++)
        output(id, 1, PIECE);
    exited(id, 3);
    read_all(fd);
    assert_int_equal(said("stdout"), (BEFORE + BEHIND) * PIECE);
    assert_true(has("event: cut\ndata: {\"output\":\"stderr\",\"bytes\":5}\n\n"));
    size_t all = got.n, first = span_find(dynbuf_span(&got), SPAN("event: cut\ndata: {\"output\":\"stdout\""));
    got.n = first;
    assert_int_equal(said("stdout"), BEFORE * PIECE);
    got.n = all;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_reads_slowly_gets_all_of_it, begin, finish),
        cmocka_unit_test_setup_teardown(who_does_not_read_single_bytes_gets_all_of_them, begin, finish),
        cmocka_unit_test_setup_teardown(one_too_many_is_refused_before_it_begins, begin, finish),
        cmocka_unit_test_setup_teardown(no_sandbox_takes_the_places_of_all, begin, finish),
        cmocka_unit_test_setup_teardown(a_command_is_given_what_is_posted_for_it, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_not_kept_is_said_where_it_is_missing, begin, finish),
        cmocka_unit_test_setup_teardown(a_terminal_is_resized, begin, finish),
        cmocka_unit_test_setup_teardown(a_command_whose_answer_cannot_be_written_is_killed, begin_broken, finish),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
