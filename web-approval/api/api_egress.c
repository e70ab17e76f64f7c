/* Amounts that a start asks for; how much it may send and be sent, and what of that is used. */
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/api/api.h"
#include "web-approval/api/steps.h"

int api_number(struct exchange *x, const struct member *f, uint64_t *to, uint64_t least, uint64_t most)
{
    if (!f->value || (span_u64(f->value->text, most, to) == 0 && *to >= least))
        return 0;
    reply_problem(x, 400, "Bad request", "`%s` is a whole number from %llu to %llu", f->name,
                  (unsigned long long)least, (unsigned long long)most);
    return -1;
}

int api_egress_take(struct exchange *x, struct starting *s, const struct json *given)
{
    struct member f[] = {{"requests", JSON_NUMBER, false, NULL}, {"bytes", JSON_NUMBER, false, NULL}};

    if (!given)
        return 0;
    for (const struct json *m = given->child; m; m = m->next) {
        size_t i = 0;
        while (i < 2 && !span_eq(m->key, span_str(f[i].name)))
            i++;
        if (i == 2 || m->type != JSON_NUMBER) {
            reply_problem(x, 400, "Bad request", "`egress` has `requests` and `bytes`, which are numbers");
            return -1;
        }
        f[i].value = m;
    }
    if (api_number(x, &f[0], &s->box.egress_requests, 1, BOX_EGRESS_MAX) != 0 ||
        api_number(x, &f[1], &s->box.egress_bytes, BOX_EGRESS_MIN_BYTES, BOX_EGRESS_MAX) != 0)
        return -1;
    return 0;
}

void api_egress_put(struct exchange *x, struct jsonw *w, const struct wire_box *b)
{
    struct egress_row used;
    struct err e;

    if (b->egress_requests == 0 && b->egress_bytes == 0)
        return;
    bool known = desk_store_egress(x->desk->store, b->name, &x->arena, &used, &e) == 0;
    jsonw_kv_object(w, "egress");
    if (b->egress_requests)
        jsonw_kv_u64(w, "requests", b->egress_requests);
    if (b->egress_bytes)
        jsonw_kv_u64(w, "bytes", b->egress_bytes);
    if (known)
        jsonw_kv_u64(w, "requests_used", used.requests);
    if (known)
        jsonw_kv_u64(w, "bytes_used", used.bytes);
    jsonw_end_object(w);
}
