#include "proxy/ledger/store/tell/tell_body.h"

#include <stdio.h>

#include "common/json/json.h"
#include "common/text/visible.h"
#include "common/time/clock.h"

enum { LINK_MOST = 700, ROWS_MOST = 12, SHOWN_MOST = 400 };

/* Foreign text, cut, with what would hide or reorder shown as an escape. */
static struct span shown(struct dynbuf *b, struct span s)
{
    dynbuf_init(b, TELL_FACT_MAX * VISIBLE_ESCAPE_MAX + 8);
    visible_text(b, span_first(s, TELL_FACT_MAX), false);
    size_t n = b->n < SHOWN_MOST ? b->n : SHOWN_MOST;
    while (n > 0 && n < b->n && (b->p[n] & 0xc0) == 0x80) /* not in the middle of a letter */
        n--;
    return span_first(dynbuf_span(b), n);
}

/* One after the other; those that are not there are left out. foreign: a sandbox or a server chose its letters. */
struct fact {
    const char *key, *name;
    struct span value;
    bool foreign;
};
struct text {
    struct fact fact[ROWS_MOST];
    size_t n;
    char host[TELL_FACT_MAX + 8], since[UTC_TEXT], expires[UTC_TEXT], at[UTC_TEXT], link[LINK_MOST];
    char waiting[32], count[32];
};

static void add(struct text *t, const char *key, const char *name, struct span value, bool foreign)
{
    if (value.n > 0 && t->n < ROWS_MOST)
        t->fact[t->n++] = (struct fact){key, name, value, foreign};
}

static void collect(const struct tell_facts *f, struct text *t)
{
    *t = (struct text){.n = 0};
    (void)utc_text(f->at_ms, false, t->at);
    (void)snprintf(t->link, sizeof(t->link), "%.*s%s%.*s", SPAN_FMT(span_first(f->desk, 600)),
                   f->ticket.n ? "/tickets/" : "/", SPAN_FMT(span_first(f->ticket, 64)));
    add(t, "sandbox", "Asked by", f->sandbox, false);
    add(t, "tenant", "Tenant", f->tenant, false);
    add(t, "operation", "Operation", f->op, true);
    add(t, "effect", "Effect", f->effect, false);
    add(t, "method", "Method", f->method, true);
    if (f->host.n > 0) {
        (void)snprintf(t->host, sizeof(t->host), "%.*s:%u", SPAN_FMT(span_first(f->host, TELL_FACT_MAX)), f->port);
        add(t, "host", "Host", span_str(t->host), true);
    }
    add(t, "resource", "Resource", f->resource, true);
    add(t, "by", "By", f->by, true);
    add(t, "asked", "Asked now", f->asked, false);
    if (f->since_ms > 0 && utc_text(f->since_ms, false, t->since))
        add(t, "since", "Since", span_str(t->since), false);
    if (f->expires_ms > 0 && utc_text(f->expires_ms, false, t->expires))
        add(t, "expires", "Expires", span_str(t->expires), false);
    if (f->count > 0) {
        (void)snprintf(t->count, sizeof(t->count), "%llu", (unsigned long long)f->count);
        (void)snprintf(t->waiting, sizeof(t->waiting), "%llu", (unsigned long long)f->waiting);
        add(t, "messages", "Messages in one", span_str(t->count), false);
        add(t, "waiting", "Waiting now", span_str(t->waiting), false);
    }
}

/* ---- Standard Webhooks: {"type", "timestamp", "data"} ---- */

static void webhook(const struct tell_facts *f, const struct text *t, struct jsonw *w)
{
    struct dynbuf b;
    jsonw_object(w);
    jsonw_kv(w, "type", span_str(f->event));
    jsonw_kv(w, "timestamp", span_str(t->at));
    jsonw_kv_object(w, "data");
    jsonw_kv(w, "text", span_str(f->words));
    if (f->ticket.n > 0) {
        jsonw_kv(w, "ticket", f->ticket);
        jsonw_kv(w, "state", f->state);
    }
    for (int foreign = 0; foreign < 2; foreign++) {
        if (foreign)
            jsonw_kv_object(w, "untrusted"); /* its letters were not chosen by the operator */
        for (size_t i = 0; i < t->n; i++) {
            const struct fact *a = &t->fact[i];
            if (a->foreign != (foreign == 1))
                continue;
            jsonw_kv(w, a->key, shown(&b, a->value));
            dynbuf_free(&b);
        }
        if (foreign)
            jsonw_end_object(w);
    }
    if (f->nwhose > 0) {
        jsonw_kv_object(w, "waiting_by_sandbox");
        for (size_t i = 0; i < f->nwhose; i++) {
            char name[TELL_NAME_MAX + 1];
            (void)snprintf(name, sizeof(name), "%.*s", SPAN_FMT(span_first(f->whose[i].sandbox, TELL_NAME_MAX)));
            jsonw_kv_u64(w, name, f->whose[i].n);
        }
        jsonw_end_object(w);
    }
    jsonw_kv(w, "link", span_str(t->link));
    jsonw_end_object(w);
    jsonw_end_object(w);
}

/* ---- Slack: Block Kit, https://docs.slack.dev/reference/block-kit ---- */

/* The three characters that its texts are controlled by, of any text. */
static void slack_escape(struct dynbuf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        (void)dynbuf_add(out, s.p[i] == '&'   ? SPAN("&amp;")
                              : s.p[i] == '<' ? SPAN("&lt;")
                              : s.p[i] == '>' ? SPAN("&gt;")
                                              : span_of(s.p + i, 1));
}

/* Never mrkdwn: in plain text nothing is a link, a mention or bold. */
static void slack_text(struct jsonw *w, const char *key, struct span text)
{
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024);
    slack_escape(&b, text);
    if (key != NULL)
        jsonw_kv_object(w, key);
    else
        jsonw_object(w);
    jsonw_kv(w, "type", SPAN("plain_text"));
    jsonw_kv(w, "text", dynbuf_span(&b));
    jsonw_kv_bool(w, "emoji", false);
    jsonw_end_object(w);
    dynbuf_free(&b);
}

static void slack_facts(const struct text *t, bool foreign, struct jsonw *w)
{
    struct dynbuf b, line;
    dynbuf_init(&line, 64 * 1024);
    if (foreign)
        (void)dynbuf_add(&line, SPAN("Not to be trusted: the request chose these letters\n"));
    size_t before = line.n;
    for (size_t i = 0; i < t->n; i++) {
        const struct fact *a = &t->fact[i];
        if (a->foreign != foreign)
            continue;
        struct span value = shown(&b, a->value);
        (void)dynbuf_addf(&line, "%s: %.*s\n", a->name, SPAN_FMT(value));
        dynbuf_free(&b);
    }
    if (line.n > before) {
        jsonw_object(w);
        jsonw_kv(w, "type", SPAN("section"));
        slack_text(w, "text", span_first(dynbuf_span(&line), 2900)); /* Slack's limit is 3000 */
        jsonw_end_object(w);
    }
    dynbuf_free(&line);
}

static void slack_button(struct jsonw *w, const char *words)
{
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("button"));
    slack_text(w, "text", span_str(words));
}

/* A button that opens the page, and where it can be known who presses it one that denies. None that approves, for
 * nobody reads here all that is decided. */
static void slack(const struct tell_facts *f, bool buttons, const struct text *t, struct jsonw *w)
{
    jsonw_object(w);
    jsonw_kv(w, "text", span_str(f->words));
    jsonw_kv_array(w, "blocks");
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("header"));
    slack_text(w, "text", span_str(f->words));
    jsonw_end_object(w);
    slack_facts(t, false, w);
    slack_facts(t, true, w);
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("actions"));
    jsonw_kv_array(w, "elements");
    slack_button(w, "Open");
    jsonw_kv(w, "url", span_str(t->link));
    jsonw_end_object(w);
    if (buttons && f->waits && f->ticket.n > 0) {
        slack_button(w, "Deny");
        jsonw_kv(w, "action_id", SPAN("deny"));
        jsonw_kv(w, "style", SPAN("danger"));
        jsonw_kv(w, "value", f->ticket);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_end_object(w);
    jsonw_end_array(w);
    jsonw_end_object(w);
}

/* ---- mail ---- */

static void mail(const struct tell_facts *f, const struct text *t, struct dynbuf *out)
{
    struct dynbuf b;
    (void)dynbuf_addf(out, "%s.\n\n", f->words);
    for (int foreign = 0; foreign < 2; foreign++) {
        bool said = false;
        for (size_t i = 0; i < t->n; i++) {
            const struct fact *a = &t->fact[i];
            if (a->foreign != (foreign == 1))
                continue;
            if (foreign == 1 && !said)
                (void)dynbuf_add(out, SPAN("\nNot to be trusted: the request chose these letters\n"));
            said = true;
            struct span value = shown(&b, a->value);
            (void)dynbuf_addf(out, "  %s: %.*s\n", a->name, SPAN_FMT(value));
            dynbuf_free(&b);
        }
    }
    for (size_t i = 0; i < f->nwhose; i++)
        (void)dynbuf_addf(out, "  %llu of %.*s\n", (unsigned long long)f->whose[i].n, SPAN_FMT(f->whose[i].sandbox));
    (void)dynbuf_addf(out, "\nOpen: %s\n", t->link);
}

static void subject(const struct tell_facts *f, struct dynbuf *out)
{
    (void)dynbuf_addf(out, "Countersign: %s", f->words);
    if (f->count > 0)
        (void)dynbuf_addf(out, " (%llu wait)", (unsigned long long)f->waiting);
    else if (f->sandbox.n > 0)
        (void)dynbuf_addf(out, " (%.*s)", SPAN_FMT(span_first(f->sandbox, TELL_NAME_MAX)));
}

int tell_write(enum tell_kind k, bool buttons, const struct tell_facts *f, struct dynbuf *title, struct dynbuf *body)
{
    struct text t;
    struct jsonw w;
    dynbuf_init(title, TELL_TITLE_MAX);
    dynbuf_init(body, TELL_BODY_MAX);
    collect(f, &t);
    subject(f, title);
    jsonw_begin(&w, body);
    if (k == TELL_WEBHOOK)
        webhook(f, &t, &w);
    else if (k == TELL_SLACK)
        slack(f, buttons, &t, &w);
    else
        mail(f, &t, body);
    return dynbuf_ok(title) && dynbuf_ok(body) && body->n > 0 ? 0 : -1;
}
