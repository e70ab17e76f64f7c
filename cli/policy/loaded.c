/* A policy loaded for a verb, and what was said about it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/policy/loaded.h"
#include "cli/policy/show.h"
#include "common/id.h"
#include "common/json/json.h"
#include "policy/explain.h"
#include "policy/load/disk.h"

enum { PROBLEMS_MAX = 1000 };

int loaded_open_for(struct loaded *l, const struct cli_call *c, const char *const *paths, size_t n,
                    const char *floors)
{
    return loaded_open(l, (struct policy_place){.paths = paths,
                                                .n = n,
                                                .floors = floors,
                                                .packs = cli_value(c, "packs"),
                                                .signers = cli_value(c, "signers")});
}

int loaded_open(struct loaded *l, struct policy_place from)
{
    from.now_ms = (uint64_t)time(NULL) * 1000;
    *l = (struct loaded){0};
    dynbuf_init(&l->image, POLICY_IMAGE_MAX);
    l->v = calloc(PROBLEMS_MAX, sizeof(*l->v));
    l->problems = (struct policy_problems){l->v, 0, l->v ? PROBLEMS_MAX : 0};
    if (policy_load_from_disk(&from, &l->image, &l->problems, &l->e) != 0)
        return -1;
    l->p = policy_open(dynbuf_span(&l->image), &l->e);
    return l->p ? 0 : -1;
}

void loaded_close(struct loaded *l)
{
    policy_close(l->p);
    dynbuf_free(&l->image);
    free(l->v);
    *l = (struct loaded){0};
}

int loaded_json(const struct loaded *l)
{
    struct dynbuf out;
    struct jsonw w;
    char hex[2 * DIGEST_BYTES + 1];
    dynbuf_init(&out, 4 << 20);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_kv_bool(&w, "valid", l->p != NULL);
    if (l->p) {
        hex_text(policy_digest(l->p), hex);
        jsonw_kv(&w, "digest", span_str(hex));
        jsonw_kv_u64(&w, "rules", policy_rules(l->p));
    }
    jsonw_kv_array(&w, "problems");
    for (size_t i = 0; i < l->problems.n; i++) {
        jsonw_object(&w);
        jsonw_kv(&w, "code", span_str(l->v[i].code));
        jsonw_kv(&w, "severity", l->v[i].severity == 'E' ? SPAN("error") : SPAN("warning"));
        jsonw_kv(&w, "where", span_str(l->v[i].where));
        jsonw_kv(&w, "text", span_str(l->v[i].text));
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    return show_json(&out);
}

void loaded_print(const struct loaded *l, bool json)
{
    if (json) {
        (void)loaded_json(l); /* it says so, and the exit says that the policy is not valid */
        return;
    }
    for (size_t i = 0; i < l->problems.n; i++)
        fprintf(stderr, "%s: %s %s: %s\n", l->v[i].where, l->v[i].severity == 'E' ? "error" : "warning", l->v[i].code,
                l->v[i].text);
    if (l->p == NULL && l->problems.n == 0)
        fprintf(stderr, "%s\n", l->e.text);
}
