/* Who asks: sandboxes' names and labels, one for every set of scopes that somebody can be in. */
#include "cli/policy/diff/diff_parts.h"

#include "cli/policy/diff/states.h"
#include "policy/image/glob.h"

enum { WHO_MAX = 200 * 1000, KEYS_MAX = 16 };

struct label_key {
    struct span key;
    struct patterns l;
    struct minterms found;
};
struct who {
    struct patterns names;
    struct minterms found;
    struct label_key key[KEYS_MAX];
    size_t nkeys;
};

static int add_labels(struct space *s, struct who *w, const struct policy *p, struct img_range labels)
{
    int rc = 0;
    for (uint32_t i = 0; i < labels.n; i++) {
        const struct img_pair *v = img_at(p, IMG_PAIR, labels.first + i);
        size_t k = 0;
        while (k < w->nkeys && !span_eq(w->key[k].key, img_span(p, v->key)))
            k++;
        if (k == KEYS_MAX)
            return -1;
        if (k == w->nkeys)
            w->key[w->nkeys++] = (struct label_key){.key = img_span(p, v->key)};
        for (uint32_t j = 0; j < v->values.n; j++)
            rc |= diff_patterns_add(s, &w->key[k].l, img_glob(p, v->values, j), false);
    }
    return rc;
}

static int add_scope(struct space *s, struct who *w, const struct policy *p, const struct img_scope *c)
{
    int rc = add_labels(s, w, p, c->labels);
    for (uint32_t i = 0; i < c->sandboxes.n; i++)
        rc |= diff_patterns_add(s, &w->names, img_glob(p, c->sandboxes, i), false);
    return rc;
}

static bool in_scope(const struct policy *p, const struct img_scope *c, const struct subject *who)
{
    if (c->sandboxes.n && !diff_globs_fit(p, c->sandboxes, who->sandbox, 0, false))
        return false;
    for (uint32_t i = 0; i < c->labels.n; i++) {
        const struct img_pair *v = img_at(p, IMG_PAIR, c->labels.first + i);
        bool fits = false;
        for (size_t k = 0; k < who->nlabels && !fits; k++)
            fits = span_eq(who->labels[k].key, img_span(p, v->key)) &&
                   diff_globs_fit(p, v->values, who->labels[k].value, 0, false);
        if (!fits)
            return false;
    }
    return true;
}

/* Scopes that bind residents bear on every rule. */
static void who_bits(const struct space *s, const struct subject *who, uint64_t *bits)
{
    size_t n = 0;
    for (size_t i = 0; i < s->nsites; i++, n++)
        if (match_scope(s->site[i].p, who, s->site[i].rule))
            bits[n / 64] |= UINT64_C(1) << n % 64;
    for (unsigned v = OLD; v <= NEW; v++)
        for (uint32_t i = 0; i < s->p[v]->n[IMG_SCOPE]; i++, n++) {
            const struct img_scope *c = img_at(s->p[v], IMG_SCOPE, i);
            if (c->resident && in_scope(s->p[v], c, who))
                bits[n / 64] |= UINT64_C(1) << n % 64;
        }
}

static int collect(struct space *s, struct who *w)
{
    int rc = 0;
    for (size_t i = 0; i < s->nsites; i++)
        for (uint32_t k = 0; k < s->site[i].rule->scopes.n; k++) {
            const struct policy *p = s->site[i].p;
            uint32_t at = *(const uint32_t *)img_at(p, IMG_SCOPE_REF, s->site[i].rule->scopes.first + k);
            rc |= add_scope(s, w, p, img_at(p, IMG_SCOPE, at));
        }
    for (unsigned v = OLD; v <= NEW; v++)
        for (uint32_t i = 0; i < s->p[v]->n[IMG_SCOPE]; i++) {
            const struct img_scope *c = img_at(s->p[v], IMG_SCOPE, i);
            rc |= c->resident ? add_scope(s, w, s->p[v], c) : 0;
        }
    return rc;
}

static int find_values(struct space *s, struct who *w, size_t *total)
{
    if (minterms_find(w->names.v, w->names.n, MINTERM_NAME, s->a, &w->found) != 0)
        return -1;
    *total = w->found.n;
    for (size_t i = 0; i < w->nkeys; i++) {
        if (minterms_find(w->key[i].l.v, w->key[i].l.n, MINTERM_NAME, s->a, &w->key[i].found) != 0)
            return -1;
        *total *= w->key[i].found.n + 1;
        if (*total > WHO_MAX)
            return -1;
    }
    return 0;
}

/* A sandbox that no scope names is called as explain calls it. */
static struct span name_of(const struct who *w, size_t i)
{
    const struct minterm *m = &w->found.v[i];
    bool plain = true;
    for (size_t k = 0; k < w->names.n; k++)
        plain &= !minterm_fits(m, k) && !glob_segment(w->names.v[k].text, SPAN("sandbox"), false);
    return plain ? SPAN("sandbox") : m->text;
}

static int add_who(struct space *s, struct dim *d, struct states *seen, const struct who *w, size_t number)
{
    struct label *labels = arena_alloc(s->a, KEYS_MAX * sizeof(*labels));
    uint64_t *bits = arena_alloc(s->a, seen->words * sizeof(*bits));
    struct option o = {.text = name_of(w, number % w->found.n), .labels = labels};
    size_t at;
    if (labels == NULL || bits == NULL)
        return -1;
    number /= w->found.n;
    for (size_t i = 0; i < w->nkeys; i++) {
        size_t value = number % (w->key[i].found.n + 1);
        number /= w->key[i].found.n + 1;
        if (value)
            labels[o.nlabels++] = (struct label){w->key[i].key, w->key[i].found.v[value - 1].text};
    }
    struct subject who = {o.text, o.labels, o.nlabels};
    who_bits(s, &who, bits);
    int rc = states_add(seen, bits, (struct state_from){0}, &at);
    if (rc == 1 && diff_dim_add(s, d, o) == NULL)
        return -1;
    return rc < 0 ? -1 : 0;
}

int diff_space_who(struct space *s, struct dim *d)
{
    struct who *w = arena_alloc(s->a, sizeof(*w));
    struct states seen;
    size_t total = 0;
    if (w == NULL || collect(s, w) != 0 || find_values(s, w, &total) != 0 ||
        states_init(&seen, (s->nsites + s->p[OLD]->n[IMG_SCOPE] + s->p[NEW]->n[IMG_SCOPE]) / 64 + 1, WHO_MAX) != 0)
        return -1;
    int rc = 0;
    for (size_t i = 0; i < total && rc == 0; i++)
        rc = add_who(s, d, &seen, w, i);
    states_free(&seen);
    return rc;
}
