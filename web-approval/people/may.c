/* Whose yes to a ticket counts: of who is named for it, of those who are asked as well by now, and of who decides in
 * the place of either. The ledger looks again at what it knows of that: deputies, whose own it is, how many. */
#include "policy/policy.h"
#include "web-approval/people/people.h"

struct entries {
    const struct policy *policy;
    struct span entry[1 + PEOPLE_STEPS]; /* those of the rule, and the ones it has escalated to */
    size_t n;
};

static int step(void *ctx, const struct escalation_row *r)
{
    struct entries *a = ctx;

    if (r->since_ms > 0 && a->n < sizeof a->entry / sizeof a->entry[0])
        a->entry[a->n++] = r->entry;
    return 0;
}

/* What cannot be read widens nothing. */
static void read_asked(struct exchange *x, const struct ticket *t, struct entries *a)
{
    struct err e;

    *a = (struct entries){.policy = x->desk->policy, .entry = {t->approve_by}, .n = 1};
    if (t->escalated_ms > 0 && desk_store_escalations(x->desk->store, t->id, &x->arena, step, a, &e) != 0)
        a->n = 1;
}

static bool is_asked(const struct entries *a, const struct approver *who)
{
    bool named = false;

    for (size_t i = 0; i < a->n && a->policy && !named; i++)
        named = a->entry[i].n > 0 && policy_may_approve(a->policy, a->entry[i], who);
    return named;
}

struct standing {
    const struct entries *asked;
    struct people_may *m;
};

static int stands_in(void *ctx, const struct deputy_row *r)
{
    struct standing *s = ctx;
    const struct approver who = {r->instead_of, r->uid, r->groups};

    if (s->m->n < PEOPLE_PLACES && is_asked(s->asked, &who)) {
        s->m->place[s->m->n].instead_of = r->instead_of;
        s->m->place[s->m->n++].until_ms = r->until_ms;
    }
    return 0;
}

void people_may(struct exchange *x, const struct ticket *t, struct people_may *m)
{
    const struct approver who = {span_str(x->operator), span_str(x->who.uid), span_str(x->who.groups)};
    struct standing s = {NULL, m};
    struct entries a;
    struct err e;

    *m = (struct people_may){.own = t->approve_by.n == 0};
    if (m->own || !x->who.known)
        return;
    read_asked(x, t, &a);
    s.asked = &a;
    m->own = is_asked(&a, &who);
    if (x->who.person && desk_store_deputies(x->desk->store, span_str(x->operator), SPAN_NONE, x->wall_ms, &x->arena,
                                             stands_in, &s, &e) != 0)
        m->n = 0;
}

bool api_may_approve(struct exchange *x, const struct ticket *t, struct span instead_of)
{
    struct people_may m;
    size_t i = 0;

    people_may(x, t, &m);
    x->instead_of = SPAN_NONE;
    if (m.own && instead_of.n == 0)
        return true;
    while (i < m.n && instead_of.n && !span_eq(m.place[i].instead_of, instead_of))
        i++;
    if (i < m.n)
        x->instead_of = m.place[i].instead_of;
    return i < m.n;
}

/* --- on the page ---------------------------------------------------------- */

static int step_row(void *ctx, const struct escalation_row *r)
{
    struct exchange *x = ctx;

    PUT(x, "<dt>Or by</dt><dd>");
    show_cut(&x->out, r->entry, 80);
    show_own(&x->out, r->since_ms > 0 ? ", asked as well since " : ", asked as well from ");
    show_time(&x->out, r->since_ms > 0 ? r->since_ms : r->due_ms);
    show_own(&x->out, r->since_ms > 0 ? ", for nobody had decided" : " on, if nobody has decided by then");
    PUT(x, "</dd>\n");
    return 0;
}

void people_asked(struct exchange *x, const struct ticket *t)
{
    struct err e;

    if (desk_store_escalations(x->desk->store, t->id, &x->arena, step_row, x, &e) != 0)
        PUT(x, "<dt>Or by</dt><dd>cannot be looked up now</dd>\n");
}

void people_escalated_word(struct exchange *x, const struct ticket *t)
{
    if (t->escalated_ms == 0)
        return;
    PUT(x, "<span class=\"escalated\"><b>escalated</b> ");
    show_span_of_time(&x->out, x->wall_ms > t->escalated_ms ? x->wall_ms - t->escalated_ms : 0);
    PUT(x, " ago</span> ");
}

/* In whose place a yes of this form is, where it is not in one's own name. */
void people_place(struct exchange *x, const struct ticket *t)
{
    struct people_may m;

    people_may(x, t, &m);
    if (m.own || m.n == 0)
        return;
    PUT(x, "<label for=\"place\">You approve in the place of");
    if (m.n == 1)
        PUT(x, " <small>whose deputy you are</small>");
    PUT(x, "</label>\n<select id=\"place\" name=\"deputy_for\">\n");
    for (size_t i = 0; i < m.n; i++) {
        PUT(x, "<option>");
        show_text(&x->out, m.place[i].instead_of);
        PUT(x, "</option>\n");
    }
    PUT(x, "</select>\n");
}

static int step_json(void *ctx, const struct escalation_row *r)
{
    struct jsonw *w = ctx;

    jsonw_object(w);
    jsonw_kv(w, "to", r->entry);
    jsonw_kv_u64(w, "due_ms", r->due_ms);
    jsonw_kv_u64(w, "since_ms", r->since_ms);
    jsonw_end_object(w);
    return 0;
}

void people_asked_json(struct exchange *x, const struct ticket *t, struct jsonw *w)
{
    struct err e;

    jsonw_kv_array(w, "escalate");
    if (desk_store_escalations(x->desk->store, t->id, &x->arena, step_json, w, &e) != 0)
        jsonw_string(w, SPAN("cannot be looked up now"));
    jsonw_end_array(w);
}
