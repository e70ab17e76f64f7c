#include "proxy/fetcher/job/gates/verdict.h"

#include "common/json/json.h"
#include "proxy/fetcher/job/job.h"

static enum gate_said word(struct span s)
{
    return span_eq(s, SPAN("allow"))     ? GATE_ALLOW
           : span_eq(s, SPAN("deny"))    ? GATE_DENY
           : span_eq(s, SPAN("abstain")) ? GATE_ABSTAIN
                                         : GATE_FAILED;
}

/* It goes to a person's page, to a terminal and to the agent: on one line. */
static bool one_line(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x20 || s.p[i] == 0x7f || (s.p[i] == 0xc2 && i + 1 < s.n && s.p[i + 1] < 0xa0))
            return false;
    return true;
}

enum gate_said verdict_of(const struct json *all, struct span *reason, struct err *e)
{
    enum gate_said said = GATE_FAILED;
    *reason = SPAN_NONE;
    if (all->type != JSON_OBJECT) {
        err_set(e, "what it said is not one JSON object");
        return GATE_FAILED;
    }
    for (const struct json *m = all->child; m != NULL; m = m->next) {
        bool decision = span_eq(m->key, SPAN("decision"));
        if ((!decision && !span_eq(m->key, SPAN("reason"))) || m->type != JSON_STRING) {
            err_set(e, "what it said has more in it than the texts decision and reason");
            return GATE_FAILED;
        }
        if (decision)
            said = word(m->text);
        else
            *reason = m->text;
    }
    if (said == GATE_FAILED)
        err_set(e, "its decision is none of allow, deny and abstain");
    return said;
}

enum gate_said verdict_read(struct span printed, struct arena *a, struct span *reason, struct err *e)
{
    const struct json *all = printed.n <= VERDICT_OUT_MAX ? json_parse(printed, a) : NULL;
    *reason = SPAN_NONE;
    if (all == NULL || all->type != JSON_OBJECT) {
        err_set(e, "what it said is not one JSON object of at most %d KiB", VERDICT_OUT_MAX / 1024);
        return GATE_FAILED;
    }
    enum gate_said said = verdict_of(all, reason, e);
    if (said == GATE_FAILED || (reason->n <= VERDICT_WORDS_MAX && one_line(*reason)))
        return said;
    err_set(e, "its reason is longer than %d bytes, or not on one line", VERDICT_WORDS_MAX);
    return GATE_FAILED;
}

void verdict_done(const struct job *j, enum gate_said said, struct span reason)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 + VERDICT_WORDS_MAX);
    if (dynbuf_add_byte(&b, (uint8_t)said) != 0 || dynbuf_add(&b, reason) != 0)
        job_failed(j, "there is no memory for what it said");
    job_done(j, dynbuf_span(&b), 0, SPAN_NONE);
}
