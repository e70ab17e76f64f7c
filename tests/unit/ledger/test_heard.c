/* What waits until the judge has heard: kept in its order, one question at a time, nothing for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "proxy/ledger/heard.h"

static struct heard h;
static char said[64];
static int said_fd;

static void say(void *arg, enum outbox_to to, uint16_t type, uint64_t id, struct span payload, int fd)
{
    (void)arg;
    (void)type;
    assert_int_equal(to, TO_DESK);
    assert_int_equal(payload.n, 1);
    assert_int_equal(id, payload.p[0]);
    said[strlen(said)] = (char)id;
    if (fd >= 0)
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    said_fd += fd >= 0;
}

static bool keeps(const char *what)
{
    return heard_keeps(&h, 1, (uint64_t)*what, span_of(what, 1), -1) > 0;
}

static int setup(void **state)
{
    (void)state;
    memset(&h, 0, sizeof(h));
    memset(said, 0, sizeof(said));
    said_fd = 0;
    heard_init(&h);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    heard_free(&h);
    return 0;
}

static void without_news_nothing_waits(void **state)
{
    (void)state;
    assert_false(keeps("a"));
    assert_false(heard_asks(&h));
    heard_news(&h); /* which no message of the desk's came with */
    assert_false(heard_asks(&h));
    assert_false(keeps("b"));
}

static void one_question_at_a_time_and_all_in_its_order(void **state)
{
    (void)state;
    heard_news(&h);
    assert_true(keeps("a"));
    assert_true(keeps("b"));
    assert_true(heard_asks(&h));
    uint64_t first = h.number;
    assert_true(keeps("c")); /* of no news, but behind the others */
    assert_false(heard_asks(&h));
    heard_news(&h);
    assert_true(keeps("d"));
    assert_false(heard_asks(&h));
    assert_string_equal(said, "");
    assert_int_equal(heard_answer(&h, first, say, NULL), 0);
    assert_string_equal(said, "ab");
    assert_true(heard_asks(&h)); /* for d */
    assert_true(keeps("e"));
    assert_int_equal(heard_answer(&h, first, say, NULL), 0); /* of before: nothing of it is new */
    assert_string_equal(said, "ab");
    assert_int_equal(heard_answer(&h, first + 1, say, NULL), 0);
    assert_string_equal(said, "abcde"); /* e waited for its turn alone */
    assert_false(heard_asks(&h));
    assert_false(keeps("f"));
}

static void a_number_nobody_asked_with_answers_nothing(void **state)
{
    (void)state;
    assert_int_equal(heard_answer(&h, 0, say, NULL), -1);
    assert_int_equal(heard_answer(&h, 1, say, NULL), -1);
    heard_news(&h);
    assert_true(keeps("a"));
    assert_true(heard_asks(&h));
    assert_int_equal(heard_answer(&h, h.number + 1, say, NULL), -1);
    assert_string_equal(said, "");
}

static void without_a_judge_all_is_said(void **state)
{
    (void)state;
    heard_news(&h);
    assert_true(keeps("a"));
    assert_true(heard_asks(&h));
    assert_true(keeps("b"));
    heard_release(&h, say, NULL);
    assert_string_equal(said, "ab");
    assert_int_equal(heard_answer(&h, h.number, say, NULL), 0);
    assert_false(keeps("c"));
    assert_string_equal(said, "ab");
}

static void a_descriptor_is_kept_while_its_message_waits(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    heard_news(&h);
    assert_int_equal(heard_keeps(&h, 1, 'a', SPAN("a"), fd), 1);
    close(fd);
    assert_true(heard_asks(&h));
    assert_int_equal(heard_answer(&h, h.number, say, NULL), 0);
    assert_int_equal(said_fd, 1);
}

static void count(void *arg, enum outbox_to to, uint16_t type, uint64_t id, struct span payload, int fd)
{
    uint64_t *next = arg;
    assert_int_equal(id, (*next)++);
}

/* It is said so, and not taken for nothing to wait for: it would pass those that wait. */
static void where_there_is_no_room_it_is_said(void **state)
{
    uint64_t n = 0, next = 0;
    int kept;
    heard_news(&h);
    while ((kept = heard_keeps(&h, 1, n, SPAN("a"), -1)) > 0)
        n++;
    assert_int_equal(kept, -1);
    assert_int_equal(n, 2 * OUTBOX_REPLIES);
    assert_int_equal(heard_keeps(&h, 1, n, SPAN("a"), -1), -1);
    heard_release(&h, count, &next);
    assert_int_equal(next, n);
    assert_int_equal(heard_keeps(&h, 1, n, SPAN("a"), -1), 0);
}

#define FRESH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(without_news_nothing_waits),
        FRESH(one_question_at_a_time_and_all_in_its_order),
        FRESH(a_number_nobody_asked_with_answers_nothing),
        FRESH(without_a_judge_all_is_said),
        FRESH(a_descriptor_is_kept_while_its_message_waits),
        FRESH(where_there_is_no_room_it_is_said),
    };
    return cmocka_run_group_tests_name("heard", tests, NULL, NULL);
}
