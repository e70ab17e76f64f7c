/* What callers of the sandbox API send, taken apart the same in whatever pieces it comes. */
#include "tests/kit.h"

#include <string.h>

#include "proxy/dock/parse/changes.h"
#include "proxy/dock/parse/envelope.h"
#include "proxy/dock/parse/form.h"

static void a_frame_is_taken_when_all_of_it_is_there(void **state)
{
    static const uint8_t frame[] = {0, 0, 0, 0, 3, 'a', 'b', 'c', 2, 0, 0, 0, 0};
    struct envelope e;
    size_t used;
    for (size_t n = 0; n < 8; n++)
        assert_int_equal(envelope_take(span_of(frame, n), 10, &e, &used), ENVELOPE_MORE);
    assert_int_equal(envelope_take(span_of(frame, sizeof(frame)), 10, &e, &used), ENVELOPE_FRAME);
    assert_int_equal(used, 8);
    assert_true(e.flags == 0 && span_eq(e.payload, SPAN("abc")));
    assert_int_equal(envelope_take(span_of(frame + 8, 5), 10, &e, &used), ENVELOPE_FRAME);
    assert_true(e.flags == ENVELOPE_END && e.payload.n == 0 && used == 5);
}

static void a_frame_past_its_bound_and_unknown_flags_are_refused(void **state)
{
    static const uint8_t at[] = {1, 0, 0, 0, 10}, past[] = {0, 0, 0, 0, 11}, far[] = {0, 0xff, 0xff, 0xff, 0xff},
                         flag[] = {4};
    struct envelope e;
    size_t used;
    assert_int_equal(envelope_take(span_of(at, 5), 10, &e, &used), ENVELOPE_MORE);
    assert_int_equal(envelope_take(span_of(past, 5), 10, &e, &used), ENVELOPE_BAD);
    assert_int_equal(envelope_take(span_of(far, 5), 10, &e, &used), ENVELOPE_BAD);
    assert_int_equal(envelope_take(span_of(flag, 1), 10, &e, &used), ENVELOPE_BAD);
}

static void what_is_put_is_taken(void **state)
{
    struct dynbuf b;
    struct envelope e;
    size_t used;
    dynbuf_init(&b, 64);
    assert_int_equal(envelope_put(&b, ENVELOPE_END, SPAN("{}")), 0);
    assert_int_equal(envelope_take(dynbuf_span(&b), 10, &e, &used), ENVELOPE_FRAME);
    assert_true(e.flags == ENVELOPE_END && span_eq(e.payload, SPAN("{}")) && used == b.n);
    dynbuf_free(&b);
    dynbuf_init(&b, 6);
    assert_int_equal(envelope_put(&b, 0, SPAN("{}")), -1);
    dynbuf_free(&b);
}

/* --- forms ---------------------------------------------------------------------- */

#define TYPE "multipart/form-data; boundary=B"
#define HEAD "Content-Disposition: form-data; name=\"file\"; filename=\"a/b\"\r\nContent-Type: text/plain\r\n\r\n"

static char told[4096]; /* "[name|file]content." for each part, "!" at the end, "?" if it is none */

/* The body, in pieces of so many bytes: only what is here may be read. */
static void read_form(struct span body, size_t piece)
{
    struct form f;
    struct form_step s;
    struct dynbuf in;
    size_t used, n = 0, fed = 0;
    enum form_got got = FORM_MORE;
    assert_int_equal(form_begin(&f, SPAN(TYPE)), 0);
    dynbuf_init(&in, 64 * 1024);
    told[0] = '\0';
    while (got != FORM_BAD && (got != FORM_END || in.n > 0 || fed < body.n)) {
        got = form_step(&f, dynbuf_span(&in), &s, &used);
        if (got == FORM_PART)
            n += (size_t)snprintf(told + n, sizeof(told) - n, "[%.*s|%.*s]", SPAN_FMT(s.name), SPAN_FMT(s.file));
        else if (got == FORM_DATA)
            n += (size_t)snprintf(told + n, sizeof(told) - n, "%.*s", SPAN_FMT(s.data));
        else if (got == FORM_PART_END)
            n += (size_t)snprintf(told + n, sizeof(told) - n, ".");
        dynbuf_drop(&in, used);
        if (got != FORM_MORE && (got != FORM_END || in.n > 0))
            continue;
        if (fed == body.n)
            break;
        struct span more = span_first(span_from(body, fed), piece);
        assert_int_equal(dynbuf_add(&in, more), 0);
        fed += more.n;
    }
    (void)snprintf(told + n, sizeof(told) - n, "%s",
                   got == FORM_END && fed == body.n ? "!"
                   : got == FORM_BAD                ? "?"
                                                    : "");
    dynbuf_free(&in);
}

static void says(const char *body, const char *want)
{
    for (size_t piece = 1; piece <= strlen(body); piece++) {
        read_form(span_str(body), piece);
        assert_string_equal(told, want);
    }
}

static void parts_come_in_whatever_pieces(void **state)
{
    says("--B\r\n" HEAD "hello\r\n--B--", "[file|a/b]hello.!");
    says("--B\r\n" HEAD "hello\r\n--B--\r\n", "[file|a/b]hello.!");
    says("--B\r\n" HEAD "\r\n--B\r\ncontent-disposition: form-data; name=\"x\"\r\n\r\n2\r\n--B--",
         "[file|a/b].[x|]2.!");
    /* What only begins as the delimiter does is content. */
    says("--B\r\n" HEAD "\r\r\n-\r\n--\r\n--b\n--B\r\n--B--", "[file|a/b]\r\r\n-\r\n--\r\n--b\n--B.!");
}

static void what_could_be_read_in_two_ways_is_refused(void **state)
{
    says("\r\n--B\r\n" HEAD "x\r\n--B--", "?");
    says("--B \r\n" HEAD "x\r\n--B--", "?");
    says("--B\n" HEAD "x\r\n--B--", "?");
    says("--B\r\n" HEAD "x\r\n--Bx\r\n--B--", "[file|a/b]x.?");
    says("--B\r\n" HEAD "x\r\n--B--\r\nmore", "[file|a/b]x.?");
    says("--B\r\nContent-Disposition: form-data; filename=\"x\"\r\n\r\nx\r\n--B--", "?"); /* it has no name */
    says("--B\r\nContent-Disposition: attachment; name=\"x\"\r\n\r\nx\r\n--B--", "?");
    says("--B\r\nX: y\r\n\r\nx\r\n--B--", "?");
    says("--B\r\nno field\r\n\r\nx\r\n--B--", "?");
    says("--B\r\n" HEAD "x", "[file|a/b]x"); /* cut short: it has no end */
}

static void a_type_that_is_no_form_is_refused(void **state)
{
    struct form f;
    struct form_step s;
    size_t used;
    assert_int_equal(form_begin(&f, SPAN("multipart/mixed; boundary=B")), -1);
    assert_int_equal(form_begin(&f, SPAN("multipart/form-data")), -1);
    assert_int_equal(form_begin(&f, SPAN("")), -1);
    assert_int_equal(form_step(&f, SPAN("--B"), &s, &used), FORM_BAD);
}

static void a_head_and_the_parts_have_their_bounds(void **state)
{
    static char body[FORM_HEAD_MAX + 256];
    struct form f;
    struct form_step s;
    size_t used;
    enum form_got got;
    for (int past = 0; past < 2; past++) {
        static const char begin[] = "Content-Disposition: form-data; name=\"";
        size_t n = FORM_HEAD_MAX + (size_t)past - (sizeof(begin) - 1) - 1;
        int len = snprintf(body, sizeof(body), "%s%0*d\"\r\n\r\n", begin, (int)n, 0);
        assert_int_equal(form_begin(&f, SPAN(TYPE)), 0);
        f.state = FORM_HEAD;
        assert_int_equal(form_step(&f, span_of(body, (size_t)len), &s, &used), past ? FORM_BAD : FORM_PART);
    }
    assert_int_equal(form_begin(&f, SPAN(TYPE)), 0);
    f.state = FORM_HEAD;
    memset(body, 'x', sizeof(body));
    assert_int_equal(form_step(&f, span_of(body, FORM_HEAD_MAX), &s, &used), FORM_MORE);
    assert_int_equal(form_step(&f, span_of(body, FORM_HEAD_MAX + 1), &s, &used), FORM_BAD);
    for (unsigned parts = FORM_PARTS_MAX - 1; parts <= FORM_PARTS_MAX; parts++) {
        f.state = FORM_AFTER;
        f.parts = parts;
        got = form_step(&f, SPAN("\r\n"), &s, &used);
        assert_int_equal(got, parts < FORM_PARTS_MAX ? FORM_DATA : FORM_BAD);
    }
}

static void a_change_is_a_word_and_a_path(void **state)
{
    static const struct {
        const char *line;
        enum change_is what; /* NONE: it is no change */
        const char *path;
    } rows[] = {{"watches \n", CHANGE_WATCHES, ""},
                {"missed \n", CHANGE_MISSED, ""},
                {"created a/b\n", CHANGE_CREATED, "a/b"},
                {"written a%20b%25%C3%bc\n", CHANGE_WRITTEN, "a b%\xc3\xbc"},
                {"removed .\n", CHANGE_REMOVED, "."},
                {"renamed x\n", CHANGE_RENAMED, "x"},
                {"mode x\n", CHANGE_MODE, "x"},
                {"created \n", CHANGE_NONE, ""},
                {"watches x\n", CHANGE_NONE, ""},
                {"missed x\n", CHANGE_NONE, ""},
                {"created\n", CHANGE_NONE, ""},
                {"Created x\n", CHANGE_NONE, ""},
                {"created x%\n", CHANGE_NONE, ""},
                {"created x%2\n", CHANGE_NONE, ""},
                {"created x%zz\n", CHANGE_NONE, ""},
                {"created x%00\n", CHANGE_NONE, ""},
                {" x\n", CHANGE_NONE, ""},
                {"\n", CHANGE_NONE, ""}};
    static struct change c;
    size_t used;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct span line = span_str(rows[i].line);
        for (size_t n = 0; n < line.n; n++)
            assert_int_equal(change_take(span_first(line, n), &c, &used), CHANGE_MORE);
        if (change_take(line, &c, &used) != (rows[i].what ? CHANGE_TAKEN : CHANGE_BAD))
            fail_msg("%s", rows[i].line);
        assert_true(!rows[i].what || (c.what == rows[i].what && used == line.n));
        assert_true(!rows[i].what || span_eq(span_of(c.path, c.n), span_str(rows[i].path)));
    }
    assert_string_equal(change_type(CHANGE_MODE), "EVENT_TYPE_CHMOD");
    assert_null(change_type(CHANGE_WATCHES));
}

static void a_changes_path_and_line_have_their_bounds(void **state)
{
    static const char word[] = "created ";
    static char line[CHANGE_LINE_MAX + 3];
    static struct change c;
    size_t used;
    for (size_t past = 0; past < 2; past++) {
        memset(line, 'a', sizeof(line));
        memcpy(line, word, strlen(word));
        line[strlen(word) + CHANGE_PATH_MAX + past] = '\n';
        assert_int_equal(change_take(span_of(line, sizeof(line) - 2), &c, &used), past ? CHANGE_BAD : CHANGE_TAKEN);
        assert_true(past || c.n == CHANGE_PATH_MAX);
    }
    memset(line, 'a', sizeof(line)); /* of one that does not end, no more is waited for */
    assert_int_equal(change_take(span_of(line, CHANGE_LINE_MAX), &c, &used), CHANGE_MORE);
    assert_int_equal(change_take(span_of(line, CHANGE_LINE_MAX + 1), &c, &used), CHANGE_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_is_taken_when_all_of_it_is_there),
        cmocka_unit_test(a_frame_past_its_bound_and_unknown_flags_are_refused),
        cmocka_unit_test(what_is_put_is_taken),
        cmocka_unit_test(parts_come_in_whatever_pieces),
        cmocka_unit_test(what_could_be_read_in_two_ways_is_refused),
        cmocka_unit_test(a_type_that_is_no_form_is_refused),
        cmocka_unit_test(a_head_and_the_parts_have_their_bounds),
        cmocka_unit_test(a_change_is_a_word_and_a_path),
        cmocka_unit_test(a_changes_path_and_line_have_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
