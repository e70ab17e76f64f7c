/* What models were asked, and what that cost, summed up: of the tenant of a key; the operator of this machine says of
 * which, or of all. One answer looks at so many rows and has so many sums; what is left is asked for by `next`. */
#include <stdio.h>

#include "broker/serve/serve.h"
#include "broker/usage.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"

enum {
    LOOKED_AT = 8192, /* rows */
    SUMS_MAX = 256,
    STANDS_MAX = 32, /* tenants of whose budgets is told: each is a sum of all that it spent in a month */
    DAYS_USUAL = 30,
    NEXT_MAX = 512, /* bytes of a place, which stands there as digits of 16 */
    NUMBER_MAX = 20
};
#define DAY_MS UINT64_C(86400000)

/* Where an answer ended. */
struct place {
    struct span tenant;
    bool inside; /* row is one that was looked at; else the tenant is */
    struct bstore_usage_row row;
};

struct standing {
    struct span tenant;
    struct budgets_stand budgets;
};

struct asked {
    struct bstore_usage_ask ask;
    bool all; /* of every tenant */
    struct place at;
    struct usage sums;
    struct standing *stands; /* budgets of tenants that are looked at */
    size_t nstands;
    size_t looked;
    bool more;
};

/* --- what is asked for ------------------------------------------------------------------------ */

/* A misspelt name of a filter would be as if it were not there. */
static bool known(struct call *x)
{
    static const char *const names[] = {"by", "from", "to", "conversation", "tenant", "next"};
    struct span rest = x->head.query, pair, key, value;
    bool more = rest.n > 0;
    while (more) {
        size_t i = 0;
        more = span_cut(rest, '&', &pair, &rest);
        (void)span_cut(pair, '=', &key, &value);
        while (i < sizeof(names) / sizeof(names[0]) && !span_eq(key, span_str(names[i])))
            i++;
        if (i < sizeof(names) / sizeof(names[0]))
            continue;
        reply_no(x, 400, "`%.*s` is none of by, from, to, conversation, tenant and next",
                 SPAN_FMT(span_first(key, 64)));
        return false;
    }
    return true;
}

static bool read_day(struct call *x, const char *name, uint64_t *day)
{
    struct span text;
    if (!call_query(x, span_str(name), &text) || usage_day_of(text, day) == 0)
        return true;
    reply_no(x, 400, "`%s` is a day of UTC, such as 2026-11-30", name);
    return false;
}

/* What put_next wrote. */
static bool read_next(struct call *x, struct asked *q)
{
    struct span text, part[5], rest;
    bool more = true;
    if (!call_query(x, SPAN("next"), &text))
        return true;
    uint8_t *bytes = text.n <= 2 * NEXT_MAX ? arena_alloc(&x->arena, text.n / 2 + 1) : NULL;
    bool ok = bytes != NULL && text.n % 2 == 0 && hex_parse(text, bytes, text.n / 2) == 0;
    rest = ok ? span_of(bytes, text.n / 2) : SPAN_NONE;
    for (size_t i = 0; i < 5; i++) {
        ok = ok && more;
        more = span_cut(rest, '\0', &part[i], &rest);
    }
    struct bstore_usage_row *row = &q->at.row;
    q->at.inside = ok && part[1].n > 0;
    ok = ok && !more &&
         (!q->at.inside ||
          (span_u64(part[1], BSTORE_DAY_MAX, &row->day) == 0 && id_parse(part[2], &row->conversation) == 0));
    if (!ok) {
        reply_no(x, 400, "`next` is what an answer said as its own");
        return false;
    }
    row->asked = (struct bstore_asked){.model = part[3], .task = part[4]};
    if (q->all)
        q->at.tenant = part[0];
    return true;
}

static bool read_ask(struct call *x, struct asked *q)
{
    struct span text;
    uint64_t today = loop_wall(x->serve->loop) / DAY_MS;
    q->ask.to = today;
    q->ask.from = today > DAYS_USUAL ? today - DAYS_USUAL : 0;
    q->sums.by = 1u << USAGE_MODEL;
    if (!known(x) || !read_day(x, "from", &q->ask.from) || !read_day(x, "to", &q->ask.to))
        return false;
    if (call_query(x, SPAN("by"), &text) && usage_by(text, &q->sums.by) != 0) {
        reply_no(x, 400, "`by` is one or several of tenant,conversation,model,task,day");
        return false;
    }
    if (call_query(x, SPAN("conversation"), &text) && id_parse(text, &q->ask.conversation) != 0) {
        reply_no(x, 400, "`conversation` is the id of a conversation");
        return false;
    }
    q->all = span_eq(call_whose(x), SPAN("*")) && x->own;
    q->at.tenant = q->all ? SPAN_NONE : call_whose(x);
    return read_next(x, q);
}

/* --- summed up -------------------------------------------------------------------------------- */

/* BS_FULL: there is no memory. */
static enum bstore_result add(struct call *x, struct asked *q, const struct bstore_usage_row *r)
{
    char *id = arena_alloc(&x->arena, ID_TEXT + 1), *day = arena_alloc(&x->arena, USAGE_DAY_TEXT + 1);
    if (id == NULL || day == NULL)
        return BS_FULL;
    id_text(&r->conversation, id);
    usage_day_text(r->day, day);
    const struct usage_row one = {.key = {[USAGE_TENANT] = q->at.tenant,
                                          [USAGE_CONVERSATION] = span_of(id, ID_TEXT),
                                          [USAGE_MODEL] = r->asked.model,
                                          [USAGE_TASK] = r->asked.task,
                                          [USAGE_DAY] = span_of(day, USAGE_DAY_TEXT)},
                                  .sum = {[USAGE_TIMES] = r->times,
                                          [USAGE_INPUT] = r->asked.input,
                                          [USAGE_OUTPUT] = r->asked.output,
                                          [USAGE_CACHE_READ] = r->asked.cache_read,
                                          [USAGE_CACHE_WRITE] = r->asked.cache_write,
                                          [USAGE_COST] = r->cost_micro}};
    q->more = usage_add(&q->sums, &one) != 0;
    if (!q->more) {
        q->at.row = *r;
        q->at.inside = true;
    }
    return BS_OK;
}

/* Of one tenant, from q->at on. */
static enum bstore_result sum_up(struct call *x, struct asked *q)
{
    struct bstore_usage got = {.n = BSTORE_READ_MAX};
    enum bstore_result r = BS_OK;
    while (r == BS_OK && !q->more && got.n == BSTORE_READ_MAX) {
        q->more = q->looked >= LOOKED_AT;
        q->ask.after = q->at.inside ? &q->at.row : NULL;
        if (q->more || (r = bstore_usage(call_store(x), q->at.tenant, &q->ask, &x->arena, &got)) != BS_OK)
            break;
        for (size_t i = 0; i < got.n && r == BS_OK && !q->more; i++)
            r = add(x, q, &got.row[i]);
        q->looked += got.n;
    }
    return r;
}

/* What stands of its budgets is told with what is by tenant, and of one alone. */
static enum bstore_result stand(struct call *x, struct asked *q, struct span tenant)
{
    struct standing *s = &q->stands[q->nstands];
    if (q->all && !(q->sums.by & 1u << USAGE_TENANT))
        return BS_OK;
    s->tenant = tenant;
    enum bstore_result r = bstore_budgets(call_store(x), tenant, &s->budgets);
    q->nstands += r == BS_OK && s->budgets.n > 0;
    return r;
}

static enum bstore_result sum_up_one(struct call *x, struct asked *q)
{
    enum bstore_result r = q->at.inside ? BS_OK : stand(x, q, q->at.tenant);
    return r == BS_OK ? sum_up(x, q) : r;
}

static enum bstore_result sum_up_all(struct call *x, struct asked *q)
{
    enum bstore_result r = q->at.inside ? sum_up(x, q) : BS_OK;
    while (r == BS_OK && !q->more) {
        struct span before = q->at.tenant, next;
        size_t stands = q->nstands;
        q->looked++; /* one that has nothing is looked at, too */
        if (q->looked >= LOOKED_AT || q->nstands == STANDS_MAX) {
            q->more = true;
            q->at.inside = false;
            break;
        }
        if ((r = bstore_tenant(call_store(x), q->at.tenant, &x->arena, &next)) != BS_OK)
            break;
        q->at = (struct place){.tenant = next};
        r = sum_up_one(x, q);
        if (q->more && !q->at.inside) { /* not one row of it had room: all of it is for the next answer */
            q->at.tenant = before;
            q->nstands = stands;
        }
    }
    return r == BS_NONE ? BS_OK : r;
}

/* --- the answer ------------------------------------------------------------------------------- */

static void put_next(struct jsonw *w, struct call *x, const struct asked *q)
{
    const struct bstore_usage_row *row = &q->at.row;
    char id[ID_TEXT + 1], number[NUMBER_MAX + 1];
    struct dynbuf b;
    dynbuf_init(&b, NEXT_MAX);
    id_text(&row->conversation, id);
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)row->day);
    const struct span part[] = {q->at.tenant, q->at.inside ? span_str(number) : SPAN_NONE, span_str(id),
                                row->asked.model, row->asked.task};
    for (size_t i = 0; i < 5; i++) {
        (void)dynbuf_add(&b, part[i]);
        if (i < 4)
            (void)dynbuf_add(&b, span_of("", 1));
    }
    char *text = dynbuf_ok(&b) ? arena_alloc(&x->arena, 2 * b.n + 1) : NULL;
    if (text != NULL) {
        hex_text(dynbuf_span(&b), text);
        jsonw_kv(w, "next", span_of(text, 2 * b.n));
    }
    dynbuf_free(&b);
}

static void put_sums(struct jsonw *w, const struct usage *u)
{
    jsonw_kv_array(w, "usage");
    for (size_t i = 0; i < u->n; i++) {
        jsonw_object(w);
        for (unsigned k = 0; k < USAGE_KEYS; k++)
            if (u->by & 1u << k)
                jsonw_kv(w, usage_key_name(k), u->row[i].key[k]);
        for (unsigned s = 0; s < USAGE_SUMS; s++)
            jsonw_kv_u64(w, usage_sum_name(s), u->row[i].sum[s]);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void put_amount(struct jsonw *w, const char *name, const char *left, uint64_t most, uint64_t spent)
{
    jsonw_kv_u64(w, name, most);
    jsonw_kv_u64(w, left, most > spent ? most - spent : 0);
}

static void put_budgets(struct jsonw *w, const struct asked *q)
{
    char anew[USAGE_DAY_TEXT + 1];
    jsonw_kv_array(w, "budgets");
    for (size_t i = 0; i < q->nstands; i++)
        for (size_t k = 0; k < q->stands[i].budgets.n; k++) {
            const struct tenant_budget *b = q->stands[i].budgets.row[k].of;
            const struct used *spent = &q->stands[i].budgets.row[k].spent;
            usage_day_text(budget_anew(b->per, q->stands[i].budgets.day), anew);
            jsonw_object(w);
            jsonw_kv(w, "tenant", q->stands[i].tenant);
            jsonw_kv(w, "per", span_str(budget_per_name(b->per)));
            if (b->tokens)
                put_amount(w, "tokens", "tokens_left", b->most.tokens, spent->tokens);
            if (b->cost)
                put_amount(w, "cost_micro", "cost_micro_left", b->most.cost_micro, spent->cost_micro);
            jsonw_kv(w, "anew", span_str(anew));
            jsonw_end_object(w);
        }
    jsonw_end_array(w);
}

/* --- no more ---------------------------------------------------------------------------------- */

/* The desk adds it up; where it cannot be told, one is missing there. */
static void count(struct call *x)
{
    struct chan *desk = x->serve->desk;
    struct dynbuf *b = desk != NULL ? chan_begin(desk, M_BROKER_SEEN, 0) : NULL;
    if (b == NULL)
        return;
    msg_put_u8(b, BROKER_SEEN_BUDGET);
    msg_put_span(b, SPAN_NONE);
    msg_put_span(b, SPAN_NONE);
    for (size_t i = 0; i < BROKER_SEEN_NUMBERS; i++)
        msg_put_u64(b, 0);
    (void)chan_commit_soon(desk);
}

void usage_spent(struct call *x, struct span tenant)
{
    char words[BUDGET_WORDS_MAX] = "a budget of this tenant was used up, and has just begun anew: try again";
    struct budgets_stand all;
    if (bstore_budgets(call_store(x), tenant, &all) != BS_OK)
        all.n = 0;
    (void)budget_words(&all, tenant, words);
    count(x);
    reply_no(x, 403, "%s", words);
}

void usage_list(struct call *x)
{
    struct asked q = {.sums = {.room = SUMS_MAX}};
    char from[USAGE_DAY_TEXT + 1], to[USAGE_DAY_TEXT + 1];
    struct jsonw w;
    if (!read_ask(x, &q))
        return;
    q.sums.row = arena_alloc(&x->arena, SUMS_MAX * sizeof(*q.sums.row));
    q.stands = arena_alloc(&x->arena, STANDS_MAX * sizeof(*q.stands));
    enum bstore_result r = q.sums.row == NULL || q.stands == NULL ? BS_FULL
                           : q.all                                ? sum_up_all(x, &q)
                                                                  : sum_up_one(x, &q);
    if (r != BS_OK) {
        talk_unable(x, r);
        return;
    }
    usage_sort(&q.sums);
    usage_day_text(q.ask.from, from);
    usage_day_text(q.ask.to, to);
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "from", span_str(from));
    jsonw_kv(&w, "to", span_str(to));
    put_sums(&w, &q.sums);
    if (q.nstands > 0)
        put_budgets(&w, &q);
    if (q.more)
        put_next(&w, x, &q);
    jsonw_end_object(&w);
    call_answer(x);
}
