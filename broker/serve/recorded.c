/* What was recorded of turns, for `countersign replay`: numbers and names, and nothing that anybody said. */
#include "broker/replay/set.h"
#include "broker/serve/serve.h"

struct span call_whose(const struct call *x)
{
    struct span asked;
    return x->own && call_query(x, SPAN("tenant"), &asked) ? asked : call_tenant(x);
}

void recorded_turn(struct call *x)
{
    struct bstore_recorded r;
    struct id id;
    if (!talk_id(x, &id))
        return;
    enum bstore_result got = bstore_recorded(call_store(x), call_whose(x), &id, &x->arena, &r);
    if (got != BS_OK) {
        talk_unable(x, got);
        return;
    }
    if (r.end == END_NONE || r.n == 0) {
        reply_no(x, 409, "%s",
                 r.end == END_NONE ? "this turn has not ended yet" : "nothing is recorded of this turn");
        return;
    }
    const struct set_run run = {
        .turn = id, .conversation = r.conversation, .end = r.end, .used = r.used, .budget = r.budget, .cut = r.cut};
    x->status = 200;
    x->type = "application/x-ndjson";
    dynbuf_reset(&x->out);
    set_put_run(&x->out, &run);
    for (size_t i = 0; i < r.n; i++)
        (void)dynbuf_add(&x->out, r.part[i]);
    call_answer(x);
}

void recorded_turns(struct call *x)
{
    struct bstore_turns all;
    struct span from;
    uint64_t after = 0;
    struct jsonw w;
    struct id id;
    if (!talk_id(x, &id))
        return;
    if (call_query(x, SPAN("after"), &from) && span_u64(from, INT64_MAX, &after) != 0) {
        reply_no(x, 400, "`after` is the number of a turn");
        return;
    }
    enum bstore_result got = bstore_turns(call_store(x), call_whose(x), &id, after, &x->arena, &all);
    if (got != BS_OK) {
        talk_unable(x, got);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "turns");
    for (size_t i = 0; i < all.n; i++) {
        const struct bstore_turn_of *t = &all.row[i];
        jsonw_object(&w);
        jsonw_kv_u64(&w, "nth", t->nth);
        talk_put_id(&w, "turn_id", &t->id);
        jsonw_kv(&w, "state", t->state);
        if (t->end != END_NONE)
            jsonw_kv(&w, "end", span_str(turn_end_name(t->end)));
        jsonw_kv_bool(&w, "recorded", t->recorded);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_kv_bool(&w, "more", all.n == BSTORE_READ_MAX);
    jsonw_end_object(&w);
    call_answer(x);
}
