/* countersign policy diff OLD NEW: the hosts there are, and what is to be asked of each. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/policy/diff/diff_parts.h"

enum { HOSTS_MAX = 100 * 1000, SPACE_MEMORY = 512 * 1024 * 1024 };

struct hosts {
    struct span *v;
    size_t n, max;
};

/* ---- the hosts ---- */

static void add_host(struct diff *d, struct hosts *h, struct span before, struct span text)
{
    if (text.n == 0 || before.n + text.n > 253)
        return;
    struct span *v = h->n < HOSTS_MAX ? arena_more(&d->a, h->v, h->n, &h->max, sizeof(*v)) : NULL;
    struct span host = arena_join(&d->a, before, text);
    d->failed |= v == NULL || host.p == NULL;
    if (d->failed)
        return;
    h->v = v;
    h->v[h->n++] = host;
}

/* A name, and for a wildcard's suffix itself, one label before it, and two. */
static void add_hosts(struct diff *d, struct hosts *h, const struct policy *p)
{
    add_host(d, h, SPAN(""), SPAN("unnamed.example"));
    for (uint32_t i = 0; i < p->n[IMG_HOST]; i++) {
        const struct img_host *r = img_at(p, IMG_HOST, i);
        add_host(d, h, SPAN(""), img_span(p, r->text));
        if (r->kind != HOST_EXACT) {
            add_host(d, h, SPAN("x7."), img_span(p, r->text));
            add_host(d, h, SPAN("y7.x7."), img_span(p, r->text));
        }
    }
    for (uint32_t i = 0; i < p->n[IMG_PLACE]; i++)
        add_host(d, h, SPAN(""), img_span(p, ((const struct img_place *)img_at(p, IMG_PLACE, i))->host));
    for (uint32_t i = 0; i < p->n[IMG_UPSTREAM]; i++)
        add_host(d, h, SPAN(""), img_span(p, ((const struct img_upstream *)img_at(p, IMG_UPSTREAM, i))->host));
    for (uint32_t i = 0; i < p->n[IMG_RESOURCE]; i++)
        add_host(d, h, SPAN(""), img_span(p, ((const struct img_resource *)img_at(p, IMG_RESOURCE, i))->host));
}

static int by_text(const void *a, const void *b)
{
    return span_cmp(*(const struct span *)a, *(const struct span *)b);
}

/* ---- the rules about one ---- */

static int by_id(const struct policy *p, uint32_t i, const struct policy *q, uint32_t k)
{
    struct span a = img_span(p, ((const struct img_rule *)img_at(p, IMG_RULE, i))->id);
    struct span b = img_span(q, ((const struct img_rule *)img_at(q, IMG_RULE, k))->id);
    return span_cmp(a, b);
}

/* For each rule, whether the other policy has the very same; rules are in order of their ids. */
static bool *rules_that_differ(const struct diff *d, unsigned side)
{
    const struct policy *p = d->p[side], *q = d->p[1 - side];
    bool *v = calloc(p->n[IMG_RULE] + 1, sizeof(*v));
    uint32_t k = 0;
    for (uint32_t i = 0; v && i < p->n[IMG_RULE]; i++) {
        while (k < q->n[IMG_RULE] && by_id(p, i, q, k) > 0)
            k++;
        v[i] = k == q->n[IMG_RULE] || by_id(p, i, q, k) != 0 ||
               !span_eq(d->rule_text[side][i], d->rule_text[1 - side][k]);
    }
    return v;
}

static bool is_about(const struct policy *p, uint32_t rule, struct span host)
{
    const struct img_rule *r = img_at(p, IMG_RULE, rule);
    const struct img_match *m = img_at(p, IMG_MATCH, r->match.first);
    return classify_hosts_fit(p, m->hosts, host);
}

static void add_parts(struct space *s, const struct site *r)
{
    s->part[s->nparts++] = (struct part){r->p, r->match};
    for (uint32_t i = 0; i < r->rule->except.n; i++)
        s->part[s->nparts++] = (struct part){r->p, img_at(r->p, IMG_MATCH, r->rule->except.first + i)};
}

static int find_sites(struct space *s, bool *const differs[2])
{
    size_t max = s->p[OLD]->n[IMG_RULE] + s->p[NEW]->n[IMG_RULE];
    size_t parts = 0;
    unsigned bit = 0;
    s->site = arena_alloc(s->a, (max + 1) * sizeof(*s->site));
    if (s->site == NULL)
        return -1;
    for (unsigned v = OLD; v <= NEW; v++)
        for (uint32_t i = 0; i < s->p[v]->n[IMG_RULE]; i++) {
            if (!is_about(s->p[v], i, s->host))
                continue;
            const struct img_rule *r = img_at(s->p[v], IMG_RULE, i);
            struct site *to = &s->site[s->nsites++];
            *to = (struct site){.p = s->p[v], .rule = r, .match = img_at(s->p[v], IMG_MATCH, r->match.first)};
            if (differs[v][i])
                to->mask = UINT64_C(1) << bit++ % 64;
            parts += 1 + r->except.n;
        }
    s->part = arena_alloc(s->a, (parts + 1) * sizeof(*s->part));
    for (size_t i = 0; s->part && i < s->nsites; i++)
        add_parts(s, &s->site[i]);
    return s->part ? 0 : -1;
}

static int find_ops(struct space *s)
{
    size_t max = 0;
    for (unsigned v = OLD; v <= NEW; v++)
        for (uint32_t i = 0; i < s->p[v]->n[IMG_PACK]; i++) {
            const struct img_pack *k = img_at(s->p[v], IMG_PACK, i);
            for (uint32_t j = 0; classify_hosts_fit(s->p[v], k->hosts, s->host) && j < k->ops.n; j++) {
                struct known_op *all = arena_more(s->a, s->op, s->nops, &max, sizeof(*all));
                if (all == NULL)
                    return -1;
                s->op = all;
                s->op[s->nops++] = (struct known_op){s->p[v], k, img_at(s->p[v], IMG_OP, k->ops.first + j)};
            }
        }
    return 0;
}

/* Rules that fit nothing which a rule that differs may fit do not matter: their questions need no answer. */
static void keep_sites(struct space *s)
{
    size_t n = 0;
    s->nparts = 0;
    for (size_t i = 0; i < s->nsites; i++) {
        bool kept = true;
        for (size_t k = 0; k < DIM_MASKED && kept; k++) {
            kept = false;
            for (size_t j = 0; j < 2 * s->dim[k].n && !kept; j++) {
                const struct option *o = &s->dim[k].v[j / 2];
                kept = o->mask[j % 2] && diff_option_may_fit(s, &s->site[i], &s->dim[k], o, j % 2);
            }
        }
        if (!kept)
            continue;
        s->site[n++] = s->site[i];
        add_parts(s, &s->site[i]);
    }
    s->nsites = n;
}

static void unread(struct diff *d, struct span host, const char *why, uint64_t n)
{
    struct span *v = arena_more(&d->a, d->unread, d->nunread, &d->max_unread, sizeof(*v));
    struct span text = n ? arena_printf(&d->a, "%.*s (%llu combinations)", SPAN_FMT(host), (unsigned long long)n)
                         : arena_printf(&d->a, "%.*s (too many different %s)", SPAN_FMT(host), why);
    d->failed |= v == NULL || text.p == NULL;
    if (d->failed)
        return;
    d->unread = v;
    d->unread[d->nunread++] = text;
}

static void analyse(struct diff *d, struct space *s)
{
    uint64_t n = 0;
    if (diff_space_masked(s) == 0) {
        keep_sites(s);
        if (diff_space_masked(s) == 0 && diff_space_asked(s) == 0 && diff_space_bodies(s) == 0 &&
            (n = diff_space_size(s)) <= DIFF_BUDGET) {
            diff_space_judge(s, d);
            return;
        }
    }
    unread(d, s->host, s->why ? s->why : "requests", n);
}

static void look_at(struct diff *d, struct span host, bool *const differs[2])
{
    struct arena a;
    bool concerned = false;
    arena_init(&a, SPACE_MEMORY);
    struct space s = {.p = {d->p[OLD], d->p[NEW]}, .host = host, .a = &a, .now_ms = d->now_ms};
    struct span was = diff_around(d->p[OLD], host, &a), is = diff_around(d->p[NEW], host, &a);
    s.all = !span_eq(was, is);
    if (find_sites(&s, differs) != 0 || find_ops(&s) != 0)
        d->failed = true;
    for (size_t i = 0; i < s.nsites; i++)
        concerned |= s.site[i].mask != 0;
    if (!d->failed && (concerned || s.all)) {
        d->hosts++;
        analyse(d, &s);
    }
    arena_free(&a);
}

static bool any_differs(const struct diff *d, bool *const differs[2], struct span host)
{
    for (unsigned v = OLD; v <= NEW; v++)
        for (uint32_t i = 0; i < d->p[v]->n[IMG_RULE]; i++)
            if (differs[v][i] && is_about(d->p[v], i, host))
                return true;
    return false;
}

static void look_at_all(struct diff *d)
{
    struct hosts h = {0};
    bool *differs[2] = {NULL, NULL};
    for (unsigned v = OLD; v <= NEW; v++) {
        d->rule_text[v] = diff_rule_texts(d->p[v], &d->a);
        add_hosts(d, &h, d->p[v]);
    }
    d->failed |= d->rule_text[OLD] == NULL || d->rule_text[NEW] == NULL;
    for (unsigned v = OLD; v <= NEW && !d->failed; v++) {
        differs[v] = rules_that_differ(d, v);
        d->failed |= differs[v] == NULL;
    }
    if (!d->failed)
        qsort(h.v, h.n, sizeof(*h.v), by_text);
    struct arena a;
    arena_init(&a, DIFF_MEMORY);
    for (size_t i = 0; i < h.n && !d->failed; i++) {
        if (i && span_eq(h.v[i], h.v[i - 1]))
            continue;
        /* Where neither rules nor what is around them differ, nothing can. */
        arena_free(&a);
        bool around = !span_eq(diff_around(d->p[OLD], h.v[i], &a), diff_around(d->p[NEW], h.v[i], &a));
        if (around || any_differs(d, differs, h.v[i]))
            look_at(d, h.v[i], differs);
    }
    arena_free(&a);
    free(differs[OLD]);
    free(differs[NEW]);
}

/* ---- the verb ---- */

static int read_args(const struct cli_call *c, struct diff_args *out)
{
    const char *floors = cli_value(c, "floors");
    size_t cut = c->dashes == 1 ? c->dash : c->nwords == 2 ? 1 : 0;
    *out = (struct diff_args){.call = c, .witness = cli_value(c, "witness")};
    if (cut == 0 || cut >= c->nwords) {
        (void)cli_complain(c->verb, "it needs an OLD and a NEW policy; of more files than two, -- parts them");
        return -1;
    }
    out->paths[OLD] = (const char *const *)c->word;
    out->npaths[OLD] = cut;
    out->paths[NEW] = (const char *const *)c->word + cut;
    out->npaths[NEW] = c->nwords - cut;
    out->floors[OLD] = cli_value(c, "old-floors") ? cli_value(c, "old-floors") : floors;
    out->floors[NEW] = cli_value(c, "new-floors") ? cli_value(c, "new-floors") : floors;
    return 0;
}

static int exit_of(const struct diff *d, const char *fail_on)
{
    bool any = false, widened = d->nunread > 0;
    for (size_t i = 0; i < d->nentries; i++) {
        any |= d->entry[i].kind != DIFF_NOTE;
        widened |= d->entry[i].kind >= DIFF_CHANGED;
    }
    if (fail_on && strcmp(fail_on, "never") == 0)
        return CLI_OK;
    return widened || (any && fail_on && strcmp(fail_on, "any") == 0) ? CLI_RUNTIME : CLI_OK;
}

int policy_diff(const struct cli_call *c)
{
    struct diff d = {.now_ms = (uint64_t)time(NULL) * 1000};
    struct diff_args args;
    int rc = CLI_INVALID;
    if (read_args(c, &args) != 0)
        return CLI_USAGE;
    arena_init(&d.a, DIFF_MEMORY);
    for (unsigned v = OLD; v <= NEW; v++) {
        if (loaded_open_for(&d.side[v], c, args.paths[v], args.npaths[v], args.floors[v]) != 0) {
            loaded_print(&d.side[v], c->json);
            goto out;
        }
        d.p[v] = d.side[v].p;
    }
    look_at_all(&d);
    diff_drop_overrides(&d);
    if (!d.failed)
        diff_lists(&d);
    rc = CLI_RUNTIME;
    if (d.failed || (args.witness && diff_witness_files(&d, &args) != 0)) {
        fprintf(stderr, "countersign policy diff: %s\n",
                d.failed ? "no memory for the whole of it: compare smaller policies" : "cannot write to --witness");
        goto out;
    }
    if (!c->json)
        diff_print(&d, &args);
    else if (diff_json(&d, &args) != 0)
        goto out;
    rc = exit_of(&d, cli_value(c, "fail-on"));
out:
    loaded_close(&d.side[OLD]);
    loaded_close(&d.side[NEW]);
    arena_free(&d.a);
    return rc;
}
