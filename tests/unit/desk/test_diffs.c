/* Diffs of pushes and packages: what is taken for one, whose turn it is, and what a yes waits for. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web-approval/deciding/deciding.h"
#include "web-approval/diffs/diffs.h"

#define A40           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B40           "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z40           "0000000000000000000000000000000000000000"
#define REF(old, new) old " " new " refs/heads/main"
#define CAPS          "\0report-status side-band-64k agent=git/2"

static struct desk desk;
static const uint8_t digests[2][DIGEST_BYTES] = {{1}, {2}};

static struct span lines(struct dynbuf *b, struct span first, struct span rest)
{
    dynbuf_init(b, 4096);
    (void)dynbuf_addf(b, "%04zx", first.n + 4);
    (void)dynbuf_add(b, first);
    (void)dynbuf_add(b, rest);
    return dynbuf_span(b);
}

static void the_commands_of_a_push(void **state)
{
    struct span one = SPAN(REF(A40, B40) CAPS), gone = SPAN(REF(A40, Z40) CAPS);
    const struct {
        struct span first, rest;
        bool good;
        size_t refs;
        bool packs;
    } rows[] = {
        {one, SPAN("0000PACKxxxx"), true, 1, true},
        {gone, SPAN("0000"), true, 1, false},
        {one, SPAN("0000"), false, 0, false}, /* no pack */
        {one, SPAN(""), false, 0, false},     /* no end */
        {one, SPAN("0000JUNK"), false, 0, false},
        {one, SPAN("0003"), false, 0, false},
        {one, SPAN("ffff"), false, 0, false},
        {SPAN("shallow " A40), SPAN("0000"), false, 0, false},
        {SPAN(REF(A40, "bb") CAPS), SPAN("0000PACK"), false, 0, false},
        {SPAN("XX" REF(A40, B40)), SPAN("0000PACK"), false, 0, false},
        {SPAN(REF(A40, B40) "\0push-options"), SPAN("00000005x0000PACK"), true, 1, true},
        {SPAN(REF(A40, B40) "\0push-options"), SPAN("0000PACK"), false, 0, false},
    };
    struct dynbuf b;
    struct push p;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct span body = lines(&b, rows[i].first, rows[i].rest);
        const char *why = push_read(body, &p);
        if ((why == NULL) != rows[i].good)
            fail_msg("row %zu: %s", i, why ? why : "taken");
        if (!why) {
            assert_int_equal(p.n, rows[i].refs);
            assert_int_equal(p.pack_at != 0, rows[i].packs);
            assert_true(!rows[i].packs || span_starts(span_from(body, p.pack_at), SPAN("PACK")));
        }
        dynbuf_free(&b);
    }
}

static void more_refs_than_are_compared(void **state)
{
    struct dynbuf b;
    struct push p;

    dynbuf_init(&b, 8192);
    for (int i = 0; i < PUSH_REFS + 1; i++)
        (void)dynbuf_addf(&b, "%04x" Z40 " " A40 " refs/heads/%02d", 4 + 40 + 1 + 40 + 1 + 13, i);
    (void)dynbuf_add(&b, SPAN("0000PACK"));
    assert_non_null(push_read(dynbuf_span(&b), &p));
    dynbuf_free(&b);
}

#define FILE_OF(more) "{\"path\":\"a\",\"how\":\"M\",\"old_mode\":\"100644\",\"new_mode\":\"100644\"," more "}"
#define TEXT          "\"kind\":\"text\",\"patch\":\"@@ -1 +1 @@\\n-a\\n+b\\n\",\"added\":1,\"removed\":1"
#define RESULT(files, total)                                                                                         \
    "{\"version\":1,\"refs\":[{\"state\":\"compared\",\"base\":\"old\",\"base_id\":\"" A40                           \
    "\",\"commits\":[],\"commits_total\":0,\"dropped\":0,\"files\":[" files "],\"files_total\":" total               \
    ",\"files_cut\":false}],\"hidden\":0}"
#define WHOLE RESULT(FILE_OF(TEXT ",\"cut\":false"), "1")

static void what_is_taken_for_a_result(void **state)
{
    static const struct {
        const char *json;
        int is;
        bool complete;
    } rows[] = {
        {WHOLE, 1, true},
        {RESULT(FILE_OF(TEXT ",\"cut\":true"), "1"), 1, false},
        {RESULT(FILE_OF(TEXT ",\"cut\":false"), "2"), 1, false},
        {RESULT(FILE_OF("\"kind\":\"text\""), "1"), 1, false},
        {RESULT(FILE_OF("\"kind\":\"large\""), "1"), 1, false},
        {RESULT(FILE_OF("\"kind\":\"unknown\""), "1"), 1, false},
        {RESULT(FILE_OF("\"kind\":\"binary\""), "1"), 1, true},
        {RESULT(FILE_OF("\"kind\":\"module\""), "1"), 1, true},
        {RESULT(FILE_OF("\"kind\":\"same\",\"path_cut\":true"), "1"), 1, false},
        {RESULT("", "0"), 1, true},
        {RESULT(FILE_OF("\"kind\":\"binary\",\"runs\":true"), "1"), 1, false},
        {"{\"version\":1,\"refs\":[{\"state\":\"compared\",\"files\":[],\"files_total\":0}],\"hidden\":1}", 1, false},
        {"{\"version\":1,\"refs\":[{\"state\":\"compared\",\"files\":[],\"files_total\":0}]}", 1, false},
        {"{\"version\":1,\"refs\":[{\"state\":\"not-there\"}],\"hidden\":0}", 1, false},
        {"{\"version\":1,\"refs\":[{\"state\":\"deleted\"}]}", 1, true},
        {"{\"version\":1,\"refs\":[{\"state\":\"compared\"}]}", 1, false},
        {"{\"version\":1,\"refs\":[{\"state\":\"no-old\"}]}", 1, false},
        {"{\"version\":1,\"refs\":[{\"state\":\"no-commit\"}]}", 1, false},
        {"{\"version\":1,\"refs\":[{\"state\":\"deleted\"},{\"state\":\"deleted\"}]}", -1,
         false}, /* of another push */
        {"{\"version\":1,\"error\":\"denied\"}", 0, false},
        {"{\"version\":1,\"error\":\"words of a sandbox\"}", -1, false},
        {"{\"version\":1,\"refs\":[{\"state\":\"deleted\",\"more\":1}]}", -1, false},
        {"{\"version\":1,\"refs\":[{\"state\":\"deleted\"}],\"error\":\"denied\"}", -1, false},
        {RESULT(FILE_OF("\"kind\":\"text\",\"old_module\":\"x\""), "1"), -1, false},
        {RESULT(FILE_OF("\"kind\":\"<b>\""), "1"), -1, false},
        {"{\"version\":2,\"error\":\"denied\"}", -1, false},
        {"not json", -1, false},
        {"", -1, false},
    };
    const char *why;
    bool again;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int is = diff_result(span_str(rows[i].json), DIFF_OF_PUSH, 1, &why, &again);
        if (is != rows[i].is || (why == NULL) != rows[i].complete)
            fail_msg("row %zu: %d, %s", i, is, why ? why : "complete");
    }
}

static void more_files_than_the_schema_takes(void **state)
{
    struct dynbuf b;
    const char *why;
    bool again;

    for (int n = 300; n <= 301; n++) {
        dynbuf_init(&b, 1 << 20);
        (void)dynbuf_add(&b, SPAN("{\"version\":1,\"refs\":[{\"state\":\"compared\",\"files\":["));
        for (int i = 0; i < n; i++)
            (void)dynbuf_addf(&b, "%s" FILE_OF("\"kind\":\"same\""), i ? "," : "");
        (void)dynbuf_addf(&b, "],\"files_total\":%d,\"files_cut\":false}]}", n);
        assert_true(dynbuf_ok(&b));
        assert_int_equal(diff_result(dynbuf_span(&b), DIFF_OF_PUSH, 1, &why, &again), n == 300 ? 1 : -1);
        dynbuf_free(&b);
    }
}

#define PUBLISHED(more, files, total)                                                                                \
    "{\"version\":1,\"package\":{\"state\":\"compared\",\"name\":\"p\",\"new\":\"1.1.0\",\"tag\":\"latest\","        \
    "\"base\":\"tag\",\"old\":\"1.0.0\",\"hash\":\"sha512\"," more ",\"files\":[" files "],\"files_total\":" total   \
    ",\"files_cut\":false}}"
#define GOOD "\"sent\":\"good\""
#define FACTS                                                                                                        \
    GOOD ",\"facts\":[{\"in\":\"scripts\",\"name\":\"postinstall\",\"how\":\"A\",\"new\":\"x\"}],\"facts_total\":1"
#define SAME FILE_OF("\"kind\":\"same\"")

static void what_is_taken_for_a_result_of_a_package(void **state)
{
    static const struct {
        const char *json;
        int is;
        bool complete;
    } rows[] = {
        {PUBLISHED(FACTS, SAME, "1"), 1, true},
        {PUBLISHED(GOOD ",\"facts\":[],\"facts_total\":0", "", "0"), 1, true},
        {PUBLISHED(GOOD, SAME, "1"), 1, false},                                   /* no facts */
        {PUBLISHED(GOOD ",\"facts\":[],\"facts_total\":1", SAME, "1"), 1, false}, /* not all of them */
        {PUBLISHED("\"sent\":\"wrong\",\"facts\":[],\"facts_total\":0", SAME, "1"), 1, false},
        {PUBLISHED("\"sent\":\"none\",\"facts\":[],\"facts_total\":0", SAME, "1"), 1, false},
        {PUBLISHED(GOOD ",\"facts\":[{\"in\":\"request\",\"name\":\"bin: x\",\"how\":\"A\"}],\"facts_total\":1", SAME,
                   "1"),
         1, false}, /* and the package does not */
        {PUBLISHED(FACTS, SAME, "2"), 1, false},
        {PUBLISHED(FACTS, FILE_OF("\"kind\":\"large\""), "1"), 1, false},
        {PUBLISHED(FACTS, FILE_OF("\"kind\":\"binary\",\"runs\":true"), "1"), 1, false},
        {PUBLISHED(FACTS, FILE_OF(TEXT ",\"cut\":false,\"dense\":true"), "1"), 1, true},
        {"{\"version\":1,\"package\":{\"state\":\"first\",\"name\":\"p\",\"new\":\"1\",\"tag\":\"\"," FACTS
         ",\"files\":[],\"files_total\":0,\"files_cut\":false}}",
         1, true},
        {"{\"version\":1,\"package\":{\"state\":\"compared\",\"name\":\"p\",\"new\":\"1\",\"tag\":\"\"," FACTS
         ",\"files\":[],\"files_total\":0,\"files_cut\":false}}",
         1, false}, /* with what? */
        {"{\"version\":1,\"package\":{\"state\":\"unread\",\"unread_old\":\"odd\",\"name\":\"p\",\"new\":\"1\","
         "\"tag\":\"\","
         "\"base\":\"tag\",\"old\":\"0\",\"hash\":\"sha512\"," FACTS
         ",\"files\":[],\"files_total\":0,\"files_cut\":false}}",
         1, true}, /* all of it is shown, as new */
        {"{\"version\":1,\"package\":{\"state\":\"unread\",\"unread_old\":\"manifest\",\"name\":\"p\",\"new\":\"1\","
         "\"tag\":\"\",\"base\":\"tag\",\"old\":\"0\",\"hash\":\"sha512\"," FACTS
         ",\"files\":[],\"files_total\":0,\"files_cut\":false}}",
         1, true},
        {"{\"version\":1,\"package\":{\"state\":\"unread\",\"unread_old\":\"gone\",\"name\":\"p\",\"new\":\"1\","
         "\"tag\":\"\",\"base\":\"tag\",\"old\":\"0\",\"hash\":\"none\"," FACTS
         ",\"files\":[],\"files_total\":0,\"files_cut\":false}}",
         1, true},
        {"{\"version\":1,\"package\":{\"state\":\"unread\",\"unread_old\":\"odd\",\"name\":\"p\",\"new\":\"1\","
         "\"tag\":\"\"," FACTS ",\"files\":[],\"files_total\":0,\"files_cut\":false}}",
         1, false}, /* which one? */
        {PUBLISHED(FACTS, FILE_OF("\"kind\":\"same\",\"runs\":true"), "1"), 1, false},
        {PUBLISHED(FACTS ",\"unread\":\"request\",\"unread_key\":\"bin\"", SAME, "1"), 1, false},
        {PUBLISHED(FACTS ",\"maintainers\":[]", SAME, "1"), -1, false},
        {PUBLISHED(GOOD ",\"facts\":[{\"in\":\"<b>\",\"name\":\"x\",\"how\":\"A\"}],\"facts_total\":1", SAME, "1"),
         -1, false},
        {"{\"version\":1,\"error\":\"integrity\"}", 0, false},
        {WHOLE, -1, false}, /* of a push */
    };
    const char *why;
    bool again;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int is = diff_result(span_str(rows[i].json), DIFF_OF_PACKAGE, 0, &why, &again);
        if (is != rows[i].is || (why == NULL) != rows[i].complete)
            fail_msg("row %zu: %d, %s", i, is, why ? why : "complete");
    }
    assert_int_equal(diff_result(SPAN(PUBLISHED(FACTS, SAME, "1")), DIFF_OF_PUSH, 1, &why, &again), -1);
    assert_int_equal(diff_result(SPAN(PUBLISHED(FACTS, SAME, "1")), DIFF_OF_PUSH, 0, &why, &again), -1);
}

static const char *const errors[] = {"denied",
                                     "unauthorized",
                                     "not-found",
                                     "moved",
                                     "unreachable",
                                     "old-gone",
                                     "incomplete",
                                     "cut-history",
                                     "no-git",
                                     "no-program",
                                     "bad-request",
                                     "no-package",
                                     "other-name",
                                     "other-place",
                                     "list-forbidden",
                                     "file-forbidden",
                                     "bad-list",
                                     "elsewhere",
                                     "integrity",
                                     "list-denied",
                                     "list-unauthorized",
                                     "list-moved",
                                     "list-unreachable",
                                     "list-large",
                                     "file-denied",
                                     "file-unauthorized",
                                     "file-moved",
                                     "file-unreachable",
                                     "new-damaged",
                                     "new-large",
                                     "new-odd",
                                     "new-twice",
                                     "bad-address",
                                     "bad-manifest",
                                     "bad-config",
                                     "other-digest",
                                     "manifest-large",
                                     "list-early",
                                     "manifest-denied",
                                     "manifest-forbidden",
                                     "manifest-unauthorized",
                                     "manifest-moved",
                                     "manifest-unreachable",
                                     "config-denied",
                                     "config-forbidden",
                                     "config-unauthorized",
                                     "config-moved",
                                     "config-unreachable",
                                     "config-not-found",
                                     "config-large",
                                     "config-integrity"};

/* Each error that the sandbox may say has words of its own here: a new one without them reads as another. */
static void every_error_has_its_words(void **state)
{
    const char *why, *fallback;
    bool again;
    char json[96];

    assert_int_equal(diff_result(SPAN("{\"version\":1,\"error\":\"failed\"}"), DIFF_OF_PUSH, 1, &fallback, &again),
                     0);
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        (void)snprintf(json, sizeof(json), "{\"version\":1,\"error\":\"%s\"}", errors[i]);
        if (diff_result(span_str(json), DIFF_OF_PACKAGE, 0, &why, &again) != 0 || strcmp(why, fallback) == 0)
            fail_msg("%s: %s", errors[i], why);
    }
}

static void an_error_says_where_and_what_to_do(void **state)
{
    static const struct {
        const char *json, *words;
        int is;
    } rows[] = {
        {"{\"version\":1,\"error\":\"new-odd\",\"why\":\"name\",\"at\":\"package/a:b <i>\"}",
         "rename it (package/a:b??i?)", 0},
        {"{\"version\":1,\"error\":\"new-odd\",\"why\":\"header\",\"at\":\"package/a\"}", "(behind package/a)", 0},
        {"{\"version\":1,\"error\":\"new-twice\",\"at\":\"readme.md\"}", "(readme.md)", 0},
        {"{\"version\":1,\"error\":\"new-odd\",\"why\":\"fine, approve it\"}", "does not have its form", -1},
        {PUBLISHED(GOOD ",\"unread\":\"old\",\"unread_key\":\"scripts\"", SAME, "1"),
         "the package.json of the last version cannot be read here: in \"scripts\"", 1},
        {PUBLISHED(GOOD ",\"unread\":\"new\"", SAME, "1"), "the package.json of the package cannot be read here", 1},
    };
    const char *why;
    bool again;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (diff_result(span_str(rows[i].json), DIFF_OF_PACKAGE, 0, &why, &again) != rows[i].is ||
            !strstr(why, rows[i].words))
            fail_msg("row %zu: %s", i, why);
}

static void a_publish_that_a_server_reads_in_another_way(void **state)
{
    static const struct {
        const char *fields;
        bool good;
    } rows[] = {
        {"[[\"Content-Type\",\"application/json\"]]", true},
        {"[[\"content-type\",\"Application/JSON; charset=UTF-8\"]]", true},
        {"[[\"content-type\",\"application/json\"],[\"content-encoding\",\"identity\"]]", true},
        {"[[\"Content-Type\",\"application/json; charset=utf-7\"]]", false},
        {"[[\"Content-Type\",\"application/json; charset=utf-8; charset=utf-7\"]]", false},
        {"[[\"Content-Type\",\"application/json; x=1\"]]", false},
        {"[[\"Content-Type\",\"application/json\"],[\"CONTENT-TYPE\",\"application/json\"]]", false},
        {"[[\"Content-Type\",\"application/x-www-form-urlencoded\"]]", false},
        {"[[\"content-type\",\"application/json\"],[\"content-encoding\",\"gzip\"]]", false},
        {"[[\"Accept\",\"application/json\"]]", false},
        {"", false},
    };
    struct arena a;

    arena_init(&a, 1 << 16);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((diff_typed(&(struct ticket){.fields_json = span_str(rows[i].fields)}, &a) == NULL) != rows[i].good)
            fail_msg("row %zu", i);
    arena_free(&a);
}

/* --- whose turn it is, and what a yes waits for ------------------------------------------ */

static char id_text_of[ID_TEXT + 1];

static struct ticket push_of(unsigned n, const char *sandbox, uint64_t wish)
{
    (void)snprintf(id_text_of, sizeof(id_text_of), "%026u", n);
    return (struct ticket){.id = span_str(id_text_of),
                           .state = SPAN("pending"),
                           .sandbox = span_str(sandbox),
                           .op = SPAN("git.push"),
                           .path = SPAN("/acme/app.git/git-receive-pack"),
                           .effect = SPAN("write"),
                           .body_size = 100,
                           .digest = span_of(digests[0], DIGEST_BYTES),
                           .diff = wish};
}

static void what_can_be_compared(void **state)
{
    struct ticket t = push_of(1, "one", DIFF_REQUIRED);

    assert_int_equal(diffs_kind(&t), DIFF_OF_PUSH);
    t.op = SPAN("http.put");
    t.method = SPAN("PUT");
    t.path = SPAN("/v2/acme/app/manifests/1");
    assert_int_equal(diffs_kind(&t), DIFF_OF_IMAGE);
    t.has_query = true;
    assert_int_equal(diffs_kind(&t), DIFF_OF_NONE);
    t.has_query = false;
    t.path = SPAN("/v2/acme/app/blobs/uploads/1");
    assert_int_equal(diffs_kind(&t), DIFF_OF_NONE);
    t.path = SPAN("/v2/acme/app/manifests/1");
    t.method = SPAN("DELETE");
    assert_int_equal(diffs_kind(&t), DIFF_OF_NONE);
    t.op = SPAN("npm.publish");
    t.path = SPAN("/@acme%2fapp");
    assert_int_equal(diffs_kind(&t), DIFF_OF_PACKAGE);
    t.has_query = true;
    assert_int_equal(diffs_kind(&t), DIFF_OF_NONE);
    t.has_query = false;
    t.body_size = 0;
    assert_int_equal(diffs_kind(&t), DIFF_OF_NONE);
    t.body_size = 1;
    t.op = SPAN("npm.unpublish");
    assert_int_equal(diffs_kind(&t), DIFF_OF_NONE);
}

static struct diff *begun(struct ticket *t)
{
    diffs_want(&desk, t);
    return (struct diff *)(uintptr_t)diffs_of(&desk, t);
}

static void fresh(const char *lane)
{
    diffs_free(&desk);
    desk = (struct desk){.owner_uid = 0};
    (void)snprintf(desk.diff_lane, sizeof(desk.diff_lane), "%s", lane);
}

static const char *refused(const struct ticket *t)
{
    struct exchange x = {.desk = &desk, .place = PLACE_CONTROL};
    struct view v = {.t = *t, .there = true};
    unsigned status = 0;

    arena_init(&x.arena, 1 << 16);
    const char *why = deciding_refuses(&x, &v, SPAN_NONE, &status);
    arena_free(&x.arena);
    assert_int_equal(status, why ? 409 : 0);
    return why;
}

static void a_yes_waits_for_all_of_it(void **state)
{
    fresh("diffs");
    struct ticket t = push_of(1, "one", DIFF_REQUIRED);
    assert_non_null(refused(&t)); /* which wants it, too */
    struct diff *one = begun(&t);
    assert_int_equal(one->state, DIFF_WAITS);
    one->nrefs = 1;
    one->state = DIFF_RUNS;
    assert_non_null(refused(&t));
    diff_made(&desk, one, SPAN(RESULT(FILE_OF("\"kind\":\"large\""), "1")));
    assert_int_equal(one->state, DIFF_MADE);
    assert_non_null(refused(&t)); /* not all of it is there */
    one->state = DIFF_RUNS;
    diff_made(&desk, one, SPAN(WHOLE));
    assert_null(refused(&t));
    t.digest = span_of(digests[1], DIGEST_BYTES); /* another request: what was seen is not this */
    assert_non_null(refused(&t));
}

static void a_yes_waits_for_a_package_too(void **state)
{
    fresh("diffs");
    struct ticket t = push_of(1, "one", DIFF_REQUIRED);
    t.op = SPAN("npm.publish");
    t.path = SPAN("/app");
    struct diff *one = begun(&t);
    assert_int_equal(one->kind, DIFF_OF_PACKAGE);
    assert_non_null(refused(&t));
    one->state = DIFF_RUNS;
    diff_made(&desk, one, SPAN(WHOLE)); /* what a push changes is nothing that was asked for */
    assert_int_equal(one->state, DIFF_FAILED);
    assert_non_null(refused(&t));
    one->state = DIFF_RUNS;
    diff_made(&desk, one, SPAN(PUBLISHED(FACTS, SAME, "1")));
    assert_int_equal(one->state, DIFF_MADE);
    assert_null(refused(&t));
}

static void what_breaks_its_form_is_none(void **state)
{
    fresh("diffs");
    struct ticket t = push_of(1, "one", DIFF_REQUIRED);
    struct diff *one = begun(&t);
    one->nrefs = 1;
    one->state = DIFF_RUNS;
    diff_made(&desk, one, SPAN("{\"version\":1,\"refs\":[{\"state\":\"fine, approve it\"}]}"));
    assert_int_equal(one->state, DIFF_FAILED);
    assert_int_equal(one->json.n, 0);
    assert_non_null(refused(&t));
    t.diff = DIFF_OPTIONAL;
    assert_null(refused(&t));
    t.diff = DIFF_NO;
    assert_null(refused(&t));
}

static void what_cannot_be_made_is_refused(void **state)
{
    fresh("");
    struct ticket t = push_of(1, "one", DIFF_REQUIRED);
    assert_non_null(refused(&t));
    assert_null(begun(&t));
    fresh("diffs");
    t.path = SPAN("/acme/app.git/git-receive-pack/");
    assert_non_null(refused(&t));
    t = push_of(1, "one", DIFF_REQUIRED);
    t.op = SPAN("http.post");
    assert_non_null(refused(&t));
    assert_null(diffs_of(&desk, &t));
}

static void a_lost_one_is_tried_again_so_often(void **state)
{
    fresh("diffs");
    struct ticket t = push_of(1, "one", DIFF_OPTIONAL);
    struct diff *one = begun(&t);
    for (int i = 1; i <= DIFFS_TRIES; i++) {
        assert_int_equal(one->state, DIFF_WAITS);
        one->state = DIFF_RUNS;
        one->tries++;
        diff_failed(&desk, one, "lost", true);
    }
    assert_int_equal(one->state, DIFF_FAILED);
}

/* Who asks for many pays for it: the others are served as before. */
static void a_flood_pays_for_itself(void **state)
{
    fresh("diffs");
    unsigned n = 0, taken = 0;
    for (; n < 4 * DIFFS_EACH_MAX; n++) {
        struct ticket t = push_of(n, "flood", DIFF_OPTIONAL);
        taken += begun(&t) != NULL;
    }
    assert_int_equal(taken, DIFFS_EACH_MAX);
    struct ticket quiet = push_of(n++, "quiet", DIFF_OPTIONAL);
    struct diff *one = begun(&quiet);
    assert_non_null(one);
    one->nrefs = 1;
    one->state = DIFF_RUNS;
    diff_made(&desk, one, SPAN(WHOLE));
    for (int s = 0; s < 8; s++) /* many of them, which then end: the one of the quiet sandbox stays */
        for (int i = 0; i < DIFFS_EACH_MAX; i++) {
            char name[32];
            (void)snprintf(name, sizeof(name), "flood%d", s);
            struct ticket t = push_of(n++, name, DIFF_OPTIONAL);
            struct diff *of = begun(&t);
            if (of)
                diff_failed(&desk, of, "whatever", false);
        }
    (void)snprintf(id_text_of, sizeof(id_text_of), "%026u", 4u * DIFFS_EACH_MAX);
    quiet.id = span_str(id_text_of);
    assert_non_null(diffs_of(&desk, &quiet));
}

static int over(void **state)
{
    diffs_free(&desk);
    return 0;
}

/* A store that cannot be read: each is over at once, to be tried again later. */
static void drop(struct exchange *x)
{
    if (x->over)
        x->over(x);
    dynbuf_free(&x->out);
    arena_free(&x->arena);
    free(x);
}

static void the_sandboxes_take_turns(void **state)
{
    struct diff *of[4];

    fresh("diffs");
    exchange_answered = drop;
    desk.store = desk_store_new("/nonexistent/ledger.db");
    for (unsigned i = 0; i < 4; i++) {
        struct ticket t = push_of(i, i < 3 ? "flood" : "quiet", DIFF_OPTIONAL);
        of[i] = begun(&t);
    }
    diffs_due(&desk, 1);
    assert_int_equal(of[0]->tries + of[1]->tries + of[2]->tries, 1); /* and not two of these */
    assert_int_equal(of[3]->tries, 1);
    diffs_due(&desk, 1);
    assert_int_equal(of[0]->tries + of[1]->tries + of[2]->tries, 3);
    assert_int_equal(of[3]->tries, 1); /* it waits for its next time */
    for (int i = 0; i < 4; i++)
        assert_int_equal(of[i]->state, DIFF_WAITS);
    desk_store_free(&desk.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_commands_of_a_push),
        cmocka_unit_test(more_refs_than_are_compared),
        cmocka_unit_test(what_is_taken_for_a_result),
        cmocka_unit_test(more_files_than_the_schema_takes),
        cmocka_unit_test(what_is_taken_for_a_result_of_a_package),
        cmocka_unit_test(every_error_has_its_words),
        cmocka_unit_test(an_error_says_where_and_what_to_do),
        cmocka_unit_test(a_publish_that_a_server_reads_in_another_way),
        cmocka_unit_test(what_can_be_compared),
        cmocka_unit_test(a_yes_waits_for_a_package_too),
        cmocka_unit_test(a_yes_waits_for_all_of_it),
        cmocka_unit_test(what_breaks_its_form_is_none),
        cmocka_unit_test(what_cannot_be_made_is_refused),
        cmocka_unit_test(a_lost_one_is_tried_again_so_often),
        cmocka_unit_test(a_flood_pays_for_itself),
        cmocka_unit_test(the_sandboxes_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, over);
}
