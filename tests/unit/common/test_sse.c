/* The event stream reader: any cut gives the same events; limits hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

#include "common/control/sse.h"

struct seen {
    char text[512];
    int stop_at; /* the event at which to return 7; 0: never */
    int count;
};

static int note(void *ctx, const struct api_event *ev)
{
    struct seen *s = ctx;
    size_t n = strlen(s->text);

    (void)snprintf(s->text + n, sizeof(s->text) - n, "[%.*s|%.*s|%.*s]", SPAN_FMT(ev->id), SPAN_FMT(ev->name),
                   SPAN_FMT(ev->data));
    return ++s->count == s->stop_at ? 7 : 0;
}

static void any_cut_gives_the_same_events(void **state)
{
    static const char stream[] = ": hello\n\ndata: one\n\nid: 4\r\nevent: ticket\r\ndata: two\r\ndata:  three\r\n\r\n"
                                 "event: empty\n\nunknown: x\nretry: 5\ndata\n\ndata: unfinished\n";
    static const char want[] = "[|message|one][4|ticket|two\n three][4|message|]";

    for (size_t cut = 1; cut < sizeof(stream); cut++) {
        struct seen seen = {"", 0, 0};
        struct sse s;
        sse_init(&s, note, &seen);
        for (size_t at = 0; at < sizeof(stream) - 1; at += cut) {
            size_t left = sizeof(stream) - 1 - at;
            assert_int_equal(sse_feed(&s, span_of(stream + at, cut < left ? cut : left)), 0);
        }
        assert_string_equal(seen.text, want);
        sse_free(&s);
    }
}

static void the_reader_may_stop(void **state)
{
    struct seen seen = {"", 2, 0};
    struct sse s;

    sse_init(&s, note, &seen);
    assert_int_equal(sse_feed(&s, SPAN("data: 1\n\ndata: 2\n\ndata: 3\n\n")), 7);
    assert_int_equal(seen.count, 2);
    sse_free(&s);
}

static void limits_hold(void **state)
{
    static uint8_t big[API_EVENT_MAX + 1];
    struct seen seen = {"", 0, 0};
    struct sse s;

    memset(big, 'x', sizeof(big));
    sse_init(&s, note, &seen);
    assert_int_equal(sse_feed(&s, span_of(big, API_EVENT_MAX)), 0); /* one line at the limit */
    assert_int_equal(sse_feed(&s, SPAN("x")), -1);
    sse_free(&s);
    sse_init(&s, note, &seen);
    memcpy(big, "data:", 5);
    big[API_EVENT_MAX / 2] = '\n';
    assert_int_equal(sse_feed(&s, span_of(big, API_EVENT_MAX / 2 + 1)), 0);
    assert_int_equal(sse_feed(&s, span_of(big, API_EVENT_MAX / 2 + 1)), 0);
    assert_int_equal(sse_feed(&s, span_of(big, API_EVENT_MAX / 2 + 1)), -1); /* the data of one event */
    sse_free(&s);
    assert_int_equal(seen.count, 0);
    sse_init_max(&s, 8, note, &seen);
    assert_int_equal(sse_feed(&s, SPAN("data: 12\n\n")), 0);
    assert_int_equal(seen.count, 1);
    assert_int_equal(sse_feed(&s, SPAN("data: 123")), -1);
    sse_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_gives_the_same_events),
        cmocka_unit_test(the_reader_may_stop),
        cmocka_unit_test(limits_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
