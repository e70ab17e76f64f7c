/* Whose yes a ticket needs, whose it has, and who decided it. */
#include "proxy/wire_ticket.h"
#include "web-approval/people/people.h"

enum { SHOWN_HEX = 16 };

void people_facts(const struct ticket *t, struct digest *out)
{
    struct dynbuf query;
    struct wire_facts f = {.ticket = t->id,
                           .effect = t->effect,
                           .op = t->op,
                           .resource = t->resource,
                           .credential = t->credential,
                           .sandbox = t->sandbox,
                           .method = t->method,
                           .scheme = t->scheme,
                           .host = t->host,
                           .port = (uint16_t)t->port,
                           .path = t->path,
                           .summary = t->summary,
                           .facts_json = t->facts_json,
                           .agent_reason = t->agent_reason};

    dynbuf_init(&query, 8 * HTTP_TARGET_MAX);
    if (t->has_query)
        (void)dynbuf_addf(&query, "?%.*s", SPAN_FMT(t->query));
    f.query = dynbuf_span(&query);
    if (t->digest.n == DIGEST_BYTES)
        memcpy(f.digest.b, t->digest.p, DIGEST_BYTES);
    wire_facts_digest(&f, out);
    dynbuf_free(&query);
}

/* With what somebody had signed in, in words. */
static const char *how_words(struct span how)
{
    return span_eq(how, SPAN("passkey"))    ? "signed in with a passkey"
           : span_eq(how, SPAN("password")) ? "signed in with a password"
           : span_eq(how, SPAN("link"))     ? "signed in with a link"
           : span_eq(how, SPAN("slack"))    ? "known by their id in Slack"
           : span_eq(how, SPAN("oidc"))     ? "signed in through the organisation's provider"
           : span_eq(how, SPAN("socket"))   ? "at the gateway's machine"
                                            : NULL;
}

static void put_vote(struct exchange *x, const struct vote_row *v)
{
    show_cut(&x->out, v->operator, 80);
    if (v->instead_of.n) {
        PUT(x, " for ");
        show_cut(&x->out, v->instead_of, 80);
    }
    if (how_words(v->how)) {
        PUT(x, ", ");
        show_own(&x->out, how_words(v->how));
    }
    if (v->passkey)
        PUT(x, ", and with their passkey over this very request");
    PUT(x, ", ");
    show_time(&x->out, v->at_ms);
}

struct votes {
    struct exchange *x;
    uint64_t n;
};

static int agreed_row(void *ctx, const struct vote_row *v)
{
    struct votes *w = ctx;

    if (!span_eq(v->state, SPAN("approved")))
        return 0;
    w->n++;
    PUT(w->x, "<dt>Agreed</dt><dd>");
    put_vote(w->x, v);
    if (v->reason.n) {
        PUT(w->x, ": ");
        show_cut(&w->x->out, v->reason, 300);
    }
    PUT(w->x, "</dd>\n");
    return 0;
}

static void people_agreed(struct exchange *x, const struct ticket *t)
{
    struct votes w = {x, 0};
    struct err e;

    if (t->step_up)
        PUT(x, "<dt>A yes needs</dt><dd>a passkey, used for this very request</dd>\n");
    if (t->quorum < 2)
        return;
    (void)dynbuf_addf(&x->out, "<dt>Needs</dt><dd>%llu different people</dd>\n", (unsigned long long)t->quorum);
    if (desk_store_votes(x->desk->store, t->id, &x->arena, agreed_row, &w, &e) != 0)
        PUT(x, "<dt>Agreed</dt><dd>cannot be looked up now</dd>\n");
    else if (w.n == 0)
        PUT(x, "<dt>Agreed</dt><dd>nobody yet</dd>\n");
}

/* What was not asked before the ticket ended is not asked any more. */
static const char *gate_words(struct span state, bool pending)
{
    return span_eq(state, SPAN("agreed"))      ? "has nothing against it"
           : span_eq(state, SPAN("denied"))    ? "denied it"
           : span_eq(state, SPAN("abstained")) ? "leaves it to you"
           : span_eq(state, SPAN("failed")) ? (pending ? "did not answer: you decide without it" : "did not answer")
           : pending                        ? "is being asked; nobody can approve before it has answered"
           : span_eq(state, SPAN("asked"))  ? "had not answered when this ended"
                                            : "was not asked before this ended";
}

struct gates {
    struct exchange *x;
    bool pending;
};

static int gate_row(void *ctx, const struct gate_row *g)
{
    struct gates *all = ctx;
    struct exchange *x = all->x;

    PUT(x, "<dt>Gate ");
    show_cut(&x->out, g->name, 80);
    PUT(x, "</dt><dd>");
    show_own(&x->out, gate_words(g->state, all->pending));
    if (g->words.n && span_eq(g->state, SPAN("failed"))) {
        show_own(&x->out, ". Why: ");
        show_cut(&x->out, g->words, 500);
    } else if (g->words.n) {
        PUT(x, ". It says: <q>");
        show_cut(&x->out, g->words, 500);
        PUT(x, "</q> <small>untrusted: it read what the sandbox wrote</small>");
    }
    PUT(x, "</dd>\n");
    return 0;
}

void people_needed(struct exchange *x, const struct ticket *t)
{
    struct gates all = {x, span_eq(t->state, SPAN("pending"))};
    struct err g;

    if (t->gates > 0 && desk_store_gates(x->desk->store, t->id, &x->arena, gate_row, &all, &g) != 0)
        PUT(x, "<dt>Gates</dt><dd>cannot be looked up now</dd>\n");
    people_agreed(x, t);
}

static int decided_row(void *ctx, const struct vote_row *v)
{
    struct votes *w = ctx;
    char hex[2 * DIGEST_BYTES + 1] = "";

    PUT(w->x, "<dt>");
    show_own(&w->x->out, span_eq(v->state, SPAN("approved")) ? "Yes" : "No");
    PUT(w->x, "</dt><dd>");
    put_vote(w->x, v);
    if (v->facts.n == DIGEST_BYTES) {
        hex_text(v->facts, hex);
        (void)dynbuf_addf(&w->x->out, "; was shown <span class=\"mono\" title=\"%s\">%.*s</span>", hex, SHOWN_HEX,
                          hex);
    }
    PUT(w->x, "</dd>\n");
    return 0;
}

void people_decided(struct exchange *x, const struct ticket *t)
{
    struct votes w = {x, 0};
    struct err e;

    if (desk_store_votes(x->desk->store, t->id, &x->arena, decided_row, &w, &e) != 0)
        PUT(x, "<dt>How</dt><dd>cannot be looked up now</dd>\n");
}
