/* What a checkpoint keeps of the loop, as JSON: {"step":3,"same":2,"calls":"HEX","end":"none"}. The end is that of a
 * turn of which only that is missing. */
#include "broker/loop/loop_in.h"
#include "common/arena.h"
#include "common/json/json.h"

enum { TREE_MAX = 16 * 1024 };

void agent_call_digest(struct span tool, struct span args, struct digest *out)
{
    struct digest_ctx *d = digest_begin();
    digest_add_field(d, tool);
    digest_add_field(d, args);
    digest_end(d, out);
}

struct digest agent_batch(const struct agent *l)
{
    struct digest out = {{0}};
    if (l->summary)
        return l->last;
    if (l->calls == 0)
        return out;
    struct digest_ctx *d = digest_begin();
    for (size_t i = 0; i < l->calls; i++)
        digest_add(d, span_of(l->call[i].asked.what.b, DIGEST_BYTES));
    digest_end(d, &out);
    return out;
}

void agent_save(const struct agent *l, struct dynbuf *out)
{
    char hex[2 * DIGEST_BYTES + 1];
    struct digest batch = agent_batch(l);
    struct jsonw w;
    hex_text(span_of(batch.b, DIGEST_BYTES), hex);
    jsonw_begin(&w, out);
    jsonw_object(&w);
    jsonw_kv_u64(&w, "step", l->step);
    jsonw_kv_u64(&w, "same", l->same);
    jsonw_kv(&w, "calls", span_of(hex, 2 * DIGEST_BYTES));
    jsonw_kv(&w, "end", span_str(turn_end_name(l->wanted)));
    jsonw_end_object(&w);
}

bool agent_load(struct agent *l, struct span kept)
{
    struct arena a;
    uint64_t step;
    struct span end;
    if (kept.n == 0)
        return l->step == 1; /* the first step has nothing behind it, every other has */
    arena_init(&a, TREE_MAX);
    const struct json *j = kept.n <= LOOP_KEPT_MAX ? json_parse(kept, &a) : NULL;
    bool ok = j != NULL && json_u64(j, SPAN("step"), &step) == 0 && step + 1 == l->step &&
              json_u64(j, SPAN("same"), &l->same) == 0 &&
              hex_parse(json_text(j, SPAN("calls")), l->last.b, DIGEST_BYTES) == 0;
    if (ok) {
        end = json_text(j, SPAN("end"));
        l->wanted = turn_end_of(end);
        ok = span_eq(end, span_str(turn_end_name(l->wanted)));
    }
    arena_free(&a);
    return ok;
}
