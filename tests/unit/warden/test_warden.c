/* The life of a sandbox as the warden keeps it: the test is its parent, its desk, its ledger and the first process
 * inside; the warden runs in a process of its own. Attacks G16, G24. */
#include "tests/kit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/msg.h"
#include "sandbox-shim/warden/warden.h"

enum { PARENT, DESK, LEDGER, ENDS };
static int end[ENDS] = {-1, -1, -1};
static pid_t warden;

/* --- the warden ----------------------------------------------------------------- */

static void from_parent(void *arg, struct chan *c, struct frame *f)
{
    warden_parent_frame(arg, f);
}

static void parent_gone(void *arg, struct chan *c)
{
    _exit(0);
}

static void __attribute__((noreturn)) be_warden(const int fd[ENDS])
{
    static const struct chan_ops ops = {from_parent, parent_gone};
    static struct warden w;
    w.loop = loop_new();
    w.parent = chan_new(w.loop, fd[PARENT], &ops, &w);
    warden_desk(&w, fd[DESK]);
    warden_ledger(&w, fd[LEDGER]);
    _exit(loop_run(w.loop) == 0 ? 0 : 1);
}

static int begin(void **state)
{
    int theirs[ENDS];
    for (int i = 0; i < ENDS; i++) {
        int fd[2];
        const struct timeval patience = {.tv_sec = 20};
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0 ||
            setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0)
            return -1;
        end[i] = fd[0];
        theirs[i] = fd[1];
    }
    if ((warden = fork()) == 0) {
        for (int i = 0; i < ENDS; i++)
            close(end[i]);
        be_warden(theirs);
    }
    for (int i = 0; i < ENDS; i++)
        close(theirs[i]);
    return 0;
}

static void the_ledger_hears_what_runs(void);

static int begin_known(void **state)
{
    int rc = begin(state);
    if (rc == 0)
        the_ledger_hears_what_runs();
    return rc;
}

static int finish(void **state)
{
    int status;
    for (int i = ENDS; i-- > 0;) {
        if (end[i] >= 0)
            close(end[i]);
        end[i] = -1;
    }
    return waitpid(warden, &status, 0) == warden && status == 0 ? 0 : -1;
}

/* --- what is said ----------------------------------------------------------------- */

static struct frame got; /* the last one; its payload borrows from got_bytes */
static struct dynbuf got_bytes;

static uint64_t heard(int who, uint16_t type)
{
    dynbuf_free(&got_bytes);
    dynbuf_init(&got_bytes, CHAN_PAYLOAD_MAX);
    assert_int_equal(chan_read_one(end[who], &got, &got_bytes), 0);
    assert_int_equal(got.type, type);
    return got.id;
}

static void say(int who, uint16_t type, uint64_t id, struct dynbuf *b)
{
    assert_int_equal(chan_write_one(end[who], type, id, b ? dynbuf_span(b) : SPAN_NONE), 0);
    if (b)
        dynbuf_free(b);
}

static struct dynbuf fresh(void)
{
    struct dynbuf b;
    dynbuf_init(&b, CHAN_PAYLOAD_MAX);
    return b;
}

/* The first thing it is told; nobody is heard before it answers. */
static void the_ledger_hears_what_runs(void)
{
    struct dynbuf b = fresh();
    (void)heard(LEDGER, M_SANDBOX_RUN);
    assert_true(span_eq(got.payload, SPAN("\0\0")));
    msg_put_u8(&b, true);
    msg_put_span(&b, SPAN_NONE);
    say(LEDGER, M_SANDBOX_DONE, 0, &b);
}

/* Its end is told to the ledger, for its leases, and for the audit. */
static void end_heard(const char *name)
{
    (void)heard(LEDGER, M_SANDBOX_ENDED);
    struct msg_in m = msg_in(got.payload);
    assert_true(span_eq(msg_get_span(&m, 63), span_str(name)));
    assert_int_equal(msg_get_u64(&m), 7);
    assert_int_equal(msg_end(&m), 0);
    (void)heard(LEDGER, M_NOTE);
}

/* The warden asks the parent; *fd is where the first process would be. */
static uint64_t ask_for(const char *name, uint64_t desk, uint64_t timeout_ms, int *fd)
{
    struct dynbuf b = fresh();
    wire_put_box(&b, &(struct wire_box){span_str(name), 512 << 20, 100, 64 << 20, 256});
    msg_put_u64(&b, 7);
    msg_put_u64(&b, 50);
    msg_put_u64(&b, timeout_ms);
    msg_put_u8(&b, true);
    say(DESK, M_SB_START, desk, &b);
    uint64_t id = heard(PARENT, M_BOX);
    struct msg_in m = msg_in(got.payload);
    assert_true(span_eq(msg_get_span(&m, 63), span_str(name)));
    assert_int_equal(msg_get_u64(&m), 7);
    assert_int_equal(msg_get_u64(&m), 512 << 20);
    assert_int_equal(msg_get_u64(&m), 100);
    assert_int_equal(msg_get_u64(&m), 50);
    assert_int_equal(msg_get_u8(&m), 1);
    assert_int_equal(msg_end(&m), 0);
    *fd = frame_take_fd(&got, 0);
    assert_true(*fd >= 0);
    assert_int_equal(fcntl(*fd, F_SETFL, 0), 0);
    const struct timeval patience = {.tv_sec = 20};
    assert_int_equal(setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    return id;
}

static void parent_says_started(uint64_t id, uint8_t version)
{
    struct dynbuf b = fresh();
    msg_put_u8(&b, version);
    say(PARENT, M_BOX_STARTED, id, &b);
}

static void frame_of(int fd, unsigned type, uint32_t run, struct span payload)
{
    struct dynbuf b = fresh();
    msg_put_u32(&b, (uint32_t)payload.n);
    msg_put_u8(&b, (uint8_t)type);
    msg_put_u32(&b, run);
    (void)dynbuf_add(&b, payload);
    assert_int_equal(send(fd, b.p, b.n, MSG_NOSIGNAL), b.n);
    dynbuf_free(&b);
}

static void ends_with(int fd, uint32_t run, unsigned how, unsigned code)
{
    struct dynbuf b = fresh();
    msg_put_u8(&b, (uint8_t)how);
    msg_put_u8(&b, (uint8_t)code);
    for (int i = 0; i < 3; i++)
        msg_put_u64(&b, 5);
    msg_put_span(&b, SPAN_NONE);
    frame_of(fd, TALK_END, run, dynbuf_span(&b));
    dynbuf_free(&b);
}

/* Of the warden, in a sandbox. */
static struct dynbuf told(int fd, unsigned *type, uint32_t *run)
{
    uint8_t head[TALK_HEAD];
    assert_int_equal(recv(fd, head, sizeof(head), MSG_WAITALL), sizeof(head));
    struct msg_in m = msg_in(span_of(head, sizeof(head)));
    size_t n = msg_get_u32(&m);
    *type = msg_get_u8(&m);
    *run = msg_get_u32(&m);
    struct dynbuf b = fresh();
    uint8_t *room = dynbuf_room(&b, n);
    assert_int_equal(recv(fd, room, n, MSG_WAITALL), n);
    dynbuf_grew(&b, n);
    return b;
}

/* One that runs; its first process is fd. */
static uint64_t runs(const char *name, uint64_t timeout_ms, int *fd)
{
    struct frame f;
    struct dynbuf bytes = fresh();
    struct wire_box x;
    uint64_t id = ask_for(name, 1, timeout_ms, fd);
    parent_says_started(id, 2);
    assert_int_equal(chan_read_one(*fd, &f, &bytes), 0);
    assert_int_equal(f.type, M_BOX_ORDER);
    struct msg_in m = msg_in(f.payload);
    assert_int_equal(wire_get_box(&m, &x, true), 0);
    assert_int_equal(x.memory, 0); /* its cgroup holds these */
    assert_int_equal(x.pids, 0);
    assert_int_equal(x.disk, 64 << 20);
    dynbuf_free(&bytes);
    frame_of(*fd, TALK_HELLO, 0, SPAN("\0\0\0\1"));
    assert_int_equal(heard(DESK, M_SB_STARTED), 1);
    assert_int_equal(got.payload.p[0], 1);
    assert_int_equal(got.payload.p[got.payload.n - 1], 2);
    (void)heard(LEDGER, M_NOTE);
    return id;
}

static void execute(uint64_t desk, const char *name, uint64_t timeout_ms, uint64_t most)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    msg_put_u64(&b, timeout_ms);
    msg_put_u64(&b, most);
    msg_put_u16(&b, 1);
    msg_put_u16(&b, 1);
    msg_put_span(&b, SPAN("true"));
    msg_put_span(&b, SPAN("A=b"));
    msg_put_span(&b, SPAN("/tmp"));
    say(DESK, M_SB_EXEC, desk, &b);
}

static void exit_heard(uint64_t desk, enum sb_end how, unsigned code)
{
    assert_int_equal(heard(DESK, M_SB_EXIT), desk);
    assert_int_equal(got.payload.p[0], how);
    assert_int_equal(got.payload.p[1], code);
}

static void destroy(const char *name)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    say(DESK, M_SB_DESTROY, 99, &b);
}

/* --- */

static void a_command_goes_from_the_desk_to_the_sandbox_and_back(void **state)
{
    int fd;
    unsigned type;
    uint32_t run;
    uint64_t id = runs("box", 60000, &fd);
    execute(2, "box", 60000, 6);
    struct dynbuf b = told(fd, &type, &run);
    assert_int_equal(type, TALK_RUN);
    dynbuf_free(&b);
    frame_of(fd, TALK_OUT, run, SPAN("four"));
    assert_int_equal(heard(DESK, M_SB_OUTPUT), 2);
    assert_true(span_eq(got.payload, SPAN("\1four")));
    frame_of(fd, TALK_ERR, run, SPAN("more")); /* past the most it may say */
    assert_int_equal(heard(DESK, M_SB_OUTPUT), 2);
    assert_true(span_eq(got.payload, SPAN("\2mo")));
    b = told(fd, &type, &run); /* what is dropped is taken at once */
    assert_int_equal(type, TALK_CREDIT);
    assert_true(span_eq(dynbuf_span(&b), SPAN("\0\0\0\2")));
    dynbuf_free(&b);
    b = fresh();
    msg_put_u32(&b, 1000000); /* more than is open: no more is given than was taken */
    say(DESK, M_SB_TAKEN, 2, &b);
    b = told(fd, &type, &run);
    assert_true(span_eq(dynbuf_span(&b), SPAN("\0\0\0\6")));
    dynbuf_free(&b);
    ends_with(fd, run, TALK_EXITED, 3);
    exit_heard(2, SB_EXITED, 3);
    execute(3, "nobody", 60000, 6);
    exit_heard(3, SB_LOST, 0);
    destroy("box");
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    end_heard("box");
    say(PARENT, M_BOX_GONE, id, NULL);
    (void)heard(DESK, M_SB_DESTROYED);
    close(fd);
    (void)runs("box", 60000, &fd); /* the name is free again */
    close(fd);
}

static void who_says_what_it_may_not_ends(void **state)
{
    static uint8_t much[TALK_PIECE_MAX];
    int fd;
    unsigned type;
    uint32_t run;
    for (int way = 0; way < 6; way++) {
        uint64_t id = runs("box", 60000, &fd);
        execute(2, "box", 60000, 1 << 20);
        struct dynbuf b = told(fd, &type, &run);
        dynbuf_free(&b);
        switch (way) {
        case 0: frame_of(fd, TALK_HELLO, 0, SPAN("\0\0\0\1")); break; /* twice */
        case 1: frame_of(fd, TALK_OUT, run + 1, SPAN("x")); break;    /* of none that runs */
        case 2: frame_of(fd, TALK_RUN, run, SPAN("x")); break;        /* ours to say */
        case 3: ends_with(fd, run, TALK_LOST, 0); break;              /* the same */
        case 4: frame_of(fd, 200, run, SPAN("x")); break;             /* nobody's */
        case 5:                                                       /* more than was taken */
            for (int i = 0; i < SB_WINDOW / TALK_PIECE_MAX; i++) {
                frame_of(fd, TALK_OUT, run, span_of(much, sizeof(much)));
                (void)heard(DESK, M_SB_OUTPUT);
            }
            frame_of(fd, TALK_OUT, run, SPAN("x"));
        }
        assert_int_equal(heard(PARENT, M_BOX_END), id);
        exit_heard(2, SB_LOST, 0);
        end_heard("box");
        assert_non_null(memmem(got.payload.p, got.payload.n, "said what it may not", 20));
        say(PARENT, M_BOX_GONE, id, NULL);
        close(fd);
    }
}

static void what_is_late_is_killed_and_then_its_sandbox(void **state)
{
    int fd;
    unsigned type;
    uint32_t run;
    uint64_t id = runs("box", 60000, &fd);
    execute(2, "box", 50, 10);
    struct dynbuf b = told(fd, &type, &run);
    dynbuf_free(&b);
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_SIGNAL);
    assert_int_equal(b.p[0], SIGKILL);
    dynbuf_free(&b);
    ends_with(fd, run, TALK_SIGNALLED, SIGKILL);
    exit_heard(2, SB_TIMED_OUT, SIGKILL);
    execute(4, "box", 50, 10); /* had ended before, and what it said was not read until now */
    b = told(fd, &type, &run);
    dynbuf_free(&b);
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_SIGNAL);
    dynbuf_free(&b);
    ends_with(fd, run, TALK_EXITED, 3);
    exit_heard(4, SB_EXITED, 3);
    execute(3, "box", 50, 10); /* this one is said to live on */
    exit_heard(3, SB_LOST, 0);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    close(fd);
    end_heard("box");
    id = runs("short", 50, &fd);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    close(fd);
}

/* Its end waits in the sandbox behind output that nobody takes: that is dropped, and the sandbox stays. */
static void who_does_not_read_ends_no_sandbox(void **state)
{
    static uint8_t much[TALK_PIECE_MAX];
    int fd;
    unsigned type;
    uint32_t run;
    (void)runs("box", 60000, &fd);
    execute(2, "box", 50, 1 << 20);
    struct dynbuf b = told(fd, &type, &run);
    dynbuf_free(&b);
    for (int i = 0; i < SB_WINDOW / TALK_PIECE_MAX; i++) {
        frame_of(fd, TALK_OUT, run, span_of(much, sizeof(much)));
        (void)heard(DESK, M_SB_OUTPUT);
    }
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_SIGNAL);
    dynbuf_free(&b);
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_CREDIT);
    assert_true(span_eq(dynbuf_span(&b), SPAN("\0\4\0\0")));
    dynbuf_free(&b);
    frame_of(fd, TALK_OUT, run, SPAN("late"));
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_CREDIT);
    dynbuf_free(&b);
    ends_with(fd, run, TALK_SIGNALLED, SIGKILL);
    exit_heard(2, SB_TIMED_OUT, SIGKILL);
    struct msg_in m = msg_in(span_from(got.payload, 2));
    assert_int_equal(msg_get_u64(&m), SB_WINDOW);
    assert_int_equal(msg_get_u64(&m), 4); /* cut */
    execute(3, "box", 60000, 10);
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_RUN);
    dynbuf_free(&b);
    close(fd);
}

static void what_is_not_up_yet_ends_too(void **state)
{
    int fd;
    uint64_t id = ask_for("box", 1, 60000, &fd);
    destroy("box");
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    assert_int_equal(heard(DESK, M_SB_STARTED), 1);
    assert_int_equal(got.payload.p[0], 0);
    parent_says_started(id, 1); /* it was on its way */
    say(PARENT, M_BOX_GONE, id, NULL);
    (void)heard(DESK, M_SB_DESTROYED);
    close(fd);
    id = ask_for("box", 2, 60000, &fd);
    struct dynbuf b = fresh();
    msg_put_span(&b, SPAN("no room"));
    say(PARENT, M_BOX_NONE, id, &b);
    assert_int_equal(heard(DESK, M_SB_STARTED), 2);
    assert_non_null(memmem(got.payload.p, got.payload.n, "no room", 7));
    close(fd);
    id = ask_for("box", 3, 60000, &fd);
    parent_says_started(id, 0);
    close(fd); /* it dies before it says a word */
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    assert_int_equal(heard(DESK, M_SB_STARTED), 3);
    assert_int_equal(got.payload.p[0], 0);
}

static void with_the_desk_go_its_commands_and_what_it_waited_for(void **state)
{
    int fd, other;
    unsigned type;
    uint32_t run;
    uint64_t id;
    (void)runs("box", 60000, &fd);
    execute(2, "box", 60000, 10);
    struct dynbuf b = told(fd, &type, &run);
    dynbuf_free(&b);
    id = ask_for("other", 3, 60000, &other);
    close(end[DESK]);
    end[DESK] = -1;
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_SIGNAL);
    dynbuf_free(&b);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    frame_of(fd, TALK_OUT, run, SPAN("nobody hears it"));
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_CREDIT);
    dynbuf_free(&b);
    close(fd);
    close(other);
}

/* Whoever asks, and whoever ended it, is answered when nothing is left: one that was ended may run code still. */
static void its_end_is_said_when_nothing_is_left(void **state)
{
    int fd, other;
    uint64_t id = runs("box", 60000, &fd);
    close(fd); /* its first process dies: it ends by itself */
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    end_heard("box");
    destroy("box");
    destroy("none");
    assert_int_equal(heard(DESK, M_SB_DESTROYED), 99); /* and not of the first one */
    assert_int_equal(got.payload.p[0], 0);
    uint64_t next = runs("box", 60000, &other); /* another one of the name is nobody's answer */
    destroy("box");
    assert_int_equal(heard(PARENT, M_BOX_END), next);
    say(PARENT, M_BOX_GONE, next, NULL);
    execute(3, "box", 1000, 1);
    exit_heard(3, SB_LOST, 0); /* nothing was said of their end before */
    say(PARENT, M_BOX_GONE, id, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(heard(DESK, M_SB_DESTROYED), 99);
        assert_int_equal(got.payload.p[0], 1);
    }
    close(other);
}

/* A new ledger hears which there are, so that none of the others has a living lease; and until the first one has
 * answered, nobody can start one. */
static void a_ledger_hears_first_which_there_are(void **state)
{
    int fd;
    struct dynbuf b = fresh();
    execute(2, "box", 60000, 6);
    (void)heard(LEDGER, M_SANDBOX_RUN);
    struct pollfd p = {.fd = end[DESK], .events = POLLIN};
    assert_int_equal(poll(&p, 1, 200), 0);
    msg_put_u8(&b, true);
    msg_put_span(&b, SPAN_NONE);
    say(LEDGER, M_SANDBOX_DONE, 0, &b);
    exit_heard(2, SB_LOST, 0);
    (void)runs("box", 60000, &fd);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_goes_from_the_desk_to_the_sandbox_and_back, begin_known, finish),
        cmocka_unit_test_setup_teardown(who_says_what_it_may_not_ends, begin_known, finish),
        cmocka_unit_test_setup_teardown(what_is_late_is_killed_and_then_its_sandbox, begin_known, finish),
        cmocka_unit_test_setup_teardown(who_does_not_read_ends_no_sandbox, begin_known, finish),
        cmocka_unit_test_setup_teardown(what_is_not_up_yet_ends_too, begin_known, finish),
        cmocka_unit_test_setup_teardown(with_the_desk_go_its_commands_and_what_it_waited_for, begin_known, finish),
        cmocka_unit_test_setup_teardown(its_end_is_said_when_nothing_is_left, begin_known, finish),
        cmocka_unit_test_setup_teardown(a_ledger_hears_first_which_there_are, begin, finish),
    };
    signal(SIGPIPE, SIG_IGN);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    dynbuf_free(&got_bytes);
    return rc;
}
