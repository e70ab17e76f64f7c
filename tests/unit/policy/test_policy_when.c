/* when: of a rule: what a window means, what the system's zones say, and what neither of them may be. The oracle for
 * many times and zones is tests/policy/when.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/time/instant.h"
#include "policy/load/emit/zone.h"
#include "policy/next_change.h"
#include "policy_kit.h"

static uint64_t at(const char *text)
{
    uint64_t ms;
    assert_null(instant_of(span_str(text), &ms));
    return ms;
}

static void test_instants(void **state)
{
    static const char *const none[] = {"",
                                       "2026-11-23",
                                       "2026-11-23T09:00:00",
                                       "2026-11-23 09:00:00Z",
                                       "2026-11-23T09:00Z",
                                       "2026-11-23T09:00:00z",
                                       "2026-11-23T09:00:00.5Z",
                                       "2026-02-29T09:00:00Z",
                                       "2026-13-01T09:00:00Z",
                                       "2026-11-31T09:00:00Z",
                                       "2026-11-23T24:00:00Z",
                                       "2026-11-23T09:60:00Z",
                                       "2026-11-23T09:00:60Z",
                                       "1999-11-23T09:00:00Z",
                                       "2100-11-23T09:00:00Z",
                                       "2026-11-23T09:00:00+1:00",
                                       "2026-11-23T09:00:00+24:00",
                                       "2026-11-23T09:00:00Z ",
                                       "+026-11-23T09:00:00Z"};
    uint64_t ms;
    (void)state;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_non_null(instant_of(span_str(none[i]), &ms));
    assert_int_equal(at("2026-11-23T09:00:00Z"), 1795424400000u);
    assert_int_equal(at("2026-11-23T10:30:00+01:30"), 1795424400000u);
    assert_int_equal(at("2026-11-22T21:00:00-12:00"), 1795424400000u);
    assert_int_equal(at("2024-02-29T23:59:59Z"), 1709251199000u);
    assert_int_equal(at("2000-01-01T00:00:00Z"), 946684800000u);
    assert_int_equal(at("2099-12-31T23:59:59Z"), 4102444799000u);
}

static const char week[] =
    "version: 1\n"
    "rules:\n"
    "  - { id: work, match: { host: work.test, effect: read }, decide: allow,\n"
    "      when: { days: [mon-fri], hours: \"08:00-18:00\", zone: Europe/Berlin } }\n"
    "  - { id: night, match: { host: night.test }, decide: hold,\n"
    "      when: { days: fri, hours: \"22:00-06:00\", zone: UTC } }\n"
    "  - { id: turn, match: { host: turn.test }, decide: hold, when: { days: sat-mon, zone: UTC } }\n"
    "  - { id: two, match: { host: two.test }, decide: hold,\n"
    "      when: [{ days: mon, hours: [\"08:00-09:00\", \"10:00-24:00\"], zone: UTC }, { days: tue, zone: UTC }] }\n"
    "  - { id: all, match: { host: \"**.test\", effect: [read, write] }, except: [{ method: GET }], decide: deny,\n"
    "      when: { hours: \"00:00-12:00\", zone: UTC } }\n"
    "  - { id: always, match: { host: always.test, effect: [read, write] }, decide: allow }\n";

struct row {
    const char *at, *url;
    enum verdict verdict;
};

/* 2026-11-23 is a Monday; Berlin is at +1 then, and at +2 in July. */
static const struct row rows[] = {
    {"2026-11-23T06:59:59Z", "https://work.test/", VERDICT_DENY},
    {"2026-11-23T07:00:00Z", "https://work.test/", VERDICT_ALLOW},
    {"2026-11-23T16:59:59Z", "https://work.test/", VERDICT_ALLOW},
    {"2026-11-23T17:00:00Z", "https://work.test/", VERDICT_DENY},
    {"2026-11-22T12:00:00Z", "https://work.test/", VERDICT_DENY},
    {"2026-11-21T12:00:00Z", "https://work.test/", VERDICT_DENY},
    {"2026-07-20T06:00:00Z", "https://work.test/", VERDICT_ALLOW},
    {"2026-07-20T05:59:59Z", "https://work.test/", VERDICT_DENY},
    {"2026-07-20T16:00:00Z", "https://work.test/", VERDICT_DENY},
    {"2026-11-27T21:59:59Z", "https://night.test/", VERDICT_DENY},
    {"2026-11-27T22:00:00Z", "https://night.test/", VERDICT_HOLD},
    {"2026-11-28T05:59:59Z", "https://night.test/", VERDICT_HOLD},
    {"2026-11-28T06:00:00Z", "https://night.test/", VERDICT_DENY},
    {"2026-11-28T22:00:00Z", "https://night.test/", VERDICT_DENY},
    {"2026-11-27T05:00:00Z", "https://night.test/", VERDICT_DENY},
    {"2026-11-27T23:59:59Z", "https://turn.test/", VERDICT_DENY},
    {"2026-11-28T00:00:00Z", "https://turn.test/", VERDICT_HOLD},
    {"2026-11-30T23:59:59Z", "https://turn.test/", VERDICT_HOLD},
    {"2026-12-01T00:00:00Z", "https://turn.test/", VERDICT_DENY},
    {"2026-11-23T08:30:00Z", "https://two.test/", VERDICT_HOLD},
    {"2026-11-23T09:30:00Z", "https://two.test/", VERDICT_DENY},
    {"2026-11-23T23:59:59Z", "https://two.test/", VERDICT_HOLD},
    {"2026-11-24T09:30:00Z", "https://two.test/", VERDICT_HOLD},
    {"2026-11-25T09:30:00Z", "https://two.test/", VERDICT_DENY},
    /* what is known ends; what lets through is not in force then */
    {"2060-12-29T12:00:00Z", "https://work.test/", VERDICT_ALLOW},
    {"2061-01-03T12:00:00Z", "https://work.test/", VERDICT_DENY},
    {"2019-12-30T12:00:00Z", "https://work.test/", VERDICT_DENY},
    {"2020-01-01T12:00:00Z", "https://work.test/", VERDICT_ALLOW},
};

static void test_windows(void **state)
{
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, week, NULL));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        k.now_ms = at(rows[i].at);
        if (kit_get(&k, rows[i].url)->verdict != rows[i].verdict)
            fail_msg("%s at %s: %s", rows[i].url, rows[i].at, verdict_name(k.d.verdict));
    }
    kit_free(&k);
}

/* A rule that denies is in force in its window, and when nobody knows the time. */
static void test_denies(void **state)
{
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, week, NULL));
    static const struct row posts[] = {{"2026-11-23T11:59:59Z", "https://always.test/", VERDICT_DENY},
                                       {"2026-11-23T12:00:00Z", "https://always.test/", VERDICT_ALLOW},
                                       {"2061-01-03T13:00:00Z", "https://always.test/", VERDICT_DENY},
                                       {"2019-12-30T13:00:00Z", "https://always.test/", VERDICT_DENY}};
    for (size_t i = 0; i < sizeof(posts) / sizeof(posts[0]); i++) {
        k.now_ms = at(posts[i].at);
        kit_judge(&k, "ci-1", "POST", posts[i].url, NULL, NULL, 0, true);
        if (k.d.verdict != posts[i].verdict)
            fail_msg("at %s: %s", posts[i].at, verdict_name(k.d.verdict));
    }
    kit_expect(kit_judge(&k, "ci-1", "POST", "https://always.test/", NULL, NULL, 0, true), VERDICT_DENY, "rule",
               "all");
    k.now_ms = UINT64_MAX;
    kit_expect(kit_judge(&k, "ci-1", "POST", "https://always.test/", NULL, NULL, 0, true), VERDICT_DENY, "rule",
               "all");
    kit_expect(kit_get(&k, "https://work.test/"), VERDICT_DENY, "no-rule", "");
    kit_free(&k);
}

#define R "version: 1\nrules:\n  - { id: a, match: { host: a.test }, decide: deny, when: "
static const struct {
    const char *when, *code, *words;
} refused[] = {
    {"{ days: mon }", "P010", "\"zone\""},
    {"[]", "P008", "empty list"},
    {"always", "P008", "mapping"},
    {"{ days: [], zone: UTC }", "P008", "empty list"},
    {"{ days: monday, zone: UTC }", "P013", "is no day"},
    {"{ days: Mon, zone: UTC }", "P013", "is no day"},
    {"{ days: mon-, zone: UTC }", "P013", "is no day"},
    {"{ days: mon-tue-wed, zone: UTC }", "P013", "is no day"},
    {"{ hours: \"8-18\", zone: UTC }", "P013", "no part of a day"},
    {"{ hours: \"08:00\", zone: UTC }", "P013", "no part of a day"},
    {"{ hours: \"08:60-09:00\", zone: UTC }", "P013", "no part of a day"},
    {"{ hours: \"24:00-09:00\", zone: UTC }", "P013", "no part of a day"},
    {"{ hours: \"08:00-24:01\", zone: UTC }", "P013", "no part of a day"},
    {"{ hours: \"08:00-18:00 \", zone: UTC }", "P013", "no part of a day"},
    {"{ hours: \"08:00-08:00\", zone: UTC }", "P013", "begins and ends at once"},
    {"{ zone: Europe/Berlyn }", "P011", "no time zone"},
    {"{ zone: ../../etc/passwd }", "P013", "no name of a time zone"},
    {"{ zone: /etc/localtime }", "P013", "no name of a time zone"},
    {"{ zone: \"Europe//Berlin\" }", "P013", "no name of a time zone"},
    {"{ zone: tzdata.zi }", "P013", "no name of a time zone"},
    {"{ zone: UTC, day: mon }", "P006", "did you mean \"days\"?"},
};

static void test_refused(void **state)
{
    char yaml[400];
    struct kit k;
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        snprintf(yaml, sizeof(yaml), R "%s }\n", refused[i].when);
        if (kit_load(&k, yaml, NULL) || !kit_problem(&k, refused[i].code, "policy.yaml:3:", refused[i].words))
            fail_msg("%s: %s", refused[i].when, k.nproblems ? k.problems[0] : "it loads");
        kit_free(&k);
    }
    /* A deny for some hours does not shadow a rule. */
    assert_true(kit_load(&k,
                         R "{ hours: \"08:00-09:00\", zone: UTC } }\n"
                           "  - { id: b, match: { host: a.test, effect: read }, decide: allow }\n",
                         NULL));
    assert_false(kit_problem(&k, "P103", NULL, NULL));
    kit_free(&k);
}

/* TZif data of one type and no change, but for its footer; n times the v1 block's types. */
static struct span tzif(const char *footer, uint8_t version)
{
    static uint8_t b[300];
    static const uint8_t types[] = {0, 0, 0x0e, 0x10, 0, 0, 'C', 'E', 'T', 0}; /* 3600 */
    size_t n = 0;
    for (int block = 0; block < 2; block++) {
        memset(b + n, 0, 44);
        memcpy(b + n, "TZif", 4);
        b[n + 4] = version;
        b[n + 39] = 1; /* types */
        b[n + 43] = 4; /* characters */
        memcpy(b + n + 44, types, sizeof(types));
        n += 44 + sizeof(types);
    }
    b[n++] = '\n';
    memcpy(b + n, footer, strlen(footer));
    n += strlen(footer);
    b[n++] = '\n';
    return span_of(b, n);
}

static size_t read_system(const char *name, uint8_t *to, size_t max)
{
    char path[200];
    snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(to, 1, max, f);
    fclose(f);
    return n;
}

/* What the footer alone says is what a file says that writes its changes out. */
static void test_footers(void **state)
{
    static const char *const zones[][2] = {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"},
                                           {"Europe/Dublin", "IST-1GMT0,M10.5.0,M3.5.0/1"},
                                           {"Asia/Kathmandu", "<+0545>-5:45"},
                                           {"Australia/Lord_Howe", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"},
                                           {"America/New_York", "EST5EDT,M3.2.0,M11.1.0"}};
    static uint8_t file[ZONE_FILE_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
        struct arena a;
        struct err e = {""};
        struct zone is, says;
        arena_init(&a, 1 << 20);
        size_t n = read_system(zones[i][0], file, sizeof(file));
        assert_int_equal(zone_read(span_of(file, n), &a, &is, &e), 0);
        assert_int_equal(zone_read(tzif(zones[i][1], '2'), &a, &says, &e), 0);
        assert_int_equal(is.until_s, says.until_s);
        assert_int_equal(is.n, says.n);
        assert_memory_equal(is.shift, says.shift, is.n * sizeof(is.shift[0]));
        for (size_t cut = 0; cut < n; cut++)
            assert_int_equal(zone_read(span_of(file, cut), &a, &is, &e), -1);
        arena_free(&a);
    }
}

static void test_odd_footers(void **state)
{
    static const char *const none[] = {"C-1",
                                       "CET",
                                       "CET-25",
                                       "CET-1CEST",
                                       "CET-1CEST,M3.5.0",
                                       "CET-1CEST,M13.5.0,M10.5.0",
                                       "CET-1CEST,M3.6.0,M10.5.0",
                                       "CET-1CEST,M3.5.7,M10.5.0",
                                       "CET-1CEST,M3.5.0,M10.5.0/168",
                                       "CET-1CEST,M3.5.0,M10.5.0x",
                                       "<+01-1",
                                       "CET-1:",
                                       "CET-1CEST,J0,J1",
                                       "CET-1CEST,366,1"};
    struct arena a;
    struct err e = {""};
    struct zone z;
    (void)state;
    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        if (zone_read(tzif(none[i], '2'), &a, &z, &e) == 0)
            fail_msg("%s is taken", none[i]);
    assert_int_equal(zone_read(tzif("CET-1", '\0'), &a, &z, &e), -1);
    /* Summer all year round is one offset; no footer leaves the one that is there. */
    assert_int_equal(zone_read(tzif("EST5EDT,0/0,J365/25", '3'), &a, &z, &e), 0);
    assert_int_equal(z.n, 1);
    assert_int_equal(z.shift[0].offset_s, -4 * 3600);
    assert_int_equal(zone_read(tzif("", '2'), &a, &z, &e), 0);
    assert_int_equal(z.n, 1);
    assert_int_equal(z.shift[0].offset_s, 3600);
    /* Day 60 of a year without its 29 February is the first of March in every year. */
    assert_int_equal(zone_read(tzif("AAA0BBB,J60/0,J61/0", '2'), &a, &z, &e), 0);
    assert_int_equal(z.shift[1].from_s, instant_days_to(2020, 3, 1) * 86400);
    assert_int_equal(z.shift[3].from_s, instant_days_to(2021, 3, 1) * 86400);
    arena_free(&a);
}

static const char shop[] =
    "version: 1\n"
    "packs: [git@1]\n"
    "scopes: { ci: { sandboxes: [\"ci-*\"] }, other: { sandboxes: [\"vm-*\"] } }\n"
    "rules:\n"
    "  - { id: work, match: { host: work.test, effect: read }, decide: allow,\n"
    "      when: { days: [mon-fri], hours: \"08:00-18:00\", zone: Europe/Berlin } }\n"
    "  - { id: two, match: { host: two.test }, decide: hold,\n"
    "      when: [{ days: mon, hours: [\"08:00-09:00\", \"10:00-24:00\"], zone: UTC }, { days: tue, zone: UTC }] }\n"
    "  - { id: howe, match: { host: howe.test }, decide: allow,\n"
    "      when: { days: [sat-sun], hours: \"01:45-02:15\", zone: Australia/Lord_Howe } }\n"
    "  - { id: night, match: { host: night.test }, decide: allow,\n"
    "      when: { days: [fri], hours: \"22:00-06:00\", zone: America/New_York } }\n"
    "  - { id: free, match: { host: frozen.test }, decide: allow }\n"
    "  - { id: freeze, match: { host: frozen.test }, decide: deny, say: Frozen,\n"
    "      when: { days: [fri-sun], hours: \"16:00-08:00\", zone: Europe/Berlin } }\n"
    "  - { id: never, match: { host: never.test }, decide: deny }\n"
    "  - { id: nearly, match: { host: never.test }, decide: allow, when: { days: mon, zone: UTC } }\n"
    "  - { id: theirs, scope: other, match: { host: theirs.test }, decide: allow, when: { days: mon, zone: UTC } }\n"
    "  - { id: other-path, match: { host: path.test, path: /b }, decide: allow, when: { days: mon, zone: UTC } }\n"
    "  - { id: small, match: { host: body.test, json: [{ pointer: /n, int_lte: 5 }] }, decide: allow,\n"
    "      when: { days: mon, zone: UTC } }\n"
    "  - { id: push, match: { op: git.push, resource: \"github:acme/*\" }, decide: hold,\n"
    "      when: { days: mon, zone: UTC } }\n"
    "  - { id: both, match: { host: both.test }, decide: allow,\n"
    "      when: { days: mon, hours: \"08:00-10:00\", zone: UTC } }\n"
    "  - { id: day, match: { host: ask.test }, decide: allow, when: { days: mon-fri, hours: \"08:00-18:00\", zone: "
    "UTC } }\n"
    "  - { id: rest, match: { host: ask.test }, decide: hold, when: [{ days: sat, zone: UTC },\n"
    "        { days: mon-fri, hours: [\"00:00-08:00\", \"18:00-24:00\"], zone: UTC }] }\n"
    "  - { id: always, match: { host: always.test }, decide: hold }\n"
    "  - { id: sometimes, match: { host: always.test }, decide: allow, when: { days: mon, zone: UTC } }\n"
    "  - { id: both-not, match: { host: both.test }, decide: deny, when: { hours: \"00:00-09:00\", zone: UTC } }\n";

static struct request get(const char *host)
{
    return (struct request){.scheme = SPAN("https"),
                            .host = span_str(host),
                            .method = SPAN("GET"),
                            .path = SPAN("/"),
                            .port = 443,
                            .body_complete = true};
}

static const struct subject ci = {SPAN("ci-1"), NULL, 0};

/* Judge it, and ask when it opens: "" for never, else "TIME VERDICT HOURS". */
static const char *opens(struct kit *k, const struct request *r, const struct subject *s)
{
    static char text[300];
    struct next_change o;
    policy_judge(k->p, s, r, k->now_ms, &k->a, &k->d);
    if (!policy_next_change(k->p, s, r, &k->d, k->now_ms, &k->a, &o))
        return "";
    snprintf(text, sizeof(text), "%.*s %s %.*s", SPAN_FMT(o.at),
             o.decision.need_body ? "body" : verdict_name(o.decision.verdict), SPAN_FMT(o.hours));
    assert_int_equal(at(span_str(text).n > 20 ? (text[20] = 0, text) : text), o.at_ms);
    text[20] = ' ';
    return text;
}

/* 2026-11-27 is a Friday. */
static void test_next_change(void **state)
{
    static const struct {
        const char *at, *host, *want;
    } cases[] = {
        {"2026-11-27T20:00:00Z", "work.test", "2026-11-30T07:00:00Z allow mon-fri 08:00-18:00 Europe/Berlin"},
        {"2026-11-27T10:00:00Z", "work.test", ""}, /* it is allowed */
        {"2026-11-30T06:59:59Z", "work.test", "2026-11-30T07:00:00Z allow mon-fri 08:00-18:00 Europe/Berlin"},
        {"2026-11-27T10:00:00Z", "two.test",
         "2026-11-30T08:00:00Z hold mon 08:00-09:00 UTC, mon 10:00-24:00 UTC or tue 00:00-24:00 UTC"},
        {"2026-11-27T10:00:00Z", "night.test", "2026-11-28T03:00:00Z allow fri 22:00-06:00 America/New_York"},
        {"2026-11-29T20:00:00Z", "frozen.test", "2026-11-30T07:00:00Z allow "},
        {"2026-11-27T10:00:00Z", "both.test", "2026-11-30T09:00:00Z allow mon 08:00-10:00 UTC"},
        {"2026-11-27T10:00:00Z", "never.test", ""},
        {"2026-11-27T19:00:00Z", "ask.test", "2026-11-30T08:00:00Z allow mon-fri 08:00-18:00 UTC"}, /* held */
        {"2026-11-29T19:00:00Z", "ask.test",
         "2026-11-30T00:00:00Z hold sat 00:00-24:00 UTC, mon-fri 00:00-08:00 UTC or mon-fri 18:00-24:00 UTC"},
        {"2026-11-27T10:00:00Z", "ask.test", ""}, /* allowed */
        {"2026-11-27T10:00:00Z", "always.test", ""},
        {"2026-11-27T10:00:00Z", "path.test", ""},
        {"2026-11-27T10:00:00Z", "nowhere.test", ""},
        {"2061-01-03T12:00:00Z", "work.test", ""}, /* past what is known of zones */
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, shop, NULL));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct request r = get(cases[i].host);
        k.now_ms = at(cases[i].at);
        assert_string_equal(opens(&k, &r, &ci), cases[i].want);
    }
    kit_free(&k);
}

/* A rule that the manifest would not show is not told, whenever it would let something through. */
static void test_next_change_in_scope(void **state)
{
    static const struct subject vm = {SPAN("vm-1"), NULL, 0};
    struct request r = get("theirs.test");
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, shop, NULL));
    k.now_ms = at("2026-11-27T10:00:00Z");
    assert_string_equal(opens(&k, &r, &ci), "");
    assert_string_equal(opens(&k, &r, &vm), "2026-11-30T00:00:00Z allow mon 00:00-24:00 UTC");
    kit_free(&k);
    assert_true(kit_load(&k,
                         "version: 1\n"
                         "scopes: { eu: { sandboxes: [\"ci-*\"], regions: [eu] } }\n"
                         "upstreams: [{ host: us.test, region: us }, { host: eu.test, region: eu }]\n"
                         "rules: [{ id: a, match: { host: [us.test, eu.test] }, decide: allow,\n"
                         "          when: { days: mon, zone: UTC } }]\n",
                         NULL));
    k.now_ms = at("2026-11-27T10:00:00Z");
    r = get("us.test");
    assert_string_equal(opens(&k, &r, &ci), "");
    r = get("eu.test");
    assert_string_equal(opens(&k, &r, &ci), "2026-11-30T00:00:00Z allow mon 00:00-24:00 UTC");
    kit_free(&k);
}

static void test_next_change_for_a_body(void **state)
{
    static uint8_t large[100 * 1024];
    struct http_field json = {SPAN("Content-Type"), SPAN("application/json")};
    struct request r = get("body.test");
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, shop, NULL));
    k.now_ms = at("2026-11-27T10:00:00Z");
    r.method = SPAN("POST");
    r.fields = &json;
    r.nfields = 1;
    r.has_body = true;
    r.body = SPAN("{\"n\":5}");
    assert_string_equal(opens(&k, &r, &ci), "2026-11-30T00:00:00Z allow mon 00:00-24:00 UTC");
    r.body = SPAN("{\"n\":6}");
    assert_string_equal(opens(&k, &r, &ci), "");
    r.body_complete = false;
    assert_string_equal(opens(&k, &r, &ci), "2026-11-30T00:00:00Z body mon 00:00-24:00 UTC");
    memset(large, ' ', sizeof(large));
    memcpy(large, "{\"n\":6}", 7);
    r.body = span_of(large, sizeof(large));
    r.body_complete = true;
    assert_string_equal(opens(&k, &r, &ci), "2026-11-30T00:00:00Z body mon 00:00-24:00 UTC");
    r = get("github.com");
    r.path = SPAN("/acme/app.git/info/refs");
    r.query = SPAN("service=git-receive-pack");
    r.has_query = true;
    assert_string_equal(opens(&k, &r, &ci), "2026-11-30T00:00:00Z allow mon 00:00-24:00 UTC");
    kit_free(&k);
}

/* A denial stays cheap: a deny of all hours is asked about no hour, and for all other hours the body is parsed once.
 * By what is taken of the arena, which a parsed body fills. */
static void test_next_change_cheaply(void **state)
{
    static char large[63 * 1024];
    struct http_field json = {SPAN("Content-Type"), SPAN("application/json")};
    struct request r = get("x.test");
    struct next_change o;
    struct kit k;
    (void)state;
    assert_true(kit_load(&k,
                         "version: 1\n"
                         "rules:\n"
                         "  - { id: bad, match: { host: x.test, json: [{ pointer: /d, in: [a] }] }, decide: deny }\n"
                         "  - { id: odd, match: { host: x.test, json: [{ pointer: /d, in: [b] }] }, decide: deny,\n"
                         "      when: { zone: UTC, hours: \"00:00-23:00\" } }\n"
                         "  - { id: good, match: { host: x.test, json: [{ pointer: /d, in: [c] }] }, decide: allow,\n"
                         "      when: { zone: UTC, hours: [\"01:00-02:00\", \"03:00-04:00\", \"05:00-06:00\"] } }\n"
                         "  - { id: late, match: { host: x.test, json: [{ pointer: /d, in: [e] }] }, decide: allow,\n"
                         "      when: { zone: UTC, hours: \"05:00-06:00\" } }\n",
                         NULL));
    size_t n = (size_t)snprintf(large, sizeof(large), "{\"d\":\"x\",\"l\":[0");
    while (n + 3 < sizeof(large))
        n += (size_t)snprintf(large + n, sizeof(large) - n, ",0");
    memcpy(large + n, "]}", 2);
    n += 2;
    r.method = SPAN("POST");
    r.fields = &json;
    r.nfields = 1;
    r.has_body = true;
    r.body = span_of((const uint8_t *)large, n);
    k.now_ms = at("2026-11-27T00:30:00Z");
    for (const char *d = "abd"; *d; d++) {
        large[6] = *d;
        arena_free(&k.a);
        arena_init(&k.a, 64 << 20);
        policy_judge(k.p, &ci, &r, k.now_ms, &k.a, &k.d);
        assert_int_equal(k.d.verdict, VERDICT_DENY);
        size_t judged = k.a.used;
        assert_false(policy_next_change(k.p, &ci, &r, &k.d, k.now_ms, &k.a, &o));
        /* nothing is read of the body; which conditions fit it is remembered, a few bytes */
        assert_in_range(k.a.used - judged, 0, *d == 'a' ? 128 : judged + judged / 4);
    }
    large[6] = 'e'; /* the fifth time that anything changes */
    assert_string_equal(opens(&k, &r, &ci), "");
    r.body = SPAN("{\"d\":\"e\"}");
    assert_string_equal(opens(&k, &r, &ci), "2026-11-27T05:00:00Z allow every day 05:00-06:00 UTC");
    kit_free(&k);
}

/* Of a push of many refs, that would be asked about one by one for each hour, only the head is. */
static void test_next_change_for_a_push(void **state)
{
    static const char *const some[] = {AAAA40 " " BBBB40 " refs/heads/agent/x", NULL};
    static const char *const other[] = {AAAA40 " " BBBB40 " refs/heads/main", NULL};
    static char body[16384], name[80][120];
    const char *many[81] = {NULL};
    struct http_field type = {SPAN("Content-Type"), SPAN("application/x-git-receive-pack-request")};
    struct request r = get("github.com");
    struct kit k;
    (void)state;
    assert_true(
        kit_load(&k,
                 "version: 1\n"
                 "packs: [git@1]\n"
                 "rules:\n"
                 "  - { id: push, match: { op: git.push, host: github.com, git: { refs: [\"refs/heads/agent/*\"] } "
                 "}, decide: hold,\n"
                 "      when: { days: mon, zone: UTC } }\n"
                 "  - { id: new, match: { op: git.push, resource: \"github:acme/new\", git: { force: false } },\n"
                 "      decide: allow, when: { days: tue, zone: UTC } }\n",
                 NULL));
    for (size_t i = 0; i < 80; i++) {
        snprintf(name[i], sizeof(name[i]), AAAA40 " " BBBB40 " refs/heads/agent/%zu", i);
        many[i] = name[i];
    }
    r.method = SPAN("POST");
    r.path = SPAN("/acme/app.git/git-receive-pack");
    r.fields = &type;
    r.nfields = 1;
    r.has_body = true;
    k.now_ms = at("2026-11-29T10:00:00Z");
    r.body = span_of((const uint8_t *)body, kit_push(body, sizeof(body), "report-status", some, "PACK"));
    assert_string_equal(opens(&k, &r, &ci), "2026-11-30T00:00:00Z hold mon 00:00-24:00 UTC");
    r.body = span_of((const uint8_t *)body, kit_push(body, sizeof(body), "report-status", other, "PACK"));
    assert_string_equal(opens(&k, &r, &ci), "");
    r.body = span_of((const uint8_t *)body, kit_push(body, sizeof(body), "report-status", many, "PACK"));
    assert_string_equal(opens(&k, &r, &ci), "2026-11-30T00:00:00Z body mon 00:00-24:00 UTC");
    r.body_complete = false; /* as the head is denied */
    assert_string_equal(opens(&k, &r, &ci), "2026-11-30T00:00:00Z body mon 00:00-24:00 UTC");
    r.path = SPAN("/acme/app.git/info/refs");
    r.query = SPAN("service=git-receive-pack");
    r = (struct request){.scheme = r.scheme,
                         .host = r.host,
                         .port = 443,
                         .method = SPAN("GET"),
                         .path = r.path,
                         .query = r.query,
                         .has_query = true,
                         .body_complete = true};
    assert_string_equal(opens(&k, &r, &ci), "2026-11-30T00:00:00Z allow mon 00:00-24:00 UTC");
    kit_free(&k);
}

/* Against judging every quarter of an hour, over the days on which clocks are set and over others. */
static void test_next_change_is_the_first_time(void **state)
{
    static const char *const hosts[] = {"work.test",   "two.test",  "howe.test", "night.test",
                                        "frozen.test", "both.test", "ask.test"};
    static const char *const starts[] = {"2026-03-25T11:15:00Z", "2026-04-03T11:15:00Z", "2026-10-02T02:00:00Z",
                                         "2026-10-24T13:30:00Z", "2026-12-30T23:45:00Z"};
    enum { QUARTER = 15 * 60 * 1000, QUARTERS = 8 * 24 * 4 };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, shop, NULL));
    for (size_t h = 0; h < sizeof(hosts) / sizeof(hosts[0]); h++)
        for (size_t i = 0; i < 40; i++) {
            struct request r = get(hosts[h]);
            struct next_change o;
            uint64_t begin = at(starts[i % 5]) + i / 5 * 11 * 4 * QUARTER, t = begin;
            policy_judge(k.p, &ci, &r, begin, &k.a, &k.d);
            enum verdict was = k.d.verdict;
            if (was == VERDICT_ALLOW)
                continue;
            bool said = policy_next_change(k.p, &ci, &r, &k.d, begin, &k.a, &o);
            for (size_t n = 0; n < QUARTERS && k.d.verdict <= was; n++)
                policy_judge(k.p, &ci, &r, t += QUARTER, &k.a, &k.d);
            assert_int_equal(said, k.d.verdict > was);
            if (said && o.at_ms != t)
                fail_msg("%s from %llu: %.*s, not %llu", hosts[h], (unsigned long long)begin, SPAN_FMT(o.at),
                         (unsigned long long)t);
            arena_free(&k.a);
            arena_init(&k.a, 1 << 20);
        }
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instants),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_denies),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_footers),
        cmocka_unit_test(test_odd_footers),
        cmocka_unit_test(test_next_change),
        cmocka_unit_test(test_next_change_in_scope),
        cmocka_unit_test(test_next_change_for_a_body),
        cmocka_unit_test(test_next_change_cheaply),
        cmocka_unit_test(test_next_change_for_a_push),
        cmocka_unit_test(test_next_change_is_the_first_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
