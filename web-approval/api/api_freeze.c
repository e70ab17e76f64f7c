/* Freeze and thaw: every write is refused at once, until it is lifted. */
#include <stdio.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/api/api.h"
#include "web-approval/route.h"

enum { OPERATOR_MAX = 256 };

int freeze_read(struct exchange *x, struct freeze *f, struct err *e)
{
    struct span json;

    *f = (struct freeze){.on = false};
    if (desk_store_frozen(x->desk->store, &x->arena, &json, e) != 0)
        return -1;
    if (json.n == 0)
        return 0;
    const struct json *j = json_parse(json, &x->arena);
    f->on = true; /* also when what stands there cannot be read */
    f->by = json_text(j, SPAN("by"));
    f->reason = json_text(j, SPAN("reason"));
    const struct json *since = json_get(j, SPAN("since_ms"));
    if (since && span_u64(since->text, UINT64_MAX, &f->since_ms) != 0)
        f->since_ms = 0;
    return 0;
}

static void put(struct exchange *x, const struct freeze *f)
{
    struct jsonw w;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_bool(&w, "frozen", f->on);
    if (f->on) {
        jsonw_kv(&w, "by", f->by);
        jsonw_kv(&w, "reason", f->reason);
        jsonw_kv_u64(&w, "since_ms", f->since_ms);
    }
    jsonw_end_object(&w);
}

void api_frozen(struct exchange *x)
{
    struct freeze f;
    struct err e;

    if (freeze_read(x, &f, &e) != 0)
        reply_unable(x, &e);
    else
        put(x, &f);
}

bool api_freeze_done(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, 4096);

    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not known", "the ledger did not answer; ask again whether writes are frozen");
    else if (!ok)
        reply_problem(x, 503, "Not done", "%.*s", (int)(why.n < 400 ? why.n : 400), (const char *)why.p);
    return x->status == 0;
}

static void done(struct exchange *x, struct frame *f)
{
    if (api_freeze_done(x, f))
        api_frozen(x);
}

void api_freeze_ask(struct exchange *x, bool on, struct span reason, ask_fn *fn)
{
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_FREEZE, M_FREEZE, fn);
    if (!b)
        return;
    msg_put_u8(b, on);
    msg_put_span(b, span_first(span_str(x->operator), OPERATOR_MAX));
    msg_put_span(b, reason);
    ask_send(x);
}

static void ask(struct exchange *x, bool on)
{
    struct member m[] = {{"reason", JSON_STRING, false, NULL}};
    struct span reason = SPAN_NONE;

    if (body_members(x, m, 1) == 0 && (!m[0].value || reason_clean(x, m[0].value->text, &reason) == 0))
        api_freeze_ask(x, on, reason, done);
}

void api_freeze(struct exchange *x)
{
    ask(x, true);
}

void api_thaw(struct exchange *x)
{
    ask(x, false);
}
