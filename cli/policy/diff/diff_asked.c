/* What a request carries beside its body: parameters of the query, header fields, offered subprotocols; and when. */
#include "cli/policy/diff/diff_parts.h"

#include <stdio.h>

enum { KEYS_MAX = 24, PAIRED_MAX = 64 };

struct key {
    struct span name;
    struct patterns l;
};
struct keys {
    struct key v[KEYS_MAX];
    size_t n;
    bool fold; /* names in any case are one */
};

static struct key *key_of(struct keys *k, struct span name)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->fold ? span_ieq(k->v[i].name, name) : span_eq(k->v[i].name, name))
            return &k->v[i];
    if (k->n == KEYS_MAX)
        return NULL;
    k->v[k->n] = (struct key){.name = name};
    return &k->v[k->n++];
}

static int add_pairs(struct space *s, struct keys *k, const struct policy *p, struct img_range pairs)
{
    int rc = 0;
    for (uint32_t i = 0; i < pairs.n; i++) {
        const struct img_pair *v = img_at(p, IMG_PAIR, pairs.first + i);
        struct key *key = key_of(k, img_span(p, v->key));
        rc |= key ? diff_patterns_add_globs(s, &key->l, p, v->values) : -1;
    }
    return rc;
}

/* ---- the query ---- */

static struct span param(struct space *s, struct span name, struct span value)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    dynbuf_add_percent(&b, name, "-._~");
    (void)dynbuf_add_byte(&b, '=');
    dynbuf_add_percent(&b, value, "-._~");
    return arena_keep(s->a, &b);
}

static struct span joined(struct space *s, struct span a, struct span b)
{
    return a.p && b.p ? arena_join(s->a, arena_join(s->a, a, SPAN("&")), b) : SPAN_NONE;
}

static struct span shout(struct space *s, struct span name)
{
    uint8_t *dst = arena_alloc(s->a, name.n + 1);
    for (size_t i = 0; dst && i < name.n; i++)
        dst[i] = name.p[i] >= 'a' && name.p[i] <= 'z' ? name.p[i] - 0x20 : name.p[i];
    return dst ? span_of(dst, name.n) : SPAN_NONE;
}

static int add_text(struct space *s, struct dim *d, struct span text)
{
    return text.p && diff_dim_add(s, d, (struct option){.text = text}) ? 0 : -1;
}

/* A query that is answered as none before. */
static int add_new(struct space *s, struct dim *d, struct signs *l, struct span text)
{
    struct request r = diff_bare_request(s, SPAN("GET"));
    r.query = text;
    r.has_query = true;
    int rc = text.p ? diff_signs_add(s, l, &r) : -1;
    return rc == 1 ? add_text(s, d, text) : rc;
}

/* Absent; each value; two values, of which an allow wants both and a deny one; the name in another spelling. */
static int add_param(struct space *s, const struct key *k)
{
    struct dim *d = diff_space_dim(s, DIM_PARAM, SPAN_NONE);
    struct signs l = {0};
    struct minterms found;
    struct span one[PAIRED_MAX], other = shout(s, k->name);
    if (d == NULL || diff_dim_add(s, d, (struct option){0}) == NULL ||
        minterms_find(k->l.v, k->l.n, MINTERM_TEXT, s->a, &found) != 0)
        return -1;
    int rc = 0;
    for (size_t i = 0; i < found.n && rc == 0; i++)
        rc = add_new(s, d, &l, param(s, k->name, found.v[i].text));
    size_t n = d->n - 1;
    if (rc != 0 || n > PAIRED_MAX)
        return -1;
    for (size_t i = 0; i < n; i++)
        one[i] = d->v[i + 1].text;
    for (size_t i = 0; i < n && rc == 0; i++)
        for (size_t j = 0; j <= i && rc == 0; j++)
            rc = add_new(s, d, &l, joined(s, one[i], one[j]));
    for (size_t i = 0; i < found.n && rc == 0 && other.n && !span_eq(other, k->name); i++)
        rc = add_new(s, d, &l, param(s, other, found.v[i].text));
    return rc;
}

static int add_pack_queries(struct space *s, struct dim *d, bool *any_matters)
{
    int rc = 0;
    for (size_t i = 0; i < s->nops; i++) {
        const struct img_op *o = s->op[i].op;
        struct span query = img_span(s->op[i].p, o->query);
        bool known = false;
        *any_matters |= o->content_type.n && o->effect == EFFECT_READ;
        for (size_t n = 0; n < d->n && !known; n++)
            known = span_eq(d->v[n].text, query);
        if (o->query_rule == QUERY_EXACT && !known)
            rc |= add_text(s, d, query);
    }
    return rc;
}

static int add_query(struct space *s)
{
    struct keys *keys = arena_alloc(s->a, sizeof(*keys));
    struct dim *whole = diff_space_dim(s, DIM_QUERY, SPAN_NONE);
    bool fresh = false;
    int rc = keys && whole && diff_dim_add(s, whole, (struct option){0}) ? 0 : -1;
    for (size_t i = 0; i < s->nparts && rc == 0; i++) {
        const struct policy *p = s->part[i].p;
        const struct img_match *m = s->part[i].match;
        rc |= add_pairs(s, keys, p, m->query);
        fresh |= m->query_only != 0;
        for (uint32_t k = 0; k < m->query_names.n; k++)
            rc |= key_of(keys, img_text(p, m->query_names, k)) ? 0 : -1;
    }
    if (rc != 0 || add_pack_queries(s, whole, &fresh) != 0)
        return -1;
    /* One that nobody names. */
    if (fresh && (key_of(keys, SPAN("zz")) == NULL))
        return -1;
    for (size_t i = 0; i < keys->n && rc == 0; i++)
        rc = add_param(s, &keys->v[i]);
    return rc;
}

/* ---- header fields ---- */

/* Which of the subprotocols are passed on is told of each by itself: those stay apart. */
static int add_field(struct space *s, struct dim *d, struct signs *l, struct span text, struct span second)
{
    const struct http_field f[] = {{d->name, text}, {d->name, second}};
    struct request r = diff_bare_request(s, SPAN("GET"));
    r.fields = f;
    r.nfields = second.p ? 2 : 1;
    int rc = span_ieq(d->name, SPAN("sec-websocket-protocol")) ? 1 : diff_signs_add(s, l, &r);
    return rc == 1 ? (diff_dim_add(s, d, (struct option){.text = text, .second = second}) ? 0 : -1) : rc;
}

static int add_header(struct space *s, const struct key *k)
{
    struct dim *d = diff_space_dim(s, DIM_HEADER, k->name);
    struct signs l = {0};
    struct span one[PAIRED_MAX];
    struct minterms found;
    if (d == NULL || diff_dim_add(s, d, (struct option){0}) == NULL ||
        minterms_find(k->l.v, k->l.n, MINTERM_NAME, s->a, &found) != 0)
        return -1;
    int rc = 0;
    for (size_t i = 0; i < found.n && rc == 0; i++)
        rc = add_field(s, d, &l, found.v[i].text, SPAN_NONE);
    size_t n = d->n - 1;
    if (rc != 0 || n > PAIRED_MAX)
        return -1;
    for (size_t i = 0; i < n; i++)
        one[i] = d->v[i + 1].text;
    for (size_t i = 0; i < n && rc == 0; i++)
        for (size_t j = 0; j < i && rc == 0; j++)
            rc = add_field(s, d, &l, one[i], one[j]);
    return rc;
}

static int add_headers(struct space *s)
{
    struct keys *keys = arena_alloc(s->a, sizeof(*keys));
    int rc = keys ? 0 : -1;
    for (size_t i = 0; i < s->nparts && rc == 0; i++) {
        const struct policy *p = s->part[i].p;
        const struct img_match *m = s->part[i].match;
        struct key *protocol = m->ws_protocols.n ? key_of(keys, SPAN("Sec-WebSocket-Protocol")) : NULL;
        keys->fold = true;
        rc |= add_pairs(s, keys, p, m->header);
        if (m->ws_protocols.n)
            rc |= protocol ? diff_patterns_add_globs(s, &protocol->l, p, m->ws_protocols) : -1;
    }
    for (size_t i = 0; rc == 0 && i < keys->n; i++)
        rc = span_ieq(keys->v[i].name, SPAN("content-type")) ? 0 : add_header(s, &keys->v[i]);
    return rc;
}

/* ---- when ---- */

/* The hold that takes what is past the rule's limits has hours of its own, wherever it may fit; NULL: none. */
static const struct img_rule *over_of(const struct site *r)
{
    return r->rule->over == IMG_NONE ? NULL : img_at(r->p, IMG_RULE, r->rule->over);
}

static bool in_force_alike(const struct site *r, uint64_t a_ms, uint64_t b_ms)
{
    const struct img_rule *over = over_of(r);
    return when_in_force(r->p, r->rule, a_ms) == when_in_force(r->p, r->rule, b_ms) &&
           (over == NULL || when_in_force(r->p, over, a_ms) == when_in_force(r->p, over, b_ms));
}

/* One time for every set of rules that are in force together. */
static int add_time(struct space *s, struct dim *d, uint64_t at_ms)
{
    struct option *o = NULL;
    bool learning = s->p[OLD]->head->learning_until_ms > at_ms || s->p[NEW]->head->learning_until_ms > at_ms;
    for (size_t i = 0; i < d->n && !learning; i++) {
        bool same = true;
        for (size_t k = 0; k < s->nsites && same; k++)
            same = in_force_alike(&s->site[k], d->v[i].now_ms, at_ms);
        if (same)
            return 0;
    }
    o = diff_dim_add(s, d, (struct option){.now_ms = at_ms});
    return o ? 0 : -1;
}

static int64_t offset_at(const struct policy *p, const struct img_zone *z, int64_t t)
{
    int64_t offset = 0;
    for (uint32_t i = 0; i < z->shifts.n; i++) {
        const struct img_shift *v = img_at(p, IMG_SHIFT, z->shifts.first + i);
        if (i == 0 || v->from_s <= t)
            offset = v->offset_s;
    }
    return offset;
}

/* The edges of a window in the week of `monday` (a Unix time, 00:00 UTC), and a second before each. */
static int add_window(struct space *s, struct dim *d, const struct policy *p, const struct img_window *w,
                      int64_t monday)
{
    const struct img_zone *z = w->zone == IMG_NONE ? NULL : img_at(p, IMG_ZONE, w->zone);
    int rc = 0;
    for (int64_t day = 0; z && day < 7; day++) {
        const int64_t edges[] = {w->from_min, w->to_min, w->from_min + (w->to_min + 1440 - w->from_min) % 1440 / 2,
                                 0};
        for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
            int64_t local = monday + day * 86400 + edges[i] * 60;
            int64_t at = local - offset_at(p, z, local);
            rc |= add_time(s, d, (uint64_t)at * 1000) | add_time(s, d, (uint64_t)(at - 1) * 1000);
        }
    }
    return rc;
}

static int add_windows(struct space *s, struct dim *d, const struct policy *p, const struct img_rule *r,
                       int64_t monday)
{
    int rc = 0;
    for (uint32_t k = 0; r && k < r->windows.n; k++) {
        const struct img_window *w = img_at(p, IMG_WINDOW, r->windows.first + k);
        rc |= add_window(s, d, p, w, monday + 7 * 86400) | add_window(s, d, p, w, monday + 33 * 7 * 86400);
    }
    return rc;
}

static int add_times(struct space *s)
{
    struct dim *d = diff_space_dim(s, DIM_TIME, SPAN_NONE);
    int64_t now = (int64_t)(s->now_ms / 1000), monday = now - now % 86400 - (now / 86400 + 3) % 7 * 86400;
    if (d == NULL)
        return -1;
    uint64_t ends[] = {s->p[OLD]->head->learning_until_ms, s->p[NEW]->head->learning_until_ms};
    uint64_t after = ends[OLD] > ends[NEW] ? ends[OLD] : ends[NEW];
    int rc = add_time(s, d, after >= s->now_ms ? after + 1000 : s->now_ms);
    for (unsigned v = OLD; v <= NEW; v++)
        if (ends[v] > s->now_ms)
            rc |= add_time(s, d, ends[v] - 1000);
    for (size_t i = 0; i < s->nsites; i++)
        rc |= add_windows(s, d, s->site[i].p, s->site[i].rule, monday) |
              add_windows(s, d, s->site[i].p, over_of(&s->site[i]), monday);
    return rc;
}

int diff_space_asked(struct space *s)
{
    if (add_times(s) != 0)
        s->why = "times";
    else if (add_query(s) != 0)
        s->why = "queries";
    else if (add_headers(s) != 0)
        s->why = "header fields";
    return s->why ? -1 : 0;
}
