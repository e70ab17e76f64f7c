#include "web-approval/people/oidc.h"

#include <stdio.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/people/who.h"
#include "web-approval/route.h"

enum { URL_MOST = 6 * 1024, NAME_MOST = 128, WHY_MOST = 512, CODE_MOST = 64, ISSUER_MOST = 1024 };

static bool is_there(const struct exchange *x)
{
    return x->desk->oidc.issuer[0] != '\0' && x->desk->guard.secure;
}

void oidc_button(struct exchange *x)
{
    if (!is_there(x))
        return;
    /* A link: a form that is redirected to another site is stopped by `form-action 'self'`. */
    PUT(x, "<p><a class=\"button yes\" href=\"/sign-in/oidc/go\">Sign in with ");
    show_text(&x->out, span_str(x->desk->oidc.name));
    PUT(x, "</a></p>\n");
}

static void nothing_here(struct exchange *x)
{
    reply_problem(x, 404, "Not found", "nobody signs in through a provider here");
}

/* --- there ------------------------------------------------------------------------- */

static void put_field(struct dynbuf *url, const char *name, struct span value)
{
    (void)dynbuf_addf(url, "&%s=", name);
    for (size_t i = 0; i < value.n; i++) {
        uint8_t c = value.p[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c)))
            (void)dynbuf_add_byte(url, c);
        else
            (void)dynbuf_addf(url, "%%%02X", c);
    }
}

/* RFC 7636: of the verifier's text, in base64url without padding. */
static void put_challenge(struct dynbuf *url, const char *verifier)
{
    char text[4 * (DIGEST_BYTES + 2) / 3 + 4];
    struct digest d;
    size_t n;

    digest_of(span_str(verifier), &d);
    n = base64_encode(span_of(d.b, DIGEST_BYTES), text);
    while (n > 0 && text[n - 1] == '=')
        n--;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]);
    put_field(url, "code_challenge", span_of(text, n));
    put_field(url, "code_challenge_method", SPAN("S256"));
}

static void put_url(const struct exchange *x, const struct guard_flow *flow, struct dynbuf *url)
{
    const struct desk *d = x->desk;
    bool query = span_index(span_str(d->oidc.authorization), '?') < strlen(d->oidc.authorization);
    char back[DESK_TEXT + 32];

    (void)snprintf(back, sizeof(back), "%s/sign-in/oidc", d->desk_url);
    (void)dynbuf_addf(url, "%s%cresponse_type=code", d->oidc.authorization, query ? '&' : '?');
    put_field(url, "client_id", span_str(d->oidc.client));
    put_field(url, "redirect_uri", span_str(back));
    put_field(url, "scope",
              strcmp(d->oidc.claim, "email") == 0                ? SPAN("openid email")
              : strcmp(d->oidc.claim, "preferred_username") == 0 ? SPAN("openid profile")
                                                                 : SPAN("openid"));
    put_field(url, "state", span_str(flow->state));
    put_field(url, "nonce", span_str(flow->nonce));
    put_challenge(url, flow->verifier);
}

/* Another site may not send somebody there: what they then see of a sign-in that they did not begin is not theirs. */
static bool from_here(const struct exchange *x)
{
    const struct http_field *site = http_find(&x->head, SPAN("sec-fetch-site"));

    return !site || span_eq(site->value, SPAN("same-origin")) || span_eq(site->value, SPAN("none"));
}

void page_oidc_go(struct exchange *x)
{
    struct guard_flow flow;
    struct dynbuf url;

    if (!is_there(x)) {
        nothing_here(x);
        return;
    }
    if (!from_here(x)) {
        reply_problem(x, 403, "Refused", "this did not come from the page itself; begin at /sign-in");
        return;
    }
    dynbuf_init(&url, URL_MOST);
    if (guard_flow_new(&x->desk->guard, &x->head, x->now_ms, &flow) == 0) {
        put_url(x, &flow, &url);
        (void)dynbuf_add_byte(&url, '\0');
        x->away = (const char *)arena_keep(&x->arena, &url).p;
    }
    dynbuf_free(&url);
    if (!x->away) {
        reply_problem(x, 503, "Not possible now", "the system has no randomness to give, or no memory");
        return;
    }
    reply_empty(x, 303);
    people_flow_cookie(x, flow.text, flow.known);
}

/* --- and back ------------------------------------------------------------------------ */

static void begin_again(struct exchange *x)
{
    reply_problem(
        x, 403, "Not signed in",
        "this did not begin in this browser, or too long ago, or was done already: begin again at /sign-in");
}

/* Whose tries these are: a browser's in which somebody has signed in so, or this one sign-in's. */
static struct attempts *attempts_of(struct exchange *x, const struct guard_flow *flow, struct span *by)
{
    *by = flow->known ? span_first(span_str(flow->text), ID_TEXT) : span_str(flow->text);
    return flow->known ? &x->desk->oidc_known : &x->desk->oidc_strangers;
}

static void said(struct exchange *x, struct frame *f);

/* A browser that is known has one at once, and all the others together some. */
static bool has_place(const struct exchange *x, const struct guard_flow *flow)
{
    size_t strangers = 0, own = 0;

    for (size_t i = 0; i < DESK_ASKS; i++) {
        const struct ask *a = &x->desk->asks[i];
        if (a->id == 0 || a->fn != said)
            continue;
        const struct guard_flow *other = a->x->holds;
        strangers += !other->known;
        own += memcmp(other->text, flow->text, ID_TEXT) == 0;
    }
    return own == 0 && (flow->known || strangers < OIDC_STRANGERS);
}

/* It works for who is a person here, by that very name: "uid 0" is nobody's, and Alice is not alice. */
static bool is_person(struct exchange *x, struct span name, char who[GUARD_OPERATOR])
{
    struct person_row r;
    struct err e;
    int got =
        name.n > 0 && name.n < GUARD_OPERATOR ? desk_store_person(x->desk->store, name, false, &x->arena, &r, &e) : 0;

    if (got < 0) {
        reply_unable(x, &e);
        return false;
    }
    if (got == 0 || !span_eq(r.name, name) || memchr(name.p, '\0', name.n)) {
        reply_problem(x, 403, "Not signed in",
                      "the provider says that you are \"%.*s\", and nobody here has this very name; `countersign "
                      "operator add` gives it",
                      SPAN_FMT(span_first(name, NAME_MOST)));
        return false;
    }
    (void)snprintf(who, GUARD_OPERATOR, "%.*s", SPAN_FMT(name));
    if (who_is_machine(who))
        begin_again(x);
    return !who_is_machine(who);
}

/* Not a redirect: at the end of a way that began at another site browsers leave the session's cookie out. */
static void lead_on(struct exchange *x)
{
    x->location[0] = '\0';
    x->onward = true;
    page_begin(x, 200, "sign-in", "Signed in");
    PUT(x, "<section class=\"plain\">\n<h1>Signed in</h1>\n<p>You are <b>");
    show_text(&x->out, span_str(x->operator));
    PUT(x, "</b>.</p>\n<p><a class=\"button yes\" href=\"/\">To the list</a></p>\n</section>\n");
    page_end(x);
}

static void said(struct exchange *x, struct frame *f)
{
    const struct guard_flow *flow = x->holds;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span name = msg_get_span(&m, NAME_MOST), why = msg_get_span(&m, WHY_MOST), by;
    struct attempts *a = attempts_of(x, flow, &by);
    char who[GUARD_OPERATOR], known[GUARD_SEED_TEXT + 1];

    if (msg_end(&m) != 0) {
        reply_problem(x, 503, "Not possible now", "the keeper did not answer; try again in a moment");
        return;
    }
    attempts_over(a, by, ok, x->now_ms);
    if (!ok) {
        reply_problem(x, 403, "Not signed in", "%.*s", SPAN_FMT(why));
        return;
    }
    if (!is_person(x, name, who))
        return;
    if (!guard_flow_use(&x->desk->guard, flow, x->now_ms, known)) {
        begin_again(x);
        return;
    }
    if (!people_sign_in(x, who, HOW_OIDC))
        return;
    people_flow_cookie(x, known, true);
    lead_on(x);
}

/* The provider's error, in the few letters that such codes are made of; false: answered. */
static bool no_error(struct exchange *x, struct span error)
{
    bool word = error.n <= CODE_MOST;

    for (size_t i = 0; i < error.n; i++)
        word = word && ((error.p[i] >= 'a' && error.p[i] <= 'z') || error.p[i] == '_');
    if (error.n)
        reply_problem(x, 403, "Not signed in", "the provider says no%s%.*s", word ? ": " : "",
                      SPAN_FMT(word ? error : SPAN_NONE));
    return error.n == 0;
}

static void ask_keeper(struct exchange *x, const struct guard_flow *flow, struct span code)
{
    struct guard_flow *keep = arena_alloc(&x->arena, sizeof(*keep));
    struct span by;

    if (!keep) {
        reply_problem(x, 503, "Not possible now", "there is no memory for this");
        return;
    }
    *keep = *flow;
    x->holds = keep;
    if (!has_place(x, flow)) {
        reply_problem(x, 503, "Not possible now", "too many sign in at once; begin again in a moment");
        return;
    }
    if (!attempts_may(attempts_of(x, flow, &by), by, x->now_ms)) {
        reply_problem(x, 429, "Too many tries", "wait a while before you begin again, or sign in in another way");
        return;
    }
    struct dynbuf *b = ask_begin(x, ASK_KEEPER, M_OIDC, M_OIDC_SAID, said);
    if (!b)
        return;
    msg_put_span(b, code);
    msg_put_span(b, span_str(flow->verifier));
    msg_put_span(b, span_str(flow->nonce));
    ask_send(x);
}

void page_oidc(struct exchange *x)
{
    struct span code, state, iss, error;
    struct guard_flow flow;

    if (!is_there(x)) {
        nothing_here(x);
        return;
    }
    if (query_field(x, "code", &code) != 0 || query_field(x, "state", &state) != 0 ||
        query_field(x, "iss", &iss) != 0 || query_field(x, "error", &error) != 0)
        return;
    if (!guard_flow_of(&x->desk->guard, &x->head, x->now_ms, &flow) ||
        !span_eq_consttime(state, span_str(flow.state))) {
        begin_again(x);
        return;
    }
    if (iss.n && !span_eq(iss, span_str(x->desk->oidc.issuer))) /* RFC 9207 */
        reply_problem(x, 403, "Not signed in", "this is the answer of another provider");
    else if (no_error(x, error) && (code.n == 0 || code.n > OIDC_BROUGHT))
        reply_problem(x, 400, "Bad request", "the provider sent no code, or one that is too long");
    else if (x->status == 0)
        ask_keeper(x, &flow, code);
}
