/* One file of HTML: it has no script, and its policy lets it load nothing. */
#include "broker/replay/report.h"
#include "common/text/visible.h"

typedef unsigned long long ull;

#define HEAD                                                                                                         \
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"                                        \
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"      \
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Replay report</title>\n"       \
    "<style>\nbody{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;"              \
    "color:#1b1b1b;background:#fff}\ndiv{overflow-x:auto}\ntable{border-collapse:collapse;margin:.5rem 0 2rem}\n"    \
    "th,td{padding:.25rem .75rem;border-bottom:1px solid #bbb;text-align:left;white-space:nowrap}\n"                 \
    ".n{text-align:right;font-variant-numeric:tabular-nums}\n.no{color:#a40000;font-weight:bold}\n"                  \
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#1b1b1b}.no{color:#ff9b9b}}\n</style>\n"           \
    "</head>\n<body>\n<main>\n<h1>Replay report</h1>\n"

/* Foreign text between tags: nothing in it is a tag, and nothing hides or reorders what stands beside it. */
static void text(struct dynbuf *b, struct span s)
{
    struct dynbuf shown;
    dynbuf_init(&shown, 16 * (s.n + 1));
    visible_text(&shown, s, false);
    for (size_t i = 0; i < shown.n; i++)
        switch (shown.p[i]) {
        case '&': (void)dynbuf_add(b, SPAN("&amp;")); break;
        case '<': (void)dynbuf_add(b, SPAN("&lt;")); break;
        case '>': (void)dynbuf_add(b, SPAN("&gt;")); break;
        case '"': (void)dynbuf_add(b, SPAN("&quot;")); break;
        case '\'': (void)dynbuf_add(b, SPAN("&#39;")); break;
        default: (void)dynbuf_add_byte(b, shown.p[i]);
        }
    dynbuf_free(&shown);
}

static void cell(struct dynbuf *b, struct span s)
{
    (void)dynbuf_addf(b, "<td>");
    text(b, s);
    (void)dynbuf_addf(b, "</td>");
}

static void numbered(struct dynbuf *b, uint64_t n)
{
    (void)dynbuf_addf(b, "<td class=\"n\">%llu</td>", (ull)n);
}

static void words(struct dynbuf *b, const char *s)
{
    (void)dynbuf_addf(b, "<td class=\"n\">%s</td>", s);
}

/* A table's begin, with its heads: words of ours, parted by bars; the first so many columns are text. */
static void table(struct dynbuf *b, const char *title, const char *heads, unsigned texts)
{
    struct span rest = span_str(heads), one;
    bool more = true;
    (void)dynbuf_addf(b, "<h2>%s</h2>\n<div tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table>\n<thead><tr>",
                      title, title);
    for (unsigned i = 0; more; i++) {
        more = span_cut(rest, '|', &one, &rest);
        (void)dynbuf_addf(b, "<th scope=\"col\"%s>%.*s</th>", i < texts ? "" : " class=\"n\"", SPAN_FMT(one));
    }
    (void)dynbuf_addf(b, "</tr></thead>\n<tbody>\n");
}

static void table_end(struct dynbuf *b)
{
    (void)dynbuf_addf(b, "</tbody>\n</table></div>\n");
}

static void id_cell(struct dynbuf *b, const struct id *id)
{
    char room[ID_TEXT + 1];
    id_text(id, room);
    cell(b, span_of(room, ID_TEXT));
}

static void differences(const struct score *s, struct dynbuf *b)
{
    if (s->then != NULL)
        (void)dynbuf_addf(b, "<p>%llu of %llu runs end as they did then.</p>\n", (ull)report_same_ends(s),
                          (ull)s->set->n);
    if (s->differ == 0 && s->then == NULL)
        (void)dynbuf_addf(b, "<p>No run is otherwise than it was recorded.</p>\n");
    if (s->differ > 0)
        (void)dynbuf_addf(b, "<p class=\"no\">%llu of %llu runs are otherwise than they were recorded.</p>\n",
                          (ull)s->differ, (ull)s->all.runs);
    if (s->left_out > 0)
        (void)dynbuf_addf(b, "<p>%llu runs were not gone through: not all of them is recorded.</p>\n",
                          (ull)s->left_out);
    if (s->differ == 0)
        return;
    table(b, "What is otherwise first", "Turn|Heard|Then|Now|Step|Milliseconds", 4);
    for (size_t i = 0; i < s->set->n; i++) {
        const struct again_difference *d = &s->run[i].differs;
        if (!d->is)
            continue;
        (void)dynbuf_addf(b, "<tr>");
        id_cell(b, &s->set->run[i].turn);
        cell(b, d->heard);
        cell(b, d->then);
        cell(b, d->now);
        numbered(b, d->step);
        numbered(b, d->t);
        (void)dynbuf_addf(b, "</tr>\n");
    }
    table_end(b);
}

static void part(struct dynbuf *b, struct span name, const struct score_part *p)
{
    char room[32];
    (void)dynbuf_addf(b, "<tr>");
    cell(b, name);
    numbered(b, p->runs);
    words(b, report_share(p->completed, p->runs, room));
    numbered(b, p->ms.least);
    numbered(b, p->ms.middle);
    numbered(b, p->ms.most);
    numbered(b, p->model_ms);
    numbered(b, p->tool_ms);
    numbered(b, p->calls);
    words(b, report_share(p->done, p->calls, room));
    words(b, report_quotient(p->calls, p->completed, room));
    numbered(b, p->tokens);
    numbered(b, p->cost_micro);
    words(b, report_quotient(p->cost_micro, p->completed, room));
    (void)dynbuf_addf(b, "</tr>\n");
}

static void parts(const struct score *s, struct dynbuf *b)
{
    table(
        b, "In all, and by model",
        "Model|Runs|Completed|Least ms|Middle ms|Most ms|Models ms|Tools ms|Calls|Done|Calls for each that completed|"
        "Tokens|Millionths|Millionths for each that completed",
        1);
    part(b, SPAN("all"), &s->all);
    if (s->then != NULL)
        part(b, SPAN("all, as they were recorded"), &s->then->all);
    for (size_t i = 0; i < s->models; i++)
        part(b, s->model[i].name, &s->model[i].part);
    table_end(b);
}

static void faults(const struct score *s, struct dynbuf *b)
{
    char room[32];
    if (s->faults == 0)
        return;
    table(b, "With a fault in each run that completes without",
          "Fault|Placed|Recovered|Worst seed|Best seed|Middle ms longer|Most ms longer|Told as unknown|Repeated that "
          "must not be|"
          "Told as not run that were|Beyond what is recorded",
          1);
    for (size_t i = 0; i < s->faults; i++) {
        const struct score_fault *f = &s->fault[i];
        (void)dynbuf_addf(b, "<tr>");
        cell(b, span_str(replay_fault_name(f->fault)));
        numbered(b, f->placed);
        words(b, report_share(f->recovered, f->placed, room));
        words(b, report_share(f->recovered_each.least, 1000, room));
        words(b, report_share(f->recovered_each.most, 1000, room));
        numbered(b, f->added_ms.middle);
        numbered(b, f->added_ms.most);
        numbered(b, f->unknown);
        numbered(b, f->repeated);
        numbered(b, f->hidden);
        numbered(b, f->other_way);
        (void)dynbuf_addf(b, "</tr>\n");
    }
    table_end(b);
    (void)dynbuf_addf(b, "<p>Seeds 1 to %llu.</p>\n", (ull)s->seeds);
}

/* --- live ------------------------------------------------------------------------------------ */

static void spread(struct dynbuf *b, const struct score_spread *s)
{
    numbered(b, s->least);
    numbered(b, s->middle);
    numbered(b, s->most);
}

static void live_models(const struct live *l, struct dynbuf *b)
{
    char room[32];
    table(b, "Over the repetitions, by model",
          "Model|Runs|Completed|Worst repetition|Best repetition|Least millionths|Middle millionths|Most "
          "millionths|Lost|"
          "Not decided by anybody",
          1);
    for (size_t i = 0; i < l->models; i++) {
        const struct live_model *m = &l->model[i];
        (void)dynbuf_addf(b, "<tr>");
        cell(b, m->name);
        numbered(b, m->part.runs);
        words(b, report_share(m->part.completed, m->part.runs, room));
        words(b, report_share(m->completed_each.least, 1000, room));
        words(b, report_share(m->completed_each.most, 1000, room));
        spread(b, &m->cost_each_micro);
        numbered(b, m->lost);
        numbered(b, m->undecided);
        (void)dynbuf_addf(b, "</tr>\n");
    }
    table_end(b);
    (void)dynbuf_addf(b, "<p>Over the models %s", report_share(l->completed_models.least, 1000, room));
    (void)dynbuf_addf(b, " to %s complete.</p>\n", report_share(l->completed_models.most, 1000, room));
}

static void live_row(struct dynbuf *b, const struct live *l, size_t turn, size_t model)
{
    char room[32];
    const struct live_cell *c = &l->cell[turn * l->models + model];
    (void)dynbuf_addf(b, "<tr>");
    id_cell(b, &l->set->run[turn].turn);
    cell(b, l->model[model].name);
    numbered(b, c->ran);
    words(b, report_share(c->completed, c->ran, room));
    spread(b, &c->ms);
    spread(b, &c->calls);
    spread(b, &c->cost_micro);
    (void)dynbuf_addf(b, "</tr>\n");
}

/* What was recorded is a run of which all is the same. */
static void recorded_row(struct dynbuf *b, const struct live *l, size_t turn)
{
    const struct again *r = &l->then[turn];
    const uint64_t all[] = {r->ms, r->calls, r->used.cost_micro};
    char room[96];
    (void)dynbuf_addf(b, "<tr>");
    id_cell(b, &l->set->run[turn].turn);
    cell(b, SPAN("as it was recorded"));
    numbered(b, 1);
    cell(b, report_end(r, room));
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        spread(b, &(const struct score_spread){all[i], all[i], all[i]});
    (void)dynbuf_addf(b, "</tr>\n");
}

static void live_not(const struct live *l, struct dynbuf *b)
{
    if (l->lost + l->not_begun == 0)
        return;
    table(b, "Without a result", "Turn|Model|State|Why|Repetition", 4);
    for (size_t i = 0; i < l->runs; i++) {
        const struct live_run *r = &l->run[i];
        if (r->state == LIVE_RAN)
            continue;
        (void)dynbuf_addf(b, "<tr>");
        id_cell(b, &l->set->run[r->turn].turn);
        cell(b, l->model[r->model].name);
        cell(b, span_str(report_live_state(r->state)));
        cell(b, span_str(r->why));
        numbered(b, r->seed);
        (void)dynbuf_addf(b, "</tr>\n");
    }
    table_end(b);
}

static void live(const struct live *l, struct dynbuf *b)
{
    live_models(l, b);
    table(b, "Each turn, by each model",
          "Turn|Model|Ran|Completed|Least ms|Middle ms|Most ms|Least calls|Middle calls|Most calls|Least millionths|"
          "Middle millionths|Most millionths",
          2);
    for (size_t i = 0; i < l->set->n; i++) {
        recorded_row(b, l, i);
        for (size_t k = 0; k < l->models; k++)
            live_row(b, l, i, k);
    }
    table_end(b);
    live_not(l, b);
}

static void runs(const struct score *s, struct dynbuf *b)
{
    char room[96];
    table(b, "Runs", "Turn|End|Model|Steps|Calls|Done|Milliseconds|Models ms|Tools ms|Tokens|Millionths", 3);
    for (size_t i = 0; i < s->set->n; i++) {
        const struct again *r = &s->run[i];
        (void)dynbuf_addf(b, "<tr>");
        id_cell(b, &s->set->run[i].turn);
        cell(b, report_end(r, room));
        cell(b, score_model_of(&s->set->run[i]));
        numbered(b, r->used.steps);
        numbered(b, r->calls);
        numbered(b, r->ends[CALL_DONE]);
        numbered(b, r->ms);
        numbered(b, r->model_ms);
        numbered(b, r->tool_ms);
        numbered(b, r->used.tokens);
        numbered(b, r->used.cost_micro);
        (void)dynbuf_addf(b, "</tr>\n");
    }
    table_end(b);
}

void report_page(const struct score *s, struct dynbuf *b)
{
    (void)dynbuf_add(b, SPAN(HEAD));
    (void)dynbuf_addf(b, "<p>%llu recorded runs, %s</p>\n", (ull)report_turns(s), report_words(s));
    differences(s, b);
    parts(s, b);
    if (s->live != NULL)
        live(s->live, b);
    faults(s, b);
    runs(s, b);
    (void)dynbuf_add(b, SPAN("</main>\n</body>\n</html>\n"));
}
