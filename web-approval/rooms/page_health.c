/* How the gateway is: its processes, its listeners, its policy, what waits. */
#include <stdio.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/broker/tally.h"
#include "web-approval/rooms/rooms.h"
#include "web-approval/rooms/told.h"
#include "web-approval/route.h"

static uint64_t number(const struct json *j, const char *name)
{
    const struct json *v = json_get(j, span_str(name));
    uint64_t n = 0;

    return v && span_u64(v->text, UINT64_MAX, &n) == 0 ? n : 0;
}

static bool truth(const struct json *j, const char *name)
{
    const struct json *v = json_get(j, span_str(name));

    return v && v->type == JSON_BOOL && v->truth;
}

static void moment(struct exchange *x, const struct json *j)
{
    uint64_t waiting = 0, oldest = 0;
    struct err e;
    struct freeze f;
    bool store =
        desk_store_pending(x->desk->store, &waiting, &e) == 0 && desk_store_oldest(x->desk->store, &oldest, &e) == 0;

    room_section(x, "now", "At this moment");
    PUT(x, "<dl class=\"pairs\">\n<dt>Store</dt><dd>");
    room_state(x, store, store ? "read" : "cannot be read");
    PUT(x, "</dd>\n<dt>Waiting</dt><dd>");
    show_count(&x->out, waiting, "request");
    if (waiting && oldest && x->wall_ms > oldest) {
        PUT(x, ", the oldest for ");
        show_span_of_time(&x->out, x->wall_ms - oldest);
    }
    uint64_t since, turns = broker_tally_waits(x->desk->tally, &since);
    if (turns) {
        PUT(x, "</dd>\n<dt>Turns</dt><dd>");
        room_state(x, false, "no process runs turns");
        PUT(x, " ");
        show_count(&x->out, turns, "turn");
        PUT(x, " waiting, the first for ");
        show_span_of_time(&x->out, x->wall_ms > since ? x->wall_ms - since : 0);
    }
    PUT(x, "</dd>\n<dt>Writes</dt><dd>");
    bool frozen = page_frozen(x, &f);
    room_state(x, !frozen, frozen ? "frozen" : "leave when they are decided");
    PUT(x, "</dd>\n");
    page_row(x, "Mode", json_text(j, SPAN("mode")));
    page_row(x, "Version", json_text(j, SPAN("version")));
    PUT(x, "<dt>Started</dt><dd>");
    show_time(&x->out, number(j, "started_ms"));
    PUT(x, "</dd>\n");
    page_row(x, "Policy", json_text(j, SPAN("policy_name")));
    page_row(x, "State", json_text(j, SPAN("state_dir")));
    PUT(x, "</dl>\n");
    if (json_text(j, SPAN("needs_restart")).n) {
        PUT(x, "<p class=\"note\">Needs a restart to count: ");
        show_cut(&x->out, json_text(j, SPAN("needs_restart")), ROOM_TEXT);
        PUT(x, "</p>\n");
    }
    room_section_end(x);
}

/* Of the broker's processes each does another part. */
static struct span role_of(struct exchange *x, const struct json *r)
{
    struct span role = json_text(r, SPAN("role")), does = json_text(r, SPAN("does"));
    char *text = does.n ? arena_alloc(&x->arena, role.n + does.n + 3) : NULL;
    int n = text ? snprintf(text, role.n + does.n + 3, "%.*s: %.*s", SPAN_FMT(role), SPAN_FMT(does)) : 0;

    return n > 0 ? span_of(text, (size_t)n) : role;
}

static void roles(struct exchange *x, const struct json *list)
{
    static const char *const heads[] = {"Process", "State", "Number", "Ended before its time"};

    room_section(x, "roles", "Processes");
    room_table(x, "Processes, a row each", heads, sizeof heads / sizeof heads[0]);
    for (const struct json *r = list ? list->child : NULL; r; r = r->next) {
        bool ready = truth(r, "ready");
        PUT(x, "<tr>");
        room_cell_text(x, NULL, role_of(x, r));
        room_cell(x, NULL);
        room_state(x, ready, ready ? "ready" : "starts");
        (void)dynbuf_addf(&x->out, "</td><td><span class=\"label narrow\">Number </span>%llu</td><td>",
                          (unsigned long long)number(r, "pid"));
        uint64_t fails = number(r, "fails");
        if (fails)
            show_count(&x->out, fails, "time");
        else
            PUT(x, "never");
        PUT(x, "</td></tr>\n");
    }
    room_table_end(x);
    room_section_end(x);
}

static void listeners(struct exchange *x, const struct json *list)
{
    static const char *const heads[] = {"Listener", "Way", "Address", "Whose sandbox"};

    room_section(x, "listeners", "Ways in");
    room_table(x, "Listeners", heads, sizeof heads / sizeof heads[0]);
    for (const struct json *l = list ? list->child : NULL; l; l = l->next) {
        PUT(x, "<tr>");
        room_cell_text(x, NULL, json_text(l, SPAN("name")));
        room_cell_text(x, "Way", json_text(l, SPAN("way")));
        PUT(x, "<td class=\"mono\">");
        show_cut(&x->out, json_text(l, SPAN("url")), ROOM_TEXT);
        PUT(x, "</td>");
        room_cell_text(x, "By", json_text(l, SPAN("identity")));
        PUT(x, "</tr>\n");
    }
    room_table_end(x);
    if (!list || !list->child)
        PUT(x, "<p class=\"hint\">None but those that <code>countersign run</code> makes for itself.</p>\n");
    room_section_end(x);
}

static void refused(struct exchange *x, const struct json *list)
{
    static const char *const heads[] = {"Listener", "Why", "How often"};

    if (!list || !list->child)
        return;
    room_section(x, "refused", "Refused at the door, since the start");
    room_table(x, "Refused", heads, sizeof heads / sizeof heads[0]);
    for (const struct json *r = list->child; r; r = r->next) {
        PUT(x, "<tr>");
        room_cell_text(x, NULL, json_text(r, SPAN("listener")));
        room_cell_text(x, "Why", json_text(r, SPAN("code")));
        (void)dynbuf_addf(&x->out, "<td>%llu</td></tr>\n", (unsigned long long)number(r, "count"));
    }
    room_table_end(x);
    room_section_end(x);
}

static void came(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct span text = msg_get_span(&m, CHAN_PAYLOAD_MAX);
    const struct json *j = msg_end(&m) == 0 ? json_parse(text, &x->arena) : NULL;

    room_begin(x, "health", "Health",
               "What runs, what it listens on, and what is in the way. <code>countersign doctor</code> "
               "looks further.");
    if (!j)
        PUT(x, "<p class=\"note\">The gateway's parent process did not answer: what stands here is what the page "
               "knows by "
               "itself.</p>\n");
    moment(x, j);
    told_section(x);
    if (j) {
        roles(x, json_get(j, SPAN("roles")));
        listeners(x, json_get(j, SPAN("listeners")));
        refused(x, json_get(j, SPAN("refused")));
    }
    page_end(x);
}

void page_health(struct exchange *x)
{
    if (ask_begin(x, ASK_PARENT, M_STATUS, M_STATUS, came))
        ask_send(x);
}
