#include "broker/models/model.h"

static const struct {
    const char *name, *path;
} protocols[] = {[MODEL_NONE] = {"", ""},
                 [MODEL_ANTHROPIC] = {"anthropic", "/messages"},
                 [MODEL_CHAT] = {"chat", "/chat/completions"},
                 [MODEL_RESPONSES] = {"responses", "/responses"}};
enum { PROTOCOLS = sizeof(protocols) / sizeof(protocols[0]) };

const char *model_protocol_name(enum model_protocol p)
{
    return protocols[(unsigned)p < PROTOCOLS ? p : MODEL_NONE].name;
}

const char *model_path(enum model_protocol p)
{
    return protocols[(unsigned)p < PROTOCOLS ? p : MODEL_NONE].path;
}

enum model_protocol model_protocol_of(struct span name)
{
    for (unsigned p = MODEL_NONE + 1; p < PROTOCOLS; p++)
        if (span_eq(name, span_str(protocols[p].name)))
            return (enum model_protocol)p;
    return MODEL_NONE;
}

bool model_origin_eq(const struct model_origin *a, const struct model_origin *b)
{
    return a->provider.n > 0 && a->model.n > 0 && a->endpoint.n > 0 && span_eq(a->provider, b->provider) &&
           span_eq(a->model, b->model) && span_eq(a->endpoint, b->endpoint);
}

static bool name_ok(struct span s, size_t max)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= 0x20 || s.p[i] >= 0x7f)
            return false;
    return s.n > 0 && s.n <= max;
}

bool model_origin_ok(const struct model_origin *o)
{
    return name_ok(o->provider, MODEL_NAME_MAX) && name_ok(o->model, MODEL_NAME_MAX) &&
           name_ok(o->endpoint, 2 * MODEL_NAME_MAX);
}

bool model_may_see(const struct model_privacy *p, struct span name)
{
    if (p->who == WHO_ALL)
        return true;
    for (size_t i = 0; p->who == WHO_LISTED && i < p->n; i++)
        if (name.n > 0 && span_eq(p->name[i], name))
            return true;
    return false;
}
