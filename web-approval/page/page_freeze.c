/* Stop, for everybody: no write leaves until it is lifted. */
#include "web-approval/page/page.h"
#include "web-approval/people/who.h"
#include "web-approval/route.h"

enum { WHO_SHOWN = 80, WHY_SHOWN = 300 };

static void form(struct exchange *x, const char *purpose, const char *label, const char *button, const char *class)
{
    char mark[GUARD_MARK_TEXT + 1];

    guard_mark(x->session, purpose, SPAN_NONE, SPAN_NONE, x->now_ms, mark);
    (void)dynbuf_addf(&x->out,
                      "<form class=\"stacked\" method=\"post\" autocomplete=\"off\" action=\"/%s\">\n<input "
                      "type=\"hidden\" name=\"mark\" value=\"%s\">\n<label for=\"why\">%s <small>kept in the "
                      "audit</small></label>\n<input id=\"why\" name=\"reason\" maxlength=\"300\">\n<button "
                      "class=\"%s arm\">%s</button>\n</form>\n",
                      purpose, mark, label, class, button);
}

static void state(struct exchange *x, const struct freeze *f)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<dl class=\"pairs\">\n<dt>Since</dt><dd>");
    show_time(out, f->since_ms);
    PUT(x, "</dd>\n<dt>By</dt><dd>");
    show_cut(out, f->by, WHO_SHOWN);
    PUT(x, "</dd>\n");
    if (f->reason.n) {
        PUT(x, "<dt>Why</dt><dd>");
        show_cut(out, f->reason, WHY_SHOWN);
        PUT(x, "</dd>\n");
    }
    PUT(x, "</dl>\n");
}

/* Anybody who sees an incident may stop it; to lift that is for those whose machine it is. */
static bool may_lift(const struct exchange *x)
{
    return who_is_machine(x->session->operator);
}

void page_freeze(struct exchange *x)
{
    struct freeze f;
    struct err e;

    if (freeze_read(x, &f, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    page_begin(x, 200, "freeze", f.on ? "Writes are frozen" : "Freeze writes");
    if (f.on) {
        PUT(x, "<div class=\"title\"><h1>Writes are frozen</h1></div>\n<section class=\"narrowed\">\n");
        state(x, &f);
        PUT(x,
            "<p>Every write of every sandbox is refused, approved ones too. What you approve now counts, and leaves "
            "when this is lifted and the agent asks again.</p>\n");
        if (may_lift(x))
            form(x, "thaw", "Why it is over", "Let writes leave again", "yes");
        else
            PUT(x, "<p class=\"note\">It is lifted by an operator of the machine: here, signed in with a link of "
                   "<code>countersign signin</code>, or with <code>countersign thaw</code>.</p>\n");
    } else {
        PUT(x,
            "<div class=\"title\"><h1>Freeze writes</h1></div>\n<section class=\"narrowed\">\n<p>From the moment you "
            "press this, every write of every sandbox is refused, whatever was approved or granted. Reads go on. "
            "What "
            "is on its way already is not called back.</p>\n");
        form(x, "freeze", "Why", "Freeze all writes", "no");
    }
    PUT(x, "</section>\n");
    page_end(x);
}

static void changed(struct exchange *x, struct frame *f)
{
    if (api_freeze_done(x, f))
        page_see(x, "/freeze");
}

static void change(struct exchange *x, const char *purpose, bool on)
{
    struct span mark, words, reason;

    if (form_field(x, "mark", &mark) == 0 && form_field(x, "reason", &words) == 0 &&
        page_mark_good(x, purpose, SPAN_NONE, mark) && reason_clean(x, words, &reason) == 0)
        api_freeze_ask(x, on, reason, changed);
}

void page_freeze_on(struct exchange *x)
{
    change(x, "freeze", true);
}

void page_freeze_off(struct exchange *x)
{
    if (may_lift(x))
        change(x, "thaw", false);
    else
        page_problem(x, 403, "Not yours to lift",
                     "Writes were frozen by somebody; an operator of the machine lifts that.");
}
