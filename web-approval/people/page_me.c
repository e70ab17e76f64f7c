/* Who am I; a password of one's own; how somebody signs in. */
#include <stdio.h>

#include "common/log.h"
#include "common/msg.h"
#include "web-approval/people/passkey.h"
#include "web-approval/people/people.h"
#include "web-approval/people/who.h"
#include "web-approval/route.h"

static void put_cookie(const struct exchange *x, char out[COOKIE_MAX], const char *name, const char *value,
                       const char *site, int seconds)
{
    int n = snprintf(out, COOKIE_MAX, "%s=%s; Path=/; HttpOnly; SameSite=%s%s; Max-Age=%d", name, value, site,
                     x->desk->guard.secure ? "; Secure" : "", seconds);
    if (n < 0 || n >= COOKIE_MAX)
        log_die("the cookie has no room"); /* a part of it would say something else */
}

void people_cookie(struct exchange *x, const char *cookie)
{
    put_cookie(x, x->cookie, guard_cookie_name(&x->desk->guard), cookie, "Strict",
               cookie[0] ? GUARD_SESSION_MS / 1000 : 0);
}

static void know_browser(struct exchange *x)
{
    char text[GUARD_SEED_TEXT + 1];

    if (guard_browser_new(&x->desk->guard, span_str(x->operator), text) == 0)
        put_cookie(x, x->browser, guard_browser_name(&x->desk->guard), text, "Strict",
                   GUARD_BROWSER_DAYS * 24 * 3600);
}

void people_flow_cookie(struct exchange *x, const char *cookie, bool known)
{
    put_cookie(x, x->flow, guard_flow_name(&x->desk->guard), cookie, "Lax",
               known ? GUARD_BROWSER_DAYS * 24 * 3600 : GUARD_FLOW_MS / 1000);
}

bool people_sign_in(struct exchange *x, const char *name, enum guard_how how)
{
    char cookie[GUARD_COOKIE_TEXT + 1];
    bool gone;

    (void)snprintf(x->operator, sizeof(x->operator), "%s", name);
    if (!who_find(x, &gone)) {
        reply_problem(x, gone ? 403 : 503, "Not signed in", "%s",
                      gone ? "nobody has this name any more" : "the store cannot be read now; try again in a moment");
        return false;
    }
    const struct session *s = guard_session_new(&x->desk->guard, name, how, x->now_ms, cookie);
    if (!s) {
        reply_problem(x, 503, "Not possible now", "the system has no randomness to give");
        return false;
    }
    if (!who_is_machine(name)) {
        guard_session_person(&x->desk->guard, s, x->who.generation);
        know_browser(x);
    }
    x->session = s;
    ask_note_operator(x, "signin");
    page_see(x, how == HOW_LINK && x->who.person ? "/me" : "/");
    people_cookie(x, cookie);
    return true;
}

static void facts(struct exchange *x)
{
    static const char *const how[] = {"", "with a link", "with a password", "with a passkey",
                                      "through your organisation's provider"};
    const struct session *s = x->session;
    uint64_t since = x->wall_ms - (x->now_ms - s->since_ms), until = x->wall_ms + (s->until_ms - x->now_ms);

    PUT(x, "<dl class=\"about\">\n");
    page_row(x, "Name", span_str(x->operator));
    if (x->who.groups[0])
        page_row(x, "Groups", span_str(x->who.groups));
    if (x->who.uid[0] && x->who.person)
        page_row(x, "User of the gateway's machine", span_str(x->who.uid));
    PUT(x, "<dt>Signed in</dt><dd>");
    show_own(&x->out, how[s->how]);
    PUT(x, ", ");
    show_time(&x->out, since);
    PUT(x, "</dd>\n<dt>Ends</dt><dd>");
    show_time(&x->out, until);
    show_own(&x->out, x->who.person ? ", or after an hour in which you do nothing" : "");
    PUT(x, "</dd>\n</dl>\n");
}

/* Whom the organisation vouches for sets none: it would open still when the organisation lets them in no more. */
static bool may_set(const struct exchange *x)
{
    return x->who.person && !who_is_machine(x->session->operator) && x->session->how != HOW_OIDC;
}

/* Who came with a link or a passkey may set one; with a password, by saying it. */
static bool must_say(const struct exchange *x)
{
    return x->session->how == HOW_PASSWORD;
}

static void password_form(struct exchange *x)
{
    char mark[GUARD_MARK_TEXT + 1];

    guard_mark(x->session, "password", SPAN("me"), SPAN_NONE, x->now_ms, mark);
    (void)dynbuf_addf(
        &x->out,
        "<section class=\"plain\" aria-labelledby=\"pw\">\n<h2 id=\"pw\">A password</h2>\n"
        "<p>At least %d characters; a few words are easy to remember. Whoever is signed in with your name, "
        "you here as well, signs in anew after it.</p>\n"
        "<form method=\"post\" action=\"/me/password\">\n<input type=\"hidden\" name=\"mark\" value=\"%s\">\n",
        PASSWORD_LEAST, mark);
    if (must_say(x))
        PUT(x, "<label for=\"old\">The one of now</label>\n<input id=\"old\" name=\"old\" type=\"password\" "
               "autocomplete=\"current-password\" maxlength=\"256\" required>\n");
    (void)dynbuf_addf(&x->out,
                      "<label for=\"new\">A new one</label>\n<input id=\"new\" name=\"new\" type=\"password\" "
                      "autocomplete=\"new-password\" minlength=\"%d\" maxlength=\"%d\" required>\n"
                      "<button class=\"yes\">Set the password</button>\n</form>\n</section>\n",
                      PASSWORD_LEAST, PASSWORD_MOST);
}

void page_me(struct exchange *x)
{
    page_begin(x, 200, "me", "Who am I");
    PUT(x, "<section class=\"plain\" aria-labelledby=\"me\">\n<h1 id=\"me\">Who am I</h1>\n");
    facts(x);
    if (!x->who.person)
        PUT(x,
            "<p class=\"note\">You are a user of the gateway's machine. <code>countersign operator add</code> makes "
            "people of those who decide: with a name, groups, a password or passkeys.</p>\n");
    PUT(x, "</section>\n");
    if (x->who.person && !who_is_machine(x->session->operator)) {
        passkey_section(x);
        if (may_set(x))
            password_form(x);
    }
    if (x->who.person)
        deputies_section(x);
    page_end(x);
}

static void changed(struct exchange *x, struct frame *f)
{
    if (!people_acted(x, f))
        return;
    guard_forget(&x->desk->guard, x->operator);
    x->session = NULL;
    page_see(x, "/sign-in?set=1");
    people_cookie(x, "");
}

static void wipe(struct span s)
{
    if (s.n)
        explicit_bzero((uint8_t *)(uintptr_t)s.p, s.n);
}

/* The hash of a new one that this person may set; false: answered. */
static bool take_password(struct exchange *x, struct span old, struct span new, char kept[PASSWORD_KEPT])
{
    struct person_row r;
    struct err e;
    const char *why = password_objection(new);

    if (desk_store_person(x->desk->store, span_str(x->operator), false, &x->arena, &r, &e) != 1) {
        reply_problem(x, 503, "Not possible now", "the store cannot be read now; try again in a moment");
        return false;
    }
    if (must_say(x) && !attempts_may(&x->desk->known, r.name, x->now_ms)) {
        reply_problem(x, 429, "Too many tries", "wait a while before you try again");
        return false;
    }
    if (must_say(x)) {
        bool right = password_is(old, r.password);
        attempts_over(&x->desk->known, r.name, right, x->now_ms);
        why = right ? why : "that is not your password of now";
    }
    if (!why && password_make(new, kept) != 0)
        why = "the system cannot make it into what is kept";
    if (why)
        reply_problem(x, 422, "Not set", "%s", why);
    return why == NULL;
}

void page_me_password(struct exchange *x)
{
    struct span mark, old, new;
    char kept[PASSWORD_KEPT] = "";

    x->arg = SPAN("me");
    if (form_field(x, "mark", &mark) != 0 || form_field(x, "old", &old) != 0 || form_field(x, "new", &new) != 0 ||
        !page_mark_good(x, "password", SPAN_NONE, mark))
        return;
    if (!may_set(x))
        reply_problem(x, 403, "Not set",
                      "only people who have signed in by name have a password, and with a link, a password or a "
                      "passkey they set one");
    else if (take_password(x, old, new, kept))
        people_act(
            x, &(struct person_act){.what = ACT_PASSWORD, .name = span_str(x->operator), .password = span_str(kept)},
            changed);
    wipe(old);
    wipe(new);
    wipe(x->body);
}
