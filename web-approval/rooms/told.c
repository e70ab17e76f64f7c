#include "web-approval/rooms/told.h"

#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/rooms/rooms.h"
#include "web-approval/route.h"

enum { WHY_MAX = 512 };

/* The setting is "NAME KIND\n" each, or "NAME KIND signing\n". */
static bool line_of(const struct exchange *x, size_t i, struct span *name, struct span *kind, struct span *more)
{
    struct span rest = span_str(x->desk->notify), line;

    while (rest.n > 0) {
        (void)span_cut(rest, '\n', &line, &rest);
        if (i-- > 0)
            continue;
        if (!span_cut(line, ' ', name, &line))
            return false;
        *more = SPAN_NONE;
        *kind = line;
        (void)span_cut(line, ' ', kind, more);
        return true;
    }
    return false;
}

bool told_target(const struct exchange *x, size_t i, struct span *name, struct span *kind)
{
    struct span more;

    return line_of(x, i, name, kind, &more);
}

bool told_signs(const struct exchange *x, struct span asked)
{
    struct span name, kind, more;

    for (size_t i = 0; line_of(x, i, &name, &kind, &more); i++)
        if (span_eq(name, asked))
            return span_eq(more, SPAN("signing"));
    return false;
}

static bool is_target(const struct exchange *x, struct span asked)
{
    struct span name, kind;

    for (size_t i = 0; told_target(x, i, &name, &kind); i++)
        if (span_eq(name, asked))
            return true;
    return false;
}

void told_section(struct exchange *x)
{
    static const char *const heads[] = {"Name", "Way", "State", "Last answer"};
    struct span name, kind;
    struct told_row r;
    struct err e;

    if (!told_target(x, 0, &name, &kind))
        return;
    room_section(x, "told", "Told outside the page");
    room_table(x, "Who is told", heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; told_target(x, i, &name, &kind); i++) {
        bool read = desk_store_told(x->desk->store, name, &x->arena, &r, &e) == 0;
        PUT(x, "<tr>");
        room_cell_text(x, NULL, name);
        room_cell_text(x, "Way", kind);
        room_cell(x, "State");
        if (!read) {
            room_state(x, false, "cannot be read");
        } else {
            room_state(x, r.given_up == 0, r.given_up ? "not told" : r.waiting ? "waits" : "told");
            (void)dynbuf_addf(&x->out, " %llu wait, %llu given up in a week", (unsigned long long)r.waiting,
                              (unsigned long long)r.given_up);
        }
        PUT(x, "</td>");
        room_cell_text(x, "Last answer", read ? r.words : SPAN_NONE);
        PUT(x, "</tr>\n");
    }
    room_table_end(x);
    room_section_end(x);
}

void api_told(struct exchange *x)
{
    struct span name, kind;
    struct told_row r;
    struct jsonw w;
    struct err e;
    int rc = 0;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "targets");
    for (size_t i = 0; rc == 0 && told_target(x, i, &name, &kind); i++) {
        rc = desk_store_told(x->desk->store, name, &x->arena, &r, &e);
        jsonw_object(&w);
        jsonw_kv(&w, "name", name);
        jsonw_kv(&w, "way", kind);
        jsonw_kv_u64(&w, "waiting", r.waiting);
        jsonw_kv_u64(&w, "told", r.told);
        jsonw_kv_u64(&w, "given_up", r.given_up);
        jsonw_kv_u64(&w, "told_ms", r.told_ms);
        jsonw_kv_u64(&w, "given_up_ms", r.given_up_ms);
        jsonw_kv(&w, "words", r.words);
        jsonw_kv_u64(&w, "test_ms", r.test_ms);
        jsonw_kv_u64(&w, "test_tries", r.test_tries);
        jsonw_kv(&w, "test_state", r.test_state);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (rc != 0)
        reply_unable(x, &e);
}

static void tested(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);

    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now", "the ledger did not answer; try again in a moment");
    else if (!ok)
        reply_problem(x, 409, "Not sent", "%.*s", SPAN_FMT(why));
    else
        reply_empty(x, 204);
}

void api_told_test(struct exchange *x)
{
    struct dynbuf *b;

    if (!is_target(x, x->arg)) {
        reply_problem(x, 404, "Not found", "countersign.yaml has nobody of that name in notify:");
        return;
    }
    if (!(b = ask_begin(x, ASK_LEDGER, M_TELL_TEST, M_SANDBOX_DONE, tested)))
        return;
    msg_put_span(b, x->arg);
    msg_put_span(b, span_str(x->operator));
    ask_send(x);
}
