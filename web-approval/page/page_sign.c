/* Signing in and out, and the page's own files. */
#include <stdio.h>

#include "web-approval/page/page.h"
#include "web-approval/route.h"

#include "web-approval/assets.inc"

/* Opening the link changes nothing: mail scanners and previews open links too. The button does. */
void page_sign_in(struct exchange *x)
{
    struct span token;

    if (query_field(x, "t", &token) != 0)
        return;
    page_begin(x, 200, "sign-in", "Sign in");
    PUT(x, "<section class=\"plain\">\n<h1>Sign in</h1>\n");
    if (token.n == 0) {
        PUT(x, "<p>This page opens with a link that works once. <code>countersign up</code> printed one; "
               "<code>countersign signin</code> prints another.</p>\n");
    } else {
        PUT(x, "<p>The link works once. You stay signed in on this browser for twelve hours.</p>\n"
               "<form method=\"post\" action=\"/sign-in\">\n<input type=\"hidden\" name=\"t\" value=\"");
        show_text(&x->out, span_first(token, ID_TEXT + 1));
        PUT(x, "\">\n<button class=\"yes\">Sign in</button>\n</form>\n");
    }
    PUT(x, "</section>\n");
    page_end(x);
}

void page_sign_in_post(struct exchange *x)
{
    char cookie[GUARD_COOKIE_TEXT + 1];
    struct span token;

    if (form_field(x, "t", &token) != 0)
        return;
    const struct session *s = guard_sign_in(&x->desk->guard, token, x->now_ms, cookie);
    if (!s) {
        page_problem(x, 403, "This link does not open",
                     "It was used already, or is older than ten minutes. `countersign signin` prints another.");
        return;
    }
    (void)snprintf(x->operator, sizeof(x->operator), "%s", s->operator);
    ask_note_operator(x, "signin");
    page_see(x, "/");
    (void)snprintf(x->cookie, sizeof(x->cookie), "countersign=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%d",
                   cookie, GUARD_SESSION_MS / 1000);
}

void page_sign_out(struct exchange *x)
{
    guard_sign_out(&x->desk->guard, x->session);
    x->session = NULL;
    page_see(x, "/");
    (void)snprintf(x->cookie, sizeof(x->cookie), "countersign=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
}

void page_asset(struct exchange *x)
{
    static const struct {
        const char *name, *type;
        struct span bytes;
    } files[] = {
        {"style.css", "text/css; charset=utf-8", {asset_style_css, sizeof(asset_style_css)}},
        {"desk.js", "text/javascript; charset=utf-8", {asset_desk_js, sizeof(asset_desk_js)}},
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
