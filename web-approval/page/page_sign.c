/* Signing in and out, and the page's own files. */
#include <stdio.h>

#include "web-approval/people/oidc.h"
#include "web-approval/people/passkey.h"
#include "web-approval/people/people.h"
#include "web-approval/people/who.h"
#include "web-approval/route.h"

#include "web-approval/assets.inc"

static void password_form(struct exchange *x)
{
    struct span set;

    if (query_field(x, "set", &set) == 0 && set.n)
        PUT(x, "<p class=\"note\">The password is set. Sign in with it.</p>\n");
    PUT(x, "<form method=\"post\" action=\"/sign-in\">\n<label for=\"name\">Name</label>\n<input id=\"name\" "
           "name=\"name\" autocomplete=\"username\" autocapitalize=\"off\" spellcheck=\"false\" maxlength=\"40\" "
           "required>\n<label for=\"password\">Password</label>\n<input id=\"password\" name=\"password\" "
           "type=\"password\" autocomplete=\"current-password\" maxlength=\"256\" required>\n"
           "<button class=\"yes\">Sign in</button>\n</form>\n");
}

/* Opening the link changes nothing: mail scanners and previews open links too. The button does. */
void page_sign_in(struct exchange *x)
{
    struct span token, code;

    if (query_field(x, "t", &token) != 0 || query_field(x, "k", &code) != 0)
        return;
    page_begin(x, 200, "sign-in", "Sign in");
    PUT(x, "<section class=\"plain\">\n<h1>Sign in</h1>\n");
    if (token.n == 0) {
        oidc_button(x);
        passkey_sign_in(x);
        password_form(x);
        PUT(x, "<p>Or with a link that works once: <code>countersign up</code> printed one, <code>countersign "
               "signin</code> prints another, and for a person <code>countersign operator link</code>.</p>\n");
    } else {
        const char *who = guard_link_of(&x->desk->guard, token, x->now_ms);
        PUT(x, "<p>The link works once");
        if (who && !who_is_machine(who)) {
            PUT(x, ", for <b>");
            show_text(&x->out, span_str(who));
            PUT(x, "</b>");
        }
        PUT(x, ". You stay signed in on this browser for at most twelve hours.</p>\n"
               "<form method=\"post\" action=\"/sign-in\">\n<input type=\"hidden\" name=\"t\" value=\"");
        show_text(&x->out, span_first(token, ID_TEXT + 1));
        PUT(x, "\">\n<input type=\"hidden\" name=\"k\" value=\"");
        show_text(&x->out, span_first(code, ID_TEXT + 1));
        PUT(x, "\">\n<button class=\"yes\">Sign in</button>\n</form>\n");
    }
    PUT(x, "</section>\n");
    page_end(x);
}

/* The link is used up also if whoever it was for is not there any more. */
static void with_link(struct exchange *x, struct span token, struct span code)
{
    char who[GUARD_OPERATOR];

    if (!guard_link_use(&x->desk->guard, token, x->now_ms, who))
        page_problem(x, 403, "This link does not open",
                     "It was used already, or is too old. `countersign signin` prints another.");
    else if (people_sign_in(x, who, HOW_LINK))
        guard_session_code(&x->desk->guard, x->session, code);
}

static void wipe(struct span s)
{
    if (s.n)
        explicit_bzero((uint8_t *)(uintptr_t)s.p, s.n);
}

/* The same words whether the name or the password is another, after the same time. */
static void with_password(struct exchange *x, struct span name, struct span password)
{
    struct person_row r;
    struct err e;
    char who[GUARD_OPERATOR];
    struct span browser = guard_browser(&x->desk->guard, &x->head, name), tried = browser.n ? browser : name;
    struct attempts *a = browser.n ? &x->desk->known : &x->desk->attempts;

    if (!attempts_may(a, tried, x->now_ms)) {
        page_problem(x, 429, "Too many tries", "Wait a while before you try again, or sign in with a link.");
        return;
    }
    int got = desk_store_person(x->desk->store, name, false, &x->arena, &r, &e);
    if (got < 0) {
        reply_unable(x, &e);
        return;
    }
    bool right = password_is(password, got ? r.password : SPAN_NONE) && got == 1 && r.name.n < sizeof(who);
    attempts_over(a, tried, right, x->now_ms);
    if (!right) {
        page_problem(x, 403, "Not signed in", "The name or the password is not right.");
        return;
    }
    (void)snprintf(who, sizeof(who), "%.*s", SPAN_FMT(r.name));
    (void)people_sign_in(x, who, HOW_PASSWORD);
}

void page_sign_in_post(struct exchange *x)
{
    struct span token, name, password, code, passkey, seed;

    if (form_field(x, "t", &token) != 0 || form_field(x, "k", &code) != 0 ||
        form_field(x, "passkey", &passkey) != 0 || form_field(x, "seed", &seed) != 0 ||
        form_field(x, "name", &name) != 0 || form_field(x, "password", &password) != 0)
        return;
    if (passkey.n)
        passkey_signed_in(x, seed, passkey);
    else if (token.n)
        with_link(x, token, code);
    else
        with_password(x, name, password);
    wipe(password);
    wipe(x->body);
}

void page_sign_out(struct exchange *x)
{
    guard_sign_out(&x->desk->guard, x->session);
    x->session = NULL;
    page_see(x, "/");
    people_cookie(x, "");
}

void page_asset(struct exchange *x)
{
    static const struct {
        const char *name, *type;
        struct span bytes;
    } files[] = {
        {"style.css", "text/css; charset=utf-8", {asset_style_css, sizeof(asset_style_css)}},
        {"desk.js", "text/javascript; charset=utf-8", {asset_desk_js, sizeof(asset_desk_js)}},
        {"passkey.js", "text/javascript; charset=utf-8", {asset_passkey_js, sizeof(asset_passkey_js)}},
        {"icon.svg", "image/svg+xml", {asset_icon_svg, sizeof(asset_icon_svg)}},
    };

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (span_eq(x->arg, span_str(files[i].name))) {
            x->status = 200;
            x->type = files[i].type;
            dynbuf_reset(&x->out);
            (void)dynbuf_add(&x->out, files[i].bytes);
            return;
        }
    page_problem(x, 404, "Not found", "There is nothing at this path.");
}
