/* Who decides in whose place, for a while: named by oneself, on "Who am I" and at the terminal. */
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/people/people.h"
#include "web-approval/people/who.h"
#include "web-approval/route.h"

enum { HOUR = 3600 * 1000, HOURS_MOST = 90 * 24 };

static void put(struct exchange *x, struct span instead_of, struct span deputy, uint64_t for_ms, ask_fn *fn)
{
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_DEPUTY_PUT, M_SANDBOX_DONE, fn);

    if (!b)
        return;
    msg_put_span(b, span_str(x->operator));
    msg_put_span(b, instead_of);
    msg_put_span(b, deputy);
    msg_put_u64(b, for_ms);
    msg_put_u8(b, x->place == PLACE_CONTROL);
    ask_send(x);
}

/* --- the page ------------------------------------------------------------- */

static void form_begin(struct exchange *x, struct span whose, const char *act)
{
    char mark[GUARD_MARK_TEXT + 1];

    guard_mark(x->session, act, SPAN("me"), whose, x->now_ms, mark);
    (void)dynbuf_addf(
        &x->out,
        "<form class=\"deputy-%s\" method=\"post\" action=\"/me/deputy\">\n<input type=\"hidden\" name=\"act\" "
        "value=\"%s\">\n<input type=\"hidden\" name=\"mark\" value=\"%s\">\n"
        "<input type=\"hidden\" name=\"whose\" value=\"",
        act, act, mark);
    show_text(&x->out, whose);
    PUT(x, "\">\n");
}

static int mine_row(void *ctx, const struct deputy_row *r)
{
    struct exchange *x = ctx;

    PUT(x, "<p><b>");
    show_text(&x->out, r->deputy);
    PUT(x, "</b> decides in your place until ");
    show_time(&x->out, r->until_ms);
    PUT(x, ".</p>\n");
    form_begin(x, r->instead_of, "end");
    PUT(x, "<button class=\"arm\">End it now</button>\n</form>\n");
    return 0;
}

static int theirs_row(void *ctx, const struct deputy_row *r)
{
    struct exchange *x = ctx;

    PUT(x, "<p>You decide in the place of <b>");
    show_text(&x->out, r->instead_of);
    PUT(x, "</b> until ");
    show_time(&x->out, r->until_ms);
    PUT(x, ".</p>\n");
    form_begin(x, r->instead_of, "end");
    PUT(x, "<button class=\"arm\">I do not want to any more</button>\n</form>\n");
    return 0;
}

void deputies_section(struct exchange *x)
{
    struct span me = span_str(x->operator);
    struct err e;

    PUT(x, "<section class=\"plain\" aria-labelledby=\"dep\">\n<h2 id=\"dep\">Deputies</h2>\n"
           "<p>While you are away somebody else may approve what you may: one more name for your yes, and not one "
           "more yes. As long as it lasts neither of you approves what is the other's own, and where several must "
           "agree you two count once.</p>\n");
    if (desk_store_deputies(x->desk->store, SPAN_NONE, me, x->wall_ms, &x->arena, mine_row, x, &e) != 0 ||
        desk_store_deputies(x->desk->store, me, SPAN_NONE, x->wall_ms, &x->arena, theirs_row, x, &e) != 0)
        PUT(x, "<p class=\"note\">Who decides for whom cannot be looked up now.</p>\n");
    form_begin(x, SPAN_NONE, "name");
    (void)dynbuf_addf(&x->out,
                      "<label for=\"deputy\">A deputy <small>their name; in place of any other</small></label>\n"
                      "<input id=\"deputy\" name=\"deputy\" maxlength=\"40\" autocapitalize=\"off\" "
                      "spellcheck=\"false\" required>\n<label for=\"hours\">For so many hours</label>\n"
                      "<input id=\"hours\" name=\"hours\" type=\"number\" min=\"1\" max=\"%d\" value=\"24\" "
                      "required>\n<button class=\"yes arm\">Name this deputy</button>\n</form>\n</section>\n",
                      HOURS_MOST);
}

static void changed(struct exchange *x, struct frame *f)
{
    if (people_acted(x, f))
        page_see(x, "/me");
}

void page_me_deputy(struct exchange *x)
{
    struct span act, mark, whose, deputy = SPAN_NONE, hours = SPAN_NONE;
    uint64_t n = 0;

    x->arg = SPAN("me");
    if (form_field(x, "act", &act) != 0 || form_field(x, "mark", &mark) != 0 || form_field(x, "whose", &whose) != 0 ||
        form_field(x, "deputy", &deputy) != 0 || form_field(x, "hours", &hours) != 0)
        return;
    bool end = span_eq(act, SPAN("end"));
    if (!page_mark_good(x, end ? "end" : "name", whose, mark))
        return;
    if (!x->who.person)
        page_problem(x, 403, "Not changed", "Only people who were added by name have a deputy, or are one.");
    else if (end)
        put(x, whose, SPAN_NONE, 0, changed);
    else if (x->session->how == HOW_OIDC) /* who has the provider would have the deputy, after it is mended too */
        page_problem(x, 403, "Not changed",
                     "You are signed in through your organisation, which names no deputy: sign in with your password "
                     "or your passkey, or name one with countersign operator deputy on the machine.");
    else if (span_u64(span_trim(hours), HOURS_MOST, &n) != 0 || n == 0 || span_trim(deputy).n == 0)
        page_problem(x, 422, "Not changed", "A deputy has a name, and is one for 1 to 2160 hours.");
    else
        put(x, span_str(x->operator), span_trim(deputy), n * HOUR, changed);
}

/* --- the API -------------------------------------------------------------- */

static int row_json(void *ctx, const struct deputy_row *r)
{
    struct jsonw *w = ctx;

    jsonw_object(w);
    jsonw_kv(w, "for", r->instead_of);
    jsonw_kv(w, "deputy", r->deputy);
    jsonw_kv_u64(w, "since_ms", r->since_ms);
    jsonw_kv_u64(w, "until_ms", r->until_ms);
    jsonw_end_object(w);
    return 0;
}

void api_deputies(struct exchange *x)
{
    struct jsonw w;
    struct err e;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "deputies");
    int rc = desk_store_deputies(x->desk->store, SPAN_NONE, SPAN_NONE, x->wall_ms, &x->arena, row_json, &w, &e);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (rc != 0)
        reply_unable(x, &e);
}

static void done(struct exchange *x, struct frame *f)
{
    if (people_acted(x, f))
        reply_empty(x, 204);
}

void api_deputy_name(struct exchange *x)
{
    struct member m[] = {{"deputy", JSON_STRING, true, NULL}, {"for_ms", JSON_NUMBER, true, NULL}};
    uint64_t for_ms = 0;

    if (body_members(x, m, 2) != 0 || api_number(x, &m[1], &for_ms, 1, (uint64_t)HOURS_MOST * HOUR) != 0)
        return;
    if (m[0].value->text.n == 0)
        reply_problem(x, 400, "Bad request", "`deputy` is the name of somebody");
    else
        put(x, span_str(x->operator), m[0].value->text, for_ms, done);
}

void api_deputy_end(struct exchange *x)
{
    put(x, x->arg, SPAN_NONE, 0, done);
}
