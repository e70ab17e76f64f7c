/* What a group's form sends: each that was picked, one after the other. */
#include <stdio.h>

#include "common/msg.h"
#include "web-approval/deciding/deciding.h"
#include "web-approval/groups/groups.h"
#include "web-approval/route.h"

enum { WHY_MAX = 400 };

struct picked {
    struct id id;
    char text[ID_TEXT + 1];
    struct digest shown;
    bool alone; /* it was not offered for a yes */
    bool done;
    char why[WHY_MAX]; /* why it was not */
};

struct job {
    enum choice what;
    struct span reason;
    struct picked row[GROUP_ROWS];
    size_t n, at, done;
};

static void next(struct exchange *x);

static void failed(struct exchange *x, const char *why)
{
    struct job *j = x->holds;

    (void)snprintf(j->row[j->at].why, WHY_MAX, "%s", why);
    j->at++;
    next(x);
}

static void answered(struct exchange *x, struct frame *f)
{
    struct job *j = x->holds;
    const char *state, *why;

    if (api_decided(f, &state, &why) != 200) {
        failed(x, why);
        return;
    }
    j->row[j->at++].done = true;
    j->done++;
    next(x);
}

static void ask(struct exchange *x)
{
    struct job *j = x->holds;
    size_t at = j->at;
    struct picked *p = &j->row[at];

    api_decide(x, &p->id, j->what, j->reason, &p->shown, "page", answered);
    if (x->status != 0 && j->at == at) { /* the ledger is not there: this one and those behind it stay */
        x->status = 0;
        failed(x, "the ledger does not answer");
    }
}

static void judged(struct exchange *x, struct view *v)
{
    unsigned status;
    const char *why = deciding_refuses(x, v, SPAN_NONE, &status);

    if (!why && v->r.npictures > 0)
        why = DECIDING_PICTURE;
    why ? failed(x, why) : ask(x);
}

/* The ticket of now, not that of the page. */
static void approve(struct exchange *x)
{
    struct job *j = x->holds;
    struct picked *p = &j->row[j->at];
    struct ticket t;
    struct err e;
    int got = desk_store_ticket(x->desk->store, span_of(p->text, ID_TEXT), &x->arena, &t, &e);

    if (got != 1)
        failed(x, got < 0 ? "the store cannot be read now" : "it is not there any more");
    else if (p->alone || page_is_cut(&t) || t.quorum > 1 || t.step_up || t.gates > 0)
        failed(x, "it is approved on its own page alone");
    else if (!span_eq(t.state, SPAN("pending")))
        failed(x, "it is not pending any more: it was decided, it expired, or it was withdrawn");
    else if (t.reason_required && j->reason.n == 0)
        failed(x, "the rule that held it wants a reason with an approval");
    else if (!api_may_approve(x, &t, SPAN_NONE))
        failed(x, "the rule that held it names who may approve it");
    else
        deciding_read(x, &t, NULL, judged);
}

static void result_row(struct exchange *x, const struct job *j, const struct picked *p)
{
    PUT(x, "<li class=\"row\">");
    page_state(&x->out, !p->done                    ? SPAN("left as it was")
                        : j->what == DECIDE_APPROVE ? SPAN("approved")
                                                    : SPAN("denied"));
    PUT(x, " <a class=\"mono\" href=\"/tickets/");
    show_text(&x->out, span_of(p->text, ID_TEXT));
    PUT(x, "\">");
    show_text(&x->out, span_of(p->text, 10));
    PUT(x, "</a> <span class=\"meta\">");
    show_own(&x->out, p->why);
    PUT(x, "</span></li>\n");
}

static void result(struct exchange *x)
{
    const struct job *j = x->holds;
    const char *verb = j->what == DECIDE_APPROVE ? "approved" : "denied";
    char title[64];

    (void)snprintf(title, sizeof(title), "%zu of %zu %s", j->done, j->n, verb);
    page_begin(x, 200, "", title);
    PUT(x, "<p class=\"back\"><a href=\"/\">All that waits</a></p>\n<h1>");
    show_own(&x->out, title);
    PUT(x, "</h1>\n");
    if (j->done < j->n)
        PUT(x, "<p class=\"note\">What is left as it was says why: look at it on its own page.</p>\n");
    PUT(x, "<ul class=\"rows\">\n");
    for (size_t i = 0; i < j->n; i++) /* those that need somebody first */
        if (!j->row[i].done)
            result_row(x, j, &j->row[i]);
    for (size_t i = 0; i < j->n; i++)
        if (j->row[i].done)
            result_row(x, j, &j->row[i]);
    PUT(x, "</ul>\n");
    page_end(x);
}

static void next(struct exchange *x)
{
    struct job *j = x->holds;

    if (j->at == j->n)
        result(x);
    else if (j->what == DECIDE_APPROVE)
        approve(x);
    else
        ask(x);
}

/* One of the rows that the page showed. */
static bool row_take(struct span text, struct picked *p)
{
    p->alone = span_starts(text, SPAN("-"));
    text = span_from(text, p->alone);
    if (text.n != ID_TEXT + 1 + 2 * DIGEST_BYTES || text.p[ID_TEXT] != '.' ||
        id_parse(span_first(text, ID_TEXT), &p->id) != 0 ||
        hex_parse(span_from(text, ID_TEXT + 1), p->shown.b, DIGEST_BYTES) != 0)
        return false;
    memcpy(p->text, text.p, ID_TEXT);
    return true;
}

/* Those that are picked. */
static int rows_take(struct exchange *x, struct span rows, struct job *j)
{
    struct span one, pick;
    char name[16];

    for (size_t i = 0; rows.n > 0 && i < GROUP_ROWS; i++) {
        (void)span_cut(rows, ',', &one, &rows);
        (void)snprintf(name, sizeof(name), "r%zu", i);
        if (form_field(x, name, &pick) != 0)
            return -1;
        if (pick.n == 0)
            continue;
        if (!row_take(one, &j->row[j->n])) {
            page_problem(x, 400, "Bad request", "This is not the form that the page has.");
            return -1;
        }
        j->n++;
    }
    if (j->n > 0)
        return 0;
    page_problem(x, 422, "Nothing is picked", "Pick the requests that your decision is about. Nothing was decided.");
    return -1;
}

void page_group_decide(struct exchange *x)
{
    struct job *j = arena_alloc(&x->arena, sizeof *j);
    struct span rows, mark, words, verdict;

    if (!j) {
        page_problem(x, 503, "Not possible now", "There is no memory for this form.");
        return;
    }
    memset(j, 0, sizeof *j);
    if (form_field(x, "rows", &rows) != 0 || form_field(x, "mark", &mark) != 0 ||
        form_field(x, "reason", &words) != 0 || form_field(x, "verdict", &verdict) != 0 ||
        !page_mark_good(x, "group", rows, mark) || reason_clean(x, words, &j->reason) != 0)
        return;
    j->what = span_eq(verdict, SPAN("approve")) ? DECIDE_APPROVE
              : span_eq(verdict, SPAN("deny"))  ? DECIDE_DENY
                                                : DECIDE_NONE;
    if (j->what == DECIDE_NONE) {
        page_problem(x, 400, "Bad request", "This is not the form that the page has.");
        return;
    }
    if (rows_take(x, rows, j) != 0)
        return;
    x->holds = j;
    next(x);
}
