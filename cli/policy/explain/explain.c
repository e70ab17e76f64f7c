/* countersign policy explain: what is asked, from words, a curl command line or a record. */
#include <stdio.h>

#include "cli/policy/explain/explain.h"
#include "cli/policy/show.h"
#include "policy/load/disk.h"
#include "policy/load/read/instant.h"

enum { BODY_FILE_MAX = 64 * 1024 * 1024, RECORD_MAX = 1024 * 1024 };

static int read_stdin(struct arena *a, struct span *out, struct err *e)
{
    uint8_t *bytes = arena_alloc(a, RECORD_MAX + 1);
    size_t n = bytes ? fread(bytes, 1, RECORD_MAX + 1, stdin) : 0;
    if (bytes == NULL || n > RECORD_MAX)
        return err_set(e, "standard input has more than the %d bytes of a record", RECORD_MAX);
    *out = span_of(bytes, n);
    return 0;
}

/* --data without a Content-Type: what it looks like. */
static int add_data(struct asked *q, struct span data)
{
    struct span rest = span_trim(data);
    bool typed = false;
    for (size_t i = 0; i < q->request.nfields; i++)
        typed |= span_ieq(q->request.fields[i].name, SPAN("Content-Type"));
    q->request.has_body = true;
    q->request.body = data;
    if (typed)
        return 0;
    bool json = span_starts(rest, SPAN("{")) || span_starts(rest, SPAN("["));
    q->note = json ? "--data is taken for JSON: --header \"Content-Type: ...\" says otherwise"
                   : "--data is taken for a form: --header \"Content-Type: ...\" says otherwise";
    return asked_header(q, SPAN("Content-Type"),
                        json ? SPAN("application/json") : SPAN("application/x-www-form-urlencoded"));
}

#define ZERO_ID "0000000000000000000000000000000000000000"
#define A_ID    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B_ID    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* --ref "update refs/heads/x": the body of the push that git would send. */
static int ask_refs(const struct policy_args *a, struct asked *q, struct err *e)
{
    static const struct {
        struct span verb, old_id, new_id;
    } verbs[] = {{SPAN("create"), SPAN(ZERO_ID), SPAN(A_ID)},
                 {SPAN("update"), SPAN(A_ID), SPAN(B_ID)},
                 {SPAN("delete"), SPAN(A_ID), SPAN(ZERO_ID)}};
    struct git_ref refs[CLI_WORDS_MAX];
    struct span verb, name;
    for (size_t i = 0; i < a->nrefs; i++) {
        size_t k = 0;
        bool cut = span_cut(span_str(a->refs[i]), ' ', &verb, &name);
        while (k < 3 && !span_eq(verbs[k].verb, verb))
            k++;
        if (!cut || k == 3)
            return err_set(e, "--ref is \"create REF\", \"update REF\" or \"delete REF\"");
        refs[i] = (struct git_ref){name, verbs[k].old_id, verbs[k].new_id};
    }
    if (a->nrefs == 0)
        return 0;
    q->request.has_body = true;
    if (asked_refs(&q->a, refs, a->nrefs, &q->request.body) != 0)
        return err_set(e, "no memory");
    return asked_header(q, SPAN("Content-Type"), SPAN("application/x-git-receive-pack-request"));
}

static int ask_words(const struct policy_args *a, struct asked *q, struct err *e)
{
    struct span name, value;
    q->request.method = span_str(a->words[0]);
    for (size_t i = 0; i < a->nheaders; i++)
        if (!span_cut(span_str(a->headers[i]), ':', &name, &value) || asked_header(q, name, value) != 0)
            return err_set(e, "--header is \"NAME: VALUE\"");
    q->request.has_body = a->body != NULL;
    if (a->body && policy_read_file(a->body, BODY_FILE_MAX, &q->a, &q->request.body, e) != 0)
        return -1;
    if (a->data && add_data(q, span_str(a->data)) != 0)
        return err_set(e, "too many headers");
    if (ask_refs(a, q, e) != 0)
        return -1;
    return asked_url(q, span_str(a->words[1]), e);
}

static int ask_when(const struct policy_args *a, struct asked *q, struct err *e)
{
    const char *why = a->at ? scalar_instant(span_str(a->at), &q->now_ms) : NULL;
    return why ? err_set(e, "--at %s", why) : 0;
}

static int ask_labels(const struct policy_args *a, struct asked *q, struct err *e)
{
    struct span name, value;
    for (size_t i = 0; i < a->nlabels; i++) {
        if (!span_cut(span_str(a->labels[i]), '=', &name, &value) || name.n == 0)
            return err_set(e, "--label is KEY=VALUE");
        for (size_t k = 0; k < q->subject.nlabels; k++)
            if (span_eq(q->subject.labels[k].key, name))
                return err_set(e, "--label %.*s is there twice: a sandbox has one value of each label",
                               SPAN_FMT(span_first(name, 100)));
        if (asked_label(q, name, value) != 0)
            return err_set(e, "too many labels");
    }
    return 0;
}

static int ask(const struct policy_args *a, struct asked *q, struct err *e)
{
    struct span text = SPAN_NONE;
    int rc = ask_labels(a, q, e);
    if (rc != 0)
        return rc;
    if (a->record)
        rc = strcmp(a->record, "-") == 0 ? read_stdin(&q->a, &text, e)
                                         : policy_read_file(a->record, RECORD_MAX, &q->a, &text, e);
    if (rc == 0)
        rc = a->record ? asked_record(q, text, e)
             : a->curl ? asked_curl(q, span_str(a->curl), e)
                       : ask_words(a, q, e);
    if (a->as)
        q->subject.sandbox = span_str(a->as);
    return rc;
}

/* Where the request comes from: one way, and what belongs to it. */
static const char *why_usage(const struct policy_args *a)
{
    bool words = a->curl == NULL && a->record == NULL;
    if (a->curl && a->record)
        return "takes --curl or --record, not both";
    if (!words && (a->body || a->data || a->nheaders || a->nrefs))
        return "takes --body, --data and --header with METHOD and URL: a curl command and a record have their own";
    if ((a->body != NULL) + (a->data != NULL) + (a->nrefs > 0) > 1)
        return "takes --body, --data or --ref, not two of them";
    if (a->nwords < (words ? 3 : 1))
        return words ? "needs METHOD URL FILE..., in this order: GET https://example.com/ policy.yaml"
                     : "needs the policy: FILE...";
    return NULL;
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
    const char *wrong = why_usage(a);
    size_t skip = a->curl || a->record ? 0 : 2;
    asked_init(&q);
    dynbuf_init(&out, 4 << 20);
    if (wrong) {
        fprintf(stderr, "countersign policy explain %s\n", wrong);
        goto out;
    }
    if (loaded_open_signed(&l, a->words + skip, a->nwords - skip, a->floors, a->packs, a->signers) != 0) {
        print_problems(&l, a->json);
        rc = EXIT_POLICY_INVALID;
        goto out;
    }
    if (ask(a, &q, &e) != 0 || ask_when(a, &q, &e) != 0) {
        fprintf(stderr, "countersign policy explain: %s\n", e.text);
        goto out;
    }
    asked_judge(&q, l.p);
    rc = exit_of(&q.decision);
    if (a->json)
        json_explain(&l, &q, &out);
    else
        print_explain(&l, &q, "");
    if (a->json && show_json(&out) != 0)
        rc = EXIT_POLICY_RUNTIME;
out:
    dynbuf_free(&out);
    asked_free(&q);
    loaded_close(&l);
    return rc;
}
