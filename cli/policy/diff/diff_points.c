/* Every combination of the values of a host's dimensions, judged by the real judge under both policies. */
#include "cli/policy/diff/diff_parts.h"

enum { POINT_MEMORY = 64 * 1024 * 1024, FIELDS_MAX = 2 * DIMS_MAX + 4, QUERY_MAX = 64 * 1024 };

struct walk {
    struct space *s;
    struct diff *d;
    const struct option *at[DIMS_MAX];
    struct arena a[2];
    struct http_field field[FIELDS_MAX];
    struct dynbuf query;
    struct request request;
    struct subject subject;
};

/* ---- how many ---- */

static uint64_t masked_size(const struct space *s, size_t dim, uint64_t mask, bool over)
{
    uint64_t n = 0;
    if (dim == DIM_MASKED)
        return 1;
    for (size_t i = 0; i < s->dim[dim].n; i++) {
        const struct option *o = &s->dim[dim].v[i];
        bool to = diff_option_overrides(&s->dim[dim], o, over);
        if (o->mask[to] & mask)
            n += masked_size(s, dim + 1, mask & o->mask[to], to);
    }
    return n;
}

uint64_t diff_space_size(const struct space *s)
{
    uint64_t n = masked_size(s, 0, UINT64_MAX, false);
    for (size_t i = DIM_MASKED; i < s->ndims; i++) {
        if (s->dim[i].n && n > UINT64_MAX / s->dim[i].n)
            return UINT64_MAX;
        n *= s->dim[i].n;
    }
    return n;
}

/* ---- one request ---- */

static void add_field(struct walk *w, struct span name, struct span value)
{
    if (value.p && w->request.nfields < FIELDS_MAX)
        w->field[w->request.nfields++] = (struct http_field){name, value};
}

static bool is_push_path(struct span path)
{
    static const struct span end = SPAN("/git-receive-pack");
    if (path.n && path.p[path.n - 1] == '/')
        path.n--;
    return path.n >= end.n && span_ieq(span_from(path, path.n - end.n), end);
}

static void add_query(struct walk *w, struct span text)
{
    if (text.n && w->query.n)
        (void)dynbuf_add_byte(&w->query, '&');
    (void)dynbuf_add(&w->query, text);
}

static void take_option(struct walk *w, const struct dim *d, const struct option *o)
{
    struct request *r = &w->request;
    switch (d->kind) {
    case DIM_PLACE:
        r->scheme = o->text;
        r->port = o->port;
        break;
    case DIM_METHOD:
        r->method = o->text;
        if (o->override)
            add_field(w, SPAN("X-HTTP-Method-Override"), SPAN("DELETE"));
        break;
    case DIM_PATH: r->path = o->text; break;
    case DIM_WHO: w->subject = (struct subject){o->text, o->labels, o->nlabels}; break;
    case DIM_UPGRADE:
        if (o->upgrade)
            add_field(w, SPAN("Upgrade"), SPAN("websocket"));
        break;
    case DIM_QUERY:
    case DIM_PARAM: add_query(w, o->text); break;
    case DIM_HEADER:
        add_field(w, d->name, o->text);
        add_field(w, d->name, o->second);
        break;
    case DIM_BODY:
        r->has_body = o->body;
        r->body = o->text;
        add_field(w, SPAN("Content-Type"), o->ref ? SPAN("application/x-git-receive-pack-request") : o->second);
        break;
    case DIM_TIME: break;
    }
}

/* What no client sends, or no matcher tells from another point. */
static bool is_idle(const struct walk *w)
{
    const struct space *s = w->s;
    const struct option *whole = NULL, *body = NULL;
    bool params = false, upgrade = w->at[DIM_UPGRADE]->upgrade;
    for (size_t i = DIM_MASKED; i < s->ndims; i++) {
        const struct dim *d = &s->dim[i];
        whole = d->kind == DIM_QUERY ? w->at[i] : whole;
        body = d->kind == DIM_BODY ? w->at[i] : body;
        params |= d->kind == DIM_PARAM && w->at[i]->text.p;
        if (d->kind == DIM_HEADER && span_ieq(d->name, SPAN("sec-websocket-protocol")) && w->at[i]->text.p &&
            !upgrade)
            return true;
    }
    if (whole && whole->text.p && params)
        return true;
    if (upgrade && (body->body || !span_eq(w->at[DIM_METHOD]->text, SPAN("GET"))))
        return true;
    return body->ref && !is_push_path(w->at[DIM_PATH]->text);
}

static uint64_t build(struct walk *w)
{
    uint64_t now_ms = 0;
    w->request = (struct request){.host = w->s->host, .fields = w->field, .body_complete = true};
    dynbuf_reset(&w->query);
    for (size_t i = 0; i < w->s->ndims; i++) {
        take_option(w, &w->s->dim[i], w->at[i]);
        if (w->s->dim[i].kind == DIM_TIME)
            now_ms = w->at[i]->now_ms;
    }
    w->request.query = dynbuf_span(&w->query);
    w->request.has_query = w->query.n > 0;
    return now_ms;
}

/* ---- what came of it ---- */

static struct span keep(struct diff *d, struct span s)
{
    struct span out = s.n ? arena_copy(&d->a, s) : SPAN_NONE;
    d->failed |= s.n && out.p == NULL;
    return out;
}

static size_t cost_of(const struct walk *w, const struct option *body, uint64_t now_ms)
{
    const struct request *r = &w->request;
    size_t cost = 2 * r->path.n + 4 * r->query.n + r->host.n + w->subject.sandbox.n + 64 * w->subject.nlabels;
    for (size_t i = 0; i < r->nfields; i++)
        cost += 64 + r->fields[i].value.n;
    cost += r->has_body ? 128 + body->text.n + (span_eq(r->method, SPAN("POST")) ? 0 : 64) : 0;
    cost += span_eq(r->scheme, SPAN("https")) && r->port == 443 ? 0 : 512;
    cost += span_eq(w->subject.sandbox, SPAN("sandbox")) ? 0 : 16;
    return cost + r->method.n + (now_ms == w->s->now_ms ? 0 : 256);
}

static void take_witness(struct walk *w, struct witness *to, uint64_t now_ms, const struct option *body,
                         const struct option *time, size_t times, size_t cost)
{
    struct diff *d = w->d;
    const struct request *r = &w->request;
    struct label *labels = arena_alloc(&d->a, (w->subject.nlabels + 1) * sizeof(*labels));
    struct http_field *fields = arena_alloc(&d->a, (r->nfields + 1) * sizeof(*fields));
    d->failed |= labels == NULL || fields == NULL;
    if (d->failed)
        return;
    *to = (struct witness){.method = keep(d, r->method),
                           .scheme = keep(d, r->scheme),
                           .host = keep(d, r->host),
                           .path = keep(d, r->path),
                           .query = keep(d, r->query),
                           .sandbox = keep(d, w->subject.sandbox),
                           .body = keep(d, r->body),
                           .port = r->port,
                           .has_query = r->has_query,
                           .has_body = r->has_body,
                           .upgrade = w->at[DIM_UPGRADE]->upgrade,
                           .ref = body->ref,
                           .now_ms = times > 1 || time->now_ms != w->s->now_ms ? now_ms : 0,
                           .labels = labels,
                           .nlabels = w->subject.nlabels,
                           .fields = fields,
                           .push = {keep(d, body->push.name), body->push.old_id, body->push.new_id},
                           .cost = cost};
    for (size_t i = 0; i < w->subject.nlabels; i++)
        labels[i] = (struct label){keep(d, w->subject.labels[i].key), keep(d, w->subject.labels[i].value)};
    for (size_t i = 0; i < r->nfields; i++) {
        bool spelt = span_eq(r->fields[i].name, SPAN("Upgrade")) ||
                     (body->ref && span_eq(r->fields[i].name, SPAN("Content-Type")));
        if (!spelt)
            fields[to->nfields++] = (struct http_field){keep(d, r->fields[i].name), keep(d, r->fields[i].value)};
    }
}

static struct decided decided_of(const struct decision *d)
{
    return (struct decided){d->verdict, span_str(d->code), d->rule.id, d->rule.file, d->rule.line};
}

/* No rule fits, be it that none names the host. */
static bool says_nothing(const struct decided *d)
{
    return span_eq(d->code, SPAN("no-rule")) || span_eq(d->code, SPAN("host-not-named"));
}

static bool same_decided(const struct decided *a, const struct decided *b)
{
    return a->verdict == b->verdict && span_eq(a->rule, b->rule) &&
           (span_eq(a->code, b->code) || (says_nothing(a) && says_nothing(b)));
}

/* What is asked for, in few words: the pack's name of it, or method and host. */
static struct span label_of(struct walk *w, const struct decision *was, const struct decision *is, struct dynbuf *b)
{
    const struct decision *d = is->pack.n ? is : was;
    dynbuf_reset(b);
    if (d->pack.n) {
        (void)dynbuf_add(b, d->op);
    } else {
        (void)dynbuf_add(b, w->request.method);
        (void)dynbuf_add_byte(b, ' ');
        (void)dynbuf_add(b, w->request.host);
    }
    return dynbuf_span(b);
}

static struct entry *entry_for(struct walk *w, struct span label, const struct drift *c, const struct decision *was,
                               const struct decision *is)
{
    struct decided one[2] = {decided_of(was), decided_of(is)};
    struct diff *d = w->d;
    for (size_t i = 0; i < d->nentries; i++) {
        struct entry *e = &d->entry[i];
        if (e->text.n == 0 && same_decided(&e->was[OLD], &one[OLD]) && same_decided(&e->was[NEW], &one[NEW]) &&
            memcmp(&e->what, c, sizeof(*c)) == 0 && span_eq(e->op, label))
            return e;
    }
    struct entry *e = diff_entry(d);
    if (e == NULL)
        return NULL;
    *e = (struct entry){.kind = diff_change_kind(c), .what = *c, .op = keep(d, label), .was = {one[OLD], one[NEW]}};
    e->witness.cost = SIZE_MAX;
    return e;
}

static void report(struct walk *w, const struct drift *c, const struct decision *was, const struct decision *is,
                   uint64_t now_ms)
{
    const struct option *body = NULL, *time = NULL;
    struct dynbuf b;
    size_t times = 0;
    dynbuf_init(&b, 4096);
    struct entry *e = entry_for(w, label_of(w, was, is, &b), c, was, is);
    dynbuf_free(&b);
    if (e == NULL)
        return;
    for (size_t i = DIM_MASKED; i < w->s->ndims; i++) {
        body = w->s->dim[i].kind == DIM_BODY ? w->at[i] : body;
        time = w->s->dim[i].kind == DIM_TIME ? w->at[i] : time;
        times = w->s->dim[i].kind == DIM_TIME ? w->s->dim[i].n : times;
    }
    size_t cost = cost_of(w, body, now_ms);
    e->classes++;
    e->plain |= !w->at[DIM_METHOD]->override;
    if (!span_eq(e->last_host, w->s->host)) {
        e->last_host = keep(w->d, w->s->host);
        e->hosts++;
    }
    if (cost >= e->witness.cost)
        return;
    e->was[OLD] = decided_of(was);
    e->was[NEW] = decided_of(is);
    take_witness(w, &e->witness, now_ms, body, time, times, cost);
}

static void judge_both(struct walk *w)
{
    struct decision was, is;
    uint64_t now_ms = build(w);
    for (unsigned v = OLD; v <= NEW; v++)
        arena_init(&w->a[v], POINT_MEMORY);
    asked_decide(w->s->p[OLD], &w->subject, &w->request, now_ms, &w->a[OLD], &was);
    asked_decide(w->s->p[NEW], &w->subject, &w->request, now_ms, &w->a[NEW], &is);
    /* Where nothing was used yet: what cannot be counted, or is too much by itself, is past its limit all the same.
     */
    asked_past_limits(w->s->p[OLD], &w->request, now_ms, NULL, 0, &w->a[OLD], &was);
    asked_past_limits(w->s->p[NEW], &w->request, now_ms, NULL, 0, &w->a[NEW], &is);
    struct drift c = diff_decisions(w->d, &w->request, now_ms, &was, &is, &w->a[NEW]);
    if (c.widened | c.narrowed | c.changed)
        report(w, &c, &was, &is, now_ms);
    w->d->points++;
    for (unsigned v = OLD; v <= NEW; v++)
        arena_free(&w->a[v]);
}

static bool told_of_others(const struct diff *d, const struct entry *of)
{
    for (size_t i = 0; i < d->nentries; i++) {
        const struct entry *e = &d->entry[i];
        if (e->text.n == 0 && e->plain && e->kind >= of->kind && e->was[NEW].verdict == of->was[NEW].verdict &&
            span_eq(e->was[NEW].rule, of->was[NEW].rule))
            return true;
    }
    return false;
}

void diff_drop_overrides(struct diff *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->nentries; i++) {
        const struct entry *e = &d->entry[i];
        if (e->text.n || e->plain || (e->kind > DIFF_NARROWED && !told_of_others(d, e)))
            d->entry[n++] = *e;
    }
    d->nentries = n;
}

static void walk_from(struct walk *w, size_t dim, uint64_t mask, bool over)
{
    if (w->d->failed)
        return;
    if (dim == w->s->ndims) {
        if (!is_idle(w))
            judge_both(w);
        return;
    }
    const struct dim *d = &w->s->dim[dim];
    for (size_t i = 0; i < d->n; i++) {
        bool to = diff_option_overrides(d, &d->v[i], over);
        uint64_t left = dim < DIM_MASKED ? mask & d->v[i].mask[to] : mask;
        w->at[dim] = &d->v[i];
        if (left)
            walk_from(w, dim + 1, left, to);
    }
}

void diff_space_judge(struct space *s, struct diff *d)
{
    struct walk *w = arena_alloc(s->a, sizeof(*w));
    if (w == NULL) {
        d->failed = true;
        return;
    }
    w->s = s;
    w->d = d;
    dynbuf_init(&w->query, QUERY_MAX);
    walk_from(w, 0, UINT64_MAX, false);
    dynbuf_free(&w->query);
}
