/* Tar streams: what is written is read, what others write too, and what could lead out is refused. Attack G14. */
#include "tests/kit.h"

#include <stdlib.h>
#include <string.h>

#include "sandbox-shim/inside/shim_tar.h"

static uint8_t stream[64 * 1024];
static size_t nstream;
static struct tar t;

/* --- streams ------------------------------------------------------------------------- */

static struct tar_member *member(enum tar_type type, const char *name, uint64_t size, const char *target)
{
    static struct tar_member m;
    memset(&m, 0, sizeof(m));
    m.type = type;
    m.mode = 0640;
    m.size = size;
    m.mtime = 1700000000;
    (void)snprintf(m.name, sizeof(m.name), "%s", name);
    (void)snprintf(m.target, sizeof(m.target), "%s", target);
    return &m;
}

static void begin(void)
{
    memset(stream, 0, sizeof(stream));
    memset(&t, 0, sizeof(t));
    nstream = 0;
}

/* Its header, with no check of its name: what a hostile writer says. */
static uint8_t *add(const struct tar_member *m, const char *content)
{
    static uint8_t head[TAR_HEAD_MAX];
    size_t n = tar_head(head, m);
    assert_true(n > 0);
    uint8_t *at = stream + nstream + n - TAR_BLOCK;
    memcpy(stream + nstream, head, n);
    nstream += n;
    memcpy(stream + nstream, content, strlen(content));
    nstream += strlen(content) + tar_pad(strlen(content));
    return at;
}

/* Its sum, after its bytes were changed. */
static void sum_again(uint8_t *head)
{
    unsigned sum = 0;
    memset(head + 148, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += head[i];
    (void)snprintf((char *)head + 148, 8, "%06o", sum);
}

/* A header of this type and these bytes, as pax and GNU have them in front of another. */
static void add_extra(char type, const char *bytes, size_t n)
{
    uint8_t *head = add(member(TAR_FILE, "extra", n, ""), "");
    head[156] = (uint8_t)type;
    sum_again(head);
    memcpy(stream + nstream, bytes, n);
    nstream += n + tar_pad(n);
}

static size_t at;

/* The next, in pieces of so many bytes. */
static enum tar_got next(size_t piece)
{
    size_t used;
    for (;;) {
        size_t n = nstream - at < piece ? nstream - at : piece;
        enum tar_got got = tar_step(&t, stream + at, n, &used);
        at += used;
        if (got != TAR_MORE || at == nstream)
            return got;
    }
}

static void refused(const char *why)
{
    at = 0;
    enum tar_got got;
    while ((got = next(100)) == TAR_MEMBER || got == TAR_DATA)
        ;
    assert_int_equal(got, TAR_BAD);
    assert_non_null(t.why);
    assert_non_null(strstr(t.why, why));
    assert_int_equal(next(100), TAR_BAD); /* and stays so */
}

/* --- the tests ------------------------------------------------------------------------- */

static void what_is_written_is_read(void **state)
{
    static char name[3000], target[2000];
    memset(name, 'n', sizeof(name) - 1);
    memset(target, 't', sizeof(target) - 1);
    for (size_t i = 100; i < sizeof(name) - 1; i += 200)
        name[i] = '/';
    for (size_t piece = 1; piece <= 4096; piece *= 8) {
        begin();
        add(member(TAR_FOLDER, "d", 0, ""), "");
        add(member(TAR_FILE, "d/file", 5, ""), "hello");
        add(member(TAR_FILE, name, 0, ""), "");
        add(member(TAR_LINK, "d/l", 0, target), "");
        add(member(TAR_HARD_LINK, "h", 0, "d/file"), "");
        nstream += 2 * TAR_BLOCK;
        at = 0;
        assert_int_equal(next(piece), TAR_MEMBER);
        assert_int_equal(t.member.type, TAR_FOLDER);
        assert_string_equal(t.member.name, "d");
        assert_int_equal(t.member.mode, 0640);
        assert_int_equal(t.member.mtime, 1700000000);
        assert_int_equal(next(piece), TAR_MEMBER);
        assert_int_equal(t.member.size, 5);
        char got[8] = "";
        for (size_t n = 0; n < 5; n += t.ndata) {
            assert_int_equal(next(piece), TAR_DATA);
            memcpy(got + n, t.data, t.ndata);
        }
        assert_string_equal(got, "hello");
        assert_int_equal(next(piece), TAR_MEMBER);
        assert_string_equal(t.member.name, name);
        assert_int_equal(next(piece), TAR_MEMBER);
        assert_int_equal(t.member.type, TAR_LINK);
        assert_string_equal(t.member.target, target);
        assert_int_equal(next(piece), TAR_MEMBER);
        assert_int_equal(t.member.type, TAR_HARD_LINK);
        assert_string_equal(t.member.target, "d/file");
        assert_int_equal(next(piece), TAR_END);
        assert_true(t.ended);
    }
}

static void names_that_lead_out_are_refused(void **state)
{
    static const char *const names[] = {"../a", "a/../../b", "..", "a/..", "/etc/passwd", "a/../b", "/"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        begin();
        add(member(TAR_FILE, names[i], 0, ""), "");
        refused("leads out");
        begin();
        add(member(TAR_HARD_LINK, "fine", 0, names[i]), "");
        refused("leads out");
    }
    for (int type = 0; type < 2; type++) { /* by what stands in place of a name */
        begin();
        if (type)
            add_extra('L', "a/../../b", 10);
        else
            add_extra('x', "18 path=a/../../b\n", 18);
        add(member(TAR_FILE, "fine", 0, ""), "");
        refused("leads out");
    }
    begin(); /* a symbolic one is whoever's that makes it */
    add(member(TAR_LINK, "l", 0, "../../etc"), "");
    at = 0;
    assert_int_equal(next(100), TAR_MEMBER);
    covers("G14");
}

static void names_are_cleaned(void **state)
{
    static const struct {
        const char *is, *becomes;
    } names[] = {{"./a", "a"}, {"a//b", "a/b"}, {"././a/./b", "a/b"}, {"...", "..."}, {"..a/b..", "..a/b.."}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        begin();
        add(member(TAR_FILE, names[i].is, 0, ""), "");
        at = 0;
        assert_int_equal(next(600), TAR_MEMBER);
        assert_string_equal(t.member.name, names[i].becomes);
    }
    begin();
    add(member(TAR_FOLDER, "./", 0, ""), "");
    at = 0;
    assert_int_equal(next(600), TAR_MEMBER);
    assert_string_equal(t.member.name, "");
}

static void what_others_write_is_read(void **state)
{
    static char name[300];
    begin(); /* GNU's long name and link */
    memset(name, 'g', 200);
    add_extra('L', name, 201);
    add_extra('K', name, 201);
    add(member(TAR_LINK, "short", 0, "short"), "");
    at = 0;
    assert_int_equal(next(100), TAR_MEMBER);
    assert_string_equal(t.member.name, name);
    assert_string_equal(t.member.target, name);
    begin(); /* pax: size, a time with a fraction, what is not known, and what is of all */
    add_extra('g', "19 comment=nothing\n", 19);
    add_extra('x', "9 size=3\n23 mtime=-12.345678900\n12 what=ev\n", 44);
    uint8_t *head = add(member(TAR_FILE, "f", 0, ""), "abc");
    assert_non_null(head);
    at = 0;
    assert_int_equal(next(100), TAR_BAD); /* a length in it is wrong */
    begin();
    add_extra('x', "9 size=3\n23 mtime=-12.345678900\n", 32);
    add(member(TAR_FILE, "f", 0, ""), "abc");
    at = 0;
    assert_int_equal(next(100), TAR_MEMBER);
    assert_int_equal(t.member.size, 3);
    assert_int_equal(t.member.mtime, -12);
    begin(); /* a prefix */
    head = add(member(TAR_FILE, "f", 0, ""), "");
    memcpy(head + 345, "some/where", 10);
    sum_again(head);
    at = 0;
    assert_int_equal(next(100), TAR_MEMBER);
    assert_string_equal(t.member.name, "some/where/f");
    begin(); /* a device and a pipe are something else, and have no content */
    head = add(member(TAR_FILE, "null", 0, ""), "");
    head[156] = '3';
    sum_again(head);
    add(member(TAR_FILE, "behind", 0, ""), "");
    at = 0;
    assert_int_equal(next(100), TAR_MEMBER);
    assert_int_equal(t.member.type, TAR_OTHER);
    assert_int_equal(next(100), TAR_MEMBER);
    assert_string_equal(t.member.name, "behind");
}

static void what_is_broken_is_refused(void **state)
{
    begin();
    memset(stream, 'x', TAR_BLOCK);
    nstream = TAR_BLOCK;
    refused("no tar stream");
    begin();
    add(member(TAR_FILE, "f", 0, ""), "")[0] = 'g'; /* its sum is of another */
    refused("broken");
    begin();
    uint8_t *head = add(member(TAR_FILE, "f", 0, ""), "");
    memset(head + 124, 0xff, 12); /* a size below zero */
    sum_again(head);
    refused("number");
    begin();
    head = add(member(TAR_FILE, "f", 0, ""), "");
    memcpy(head + 124, "0000000zzzz", 11);
    sum_again(head);
    refused("number");
    begin();
    head = add(member(TAR_FILE, "f", 0, ""), "");
    head[156] = 'S';
    sum_again(head);
    refused("GNU");
    begin();
    add_extra('x', "22 GNU.sparse.major=1\n", 22);
    add(member(TAR_FILE, "f", 0, ""), "");
    refused("holes");
    begin();
    add_extra('x', "12 path=a\0b\n", 12);
    add(member(TAR_FILE, "f", 0, ""), "");
    refused("NUL");
    begin();
    head = add(member(TAR_FILE, "f", 0, ""), "");
    head[156] = 'x'; /* longer than it may be */
    memcpy(head + 124, "00000200000", 11);
    sum_again(head);
    refused("too long");
    for (const char *const *bad = (const char *const[]){"5 a=b\n", "99 a=b\n", "6 ab\n\n", "a=b\n", "4 a\n", NULL};
         *bad; bad++) {
        begin();
        add_extra('x', *bad, strlen(*bad));
        add(member(TAR_FILE, "f", 0, ""), "");
        refused("extended header");
    }
}

static void a_name_that_does_not_fit_is_not_written(void **state)
{
    static uint8_t head[TAR_HEAD_MAX];
    static struct tar_member m = {.type = TAR_FILE};
    memset(m.name, 'a', sizeof(m.name));
    assert_int_equal(tar_head(head, &m), 0);
    m.name[TAR_NAME_MAX] = '\0';
    memset(m.target, 'a', TAR_NAME_MAX);
    assert_int_not_equal(tar_head(head, &m), 0);
    m.type = TAR_OTHER;
    assert_int_equal(tar_head(head, &m), 0);
}

/* As npm's reader takes them for something else; `at`, `bytes`: put into the header of the second member. */
static void what_others_read_differently_is_refused_where_it_is_asked_for(void **state)
{
    static const struct {
        char type;
        const char *record, *name;
        size_t at, n;
        const char *bytes;
        bool odd;
    } rows[] = {
        {.name = "p/a"},
        {.type = 'x', .record = "13 path=p/bb\n", .name = "p/a"},
        {.type = 'x', .record = "14 path=p/\xc3\xa9\x62\n", .name = "p/\xc3\xa9\x62"},
        {.type = 'x', .record = "14 path=p/\xc3\xa9\x62\n", .name = "p/a", .odd = true},
        {.type = 'g', .record = "13 comment=x\n", .name = "p/a"},
        {.type = 'g', .record = "10 size=1\n", .name = "p/a", .odd = true},
        {.type = 'x', .record = "10 size=1\n", .name = "p/a", .odd = true},
        {.type = 'x', .record = "10 size=0\n", .name = "p/a"},
        {.type = 'x', .record = "27 comment=a\n13 path=p/bb\n\n", .name = "p/a", .odd = true},
        {.type = 'x', .record = "013 path=p/b\n", .name = "p/a", .odd = true},
        {.type = 'x', .record = "12 mode=777\n", .name = "p/a", .odd = true},
        {.type = 'x', .record = "14 linkpath=q\n", .name = "p/a", .odd = true},
        {.type = 'x', .record = "13 path=p/\xff\x62\n", .name = "p/a", .odd = true},
        {.type = 'L', .record = "p/long", .name = "p/a", .odd = true},
        {.type = 'X', .record = "13 path=p/bb\n", .name = "p/a", .odd = true},
        {.name = "p/a", .at = 263, .n = 2, .bytes = "01", .odd = true},
        {.name = "p/a", .at = 262, .n = 3, .bytes = " 00", .odd = true},
        {.name = "p/a", .at = 157, .n = 1, .bytes = "x", .odd = true},
        {.name = "p/a", .at = 3, .n = 3, .bytes = "\0\nb", .odd = true},
        {.name = "p/a", .at = 346, .n = 2, .bytes = "\nb", .odd = true},
        {.name = "p/a", .at = 475, .n = 1, .bytes = "b", .odd = true},
        {.name = "p/a", .at = 124, .n = 12, .bytes = "\0\0\0\0\0\0\0\0\0\0\0", .odd = true},
        {.name = "p/a", .at = 124, .n = 12, .bytes = "000000000000", .odd = true},
        {.name = "./p/a", .odd = true},
        {.name = "p//a", .odd = true},
        {.name = "p/./a", .odd = true},
        {.name = "p\\a", .odd = true},
    };

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        size_t k = i / 2;
        begin();
        t.strict = i % 2 != 0;
        if (rows[k].type)
            add_extra(rows[k].type, rows[k].record, strlen(rows[k].record));
        uint8_t *head = add(member(TAR_FILE, rows[k].name, 0, ""), "");
        if (rows[k].n)
            memcpy(head + rows[k].at, rows[k].bytes, rows[k].n);
        sum_again(head);
        nstream += 2 * TAR_BLOCK;
        at = 0;
        enum tar_got got;
        while ((got = next(100)) == TAR_MEMBER || got == TAR_DATA)
            ;
        if (t.strict && (t.odd != rows[k].odd || (got == TAR_BAD) != rows[k].odd))
            fail_msg("row %zu: %s", k, t.why ? t.why : "taken");
        assert_true(t.strict || !t.odd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(names_that_lead_out_are_refused),
        cmocka_unit_test(names_are_cleaned),
        cmocka_unit_test(what_others_write_is_read),
        cmocka_unit_test(what_is_broken_is_refused),
        cmocka_unit_test(a_name_that_does_not_fit_is_not_written),
        cmocka_unit_test(what_others_read_differently_is_refused_where_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
