/* The sandboxes that there are, and one of them: what it waits for, holds and lately asked. */
#include "web-approval/rooms/rooms.h"
#include "web-approval/route.h"

enum { BOXES_SHOWN = 300, LATELY = 20, LEASES_SHOWN = 50 };

struct boxes {
    struct exchange *x;
    size_t n;
};

static void box_link(struct exchange *x, struct span name)
{
    PUT(x, "<a class=\"mono\" href=\"/sandboxes?name=");
    show_encoded(&x->out, name);
    PUT(x, "\">");
    show_cut(&x->out, name, ROOM_NAME);
    PUT(x, "</a>");
}

static int box_row(void *ctx, const struct sandbox_row *r)
{
    struct boxes *b = ctx;
    struct exchange *x = b->x;

    if (b->n++ >= BOXES_SHOWN)
        return 0;
    PUT(x, "<tr><td>");
    box_link(x, r->name);
    PUT(x, "</td>");
    room_cell(x, "Waiting");
    if (r->pending)
        (void)dynbuf_addf(&x->out, "<b>%llu</b>", (unsigned long long)r->pending);
    else
        PUT(x, "none");
    PUT(x, "</td>");
    room_cell_text(x, "Owner", r->owner);
    room_cell_text(x, "Tenant", r->tenant);
    room_cell_text(x, "Kind", r->kind);
    room_cell(x, "Since");
    show_time(&x->out, r->created_ms);
    PUT(x, "</td></tr>\n");
    return 0;
}

static void all(struct exchange *x)
{
    static const char *const heads[] = {"Name", "Waiting", "Owner", "Tenant", "Kind", "Since"};
    struct boxes b = {x, 0};
    struct err e;

    room_begin(x, "sandboxes", "Sandboxes",
               "Whose requests this gateway knows by name, and what each of them waits for.");
    size_t before = x->out.n; /* without a row there is no table */
    room_section(x, "boxes", "All of them");
    room_table(x, "Sandboxes", heads, sizeof heads / sizeof heads[0]);
    int rc = desk_store_sandboxes(x->desk->store, &x->arena, box_row, &b, &e);
    room_table_end(x);
    if (b.n > BOXES_SHOWN)
        (void)dynbuf_addf(&x->out, "<p class=\"note\">And %zu more: <code>countersign sandbox list</code>.</p>\n",
                          b.n - BOXES_SHOWN);
    room_section_end(x);
    if (b.n == 0) {
        x->out.n = before;
        room_empty(
            x, "There is no sandbox yet.",
            "<code>countersign run -- COMMAND</code> makes one for a command; <code>countersign sandbox create "
            "NAME</code> gives a token and the variables for one that you have.");
    }
    page_end(x);
    if (rc != 0)
        reply_unable(x, &e);
}

/* --- one of them ------------------------------------------------------------------------ */

static void labels(struct exchange *x, struct span text)
{
    const struct json *list = json_parse(text, &x->arena);

    if (!list || !list->child)
        return;
    PUT(x, "<dt>Labels</dt><dd class=\"mono\">");
    for (const struct json *l = list->child; l; l = l->next) {
        show_cut(&x->out, l->key, ROOM_NAME);
        PUT(x, "=");
        show_cut(&x->out, l->text, ROOM_NAME);
        PUT(x, " ");
    }
    PUT(x, "</dd>\n");
}

static void about(struct exchange *x, const struct sandbox_row *r)
{
    room_section(x, "who", "What it is");
    PUT(x, "<dl class=\"pairs\">\n");
    page_row(x, "Owner", r->owner);
    page_row(x, "Tenant", r->tenant);
    page_row(x, "Session", r->session);
    page_row(x, "Kind", r->kind);
    (void)dynbuf_addf(&x->out, "<dt>Token</dt><dd>%s</dd>\n<dt>Generation</dt><dd>%llu</dd>\n",
                      r->has_token ? "it has one" : "none", (unsigned long long)r->generation);
    labels(x, r->labels_json);
    PUT(x, "<dt>Since</dt><dd>");
    show_time(&x->out, r->created_ms);
    PUT(x, "</dd>\n</dl>\n");
    room_section_end(x);
}

struct asked_rows {
    struct exchange *x;
    struct span name;
    size_t n;
};

static int asked_row(void *ctx, const struct ticket *t)
{
    struct asked_rows *a = ctx;
    struct exchange *x = a->x;

    if (!span_eq(t->sandbox, a->name)) /* a search finds parts of names, too */
        return 0;
    a->n++;
    PUT(x, "<tr><td><a href=\"/tickets/");
    show_text(&x->out, t->id);
    PUT(x, "\">");
    page_summary(x, t, 160);
    PUT(x, "</a></td>");
    room_cell(x, NULL);
    page_badge(&x->out, t->effect);
    PUT(x, "</td>");
    room_cell(x, NULL);
    page_state(&x->out, t->state);
    PUT(x, "</td>");
    room_cell(x, "Asked");
    show_time(&x->out, t->created_ms);
    PUT(x, "</td></tr>\n");
    return 0;
}

static int asked(struct exchange *x, struct span name, struct err *e)
{
    static const char *const heads[] = {"Request", "Effect", "State", "Asked"};
    const struct history_filter f = {.sandbox = name, .limit = LATELY};
    struct asked_rows rows = {x, name, 0};
    struct span further;

    room_section(x, "asked", "What it asked for");
    room_table(x, "Requests", heads, sizeof heads / sizeof heads[0]);
    int rc = desk_store_history(x->desk->store, &f, &x->arena, asked_row, &rows, &further, e);
    room_table_end(x);
    if (rows.n == 0)
        PUT(x, "<p class=\"hint\">Nothing that was held, of late.</p>\n");
    PUT(x, "<p><a class=\"quiet\" href=\"/history?sandbox=");
    show_encoded(&x->out, name);
    PUT(x, "\">All of it</a></p>\n");
    room_section_end(x);
    return rc;
}

static void one(struct exchange *x, struct span name)
{
    struct sandbox_row r;
    struct err e;
    int found = desk_store_sandbox(x->desk->store, name, &x->arena, &r, &e);

    if (found < 0) {
        reply_unable(x, &e);
        return;
    }
    page_begin(x, 200, "sandboxes", "A sandbox");
    PUT(x,
        "<p class=\"back\"><a href=\"/sandboxes\">All sandboxes</a></p>\n<div class=\"title\">\n<h1 class=\"name\">");
    show_cut(&x->out, name, ROOM_NAME);
    PUT(x, "</h1>\n</div>\n");
    if (found == 0)
        PUT(x, "<p class=\"note\">There is none of this name now. What it asked for is kept.</p>\n");
    int rc = asked(x, name, &e);
    if (found)
        about(x, &r);
    if (rc == 0 && found) {
        room_section(x, "leases", "Its leases");
        rc = room_leases(x, name, LEASES_SHOWN, &e);
        room_section_end(x);
    }
    page_end(x);
    if (rc != 0)
        reply_unable(x, &e);
}

void page_sandboxes(struct exchange *x)
{
    struct span name;

    if (query_field(x, "name", &name) != 0)
        return;
    if (name.n)
        one(x, name);
    else
        all(x);
}
