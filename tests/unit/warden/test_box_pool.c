/* Sandboxes that wait for whoever asks for one: which are started, who gets one, and that nobody gets another's. G23
 */
#include "tests/unit/warden/warden_world.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/msg.h"
#include "sandbox-shim/warden/pool/pool.h"

#define OTHER_DIGEST "sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* What is asked for in these tests (warden_world.c: ask_for) is like the first row. */
static void the_pool_is(unsigned size, unsigned rows)
{
    struct dynbuf b = fresh();
    msg_put_u8(&b, true);
    msg_put_u16(&b, (uint16_t)rows);
    for (unsigned i = 0; i < rows; i++) {
        msg_put_span(&b, SPAN("debian"));
        msg_put_u16(&b, (uint16_t)size);
        msg_put_u64(&b, 512 << 20);
        msg_put_u64(&b, 100 + i);
        msg_put_u64(&b, 50);
        msg_put_u64(&b, 64 << 20);
        msg_put_u64(&b, 256);
    }
    say(PARENT, M_POOL, 0, &b);
}

/* The parent is asked what the name means. */
static void the_image_is(const char *digest)
{
    struct dynbuf b = fresh();
    uint64_t id = heard(PARENT, M_BOX_IMAGE);
    struct msg_in m = msg_in(got.payload);
    assert_true(span_eq(msg_get_span(&m, 63), SPAN("debian")));
    msg_put_u8(&b, digest != NULL);
    msg_put_span(&b, digest ? span_str(digest) : SPAN_NONE);
    msg_put_span(&b, SPAN_NONE);
    say(PARENT, M_BOX_IMAGE, id, &b);
}

/* One is started without a name, of nobody's generation; it waits when it has said hello. */
static uint64_t one_is_asked_for(unsigned pids, int *fd)
{
    uint64_t id = heard(PARENT, M_BOX);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_span(&m, 63).n, 0);
    assert_int_equal(msg_get_u64(&m), 0);
    assert_int_equal(msg_get_u64(&m), 512 << 20);
    assert_int_equal(msg_get_u64(&m), pids);
    assert_int_equal(msg_get_u64(&m), 50);
    assert_int_equal(msg_get_u8(&m), 1);
    *fd = frame_take_fd(&got, 0);
    assert_true(*fd >= 0 && fcntl(*fd, F_SETFL, 0) == 0);
    return id;
}

static void it_waits(uint64_t id, int fd)
{
    struct frame f;
    struct dynbuf bytes = fresh();
    parent_says_started(id, 2);
    assert_int_equal(chan_read_one(fd, &f, &bytes), 0);
    assert_int_equal(f.type, M_BOX_ORDER);
    dynbuf_free(&bytes);
    hello(fd);
}

static uint64_t one_waits(int *fd)
{
    the_image_is(A_DIGEST);
    uint64_t id = one_is_asked_for(100, fd);
    it_waits(id, *fd);
    return id;
}

static void ask(const char *name, uint64_t desk, uint64_t generation, uint64_t pids, const char *digest,
                const char *lane)
{
    struct dynbuf b = fresh();
    wire_put_box(&b, &(struct wire_box){.name = span_str(name),
                                        .memory = 512 << 20,
                                        .pids = pids,
                                        .disk = 64 << 20,
                                        .files = 256,
                                        .image = SPAN("debian"),
                                        .digest = span_str(digest),
                                        .lane = lane ? span_str(lane) : SPAN_NONE});
    msg_put_u64(&b, generation);
    msg_put_u64(&b, 50);
    msg_put_u64(&b, 60000);
    msg_put_u8(&b, true);
    msg_put_u8(&b, false);
    say(DESK, M_SB_START, desk, &b);
}

/* The parent hears whose it is, it its name, the desk that it runs, and the audit what it says of any other. */
static void it_is_given_to(const char *name, uint64_t id, int fd)
{
    assert_int_equal(heard(PARENT, M_BOX_CLAIMED), id);
    struct msg_in m = msg_in(got.payload);
    assert_true(span_eq(msg_get_span(&m, 63), span_str(name)));
    assert_int_equal(msg_get_u64(&m), 7);
    assert_int_equal(msg_end(&m), 0);
    is_named(fd, name);
    assert_int_equal(heard(DESK, M_SB_STARTED), 5);
    assert_int_equal(got.payload.p[0], 1);
    (void)heard(LEDGER, M_RUN_LIFE);
    assert_non_null(memmem(got.payload.p, got.payload.n, "sandbox-started", 15));
}

static size_t listed(void)
{
    say(DESK, M_SB_LIST, 90, NULL);
    assert_int_equal(heard(DESK, M_SB_LISTED), 90);
    struct msg_in m = msg_in(got.payload);
    return msg_get_u16(&m);
}

static void one_that_waits_is_nobody_s_and_then_as_if_it_had_just_been_started(void **state)
{
    int fd, next;
    unsigned type;
    uint32_t run;
    struct wire_box x;
    the_pool_is(1, 1);
    uint64_t id = one_waits(&fd);
    assert_int_equal(listed(), 0);
    destroy(""); /* it has no name that anybody could say */
    (void)heard(DESK, M_SB_DESTROYED);
    assert_int_equal(got.payload.p[0], 0);
    ask("box", 5, 7, 100, A_DIGEST, NULL);
    it_is_given_to("box", id, fd);
    assert_int_equal(listed(), 1);
    struct msg_in m = msg_in(got.payload);
    (void)msg_get_u16(&m);
    assert_int_equal(wire_get_box(&m, &x, false), 0);
    assert_true(span_eq(x.name, SPAN("box")) && span_eq(x.digest, SPAN(A_DIGEST)));
    assert_int_equal(msg_get_u64(&m), 7);       /* the ledger's generation */
    assert_true(msg_get_u64(&m) < 30000);       /* ms since it was claimed */
    assert_in_range(msg_get_u64(&m), 1, 60000); /* and until its time is over */
    execute(2, "box", 60000, 6);
    struct dynbuf b = told(fd, &type, &run);
    assert_int_equal(type, TALK_RUN);
    assert_int_equal(run, 1); /* the first that it was ever asked for */
    dynbuf_free(&b);
    uint64_t another = one_waits(&next); /* in its place */
    assert_int_not_equal(another, id);
    close(fd);
    close(next);
}

static void one_that_is_like_it_in_all_is_given_away_and_no_other(void **state)
{
    int fd, made;
    the_pool_is(1, 1);
    (void)one_waits(&fd);
    const struct {
        uint64_t pids;
        const char *digest, *lane;
    } unlike[] = {{101, A_DIGEST, NULL}, {100, OTHER_DIGEST, NULL}, {100, A_DIGEST, "web"}};
    for (size_t i = 0; i < sizeof(unlike) / sizeof(unlike[0]); i++) {
        const char name[] = {'b', (char)('0' + i), 0};
        ask(name, 6, 7, unlike[i].pids, unlike[i].digest, unlike[i].lane);
        (void)heard(PARENT, M_BOX);
        struct msg_in m = msg_in(got.payload);
        assert_true(span_eq(msg_get_span(&m, 63), span_str(name)));
        made = frame_take_fd(&got, 0);
        close(made);
    }
    close(fd);
}

static void what_was_made_of_another_image_ends(void **state)
{
    int fd, other;
    the_pool_is(2, 1);
    uint64_t id = one_waits(&fd);
    the_image_is(OTHER_DIGEST); /* it was imported anew when the second is to be started */
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    (void)one_is_asked_for(100, &other);
    close(fd);
    close(other);
}

static void with_a_reload_end_those_that_nobody_wants(void **state)
{
    int fd, other;
    the_pool_is(1, 2);
    uint64_t id = one_waits(&fd);
    the_image_is(A_DIGEST);
    uint64_t second = one_is_asked_for(101, &other);
    the_pool_is(1, 1);
    assert_int_equal(heard(PARENT, M_BOX_END), second);
    say(PARENT, M_BOX_GONE, second, NULL);
    the_pool_is(1, 0);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    say(PARENT, M_BOX_GONE, id, NULL);
    assert_int_equal(listed(), 0);
    close(fd);
    close(other);
}

/* What it says that nobody asked for is as bad as of any. */
static void one_that_speaks_before_it_is_asked_is_given_to_nobody(void **state)
{
    int fd, made;
    the_pool_is(1, 1);
    uint64_t id = one_waits(&fd);
    frame_of(fd, TALK_OUT, 1, SPAN("x"));
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    ask("box", 5, 7, 100, A_DIGEST, NULL);
    assert_int_not_equal(heard(PARENT, M_BOX), id);
    made = frame_take_fd(&got, 0);
    close(made);
    close(fd);
}

static void where_there_is_no_room_one_that_waits_gives_way(void **state)
{
    int fd;
    the_pool_is(1, 1);
    uint64_t id = one_waits(&fd);
    for (unsigned i = 0; i < WARDEN_BOXES_MAX - 1; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "b%u", i);
        ask(name, 6, 7, 101, A_DIGEST, NULL);
        (void)heard(PARENT, M_BOX);
        close(frame_take_fd(&got, 0));
    }
    ask("last", 6, 7, 101, A_DIGEST, NULL);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    (void)heard(PARENT, M_BOX);
    close(frame_take_fd(&got, 0));
    ask("past", 8, 7, 101, A_DIGEST, NULL);
    assert_int_equal(heard(DESK, M_SB_STARTED), 8);
    assert_int_equal(got.payload.p[0], 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_waits_is_nobody_s_and_then_as_if_it_had_just_been_started,
                                        begin_known, finish),
        cmocka_unit_test_setup_teardown(one_that_is_like_it_in_all_is_given_away_and_no_other, begin_known, finish),
        cmocka_unit_test_setup_teardown(what_was_made_of_another_image_ends, begin_known, finish),
        cmocka_unit_test_setup_teardown(with_a_reload_end_those_that_nobody_wants, begin_known, finish),
        cmocka_unit_test_setup_teardown(one_that_speaks_before_it_is_asked_is_given_to_nobody, begin_known, finish),
        cmocka_unit_test_setup_teardown(where_there_is_no_room_one_that_waits_gives_way, begin_known, finish),
    };
    signal(SIGPIPE, SIG_IGN);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    dynbuf_free(&got_bytes);
    return rc;
}
