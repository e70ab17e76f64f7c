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

static void print_value(const struct json *v)
{
    switch (v->type) {
    case JSON_STRING:
    case JSON_NUMBER: print_text(v->text); break;
    case JSON_BOOL: fputs(v->truth ? "yes" : "no", stdout); break;
    default: fputs("...", stdout);
    }
}

static bool is_said_already(struct span key)
{
    return span_eq(key, SPAN("seq")) || span_eq(key, SPAN("time_ms")) || span_eq(key, SPAN("kind")) ||
           span_eq(key, SPAN("_schema")) || span_eq(key, SPAN("time"));
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
    const struct json *record = json_parse(json, &arena);
    for (const struct json *m = record ? record->child : NULL; m; m = m->next) {
        bool empty = m->type == JSON_NULL || (m->type == JSON_STRING && m->text.n == 0);
        if (is_said_already(m->key) || empty)
            continue;
        fputs("  ", stdout);
        print_text(m->key);
        putchar('=');
        print_value(m);
    }
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
