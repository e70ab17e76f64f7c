/* What people decided of late: whether they still read, and what rules would spare them. */
#include "web-approval/rooms/habits.h"
#include "web-approval/rooms/rooms.h"
#include "web-approval/route.h"

enum { RULE_MAX = 64 * 1024 };

static unsigned long long percent(size_t of, size_t all)
{
    return all ? (unsigned long long)(of * 100 / all) : 0;
}

static int take(void *ctx, const struct ticket *t)
{
    struct {
        struct habits *h;
        struct arena *a;
    } *c = ctx;

    habits_add(c->h, t, c->a);
    return 0;
}

static void all(struct exchange *x, const struct habits *h)
{
    size_t approved = 0, fast = 0;

    for (size_t i = 0; i < h->n; i++) {
        approved += h->v[i].approved;
        fast += h->v[i].fast;
    }
    room_section(x, "all", "The last of them");
    (void)dynbuf_addf(&x->out,
                      "<dl class=\"pairs\">\n<dt>Decided by people</dt><dd>%zu</dd>\n<dt>Approved</dt><dd>%llu "
                      "%%</dd>\n<dt>Within 3 seconds</dt><dd>%llu %%</dd>\n<dt>Time to decide</dt><dd>",
                      h->seen, percent(approved, h->seen), percent(fast, h->seen));
    show_span_of_time(&x->out, habits_median(h));
    PUT(x, ", for half of them less</dd>\n</dl>\n<p class=\"hint\">From the moment it is asked for. Where most is "
           "approved, and "
           "at once, nobody reads any more: rules that hold less are safer than a person who approves all.</p>\n");
    room_section_end(x);
}

static void shape(struct exchange *x, const struct habit *h)
{
    size_t n = h->approved + h->denied;

    PUT(x, "<tr><td>");
    page_badge(&x->out, h->t.effect);
    PUT(x, " ");
    show_cut(&x->out, h->t.op.n ? h->t.op : h->t.method, ROOM_NAME);
    PUT(x, "<div class=\"mono\">");
    show_cut(&x->out, h->t.method, 32);
    PUT(x, " ");
    show_host(&x->out, h->t.host);
    page_port(x, &h->t);
    show_cut(&x->out, h->path, ROOM_TEXT);
    PUT(x, "</div></td>");
    room_cell(x, "Approved");
    (void)dynbuf_addf(&x->out, "%zu of %zu</td>", h->approved, n);
    room_cell(x, "Within 3 s");
    (void)dynbuf_addf(&x->out, "%llu %%</td>", percent(h->fast, n));
    room_cell(x, "Time");
    show_span_of_time(&x->out, h->median_ms);
    PUT(x, "</td></tr>\n");
}

static void shapes(struct exchange *x, const struct habits *h)
{
    static const char *const heads[] = {"Shape", "Approved", "Within 3 s", "Time, median"};

    room_section(x, "shapes", "By shape");
    room_table(x, "Shapes", heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < h->n; i++)
        shape(x, &h->v[i]);
    room_table_end(x);
    if (h->left)
        (void)dynbuf_addf(&x->out, "<p class=\"note\">And %zu of shapes that found no room here.</p>\n", h->left);
    room_section_end(x);
}

static void proposals(struct exchange *x, const struct habits *h)
{
    size_t n = 0;

    room_section(x, "rules", "Rules that would have said it");
    for (size_t i = 0; i < h->n; i++) {
        struct dynbuf rule;
        dynbuf_init(&rule, RULE_MAX);
        if (habit_rule(&h->v[i], &rule) && dynbuf_ok(&rule)) {
            n++;
            (void)dynbuf_addf(&x->out,
                              "<h3>%zu of %zu approved</h3>\n<pre class=\"body\" tabindex=\"0\" role=\"region\" "
                              "aria-label=\"A change of the policy\">",
                              h->v[i].approved, h->v[i].approved);
            show_body(&x->out, dynbuf_span(&rule));
            PUT(x, "</pre>\n");
        }
        dynbuf_free(&rule);
    }
    if (n)
        PUT(x, "<p class=\"hint\">For somebody to read, not to be taken as it is: with it nobody looks at these any "
               "more, "
               "whatever their bodies say. Narrow it where a value matters, and see with <code>countersign policy "
               "diff</code> and "
               "<code>countersign policy test</code> what it changes.</p>\n");
    else
        (void)dynbuf_addf(
            &x->out,
            "<p class=\"hint\">None yet. A shape that was approved %d times and never denied, and deletes, "
            "spends or administers nothing, stands here with the rule that would allow it.</p>\n",
            HABIT_LEAST);
    room_section_end(x);
}

void page_habits(struct exchange *x)
{
    const struct ticket_filter f = {.state = SPAN("decided"), .limit = HABIT_SEEN};
    struct habits *h = arena_alloc(&x->arena, sizeof *h);
    struct err e;

    if (!h) {
        page_problem(x, 503, "Not possible now", "There is no memory for this page.");
        return;
    }
    *h = (struct habits){.n = 0};
    struct {
        struct habits *h;
        struct arena *a;
    } ctx = {h, &x->arena};
    if (desk_store_tickets(x->desk->store, &f, &x->arena, take, &ctx, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    habits_end(h);
    room_begin(x, "habits", "Decisions",
               "How people decide: how often it is a yes, how fast, and what rules would spare them.");
    if (h->seen == 0) {
        room_empty(x, "Nobody has decided anything yet.", "What people approve and deny is counted here, by shape.");
    } else {
        all(x, h);
        proposals(x, h);
        shapes(x, h);
    }
    page_end(x);
}
