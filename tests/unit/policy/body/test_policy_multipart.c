/* Forms with files: fields and files by name, and heads of parts that are understood in one way only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/policy/policy_kit.h"

#define TYPE                         "Content-Type: multipart/form-data; boundary=b1\n"
#define TRY(k, v)                    kit_rows(k, v, sizeof(v) / sizeof((v)[0]))
#define CD                           "Content-Disposition: form-data; "
#define PART(h, v)                   "--b1\r\n" h "\r\n\r\n" v "\r\n"
#define F(name, v)                   PART(CD "name=\"" name "\"", v)
#define FILE_OF(name, file, more, v) PART(CD "name=\"" name "\"; filename=\"" file "\"\r\nContent-Type: " more, v)
#define END                          "--b1--\r\n"
#define ONE(h)                       PART(h, "eur") END
#define ALLOWED(r)                   VERDICT_ALLOW, "rule", r
#define DENIED(r)                    VERDICT_DENY, "rule", r
#define NO_RULE                      VERDICT_DENY, "no-rule", ""
#define OPEN                         VERDICT_DENY, "unclassified", ""
#define A                            "https://a.test/"
#define D                            "https://d.test/"
#define U                            "https://u.test/"

static const char rules[] =
    "version: 1\n"
    "rules:\n"
    "  - { id: pay, match: { host: a.test, path: /, multipart: [{ field: currency, equals: eur }, { field: amount, "
    "int_lte: 50 }, { file: receipt, absent: true }] }, decide: allow }\n"
    "  - { id: picture, match: { host: u.test, path: /, multipart: [{ file: picture, glob: [\"*.png\", \"*.jpg\"] }, "
    "{ content_type: picture, glob: \"image/*\" }] }, decide: allow }\n"
    "  - { id: any, match: { host: d.test }, decide: allow }\n"
    "  - { id: no-usd, match: { host: d.test, path: /, multipart: [{ field: currency, equals: usd }] }, decide: deny "
    "}\n"
    "  - { id: no-exe, match: { host: d.test, path: /f, multipart: [{ file: doc, glob: \"*.exe\" }] }, decide: deny "
    "}\n"
    "  - { id: no-html, match: { host: d.test, path: /t, multipart: [{ content_type: doc, equals: text/html }] }, "
    "decide: deny }\n"
    "  - { id: no-doc, match: { host: d.test, path: /d, multipart: [{ file: doc, exists: true }] }, decide: deny }\n"
    "  - { id: only-doc, match: { host: d.test, path: /o, multipart: [{ file: doc, absent: true }] }, decide: deny "
    "}\n";

static void load(struct kit *k)
{
    if (!kit_load(k, rules, NULL))
        fail_msg("%s: %s", k->e.text, k->problems[0]);
}

static void an_allow_means_what_is_written(void **state)
{
    static const struct kit_row rows[] = {
        {"POST", A, TYPE, F("currency", "eur") F("amount", "5") END, ALLOWED("pay")},
        {"POST", A, TYPE, F("amount", "50") F("currency", "eur") F("note", "x\r\ny") END, ALLOWED("pay")},
        {"POST", A, TYPE, F("currency", "eur") F("amount", "51") END, NO_RULE},
        {"POST", A, TYPE, F("currency", "eur") F("amount", "5.0") END, NO_RULE},
        {"POST", A, TYPE, F("currency", "Eur") F("amount", "5") END, NO_RULE},
        {"POST", A, TYPE, F("currency", "eur ") F("amount", "5") END, NO_RULE},
        {"POST", A, TYPE, F("currency", "eur") END, NO_RULE},
        {"POST", A, TYPE, F("currency", "eur") F("amount", "5") F("amount", "6") END, ALLOWED("pay")},
        {"POST", A, TYPE, F("currency", "eur") F("amount", "5") F("amount", "60") END, NO_RULE},
        {"POST", A, TYPE, END, NO_RULE},
        {"POST", A, TYPE, F("currency", "eur") F("amount", "5") FILE_OF("receipt", "r.png", "image/png", "x") END,
         NO_RULE},
        /* another spelling of a name, another kind of part: nobody knows */
        {"POST", A, TYPE, F("currency", "eur") F("Currency", "usd") F("amount", "5") END, OPEN},
        {"POST", A, TYPE, F("currency", "eur") F("currency[]", "usd") F("amount", "5") END, OPEN},
        {"POST", A, TYPE, F("currency", "eur") F("amount", "5") F("%61mount", "500") END, OPEN},
        {"POST", A, TYPE, F("currency", "eur") F("amount", "5") FILE_OF("amount", "a.txt", "text/plain", "500") END,
         OPEN},
        {"POST", A, TYPE,
         F("currency", "eur") F("amount", "5")
             PART(CD "name=\"amount\"\r\nContent-Type: application/octet-stream", "500") END,
         OPEN},
        {"POST", A, TYPE, F("currency", "eur") F("amount", "5") F("receipt", "x") END, OPEN},
        {"POST", A "?currency=usd", TYPE, F("currency", "eur") F("amount", "5") END, OPEN},
        {"POST", A "?other=usd", TYPE, F("currency", "eur") F("amount", "5") END, ALLOWED("pay")},
        {"POST", A, "Content-Type: application/x-www-form-urlencoded\n", "currency=eur&amount=5", NO_RULE},
        {"POST", A, "Content-Type: application/json\n", "{\"currency\":\"eur\",\"amount\":5}", NO_RULE},
        {"POST", A, NULL, NULL, NO_RULE},
    };
    struct kit k;
    (void)state;
    load(&k);
    TRY(&k, rows);
    kit_covered("B34 B36");
    kit_free(&k);
}

static void a_deny_means_any_spelling(void **state)
{
    static const struct kit_row rows[] = {
        {"POST", D, TYPE, F("currency", "eur") END, ALLOWED("any")},
        {"POST", D, TYPE, F("currency", "usd") END, DENIED("no-usd")},
        {"POST", D, TYPE, F("currency", "USD") END, DENIED("no-usd")},
        {"POST", D, TYPE, F("currency", " usd") END, DENIED("no-usd")},
        {"POST", D, TYPE, F("currency", "%75sd") END, DENIED("no-usd")},
        {"POST", D, TYPE, F("currency", "eur") F("currency", "usd") END, DENIED("no-usd")},
        {"POST", D, TYPE, F("currency", "usd") F("currency", "eur") END, DENIED("no-usd")},
        {"POST", D, TYPE, F("Currency", "usd") END, OPEN},
        {"POST", D, TYPE, FILE_OF("currency", "x", "text/plain", "usd") END, OPEN},
        {"POST", D, TYPE, END, ALLOWED("any")},
        {"POST", D, "Content-Type: application/x-www-form-urlencoded\n", "currency=usd", OPEN},
        {"POST", D, "Content-Type: application/json\n", "{}", OPEN},
        {"POST", D, "Content-Type: multipart/mixed; boundary=b1\n", F("currency", "usd") END, OPEN},
        {"GET", D, NULL, NULL, ALLOWED("any")},
        {"POST", D "d", TYPE, FILE_OF("doc", "a.txt", "text/plain", "x") END, DENIED("no-doc")},
        {"POST", D "d", TYPE, FILE_OF("doc", "", "application/octet-stream", "") END, DENIED("no-doc")},
        {"POST", D "d", TYPE, FILE_OF("other", "a.txt", "text/plain", "x") END, ALLOWED("any")},
        {"POST", D "o", TYPE, FILE_OF("doc", "a.txt", "text/plain", "x") END, ALLOWED("any")},
        {"POST", D "o", TYPE, FILE_OF("doc", "", "application/octet-stream", "") END, DENIED("only-doc")},
        {"POST", D "o", TYPE, END, DENIED("only-doc")},
        {"POST", D "o", NULL, NULL, DENIED("only-doc")},
    };
    struct kit k;
    (void)state;
    load(&k);
    TRY(&k, rows);
    kit_covered("B34 B36");
    kit_free(&k);
}

static void files_by_name_and_type(void **state)
{
    static const struct kit_row rows[] = {
        {"POST", U, TYPE, FILE_OF("picture", "a.png", "image/png", "\x89PNG\x01\xff") END, ALLOWED("picture")},
        {"POST", U, TYPE, FILE_OF("picture", "a.png", "Image/PNG", "x") END, ALLOWED("picture")},
        {"POST", U, TYPE, FILE_OF("picture", "\xc3\xa4.png", "image/png", "x") F("note", "n") END,
         ALLOWED("picture")},
        {"POST", U, TYPE, FILE_OF("picture", "a.png", "text/html", "x") END, NO_RULE},
        {"POST", U, TYPE, FILE_OF("picture", "a.exe", "image/png", "x") END, NO_RULE},
        {"POST", U, TYPE, FILE_OF("picture", "a.exe/.png", "image/png", "x") END, NO_RULE},
        {"POST", U, TYPE, FILE_OF("picture", "a.exe%00.png", "image/png", "x") END, NO_RULE},
        {"POST", U, TYPE, PART(CD "name=\"picture\"; filename=\"a.png\"", "x") END, NO_RULE},
        {"POST", U, TYPE,
         FILE_OF("picture", "a.png", "image/png", "x") FILE_OF("picture", "a.exe", "image/png", "x") END, NO_RULE},
        {"POST", U, TYPE, F("picture", "a.png") END, NO_RULE},
        {"POST", U, TYPE, PART(CD "name=\"picture\"\r\nContent-Type: image/png", "a.png") END, OPEN},
        {"POST", U, TYPE,
         PART(CD "name=\"picture\"; filename=\"a b.png\"; filename*=UTF-8''a%20b.png\r\nContent-Type: image/png", "x")
             END,
         ALLOWED("picture")},
        {"POST", U, TYPE,
         PART(CD "name=\"picture\"; filename=\"a.png\"; filename*=UTF-8''a.exe\r\nContent-Type: image/png", "x") END,
         OPEN},
        {"POST", U, TYPE, PART(CD "name=\"picture\"; filename*=UTF-8''a.png\r\nContent-Type: image/png", "x") END,
         OPEN},
        {"POST", D "f", TYPE, FILE_OF("doc", "a.txt", "text/plain", "x") END, ALLOWED("any")},
        {"POST", D "f", TYPE, FILE_OF("doc", "a.exe", "text/plain", "x") END, DENIED("no-exe")},
        {"POST", D "f", TYPE, FILE_OF("doc", "A.EXE", "text/plain", "x") END, DENIED("no-exe")},
        {"POST", D "f", TYPE, FILE_OF("doc", "a.exe.", "text/plain", "x") END, OPEN},
        {"POST", D "f", TYPE, FILE_OF("doc", "a.exe ", "text/plain", "x") END, OPEN},
        {"POST", D "f", TYPE, FILE_OF("doc", "a.exe::$DATA", "text/plain", "x") END, OPEN},
        {"POST", D "f", TYPE, FILE_OF("doc", "a/b.txt", "text/plain", "x") END, OPEN},
        {"POST", D "f", TYPE,
         FILE_OF("doc",
                 "a\xef\xbc\x8f"
                 "b.txt",
                 "text/plain", "x") END,
         OPEN},
        {"POST", D "f", TYPE, FILE_OF("doc", "a.%65xe", "text/plain", "x") END, OPEN},
        {"POST", D "f", TYPE, F("doc", "a.exe") END, OPEN},
        {"POST", D "t", TYPE, FILE_OF("doc", "a", "text/plain", "x") END, ALLOWED("any")},
        {"POST", D "t", TYPE, FILE_OF("doc", "a", "text/html", "x") END, DENIED("no-html")},
        {"POST", D "t", TYPE, FILE_OF("doc", "a", "TEXT/HTML; charset=utf-8", "x") END, DENIED("no-html")},
        {"POST", D "t", TYPE, PART(CD "name=\"doc\"; filename=\"a\"", "x") END, OPEN},
    };
    struct kit k;
    (void)state;
    load(&k);
    TRY(&k, rows);
    kit_covered("B36");
    kit_free(&k);
}

/* Every one of these is currency=eur to some server and something else, or nothing, to another. */
static const char *const bodies[] = {
    "--b1--\r\n\r\n",
    "\r\n" F("currency", "eur") END,
    "before\r\n" F("currency", "eur") END,
    F("currency", "eur") END "behind",
    F("currency", "eur") "--b1-- \r\n",
    F("currency", "eur") "--b1\r\n",
    F("currency", "eur"),
    F("currency", "eur") END F("currency", "usd") END,
    F("currency", "eur") "--b12\r\n" CD "name=\"currency\"\r\n\r\nusd\r\n" END,
    "--b1\n" CD "name=\"currency\"\n\neur\n--b1--\n",
    "--b1\r\n" CD "name=\"currency\"\n\neur\r\n" END,
    "--b1\r\n" CD "name=\"currency\"\r\n\neur\r\n" END,
    "--b1 \r\n" CD "name=\"currency\"\r\n\r\neur\r\n" END,
    PART(CD "name=\"currency\"", "eur\n--b1\n" CD "name=\"currency\"\n\nusd") END,
    PART(CD "name=\"currency\"", "eur\r\n--b1x") END,
    "--b1\r\n\r\neur\r\n" END,
    "--b1\r\n" CD "name=\"currency\"\r\neur\r\n" END,
    ONE("Content-Type: text/plain"),
    ONE("Content-Disposition: form-data"),
    ONE("Content-Disposition: attachment; name=\"currency\""),
    ONE("Content-Disposition: Form-Data; name=\"currency\""),
    ONE("Content-Disposition : form-data; name=\"currency\""),
    ONE(CD "name=\"currency\"\r\n" CD "name=\"amount\""),
    ONE(CD "\r\n name=\"currency\""),
    ONE(CD "name=\"currency\"\r\nX-Other: 1"),
    ONE(CD "NAME=\"currency\""),
    ONE(CD "name =\"currency\""),
    ONE(CD "name=\"currency\"; name=\"amount\""),
    ONE(CD "name=\"currency\"; other=1"),
    ONE(CD "name=\"currency\";"),
    ONE(CD "name=\"currency"),
    ONE(CD "name=\"curr\\\"ency\""),
    ONE(CD "name=\"curr\\ency\""),
    ONE(CD "name=\"currency\"x"),
    ONE(CD "name='currency'"),
    ONE(CD "name=\"filename=currency\""),
    ONE(CD "name="),
    ONE(CD "name=a b"),
    ONE(CD "name=\"a;b\""),
    ONE(CD "name=\"=?utf-8?q?currency?=\""),
    ONE(CD "name*=utf-8''currency"),
    ONE(CD "name=\"x\"; name*=utf-8''currency"),
    ONE(CD "name*0=\"curr\"; name*1=\"ency\""),
    ONE(CD "filename=\"a\"; name=\"currency\""),
    ONE(CD "name=\"currency\"; filename=\"a\"; filename=\"b\""),
    ONE(CD "name=\"currency\"; filename=\"a\\\\b\""),
    ONE(CD "name=\"curr\xff"
           "ency\""),
    ONE(CD "name=\"_charset_\""),
    ONE(CD "name=\"currency\"\r\nContent-Type: text/plain; charset=utf-7"),
    ONE(CD "name=\"currency\"\r\nContent-Type: text/plain; charset=utf-16le"),
    ONE(CD "name=\"currency\"\r\nContent-Type: text/plain; other=1"),
    ONE(CD "name=\"currency\"\r\nContent-Type: text"),
    ONE(CD "name=\"currency\"\r\nContent-Type:\ttext/plain"),
    ONE(CD "name=\"other\"; filename=\"=?utf-8?q?a?=\""),
    ONE(CD "name=\"currency\"\r\nContent-Type: text/plain\r\nContent-Type: text/plain"),
    ONE(CD "name=\"other\"\r\nContent-Type: multipart/mixed; boundary=c"),
    ONE(CD "name=\"other\"\r\nContent-Type: multipart/form-data; boundary=c"),
    ONE(CD "name=\"other\"\r\nContent-Type: message/rfc822"),
    ONE(CD "name=\"currency\"\r\nContent-Transfer-Encoding: base64"),
    ONE(CD "name=\"currency\"\r\nContent-Transfer-Encoding: quoted-printable"),
    ONE(CD "name=\"currency\"\r\nContent-Length: 2"),
    PART(CD "name=\"currency\"", "eu\xff") END,
    PART(CD "name=\"other\"\r\nContent-Type: text/html", "eu\xff") END,
};

static const char *const good[] = {
    ONE(CD "name=\"currency\""),
    ONE(CD "name=currency"),
    ONE("content-disposition:form-data;name=\"currency\""),
    ONE(CD "name=\"currency\"\r\nContent-Type: text/plain"),
    ONE(CD "name=\"currency\"\r\nContent-Type: text/plain; charset=UTF-8"),
    ONE("Content-Type: text/plain\r\n" CD "name=\"currency\"\r\nContent-Transfer-Encoding: 8bit"),
    ONE(CD "name=\"currency\"\r\nContent-Length: 3"),
    PART(CD "name=\"currency\"", "eur") "--b1--",
    "--b1--",
    PART(CD "name=\"currency\"", "") F("currency", "\r\n\r\n--b\r\n--x--\n\n") END,
};

static void what_is_read_in_two_ways_is_not_read(void **state)
{
    struct kit k;
    (void)state;
    load(&k);
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        const struct decision *d = kit_judge(&k, "sb", "POST", D, TYPE, bodies[i], strlen(bodies[i]), true);
        if (strcmp(d->code, "unclassified") != 0)
            fail_msg("%zu: %s: %s", i, bodies[i], d->code);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        const struct decision *d = kit_judge(&k, "sb", "POST", D, TYPE, good[i], strlen(good[i]), true);
        if (d->verdict != VERDICT_ALLOW)
            fail_msg("%zu: %s: %s, %s", i, good[i], d->code, k.ambiguity.word);
    }
    static const char zero[] = PART(CD "name=\"currency\"", "e\0ur") END;
    const struct decision *d = kit_judge(&k, "sb", "POST", D, TYPE, zero, sizeof(zero) - 1, true);
    assert_string_equal(d->code, "unclassified");
    kit_covered("B36");
    kit_free(&k);
}

static void the_type_names_one_plain_boundary(void **state)
{
    static const struct {
        const char *type;
        bool good;
    } types[] = {
        {"multipart/form-data; boundary=b1", true},
        {"Multipart/Form-Data; Boundary=b1", true},
        {"multipart/form-data;boundary=\"b1\"", true},
        {"multipart/form-data; charset=utf-8; boundary=b1", true},
        {"multipart/form-data; boundary=b1; charset=UTF-8", true},
        {"multipart/form-data", false},
        {"multipart/form-data; boundary=", false},
        {"multipart/form-data; boundary=b", false},
        {"multipart/form-data; boundary=b1; boundary=b1", false},
        {"multipart/form-data; boundary=b2; boundary=b1", false},
        {"multipart/form-data; boundary*=b1", false},
        {"multipart/form-data; boundary*0=b; boundary*1=1", false},
        {"multipart/form-data; boundary=b1,b2", false},
        {"multipart/form-data; boundary='b1'", false},
        {"multipart/form-data; boundary=\"b1", false},
        {"multipart/form-data; boundary=\"b\\1\"", false},
        {"multipart/form-data; boundary=b1; charset=utf-7", false},
        {"multipart/form-data; boundary=b1; x=1", false},
        {"multipart/form-data; boundary=b1, application/json", false},
        {"multipart/form-data, application/json; boundary=b1", false},
        {"multipart/mixed; boundary=b1", false},
        {"multipart/related; boundary=b1", false},
        {"form-data; boundary=b1", false},
    };
    struct kit k;
    (void)state;
    load(&k);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        char field[200];
        snprintf(field, sizeof(field), "Content-Type: %s\n", types[i].type);
        static const char body[] = F("currency", "eur") END;
        const struct decision *d = kit_judge(&k, "sb", "POST", D, field, body, sizeof(body) - 1, true);
        if ((d->verdict == VERDICT_ALLOW) != types[i].good)
            fail_msg("%s: %s, %s", types[i].type, d->code, k.ambiguity.word);
    }
    static const struct kit_row rows[] = {
        {"POST", D, TYPE TYPE, F("currency", "eur") END, OPEN},
        {"POST", D, TYPE "Content-Encoding: gzip\n", F("currency", "eur") END, OPEN},
        {"POST", D, "Content-Type: application/json\n", F("currency", "eur") END, OPEN},
    };
    TRY(&k, rows);
    kit_covered("B34 B36");
    kit_free(&k);
}

static void parts_and_heads_have_their_limits(void **state)
{
    struct kit k;
    struct dynbuf b;
    (void)state;
    load(&k);
    for (size_t parts = 1000; parts <= 1001; parts++) {
        dynbuf_init(&b, 1 << 20);
        for (size_t i = 0; i < parts; i++)
            assert_int_equal(dynbuf_addf(&b, F("f%zu", "x"), i), 0);
        assert_int_equal(dynbuf_addf(&b, END), 0);
        const struct decision *d = kit_judge(&k, "sb", "POST", D, TYPE, (const char *)b.p, b.n, true);
        assert_int_equal(d->verdict, parts == 1000 ? VERDICT_ALLOW : VERDICT_DENY);
        assert_string_equal(k.ambiguity.word, parts == 1000 ? "" : "body-large");
        dynbuf_free(&b);
    }
    for (size_t pad = 0; pad <= 4096; pad += 4096) {
        dynbuf_init(&b, 1 << 20);
        assert_int_equal(dynbuf_addf(&b, "--b1\r\n" CD "name=\"currency\"%*s\r\n\r\neur\r\n" END, (int)pad, ""), 0);
        const struct decision *d = kit_judge(&k, "sb", "POST", D, TYPE, (const char *)b.p, b.n, true);
        assert_int_equal(d->verdict, pad == 0 ? VERDICT_ALLOW : VERDICT_DENY);
        assert_string_equal(k.ambiguity.word, pad == 0 ? "" : "bad-multipart");
        dynbuf_free(&b);
    }
    kit_free(&k);
}

static void a_reason_names_the_part(void **state)
{
    struct kit k;
    static const char body[] = F("currency", "eur") FILE_OF("currency", "a", "text/plain", "usd") END;
    (void)state;
    load(&k);
    (void)kit_judge(&k, "sb", "POST", D, TYPE, body, sizeof(body) - 1, true);
    assert_string_equal(k.ambiguity.word, "field-spelling");
    assert_true(span_eq(k.ambiguity.asked, SPAN("field currency")));
    assert_string_equal(k.ambiguity.told, "ambiguous");
    static const char file[] = FILE_OF("doc", "a/b", "text/plain", "x") END;
    (void)kit_judge(&k, "sb", "POST", D "f", TYPE, file, sizeof(file) - 1, true);
    assert_string_equal(k.ambiguity.word, "part-name");
    (void)kit_judge(&k, "sb", "POST", D, TYPE, "x", 1, true);
    assert_string_equal(k.ambiguity.word, "bad-multipart");
    assert_string_equal(k.ambiguity.told, "bad-multipart");
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allow_means_what_is_written),
        cmocka_unit_test(a_deny_means_any_spelling),
        cmocka_unit_test(files_by_name_and_type),
        cmocka_unit_test(what_is_read_in_two_ways_is_not_read),
        cmocka_unit_test(the_type_names_one_plain_boundary),
        cmocka_unit_test(parts_and_heads_have_their_limits),
        cmocka_unit_test(a_reason_names_the_part),
    };
    return cmocka_run_group_tests_name("policy multipart", tests, NULL, NULL);
}
