#include <stdio.h>

#include "common/json/json.h"
#include "policy/cli/policy_cli.h"
#include "policy/load/disk.h"

enum { BODY_FILE_MAX = 64 * 1024 * 1024 };

/* Foreign bytes on a terminal: what could move its cursor is shown as '?'. */
static void show(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        putchar(s.p[i] >= 0x20 && s.p[i] != 0x7f ? s.p[i] : '?');
}

static void line_of(const char *indent, const char *word, struct span s)
{
    if (s.n == 0)
        return;
    printf("%s  %s ", indent, word);
    show(s);
    putchar('\n');
}

static void print_credential(const struct policy *p, const struct decision *d, const char *indent)
{
    struct credential c;
    if (d->credential < 0 || !policy_credential(p, (size_t)d->credential, &c))
        return;
    printf("%s  credential ", indent);
    show(c.name);
    printf(c.certificate ? " -> client certificate" : " -> header ");
    show(c.header);
    printf(" (inside its only:)\n");
}

static void print_approve(const struct decision *d, const char *indent)
{
    if (d->verdict != VERDICT_HOLD)
        return;
    printf("%s  approve: by ", indent);
    show(d->approve_by.n ? d->approve_by : SPAN("any operator"));
    if (d->within_ms)
        printf(", within %llu s", (unsigned long long)(d->within_ms / 1000));
    printf("%s\n", d->reason_required ? ", with a reason" : "");
}

static void print_messages(const struct decision *d, const char *indent)
{
    static const char *const sends[] = {"nothing", "text", "binary", "text and binary"};
    const struct ws_terms *t = &d->messages;
    if (!d->upgrade || d->verdict == VERDICT_DENY)
        return;
    printf("%s  then the sandbox may send %s", indent, sends[t->send & 3]);
    if (t->send)
        printf(": %llu bytes a message, %llu in all, within %llu s", (unsigned long long)t->max,
               (unsigned long long)t->total, (unsigned long long)(t->within_ms / 1000));
    putchar('\n');
}

void print_explain(const struct loaded *l, struct asked *q, const char *indent)
{
    static const char *const words[] = {"DENY ", "HOLD ", "ALLOW"};
    const struct decision *d = &q->decision;
    struct near_miss near[NEAR_MAX];
    const char *why = policy_why_unclear(&q->request, d, &q->a);
    printf("%s%s", indent, d->need_body ? "needs the body to decide" : words[d->verdict]);
    if (d->rule.id.n) {
        printf(" by %s ", strcmp(d->code, "floor") == 0 ? "floor" : "rule");
        show(d->rule.id);
        printf(" (%.*s:%u)", SPAN_FMT(d->rule.file), d->rule.line);
    }
    if (strcmp(d->code, "rule") != 0 && !d->need_body)
        printf(" because %s", d->code);
    printf("\n%s  op=", indent);
    show(d->op);
    printf(" effect=%s resource=", effect_name(d->effect));
    show(d->resource.n ? d->resource : SPAN("-"));
    printf(" (pack ");
    show(d->pack.n ? d->pack : SPAN("none"));
    printf(")\n");
    if (why)
        line_of(indent, "why:", span_str(why));
    line_of(indent, "summary:", d->summary);
    print_credential(l->p, d, indent);
    print_approve(d, indent);
    print_messages(d, indent);
    line_of(indent, "say:", d->say);
    line_of(indent, "instead:", d->instead);
    size_t n = policy_near_misses(l->p, &q->subject, &q->request, d, &q->a, near);
    for (size_t i = 0; i < n; i++) {
        printf("%s%s", i ? ", " : indent, i ? "" : "  near misses: ");
        show(near[i].id);
        printf(" (%s)", near[i].missing);
    }
    fputs(n ? "\n" : "", stdout);
}

static void json_rule(struct jsonw *w, const struct decision *d)
{
    if (d->rule.id.n == 0)
        return;
    jsonw_key(w, "rule");
    jsonw_object(w);
    jsonw_kv(w, "id", d->rule.id);
    jsonw_kv(w, "file", d->rule.file);
    jsonw_kv_u64(w, "line", d->rule.line);
    jsonw_end_object(w);
}

static void json_near(struct jsonw *w, const struct loaded *l, struct asked *q)
{
    struct near_miss near[NEAR_MAX];
    size_t n = policy_near_misses(l->p, &q->subject, &q->request, &q->decision, &q->a, near);
    jsonw_key(w, "near_misses");
    jsonw_array(w);
    for (size_t i = 0; i < n; i++) {
        jsonw_object(w);
        jsonw_kv(w, "id", near[i].id);
        jsonw_kv(w, "decide", span_str(verdict_name(near[i].verdict)));
        jsonw_kv(w, "because", span_str(near[i].missing));
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

void json_explain(const struct loaded *l, struct asked *q, struct dynbuf *out)
{
    const struct decision *d = &q->decision;
    const char *why = policy_why_unclear(&q->request, d, &q->a);
    struct credential c;
    struct jsonw w;
    jsonw_begin(&w, out);
    jsonw_object(&w);
    jsonw_kv(&w, "decide", span_str(verdict_name(d->verdict)));
    jsonw_kv(&w, "code", span_str(d->code));
    if (why)
        jsonw_kv(&w, "why", span_str(why));
    jsonw_key(&w, "need_body");
    jsonw_bool(&w, d->need_body);
    json_rule(&w, d);
    jsonw_kv(&w, "op", d->op);
    jsonw_kv(&w, "effect", span_str(effect_name(d->effect)));
    jsonw_kv(&w, "resource", d->resource);
    jsonw_kv(&w, "pack", d->pack);
    if (d->credential >= 0 && policy_credential(l->p, (size_t)d->credential, &c))
        jsonw_kv(&w, "credential", c.name);
    if (d->verdict == VERDICT_HOLD)
        jsonw_kv(&w, "approve_by", d->approve_by);
    if (d->upgrade && d->verdict != VERDICT_DENY) {
        jsonw_key(&w, "messages");
        jsonw_object(&w);
        jsonw_key(&w, "text");
        jsonw_bool(&w, d->messages.send & WS_SENDS_TEXT);
        jsonw_key(&w, "binary");
        jsonw_bool(&w, d->messages.send & WS_SENDS_BINARY);
        jsonw_kv_u64(&w, "max", d->messages.max);
        jsonw_kv_u64(&w, "total", d->messages.total);
        jsonw_kv_u64(&w, "within_ms", d->messages.within_ms);
        jsonw_end_object(&w);
    }
    jsonw_kv(&w, "say", d->say);
    jsonw_kv(&w, "instead", d->instead);
    jsonw_kv(&w, "summary", d->summary);
    json_near(&w, l, q);
    jsonw_end_object(&w);
}

static int ask(const struct policy_args *a, struct asked *q, struct err *e)
{
    struct span name, value;
    q->subject.sandbox = span_str(a->as);
    q->request.method = span_str(a->words[0]);
    for (size_t i = 0; i < a->nlabels; i++)
        if (!span_cut(span_str(a->labels[i]), '=', &name, &value) || asked_label(q, name, value) != 0)
            return err_set(e, "--label is KEY=VALUE");
    for (size_t i = 0; i < a->nheaders; i++)
        if (!span_cut(span_str(a->headers[i]), ':', &name, &value) || asked_header(q, name, value) != 0)
            return err_set(e, "--header is \"NAME: VALUE\"");
    q->request.has_body = a->body != NULL;
    if (a->body && policy_read_file(a->body, BODY_FILE_MAX, &q->a, &q->request.body, e) != 0)
        return -1;
    return asked_url(q, span_str(a->words[1]), e);
}

static int exit_of(const struct decision *d)
{
    return d->need_body || d->verdict == VERDICT_DENY ? EXIT_POLICY_DENY
           : d->verdict == VERDICT_HOLD               ? EXIT_POLICY_HOLD
                                                      : EXIT_POLICY_OK;
}

int policy_cli_explain(const struct policy_args *a)
{
    struct loaded l = {0};
    struct asked q;
    struct dynbuf out;
    struct err e = {""};
    int rc = EXIT_POLICY_USAGE;
    asked_init(&q);
    dynbuf_init(&out, 4 << 20);
    if (a->nwords < 3) {
        fputs("countersign policy explain needs METHOD URL FILE..., in this order: GET https://example.com/ "
              "policy.yaml\n",
              stderr);
        goto out;
    }
    if (loaded_open(&l, a->words + 2, a->nwords - 2, a->floors, a->packs) != 0) {
        print_problems(&l, a->json);
        rc = EXIT_POLICY_INVALID;
        goto out;
    }
    if (ask(a, &q, &e) != 0) {
        fprintf(stderr, "countersign policy explain: %s\n", e.text);
        goto out;
    }
    asked_judge(&q, l.p);
    rc = exit_of(&q.decision);
    if (a->json)
        json_explain(&l, &q, &out);
    else
        print_explain(&l, &q, "");
    if (a->json && dynbuf_ok(&out))
        printf("%.*s\n", SPAN_FMT(dynbuf_span(&out)));
out:
    dynbuf_free(&out);
    asked_free(&q);
    loaded_close(&l);
    return rc;
}
