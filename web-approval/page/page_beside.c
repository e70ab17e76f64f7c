/* A request beside others of its shape: the last one that was approved, and those that wait with it. */
#include <unistd.h>

#include "web-approval/page/page.h"

enum { DIFFERS_SHOWN = 40, DIFFERS_VALUE = 240, BESIDE_ALL = PAGE_BESIDE + 1 };

struct beside {
    struct view first;             /* the view itself: x->step is both */
    struct view other[BESIDE_ALL]; /* [0]: approved; the others wait */
    size_t n, asked;
    bool approved, unread; /* unread: the store could not be */
    void (*show)(struct exchange *x, struct view *v);
};

static bool has_digit(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] >= '0' && s.p[i] <= '9')
            return true;
    return false;
}

/* Of one shape: the same steps, but for those that have digits in both. */
bool page_path_like(struct span a, struct span b)
{
    struct span x, y;

    for (bool more = true; more;) {
        more = span_cut(a, '/', &x, &a);
        if (span_cut(b, '/', &y, &b) != more || (!span_eq(x, y) && !(has_digit(x) && has_digit(y))))
            return false;
    }
    return true;
}

static int found(struct beside *b, const struct ticket *t)
{
    if (page_path_like(t->path, b->first.t.path) && b->n < BESIDE_ALL) {
        struct view *v = &b->other[b->n++];
        *v = (struct view){.t = *t, .there = t->body_size == 0};
    }
    return 0;
}

static int found_approved(void *ctx, const struct ticket *t)
{
    struct beside *b = ctx;

    (void)found(b, t);
    b->approved = b->n > 0;
    return b->approved;
}

static int found_waiting(void *ctx, const struct ticket *t)
{
    return found(ctx, t);
}

/* All is here that will come: take apart what is, and show it. */
static void show_all(struct exchange *x, struct beside *b)
{
    static const char alone[] = "Of those like it that wait, this one alone has";
    struct reading *waits = arena_alloc(&x->arena, BESIDE_ALL * sizeof *waits);
    struct differs odd[READING_ALIKE];
    struct arena a;
    size_t n = 0;

    arena_init(&a, READING_ARENA);
    page_read(x, &b->first, &a);
    for (size_t i = 0; i < b->n; i++) {
        page_read(x, &b->other[i], &a);
        if (waits && i >= b->approved && b->other[i].there)
            waits[n++] = b->other[i].r;
    }
    size_t alone_n = waits ? reading_odd(waits, n, &b->first.r, odd, READING_ALIKE) : 0;
    for (size_t i = 0; i < alone_n; i++)
        reading_flag(&b->first.r, alone, odd[i].name,
                     odd[i].is.p ? odd[i].is : SPAN("nothing, where others have a value"));
    b->show(x, &b->first);
    arena_free(&a);
}

static void next_body(struct exchange *x);

static void body_came(struct exchange *x, struct frame *f)
{
    struct beside *b = x->step;
    struct view *v = &b->other[b->asked++];
    struct body body;

    if (api_body_read(f, &body) == 0) {
        struct span bytes = page_body_bytes(x, &body, PAGE_BESIDE_BODY);
        v->bytes = body.fd < 0 ? arena_copy(&x->arena, bytes) : bytes;
        v->there = v->bytes.n == v->t.body_size;
        if (body.fd >= 0)
            close(body.fd);
    }
    next_body(x);
}

static void next_body(struct exchange *x)
{
    struct beside *b = x->step;
    struct id id;

    while (b->asked < b->n && (b->other[b->asked].there || b->other[b->asked].t.body_size > PAGE_BESIDE_BODY ||
                               id_parse(b->other[b->asked].t.id, &id) != 0))
        b->asked++;
    if (b->asked == b->n || !b->first.there) {
        show_all(x, b);
        return;
    }
    api_body_ask(x, &id, body_came);
    if (x->status == 503) { /* the ledger is not there: the page still says what it knows */
        x->status = 0;
        show_all(x, b);
    }
}

void page_beside_find(struct exchange *x, struct view *v, void (*show)(struct exchange *x, struct view *v))
{
    struct beside *b = arena_alloc(&x->arena, sizeof *b);
    struct err e;

    if (!b) {
        page_problem(x, 503, "Not possible now", "There is no memory for this page.");
        return;
    }
    b->first = *v;
    b->show = show;
    x->step = b;
    b->unread =
        desk_store_like(x->desk->store, &b->first.t, false, PAGE_BESIDE, &x->arena, found_approved, b, &e) < 0 ||
        desk_store_like(x->desk->store, &b->first.t, true, PAGE_BESIDE, &x->arena, found_waiting, b, &e) < 0;
    next_body(x);
}

static void differs(struct exchange *x, const struct differs *d)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<div><dt>");
    show_cut(out, d->name.n ? d->name : SPAN("(all of it)"), 120);
    PUT(x, "</dt><dd>");
    if (d->was.p) {
        PUT(x, "<small>was</small> <del>");
        show_cut(out, d->was.n ? d->was : SPAN("empty"), DIFFERS_VALUE);
        PUT(x, "</del> ");
    }
    if (d->is.p) {
        show_own(out, d->was.p ? "now " : "");
        PUT(x, "<ins>");
        show_cut(out, d->is.n ? d->is : SPAN("empty"), DIFFERS_VALUE);
        PUT(x, "</ins>");
    }
    show_own(out, d->was.p ? d->is.p ? "" : "is not there any more" : " is new");
    PUT(x, "</dd></div>\n");
}

static void since_approved(struct exchange *x, const struct beside *b)
{
    struct differs list[DIFFERS_SHOWN];
    const struct view *was = &b->other[0];
    bool bodies = was->there && b->first.there;
    struct reading is = b->first.r;
    is.nsaid = bodies ? is.nsaid : 0;
    size_t n = reading_differs(&was->r, &is, list, DIFFERS_SHOWN);
    bool same = b->first.t.body_sha256.n && span_eq(was->t.body_sha256, b->first.t.body_sha256);

    PUT(x, "<p>The last one like it that was approved, ");
    show_time(&x->out, was->t.decided_ms);
    PUT(x, " by ");
    page_decider(x, &was->t, 60);
    show_own(&x->out, !bodies ? ". Its body is not compared: it is long, or no longer kept."
                      : n     ? "."
                      : same  ? ", said the same."
                              : ", said the same as far as it was taken apart, in other bytes.");
    if (n) {
        PUT(x, " What differs:</p>\n<dl class=\"fields mono\">\n");
        for (size_t i = 0; i < n && i < DIFFERS_SHOWN; i++)
            differs(x, &list[i]);
        PUT(x, "</dl>\n<p class=\"meta\">");
        show_count(&x->out, n, "difference");
        if (bodies && !same && !(was->r.whole && b->first.r.whole))
            PUT(x, ". Its body is not compared here: read it");
    }
    PUT(x, "</p>\n<p><a class=\"quiet\" href=\"/tickets/");
    show_text(&x->out, was->t.id);
    PUT(x, "\">Look at that one</a></p>\n");
}

void page_beside(struct exchange *x, const struct view *v)
{
    const struct beside *b = x->step;
    size_t waits = b->n - b->approved;

    PUT(x, "<section aria-labelledby=\"beside\">\n<h2 id=\"beside\">Beside others like it</h2>\n");
    if (b->unread)
        PUT(x, "<p class=\"note\">Whether there were any is not known: the store cannot be read now.</p>\n");
    else if (!b->approved)
        PUT(x, "<p>None like it was approved lately.</p>\n");
    else
        since_approved(x, b);
    if (waits && span_eq(v->t.state, SPAN("pending"))) {
        PUT(x, "<p>");
        (void)dynbuf_addf(&x->out, "%zu%s more like it wait%s from this sandbox.</p>\n", waits,
                          waits == PAGE_BESIDE ? " or" : "", waits == 1 ? "s" : "");
    }
    PUT(x, "</section>\n");
}
