#include "proxy/lease/lease_json.h"

#include "policy/decision.h"

static void put_list(struct jsonw *w, const char *key, const struct wire_list *l)
{
    if (l->n == 0)
        return;
    jsonw_kv_array(w, key);
    for (size_t i = 0; i < l->n; i++)
        jsonw_string(w, l->v[i]);
    jsonw_end_array(w);
}

static void put_effects(struct jsonw *w, uint32_t effects)
{
    if (effects == 0)
        return;
    jsonw_kv_array(w, "effects");
    for (int e = EFFECT_UNKNOWN; e <= EFFECT_EXEC; e++)
        if (effects >> e & 1)
            jsonw_string(w, span_str(effect_name((enum effect)e)));
    jsonw_end_array(w);
}

static void put_count(struct jsonw *w, const char *key, uint64_t n)
{
    if (n > 0)
        jsonw_kv_u64(w, key, n);
}

void lease_json_layers(struct jsonw *w, const struct wire_layer *v, size_t n)
{
    jsonw_array(w);
    for (size_t i = 0; i < n; i++) {
        jsonw_object(w);
        put_list(w, "hosts", &v[i].hosts);
        put_list(w, "methods", &v[i].methods);
        put_list(w, "paths", &v[i].paths);
        put_list(w, "ops", &v[i].ops);
        put_effects(w, v[i].effects);
        put_count(w, "uses", v[i].uses);
        put_count(w, "rate", v[i].rate);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}
