/* /api/v1/metrics: what people decided, in the text that Prometheus reads. */
#include "web-approval/broker/tally.h"
#include "web-approval/page/page.h"
#include "web-approval/rooms/metrics.h"
#include "web-approval/store/people.h"

enum { LABEL_MAX = 100 };

/* What a pack or a request called it: what would end a label is escaped, and what is no text left out. */
static void label(struct dynbuf *out, struct span s)
{
    s = span_first(s, LABEL_MAX);
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"' || s.p[i] == '\\')
            (void)dynbuf_add_byte(out, '\\');
        if (s.p[i] >= 0x20 && s.p[i] < 0x7f)
            (void)dynbuf_add_byte(out, s.p[i]);
    }
}

static void series(struct exchange *x, const char *name, const struct tally_row *r)
{
    (void)dynbuf_addf(&x->out, "%s{op=\"", name);
    label(&x->out, r->op);
    PUT(x, "\",effect=\"");
    label(&x->out, r->effect);
    PUT(x, "\"");
}

static int count_row(void *ctx, const struct tally_row *r)
{
    struct exchange *x = ctx;

    series(x, "countersign_approvals_total", r);
    (void)dynbuf_addf(&x->out, ",decision=\"approved\"} %llu\n", (unsigned long long)r->approved);
    series(x, "countersign_approvals_total", r);
    (void)dynbuf_addf(&x->out, ",decision=\"denied\"} %llu\n", (unsigned long long)r->denied);
    return 0;
}

static int time_row(void *ctx, const struct tally_row *r)
{
    static const char *const le[TALLY_BUCKETS] = {"1", "3", "10", "30", "60", "300", "1800", "7200"};
    struct exchange *x = ctx;
    unsigned long long all = r->approved + r->denied;

    for (size_t i = 0; i <= TALLY_BUCKETS; i++) {
        series(x, "countersign_approval_decision_seconds_bucket", r);
        (void)dynbuf_addf(&x->out, ",le=\"%s\"} %llu\n", i < TALLY_BUCKETS ? le[i] : "+Inf",
                          i < TALLY_BUCKETS ? (unsigned long long)r->under[i] : all);
    }
    series(x, "countersign_approval_decision_seconds_sum", r);
    (void)dynbuf_addf(&x->out, "} %llu.%03u\n", (unsigned long long)(r->ms / 1000), (unsigned)(r->ms % 1000));
    series(x, "countersign_approval_decision_seconds_count", r);
    (void)dynbuf_addf(&x->out, "} %llu\n", all);
    return 0;
}

static int fast_row(void *ctx, const struct tally_row *r)
{
    struct exchange *x = ctx;

    series(x, "countersign_approvals_under_3s_total", r);
    (void)dynbuf_addf(&x->out, "} %llu\n", (unsigned long long)r->under[1]);
    return 0;
}

static int family(struct exchange *x, const char *head, desk_store_tally_fn *row, struct err *e)
{
    (void)dynbuf_addf(&x->out, "%s", head);
    return desk_store_tally(x->desk->store, &x->arena, row, x, e);
}

void api_metrics(struct exchange *x)
{
    uint64_t pending = 0;
    struct err e;

    reply_empty(x, 200);
    x->type = "text/plain; version=0.0.4; charset=utf-8";
    if (desk_store_pending(x->desk->store, &pending, &e) != 0 ||
        family(x,
               "# HELP countersign_approvals_total What people decided one by one.\n"
               "# TYPE countersign_approvals_total counter\n",
               count_row, &e) != 0 ||
        family(x,
               "# HELP countersign_approvals_under_3s_total Of these, what was decided within 3 seconds.\n"
               "# TYPE countersign_approvals_under_3s_total counter\n",
               fast_row, &e) != 0 ||
        family(x,
               "# HELP countersign_approval_decision_seconds From when a request was held to a person's decision.\n"
               "# TYPE countersign_approval_decision_seconds histogram\n",
               time_row, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    (void)dynbuf_addf(&x->out,
                      "# HELP countersign_hold_pending Requests that wait for a decision now.\n"
                      "# TYPE countersign_hold_pending gauge\ncountersign_hold_pending %llu\n",
                      (unsigned long long)pending);
    broker_tally_put(x->desk->tally, &x->out);
}
