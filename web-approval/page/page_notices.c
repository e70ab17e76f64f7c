/* What every page says, whatever it is about: what a yes or a no means at this moment. */
#include "common/msg.h"
#include "policy/policy.h"
#include "web-approval/page/page.h"

enum { VERSION_SHOWN = 12, WHO_SHOWN = 80, WHY_SHOWN = 1000 };

static void begin(struct exchange *x)
{
    PUT(x, "<div class=\"alert\" role=\"note\"><p>");
}

static void end(struct exchange *x)
{
    PUT(x, "</p></div>\n");
}

/* " by uid 0, 4 min ago" */
static void by_whom(struct exchange *x, struct span who, uint64_t when_ms)
{
    if (who.n) {
        PUT(x, " by ");
        show_cut(&x->out, who, WHO_SHOWN);
    }
    if (when_ms && x->wall_ms >= when_ms) {
        PUT(x, ", ");
        show_span_of_time(&x->out, x->wall_ms - when_ms);
        PUT(x, " ago");
    }
}

static bool is_shadow(const struct exchange *x)
{
    return span_eq(span_str(x->desk->mode), SPAN("shadow"));
}

static void shadow(struct exchange *x)
{
    if (!is_shadow(x))
        return;
    begin(x);
    PUT(x, "<b>Shadow mode.</b> Nothing is held or denied; the audit says what would have been.");
    end(x);
}

bool page_frozen(struct exchange *x, struct freeze *f)
{
    struct err e;
    return freeze_read(x, f, &e) == 0 && f->on;
}

static void frozen(struct exchange *x)
{
    struct freeze f;

    if (!page_frozen(x, &f))
        return;
    begin(x);
    PUT(x, "<b>Writes are frozen</b> by ");
    show_cut(&x->out, f.by, WHO_SHOWN);
    if (f.since_ms && x->wall_ms > f.since_ms) {
        PUT(x, " for ");
        show_span_of_time(&x->out, x->wall_ms - f.since_ms);
    }
    if (f.reason.n) {
        PUT(x, ": <q>");
        show_cut(&x->out, f.reason, 300);
        PUT(x, "</q>");
    }
    PUT(x, ". Every write is refused until it is lifted, <a href=\"/freeze\">here</a> or with <code>countersign "
           "thaw</code>.");
    end(x);
}

static void learning(struct exchange *x)
{
    uint64_t until = x->desk->policy ? policy_learning_until(x->desk->policy) : 0;

    if (until <= x->wall_ms)
        return;
    begin(x);
    PUT(x, "<b>The policy is learning</b>, for ");
    show_span_of_time(&x->out, until - x->wall_ms);
    PUT(x, " more: what no rule fits is not denied.");
    if (!is_shadow(x)) /* there it passes, as all does */
        PUT(x, " Such reads pass without a credential; all else of it waits here.");
    end(x);
}

static void pinned(struct exchange *x, struct span version, struct span who, uint64_t since_ms)
{
    begin(x);
    PUT(x, "<b>An earlier policy is in force</b>: version <code>");
    show_cut(&x->out, span_first(version, VERSION_SHOWN), VERSION_SHOWN);
    PUT(x, "</code>, pinned by a rollback");
    by_whom(x, who, since_ms);
    PUT(x, ". The policy files do not count until <code>countersign policy rollback --end</code>.");
    end(x);
}

static void refused(struct exchange *x, struct span how, struct span who, uint64_t when_ms, struct span why)
{
    bool reload = span_eq(how, SPAN("reload")), back = span_eq(how, SPAN("rollback"));

    begin(x);
    PUT(x, "<b>A change of the policy was refused</b>: ");
    show_own(&x->out, reload ? "a reload" : back ? "a rollback" : "the end of a rollback");
    by_whom(x, who, when_ms);
    PUT(x, ". The policy in force did not change.</p>\n<details><summary>Why it was refused</summary>\n"
           "<p class=\"mono\">");
    show_cut(&x->out, why, WHY_SHOWN);
    PUT(x, "</p></details></div>\n");
}

/* Of the policy: that it is not the one of the files, and that the last change of it was refused. */
static void of_policy(struct exchange *x, bool ticket)
{
    struct msg_in m = msg_in(dynbuf_span(&x->desk->notice));
    struct span version = msg_get_span(&m, 128), pinner = msg_get_span(&m, 1024);
    uint64_t since_ms = msg_get_u64(&m);
    struct span how = msg_get_span(&m, 32), who = msg_get_span(&m, 1024);
    uint64_t when_ms = msg_get_u64(&m);
    struct span why = msg_get_span(&m, 4096);

    if (msg_end(&m) != 0)
        return; /* the parent has said nothing yet */
    if (version.n)
        pinned(x, version, pinner, since_ms);
    if (how.n && !ticket) /* it changes nothing about a request */
        refused(x, how, who, when_ms, why);
}

void page_notices(struct exchange *x, const char *kind)
{
    PUT(x, "<div class=\"moment\">");
    frozen(x);
    shadow(x);
    learning(x);
    of_policy(x, span_eq(span_str(kind), SPAN("ticket")));
    PUT(x, "</div>\n");
}
