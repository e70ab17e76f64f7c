/* countersign policy explain: what is asked, from words, a curl command line or a record. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/policy/explain/explain.h"
#include "cli/policy/show.h"
#include "policy/load/disk.h"
#include "common/time/instant.h"

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

/* --ref "update refs/heads/x": the body of the push that git would send. */
static int ask_refs(const struct cli_call *c, struct asked *q, struct err *e)
{
    const char *texts[CLI_GIVEN_MAX];
    struct git_ref refs[CLI_GIVEN_MAX];
    size_t n = cli_values(c, "ref", texts, CLI_GIVEN_MAX);
    for (size_t i = 0; i < n; i++)
        if (!asked_ref(span_str(texts[i]), &refs[i]))
            return err_set(e, "--ref is \"create REF\", \"update REF\" or \"delete REF\"");
    if (n == 0)
        return 0;
    q->request.has_body = true;
    if (asked_refs(&q->a, refs, n, &q->request.body) != 0)
        return err_set(e, "no memory");
    return asked_header(q, SPAN("Content-Type"), SPAN("application/x-git-receive-pack-request"));
}

static bool looks_url(const char *word)
{
    return strstr(word, "://") != NULL;
}

static bool looks_method(const char *word)
{
    size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return n > 0 && word[n] == '\0';
}

static int ask_words(const struct cli_call *c, struct asked *q, struct err *e)
{
    struct span name, value;
    const char *headers[CLI_GIVEN_MAX], *body = cli_value(c, "body"), *data = cli_value(c, "data");
    size_t n = cli_values(c, "header", headers, CLI_GIVEN_MAX);
    q->request.method = span_str(c->word[0]);
    if (!looks_method(c->word[0]))
        q->note = "a method is compared as it is written, and HTTP writes its own in capitals: GET, POST";
    for (size_t i = 0; i < n; i++)
        if (!span_cut(span_str(headers[i]), ':', &name, &value) || asked_header(q, name, value) != 0)
            return err_set(e, "--header is \"NAME: VALUE\"");
    q->request.has_body = body != NULL;
    if (body && policy_read_file(body, BODY_FILE_MAX, &q->a, &q->request.body, e) != 0)
        return -1;
    if (data && add_data(q, span_str(data)) != 0)
        return err_set(e, "too many headers");
    if (ask_refs(c, q, e) != 0)
        return -1;
    return asked_url(q, span_str(c->word[1]), e);
}

static int ask_when(const struct cli_call *c, struct asked *q, struct err *e)
{
    const char *at = cli_value(c, "at");
    const char *why = at ? instant_of(span_str(at), &q->now_ms) : NULL;
    return why ? err_set(e, "--at %s", why) : 0;
}

static int ask_labels(const struct cli_call *c, struct asked *q, struct err *e)
{
    struct span name, value;
    const char *labels[CLI_GIVEN_MAX];
    size_t n = cli_values(c, "label", labels, CLI_GIVEN_MAX);
    for (size_t i = 0; i < n; i++) {
        if (!span_cut(span_str(labels[i]), '=', &name, &value) || name.n == 0)
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

static int ask(const struct cli_call *c, struct asked *q, struct err *e)
{
    struct span text = SPAN_NONE;
    const char *record = cli_value(c, "record"), *curl = cli_value(c, "curl"), *as = cli_value(c, "as");
    int rc = ask_labels(c, q, e);
    if (rc != 0)
        return rc;
    if (record)
        rc = strcmp(record, "-") == 0 ? read_stdin(&q->a, &text, e)
                                      : policy_read_file(record, RECORD_MAX, &q->a, &text, e);
    if (rc == 0)
        rc = record ? asked_record(q, text, e) : curl ? asked_curl(q, span_str(curl), e) : ask_words(c, q, e);
    if (as)
        q->subject.sandbox = span_str(as);
    return rc;
}

static bool looks_file(const char *word)
{
    return !looks_url(word) && !looks_method(word);
}

static const char *find_word(const struct cli_call *c, bool (*is)(const char *word))
{
    for (size_t i = 0; i < c->nwords; i++)
        if (is(c->word[i]))
            return c->word[i];
    return NULL;
}

/* Where the request comes from: one way, and what belongs to it. */
static const char *why_usage(const struct cli_call *c)
{
    bool curl = cli_flag(c, "curl"), record = cli_flag(c, "record"), words = !curl && !record;
    bool body = cli_flag(c, "body"), data = cli_flag(c, "data"), refs = cli_flag(c, "ref");
    if (curl && record)
        return "takes --curl or --record, not both";
    if (!words && (body || data || refs || cli_flag(c, "header")))
        return "takes --body, --data and --header with METHOD and URL: a curl command and a record have their own";
    if (body + data + refs > 1)
        return "takes --body, --data or --ref, not two of them";
    if (c->nwords < 1 || (words && !find_word(c, looks_url)))
        return words ? "needs METHOD URL FILE..., in this order, the URL with http:// or https://: GET "
                       "https://example.com/ policy.yaml"
                     : "needs the policy: FILE...";
    return NULL;
}

/* METHOD URL FILE in another order, or one of them missing: *right, the order that is meant. */
static bool other_order(const struct cli_call *c, char *right, size_t room)
{
    const char *method = find_word(c, looks_method), *url = find_word(c, looks_url), *file = find_word(c, looks_file);
    if (cli_flag(c, "curl") || cli_flag(c, "record"))
        return false;
    if (c->nwords >= 3 && (!url || (looks_url(c->word[1]) && (looks_method(c->word[0]) || !method))))
        return false; /* what is wrong with them then is said of each */
    (void)snprintf(right, room, "%s %s %s", method ? method : "METHOD", url ? url : "URL", file ? file : "FILE");
    return true;
}

static int exit_of(const struct decision *d)
{
    return d->need_body || d->verdict == VERDICT_DENY ? CLI_DENY : d->verdict == VERDICT_HOLD ? CLI_HOLD : CLI_OK;
}

int policy_explain(const struct cli_call *c)
{
    struct loaded l = {0};
    struct asked q;
    struct dynbuf out;
    struct err e = {""};
    int rc = CLI_USAGE;
    const char *wrong = why_usage(c);
    char right[2 * PATH_MAX];
    size_t skip = cli_flag(c, "curl") || cli_flag(c, "record") ? 0 : 2;
    asked_init(&q);
    dynbuf_init(&out, 4 << 20);
    if (wrong) {
        fprintf(stderr, "countersign policy explain %s\n", wrong);
        goto out;
    }
    if (other_order(c, right, sizeof right)) {
        fprintf(stderr,
                "countersign policy explain: the order is METHOD URL FILE...: countersign policy explain %s\n",
                right);
        goto out;
    }
    if (loaded_open_for(&l, c, (const char *const *)c->word + skip, c->nwords - skip, cli_value(c, "floors")) != 0) {
        loaded_print(&l, c->json);
        rc = CLI_INVALID;
        goto out;
    }
    if (ask(c, &q, &e) != 0 || ask_when(c, &q, &e) != 0) {
        fprintf(stderr, "countersign policy explain: %s\n", e.text);
        goto out;
    }
    asked_judge(&q, l.p);
    rc = exit_of(&q.decision);
    if (c->json)
        explain_json(&l, &q, &out);
    else
        explain_print(&l, &q, "");
    if (c->json && show_json(&out) != 0)
        rc = CLI_RUNTIME;
out:
    dynbuf_free(&out);
    asked_free(&q);
    loaded_close(&l);
    return rc;
}
