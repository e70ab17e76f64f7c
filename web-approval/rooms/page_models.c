/* Where it is slow, where it fails, and which kind of task is unstable: what the broker's models, tools and turns did
 * since the desk began. */
#include <string.h>

#include "web-approval/broker/tally.h"
#include "web-approval/rooms/rooms.h"
#include "web-approval/route.h"

struct shown {
    struct tally_line line[TALLY_KINDS][TALLY_NAMES_MAX];
    size_t n[TALLY_KINDS];
};
static const char *const kinds[TALLY_KINDS] = {"model", "tool", "task"};

/* --- numbers ------------------------------------------------------------------------------------ */

static uint64_t counted(const struct tally_line *l)
{
    return l->times - l->stopped;
}

/* Rounded, but what there is, is not nothing, and not all is less than all. */
static void put_share(struct exchange *x, uint64_t of, uint64_t all)
{
    unsigned long long percent = all ? (of * 200 + all) / (2 * all) : 0;

    if (of && !percent)
        PUT(x, "under 1 %");
    else if (of < all && percent == 100)
        PUT(x, "over 99 %");
    else
        (void)dynbuf_addf(&x->out, "%llu %%", percent);
}

static void put_ms(struct exchange *x, uint64_t ms)
{
    if (ms < 1000)
        (void)dynbuf_addf(&x->out, "%llu ms", (unsigned long long)ms);
    else if (ms < 60 * 1000)
        (void)dynbuf_addf(&x->out, "%llu.%llu s", (unsigned long long)ms / 1000, (unsigned long long)ms % 1000 / 100);
    else
        show_span_of_time(&x->out, ms);
}

static void put_name(struct exchange *x, const struct tally_line *l)
{
    PUT(x, "<span class=\"mono\">");
    show_cut(&x->out, span_str(l->name), ROOM_NAME);
    PUT(x, "</span>");
}

/* --- the sentence ------------------------------------------------------------------------------- */

static void slowest(struct exchange *x, const struct shown *s)
{
    const struct tally_line *worst = NULL;
    unsigned kind = 0;

    for (unsigned k = TALLY_MODELS; k <= TALLY_TOOLS; k++)
        for (size_t i = 0; i < s->n[k]; i++)
            if (s->line[k][i].took.n && (!worst || s->line[k][i].took.most_ms > worst->took.most_ms)) {
                worst = &s->line[k][i];
                kind = k;
            }
    if (!worst)
        return;
    (void)dynbuf_addf(&x->out, "Slowest: the %s ", kinds[kind]);
    put_name(x, worst);
    PUT(x, ", 95 % of whose calls take at most ");
    put_ms(x, worst->took.most_ms);
    PUT(x, ". ");
}

static void fails_most(struct exchange *x, const struct shown *s)
{
    const struct tally_line *worst = NULL;
    unsigned kind = 0;

    for (unsigned k = TALLY_MODELS; k <= TALLY_TOOLS; k++) {
        const struct tally_line *l = s->line[k]; /* of each kind the worst is first */
        if (s->n[k] && l->failed && (!worst || l->failed * counted(worst) > worst->failed * counted(l))) {
            worst = l;
            kind = k;
        }
    }
    if (!worst) {
        PUT(x, "No call has failed. ");
        return;
    }
    (void)dynbuf_addf(&x->out, "Fails most: the %s ", kinds[kind]);
    put_name(x, worst);
    PUT(x, ", ");
    put_share(x, worst->failed, counted(worst));
    (void)dynbuf_addf(&x->out, " of %llu. ", (unsigned long long)counted(worst));
}

static void least_stable(struct exchange *x, const struct shown *s)
{
    const struct tally_line *l = s->line[TALLY_TASKS];

    if (!s->n[TALLY_TASKS])
        return;
    if (!l->failed) {
        PUT(x, "Every turn that a worker ended, ended well, but for those that somebody cancelled.");
        return;
    }
    PUT(x, "Least stable: the task ");
    put_name(x, l);
    (void)dynbuf_addf(&x->out, ", %llu of whose %llu turns did not end well.", (unsigned long long)l->failed,
                      (unsigned long long)counted(l));
}

/* --- the tables --------------------------------------------------------------------------------- */

static void cell_times(struct exchange *x, const char *head, bool there, uint64_t ms)
{
    room_cell(x, head);
    if (there)
        put_ms(x, ms);
    else
        PUT(x, "none yet");
    PUT(x, "</td>");
}

/* How often it failed, and as what. */
static void cell_failed(struct exchange *x, const char *head, const struct tally_line *l)
{
    room_cell(x, head);
    if (!l->failed) {
        PUT(x, "none</td>");
        return;
    }
    PUT(x, "<b>");
    put_share(x, l->failed, counted(l));
    PUT(x, "</b> <span class=\"count\">(");
    for (size_t i = 0; i < TALLY_ERRORS && l->error[i].word; i++)
        (void)dynbuf_addf(&x->out, "%s%s %llu", i ? ", " : "", l->error[i].word,
                          (unsigned long long)l->error[i].times);
    PUT(x, ")</span></td>");
}

static void cell_count(struct exchange *x, const char *head, uint64_t n)
{
    room_cell(x, head);
    (void)dynbuf_addf(&x->out, "%llu</td>", (unsigned long long)n);
}

static void row_begin(struct exchange *x, const struct tally_line *l)
{
    PUT(x, "<tr><td>");
    put_name(x, l);
    PUT(x, "</td>");
}

static void models(struct exchange *x, const struct shown *s)
{
    static const char *const heads[] = {"Model",       "Calls",      "Failed", "First token, half within",
                                        "Half within", "95 % within"};

    room_section(x, "models", "Models");
    room_table(x, "Models, the worst first", heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < s->n[TALLY_MODELS]; i++) {
        const struct tally_line *l = &s->line[TALLY_MODELS][i];
        row_begin(x, l);
        cell_count(x, "Calls", l->times);
        cell_failed(x, "Failed", l);
        cell_times(x, "First token, half within", l->first.n > 0, l->first.half_ms);
        cell_times(x, "Half within", l->took.n > 0, l->took.half_ms);
        cell_times(x, "95 % within", l->took.n > 0, l->took.most_ms);
        PUT(x, "</tr>\n");
    }
    room_table_end(x);
    room_section_end(x);
}

static void tools(struct exchange *x, const struct shown *s)
{
    static const char *const heads[] = {"Tool",        "Calls",       "Succeeded",  "Failed",
                                        "Out of time", "Half within", "95 % within"};

    room_section(x, "tools", "Tools");
    room_table(x, "Tools, the worst first", heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < s->n[TALLY_TOOLS]; i++) {
        const struct tally_line *l = &s->line[TALLY_TOOLS][i];
        row_begin(x, l);
        cell_count(x, "Calls", l->times);
        room_cell(x, "Succeeded");
        put_share(x, counted(l) - l->failed, counted(l));
        PUT(x, "</td>");
        cell_failed(x, "Failed", l);
        cell_count(x, "Out of time", l->late);
        cell_times(x, "Half within", l->took.n > 0, l->took.half_ms);
        cell_times(x, "95 % within", l->took.n > 0, l->took.most_ms);
        PUT(x, "</tr>\n");
    }
    room_table_end(x);
    if (!s->n[TALLY_TOOLS])
        PUT(x, "<p class=\"hint\">No tool was called yet.</p>\n");
    room_section_end(x);
}

static void tasks(struct exchange *x, const struct shown *s)
{
    static const char *const heads[] = {"Task", "Turns", "Ended well", "Otherwise", "Cancelled", "Half within"};

    room_section(x, "tasks", "Turns, by the kind of their task");
    room_table(x, "Kinds of tasks, the least stable first", heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < s->n[TALLY_TASKS]; i++) {
        const struct tally_line *l = &s->line[TALLY_TASKS][i];
        row_begin(x, l);
        cell_count(x, "Turns", l->times);
        room_cell(x, "Ended well");
        if (counted(l))
            put_share(x, counted(l) - l->failed, counted(l));
        else
            PUT(x, "none yet");
        PUT(x, "</td>");
        cell_failed(x, "Otherwise", l);
        cell_count(x, "Cancelled", l->stopped);
        cell_times(x, "Half within", l->took.n > 0, l->took.half_ms);
        PUT(x, "</tr>\n");
    }
    room_table_end(x);
    if (!s->n[TALLY_TASKS])
        PUT(x, "<p class=\"hint\">No turn has ended yet.</p>\n");
    room_section_end(x);
}

void page_models(struct exchange *x)
{
    struct shown *s = arena_alloc(&x->arena, sizeof *s);
    size_t n = 0;

    if (!s) {
        page_problem(x, 503, "Not possible now", "There is no memory for this page.");
        return;
    }
    for (unsigned k = 0; k < TALLY_KINDS; k++)
        n += s->n[k] = broker_tally_lines(x->desk->tally, k, s->line[k]);
    room_begin(x, "models", "Models and tools",
               "Where it is slow, where it fails, and which kind of task is unstable, in conversations of every "
               "tenant, since this gateway's page was started. The worst stands first; times are those of the last "
               "256 of each.");
    if (n == 0 && strcmp(x->desk->broker_only, "stream") == 0) {
        room_empty(
            x, "Nothing is counted here.",
            "The broker of this gateway runs no turns (<code>broker: only: [stream]</code>): what models, tools "
            "and turns did is on the page of each gateway that runs them, and among its metrics.");
    } else if (n == 0) {
        room_empty(
            x, "No model was asked yet.",
            "Say something in <a href=\"/conversations\">a conversation</a>, with <code>countersign chat</code> "
            "or over the broker's API. What is counted here begins anew with the gateway; Prometheus keeps it "
            "for longer (<code>countersign approvals metrics</code>), and what models cost, <code>countersign "
            "usage</code> says.");
    } else {
        PUT(x, "<p class=\"verdict\"><span>");
        slowest(x, s);
        fails_most(x, s);
        least_stable(x, s);
        PUT(x, "</span></p>\n");
        models(x, s);
        tools(x, s);
        tasks(x, s);
    }
    page_end(x);
}
