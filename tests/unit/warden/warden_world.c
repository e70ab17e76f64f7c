#include "tests/unit/warden/warden_world.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/msg.h"
#include "sandbox-shim/warden/checkpoint.h"
#include "sandbox-shim/warden/pool/pool.h"

int side[ENDS] = {-1, -1, -1};
bool bound;
uint64_t idle_ms;
bool world_tidies;
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
    if (pool_begin(&w) != 0 || (world_tidies && checkpoint_tidies(&w) != 0))
        _exit(1);
    warden_desk(&w, fd[DESK]);
    warden_ledger(&w, fd[LEDGER]);
    _exit(loop_run(w.loop) == 0 ? 0 : 1);
}

/* Between the warden and its ledger: of commands it writes down what there is, and no test but theirs hears of them.
 */
bool world_alone;
static pid_t scribe;

static bool pass(int from, int to)
{
    struct frame f;
    struct dynbuf bytes = fresh(), b = fresh();
    bool ok = chan_read_one(from, &f, &bytes) == 0;
    if (ok && f.type == M_RUN_BEGIN) {
        const struct id id = {{(uint8_t)f.id, 1}};
        msg_put_u8(&b, true);
        msg_put_id(&b, &id);
        ok = chan_write_one(from, M_RUN_BEGUN, f.id, dynbuf_span(&b)) == 0;
    } else if (ok && f.type != M_RUN_END) {
        ok = chan_write_one(to, f.type, f.id, f.payload) == 0;
    }
    dynbuf_free(&bytes);
    dynbuf_free(&b);
    return ok;
}

static void __attribute__((noreturn)) be_scribe(int one, int other)
{
    struct pollfd p[2] = {{.fd = one, .events = POLLIN}, {.fd = other, .events = POLLIN}};
    bool ok = true;
    while (ok && poll(p, 2, -1) > 0)
        for (int i = 0; i < 2 && ok; i++)
            ok = p[i].revents == 0 || pass(p[i].fd, p[1 - i].fd);
    _exit(0);
}

/* *fd is what the test hears from now on. -1: it cannot be had. */
static int put_between(int *fd)
{
    int pair[2];
    const struct timeval patience = {.tv_sec = 20};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 ||
        setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0)
        return -1;
    const struct timeval none = {.tv_sec = 0};
    if (setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)) != 0 || (scribe = fork()) < 0)
        return -1;
    if (scribe == 0) {
        for (int i = 0; i < ENDS; i++)
            if (side[i] != *fd)
                close(side[i]);
        close(pair[0]);
        be_scribe(*fd, pair[1]);
    }
    close(pair[1]);
    close(*fd);
    *fd = pair[0];
    return 0;
}

int begin_alone(void **state)
{
    world_alone = true;
    int rc = begin_known(state);
    world_alone = false;
    return rc;
}

int begin(void **state)
{
    int theirs[ENDS];
    for (int i = 0; i < ENDS; i++) {
        int fd[2];
        const struct timeval patience = {.tv_sec = 20};
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0 ||
            setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0)
            return -1;
        side[i] = fd[0];
        theirs[i] = fd[1];
    }
    if ((warden = fork()) == 0) {
        for (int i = 0; i < ENDS; i++)
            close(side[i]);
        be_warden(theirs);
    }
    for (int i = 0; i < ENDS; i++)
        close(theirs[i]);
    scribe = 0;
    return world_alone ? 0 : put_between(&side[LEDGER]);
}

int finish(void **state)
{
    int status;
    for (int i = ENDS; i-- > 0;) {
        if (side[i] >= 0)
            close(side[i]);
        side[i] = -1;
    }
    if (scribe > 0 && waitpid(scribe, &status, 0) != scribe)
        return -1;
    return waitpid(warden, &status, 0) == warden && status == 0 ? 0 : -1;
}

/* --- what is said ----------------------------------------------------------------- */

struct frame got;
struct dynbuf got_bytes;

uint64_t heard(int who, uint16_t type)
{
    dynbuf_free(&got_bytes);
    dynbuf_init(&got_bytes, CHAN_PAYLOAD_MAX);
    assert_int_equal(chan_read_one(side[who], &got, &got_bytes), 0);
    assert_int_equal(got.type, type);
    return got.id;
}

void say(int who, uint16_t type, uint64_t id, struct dynbuf *b)
{
    assert_int_equal(chan_write_one(side[who], type, id, b ? dynbuf_span(b) : SPAN_NONE), 0);
    if (b)
        dynbuf_free(b);
}

struct dynbuf fresh(void)
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
    assert_true(span_eq(got.payload, SPAN("\0\0\0\0\0\0")));
    msg_put_u8(&b, true);
    msg_put_span(&b, SPAN_NONE);
    say(LEDGER, M_SANDBOX_DONE, 0, &b);
}

int begin_known(void **state)
{
    int rc = begin(state);
    if (rc == 0)
        the_ledger_hears_what_runs();
    return rc;
}

/* Its end is told to the ledger, for its leases, and for the audit. */
void end_heard(const char *name)
{
    (void)heard(LEDGER, M_SANDBOX_ENDED);
    struct msg_in m = msg_in(got.payload);
    assert_true(span_eq(msg_get_span(&m, 63), span_str(name)));
    assert_int_equal(msg_get_u64(&m), 7);
    assert_int_equal(msg_end(&m), 0);
    (void)heard(LEDGER, M_RUN_LIFE);
}

/* Which the warden looks at as little as at their sense. */
static struct span extras_of(const char *name)
{
    return strcmp(name, "laned") == 0 ? SPAN("what \0 else") : SPAN_NONE;
}

/* The warden asks the parent; *fd is where the first process would be. */
uint64_t ask_for(const char *name, uint64_t desk, uint64_t timeout_ms, int *fd)
{
    struct dynbuf b = fresh();
    wire_put_box(&b, &(struct wire_box){.name = span_str(name),
                                        .memory = 512 << 20,
                                        .pids = 100,
                                        .disk = 64 << 20,
                                        .files = 256,
                                        .idle_ms = idle_ms,
                                        .image = SPAN("debian"),
                                        .digest = SPAN(A_DIGEST),
                                        .lane = strcmp(name, "laned") == 0 ? SPAN("web") : SPAN_NONE,
                                        .extras = extras_of(name)});
    msg_put_u64(&b, 7);
    msg_put_u64(&b, 50);
    msg_put_u64(&b, timeout_ms);
    msg_put_u8(&b, true);
    msg_put_u8(&b, bound);
    say(DESK, M_SB_START, desk, &b);
    uint64_t id = heard(PARENT, M_BOX);
    struct msg_in m = msg_in(got.payload);
    assert_true(span_eq(msg_get_span(&m, 63), span_str(name)));
    assert_int_equal(msg_get_u64(&m), 7);
    assert_int_equal(msg_get_u64(&m), 512 << 20);
    assert_int_equal(msg_get_u64(&m), 100);
    assert_int_equal(msg_get_u64(&m), 50);
    assert_int_equal(msg_get_u8(&m), 1);
    assert_true(span_eq(msg_get_span(&m, 71), SPAN(A_DIGEST))); /* what it is, and not what it is called */
    assert_int_equal(msg_get_u8(&m), strcmp(name, "laned") == 0);
    assert_true(span_eq(msg_get_span(&m, BOX_EXTRAS_MAX), extras_of(name)));
    assert_int_equal(msg_end(&m), 0);
    *fd = frame_take_fd(&got, 0);
    assert_true(*fd >= 0);
    assert_int_equal(fcntl(*fd, F_SETFL, 0), 0);
    const struct timeval patience = {.tv_sec = 20};
    assert_int_equal(setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    return id;
}

void parent_says_started(uint64_t id, uint8_t version)
{
    struct dynbuf b = fresh();
    msg_put_u8(&b, version);
    say(PARENT, M_BOX_STARTED, id, &b);
}

void frame_of(int fd, unsigned type, uint32_t run, struct span payload)
{
    struct dynbuf b = fresh();
    msg_put_u32(&b, (uint32_t)payload.n);
    msg_put_u8(&b, (uint8_t)type);
    msg_put_u32(&b, run);
    (void)dynbuf_add(&b, payload);
    assert_int_equal(send(fd, b.p, b.n, MSG_NOSIGNAL), b.n);
    dynbuf_free(&b);
}

void ends_with(int fd, uint32_t run, unsigned how, unsigned code)
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
struct dynbuf told(int fd, unsigned *type, uint32_t *run)
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

void is_named(int fd, const char *name)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    assert_int_equal(told_type(fd, TALK_NAME, dynbuf_span(&b)), 0);
    dynbuf_free(&b);
}

void hello(int fd)
{
    const uint8_t version[] = {0, 0, 0, TALK_VERSION};
    frame_of(fd, TALK_HELLO, 0, span_of(version, sizeof(version)));
}

/* One that runs; its first process is fd. */
uint64_t runs(const char *name, uint64_t timeout_ms, int *fd)
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
    assert_true(span_eq(x.lane, strcmp(name, "laned") == 0 ? SPAN("web") : SPAN_NONE));
    assert_true(span_eq(x.extras, extras_of(name)));
    dynbuf_free(&bytes);
    hello(*fd);
    is_named(*fd, name);
    if (x.lane.n > 0) { /* before anything is run there, by what the gateway knows its commands */
        uint8_t born[TALK_HEAD + 8], want[] = {0, 0, 0, 8, TALK_BORN, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
        assert_int_equal(recv(*fd, born, sizeof(born), MSG_WAITALL), sizeof(born));
        want[sizeof(want) - 1] = born[sizeof(born) - 1];
        assert_memory_equal(born, want, sizeof(want));
        assert_true(want[sizeof(want) - 1] > 0);
    }
    assert_int_equal(heard(DESK, M_SB_STARTED), 1);
    assert_int_equal(got.payload.p[0], 1);
    assert_int_equal(got.payload.p[got.payload.n - 1], 2);
    (void)heard(LEDGER, M_RUN_LIFE);
    return id;
}

void ask_exec(uint64_t desk, const char *name, uint64_t timeout_ms, uint64_t most, enum talk_input input,
              bool detached)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    msg_put_u64(&b, timeout_ms);
    msg_put_u64(&b, most);
    msg_put_u8(&b, (uint8_t)input);
    msg_put_u16(&b, input == TALK_TERMINAL ? 33 : 0);
    msg_put_u16(&b, input == TALK_TERMINAL ? 99 : 0);
    msg_put_u8(&b, detached);
    msg_put_u16(&b, 1);
    msg_put_u16(&b, 1);
    msg_put_span(&b, SPAN("true"));
    msg_put_span(&b, SPAN("A=b"));
    msg_put_span(&b, SPAN("/tmp"));
    say(DESK, M_SB_EXEC, desk, &b);
}

void execute_with(uint64_t desk, const char *name, uint64_t timeout_ms, uint64_t most, enum talk_input input)
{
    ask_exec(desk, name, timeout_ms, most, input, false);
}

void execute(uint64_t desk, const char *name, uint64_t timeout_ms, uint64_t most)
{
    execute_with(desk, name, timeout_ms, most, TALK_NO_INPUT);
}

void input(uint64_t desk, struct span bytes)
{
    assert_int_equal(chan_write_one(side[DESK], M_SB_INPUT, desk, bytes), 0);
}

void exit_heard(uint64_t desk, enum sb_end how, unsigned code)
{
    assert_int_equal(heard(DESK, M_SB_EXIT), desk);
    assert_int_equal(got.payload.p[0], how);
    assert_int_equal(got.payload.p[1], code);
}

void destroy(const char *name)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    say(DESK, M_SB_DESTROY, 99, &b);
}

uint32_t told_type(int fd, unsigned type, struct span bytes)
{
    unsigned is;
    uint32_t run;
    struct dynbuf b = told(fd, &is, &run);
    assert_int_equal(is, type);
    assert_true(bytes.p == NULL || span_eq(dynbuf_span(&b), bytes));
    dynbuf_free(&b);
    return run;
}
