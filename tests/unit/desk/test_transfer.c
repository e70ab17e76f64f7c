/* What is done with a sandbox's files, as its client sees it, byte for byte: the test is the client and the warden;
 * the desk's server runs in a process of its own. */
#include "tests/kit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "web-approval/store/store.h"
#include "web-approval/ask.h"
#include "web-approval/server.h"
#include "web-approval/streams/follow.h"
#include "web-approval/streams/transfer.h"

enum { PIECE = 32 * 1024, ANSWER_MAX = 1024 * 1024, LATER = 9999 /* a message of the test's: so many ms are over */ };

static char folder[] = "/tmp/test_transfer.XXXXXX", path[64];
static int warden = -1; /* our end */
static pid_t desk;
static struct dynbuf got, heard;
static struct frame frame;

/* --- the desk ----------------------------------------------------------------------- */

static void from_warden(void *arg, struct chan *c, struct frame *f)
{
    struct desk *d = arg;
    if (f->type == LATER)
        server_due(d->server, loop_now(d->loop) + f->id);
    else
        server_follow(d->server, f);
}

static void warden_gone(void *arg, struct chan *c)
{
    struct desk *d = arg;
    chan_free(&d->warden);
    server_follow_gone(d->server);
}

static void on_stop(int signo)
{
    _exit(0);
}

static void __attribute__((noreturn)) be_desk(int fd, int listener)
{
    static const struct chan_ops ops = {from_warden, warden_gone};
    static struct desk d;
    (void)signal(SIGTERM, on_stop);
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
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
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

static int finish(void **state)
{
    int status;
    if (warden >= 0)
        close(warden);
    warden = -1;
    dynbuf_free(&got);
    dynbuf_free(&heard);
    (void)unlink(path);
    (void)rmdir(folder);
    (void)kill(desk, SIGTERM);
    return waitpid(desk, &status, 0) == desk && status == 0 ? 0 : -1;
}

/* --- the warden ---------------------------------------------------------------------- */

/* The next message must be of this type; its number. Its payload is `frame`'s. */
static uint64_t told(uint16_t type)
{
    dynbuf_free(&heard);
    dynbuf_init(&heard, CHAN_PAYLOAD_MAX);
    assert_int_equal(chan_read_one(warden, &frame, &heard), 0);
    assert_int_equal(frame.type, type);
    return frame.id;
}

static int get(const char *more);

/* What it hears next is what is asked for now, and nothing before that: the desk says one thing after the other. */
static bool nothing_is_told(void)
{
    int fd = get("/stat?path=asked-for-now");
    uint64_t id = told(M_SB_FILES);
    bool now = span_find(frame.payload, SPAN("asked-for-now")) < frame.payload.n;
    close(fd);
    return now && told(M_SB_KILL) == id;
}

/* All of its input until its end, taken at once: bytes. */
static size_t input_told(uint64_t id)
{
    size_t all = 0;
    for (;;) {
        uint8_t n[4] = {0};
        assert_int_equal(told(M_SB_INPUT), id);
        if (frame.payload.n == 0)
            return all;
        all += frame.payload.n;
        n[2] = (uint8_t)(frame.payload.n >> 8);
        n[3] = (uint8_t)frame.payload.n;
        assert_int_equal(chan_write_one(warden, M_SB_FED, id, span_of(n, 4)), 0);
    }
}

static void output(uint64_t id, unsigned which, struct span s)
{
    static uint8_t payload[1 + PIECE];
    payload[0] = (uint8_t)which;
    memcpy(payload + 1, s.p, s.n);
    assert_int_equal(chan_write_one(warden, M_SB_OUTPUT, id, span_of(payload, 1 + s.n)), 0);
}

static void ended(uint64_t id, enum sb_end how, unsigned status, struct span why)
{
    struct dynbuf b;
    dynbuf_init(&b, 128);
    msg_put_u8(&b, (uint8_t)how);
    msg_put_u8(&b, (uint8_t)status);
    for (int i = 0; i < 5; i++)
        msg_put_u64(&b, 0);
    msg_put_span(&b, why);
    assert_int_equal(chan_write_one(warden, M_SB_EXIT, id, dynbuf_span(&b)), 0);
    dynbuf_free(&b);
}

/* --- the client ------------------------------------------------------------------------ */

static void say(int fd, struct span s)
{
    assert_int_equal(send(fd, s.p, s.n, MSG_NOSIGNAL), s.n);
}

static int request(const char *text)
{
    const struct timeval patience = {.tv_sec = 20};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(to.sun_path, path);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    say(fd, span_str(text));
    dynbuf_reset(&got);
    return fd;
}

static bool has(const char *words)
{
    return span_find(dynbuf_span(&got), span_str(words)) < got.n;
}

/* To the end of the answer, which is that of the connection. */
static void answered(int fd)
{
    for (;;) {
        uint8_t *room = dynbuf_room(&got, PIECE);
        ssize_t n = recv(fd, room, PIECE, 0);
        if (n <= 0)
            break;
        dynbuf_grew(&got, (size_t)n);
    }
    close(fd);
}

#define FILES " /api/v1/sandboxes/box/files"
#define HOST  " HTTP/1.1\r\nHost: countersign\r\n"

static int get(const char *more)
{
    char text[512];
    (void)snprintf(text, sizeof(text), "GET" FILES "%s" HOST "Connection: close\r\n\r\n", more);
    return request(text);
}

/* --- */

static void a_body_goes_there_as_far_as_it_is_taken(void **state)
{
    static uint8_t piece[1 << 16];
    int fd = request("PUT" FILES "?path=a%2Fb&mode=640" HOST "Transfer-Encoding: chunked\r\n\r\n");
    uint64_t id = told(M_SB_FILES);
    struct msg_in m = msg_in(frame.payload);
    assert_true(span_eq(msg_get_span(&m, 63), SPAN("box")));
    assert_int_equal(msg_get_u64(&m), 3600 * 1000);
    assert_int_equal(msg_get_u8(&m), TALK_FILE_WRITE);
    assert_int_equal(msg_get_u16(&m), 0640);
    assert_false(msg_get_bool(&m));
    assert_int_equal(msg_get_u64(&m), 0);
    assert_int_equal(msg_get_u64(&m), 0);
    assert_true(span_eq(msg_get_span(&m, 100), SPAN("a/b")) && msg_get_span(&m, 100).n == 0);
    assert_int_equal(msg_end(&m), 0);
    size_t first = 0;
    say(fd, SPAN("10000\r\n"));
    say(fd, span_of(piece, sizeof(piece)));
    say(fd, SPAN("\r\n"));
    while (first < TALK_IN_WINDOW) {
        assert_int_equal(told(M_SB_INPUT), id);
        first += frame.payload.n;
    }
    assert_int_equal(first, TALK_IN_WINDOW);
    assert_true(nothing_is_told());
    assert_int_equal(chan_write_one(warden, M_SB_FED, id, SPAN("\0\0\x80\0")), 0);
    say(fd, SPAN("3\r\nend\r\n0\r\n\r\n"));
    assert_int_equal(input_told(id), sizeof(piece) + 3 - first);
    ended(id, SB_EXITED, 0, SPAN_NONE);
    answered(fd);
    assert_true(has("HTTP/1.1 204 "));
}

/* Whatever is first in a sandbox says it: half a file is not written. */
static void nothing_is_written_before_all_of_it_was_sent(void **state)
{
    int fd = request("PUT" FILES "?path=a" HOST "Content-Length: 100\r\n\r\nbegun");
    uint64_t id = told(M_SB_FILES);
    assert_int_equal(told(M_SB_INPUT), id);
    ended(id, SB_EXITED, 0, SPAN_NONE);
    answered(fd);
    assert_true(has("HTTP/1.1 503 ") && has("written what it was not given") && has("Connection: close"));
    fd = request("PUT" FILES "/tar?path=a" HOST "Content-Length: 100\r\n\r\nall there is in it");
    id = told(M_SB_FILES);
    assert_int_equal(told(M_SB_INPUT), id);
    ended(id, SB_EXITED, 0, SPAN_NONE); /* an archive has an end of its own */
    answered(fd);
    assert_true(has("HTTP/1.1 204 "));
}

static void who_goes_ends_what_was_begun(void **state)
{
    int fd = request("PUT" FILES "?path=a" HOST "Content-Length: 100\r\n\r\nbegun");
    uint64_t id = told(M_SB_FILES);
    assert_int_equal(told(M_SB_INPUT), id);
    close(fd);
    assert_int_equal(told(M_SB_KILL), id); /* and no end of the input before */
    fd = get("?path=a");
    id = told(M_SB_FILES);
    output(id, 1, SPAN("some"));
    assert_int_equal(told(M_SB_TAKEN), id);
    close(fd);
    assert_int_equal(told(M_SB_KILL), id);
    ended(id, SB_SIGNALLED, 9, SPAN_NONE); /* nobody's */
    fd = get("/stat?path=a");
    assert_true(told(M_SB_FILES) != id);
    close(fd);
    (void)told(M_SB_KILL);
}

static void what_comes_is_the_answer_and_its_end_that_of_all(void **state)
{
    int fd = get("?path=a&offset=5&length=70000");
    uint64_t id = told(M_SB_FILES);
    struct msg_in m = msg_in(frame.payload);
    (void)msg_get_span(&m, 63);
    (void)msg_get_u64(&m);
    assert_int_equal(msg_get_u8(&m), TALK_FILE_READ);
    assert_int_equal(msg_get_u16(&m), TALK_MODE_NONE);
    assert_false(msg_get_bool(&m));
    assert_int_equal(msg_get_u64(&m), 5);
    assert_int_equal(msg_get_u64(&m), 70000);
    output(id, 1, SPAN("first"));
    output(id, 1, SPAN("second"));
    output(id, 2, SPAN("words"));
    ended(id, SB_EXITED, 0, SPAN_NONE);
    answered(fd);
    assert_true(has("HTTP/1.1 200 OK") && has("application/octet-stream"));
    assert_true(has("\r\n\r\n5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n"));
    for (size_t n = 0; n < strlen("firstsecondwords"); n += frame.payload.p[3])
        assert_int_equal(told(M_SB_TAKEN), id);
    fd = get("/tar?path=a");
    id = told(M_SB_FILES);
    output(id, 1, SPAN("first"));
    ended(id, SB_EXITED, 27, SPAN_NONE); /* in the middle of it */
    answered(fd);
    assert_true(has("application/x-tar") && !has("0\r\n\r\n"));
    (void)told(M_SB_TAKEN);
    fd = get("?path=empty");
    ended(told(M_SB_FILES), SB_EXITED, 0, SPAN_NONE);
    answered(fd);
    assert_true(has("HTTP/1.1 200 OK") && has("Content-Length: 0\r\n"));
}

static void how_it_failed_is_said(void **state)
{
    static const struct {
        enum sb_end how;
        unsigned code;
        const char *status, *words;
    } ways[] = {{SB_EXITED, 2, "404", "no such file"},  {SB_EXITED, 18, "403", "out of the workspace"},
                {SB_EXITED, 28, "507", "disk is full"}, {SB_EXITED, 17, "409", "there is one"},
                {SB_EXITED, 27, "413", "larger"},       {SB_EXITED, 5, "503", "error 5 in the sandbox: told"},
                {SB_LOST, 0, "404", "no sandbox"},      {SB_TIMED_OUT, 0, "503", "time was over"},
                {SB_SIGNALLED, 9, "503", "was killed"}, {SB_NOT_STARTED, 0, "503", "no sandbox"}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        int fd = get("?path=a");
        uint64_t id = told(M_SB_FILES);
        output(id, 2, SPAN("told"));
        ended(id, ways[i].how, ways[i].code, SPAN("no sandbox"));
        answered(fd);
        if (!has(ways[i].status) || !has(ways[i].words))
            fail_msg("%zu: %.*s", i, (int)got.n, (const char *)got.p);
        (void)told(M_SB_TAKEN);
    }
    int fd = get("?path=a");
    (void)told(M_SB_FILES);
    close(warden);
    warden = -1;
    answered(fd);
    assert_true(has("HTTP/1.1 503 ") && has("warden"));
    fd = get("?path=a");
    answered(fd);
    assert_true(has("HTTP/1.1 503 "));
}

/* A body that is not read to its end is no next request. */
static void what_is_left_of_a_body_is_no_request(void **state)
{
    static const char *const whole[] = {
        "PUT" FILES "?path=a" HOST "Content-Length: 1000\r\n\r\nDELETE" FILES "?path=b" HOST "\r\n",
        "PUT" FILES HOST "Content-Length: 1000\r\n\r\nDELETE" FILES "?path=b" HOST "\r\n",
        "PUT" FILES "?path=a&mode=9" HOST "Content-Length: 1000\r\n\r\nDELETE" FILES "?path=b" HOST "\r\n",
    };
    for (int i = 0; i < 3; i++) {
        int fd = request(whole[i]);
        if (i == 0) {
            uint64_t id = told(M_SB_FILES);
            (void)told(M_SB_INPUT);
            ended(id, SB_EXITED, 28, SPAN_NONE);
        }
        answered(fd);
        assert_true(has(i == 0 ? "507" : "400") && has("Connection: close"));
    }
    int fd = request("PUT" FILES "?path=a" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n");
    uint64_t id = told(M_SB_FILES);
    answered(fd);
    assert_true(has("HTTP/1.1 400 "));
    assert_int_equal(told(M_SB_KILL), id);
    fd = request("POST" FILES "/mkdir?path=a" HOST "Transfer-Encoding: chunked\r\n\r\n"); /* of no other */
    answered(fd);
    assert_true(has("HTTP/1.1 411 "));
    assert_true(nothing_is_told());
}

static void later(uint64_t seconds)
{
    assert_int_equal(chan_write_one(warden, LATER, seconds * 1000, SPAN_NONE), 0);
}

/* F2: a client that reads nothing, and a file that gives nothing, hold a place no longer than this. */
static void what_stands_still_gives_its_place_back(void **state)
{
    int fd = get("?path=gives-nothing");
    uint64_t id = told(M_SB_FILES);
    later(0);
    later(59);
    later(61);
    assert_int_equal(told(M_SB_KILL), id);
    answered(fd);
    assert_true(has("HTTP/1.1 504 ") && has("nothing was sent, taken or said for 60 seconds"));

    fd = request("PUT" FILES "?path=a" HOST "Content-Length: 100\r\n\r\nbegun");
    id = told(M_SB_FILES);
    assert_int_equal(told(M_SB_INPUT), id);
    later(0);
    later(61);
    assert_int_equal(told(M_SB_KILL), id);
    answered(fd);
    assert_true(has("HTTP/1.1 504 "));

    fd = get("/stat?path=a"); /* has no content, and a time of its own */
    id = told(M_SB_FILES);
    later(0);
    later(3000);
    ended(id, SB_EXITED, 2, SPAN_NONE);
    answered(fd);
    assert_true(has("HTTP/1.1 404 "));
}

static void what_moves_goes_on(void **state)
{
    int fd = get("/tar?path=a");
    uint64_t id = told(M_SB_FILES);
    later(0);
    later(59);
    for (uint64_t at = 59 + 55; at < 300; at += 55) {
        output(id, 1, SPAN("some"));
        later(at);
        assert_int_equal(told(M_SB_TAKEN), id);
    }
    later(300); /* the last of it has left by now */
    later(361);
    assert_int_equal(told(M_SB_KILL), id);
    answered(fd);
    assert_true(has("4\r\nsome\r\n4\r\nsome\r\n") && !has("\r\n0\r\n"));
}

static void entries_are_taken_apart(void **state)
{
    static const uint8_t list[] = "f\1\244\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\5\0\0\0\1a\0\0\0\0"
                                  "l\1\377\0\0\0\0\0\0\0\0\377\377\377\377\377\377\377\377\0\0\0\2\377b\0\0\0\1t\0\1";
    int fd = get("/list?path=.&limit=2&after=0");
    uint64_t id = told(M_SB_FILES);
    output(id, 1, span_of(list, sizeof(list) - 1));
    ended(id, SB_EXITED, 0, SPAN_NONE);
    answered(fd);
    assert_true(has("{\"name\":\"a\",\"kind\":\"file\",\"mode\":\"0644\",\"size\":7,\"mtime\":5}"));
    assert_true(has(
        "\"name_base64\":\"/2I=\",\"kind\":\"link\",\"mode\":\"0777\",\"size\":0,\"mtime\":-1,\"target\":\"t\"}"));
    assert_true(has("],\"more\":true}"));
    (void)told(M_SB_TAKEN);
    for (size_t n = 1; n < sizeof(list) - 1; n++) {
        fd = get("/list?path=.");
        id = told(M_SB_FILES);
        output(id, 1, span_of(list, n));
        ended(id, SB_EXITED, 0, SPAN_NONE);
        answered(fd);
        assert_true(has("HTTP/1.1 503 ") && has("cannot be read"));
        (void)told(M_SB_TAKEN);
    }
    fd = get("/stat?path=a");
    id = told(M_SB_FILES);
    output(id, 1, span_of("d\1\355\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\0", 27));
    ended(id, SB_EXITED, 0, SPAN_NONE);
    answered(fd);
    assert_true(has("{\"kind\":\"folder\",\"mode\":\"0755\",\"size\":0,\"mtime\":5}"));
}

static void what_makes_no_sense_is_asked_of_nobody(void **state)
{
    static const char *const bad[] = {"",
                                      "?path=",
                                      "?path=a&path=b",
                                      "?path=a%00b",
                                      "?path=a&offset=-1",
                                      "?path=a&length=x",
                                      "?path=a&timeout=0",
                                      "/list?path=a&limit=1001",
                                      "/list?path=a&limit=0",
                                      "/list?path=a&after=%00"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int fd = get(bad[i]);
        answered(fd);
        assert_true(has("HTTP/1.1 400 "));
    }
    int fd = request("GET /api/v1/sandboxes/A/files?path=a" HOST "Connection: close\r\n\r\n");
    answered(fd);
    assert_true(has("HTTP/1.1 404 "));
    assert_true(nothing_is_told());
}

/* Of what may rest, as a folder that is watched, nothing needs to come. */
static void what_may_rest_keeps_its_place(void **state)
{
    static struct desk d;
    struct follow f = {.desk = &d, .raw = true, .rests = true, .id = 1};
    assert_false(follow_stands_still(&f, 0));
    assert_false(follow_stands_still(&f, 100 * SHARE_STILL_MS));
}

static void answers_nothing(struct exchange *x, const struct transfer_end *e)
{
}

/* Nothing comes any more that could answer: what the end was left without is an answer all the same. */
static void an_end_is_never_without_an_answer(void **state)
{
    static const struct transfer_of of = {.done = answers_nothing};
    static struct desk d;
    struct exchange x = {.desk = &d, .transfer = &of, .place = PLACE_CONTROL, .file = -1};
    struct transfer t = {.x = &x, .runs = true};
    dynbuf_init(&x.out, 1 << 16);
    dynbuf_init(&t.said, 16);
    dynbuf_init(&t.words, 16);
    arena_init(&x.arena, 1 << 16);
    assert_int_equal(transfer_lost(&t), TRANSFER_ANSWERED);
    assert_int_equal(x.status, 503);
    assert_true(x.out.n > 0);
    dynbuf_free(&x.out);
    arena_free(&x.arena);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(a_body_goes_there_as_far_as_it_is_taken),
        TEST(nothing_is_written_before_all_of_it_was_sent),
        TEST(who_goes_ends_what_was_begun),
        TEST(what_comes_is_the_answer_and_its_end_that_of_all),
        TEST(how_it_failed_is_said),
        TEST(what_is_left_of_a_body_is_no_request),
        TEST(what_stands_still_gives_its_place_back),
        TEST(what_moves_goes_on),
        TEST(entries_are_taken_apart),
        TEST(what_makes_no_sense_is_asked_of_nobody),
        cmocka_unit_test(what_may_rest_keeps_its_place),
        cmocka_unit_test(an_end_is_never_without_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
