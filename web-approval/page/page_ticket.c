/* One ticket: what it is, who asks, why it was held, the request, the decision. */
#include <unistd.h>

#include "common/memfd.h"
#include "policy/policy.h"
#include "web-approval/deciding/deciding.h"
#include "web-approval/diffs/diffs.h"
#include "web-approval/image.h"
#include "web-approval/people/people.h"
#include "web-approval/pictures/pictures.h"
#include "web-approval/route.h"

/* What goes out with it, in a few words. */
static void sends(struct exchange *x, const struct view *v)
{
    if (v->t.body_size == 0)
        return;
    PUT(x, " <span>sends ");
    if (v->r.kind) {
        show_own(&x->out, v->r.kind);
        PUT(x, " with ");
        show_count(&x->out, v->r.values, "value");
        PUT(x, ", ");
    }
    if (reading_pictures(&v->r)) {
        show_count(&x->out, reading_pictures(&v->r), "picture");
        PUT(x, ", ");
    }
    show_size(&x->out, v->t.body_size);
    PUT(x, "</span>");
}

static void head(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;
    struct dynbuf *out = &x->out;

    PUT(x, "<p class=\"back\"><a href=\"/\">All that waits</a></p>\n<div id=\"ticket\" class=\"title");
    show_own(out, deciding_is_grave(t) ? " grave" : "");
    PUT(x, "\" data-ticket=\"");
    show_text(out, t->id);
    PUT(x, "\" data-state=\"");
    show_text(out, t->state);
    PUT(x, "\">\n");
    page_asker(x, t);
    PUT(x, "<p class=\"kind\">");
    page_badge(out, t->effect);
    PUT(x, " ");
    page_state(out, t->state);
    PUT(x, "</p>\n<h1>");
    page_summary(x, t, 400);
    PUT(x, "</h1>\n<p class=\"meta\"><span>asked by <b>");
    show_cut(out, t->sandbox, 80);
    PUT(x, "</b></span> <span>held");
    if (t->rule_id.n) {
        PUT(x, " by <b>");
        show_cut(out, t->rule_id, 80);
        PUT(x, "</b>");
    }
    if (page_unusual(t)) {
        show_own(out, t->rule_id.n ? ", " : ": ");
        show_own(out, page_unusual(t));
    }
    PUT(x, "</span>");
    sends(x, v);
    if (span_eq(t->state, SPAN("pending"))) {
        PUT(x, " ");
        page_expires(x, t, "");
    }
    PUT(x, "</p>\n");
    if (span_eq(t->state, SPAN("pending")))
        people_looking(x, t);
    PUT(x, "</div>\n");
}

/* The judge's first fact of what is past a limit says which. */
static struct span which_limit(const struct json *facts, const struct ticket *t)
{
    const struct json *first = facts && facts->type == JSON_ARRAY ? facts->child : NULL;

    if (!first || !span_eq(t->code, SPAN("over-limit")) || !span_eq(json_text(first, SPAN("label")), SPAN("Limit")))
        return SPAN_NONE;
    return json_text(first, SPAN("value"));
}

/* The pack's facts: a push as its refs, an API call as its parameters. */
static void facts(struct exchange *x, const struct ticket *t)
{
    const struct json *list = json_parse(t->facts_json, &x->arena);

    size_t skip = which_limit(list, t).n ? 1 : 0;

    if (!list || list->type != JSON_ARRAY || list->count <= skip)
        return;
    PUT(x, "<section aria-labelledby=\"does\">\n<h2 id=\"does\">What it does</h2>\n<dl class=\"facts\">\n");
    for (const struct json *f = skip ? list->child->next : list->child; f; f = f->next) {
        PUT(x, "<div><dt>");
        show_text(&x->out, json_text(f, SPAN("label")));
        PUT(x, "</dt><dd class=\"mono\">");
        show_text(&x->out, json_text(f, SPAN("value")));
        PUT(x, "</dd></div>\n");
    }
    PUT(x, "</dl>\n</section>\n");
}

static void agent(struct exchange *x, const struct ticket *t)
{
    if (t->agent_reason.n == 0)
        return;
    PUT(x, "<section class=\"agent\" aria-labelledby=\"says\">\n<h2 id=\"says\">The agent says <small>untrusted: "
           "written by whoever asks</small></h2>\n<blockquote class=\"mono\">");
    show_text(&x->out, t->agent_reason);
    PUT(x, "</blockquote>\n</section>\n");
}

bool page_released(struct exchange *x, const struct ticket *t)
{
    struct desk *d = x->desk;
    struct credential c;
    int i = image_credential(d, t->credential);

    return i >= 0 && policy_credential(d->policy, (size_t)i, &c) &&
           policy_credential_may_go(d->policy, (size_t)i, t->scheme, t->host, (uint16_t)t->port, t->path);
}

static void credential(struct exchange *x, const struct ticket *t)
{
    struct desk *d = x->desk;
    struct credential c;
    int i = image_credential(d, t->credential);

    PUT(x, "<dt>Credential</dt><dd>");
    if (t->credential.n == 0 || t->ended_ms) {
        t->credential.n ? show_text(&x->out, t->credential) : show_own(&x->out, "none: it leaves without one");
        PUT(x, "</dd>\n");
        return;
    }
    PUT(x, "<b>");
    show_text(&x->out, t->credential);
    PUT(x, "</b>");
    if (i >= 0 && policy_credential(d->policy, (size_t)i, &c)) {
        if (c.certificate) {
            PUT(x, ", shown as a client certificate after a yes. ");
        } else {
            PUT(x, ", put into <span class=\"mono\">");
            show_text(&x->out, c.basic || c.basic_user.n || c.header.n == 0 ? SPAN("Authorization") : c.header);
            PUT(x, "</span> after a yes. ");
        }
        if (page_released(x, t))
            PUT(x, "Its <span class=\"mono\">only:</span> list names this place.");
        else
            PUT(x,
                "<strong class=\"warn\">Its only: list does not name this place: it will not be released.</strong>");
    } else if (d->policy == NULL) {
        PUT(x, ". Whether it will be released is not known: this page has no policy.");
    } else {
        PUT(x, ". <strong class=\"warn\">The policy in force does not know it: it will not be released.</strong>");
    }
    PUT(x, "</dd>\n");
}

static void times(struct exchange *x, const struct ticket *t)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<dt>Asked</dt><dd>");
    show_time(out, t->created_ms);
    if (t->repeats) {
        PUT(x, ", again ");
        show_count(out, t->repeats, "time");
    }
    PUT(x, "</dd>\n<dt>Expires</dt><dd>");
    show_time(out, t->expires_ms);
    if (span_eq(t->state, SPAN("pending"))) {
        PUT(x, " ");
        page_expires(x, t, "class=\"count\" ");
    }
    PUT(x, "</dd>\n");
}

static void held_by(struct exchange *x, const struct ticket *t)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<dt>Held by</dt><dd>");
    if (t->rule_id.n) {
        show_text(out, t->rule_id);
        if (t->rule_file.n) {
            PUT(x, " <span class=\"mono\">");
            show_text(out, t->rule_file);
            (void)dynbuf_addf(out, ":%llu</span>", (unsigned long long)t->rule_line);
        }
    } else if (!span_eq(t->code, SPAN("learning"))) {
        show_text(out, t->code);
    }
    if (span_eq(t->code, SPAN("learning"))) {
        show_own(out, t->rule_id.n ? ": " : "No rule: ");
        PUT(x, "what no rule fits waits while the policy is learning, and would be denied otherwise.");
    } else if (span_eq(t->code, SPAN("over-limit"))) {
        struct span limit = which_limit(json_parse(t->facts_json, &x->arena), t);
        PUT(x, ": what another rule allows is past its limit");
        if (limit.n) {
            PUT(x, ". ");
            show_text(out, limit);
        }
        PUT(x, ".");
    }
    PUT(x, "</dd>\n");
}

static void about(struct exchange *x, const struct ticket *t)
{
    struct dynbuf *out = &x->out;
    char digest[2 * DIGEST_BYTES + 1] = "";

    PUT(x, "<aside aria-labelledby=\"about\">\n<h2 id=\"about\">Who asked, and why it was held</h2>\n<dl "
           "class=\"about pairs\">\n");
    page_row(x, "Sandbox", t->sandbox);
    if (!span_eq(t->session, t->sandbox))
        page_row(x, "Session", t->session);
    PUT(x, "<dt>Destination</dt><dd>");
    show_host(out, t->host);
    PUT(x, "</dd>\n");
    held_by(x, t);
    if (t->op.n)
        page_row(x, "Operation", t->op);
    if (t->resource.n)
        page_row(x, "On", t->resource);
    credential(x, t);
    if (t->approve_by.n)
        page_row(x, "May be approved by", t->approve_by);
    people_asked(x, t);
    people_needed(x, t);
    times(x, t);
    if (t->digest.n == DIGEST_BYTES)
        hex_text(t->digest, digest);
    (void)dynbuf_addf(out, "<dt>Digest <small>of what a yes covers</small></dt><dd class=\"mono\">%s</dd>\n", digest);
    PUT(x, "<dt>Ticket</dt><dd class=\"mono\">");
    show_text(out, t->id);
    PUT(x, "</dd>\n</dl>\n</aside>\n");
}

static void whole_ticket(struct exchange *x, struct view *v)
{
    const struct ticket *t = &v->t;
    bool waits = span_eq(t->state, SPAN("pending"));

    page_begin(x, 200, "ticket", "A request");
    PUT(x, "<div class=\"ticket\">\n");
    if (!waits)
        page_decision(x, v); /* what became of it comes first */
    PUT(x, "<div class=\"what\">\n");
    head(x, v);
    page_flags(x, &v->r);
    facts(x, t);
    page_diff(x, v);
    page_beside(x, v);
    page_request(x, v);
    about(x, t);
    agent(x, t); /* behind all that is known */
    PUT(x, "</div>\n");
    if (waits)
        page_decision(x, v);
    PUT(x, "</div>\n");
    page_end(x);
}

bool page_take_body(struct exchange *x, struct frame *f, struct view *v)
{
    struct body b;

    v->there = v->t.body_size == 0;
    if (api_body_read(f, &b) == 0) {
        struct span bytes = page_body_bytes(x, &b, PAGE_BODY_WHOLE);
        v->bytes = b.fd < 0 ? arena_copy(&x->arena, bytes) : bytes;
        v->there = v->bytes.n == bytes.n && (v->bytes.n == b.size || v->bytes.n == PAGE_BODY_WHOLE);
        if (b.fd >= 0 && b.size > PAGE_BODY_WHOLE && x->mapped.p == NULL && memfd_map(b.fd, b.size, &x->mapped) == 0)
            v->all = x->mapped;
        if (b.fd >= 0)
            close(b.fd);
    }
    return v->there;
}

static void looked(struct exchange *x, struct view *v)
{
    page_beside_find(x, v, whole_ticket);
}

static void body_came(struct exchange *x, struct frame *f)
{
    (void)page_take_body(x, f, x->step);
    pictures_see(x, x->step, PICTURES_ALL, looked);
}

/* Read the row, then ask for the body if there is one. */
static void with_body(struct exchange *x, ask_fn *fn)
{
    struct view *v = arena_alloc(&x->arena, sizeof(*v));
    struct id id;

    if (!v || api_ticket_find(x, &v->t) != 0 || id_parse(x->arg, &id) != 0)
        return;
    x->step = v;
    if (v->t.body_size == 0) {
        fn(x, NULL);
        return;
    }
    api_body_ask(x, &id, fn);
    /* Without the ledger the page still says what it knows; nothing can be decided on it then. */
    if (x->status == 503)
        fn(x, NULL);
}

void page_ticket(struct exchange *x)
{
    with_body(x, body_came);
}

static void whole_body(struct exchange *x, struct view *v)
{
    const struct ticket *t = &v->t;
    struct arena a;

    arena_init(&a, READING_ARENA);
    page_read(x, v, &a);
    page_begin(x, 200, "ticket", "A whole body");
    PUT(x, "<div class=\"ticket\">\n<div class=\"what\">\n");
    head(x, v);
    page_flags(x, &v->r);
    page_diff(x, v);
    PUT(x, "<section aria-labelledby=\"all\">\n<h2 id=\"all\">The whole body</h2>\n<p class=\"meta\">");
    show_size(&x->out, t->body_size);
    PUT(x, "</p>\n");
    if (v->bytes.n < t->body_size && !v->r.is_picture) {
        PUT(x, "<p class=\"note\">It is too long for a page: the first ");
        show_size(&x->out, v->bytes.n);
        PUT(x, " stand here. Download the rest before you decide.</p>\n");
    }
    page_pictures(x, v);
    page_values(x, &v->r);
    if (!v->r.is_picture)
        page_body_text(x, v->r.opened ? v->r.text : v->bytes);
    PUT(x, "<p><a class=\"quiet\" download href=\"/tickets/");
    show_text(&x->out, t->id);
    PUT(x, "/body\">Download the exact bytes</a></p>\n</section>\n</div>\n");
    page_decision_whole(x, v);
    PUT(x, "</div>\n");
    page_end(x);
    arena_free(&a);
}

static void whole_came(struct exchange *x, struct frame *f)
{
    struct view *v = x->step;

    if (page_take_body(x, f, v) && v->t.body_size > 0)
        pictures_see(x, v, PICTURES_ALL, whole_body);
    else
        page_problem(x, 410, "Not to be had",
                     "The body of this request is no longer kept, or the ledger does not answer.");
}

/* One of its pictures, by its number there. */
static void picture_came(struct exchange *x, struct frame *f)
{
    struct view *v = x->step;
    struct span which;
    uint64_t n;

    if (query_field(x, "n", &which) != 0)
        return;
    if (page_take_body(x, f, v) && span_u64(which, READING_PICTURES - 1, &n) == 0)
        pictures_see(x, v, (size_t)n, pictures_give);
    else
        page_problem(x, 404, "Not found", "There is no such picture, or its request is no longer kept.");
}

void page_picture(struct exchange *x)
{
    with_body(x, picture_came);
}

void page_ticket_whole(struct exchange *x)
{
    with_body(x, whole_came);
}
