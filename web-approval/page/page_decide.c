/* Approve and deny: the two forms, and what they send back. */
#include <stdio.h>

#include "common/msg.h"
#include "policy/policy.h"
#include "web-approval/deciding/deciding.h"
#include "web-approval/diffs/diffs.h"
#include "web-approval/grants/grants.h"
#include "web-approval/people/passkey.h"
#include "web-approval/people/people.h"
#include "web-approval/route.h"

enum { DECIDER_SHOWN = 256 };

bool page_is_cut(const struct ticket *t)
{
    return t->body_size > PAGE_BODY_INLINE;
}

/* What the form is about: the digest that was shown, and a mark that binds it to this page and moment. */
static void form_begin(struct exchange *x, const struct ticket *t, const char *action, const char *purpose)
{
    bool steps = t->step_up && strcmp(action, "approve") == 0;
    char digest[2 * DIGEST_BYTES + 1] = "", mark[GUARD_MARK_TEXT + 1];

    if (t->digest.n == DIGEST_BYTES)
        hex_text(t->digest, digest);
    guard_mark(x->session, purpose, t->id, span_str(digest), x->now_ms, mark);
    (void)dynbuf_addf(&x->out, "<form class=\"%s\" method=\"post\" autocomplete=\"off\" action=\"/tickets/", action);
    show_text(&x->out, t->id);
    (void)dynbuf_addf(&x->out, "/%s\"", action);
    if (steps)
        passkey_of_ticket(x, t);
    (void)dynbuf_addf(&x->out,
                      ">\n<input type=\"hidden\" name=\"digest\" value=\"%s\">\n"
                      "<input type=\"hidden\" name=\"mark\" value=\"%s\">\n",
                      digest, mark);
    if (steps)
        PUT(x, "<input type=\"hidden\" name=\"passkey\" value=\"\">\n<output class=\"note\"></output>\n");
}

/* Of what is grave the name, typed: nobody does that by habit. */
void page_name_field(struct exchange *x, const struct view *v, const char *id)
{
    struct span name = deciding_name(v);

    if (name.n == 0)
        return;
    (void)dynbuf_addf(&x->out, "<label for=\"%s\">Type <b class=\"mono typed\">", id);
    show_text(&x->out, name);
    (void)dynbuf_addf(&x->out,
                      "</b> to approve it</label>\n<input id=\"%s\" name=\"name\" class=\"mono\" "
                      "maxlength=\"200\" autocapitalize=\"off\" spellcheck=\"false\" required>\n",
                      id);
}

static void approve_fields(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;

    people_place(x, t);
    page_name_field(x, v, "name");
    (void)dynbuf_addf(
        &x->out,
        "<label for=\"why-yes\">%s</label>\n<input id=\"why-yes\" name=\"reason\" maxlength=\"300\"%s>\n"
        "<button class=\"go yes arm%s\">Approve this request</button>\n</form>\n",
        t->reason_required ? "Why it is right <small>needed, kept in the audit</small>"
                           : "Note <small>kept in the audit</small>",
        t->reason_required ? " required" : "", deciding_is_grave(t) ? " grave" : "");
}

/* What happens on a yes, at this moment. What was flagged is said here too: on a phone this is all that is seen. */
static void yes_means(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;
    struct freeze f;

    PUT(x, "<h3>Approve</h3>\n");
    if (v->r.nflags) {
        PUT(x, "<p class=\"note\"><a href=\"/tickets/");
        show_text(&x->out, t->id);
        PUT(x, "#look\">Look twice</a>: ");
        show_count(&x->out, v->r.nflags + v->r.more, "thing");
        show_own(&x->out, v->r.nflags + v->r.more == 1 ? " in it is unusual." : " in it are unusual.");
        PUT(x, "</p>\n");
    }
    PUT(x, "<p>It leaves once, exactly as ");
    show_own(&x->out, page_is_cut(t) ? "it is" : "shown");
    if (t->credential.n) {
        PUT(x, ", with the credential <b>");
        show_cut(&x->out, t->credential, 80);
        PUT(x, "</b>");
    } else {
        PUT(x, ", without a credential");
    }
    show_own(&x->out, t->asker.later   ? ": by the gateway itself, whether or not the agent waits"
                      : t->asker.waits ? ": at once, while the agent waits; else when it asks again"
                                       : ": when the agent asks again");
    PUT(x, ".</p>\n");
    if (t->credential.n && x->desk->policy && !page_released(x, t))
        PUT(x, "<p class=\"note\">As the policy is now, that credential is not released: a yes would send "
               "nothing.</p>\n");
    if (page_frozen(x, &f))
        PUT(x, "<p class=\"note\">Writes are frozen: a yes counts, but nothing leaves before "
               "<code>countersign thaw</code>.</p>\n");
}

/* What nobody can see in full has no yes here, and no mark with which one could be sent. */
static bool nothing_to_approve(struct exchange *x, const struct view *v)
{
    const char *waits = diffs_refuse(x->desk, &v->t);

    if (v->there && !v->r.blocks && !waits)
        return false;
    if (v->there && !v->r.blocks) {
        PUT(x, "<h3>Approve</h3>\n<p class=\"note\">Not yet: ");
        show_own(&x->out, waits);
        PUT(x, ".</p>\n<p class=\"go none\" aria-hidden=\"true\">No approval here</p>\n</div>\n");
        return true;
    }
    PUT(x, "<h3>Approve</h3>\n<p class=\"note\">What cannot be shown cannot be approved here.");
    show_own(&x->out, v->r.blocks ? " Why is said at the top of this page." : "");
    PUT(x, "</p>\n<p class=\"go none\" aria-hidden=\"true\">No approval here</p>\n</div>\n");
    return true;
}

static void approve(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;

    PUT(x, "<div class=\"choice\">\n");
    if (nothing_to_approve(x, v))
        return;
    yes_means(x, v);
    if (page_is_cut(t)) {
        PUT(x, "<p class=\"note\">The body is longer than this page shows.</p>\n<p><a class=\"button go yes\" "
               "href=\"/tickets/");
        show_text(&x->out, t->id);
        PUT(x, "/whole\">Read all of it, then approve</a></p>\n</div>\n");
        return;
    }
    form_begin(x, t, "approve", "approve");
    approve_fields(x, v);
    PUT(x, "</div>\n");
}

static void deny(struct exchange *x, const struct ticket *t)
{
    PUT(x, "<div class=\"choice\">\n<h3>Deny</h3>\n<p>It never leaves. Your words reach the agent, also when it "
           "asks for the same again before the ticket would have expired.</p>\n");
    form_begin(x, t, "deny", "deny");
    PUT(x,
        "<label for=\"why-no\">Words to the agent</label>\n<input id=\"why-no\" name=\"reason\" maxlength=\"300\">\n"
        "<button class=\"go no arm\">Deny this request</button>\n</form>\n</div>\n");
}

/* What became of it, in a sentence. */
static const char *sentence(const struct ticket *t)
{
    static const struct {
        const char *state, *words;
    } table[] = {
        {"approved", "It was approved. It leaves when the agent asks again."},
        {"executing", "It was approved and is being sent."},
        {"done", "It was approved and sent, and was answered."},
        {"failed", "It was approved, but could not be sent."},
        {"denied", "It was denied and never leaves."},
        {"expired", "Its time was over. That is a no: it never leaves."},
        {"cancelled", "It was withdrawn and never leaves."},
        {"unknown",
         "It was sent, but what came of it is not known. It is not sent again by itself: look at the other "
         "side before you approve another."},
    };
    if (span_eq(t->state, SPAN("cancelled")) && span_eq(t->decided_by, SPAN("policy")))
        return "It was withdrawn and never leaves: by the policy as it was then, it would not have been held "
               "like this any more (another policy, or the hours of a rule). If the agent asks again, the policy "
               "decides.";
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (span_eq(t->state, span_str(table[i].state)))
            return table[i].words;
    return "";
}

static void outcome(struct exchange *x, const struct ticket *t)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<section class=\"outcome\" aria-labelledby=\"became\">\n<h2 id=\"became\">What became of it</h2>\n<p>");
    show_own(out, sentence(t));
    PUT(x, "</p>\n<dl class=\"about\">\n");
    if (t->decided_by.n) {
        PUT(x, "<dt>Decided by</dt><dd>");
        page_decider(x, t, DECIDER_SHOWN);
        if (span_eq(t->decided_channel, SPAN("grant"))) {
            PUT(x, ", ahead, with a <a href=\"/grants\">grant</a>");
        } else if (span_eq(t->decided_channel, SPAN("slack"))) {
            PUT(x, " in Slack");
        } else if (t->decided_channel.n) {
            PUT(x, " on the ");
            show_text(out, t->decided_channel);
        }
        PUT(x, ", ");
        show_time(out, t->decided_ms);
        PUT(x, "</dd>\n");
    }
    people_decided(x, t);
    if (t->decided_reason.n) {
        PUT(x, "<dt>In these words</dt><dd>");
        show_text(out, t->decided_reason);
        if (page_decider_untrusted(t))
            PUT(x, PAGE_UNTRUSTED);
        PUT(x, "</dd>\n");
    }
    if (t->has_outcome) {
        (void)dynbuf_addf(out, "<dt>Answer</dt><dd>status %llu, ", (unsigned long long)t->status);
        show_size(out, t->bytes_in);
        PUT(x, "</dd>\n");
    }
    PUT(x, "</dl>\n</section>\n");
}

void page_decision(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;

    if (!span_eq(t->state, SPAN("pending"))) {
        outcome(x, t);
        return;
    }
    PUT(x, "<section class=\"decide\" aria-labelledby=\"decide\">\n<h2 id=\"decide\">Your decision</h2>\n"
           "<div class=\"choices\">\n");
    approve(x, v);
    deny(x, t);
    page_grant_offer(x, v);
    PUT(x, "</div>\n</section>\n");
}

static void approve_whole(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;

    PUT(x, "<div class=\"choice\">\n");
    if (nothing_to_approve(x, v))
        return;
    yes_means(x, v);
    form_begin(x, t, "approve", "approve-whole");
    PUT(x, "<input type=\"hidden\" name=\"whole\" value=\"1\">\n<label class=\"check\"><input type=\"checkbox\" "
           "name=\"read\" value=\"1\" required> I have read all ");
    show_size(&x->out, t->body_size);
    PUT(x, " of it</label>\n");
    approve_fields(x, v);
    PUT(x, "</div>\n");
}

void page_decision_whole(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;

    if (!span_eq(t->state, SPAN("pending"))) {
        outcome(x, t);
        return;
    }
    PUT(x, "<section class=\"decide\" aria-labelledby=\"decide\">\n<h2 id=\"decide\">Your decision</h2>\n"
           "<div class=\"choices\">\n");
    approve_whole(x, v);
    deny(x, t);
    PUT(x, "</div>\n</section>\n");
}

/* --- what the forms send -------------------------------------------------- */

bool page_mark_good(struct exchange *x, const char *purpose, struct span digest, struct span mark)
{
    switch (guard_mark_check(x->session, purpose, x->arg, digest, x->now_ms, mark)) {
    case GUARD_FINE: return true;
    case GUARD_TOO_FAST:
        page_problem(
            x, 409, "Too fast",
            "That came less than half a second after the page was shown. Nothing was decided: go back and look.");
        return false;
    case GUARD_STALE:
        page_problem(x, 409, "An old page", "This page was open for too long. Load the request again.");
        return false;
    default:
        page_problem(x, 403, "Refused", "This form is not one that this page showed you. Nothing was decided.");
        return false;
    }
}

void page_decided(struct exchange *x, struct frame *f)
{
    const char *state, *why;
    char path[64];
    unsigned status = api_decided(f, &state, &why);

    if (status == 200) {
        (void)snprintf(path, sizeof(path), "/tickets/%.*s", SPAN_FMT(x->arg));
        page_see(x, path);
    } else {
        page_problem(x, status, "Not decided", why);
    }
}

bool page_may_approve(struct exchange *x, const struct ticket *t, struct span reason, struct span instead_of)
{
    if (t->reason_required && reason.n == 0) {
        page_problem(x, 422, "Reason needed", "The rule that held this wants a reason with an approval.");
        return false;
    }
    if (!api_may_approve(x, t, instead_of)) {
        page_problem(x, 403, "Not yours to approve", "The rule that held this names who may approve it.");
        return false;
    }
    return true;
}

/* What the form says, kept while the body is asked for. */
struct form {
    struct span reason, name, passkey, instead_of;
    struct digest shown;
};

/* Whether this operator may say yes to this ticket, in this way. */
static bool may_approve(struct exchange *x, const struct ticket *t, const struct form *form, bool whole,
                        struct span read)
{
    if (page_is_cut(t) && !(whole && span_eq(read, SPAN("1")))) {
        page_problem(x, 409, "Not read yet", "This body is longer than the page shows. Read all of it first.");
        return false;
    }
    return page_may_approve(x, t, form->reason, form->instead_of);
}

/* Their passkey has signed it, as the keeper says. */
static void stepped_up(struct exchange *x)
{
    const struct form *form = deciding_own(x);
    struct id id;

    if (id_parse(x->arg, &id) == 0)
        api_decide(x, &id, DECIDE_APPROVE, form->reason, &form->shown, "page", page_decided);
}

static void judged(struct exchange *x, struct view *v)
{
    const struct form *form = deciding_own(x);
    unsigned status = 0;
    const char *why = deciding_refuses(x, v, form->name, &status);
    struct id id;

    if (why)
        page_problem(x, status, status == 422 ? "The name is needed" : "Not decided", why);
    else if (v->t.step_up)
        passkey_step_up(x, &v->t, form->passkey, stepped_up);
    else if (id_parse(v->t.id, &id) == 0)
        api_decide(x, &id, DECIDE_APPROVE, form->reason, &form->shown, "page", page_decided);
}

/* A form that this page showed, of a ticket that there is; *whole: of the page of the whole body. */
static bool form_take(struct exchange *x, enum choice what, struct form *form, struct ticket *t, bool *whole)
{
    struct span digest, mark, words, all = SPAN_NONE;

    if (form_field(x, "digest", &digest) != 0 || form_field(x, "mark", &mark) != 0 ||
        form_field(x, "reason", &words) != 0 || form_field(x, "whole", &all) != 0 ||
        form_field(x, "name", &form->name) != 0 || form_field(x, "deputy_for", &form->instead_of) != 0 ||
        form_field(x, "passkey", &form->passkey) != 0)
        return false;
    *whole = all.n > 0;
    if (!page_mark_good(x, what == DECIDE_DENY ? "deny" : *whole ? "approve-whole" : "approve", digest, mark))
        return false;
    if (hex_parse(digest, form->shown.b, DIGEST_BYTES) != 0 || reason_clean(x, words, &form->reason) != 0 ||
        api_ticket_find(x, t) != 0) {
        if (x->status == 0)
            page_problem(x, 400, "Bad request", "This is not the form that the page has.");
        return false;
    }
    return true;
}

static void decide(struct exchange *x, enum choice what)
{
    struct form *form = arena_alloc(&x->arena, sizeof *form);
    struct span read;
    struct ticket t;
    bool whole;
    struct id id;

    if (!form) {
        page_problem(x, 503, "Not possible now", "There is no memory for this form.");
        return;
    }
    if (form_field(x, "read", &read) != 0 || !form_take(x, what, form, &t, &whole) || id_parse(x->arg, &id) != 0)
        return;
    if (what == DECIDE_DENY)
        api_decide(x, &id, what, form->reason, &form->shown, "page", page_decided);
    else if (may_approve(x, &t, form, whole, read))
        deciding_read(x, &t, form, judged);
}

void page_approve(struct exchange *x)
{
    decide(x, DECIDE_APPROVE);
}

void page_deny(struct exchange *x)
{
    decide(x, DECIDE_DENY);
}
