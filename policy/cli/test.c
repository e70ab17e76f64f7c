/* FILE_test.yaml: requests and what must come of them, decided by the same code
 * as in the gateway. A failure prints the explanation. */
#include <stdio.h>

#include "common/json/json.h"
#include "policy/cli/policy_cli.h"
#include "policy/load/disk.h"
#include "policy/load/keys.h"

struct t_as {
    const struct node *at;
    struct item sandbox;
    struct list labels;
};
struct t_request {
    const struct node *at;
    struct item method, url, body, json;
    struct list headers, form;
};
struct t_ref {
    const struct node *at;
    struct item name, old_id, new_id;
};
struct t_push {
    const struct node *at;
    struct item url;
    struct list refs;
};
struct t_expect {
    const struct node *at;
    struct number decide;
    struct item because, rule, credential, op, effect, resource, say;
};
struct t_case {
    const struct node *at;
    struct item name;
    struct t_as as;
    struct t_request request;
    struct t_push push;
    struct t_expect expect;
};
struct t_file {
    const struct node *at;
    struct items policy;
    struct item floors;
    struct list cases;
};

#define TEXT(T, f, name_)                                                                                            \
    {                                                                                                                \
        .name = name_, .type = KEY_TEXT, .at = offsetof(struct T, f)                                                 \
    }
#define NEEDED(T, f, name_)                                                                                          \
    {                                                                                                                \
        .name = name_, .type = KEY_TEXT, .at = offsetof(struct T, f), .flags = KEY_NEEDED                            \
    }
#define PAIRS(T, f, name_)                                                                                           \
    {                                                                                                                \
        .name = name_, .type = KEY_PAIRS, .at = offsetof(struct T, f)                                                \
    }
#define MAP(T, f, name_, t)                                                                                          \
    {                                                                                                                \
        .name = name_, .type = KEY_MAP, .at = offsetof(struct T, f), .table = t                                      \
    }
#define LIST(T, f, name_, t)                                                                                         \
    {                                                                                                                \
        .name = name_, .type = KEY_LIST, .at = offsetof(struct T, f), .table = t, .flags = KEY_NEEDED                \
    }

static const struct choice decide_names[] = {
    {"deny", VERDICT_DENY}, {"hold", VERDICT_HOLD}, {"allow", VERDICT_ALLOW}, {0}};
static const struct key as_keys[] = {TEXT(t_as, sandbox, "sandbox"), PAIRS(t_as, labels, "labels"), {0}};
static const struct table as_table = {"as:", sizeof(struct t_as), as_keys};
static const struct key request_keys[] = {NEEDED(t_request, method, "method"),
                                          NEEDED(t_request, url, "url"),
                                          PAIRS(t_request, headers, "headers"),
                                          {.name = "body", .type = KEY_PROSE, .at = offsetof(struct t_request, body)},
                                          PAIRS(t_request, form, "form"),
                                          {.name = "json", .type = KEY_PROSE, .at = offsetof(struct t_request, json)},
                                          {0}};
static const struct table request_table = {"request:", sizeof(struct t_request), request_keys};
static const struct key ref_keys[] = {
    NEEDED(t_ref, name, "name"), TEXT(t_ref, old_id, "old"), TEXT(t_ref, new_id, "new"), {0}};
static const struct table ref_table = {"a ref", sizeof(struct t_ref), ref_keys};
static const struct key push_keys[] = {NEEDED(t_push, url, "url"), LIST(t_push, refs, "refs", &ref_table), {0}};
static const struct table push_table = {"git_push:", sizeof(struct t_push), push_keys};
static const struct key expect_keys[] = {{.name = "decide",
                                          .type = KEY_ONE_OF,
                                          .at = offsetof(struct t_expect, decide),
                                          .choices = decide_names,
                                          .flags = KEY_NEEDED},
                                         TEXT(t_expect, because, "because"),
                                         TEXT(t_expect, rule, "rule"),
                                         TEXT(t_expect, credential, "credential"),
                                         TEXT(t_expect, op, "op"),
                                         TEXT(t_expect, effect, "effect"),
                                         TEXT(t_expect, resource, "resource"),
                                         TEXT(t_expect, say, "say"),
                                         {0}};
static const struct table expect_table = {"expect:", sizeof(struct t_expect), expect_keys};
static const struct key case_keys[] = {NEEDED(t_case, name, "name"),
                                       MAP(t_case, as, "as", &as_table),
                                       MAP(t_case, request, "request", &request_table),
                                       MAP(t_case, push, "git_push", &push_table),
                                       {.name = "expect",
                                        .type = KEY_MAP,
                                        .at = offsetof(struct t_case, expect),
                                        .table = &expect_table,
                                        .flags = KEY_NEEDED},
                                       {0}};
static const struct table case_table = {"a case", sizeof(struct t_case), case_keys};
static const struct key file_keys[] = {
    {.name = "policy", .type = KEY_TEXTS, .at = offsetof(struct t_file, policy), .flags = KEY_NEEDED},
    TEXT(t_file, floors, "floors"),
    LIST(t_file, cases, "cases", &case_table),
    {0}};
static const struct table file_table = {"a test file", sizeof(struct t_file), file_keys};

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

static void put_form(struct dynbuf *b, struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || memchr("-._*", c, 4);
        (void)(plain ? dynbuf_add_byte(b, c) : dynbuf_addf(b, "%%%02X", c));
    }
}

static int ask_form(struct asked *q, const struct t_request *r)
{
    const struct pair *v = r->form.v;
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    for (size_t i = 0; i < r->form.n; i++)
        for (size_t k = 0; k < v[i].values.n; k++) {
            (void)dynbuf_add(&b, b.n ? SPAN("&") : SPAN(""));
            put_form(&b, v[i].name.text);
            (void)dynbuf_add_byte(&b, '=');
            put_form(&b, v[i].values.v[k].text);
        }
    q->request.body = arena_copy(&q->a, dynbuf_span(&b));
    dynbuf_free(&b);
    return asked_header(q, SPAN("Content-Type"), SPAN("application/x-www-form-urlencoded"));
}

static int ask_request(struct asked *q, const struct t_request *r, struct err *e)
{
    const struct pair *v = r->headers.v;
    q->request.method = r->method.text;
    for (size_t i = 0; i < r->headers.n; i++)
        for (size_t k = 0; k < v[i].values.n; k++)
            if (asked_header(q, v[i].name.text, v[i].values.v[k].text) != 0)
                return err_set(e, "too many headers");
    q->request.has_body = r->body.at || r->form.at || r->json.at;
    q->request.body = r->json.at ? r->json.text : r->body.text;
    if (r->json.at && asked_header(q, SPAN("Content-Type"), SPAN("application/json")) != 0)
        return err_set(e, "too many headers");
    if (r->form.at && ask_form(q, r) != 0)
        return err_set(e, "no memory");
    return asked_url(q, r->url.text, e);
}

/* A case that makes no sense is no case: it fails whatever it expects. */
static const char *why_no_case(const struct t_case *c)
{
    const struct pair *v = c->as.labels.v;
    for (size_t i = 0; i < c->as.labels.n; i++)
        if (v[i].values.n != 1)
            return "a label has one value here";
    if ((c->request.body.at != NULL) + (c->request.json.at != NULL) + (c->request.form.at != NULL) > 1)
        return "a request has body:, json: or form:";
    return (c->request.at == NULL) == (c->push.at == NULL) ? "a case has request: or git_push:" : NULL;
}

static int ask_case(struct asked *q, const struct t_case *c, struct err *e)
{
    const struct pair *v = c->as.labels.v;
    if (c->as.sandbox.at)
        q->subject.sandbox = c->as.sandbox.text;
    for (size_t i = 0; i < c->as.labels.n; i++)
        if (asked_label(q, v[i].name.text, v[i].values.v[0].text) != 0)
            return err_set(e, "too many labels");
    return c->push.at ? ask_push(q, &c->push, e) : ask_request(q, &c->request, e);
}

static bool same(const struct item *want, struct span got, const char *what, bool quiet)
{
    if (want->at == NULL || span_eq(want->text, got))
        return true;
    if (!quiet)
        printf("  %s: wanted %.*s, got %.*s\n", what, SPAN_FMT(want->text), SPAN_FMT(got));
    return false;
}

static bool as_expected(const struct loaded *l, const struct t_expect *x, const struct decision *d, bool quiet)
{
    struct credential c = {.name = SPAN("none")};
    bool ok = true;
    if (d->credential >= 0)
        (void)policy_credential(l->p, (size_t)d->credential, &c);
    if (d->need_body || (uint64_t)d->verdict != x->decide.v) {
        if (!quiet)
            printf("  decide: wanted %s, got %s\n", verdict_name((enum verdict)x->decide.v),
                   verdict_name(d->verdict));
        ok = false;
    }
    ok &= same(&x->because, span_str(d->code), "because", quiet);
    ok &= same(&x->rule, d->rule.id, "rule", quiet);
    ok &= same(&x->credential, c.name, "credential", quiet);
    ok &= same(&x->op, d->op, "op", quiet);
    ok &= same(&x->effect, span_str(effect_name(d->effect)), "effect", quiet);
    ok &= same(&x->resource, d->resource, "resource", quiet);
    ok &= same(&x->say, d->say, "say", quiet);
    return ok;
}

struct run {
    struct loader l;
    struct policy_problem problem[20];
    struct policy_problems problems;
    struct loaded policy;
    struct jsonw *json;
    size_t passed, failed;
};

/* A URL that the gateway would answer with 400 is a denial by it: because: bad-request. */
static bool run_case(struct run *t, const struct t_case *c, bool quiet)
{
    struct asked q;
    struct err e = {""};
    const char *why = why_no_case(c);
    asked_init(&q);
    bool asked = why == NULL && ask_case(&q, c, &e) == 0;
    if (asked)
        asked_judge(&q, t->policy.p);
    else
        q.decision = (struct decision){.code = "bad-request", .credential = -1};
    bool ok = why == NULL && as_expected(&t->policy, &c->expect, &q.decision, true);
    if (!quiet)
        printf("%s %s:%u %.*s\n", ok ? "ok    " : "FAILED", c->at->file, c->at->line, SPAN_FMT(c->name.text));
    if (!ok && !quiet) {
        (void)as_expected(&t->policy, &c->expect, &q.decision, false);
        if (asked)
            print_explain(&t->policy, &q, "    ");
        else
            printf("    %s\n", why ? why : e.text);
    }
    asked_free(&q);
    return ok;
}

static int open_policy(struct run *t, const struct t_file *f, const char *file, const char *packs)
{
    const char *paths[16] = {0}, *floors = NULL;
    const char *slash = strrchr(file, '/');
    struct span dir = span_of(file, slash ? (size_t)(slash - file + 1) : 0);
    size_t n = 0;
    for (size_t i = 0; i <= f->policy.n && n < 16; i++) {
        const struct item *v = i < f->policy.n ? &f->policy.v[i] : &f->floors;
        char *path = v->at ? arena_alloc(&t->l.a, dir.n + v->text.n + 1) : NULL;
        if (path == NULL)
            continue;
        if (dir.n)
            memcpy(path, dir.p, dir.n);
        memcpy(path + dir.n, v->text.p, v->text.n);
        if (i < f->policy.n)
            paths[n++] = path;
        else
            floors = path;
    }
    return loaded_open(&t->policy, paths, n, floors, packs);
}

static int read_test(struct run *t, const char *file, struct t_file *out)
{
    struct span text = SPAN_NONE;
    struct err e = {""};
    t->l.file = file;
    if (policy_read_file(file, POLICY_FILE_MAX, &t->l.a, &text, &e) != 0) {
        fprintf(stderr, "%s\n", e.text);
        return -1;
    }
    struct node *root = yaml_tree(&t->l, file, text);
    if (root)
        decode_map(&t->l, root, &file_table, out);
    for (size_t i = 0; i < t->problems.n; i++)
        fprintf(stderr, "%s: error %s: %s\n", t->problem[i].where, t->problem[i].code, t->problem[i].text);
    return root && !t->l.failed ? 0 : -1;
}

static void json_case(struct jsonw *w, const struct t_case *c, bool ok)
{
    jsonw_object(w);
    jsonw_kv(w, "file", span_str(c->at->file));
    jsonw_kv_u64(w, "line", c->at->line);
    jsonw_kv(w, "name", c->name.text);
    jsonw_key(w, "passed");
    jsonw_bool(w, ok);
    jsonw_end_object(w);
}

static int run_file(struct run *t, const char *file, const struct policy_args *a)
{
    struct t_file f = {0};
    int rc = EXIT_POLICY_INVALID;
    t->problems = (struct policy_problems){t->problem, 0, 20};
    t->l = (struct loader){.problems = &t->problems};
    arena_init(&t->l.a, 64 << 20);
    if (read_test(t, file, &f) != 0)
        goto out;
    if (open_policy(t, &f, file, a->packs) != 0) {
        print_problems(&t->policy, false);
        loaded_close(&t->policy);
        goto out;
    }
    const struct t_case *c = f.cases.v;
    for (size_t i = 0; i < f.cases.n; i++) {
        bool ok = run_case(t, &c[i], a->json);
        t->passed += ok;
        t->failed += !ok;
        if (t->json)
            json_case(t->json, &c[i], ok);
    }
    loaded_close(&t->policy);
    rc = EXIT_POLICY_OK;
out:
    arena_free(&t->l.a);
    return rc;
}

int policy_cli_test(const struct policy_args *a)
{
    struct run t = {0};
    struct dynbuf out;
    struct jsonw w;
    int rc = EXIT_POLICY_OK;
    if (a->nwords == 0) {
        fputs("countersign policy test needs FILE_test.yaml...\n", stderr);
        return EXIT_POLICY_USAGE;
    }
    dynbuf_init(&out, 16 << 20);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_key(&w, "cases");
    jsonw_array(&w);
    t.json = a->json ? &w : NULL;
    for (size_t i = 0; i < a->nwords && rc == EXIT_POLICY_OK; i++)
        rc = run_file(&t, a->words[i], a);
    jsonw_end_array(&w);
    jsonw_kv_u64(&w, "passed", t.passed);
    jsonw_kv_u64(&w, "failed", t.failed);
    jsonw_end_object(&w);
    if (a->json && dynbuf_ok(&out))
        printf("%.*s\n", SPAN_FMT(dynbuf_span(&out)));
    else if (!a->json)
        printf("%zu passed, %zu failed\n", t.passed, t.failed);
    dynbuf_free(&out);
    /* A file without a case proves nothing. */
    return rc != EXIT_POLICY_OK ? rc : t.failed || t.passed == 0 ? EXIT_POLICY_RUNTIME : EXIT_POLICY_OK;
}
