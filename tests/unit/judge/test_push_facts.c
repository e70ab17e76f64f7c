/* A push shown as its commits: packs as git wrote them (tests/fuzz/corpus/git_pack: a byte, the tip's id, the pack),
 * and packs made by hand for what git does not write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <zlib.h>

#include "common/id.h"
#include "proxy/judge/tickets/pack.h"
#include "proxy/judge/tickets/pack_delta.h"
#include "proxy/judge/tickets/push_facts.h"

enum { ROOM = 64 * 1024 };

struct sample {
    struct dynbuf file;
    bool sha256;
    char tip[65];
    struct span pack;
};

static struct sample sample(const char *name)
{
    struct sample s = {.sha256 = false};
    char path[512];
    uint8_t piece[4096];
    size_t n;
    const char *top = getenv("srcdir");
    snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/git_pack/%s", top ? top : "..", name);
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        fail_msg("%s cannot be read", path);
    dynbuf_init(&s.file, 1 << 20);
    while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
        assert_int_equal(dynbuf_add(&s.file, span_of(piece, n)), 0);
    (void)fclose(f);
    s.sha256 = s.file.p[0] & 1;
    size_t id = s.sha256 ? 32 : 20;
    hex_text(span_of(s.file.p + 1, id), s.tip);
    s.pack = span_from(dynbuf_span(&s.file), 1 + id);
    return s;
}

static struct dynbuf json; /* the last facts */

static void facts(size_t room, const struct git_ref *refs, size_t nrefs, struct span pack)
{
    struct git_push push = {.refs = refs, .nrefs = nrefs};
    struct jsonw w;
    dynbuf_free(&json);
    dynbuf_init(&json, room + 2);
    jsonw_begin(&w, &json);
    jsonw_array(&w);
    push_facts(&w, room, &push, pack);
    jsonw_end_array(&w);
    assert_true(dynbuf_ok(&json));
}

static void has(const char *words)
{
    struct span all = dynbuf_span(&json);
    if (span_find(all, span_str(words)) == all.n)
        fail_msg("\"%s\" is not in:\n%.*s", words, SPAN_FMT(all));
}

static void has_not(const char *words)
{
    struct span all = dynbuf_span(&json);
    if (span_find(all, span_str(words)) != all.n)
        fail_msg("\"%s\" is in:\n%.*s", words, SPAN_FMT(all));
}

static size_t rows(const char *label)
{
    char text[128];
    size_t n = 0;
    snprintf(text, sizeof(text), "{\"label\":\"%s\"", label);
    for (struct span rest = dynbuf_span(&json); rest.n; n++) {
        size_t at = span_find(rest, span_str(text));
        if (at == rest.n)
            break;
        rest = span_from(rest, at + 1);
    }
    return n;
}

static void facts_of(const char *name)
{
    struct sample s = sample(name);
    struct git_ref ref = {SPAN("refs/heads/main"), SPAN("0"), span_str(s.tip)};
    facts(ROOM, &ref, 1, s.pack);
    dynbuf_free(&s.file);
}

static void a_commit_is_shown_with_who_and_when(void **state)
{
    facts_of("one");
    has("{\"label\":\"Tip commit\",\"value\":\"4f37f84db93fe204c2acf3560212f3ceeb4a016f of refs/heads/main  "
        "notes: line 1 by an agent  (Ada Agent <ada@sandbox.invalid>, 2026-01-01 01:01 +0100)\"}");
    has("{\"label\":\"Objects\",\"value\":\"3 (commits 1, tags 0, trees 1, files 1, and 0 as deltas of others)\"}");
    has_not("Pack");
}

/* git writes most of them as deltas: without those put together two of 40 would show. */
static void commits_that_are_deltas_are_shown(void **state)
{
    static const char *const names[] = {"deltas", "ref_deltas"};
    for (size_t i = 0; i < 2; i++) {
        facts_of(names[i]);
        assert_int_equal(rows("Tip commit"), 1);
        assert_int_equal(rows("Commit"), 39);
        has("{\"label\":\"Tip commit\",\"value\":\"371c2db708f0e67c5d7bd413f5c6184ea3b08b47 of refs/heads/main  "
            "notes: "
            "line 40 by an agent  (Ada");
        has("{\"label\":\"Commit\",\"value\":\"4f37f84db93fe204c2acf3560212f3ceeb4a016f  notes: line 1 by an agent  "
            "(");
        has("(commits 40, ");
        has_not("no ref leads");
        has_not("read to its end");
    }
}

static void a_thin_pack_has_its_commit(void **state)
{
    facts_of("thin");
    assert_int_equal(rows("Tip commit"), 1);
    has("notes: line 40 by an agent");
    has_not("read to its end");
}

static void a_merge_and_a_tag(void **state)
{
    facts_of("merge_and_tag");
    has("{\"label\":\"Tag\",\"value\":\"1a89eac82167998c941b14abbd26947adf66ec62 of refs/heads/main  Release one  "
        "(Ada");
    has("{\"label\":\"Commit\",\"value\":\"d0d1829b62e6902fdb092ff405f404460ade599d  Merge branch 'side'  (Ada Agent "
        "<ada@sandbox.invalid>, 2026-01-01 01:42 +0100, merge of 2)\"}");
    has("side: änders, „quoted“ and <b>bold</b>");
    has_not("no ref leads");
}

static void sha256_ids(void **state)
{
    facts_of("sha256");
    has("{\"label\":\"Tip commit\",\"value\":\"7acf2071bdc2b5b3386669f2ff2d3fdd23a1bbd651081bda8e24186d1dc8461d of "
        "refs/heads/main  sha256: second");
    has("{\"label\":\"Commit\",\"value\":\"eb851f87dce38639391eb4c14e0dcf5017efd6e8cb6ae66b09319fadde2b648c  ");
}

static void a_tip_that_is_elsewhere_is_said_to_be(void **state)
{
    struct sample s = sample("one");
    struct git_ref refs[] = {{SPAN("refs/heads/a"), SPAN("0"), SPAN("1234567890123456789012345678901234567890")},
                             {SPAN("refs/heads/gone"), SPAN("0"), SPAN("0000000000000000000000000000000000000000")}};
    facts(ROOM, refs, 2, s.pack);
    has("{\"label\":\"Tip commit\",\"value\":\"1234567890123456789012345678901234567890 of refs/heads/a: already "
        "there, "
        "or not in this push\"}");
    has_not("gone");
    /* What no ref leads to is not passed off as what is pushed. */
    has("{\"label\":\"In the pack, but no ref leads to it\",\"value\":\"4f37f84db93fe204c2acf3560212f3ceeb4a016f  ");
    dynbuf_free(&s.file);
}

static void every_cut_and_every_flipped_byte_is_survived(void **state)
{
    struct sample s = sample("merge_and_tag");
    struct git_ref ref = {SPAN("refs/heads/main"), SPAN("0"), span_str(s.tip)};
    uint8_t *own = malloc(s.pack.n);
    assert_non_null(own);
    for (size_t n = 1; n < s.pack.n; n++) {
        uint8_t *less = malloc(n);
        assert_non_null(less);
        memcpy(less, s.pack.p, n);
        facts(ROOM, &ref, 1, span_of(less, n));
        has("{\"label\":\"Pack\",\"value\":\"It was not read to its end: ");
        free(less);
        memcpy(own, s.pack.p, s.pack.n);
        own[n] ^= 0xff;
        facts(ROOM, &ref, 1, span_of(own, s.pack.n));
        has("\"Objects\"");
    }
    free(own);
    dynbuf_free(&s.file);
    facts_of("longer");
    has("more or less after its last object than a checksum");
}

/* ---- made by hand ---- */

static struct dynbuf made;

static void pack_begin(uint32_t objects)
{
    const uint8_t n[4] = {(uint8_t)(objects >> 24), (uint8_t)(objects >> 16), (uint8_t)(objects >> 8),
                          (uint8_t)objects};
    dynbuf_free(&made);
    dynbuf_init(&made, 64 * 1024 * 1024);
    dynbuf_add(&made, SPAN("PACK\0\0\0\2"));
    dynbuf_add(&made, span_of(n, 4));
}

static void pack_head(unsigned type, uint64_t size)
{
    uint8_t c = (uint8_t)(type << 4 | (size & 15));
    for (size >>= 4; size; size >>= 7) {
        dynbuf_add_byte(&made, c | 0x80);
        c = size & 0x7f;
    }
    dynbuf_add_byte(&made, c);
}

static void pack_data(struct span data)
{
    uLongf n = compressBound(data.n);
    uint8_t *to = dynbuf_room(&made, n);
    assert_non_null(to);
    assert_int_equal(compress2(to, &n, data.p ? data.p : (const uint8_t *)"", data.n, 1), Z_OK);
    dynbuf_grew(&made, n);
}

static void pack_object(unsigned type, struct span data)
{
    pack_head(type, data.n);
    pack_data(data);
}

static void pack_end(void)
{
    dynbuf_add(&made, SPAN("12345678901234567890"));
    assert_true(dynbuf_ok(&made));
}

static const struct git_ref nowhere = {{(const uint8_t *)"refs/heads/x", 12},
                                       {(const uint8_t *)"0", 1},
                                       {(const uint8_t *)"1234567890123456789012345678901234567890", 40}};

static void commits_past_the_limit_are_counted(void **state)
{
    for (unsigned n = PACK_LISTED_MAX; n <= PACK_LISTED_MAX + 1; n++) {
        pack_begin(n);
        for (unsigned i = 0; i < n; i++) {
            char text[64];
            int len = snprintf(text, sizeof(text), "tree x\nauthor a <b> 1 +0000\n\nnumber %u\n", i);
            pack_object(1, span_of(text, (size_t)len));
        }
        pack_end();
        facts(ROOM, &nowhere, 1, dynbuf_span(&made));
        assert_int_equal(rows("In the pack, but no ref leads to it"), PACK_LISTED_MAX);
        assert_int_equal(rows("More"), n - PACK_LISTED_MAX);
        if (n > PACK_LISTED_MAX) {
            has("Commits or tags that are not listed here: 1\"");
            has("not among those listed here");
        }
    }
}

/* Room for few rows: what does not fit is counted, and the last rows are there. */
static void rows_that_do_not_fit_are_counted(void **state)
{
    pack_begin(PACK_LISTED_MAX);
    for (unsigned i = 0; i < PACK_LISTED_MAX; i++) {
        char text[512];
        int len = snprintf(text, sizeof(text), "author \x01\x02\x03 <b> 1 +0000\n\n%u %0300u\n", i, i);
        pack_object(1, span_of(text, (size_t)len));
    }
    pack_end();
    for (size_t room = 1536; room < 9000; room += 250) {
        facts(room, &nowhere, 1, dynbuf_span(&made));
        assert_true(json.n <= room + 2);
        assert_int_equal(rows("More"), 1);
        assert_int_equal(rows("Objects"), 1);
    }
}

static void a_large_commit_is_not_kept(void **state)
{
    static uint8_t big[PACK_TEXT_MAX + 1];
    memset(big, 'x', sizeof(big));
    for (size_t more = 0; more < 2; more++) {
        pack_begin(1);
        pack_object(1, span_of(big, PACK_TEXT_MAX + more));
        pack_end();
        facts(ROOM, &nowhere, 1, dynbuf_span(&made));
        assert_int_equal(rows("More"), more);
        assert_int_equal(rows("In the pack, but no ref leads to it"), 1 - more);
    }
}

static const char *stopped(struct span pack, uint64_t inflate, uint32_t objects)
{
    struct pack p;
    pack_init(&p, false);
    p.max_inflate = inflate;
    p.max_objects = objects;
    pack_read(&p, pack);
    const char *why = p.stopped;
    pack_free(&p);
    return why;
}

static void what_is_too_much_ends_the_walk(void **state)
{
    static uint8_t zero[100000];
    pack_begin(2);
    pack_object(3, span_of(zero, sizeof(zero)));
    pack_object(3, span_of(zero, sizeof(zero)));
    pack_end();
    assert_null(stopped(dynbuf_span(&made), 2 * sizeof(zero), 2));
    assert_non_null(strstr(stopped(dynbuf_span(&made), 2 * sizeof(zero) - 1, 2), "more than is looked through"));
    assert_non_null(strstr(stopped(dynbuf_span(&made), 2 * sizeof(zero), 1), "more objects"));
}

static void lies_end_the_walk(void **state)
{
    static const struct {
        unsigned type;
        uint64_t size;
        const char *raw, *why;
    } lies[] = {
        {3, 4, "", "longer than it says"},
        {3, 6, "", "shorter than it says"},
        {0, 5, "", "no known type"},
        {5, 5, "", "no known type"},
        {6, 5, "\x7f", "points out of it"},
        {6, 5, "\xff\xff\xff\xff\x7f", "points out"},
        {3, 1ull << 50, "", "shorter than it"},
        {3, 1ull << 59, "", "impossibly"},
    };
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        pack_begin(1);
        pack_head(lies[i].type, lies[i].size);
        dynbuf_add(&made, span_str(lies[i].raw));
        pack_data(SPAN("hello"));
        pack_end();
        const char *why = stopped(dynbuf_span(&made), PACK_INFLATE_MAX, 10);
        if (why == NULL || strstr(why, lies[i].why) == NULL)
            fail_msg("lie %zu: %s", i, why ? why : "believed");
    }
    pack_begin(2);
    pack_object(3, SPAN("hello"));
    pack_end();
    assert_non_null(stopped(dynbuf_span(&made), PACK_INFLATE_MAX, 10)); /* one object less than it says */
    made.p[7] = 3;
    assert_non_null(strstr(stopped(dynbuf_span(&made), PACK_INFLATE_MAX, 10), "version 2"));
}

/* base, ops: what comes out, or NULL. */
static void delta(struct span ops, const char *want)
{
    const struct span base = SPAN("0123456789");
    uint8_t out[64];
    uint64_t from, n;
    int rc = delta_sizes(&ops, &from, &n);
    if (rc == 0)
        rc = from != base.n || n > sizeof(out) ? -1 : delta_apply(base, ops, out, (size_t)n);
    assert_int_equal(rc, want ? 0 : -1);
    if (want)
        assert_true(span_eq(span_of(out, (size_t)n), span_str(want)));
}

static void deltas_stay_in_bounds(void **state)
{
    delta(SPAN("\x0a\x05\x91\x02\x03\x02xy"), "234xy");
    delta(SPAN("\x0a\x0a\x90\x0a"), "0123456789");
    delta(SPAN("\x0a\x03\x91\x08\x03"), NULL);                 /* past the end of the base */
    delta(SPAN("\x0a\x03\x91\x0b\x01"), NULL);                 /* from behind it */
    delta(SPAN("\x0a\x02\x91\x02\x03"), NULL);                 /* more than it says comes out */
    delta(SPAN("\x0a\x04\x91\x02\x03"), NULL);                 /* less */
    delta(SPAN("\x0a\x02\x02x"), NULL);                        /* cut in an insert */
    delta(SPAN("\x0a\x02\x91\x02"), NULL);                     /* cut in a copy */
    delta(SPAN("\x0a\x00\x00"), NULL);                         /* the reserved op */
    delta(SPAN("\x0a\x80\x80"), NULL);                         /* cut in a size */
    delta(SPAN("\x0a\x03\x8f\xff\xff\xff\xff"), NULL);         /* offset of 4 GiB, length 64 KiB */
    delta(SPAN("\x0a\x80\x80\x80\x80\x80\x80\x80\x80"), NULL); /* a size without end */
}

static void hostile_words_are_only_text(void **state)
{
    pack_begin(1);
    pack_object(
        1, SPAN("author \xff\x1b[31m<a\"b> 99999999999999999999 +9999\nparent x\nparent \n\n\n  \n\x01\xc3\x28\n"));
    pack_end();
    facts(ROOM, &nowhere, 1, dynbuf_span(&made));
    struct arena a;
    arena_init(&a, 1 << 20);
    assert_non_null(json_parse(dynbuf_span(&json), &a));
    arena_free(&a);
    has("\\u001b[31m <a\\\"b>, merge of 2)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_is_shown_with_who_and_when),
        cmocka_unit_test(commits_that_are_deltas_are_shown),
        cmocka_unit_test(a_thin_pack_has_its_commit),
        cmocka_unit_test(a_merge_and_a_tag),
        cmocka_unit_test(sha256_ids),
        cmocka_unit_test(a_tip_that_is_elsewhere_is_said_to_be),
        cmocka_unit_test(every_cut_and_every_flipped_byte_is_survived),
        cmocka_unit_test(commits_past_the_limit_are_counted),
        cmocka_unit_test(rows_that_do_not_fit_are_counted),
        cmocka_unit_test(a_large_commit_is_not_kept),
        cmocka_unit_test(what_is_too_much_ends_the_walk),
        cmocka_unit_test(lies_end_the_walk),
        cmocka_unit_test(deltas_stay_in_bounds),
        cmocka_unit_test(hostile_words_are_only_text),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    dynbuf_free(&json);
    dynbuf_free(&made);
    return rc;
}
