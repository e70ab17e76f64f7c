/* A policy loaded for a verb, what was said about it, and the verb that only says that. */
#include "policy/cli/policy_cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/id.h"
#include "common/json/json.h"
#include "policy/cli/sarif.h"
#include "policy/cli/show.h"
#include "policy/load/disk.h"

enum { PROBLEMS_MAX = 1000 };

int loaded_open(struct loaded *l, const char *const *paths, size_t n, const char *floors, const char *packs)
{
    return loaded_open_signed(l, paths, n, floors, packs, NULL);
}

int loaded_open_signed(struct loaded *l, const char *const *paths, size_t n, const char *floors, const char *packs,
                       const char *signers)
{
    return loaded_open_place(
        l, (struct policy_place){.paths = paths, .n = n, .floors = floors, .packs = packs, .signers = signers});
}

int loaded_open_place(struct loaded *l, struct policy_place from)
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

static size_t count(const struct loaded *l, char severity)
{
    size_t n = 0;
    for (size_t i = 0; i < l->problems.n; i++)
        n += l->v[i].severity == severity;
    return n;
}

static int json_problems(const struct loaded *l)
{
    struct dynbuf out;
    struct jsonw w;
    char hex[2 * DIGEST_BYTES + 1];
    dynbuf_init(&out, 4 << 20);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_key(&w, "valid");
    jsonw_bool(&w, l->p != NULL);
    if (l->p) {
        hex_text(policy_digest(l->p), hex);
        jsonw_kv(&w, "digest", span_str(hex));
        jsonw_kv_u64(&w, "rules", policy_rules(l->p));
    }
    jsonw_key(&w, "problems");
    jsonw_array(&w);
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
    int rc = show_json(&out);
    dynbuf_free(&out);
    return rc;
}

void print_problems(const struct loaded *l, bool json)
{
    if (json) {
        (void)json_problems(l); /* it says so, and the exit says that the policy is not valid */
        return;
    }
    for (size_t i = 0; i < l->problems.n; i++)
        fprintf(stderr, "%s: %s %s: %s\n", l->v[i].where, l->v[i].severity == 'E' ? "error" : "warning", l->v[i].code,
                l->v[i].text);
    if (l->p == NULL && l->problems.n == 0)
        fprintf(stderr, "%s\n", l->e.text);
}

static int check_files(const struct policy_args *a, bool json, bool sarif)
{
    struct loaded l;
    int rc = EXIT_POLICY_OK;
    struct policy_place place = {.paths = a->words,
                                 .n = a->nwords,
                                 .floors = a->floors,
                                 .packs = a->packs,
                                 .signers = a->signers,
                                 .roots_strict = a->roots_strict};
    if (loaded_open_place(&l, place) != 0)
        rc = EXIT_POLICY_INVALID;
    if (!sarif && !json)
        print_problems(&l, false);
    else if ((sarif ? print_sarif(&l) : json_problems(&l)) != 0)
        rc = EXIT_POLICY_RUNTIME;
    if (!json && !sarif && rc == EXIT_POLICY_OK)
        printf("%s: valid, %zu rules, %zu warnings\n", a->words[0], policy_rules(l.p), count(&l, 'W'));
    else if (!json && !sarif)
        fprintf(stderr, "%s: not valid, %zu errors, %zu warnings\n", a->words[0], count(&l, 'E'), count(&l, 'W'));
    loaded_close(&l);
    return rc;
}

int policy_cli_check(const struct policy_args *a)
{
    bool sarif = a->format && strcmp(a->format, "sarif") == 0, json = a->format && strcmp(a->format, "json") == 0;
    if (a->code && a->nwords == 0)
        return print_code(a->code);
    if (a->nwords == 0 || a->code)
        return POLICY_SHOW_USAGE;
    if (a->format && !sarif && !json && strcmp(a->format, "text") != 0) {
        fprintf(stderr, "countersign policy check: --format is text, json or sarif\n");
        return EXIT_POLICY_USAGE;
    }
    return check_files(a, json || (a->json && !a->format), sarif);
}
