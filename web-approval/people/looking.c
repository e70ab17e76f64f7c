/* "I am looking at it": who says so of a ticket, so that two do not race. It tells the others; what anybody decides
 * counts all the same, and a no above all. */
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/people/people.h"
#include "web-approval/people/who.h"

enum { LOOKER_SHOWN = 80 };

void people_looking_word(struct exchange *x, const struct ticket *t)
{
    PUT(x, "<span class=\"looking\">");
    if (t->looking.by.n) {
        show_cut(&x->out, t->looking.by, LOOKER_SHOWN);
        PUT(x, " is looking");
    }
    PUT(x, "</span> ");
}

static void form(struct exchange *x, const struct ticket *t, const char *act, const char *button)
{
    char mark[GUARD_MARK_TEXT + 1];

    guard_mark(x->session, "claim", t->id, span_str(act), x->now_ms, mark);
    PUT(x, "<form class=\"claim\" method=\"post\" action=\"/tickets/");
    show_text(&x->out, t->id);
    (void)dynbuf_addf(
        &x->out,
        "/claim\">\n<input type=\"hidden\" name=\"act\" value=\"%s\">\n<input type=\"hidden\" name=\"mark\" "
        "value=\"%s\">\n<button class=\"quiet arm\">%s</button>\n</form>\n",
        act, mark, button);
}

/* The script says the first sentence anew when it changes (assets/desk.js). */
void people_looking(struct exchange *x, const struct ticket *t)
{
    const struct looking *l = &t->looking;
    bool own = l->by.n && span_eq(l->by, span_str(x->operator));

    PUT(x, "<div class=\"claimed\">\n<p id=\"looking\"");
    show_own(&x->out, l->by.n && !own ? " class=\"other\"" : "");
    PUT(x, " role=\"status\" data-me=\"");
    show_text(&x->out, span_str(x->operator));
    PUT(x, "\">");
    if (own) {
        PUT(x, "<b>You are looking at this</b>, the others see until ");
        show_time(&x->out, l->until_ms);
    } else if (l->by.n) {
        PUT(x, "<b>");
        show_cut(&x->out, l->by, LOOKER_SHOWN);
        PUT(x, " is looking at this</b> since ");
        show_time(&x->out, l->since_ms);
        PUT(x, ": speak with them first. What you decide counts all the same");
    } else {
        PUT(x, "Nobody has said that they are looking at this");
    }
    PUT(x, ".</p>\n");
    if (own)
        form(x, t, "unclaim", "I am not any more");
    else
        form(x, t, l->by.n ? "take" : "claim", l->by.n ? "Take it over" : "I am looking at it");
    PUT(x, "</div>\n");
}

struct look {
    bool on;
};

static const char *why_not(uint8_t result, unsigned *status)
{
    static const struct {
        unsigned status;
        const char *why;
    } answers[] = {
        {503, "the ledger could not write it down: nobody is told; try again"},
        {200, NULL},
        {409, "it is not pending any more: it was decided, it expired, or it was withdrawn"},
        {404, "no ticket has this id"},
        {409, "somebody else says that they are looking at it"},
        {409, "nobody says that they are looking at it"},
    };

    if (result >= sizeof answers / sizeof answers[0])
        result = 0;
    *status = answers[result].status;
    return answers[result].why;
}

static void looked(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    uint8_t result = msg_get_u8(&m);
    struct span who = msg_get_span(&m, 256);
    unsigned status;
    const char *why = why_not(msg_end(&m) == 0 ? result : 0, &status);
    struct jsonw w;

    if (why && who.n) {
        reply_problem(x, status, "Not changed", "%s: %.*s. It can be taken over from them", why, SPAN_FMT(who));
    } else if (why) {
        reply_problem(x, status, "Not changed", "%s", why);
    } else if (x->place == PLACE_PAGE) {
        struct span path = arena_printf(&x->arena, "/tickets/%.*s", SPAN_FMT(x->arg));
        page_see(x, path.p ? (const char *)path.p : "/");
    } else {
        reply_json(x, 200, &w);
        jsonw_object(&w);
        jsonw_kv(&w, "id", x->arg);
        jsonw_kv_bool(&w, "claimed", ((const struct look *)x->step)->on);
        if (who.n)
            jsonw_kv(&w, "from", who);
        jsonw_end_object(&w);
    }
}

/* Who may approve it may say that they are looking at it: the word of anybody else would only keep those away. */
static void ask(struct exchange *x, bool on, bool over)
{
    struct look *look = arena_alloc(&x->arena, sizeof *look);
    struct ticket t;
    struct id id;
    struct dynbuf *b;

    if (!look) {
        reply_problem(x, 503, "Not possible now", "there is no memory for this");
        return;
    }
    if (api_ticket_find(x, &t) != 0 || id_parse(x->arg, &id) != 0)
        return;
    if (!api_may_approve(x, &t, SPAN_NONE)) {
        reply_problem(x, 403, "Not yours to approve", "the rule that held this names who may approve it");
        return;
    }
    *look = (struct look){on};
    x->step = look;
    if ((b = ask_begin(x, ASK_LEDGER, M_LOOK, M_LOOK, looked)) == NULL)
        return;
    msg_put_id(b, &id);
    msg_put_u8(b, on);
    msg_put_u8(b, over);
    msg_put_span(b, span_str(x->operator));
    msg_put_span(b, span_str(x->place == PLACE_PAGE ? "page" : "cli"));
    ask_send(x);
}

void page_claim(struct exchange *x)
{
    struct span act, mark;

    if (form_field(x, "act", &act) != 0 || form_field(x, "mark", &mark) != 0 ||
        !page_mark_good(x, "claim", act, mark))
        return;
    ask(x, !span_eq(act, SPAN("unclaim")), span_eq(act, SPAN("take")));
}

void api_claim(struct exchange *x)
{
    struct member m[] = {{"take", JSON_BOOL, false, NULL}};

    if (body_members(x, m, 1) == 0)
        ask(x, true, m[0].value && m[0].value->truth);
}

void api_unclaim(struct exchange *x)
{
    if (body_members(x, NULL, 0) == 0)
        ask(x, false, false);
}
