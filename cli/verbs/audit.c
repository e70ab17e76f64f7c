/* countersign audit tail|export|verify */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/control/audit_words.h"
#include "common/crypto/audit_head.h"
#include "cli/verb.h"
#include "cli/verbs/chain.h"
#include "common/id.h"
#include "common/time/clock.h"
#include "common/msg.h"
#include "cli/policy/record/source.h"

enum {
    PAGE_ROWS = 500,
    PATH_ROOM = 128,
    COUNT_MAX = 1000000,
    STRETCH = 8, /* records to a line, more or less */
    NAME_WIDTH = 10,
    WORDS_WIDTH = 42,
    LINE_MAX_BYTES = 64 * 1024,
    UNSIGNED_MAX = 1024, /* the ledger signs far sooner */
    KEY_TRIES = 300,     /* a minute of them: the ledger tells the desk as soon as both are there */
    KEY_PAUSE_US = 200 * 1000,
};

struct audit {
    struct gateway_call g;
    bool follow, all;
    unsigned long count;
    bool counting; /* lines, not printing them */
    uint64_t shown, skip;
    const char *head; /* SEQ:HASH kept elsewhere */
    const char *key;  /* hex, of whose signatures are looked for; NULL: the gateway's own */
    const char *kind; /* what is exported; NULL: all */
    uint64_t since, until;
    uint64_t after;
    /* the chain so far */
    struct digest hash;
    uint64_t seq;
    bool head_seen;
    chain_fn *each; /* of each record that is in order; NULL: nobody */
    void *arg;
    char signer[2 * AUDIT_KEY + 1];
    uint64_t signed_to, signed_last; /* what was found, and what the store says is the last one */
};

static int page(struct audit *a, unsigned limit, const struct json **rows)
{
    char path[PATH_ROOM];
    const struct json *list;
    int rc;

    (void)snprintf(path, sizeof(path), "/api/v1/audit?after=%llu&limit=%u", (unsigned long long)a->after, limit);
    rc = verb_ask(&a->g, "GET", path, SPAN_NONE, 200);
    list = rc == CLI_OK ? json_get(a->g.tree, SPAN("audit")) : NULL;
    if (rc == CLI_OK && !list)
        return verb_fail(CLI_RUNTIME, "the gateway's answer is not understood");
    *rows = list ? list->child : NULL;
    return rc;
}

/* --- tail ----------------------------------------------------------------- */

/* "  15  2026-11-22 10:20:30  agent  push sent, answered 200    POST git.example/app.git/git-receive-pack" */
static void print_line(const struct json *r, const struct json *record)
{
    struct dynbuf words, target;
    struct span name = json_text(record, SPAN("sandbox"));
    char when[32];

    dynbuf_init(&words, LINE_MAX_BYTES);
    dynbuf_init(&target, LINE_MAX_BYTES);
    audit_words(record, &words);
    audit_target(record, &target);
    printf("%5llu  %s  ", (unsigned long long)member_u64(r, "seq"), time_text(member_u64(r, "time_ms"), when));
    print_text(name.n ? name : SPAN("-"));
    printf("%*s  ", name.n < NAME_WIDTH ? (int)(NAME_WIDTH - (name.n ? name.n : 1)) : 0, "");
    print_text(dynbuf_span(&words));
    if (target.n) {
        printf("%*s  ", words.n < WORDS_WIDTH ? (int)(WORDS_WIDTH - words.n) : 0, "");
        print_text(dynbuf_span(&target));
    }
    putchar('\n');
    dynbuf_free(&words);
    dynbuf_free(&target);
}

static void take_row(struct audit *a, const struct json *r)
{
    struct span json = member_text(r, "json");
    struct arena arena;

    if (a->g.json) {
        print_json_line(json);
        return;
    }
    arena_init(&arena, 4 * API_EVENT_MAX);
    const struct json *record = json_parse(json, &arena);
    bool shown = a->all || audit_is_news(record);
    if (shown && a->counting)
        a->shown++;
    else if (shown && a->skip > 0)
        a->skip--;
    else if (shown)
        print_line(r, record);
    arena_free(&arena);
}

static int tail_from(struct audit *a)
{
    const struct json *r;
    unsigned rows;
    int rc;

    do {
        rows = 0;
        rc = page(a, PAGE_ROWS, &r);
        for (; rc == CLI_OK && r; r = r->next, rows++) {
            take_row(a, r);
            a->after = member_u64(r, "seq");
        }
    } while (rc == CLI_OK && rows > 0);
    fflush(stdout);
    return rc;
}

/* The last a->count lines: for people not every record is one, so those of a longer stretch are counted first. */
static int from_where(struct audit *a, uint64_t head)
{
    uint64_t reach = a->g.json || a->all ? a->count : a->count * STRETCH;
    uint64_t from = head > reach ? head - reach : 0;
    int rc = CLI_OK;

    a->after = from;
    if (reach != a->count) {
        a->counting = true;
        rc = tail_from(a);
        a->counting = false;
        a->skip = a->shown > a->count ? a->shown - a->count : 0;
        a->after = from;
    }
    return rc;
}

static int tail(struct audit *a)
{
    const struct json *r;
    int rc = page(a, 1, &r);

    if (rc == CLI_OK)
        rc = from_where(a, member_u64(a->g.tree, "head"));
    if (rc == CLI_OK)
        rc = tail_from(a);
    while (rc == CLI_OK && a->follow && !ferror(stdout)) {
        (void)sleep(1);
        rc = tail_from(a);
    }
    return rc;
}

/* --- export --------------------------------------------------------------- */

static void export_row(const struct audit *a, const struct json *r)
{
    uint64_t ms = member_u64(r, "time_ms");
    if (ms < a->since || ms > a->until || (a->kind && !span_eq(member_text(r, "kind"), span_str(a->kind))))
        return;
    print_json_line(member_text(r, "json"));
}

/* Up to the record that was the last when it began: what comes meanwhile would never let it end. */
static int export_all(struct audit *a)
{
    const struct json *r;
    int rc = page(a, 1, &r);
    uint64_t head = rc == CLI_OK ? member_u64(a->g.tree, "head") : 0;

    while (rc == CLI_OK && a->after < head) {
        uint64_t before = a->after;
        rc = page(a, PAGE_ROWS, &r);
        for (; rc == CLI_OK && r && a->after < head; r = r->next) {
            export_row(a, r);
            a->after = member_u64(r, "seq");
        }
        if (rc == CLI_OK && a->after == before)
            return verb_fail(CLI_RUNTIME, "records after %llu are missing", (unsigned long long)before);
        if (rc == CLI_OK && (fflush(stdout) != 0 || ferror(stdout)))
            return verb_fail(CLI_RUNTIME, "the records cannot be written");
    }
    return rc;
}

/* --- verify --------------------------------------------------------------- */

static int broken(uint64_t seq, const char *what)
{
    return verb_fail(CLI_RUNTIME, "the chain is broken at record %llu: %s", (unsigned long long)seq, what);
}

/* What listings print and filter by must be what the text says, of which alone there is a hash. */
static const char *column_amiss(const struct json *r, const struct json *record, uint64_t seq)
{
    static const char *const texts[] = {"kind", "exchange", "ticket"};
    uint64_t said = 0, ms = member_u64(r, "time_ms");
    char when[UTC_TEXT];

    if (!record || json_u64(record, SPAN("seq"), &said) != 0 || said != seq)
        return "seq";
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!span_eq(member_text(r, texts[i]), json_text(record, span_str(texts[i]))))
            return texts[i];
    return utc_text(ms, true, when) && span_eq(json_text(record, SPAN("time")), span_str(when)) ? NULL : "time";
}

/* A signature covers its record and all before it. */
static int check_signature(struct audit *a, const struct json *r)
{
    struct span hex = member_text(r, "signature"), by = member_text(r, "key");
    uint8_t key[AUDIT_KEY], signature[AUDIT_SIGNATURE];

    if (hex.n == 0)
        return CLI_OK;
    if (hex_parse(by, key, AUDIT_KEY) != 0 || hex_parse(hex, signature, AUDIT_SIGNATURE) != 0 ||
        !audit_head_signed(a->seq, &a->hash, key, signature))
        return broken(a->seq, "its signature does not fit");
    if (!span_eq(by, span_str(a->signer)))
        return verb_fail(CLI_RUNTIME,
                         "record %llu is signed with another key, %.*s, and not with %s; if that was this gateway's, "
                         "give it with --key",
                         (unsigned long long)a->seq, SPAN_FMT(by), a->signer);
    a->signed_to = a->seq;
    return CLI_OK;
}

/* SHA-256 of the hash before and the record's bytes must be the record's hash. */
static int check_row(struct audit *a, const struct json *r)
{
    struct span json = member_text(r, "json"), hex = member_text(r, "hash");
    uint64_t seq = member_u64(r, "seq");
    struct digest want, is;
    struct arena arena;
    struct digest_ctx *d;
    char what[64] = "";

    if (seq != a->seq + 1)
        return broken(seq, "records before it are missing");
    if (hex_parse(hex, want.b, DIGEST_BYTES) != 0)
        return broken(seq, "it has no hash");
    d = digest_begin();
    digest_add(d, span_of(a->hash.b, DIGEST_BYTES));
    digest_add(d, json);
    digest_end(d, &is);
    if (memcmp(is.b, want.b, DIGEST_BYTES) != 0)
        return broken(seq, "its text or one before it was changed");
    arena_init(&arena, 4 * API_EVENT_MAX);
    const struct json *record = json_parse(json, &arena);
    const char *amiss = column_amiss(r, record, seq);
    if (amiss)
        (void)snprintf(what, sizeof(what), "its column %s is not what its text says", amiss);
    int rc = amiss || !a->each ? CLI_OK : a->each(a->arg, seq, json, record);
    arena_free(&arena);
    if (what[0])
        return broken(seq, what);
    a->hash = is;
    a->seq = seq;
    return rc;
}

/* The head that somebody kept elsewhere must be met on the way: only so is a cut tail seen. */
static int check_head(struct audit *a)
{
    char *end;
    struct digest want;
    unsigned long long seq = a->head ? strtoull(a->head, &end, 10) : 0;

    if (!a->head || a->seq != seq)
        return CLI_OK;
    if (*end != ':' || hex_parse(span_str(end + 1), want.b, DIGEST_BYTES) != 0)
        return verb_fail(CLI_USAGE, "--head is SEQ:HASH, as `audit verify` prints it");
    if (memcmp(want.b, a->hash.b, DIGEST_BYTES) != 0)
        return broken(a->seq, "it is not the record that was kept elsewhere");
    a->head_seen = true;
    return CLI_OK;
}

/* Whose signatures they must be, and how far they went when this began. */
static int whose(struct audit *a)
{
    struct span key = a->key ? span_str(a->key) : json_text(a->g.tree, SPAN("key"));
    uint8_t raw[AUDIT_KEY];

    a->signed_last = member_u64(a->g.tree, "signed");
    if (hex_parse(key, raw, sizeof(raw)) != 0)
        return a->key
                   ? verb_fail(CLI_USAGE, "--key is %d hexadecimal digits", 2 * AUDIT_KEY)
                   : verb_fail(CLI_RUNTIME, "the gateway does not say its key yet; try again, or give it with --key");
    hex_text(span_of(raw, sizeof(raw)), a->signer);
    return CLI_OK;
}

static int check_end(const struct audit *a)
{
    unsigned long long seq = a->seq, last = a->signed_last, here = a->signed_to;

    if (a->head && !a->head_seen)
        return verb_fail(CLI_RUNTIME, "the chain ends at record %llu, before the one that was kept elsewhere", seq);
    if (last > here)
        return verb_fail(CLI_RUNTIME, "the chain ends at record %llu, and record %llu was signed: its tail was cut",
                         seq, last);
    if (seq - here > UNSIGNED_MAX)
        return verb_fail(CLI_RUNTIME, "no record after %llu is signed, of %llu: signatures were taken away", here,
                         seq);
    return CLI_OK;
}

/* A gateway that has only just begun says its key a moment later. */
static int first_page(struct audit *a, const struct json **r)
{
    int rc = page(a, PAGE_ROWS, r);

    for (unsigned n = 0; rc == CLI_OK && !a->key && json_text(a->g.tree, SPAN("key")).n == 0 && n < KEY_TRIES; n++) {
        if (n == KEY_TRIES / 30)
            fprintf(stderr, "countersign: the gateway does not say its key yet; asking again for a minute\n");
        (void)usleep(KEY_PAUSE_US);
        rc = page(a, PAGE_ROWS, r);
    }
    return rc;
}

static int verify(struct audit *a)
{
    const struct json *r;
    unsigned rows;
    int rc;

    do {
        rows = 0;
        rc = a->after == 0 ? first_page(a, &r) : page(a, PAGE_ROWS, &r);
        if (rc == CLI_OK && a->after == 0)
            rc = whose(a);
        for (; rc == CLI_OK && r; r = r->next, rows++) {
            rc = check_row(a, r);
            if (rc == CLI_OK)
                rc = check_signature(a, r);
            if (rc == CLI_OK)
                rc = check_head(a);
            a->after = a->seq;
        }
    } while (rc == CLI_OK && rows > 0);
    return rc != CLI_OK ? rc : check_end(a);
}

static int verify_and_say(struct audit *a)
{
    char hex[2 * DIGEST_BYTES + 1];
    int rc = verify(a);

    if (rc != CLI_OK)
        return rc;
    hex_text(span_of(a->hash.b, DIGEST_BYTES), hex);
    if (a->g.json)
        printf("{\"records\":%llu,\"head\":\"%llu:%s\",\"signed\":%llu,\"key\":\"%s\"}\n", (unsigned long long)a->seq,
               (unsigned long long)a->seq, hex, (unsigned long long)a->signed_to, a->signer);
    else
        printf("%llu records, unbroken. Head: %llu:%s\nSigned up to record %llu by key %s\n",
               (unsigned long long)a->seq, (unsigned long long)a->seq, hex, (unsigned long long)a->signed_to,
               a->signer);
    return CLI_OK;
}

static int count(const char *arg, unsigned long *n)
{
    uint64_t v;

    if (span_u64(span_str(arg), COUNT_MAX, &v) != 0)
        return verb_fail(-1, "-n takes a number up to %d, not %s", COUNT_MAX, arg);
    *n = (unsigned long)v;
    return 0;
}

/* "24h" before now, or a moment; as it was when nothing is given. */
static int moment(const struct cli_call *c, const char *option, uint64_t *ms)
{
    const char *text = cli_value(c, option);
    struct err e = {""};

    if (!text || source_moment(text, option, (uint64_t)time(NULL) * 1000, ms, &e) == 0)
        return CLI_OK;
    return verb_fail(CLI_USAGE, "--%s", e.text);
}

static int with_gateway(const struct cli_call *c, struct audit *a, int (*fn)(struct audit *a))
{
    int rc = verb_begin(&a->g, c);

    if (rc == CLI_OK)
        rc = fn(a);
    verb_end(&a->g);
    return rc;
}

int audit_tail(const struct cli_call *c)
{
    struct audit a = {.count = 20, .follow = cli_flag(c, "follow"), .all = cli_flag(c, "all")};
    const char *lines = cli_value(c, "lines");

    if (lines && count(lines, &a.count) != 0)
        return CLI_USAGE;
    return with_gateway(c, &a, tail);
}

int audit_export(const struct cli_call *c)
{
    struct audit a = {.until = UINT64_MAX, .kind = cli_value(c, "kind")};

    if (moment(c, "since", &a.since) != CLI_OK || moment(c, "until", &a.until) != CLI_OK)
        return CLI_USAGE;
    return with_gateway(c, &a, export_all);
}

int audit_verify(const struct cli_call *c)
{
    struct audit a = {.head = cli_value(c, "head"), .key = cli_value(c, "key")};

    return with_gateway(c, &a, verify_and_say);
}

int chain_walk(const struct cli_call *c, chain_fn *each, void *arg, uint64_t *records)
{
    struct audit a = {.head = cli_value(c, "head"), .key = cli_value(c, "key"), .each = each, .arg = arg};
    int rc = with_gateway(c, &a, verify);

    *records = a.seq;
    return rc;
}
