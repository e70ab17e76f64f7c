/* Whether the agent still waits, or since when it is gone: what a yes does. */
#include "web-approval/page/page.h"

bool page_may_leave(const struct ticket *t)
{
    return span_eq(t->state, SPAN("pending")) || span_eq(t->state, SPAN("approved"));
}

/* The script says the same when it changes (assets/desk.js). */
void page_asker(struct exchange *x, const struct ticket *t)
{
    const struct asker *a = &t->asker;
    struct dynbuf *out = &x->out;
    bool approved = span_eq(t->state, SPAN("approved"));

    if (!page_may_leave(t))
        return;
    if (a->later) {
        PUT(x, "<p class=\"asker later\" id=\"asker\" role=\"status\">\n<b>Nobody need wait</b><span>");
        show_own(out, approved
                          ? ": approved, the gateway sends this itself, once, and keeps the answer for the agent."
                          : ": after a yes the gateway sends this itself, once, and keeps the answer for the agent.");
        PUT(x, "</span></p>\n");
        return;
    }
    (void)dynbuf_addf(out, "<p class=\"asker%s\" id=\"asker\" role=\"status\">\n<b>", a->waits ? " waits" : "");
    show_own(out, a->waits ? "The agent waits" : a->since_ms ? "The agent left" : "No agent waits");
    PUT(x, "</b><span>");
    if (!a->waits && a->since_ms) {
        PUT(x, " at ");
        show_time(out, a->since_ms);
        if (x->wall_ms > a->since_ms) {
            PUT(x, ", ");
            show_span_of_time(out, x->wall_ms - a->since_ms);
            PUT(x, " ago");
        }
    }
    show_own(out, approved   ? ": approved, this is sent when it asks again"
                  : a->waits ? ": a yes sends this now"
                             : ": after a yes this is sent when it asks again");
    show_own(out, ".");
    PUT(x, "</span></p>\n");
}

void page_asker_word(struct exchange *x, const struct ticket *t)
{
    (void)dynbuf_addf(&x->out, "<span class=\"asker%s\">%s</span>", t->asker.waits && !t->asker.later ? " waits" : "",
                      t->asker.later   ? "sent later"
                      : t->asker.waits ? "agent waits"
                                       : "agent left");
}
