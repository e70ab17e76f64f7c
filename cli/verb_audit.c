/* countersign audit tail|verify */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/verb.h"
#include "cli/verbs.h"
#include "common/id.h"

enum { PAGE_ROWS = 500, PATH_ROOM = 128 };

struct audit {
    struct gateway_call g;
    bool follow;
    unsigned long count;
    const char *head; /* SEQ:HASH kept elsewhere */
    uint64_t after;
    /* the chain so far */
    struct digest hash;
    uint64_t seq;
    bool head_seen;
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

/* Told by the line already, or long and of no use to eyes; --json has them. */
static bool is_left_out(struct span key)
{
    static const char *const keys[] = {"seq", "time_ms", "time", "kind", "_schema", "boot", "policy", "request"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (span_eq(key, span_str(keys[i])))
            return true;
    return false;
}

static void print_value(const struct json *v)
{
    if (v->type == JSON_BOOL)
        fputs(v->truth ? "yes" : "no", stdout);
    else if (v->type == JSON_STRING || v->type == JSON_NUMBER)
        print_text(v->text);
    else
        fputs("...", stdout);
}

/* A rule as its id and place. */
static void print_rule(const struct json *v)
{
    fputs("  rule=", stdout);
    print_text(member_text(v, "id"));
    putchar(' ');
    print_text(member_text(v, "file"));
    printf(":%llu", (unsigned long long)member_u64(v, "line"));
}

/* key=value for every member that says something; those of an object in it, too. */
static void print_record(const struct json *record, bool deeper)
{
    for (const struct json *m = record ? record->child : NULL; m; m = m->next) {
        bool empty = m->type == JSON_NULL || (m->type == JSON_STRING && m->text.n == 0);
        if (empty || is_left_out(m->key))
            continue;
        if (m->type == JSON_OBJECT && span_eq(m->key, SPAN("rule"))) {
            print_rule(m);
        } else if (m->type == JSON_OBJECT && deeper) {
            print_record(m, false);
        } else {
            fputs("  ", stdout);
            print_text(m->key);
            putchar('=');
            print_value(m);
        }
    }
}

static void print_row(struct audit *a, const struct json *r)
{
    struct span json = member_text(r, "json");
    struct arena arena;
    char when[32];

    if (a->g.json) {
        print_lines(json);
        putchar('\n');
        return;
    }
    printf("%llu  %s  ", (unsigned long long)member_u64(r, "seq"), time_text(member_u64(r, "time_ms"), when));
    print_text(member_text(r, "kind"));
    arena_init(&arena, 4 * API_EVENT_MAX);
    print_record(json_parse(json, &arena), true);
    putchar('\n');
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
            print_row(a, r);
            a->after = member_u64(r, "seq");
        }
    } while (rc == CLI_OK && rows > 0);
    fflush(stdout);
    return rc;
}

static int tail(struct audit *a)
{
    const struct json *r;
    int rc = page(a, 1, &r);

    if (rc != CLI_OK)
        return rc;
    uint64_t head = member_u64(a->g.tree, "head");
    a->after = head > a->count ? head - a->count : 0;
    rc = tail_from(a);
    while (rc == CLI_OK && a->follow && !ferror(stdout)) {
        (void)sleep(1);
        rc = tail_from(a);
    }
    return rc;
}

/* --- verify --------------------------------------------------------------- */

static int broken(uint64_t seq, const char *what)
{
    return verb_fail(CLI_RUNTIME, "the chain is broken at record %llu: %s", (unsigned long long)seq, what);
}

/* SHA-256 of the hash before and the record's bytes must be the record's hash. */
static int check_row(struct audit *a, const struct json *r)
{
    struct span json = member_text(r, "json"), hex = member_text(r, "hash");
    uint64_t seq = member_u64(r, "seq"), said = 0;
    struct digest want, is;
    struct arena arena;
    struct digest_ctx *d;

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
    if (record && json_u64(record, SPAN("seq"), &said) != 0)
        said = 0;
    arena_free(&arena);
    if (said != seq)
        return broken(seq, "it says another number of itself");
    a->hash = is;
    a->seq = seq;
    return CLI_OK;
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

static int verify(struct audit *a)
{
    const struct json *r;
    char hex[2 * DIGEST_BYTES + 1];
    unsigned rows;
    int rc;

    do {
        rows = 0;
        rc = page(a, PAGE_ROWS, &r);
        for (; rc == CLI_OK && r; r = r->next, rows++) {
            rc = check_row(a, r);
            if (rc == CLI_OK)
                rc = check_head(a);
            a->after = a->seq;
        }
    } while (rc == CLI_OK && rows > 0);
    if (rc != CLI_OK)
        return rc;
    if (a->head && !a->head_seen)
        return verb_fail(CLI_RUNTIME, "the chain ends at record %llu, before the one that was kept elsewhere",
                         (unsigned long long)a->seq);
    hex_text(span_of(a->hash.b, DIGEST_BYTES), hex);
    if (a->g.json)
        printf("{\"records\":%llu,\"head\":\"%llu:%s\"}\n", (unsigned long long)a->seq, (unsigned long long)a->seq,
               hex);
    else
        printf("%llu records, unbroken. Head: %llu:%s\n", (unsigned long long)a->seq, (unsigned long long)a->seq,
               hex);
    return CLI_OK;
}

int audit_main(int argc, char **argv)
{
    static const struct option options[] = {VERB_OPTIONS,
                                            {"follow", no_argument, NULL, 'f'},
                                            {"lines", required_argument, NULL, 'n'},
                                            {"head", required_argument, NULL, OPT_OWN},
                                            {NULL, 0, NULL, 0}};
    struct audit a = {.count = 20};
    const char *state_dir = NULL;
    bool json = false;
    int o, rc;

    while ((o = getopt_long(argc, argv, "fn:", options, NULL)) != -1)
        switch (o) {
        case OPT_STATE_DIR: state_dir = optarg; break;
        case OPT_JSON: json = true; break;
        case 'f': a.follow = true; break;
        case 'n': a.count = strtoul(optarg, NULL, 10); break;
        case OPT_OWN: a.head = optarg; break;
        default: return cli_usage("audit");
        }
    bool is_tail = argc - optind == 1 && strcmp(argv[optind], "tail") == 0;
    if (!is_tail && !(argc - optind == 1 && strcmp(argv[optind], "verify") == 0))
        return cli_usage("audit");
    rc = verb_begin(&a.g, state_dir, json);
    if (rc == CLI_OK)
        rc = is_tail ? tail(&a) : verify(&a);
    verb_end(&a.g);
    return rc;
}
