/* One case of a test file: asked as the gateway would, and compared with what it expects. */
#include "policy/test/test_file.h"
#include "policy/scope.h"

#define BOUNDARY "countersign-policy-test"

/* "a1" stands for an object id that begins so; 0 for none. */
static struct span object_id(struct asked *q, const struct item *v, struct span otherwise)
{
    struct span s = v->at ? v->text : otherwise;
    uint8_t *id = arena_alloc(&q->a, 40);
    if (id == NULL || s.n > 40)
        return SPAN_NONE;
    memset(id, '0', 40);
    memcpy(id, s.p, s.n);
    return span_of(id, 40);
}

static int ask_push(struct asked *q, const struct t_push *p, struct err *e)
{
    const struct t_ref *v = p->refs.v;
    struct git_ref *refs = arena_alloc(&q->a, (p->refs.n + 1) * sizeof(*refs));
    for (size_t i = 0; refs && i < p->refs.n; i++)
        refs[i] = (struct git_ref){v[i].name.text, object_id(q, &v[i].old_id, SPAN("a1")),
                                   object_id(q, &v[i].new_id, SPAN("b2"))};
    return refs ? asked_push(q, p->url.text, refs, p->refs.n, e) : err_set(e, "no memory");
}

static int ask_form(struct asked *q, const struct t_request *r)
{
    const struct pair *v = r->form.v;
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    for (size_t i = 0; i < r->form.n; i++)
        for (size_t k = 0; k < v[i].values.n; k++) {
            (void)dynbuf_add(&b, b.n ? SPAN("&") : SPAN(""));
            dynbuf_add_percent(&b, v[i].name.text, "-._*");
            (void)dynbuf_add_byte(&b, '=');
            dynbuf_add_percent(&b, v[i].values.v[k].text, "-._*");
        }
    q->request.body = arena_copy(&q->a, dynbuf_span(&b));
    dynbuf_free(&b);
    return asked_header(q, SPAN("Content-Type"), SPAN("application/x-www-form-urlencoded"));
}

/* As curl -F writes it; what is in a file does not matter. */
static void put_part(struct dynbuf *b, struct span name, struct span value)
{
    struct span file = SPAN_NONE, type = SPAN("application/octet-stream"), rest;
    (void)dynbuf_addf(b, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"");
    (void)dynbuf_add(b, name);
    if (span_starts(value, SPAN("@"))) {
        (void)span_cut(span_from(value, 1), ';', &file, &rest);
        if (span_starts(rest, SPAN("type=")))
            type = span_from(rest, 5);
        (void)dynbuf_add(b, SPAN("\"; filename=\""));
        (void)dynbuf_add(b, file);
        (void)dynbuf_addf(b, "\"\r\nContent-Type: %.*s", SPAN_FMT(type));
        value = SPAN("file");
    } else {
        (void)dynbuf_addf(b, "\"");
    }
    (void)dynbuf_addf(b, "\r\n\r\n");
    (void)dynbuf_add(b, value);
    (void)dynbuf_addf(b, "\r\n");
}

static int ask_multipart(struct asked *q, const struct t_request *r)
{
    const struct pair *v = r->multipart.v;
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    for (size_t i = 0; i < r->multipart.n; i++)
        for (size_t k = 0; k < v[i].values.n; k++)
            put_part(&b, v[i].name.text, v[i].values.v[k].text);
    (void)dynbuf_addf(&b, "--" BOUNDARY "--\r\n");
    q->request.body = arena_keep(&q->a, &b);
    return q->request.body.p ? asked_header(q, SPAN("Content-Type"), SPAN("multipart/form-data; boundary=" BOUNDARY))
                             : -1;
}

static int ask_request(struct asked *q, const struct t_request *r, struct err *e)
{
    const struct pair *v = r->headers.v;
    q->request.method = r->method.text;
    for (size_t i = 0; i < r->headers.n; i++)
        for (size_t k = 0; k < v[i].values.n; k++)
            if (asked_header(q, v[i].name.text, v[i].values.v[k].text) != 0)
                return err_set(e, "too many headers");
    q->request.has_body = r->body.at || r->form.at || r->multipart.at || r->json.at;
    q->request.body = r->json.at ? r->json.text : r->body.text;
    if (r->json.at && asked_header(q, SPAN("Content-Type"), SPAN("application/json")) != 0)
        return err_set(e, "too many headers");
    if ((r->form.at && ask_form(q, r) != 0) || (r->multipart.at && ask_multipart(q, r) != 0))
        return err_set(e, "no memory");
    return asked_url(q, r->url.text, e);
}

static int ask_used(struct asked *q, const struct t_case *c)
{
    const struct t_used *v = c->used.v;
    struct used *out = c->used.n ? arena_alloc(&q->a, c->used.n * sizeof(*out)) : NULL;
    q->used = out;
    for (size_t i = 0; i < c->used.n && out; i++, out++) {
        struct span kind = v[i].field.at ? SPAN("form:") : v[i].pointer.at ? SPAN("json:") : SPAN("requests");
        struct span key = v[i].field.at ? v[i].field.text : v[i].pointer.text;
        uint8_t *text = arena_alloc(&q->a, kind.n + key.n);
        if (text == NULL)
            return -1;
        memcpy(text, kind.p, kind.n);
        if (key.n)
            memcpy(text + kind.n, key.p, key.n);
        *out = (struct used){v[i].rule.text, span_of(text, kind.n + key.n), v[i].sum.v + v[i].requests.v};
        q->nused++;
    }
    return q->nused == c->used.n ? 0 : -1;
}

static int ask_case(struct asked *q, const struct t_case *c, struct err *e)
{
    const struct pair *v = c->as.labels.v;
    if (c->as.sandbox.at)
        q->subject.sandbox = c->as.sandbox.text;
    for (size_t i = 0; i < c->as.labels.n; i++)
        if (asked_label(q, v[i].name.text, v[i].values.v[0].text) != 0)
            return err_set(e, "too many labels");
    if (ask_used(q, c) != 0)
        return err_set(e, "no memory");
    return c->push.at ? ask_push(q, &c->push, e) : ask_request(q, &c->request, e);
}

static void differs(struct tested *t, const char *what, struct span wanted, struct span got)
{
    if (t->ndiffs < TEST_DIFFS_MAX)
        t->diff[t->ndiffs++] = (struct test_diff){what, wanted, got};
}

static void same(struct tested *t, const struct item *want, struct span got, const char *what)
{
    if (want->at != NULL && !span_eq(want->text, got))
        differs(t, what, want->text, got);
}

static void same_word(struct tested *t, const struct number *want, const char *word, const char *got,
                      const char *what)
{
    if (want->at != NULL && strcmp(word, got) != 0)
        differs(t, what, span_str(word), span_str(got));
}

static void compare(const struct policy *p, const struct t_expect *x, struct tested *t)
{
    const struct decision *d = &t->q.decision;
    struct credential c = {.name = SPAN("none")};
    if (d->credential >= 0)
        (void)policy_credential(p, (size_t)d->credential, &c);
    if (d->need_body || (uint64_t)d->verdict != x->decide.v)
        differs(t, "decide", span_str(verdict_name((enum verdict)x->decide.v)), span_str(verdict_name(d->verdict)));
    same_word(t, &x->because, test_code_name(x->because.v), d->code, "because");
    same(t, &x->rule, d->rule.id.n ? d->rule.id : SPAN("none"), "rule");
    same(t, &x->credential, c.name, "credential");
    same(t, &x->op, d->op, "op");
    same_word(t, &x->effect, effect_name((enum effect)x->effect.v), effect_name(d->effect), "effect");
    same(t, &x->resource, d->resource, "resource");
    same(t, &x->say, d->say, "say");
}

/* Would it be decided otherwise at another time? A rule misses by its when: alone, or fits only now. */
static bool asks_time(const struct policy *p, struct asked *q)
{
    struct near_miss near[NEAR_MAX];
    struct decision other;
    if (!policy_asks_hours(p) && !policy_asks_moment(p))
        return false;
    size_t n = policy_near_misses(p, &q->subject, &q->request, &q->decision, q->now_ms, &q->a, near);
    for (size_t i = 0; i < n; i++)
        if (near[i].miss == MISS_WHEN)
            return true;
    policy_judge(p, &q->subject, &q->request, UINT64_MAX, &q->a, &other); /* no time that any zone knows */
    return other.verdict != q->decision.verdict || !span_eq(other.rule.id, q->decision.rule.id);
}

void test_case_run(const struct policy *p, const struct t_case *c, struct tested *t)
{
    *t = (struct tested){0};
    asked_init(&t->q);
    t->asked = ask_case(&t->q, c, &t->e) == 0;
    if (t->asked && (t->why = asked_why_unused(&t->q, p)) != NULL)
        t->asked = false;
    if (c->when.at)
        t->q.now_ms = c->when.v;
    if (t->asked)
        asked_judge(&t->q, p);
    else
        t->q.decision = (struct decision){.code = "bad-request", .credential = -1};
    t->asks_time = t->asked && c->when.at == NULL && asks_time(p, &t->q);
    compare(p, &c->expect, t);
    t->ok = t->why == NULL && t->ndiffs == 0;
}

void tested_free(struct tested *t)
{
    asked_free(&t->q);
}
