/* What the streams of events are told, and when. */
#include "tests/kit.h"

#include "web-approval/streams/news.h"

struct told {
    unsigned times;
    size_t bytes;
    struct loop *loop; /* that waits for it, or NULL */
};

static void tell(void *arg, struct span text)
{
    struct told *t = arg;
    t->times++;
    t->bytes += text.n;
    if (t->loop)
        loop_stop(t->loop);
}

static void what_happens_within_a_moment_is_told_at_once(void **state)
{
    struct loop *l = loop_new();
    struct told t = {0};
    struct news n;
    assert_int_equal(news_init(&n, l, tell, &t), 0);
    news_tell(&n);
    assert_int_equal(t.times, 0);
    for (unsigned i = 0; i < 10; i++)
        news_add(&n, i + 1, SPAN("ticket"), SPAN("abc"));
    assert_int_equal(t.times, 0);
    t.loop = l;
    assert_int_equal(loop_run(l), 0);
    t.loop = NULL;
    size_t each = t.bytes / 10;
    assert_true(t.times == 1 && each > 20);
    news_add(&n, 11, SPAN("ticket"), SPAN("abc"));
    news_tell(&n); /* now */
    assert_int_equal(t.times, 2);
    t = (struct told){0};
    for (unsigned i = 0; i < 2 * NEWS_BYTES / each + 2; i++) /* a flood: as much as has room goes out */
        news_add(&n, 1, SPAN("ticket"), SPAN("abc"));
    assert_true(t.times == 2 && t.bytes <= 2 * NEWS_BYTES);
    news_free(&n);
    loop_free(&l);
}

static void there_are_no_more_streams_than_descriptors(void **state)
{
    assert_int_equal(news_streams(10, 10), 10);
    assert_true(news_streams((size_t)1 << 40, 10) < (size_t)1 << 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_happens_within_a_moment_is_told_at_once),
        cmocka_unit_test(there_are_no_more_streams_than_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
