/* Why it was so and what would change it, as text and as JSON. */
#include <stdio.h>

#include "common/json/json.h"
#include "common/net/addr.h"
#include "cli/policy/explain/explain.h"
#include "cli/verb.h"
#include "policy/next_change.h"
#include "policy/ambiguity.h"

enum { CHANGES_MAX = 8, TRIES_MAX = 6, RANGES_MAX = 256, ADDRESS_WORDS = 512 };

/* A change that was tried, and what came of it. */
struct tried {
    struct span words;
    struct decision decision;
};
struct explained {
    struct near_miss near[NEAR_MAX];
    size_t n;
    struct tried change[CHANGES_MAX];
    size_t nchanges;
    struct ambiguity why;
    struct credential credential; /* name empty: none */
    struct credential stub;       /* the one with whose lease it is answered here; name empty: it is not */
    struct span place;            /* of its only: */
    int entry;
    struct span operators, gates;
    struct escalation step[ESCALATE_MAX];
    struct span whose[ESCALATE_MAX]; /* as operators, of each step */
    size_t nsteps;
    struct next_change opening; /* at empty: the clock alone changes nothing */
    struct span address;        /* why what it lets through gets nowhere, or empty */
};

static bool told_already(const struct explained *x, struct span words)
{
    for (size_t i = 0; i < x->nchanges; i++)
        if (span_eq(x->change[i].words, words))
            return true;
    return false;
}

static int looseness(const struct decision *d)
{
    return d->need_body ? 0 : (int)d->verdict;
}

/* For each near miss the first change of it with which another verdict comes out. */
static void try_changes(const struct loaded *l, struct asked *q, struct explained *x)
{
    struct change *c = arena_alloc(&q->a, x->n * sizeof(*c));
    struct decision d;
    for (size_t i = 0; c && i < x->n && x->nchanges < CHANGES_MAX; i++)
        for (unsigned nth = 0;
             nth < TRIES_MAX && policy_change(l->p, &q->subject, &q->request, &x->near[i], nth, &q->a, &c[i]);
             nth++) {
            asked_decide(l->p, &c[i].subject, &c[i].request, q->now_ms, &q->a, &d);
            if (looseness(&d) == looseness(&q->decision) || !span_eq(d.rule.id, x->near[i].id))
                continue;
            if (!told_already(x, c[i].words))
                x->change[x->nchanges++] = (struct tried){c[i].words, d};
            break;
        }
}

/* Where it would be sent to may be known without asking anybody, and be no place that may be dialled. */
static struct span refused_address(const struct policy *p, struct asked *q)
{
    const struct request *r = &q->request;
    struct cidr allowed[RANGES_MAX];
    struct upstream u = {.address = SPAN_NONE};
    struct addr a;
    size_t n = 0;
    char *words = arena_alloc(&q->a, ADDRESS_WORDS);
    bool row = policy_upstream(p, r->host, r->port, &q->a, &u);
    struct span said = u.address.n ? u.address : r->host;
    for (size_t i = 0; row && i < u.nallow_private && n < RANGES_MAX; i++)
        n += cidr_parse(u.allow_private[i], &allowed[n]) == 0;
    if (!words || q->decision.verdict == VERDICT_DENY || addr_of_host(said, &a) != 0 || addr_may_dial(&a, allowed, n))
        return SPAN_NONE;
    int len = snprintf(words, ADDRESS_WORDS, "%.*s is a %s address, and %s: nothing would be sent",
                       SPAN_FMT(span_first(said, 255)), addr_class_name(addr_class(&a)),
                       row ? "no range of its upstream's allow_private: has it"
                           : "upstreams: does not have this host and port with an allow_private: for it");
    return span_of(words, len > 0 && len < ADDRESS_WORDS ? (size_t)len : 0);
}

static struct explained *explained_of(const struct loaded *l, struct asked *q)
{
    const struct decision *d = &q->decision;
    struct explained *x = arena_alloc(&q->a, sizeof(*x));
    bool elsewhere = strcmp(d->code, "credential-not-for-here") == 0 || strcmp(d->code, "credential-cleartext") == 0;
    int credential = elsewhere ? policy_rule_credential(l->p, d->rule.id) : d->credential;
    if (x == NULL)
        return NULL;
    x->why = policy_ambiguity(l->p, &q->subject, &q->request, d, q->now_ms, &q->a);
    x->entry = -1;
    if (credential >= 0 && policy_credential(l->p, (size_t)credential, &x->credential))
        x->entry = policy_only_entry(l->p, (size_t)credential, &q->request, &q->a, &x->place);
    size_t stub;
    if (policy_stub(l->p, &q->subject, &q->request, d, &stub) != STUB_NONE)
        (void)policy_credential(l->p, stub, &x->stub);
    x->operators = policy_operators(l->p, d->approve_by, &q->a);
    x->nsteps = policy_escalations(l->p, d, x->step);
    for (size_t i = 0; i < x->nsteps; i++)
        x->whose[i] = policy_operators(l->p, x->step[i].to, &q->a);
    x->gates = policy_gates_asked(l->p, d->approval.gates, &q->a);
    x->n = policy_near_misses(l->p, &q->subject, &q->request, d, q->now_ms, &q->a, x->near);
    for (size_t i = 0; i < x->n && q->recorded; i++)
        if (x->near[i].miss == MISS_HEADER) {
            x->near[i].open = true;
            x->near[i].words = SPAN("the fields of the request are not recorded, and the rule asks about one");
        }
    try_changes(l, q, x);
    x->address = refused_address(l->p, q);
    if (!policy_next_change(l->p, &q->subject, &q->request, d, q->now_ms, &q->a, &x->opening))
        x->opening.at = SPAN_NONE;
    return x;
}

static void line_of(const char *indent, const char *word, struct span s)
{
    if (s.n == 0)
        return;
    printf("%s  %s ", indent, word);
    print_text(s);
    putchar('\n');
}

static struct span slot_words(const struct credential *c, struct dynbuf *b)
{
    static const char *const words[SLOT_KINDS] = {
        [SLOT_HEADER] = "header", [SLOT_COOKIE] = "cookie", [SLOT_QUERY] = "query",
        [SLOT_PATH] = "path",     [SLOT_FORM] = "form",     [SLOT_JSON] = "json"};
    dynbuf_init(b, 1024);
    if (c->certificate)
        return SPAN("client certificate");
    (void)dynbuf_addf(b, "%s ", words[c->slot]);
    (void)dynbuf_add(b, c->slot == SLOT_HEADER ? c->header : c->where);
    if (c->slot == SLOT_PATH)
        (void)dynbuf_add(b, SPAN("{}"));
    if (c->beside.n)
        (void)dynbuf_addf(b, ", client certificate %.*s", SPAN_FMT(c->beside));
    return dynbuf_span(b);
}

static void print_credential(const struct explained *x, const struct decision *d, const char *indent)
{
    struct dynbuf b;
    if (x->credential.name.n == 0)
        return;
    printf("%s  credential ", indent);
    print_text(x->credential.name);
    if (strcmp(d->code, "credential-cleartext") == 0) {
        printf(" would travel in clear text: upstreams: lets it, for this host and port, with cleartext_credentials: "
               "true\n");
        return;
    }
    if (d->credential < 0) {
        printf(" may not go there: its only: names ");
        print_text(x->place);
        putchar('\n');
        return;
    }
    printf(" -> ");
    print_text(slot_words(&x->credential, &b));
    dynbuf_free(&b);
    printf(" (inside only[%d]: ", x->entry);
    print_text(x->place);
    printf(x->credential.refuse ? "; an answer with it is refused)\n" : ")\n");
}

void explain_print_span(uint64_t ms)
{
    static const struct {
        uint64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;
    while (ms % units[i].ms)
        i++;
    printf("%llu%s", (unsigned long long)(ms / units[i].ms), units[i].name);
}

static void print_approve(const struct explained *x, const struct decision *d, const char *indent)
{
    if (d->verdict != VERDICT_HOLD || d->need_body)
        return;
    printf("%s  approve: by ", indent);
    print_text(d->approve_by.n ? d->approve_by : SPAN("any operator"));
    if (x->operators.n) {
        printf(" (");
        print_text(x->operators);
        putchar(')');
    }
    for (size_t i = 0; i < x->nsteps; i++) {
        printf(", after ");
        explain_print_span(x->step[i].after_ms);
        printf(" also by ");
        print_text(x->step[i].to);
        printf(" (");
        print_text(x->whose[i]);
        putchar(')');
    }
    if (d->within_ms) {
        printf(", within ");
        explain_print_span(d->within_ms);
    }
    if (d->approval.quorum > 1)
        printf(", by %u different people", d->approval.quorum);
    if (d->approval.step_up)
        printf(", each with a passkey");
    if (d->approval.diff)
        printf(d->approval.diff == DIFF_REQUIRED ? ", once all that it changes can be shown"
                                                 : ", with what it changes");
    if (x->gates.n) {
        printf(", once asked and not denied by ");
        print_text(x->gates);
    }
    if (d->approval.self != SELF_OF_MACHINE)
        printf(d->approval.self == SELF_YES ? ", also by the sandbox's owner" : ", never by the sandbox's owner");
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

/* "HOLD  by rule write (policy.yaml:20) because limits" */
static void print_verdict(const struct decision *d)
{
    static const char *const words[] = {"DENY ", "HOLD ", "ALLOW"};
    fputs(d->need_body ? "needs the body to decide" : words[d->verdict], stdout);
    if (d->rule.id.n) {
        printf(" by %s ", strcmp(d->code, "floor") == 0 ? "floor" : "rule");
        print_text(d->rule.id);
        fputs(" (", stdout);
        print_text(d->rule.file);
        printf(":%u)", d->rule.line);
    }
    if (strcmp(d->code, "rule") != 0 && !d->need_body)
        printf(" because %s", d->code);
    putchar('\n');
}

static void print_open(const struct explained *x, const char *indent)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (!x->near[i].open)
            continue;
        printf("%s%s", n ? ", " : indent, n ? "" : "  depends on what is not seen, in rules: ");
        print_text(x->near[i].id);
        n++;
    }
    fputs(n ? "\n" : "", stdout);
}

static void print_near(const struct explained *x, const char *indent)
{
    print_open(x, indent);
    if (x->n)
        printf("%s  near misses:\n", indent);
    for (size_t i = 0; i < x->n; i++) {
        const struct near_miss *m = &x->near[i];
        printf("%s    ", indent);
        print_text(m->id);
        printf(" (%s, ", verdict_name(m->verdict));
        print_text(m->file);
        printf(":%u): ", m->line);
        print_text(m->words);
        putchar('\n');
    }
    if (x->nchanges || x->opening.at.n)
        printf("%s  what would change it:\n", indent);
    for (size_t i = 0; i < x->nchanges; i++) {
        printf("%s    ", indent);
        print_text(x->change[i].words);
        printf(": ");
        print_verdict(&x->change[i].decision);
    }
    if (x->opening.at.n) {
        printf("%s    from %.*s on: ", indent, SPAN_FMT(x->opening.at));
        print_verdict(&x->opening.decision);
    }
}

void explain_print(const struct loaded *l, struct asked *q, const char *indent)
{
    const struct decision *d = &q->decision;
    const struct explained *x = explained_of(l, q);
    fputs(indent, stdout);
    print_verdict(d);
    if (x == NULL)
        return;
    printf("%s  op=", indent);
    print_text(d->op.n ? d->op : SPAN("-"));
    printf(" effect=%s resource=", effect_name(d->effect));
    print_text(d->resource.n ? d->resource : SPAN("-"));
    printf(" (pack ");
    print_text(d->pack.n ? d->pack : SPAN("none"));
    printf(")\n");
    line_of(indent, "cause:", span_str(x->why.word));
    line_of(indent, "but", x->address);
    line_of(indent, "why:", x->why.words);
    line_of(indent, "a rule asks about", x->why.asked);
    line_of(indent, "note:", span_str(q->note));
    line_of(indent, "summary:", d->summary);
    print_credential(x, d, indent);
    print_approve(x, d, indent);
    explain_limits_print(l->p, q, indent);
    print_messages(d, indent);
    line_of(indent, "answered by the gateway itself, with a lease of", x->stub.name);
    line_of(indent, "say:", d->say);
    line_of(indent, "instead:", d->instead);
    print_near(x, indent);
}

static void json_rule(struct jsonw *w, const struct rule_ref *r)
{
    jsonw_kv(w, "id", r->id);
    jsonw_kv(w, "file", r->file);
    jsonw_kv_u64(w, "line", r->line);
}

static void json_verdict(struct jsonw *w, const struct decision *d)
{
    jsonw_kv(w, "decide", span_str(verdict_name(d->verdict)));
    jsonw_kv(w, "code", span_str(d->code));
    jsonw_kv_bool(w, "need_body", d->need_body);
    if (d->rule.id.n == 0)
        return;
    jsonw_kv_object(w, "rule");
    json_rule(w, &d->rule);
    jsonw_end_object(w);
}

static void json_near(struct jsonw *w, const struct explained *x)
{
    jsonw_kv_array(w, "near_misses");
    for (size_t i = 0; i < x->n; i++) {
        const struct near_miss *m = &x->near[i];
        jsonw_object(w);
        json_rule(w, &(struct rule_ref){m->id, m->file, m->line});
        jsonw_kv(w, "decide", span_str(verdict_name(m->verdict)));
        jsonw_kv(w, "because", span_str(miss_name(m->miss)));
        jsonw_kv_bool(w, "open", m->open);
        jsonw_kv(w, "words", m->words);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_kv_array(w, "changes");
    for (size_t i = 0; i < x->nchanges; i++) {
        jsonw_object(w);
        jsonw_kv(w, "change", x->change[i].words);
        json_verdict(w, &x->change[i].decision);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    if (x->opening.at.n == 0)
        return;
    jsonw_kv_object(w, "opens");
    jsonw_kv(w, "at", x->opening.at);
    jsonw_kv(w, "hours", x->opening.hours);
    json_verdict(w, &x->opening.decision);
    jsonw_end_object(w);
}

static void json_messages(struct jsonw *w, const struct ws_terms *t)
{
    jsonw_kv_object(w, "messages");
    jsonw_kv_bool(w, "text", t->send & WS_SENDS_TEXT);
    jsonw_kv_bool(w, "binary", t->send & WS_SENDS_BINARY);
    jsonw_kv_u64(w, "max", t->max);
    jsonw_kv_u64(w, "total", t->total);
    jsonw_kv_u64(w, "within_ms", t->within_ms);
    jsonw_end_object(w);
}

static void json_terms(struct jsonw *w, const struct explained *x, const struct decision *d)
{
    struct dynbuf b;
    dynbuf_init(&b, 0);
    if (x->credential.name.n && d->credential >= 0) {
        jsonw_kv(w, "credential", x->credential.name);
        bool field = x->credential.slot == SLOT_HEADER && !x->credential.certificate;
        jsonw_kv(w, "slot", field ? x->credential.header : slot_words(&x->credential, &b));
        dynbuf_free(&b);
        jsonw_kv(w, "scrub", x->credential.refuse ? SPAN("refuse") : SPAN("redact"));
        jsonw_kv_u64(w, "only_entry", (uint64_t)(x->entry < 0 ? 0 : x->entry));
    }
    if (x->credential.name.n)
        jsonw_kv(w, "only", x->place);
    if (x->stub.name.n)
        jsonw_kv(w, "stub", x->stub.name);
    if (d->verdict == VERDICT_HOLD) {
        jsonw_kv(w, "approve_by", d->approve_by);
        jsonw_kv(w, "operators", x->operators);
        jsonw_kv_array(w, "escalate");
        for (size_t i = 0; i < x->nsteps; i++) {
            jsonw_object(w);
            jsonw_kv_u64(w, "after_ms", x->step[i].after_ms);
            jsonw_kv(w, "to", x->step[i].to);
            jsonw_kv(w, "operators", x->whose[i]);
            jsonw_end_object(w);
        }
        jsonw_end_array(w);
        jsonw_kv_u64(w, "within_ms", d->within_ms);
        jsonw_kv_bool(w, "reason_required", d->reason_required);
        jsonw_kv_u64(w, "quorum", d->approval.quorum);
        jsonw_kv_bool(w, "step_up", d->approval.step_up);
        jsonw_kv(w, "diff",
                 d->approval.diff == DIFF_REQUIRED   ? SPAN("required")
                 : d->approval.diff == DIFF_OPTIONAL ? SPAN("optional")
                                                     : SPAN("no"));
        jsonw_kv(w, "gates", x->gates);
        jsonw_kv(w, "self_approval",
                 d->approval.self == SELF_YES  ? SPAN("yes")
                 : d->approval.self == SELF_NO ? SPAN("no")
                                               : SPAN("of the machine"));
    }
    if (d->upgrade && d->verdict != VERDICT_DENY)
        json_messages(w, &d->messages);
}

void explain_json(const struct loaded *l, struct asked *q, struct dynbuf *out)
{
    const struct decision *d = &q->decision;
    const struct explained *x = explained_of(l, q);
    struct jsonw w;
    jsonw_begin(&w, out);
    jsonw_object(&w);
    json_verdict(&w, d);
    jsonw_kv(&w, "op", d->op);
    jsonw_kv(&w, "effect", span_str(effect_name(d->effect)));
    jsonw_kv(&w, "resource", d->resource);
    jsonw_kv(&w, "pack", d->pack);
    if (x && x->why.words.n) {
        jsonw_kv(&w, "cause", span_str(x->why.word));
        jsonw_kv(&w, "why", x->why.words);
        jsonw_kv(&w, "asked_about", x->why.asked);
    }
    if (q->note)
        jsonw_kv(&w, "note", span_str(q->note));
    if (x && x->address.n)
        jsonw_kv(&w, "unreachable", x->address);
    if (x)
        json_terms(&w, x, d);
    explain_limits_json(l->p, q, &w);
    jsonw_kv(&w, "say", d->say);
    jsonw_kv(&w, "instead", d->instead);
    jsonw_kv(&w, "summary", d->summary);
    if (x)
        json_near(&w, x);
    jsonw_end_object(&w);
}
