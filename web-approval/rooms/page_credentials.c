/* The credentials that the policy names, how far each reaches, and the leases that stand for them. Never a value. */
#include "policy/policy.h"
#include "web-approval/rooms/rooms.h"
#include "web-approval/route.h"

enum { LEASES_SHOWN = 200, PLACES_SHOWN = 8, LEASE_ID = 12 };

static void places(struct exchange *x, size_t i)
{
    struct credential_place at;
    size_t n = 0;

    for (; policy_credential_place(x->desk->policy, i, n, &at); n++) {
        if (n >= PLACES_SHOWN)
            continue;
        PUT(x, "<div class=\"mono\">");
        show_text(&x->out, at.scheme);
        PUT(x, "://");
        show_text(&x->out, at.host);
        if (at.port != (span_eq(at.scheme, SPAN("https")) ? 443 : 80))
            (void)dynbuf_addf(&x->out, ":%u", at.port);
        show_cut(&x->out, at.path.n ? at.path : SPAN("/**"), ROOM_TEXT);
        PUT(x, "</div>");
    }
    if (n > PLACES_SHOWN)
        (void)dynbuf_addf(&x->out, "<div>and %zu more</div>", n - PLACES_SHOWN);
}

static bool kept_here(const struct credential *c)
{
    return c->source == SOURCE_STORE;
}

static void source(struct exchange *x, const struct credential *c)
{
    room_cell(x, "From");
    show_own(&x->out, policy_source_name(c->source));
    if (kept_here(c)) {
        PUT(x, " ");
        bool there = api_secret_present(x->desk, c->source_arg);
        room_state(x, there, there ? "set" : "not set");
    }
    PUT(x, "</td>");
}

static void credential(struct exchange *x, size_t i, const struct credential *c)
{
    PUT(x, "<tr>");
    room_cell_text(x, NULL, c->name);
    source(x, c);
    room_cell(x, "Put into");
    if (c->certificate)
        PUT(x, "the TLS handshake");
    else if (c->sign != SIGN_NONE)
        PUT(x, "a signature over the request");
    else
        show_cut(&x->out, c->header.n ? c->header : c->where.n ? c->where : SPAN("Authorization"), ROOM_NAME);
    PUT(x, "</td>");
    room_cell(x, "Goes to");
    places(x, i);
    PUT(x, "</td>");
    room_cell(x, "Leases");
    show_own(&x->out, c->lease == LEASE_NONE ? "none" : c->require_lease ? "required" : "given");
    PUT(x, "</td></tr>\n");
}

static void credentials(struct exchange *x)
{
    static const char *const heads[] = {"Name", "From", "Put into", "Goes to", "Leases"};
    const struct desk *d = x->desk;
    struct credential c;

    if (!d->policy || policy_credentials(d->policy) == 0) {
        room_empty(x, d->policy ? "The policy names no credential." : "The policy is not loaded yet.",
                   "A credential is named under <code>credentials:</code>, with where it may go, and set with "
                   "<code>countersign secret set NAME</code>. It never enters a sandbox.");
        return;
    }
    room_section(x, "named", "Named by the policy");
    room_table(x, "Credentials", heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; policy_credential(d->policy, i, &c); i++)
        credential(x, i, &c);
    room_table_end(x);
    room_section_end(x);
}

struct leases {
    struct exchange *x;
    size_t n, max;
};

static int lease_row(void *ctx, const struct lease_row *r)
{
    struct leases *l = ctx;
    struct exchange *x = l->x;
    bool live = span_eq(r->state, SPAN("live")) && (!r->expires_ms || r->expires_ms > x->wall_ms);

    if (l->n++ >= l->max)
        return 0;
    PUT(x, "<tr><td class=\"mono\">");
    show_cut(&x->out, span_first(r->id, r->id.n < LEASE_ID ? r->id.n : LEASE_ID), LEASE_ID);
    PUT(x, "</td>");
    room_cell_text(x, "For", r->credential);
    room_cell_text(x, "Sandbox", r->sandbox);
    room_cell(x, NULL);
    room_state(x, live, live ? "good" : "over");
    PUT(x, "</td>");
    room_cell(x, "Until");
    if (r->expires_ms)
        show_time(&x->out, r->expires_ms);
    else
        PUT(x, "its sandbox ends");
    PUT(x, "</td></tr>\n");
    return 0;
}

int room_leases(struct exchange *x, struct span sandbox, size_t max, struct err *e)
{
    static const char *const heads[] = {"Lease", "For", "Sandbox", "State", "Until"};
    struct leases l = {x, 0, max};

    room_table(x, "Leases, a row each", heads, sizeof heads / sizeof heads[0]);
    int rc = desk_store_leases(x->desk->store, sandbox, SPAN_NONE, &x->arena, lease_row, &l, e);
    room_table_end(x);
    if (l.n == 0)
        PUT(x, "<p class=\"hint\">None. A lease is what a sandbox may hold in place of a credential: of no worth "
               "elsewhere. <code>run --with NAME</code> gives one.</p>\n");
    if (l.n > max)
        (void)dynbuf_addf(&x->out,
                          "<p class=\"note\">The newest %zu of %zu: <code>countersign lease list</code> has "
                          "the others.</p>\n",
                          max, l.n);
    return rc;
}

void page_credentials(struct exchange *x)
{
    struct err e;

    room_begin(
        x, "credentials", "Credentials and leases",
        "What the gateway adds to a request once it is decided, and where each may go. No value is shown anywhere.");
    credentials(x);
    room_section(x, "leases", "Leases");
    int rc = room_leases(x, SPAN_NONE, LEASES_SHOWN, &e);
    room_section_end(x);
    page_end(x);
    if (rc != 0)
        reply_unable(x, &e);
}
