/* countersign usage: what the broker's models were asked, and what that cost */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "broker/budgets.h"
#include "broker/usage.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "policy/load/read/scalar.h"

enum { PATH_ROOM = 2048, ROWS_MAX = 4096, SINCE_DAYS = 30, ARENA_ROOM = 64 * 1024 * 1024, CELL_ROOM = 160 };
#define DAY_MS UINT64_C(86400000)

/* What stands of a tenant's budget, as the broker says it. */
struct stands {
    struct span tenant;
    const struct json *is;
};

struct using
{
    char sock[PATH_MAX], ask[PATH_ROOM / 2];
    char from[USAGE_DAY_TEXT + 1], to[USAGE_DAY_TEXT + 1];
    struct usage sums;
    struct stands stands[ROWS_MAX];
    size_t nstands;
    struct arena arena; /* of all pages, which the sums refer to */
};

/* --- what is asked for ------------------------------------------------------------------------ */

static int since(const struct cli_call *c, struct using *u)
{
    const char *given = cli_value(c, "since");
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t today = (uint64_t)now.tv_sec / (DAY_MS / 1000), day = today - SINCE_DAYS, ms;
    if (given && usage_day_of(span_str(given), &day) != 0) {
        if (scalar_time(span_str(given), &ms))
            return verb_fail(CLI_USAGE, "--since is a day of UTC such as 2026-11-30, or how long ago such as 7d");
        day = ms / DAY_MS < today ? today - ms / DAY_MS : 0;
    }
    usage_day_text(day, u->from);
    usage_day_text(today, u->to);
    return CLI_OK;
}

static int filters(const struct cli_call *c, struct using *u)
{
    const char *by = cli_value(c, "by") ? cli_value(c, "by") : "model", *tenant = cli_value(c, "tenant"),
               *conversation = cli_value(c, "conversation");
    struct id id;

    if (usage_by(span_str(by), &u->sums.by) != 0)
        return verb_fail(CLI_USAGE, "--by is one or several of tenant,conversation,model,task,day");
    if (tenant && (!span_is_of(span_str(tenant), SPAN("-._")) || *tenant == '\0' || strlen(tenant) > PATH_ROOM / 8))
        return verb_fail(CLI_USAGE, "that is no name of a tenant");
    if (conversation && id_parse(span_str(conversation), &id) != 0)
        return verb_fail(CLI_USAGE, "`%s` is no id of a conversation: `countersign chat --list` has some",
                         conversation);
    int rc = since(c, u);
    (void)snprintf(u->ask, sizeof(u->ask), "/usage?by=%s&from=%s&to=%s&tenant=%s%s%s", by, u->from, u->to,
                   tenant ? tenant : "*", conversation ? "&conversation=" : "", conversation ? conversation : "");
    return rc;
}

static int begin(const struct cli_call *c, struct using *u)
{
    struct err e;

    if (api_socket(c->state_dir, u->sock, &e) != 0)
        return verb_fail(CLI_RUNTIME, "%s", e.text);
    char *slash = strrchr(u->sock, '/');
    (void)snprintf(slash, sizeof(u->sock) - (size_t)(slash - u->sock), "/broker.sock");
    int runs = api_running(u->sock, &e);
    if (runs < 0)
        return verb_fail(CLI_RUNTIME, "%s", e.text);
    return runs > 0
               ? CLI_OK
               : verb_fail(CLI_STORE,
                           "no broker serves here: `broker:` in countersign.yaml makes one (in `only:`, stream)");
}

/* --- its pages -------------------------------------------------------------------------------- */

static int add_page(struct using *u, const struct json *page)
{
    const struct json *list = json_get(page, SPAN("usage"));
    int rc = list ? CLI_OK : verb_fail(CLI_RUNTIME, "the broker's answer is not understood");

    for (const struct json *r = list ? list->child : NULL; r && rc == CLI_OK; r = r->next) {
        struct usage_row one = {.sum = {0}};
        for (unsigned k = 0; k < USAGE_KEYS; k++)
            one.key[k] = member_text(r, usage_key_name(k));
        for (unsigned s = 0; s < USAGE_SUMS; s++)
            one.sum[s] = member_u64(r, usage_sum_name(s));
        if (usage_add(&u->sums, &one) != 0)
            rc = verb_fail(CLI_RUNTIME,
                           "there are more than %d sums: ask for less with --since, --tenant or --conversation, or "
                           "for fewer words of --by",
                           ROWS_MAX);
    }
    const struct json *budgets = json_get(page, SPAN("budgets"));
    for (const struct json *b = budgets ? budgets->child : NULL; b && u->nstands < ROWS_MAX; b = b->next)
        u->stands[u->nstands++] = (struct stands){member_text(b, "tenant"), b};
    return rc;
}

/* The page behind `next`, which becomes that of the one after it; empty: there is none. */
static int read_page(struct using *u, struct span *next)
{
    char path[PATH_ROOM];
    struct dynbuf answer;
    unsigned status = 0;
    struct err e;
    const struct json *page = NULL;
    int rc = CLI_OK;

    (void)snprintf(path, sizeof(path), "%s%s%.*s", u->ask, next->n ? "&next=" : "", SPAN_FMT(*next));
    if (api_call(u->sock, "GET", path, SPAN_NONE, &status, &answer, &e) != 0) {
        rc = verb_fail(CLI_RUNTIME, "%s", e.text);
    } else if (status != 200) {
        (void)api_explain(status, dynbuf_span(&answer), &e);
        rc = verb_fail(CLI_RUNTIME, "%s", e.text);
    } else {
        page = json_parse(dynbuf_span(&answer), &u->arena);
        rc = add_page(u, page);
    }
    dynbuf_free(&answer);
    struct span then = json_text(page, SPAN("next"));
    if (rc == CLI_OK && (then.n > PATH_ROOM / 2 || (then.n && span_eq(then, *next))))
        rc = verb_fail(CLI_RUNTIME, "the broker's answer is not understood");
    *next = then;
    return rc;
}

/* --- shown ------------------------------------------------------------------------------------ */

static void put_budgets(struct jsonw *w, const struct using *u)
{
    jsonw_kv_array(w, "budgets");
    for (size_t i = 0; i < u->nstands; i++)
        jsonw_tree(w, u->stands[i].is);
    jsonw_end_array(w);
}

static int print_json(const struct using *u)
{
    struct dynbuf b;
    struct jsonw w;
    int rc = CLI_OK;

    dynbuf_init(&b, API_ANSWER_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "from", span_str(u->from));
    jsonw_kv(&w, "to", span_str(u->to));
    jsonw_kv_array(&w, "usage");
    for (size_t i = 0; i < u->sums.n; i++) {
        jsonw_object(&w);
        for (unsigned k = 0; k < USAGE_KEYS; k++)
            if (u->sums.by & 1u << k)
                jsonw_kv(&w, usage_key_name(k), u->sums.row[i].key[k]);
        for (unsigned s = 0; s < USAGE_SUMS; s++)
            jsonw_kv_u64(&w, usage_sum_name(s), u->sums.row[i].sum[s]);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    if (u->nstands > 0)
        put_budgets(&w, u);
    jsonw_end_object(&w);
    if (dynbuf_ok(&b))
        print_json_line(dynbuf_span(&b));
    else
        rc = verb_fail(CLI_RUNTIME, "out of memory");
    dynbuf_free(&b);
    return rc;
}

/* "12.50 and 2000000 tokens", "3.20" ... */
static void add_amounts(struct dynbuf *b, const struct json *is, const char *cost, const char *tokens)
{
    char text[BUDGET_AMOUNT_MAX];
    bool money = json_get(is, span_str(cost)) != NULL, words = json_get(is, span_str(tokens)) != NULL;

    budget_cost_text(member_u64(is, cost), text);
    if (money)
        (void)dynbuf_addf(b, "%s%s", text, words ? " and " : "");
    if (words)
        (void)dynbuf_addf(b, "%llu tokens", (unsigned long long)member_u64(is, tokens));
}

/* How much its tenant may ask in a day or a month, and what is left of it. */
static void print_budgets(struct table *t, const struct using *u, struct span tenant)
{
    struct dynbuf is, left;

    dynbuf_init(&is, CELL_ROOM);
    dynbuf_init(&left, CELL_ROOM);
    for (size_t i = 0; i < u->nstands; i++) {
        const struct json *b = u->stands[i].is;
        if (!span_eq(u->stands[i].tenant, tenant))
            continue;
        (void)dynbuf_addf(&is, "%s", is.n ? "; " : "");
        (void)dynbuf_addf(&left, "%s", left.n ? "; " : "");
        add_amounts(&is, b, "cost_micro", "tokens");
        (void)dynbuf_addf(&is, " a %s", span_eq(member_text(b, "per"), SPAN("month")) ? "month" : "day");
        add_amounts(&left, b, "cost_micro_left", "tokens_left");
    }
    table_text(t, is.n ? dynbuf_span(&is) : SPAN("-"));
    table_text(t, left.n ? dynbuf_span(&left) : SPAN("-"));
    dynbuf_free(&is);
    dynbuf_free(&left);
}

static void print_table(const struct using *u)
{
    static const char *const heads[USAGE_KEYS] = {"TENANT", "CONVERSATION", "MODEL", "TASK", "DAY"};
    char all[128];
    size_t n = 0;
    bool budgets = u->nstands > 0 && u->sums.by & 1u << USAGE_TENANT;
    struct table t;

    for (unsigned k = 0; k < USAGE_KEYS; k++)
        if (u->sums.by & 1u << k)
            n += (size_t)snprintf(all + n, sizeof(all) - n, "%s\t", heads[k]);
    (void)snprintf(all + n, sizeof(all) - n, "ASKED\tINPUT\tOUTPUT\tCACHED\tWRITTEN\tCOST%s",
                   budgets ? "\tBUDGET\tLEFT" : "");
    table_begin(&t, all);
    for (size_t i = 0; i < u->sums.n; i++) {
        const struct usage_row *r = &u->sums.row[i];
        for (unsigned k = 0; k < USAGE_KEYS; k++)
            if (u->sums.by & 1u << k)
                table_text(&t, r->key[k]);
        for (unsigned s = 0; s < USAGE_COST; s++)
            table_cell(&t, "%llu", (unsigned long long)r->sum[s]);
        table_cell(&t, "%llu.%06llu", (unsigned long long)(r->sum[USAGE_COST] / 1000000),
                   (unsigned long long)(r->sum[USAGE_COST] % 1000000));
        if (budgets)
            print_budgets(&t, u, r->key[USAGE_TENANT]);
        table_row(&t);
    }
    table_end(&t, "No model was asked.");
}

int usage_main(const struct cli_call *c)
{
    static struct usage_row rows[ROWS_MAX];
    static struct using u;
    struct span next = SPAN_NONE;
    int rc = c->nwords ? cli_complain(c->verb, "there is a word too many") : filters(c, &u);

    u.sums.row = rows;
    u.sums.room = ROWS_MAX;
    arena_init(&u.arena, ARENA_ROOM);
    if (rc == CLI_OK)
        rc = begin(c, &u);
    do {
        if (rc == CLI_OK)
            rc = read_page(&u, &next);
    } while (rc == CLI_OK && next.n > 0);
    usage_sort(&u.sums);
    if (rc == CLI_OK && c->json)
        rc = print_json(&u);
    else if (rc == CLI_OK)
        print_table(&u);
    arena_free(&u.arena);
    return rc;
}
