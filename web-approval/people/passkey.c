#include "web-approval/people/passkey.h"

#include <stdio.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/people/who.h"
#include "web-approval/route.h"

enum { PARTS = 4, PART_MAX = 12 * 1024, WHY_MAX = 512, NAMES_MAX = 2000, ID_MAX = 255 };

/* --- texts --------------------------------------------------------------------- */

static void put_base64url(struct exchange *x, struct span bytes)
{
    char text[4 * (ID_MAX + 2) / 3 + 8];
    size_t n = bytes.n <= ID_MAX ? base64_encode(bytes, text) : 0;

    for (size_t i = 0; i < n && text[i] != '='; i++)
        (void)dynbuf_add_byte(&x->out, (uint8_t)(text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]));
}

/* One part of what the script made, into the arena; NULL p: it is not base64url. */
static struct span take_part(struct exchange *x, struct span text)
{
    char *b64 = text.n > 0 && text.n <= PART_MAX ? arena_alloc(&x->arena, text.n + 4) : NULL;
    uint8_t *out = b64 ? arena_alloc(&x->arena, text.n + 4) : NULL;
    size_t n = 0, i;

    if (!out)
        return SPAN_NONE;
    for (i = 0; i < text.n; i++) {
        char c = (char)text.p[i];
        if (c == '+' || c == '/' || c == '=')
            return SPAN_NONE;
        b64[i] = (char)(c == '-' ? '+' : c == '_' ? '/' : c);
    }
    for (; i % 4 != 0; i++)
        b64[i] = '=';
    return base64_decode(span_of(b64, i), out, &n) == 0 ? span_of(out, n) : SPAN_NONE;
}

/* "A.B.C.D", all of them; false: answered. */
static bool take_parts(struct exchange *x, struct span said, struct span *part, size_t n)
{
    struct span one, rest = said;

    for (size_t i = 0; i < n; i++) {
        bool more = span_cut(rest, '.', &one, &rest);
        part[i] = take_part(x, one);
        if (part[i].n == 0 || more != (i + 1 < n)) {
            reply_problem(x, 400, "Bad request", "this is not what a passkey says");
            return false;
        }
    }
    return true;
}

/* The host that passkeys are for; empty: the page has only an address. */
static struct span site(const struct exchange *x)
{
    const struct guard *g = &x->desk->guard;

    return g->secure || span_eq(g->host, SPAN("localhost")) ? g->host : SPAN_NONE;
}

/* --- those that there are --------------------------------------------------------- */

static size_t each_own(struct exchange *x, void (*fn)(struct exchange *x, struct span id, uint64_t created_ms))
{
    struct msg_in m = msg_in(dynbuf_span(&x->desk->passkeys));
    size_t found = 0, n = msg_get_u16(&m);

    for (size_t i = 0; i < n && !m.bad; i++) {
        struct span name = msg_get_span(&m, 64), id = msg_get_span(&m, ID_MAX);
        uint64_t created_ms = msg_get_u64(&m);
        if (m.bad || !span_eq(name, span_str(x->operator)))
            continue;
        found++;
        if (fn)
            fn(x, id, created_ms);
    }
    return found;
}

static void put_id(struct exchange *x, struct span id, uint64_t created_ms)
{
    put_base64url(x, id);
    PUT(x, " ");
}

/* What the script needs: the challenge, whose site it is, and which of theirs may sign. */
static void put_attributes(struct exchange *x, const struct digest *challenge, bool own)
{
    PUT(x, " data-passkey=\"");
    put_base64url(x, span_of(challenge->b, DIGEST_BYTES));
    PUT(x, "\" data-site=\"");
    show_text(&x->out, site(x));
    PUT(x, "\" data-ids=\"");
    if (own)
        (void)each_own(x, put_id);
    PUT(x, "\"");
}

/* --- signing in ------------------------------------------------------------------- */

static void seed_challenge(struct span seed, struct digest *out)
{
    struct digest_ctx *d = digest_begin();

    digest_add_field(d, SPAN("countersign sign-in 1"));
    digest_add_field(d, seed);
    digest_end(d, out);
}

void passkey_sign_in(struct exchange *x)
{
    char seed[GUARD_SEED_TEXT + 1];
    struct digest challenge;

    if (site(x).n == 0 || x->desk->passkeys.n <= 2 || guard_seed(&x->desk->guard, x->now_ms, seed) != 0)
        return;
    seed_challenge(span_str(seed), &challenge);
    PUT(x, "<form method=\"post\" action=\"/sign-in\"");
    put_attributes(x, &challenge, false);
    (void)dynbuf_addf(
        &x->out,
        ">\n<input type=\"hidden\" name=\"seed\" value=\"%s\">\n<input type=\"hidden\" name=\"passkey\" "
        "value=\"\">\n<output class=\"note\"></output>\n<button class=\"yes\">Sign in with a "
        "passkey</button>\n</form>\n",
        seed);
}

/* The keeper's answer; false: answered. */
static bool said_yes(struct exchange *x, struct frame *f, struct span *whose)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why;

    *whose = msg_get_span(&m, 64);
    why = msg_get_span(&m, WHY_MAX);
    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now", "the keeper did not answer; try again in a moment");
    else if (!ok)
        reply_problem(x, 403, "Not taken", "the passkey was not taken: %.*s", SPAN_FMT(why));
    return x->status == 0;
}

static void old_page(struct exchange *x)
{
    reply_problem(x, 403, "An old page", "this page was open for too long: load it again");
}

static void signed_in(struct exchange *x, struct frame *f)
{
    char name[GUARD_OPERATOR];
    const struct span *seed = x->holds;
    struct span whose;

    if (!said_yes(x, f, &whose))
        return;
    if (!guard_seed_use(&x->desk->guard, *seed, x->now_ms)) {
        old_page(x);
        return;
    }
    (void)snprintf(name, sizeof(name), "%.*s", SPAN_FMT(whose));
    (void)people_sign_in(x, name, HOW_PASSKEY);
}

/* The blob that the keeper looks at, in the arena. */
static struct span proof_of(struct exchange *x, const struct span part[PARTS])
{
    struct dynbuf b;

    dynbuf_init(&b, PART_MAX);
    for (size_t i = 0; i < PARTS; i++)
        msg_put_span(&b, part[i]);
    return arena_keep(&x->arena, &b);
}

/* False: answered. */
static bool ask_check(struct exchange *x, struct span name, const struct digest *challenge, struct span said,
                      struct span *proof, ask_fn *fn)
{
    struct span part[PARTS];

    if (!take_parts(x, said, part, PARTS))
        return false;
    *proof = proof_of(x, part);
    struct dynbuf *b = proof->n ? ask_begin(x, ASK_KEEPER, M_PASSKEY_CHECK, M_PASSKEY_SAID, fn) : NULL;
    if (!b) {
        if (x->status == 0)
            reply_problem(x, 503, "Not possible now", "there is no memory for this");
        return false;
    }
    msg_put_span(b, name);
    msg_put_digest(b, challenge);
    msg_put_span(b, *proof);
    ask_send(x);
    return true;
}

void passkey_signed_in(struct exchange *x, struct span seed, struct span said)
{
    struct span *keep = arena_alloc(&x->arena, sizeof(*keep) + GUARD_SEED_TEXT);
    struct digest challenge;
    struct span proof;

    if (!keep || !guard_seed_good(&x->desk->guard, seed, x->now_ms)) {
        old_page(x);
        return;
    }
    memcpy(keep + 1, seed.p, seed.n); /* the form is wiped before the keeper answers */
    *keep = span_of(keep + 1, seed.n);
    x->holds = keep;
    seed_challenge(seed, &challenge);
    (void)ask_check(x, SPAN_NONE, &challenge, said, &proof, signed_in);
}

/* --- a new one ---------------------------------------------------------------------- */

static void list_own(struct exchange *x, struct span id, uint64_t created_ms)
{
    PUT(x, "<li>a passkey since ");
    show_time(&x->out, created_ms);
    PUT(x, "</li>\n");
}

/* As the keeper makes it (proxy/keeper/passkey/passkeys.h). */
static void add_challenge(const struct exchange *x, struct digest *out)
{
    struct digest_ctx *d = digest_begin();

    digest_add_field(d, SPAN("countersign passkey 1"));
    digest_add_field(d, span_str(x->operator));
    digest_add_field(d, span_str(x->session->code));
    digest_end(d, out);
}

static void add_form(struct exchange *x)
{
    char mark[GUARD_MARK_TEXT + 1];
    struct digest challenge;

    add_challenge(x, &challenge);
    guard_mark(x->session, "passkey", SPAN("me"), SPAN_NONE, x->now_ms, mark);
    PUT(x, "<form method=\"post\" action=\"/me/passkey\" data-make=\"");
    show_text(&x->out, span_str(x->operator));
    PUT(x, "\"");
    put_attributes(x, &challenge, true);
    (void)dynbuf_addf(
        &x->out,
        ">\n<input type=\"hidden\" name=\"mark\" value=\"%s\">\n<input type=\"hidden\" name=\"passkey\" "
        "value=\"\">\n<output class=\"note\"></output>\n<button class=\"yes arm\">Add a "
        "passkey</button>\n</form>\n<noscript><p class=\"note\">A passkey needs JavaScript.</p></noscript>\n",
        mark);
}

void passkey_section(struct exchange *x)
{
    if (site(x).n == 0)
        return;
    PUT(x, "<section class=\"plain\" aria-labelledby=\"pk\">\n<h2 id=\"pk\">Passkeys</h2>\n<ul>\n");
    size_t n = each_own(x, list_own);
    PUT(x, "</ul>\n");
    if (n == 0)
        PUT(x, "<p>You have none. With one you sign in by a touch, and approve what wants one.</p>\n");
    if (x->session->code[0])
        add_form(x);
    else
        PUT(x, "<p>A link lets you add one: <code>countersign operator link</code> prints it.</p>\n");
    PUT(x, "</section>\n");
}

static void added(struct exchange *x, struct frame *f)
{
    struct span whose;

    if (!said_yes(x, f, &whose))
        return;
    guard_session_code(&x->desk->guard, x->session, SPAN_NONE);
    ask_note_operator(x, "passkey-added");
    page_see(x, "/me");
}

void page_me_passkey(struct exchange *x)
{
    struct span mark, said, part[2];

    x->arg = SPAN("me");
    if (form_field(x, "mark", &mark) != 0 || form_field(x, "passkey", &said) != 0 ||
        !page_mark_good(x, "passkey", SPAN_NONE, mark) || !take_parts(x, said, part, 2))
        return;
    struct dynbuf *b = ask_begin(x, ASK_KEEPER, M_PASSKEY_ADD, M_PASSKEY_SAID, added);
    if (!b)
        return;
    msg_put_span(b, span_str(x->operator));
    msg_put_span(b, span_str(x->session->code));
    msg_put_span(b, part[0]);
    msg_put_span(b, part[1]);
    ask_send(x);
}

/* --- over a request --------------------------------------------------------------------- */

void passkey_of_ticket(struct exchange *x, const struct ticket *t)
{
    struct digest facts;

    people_facts(t, &facts);
    put_attributes(x, &facts, true);
}

static void stepped_up(struct exchange *x, struct frame *f)
{
    void (**then)(struct exchange * x) = x->holds;
    struct span whose;

    if (said_yes(x, f, &whose))
        (*then)(x);
}

void passkey_step_up(struct exchange *x, const struct ticket *t, struct span said, void (*then)(struct exchange *x))
{
    void (**keep)(struct exchange * x) = arena_alloc(&x->arena, sizeof(then));
    struct digest facts;

    if (said.n == 0 || !x->who.person) {
        reply_problem(x, 422, "A passkey is needed",
                      "the rule that held this wants a passkey of yours with a yes; nothing was decided");
        return;
    }
    if (!keep) {
        reply_problem(x, 503, "Not possible now", "there is no memory for this");
        return;
    }
    *keep = then;
    x->holds = keep;
    people_facts(t, &facts);
    (void)ask_check(x, span_str(x->operator), &facts, said, &x->passkey, stepped_up);
}
