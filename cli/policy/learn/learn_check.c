/* A proposal that is tried: loaded, and every kind of request judged by it. */
#include <limits.h>
#include <stdio.h>

#include "cli/policy/learn/learn.h"
#include "policy/explain.h"
#include "policy/load/disk.h"

/* Loaded as any policy, though it is in no file: with the policy there is, or alone. */
static int load_text(struct span text, const struct cli_call *c, const char *name, struct loaded *l)
{
    const char *policy = cli_value(c, "policy");
    const char *const paths[] = {policy ? policy : name, name};
    const struct span texts[] = {policy ? SPAN_NONE : text, text};
    return loaded_open(l, (struct policy_place){.paths = paths,
                                                .texts = texts,
                                                .n = policy ? 2 : 1,
                                                .packs = cli_value(c, "packs"),
                                                .signers = cli_value(c, "signers")});
}

/* Does the rule for it decide, as it should, and with the credential that it says? */
static enum left judge(struct bench *b, const struct shape *s, const char *name)
{
    struct opinion o;
    bench_judge(b, &s->sample, s->sample_ms, &o);
    if (o.unknown == UNKNOWN_NOTHING && strcmp(o.code, "residency") == 0)
        return LEFT_RESIDENCY;
    bool right = o.unknown == UNKNOWN_NOTHING && o.verdict == (s->read ? VERDICT_ALLOW : VERDICT_HOLD) &&
                 span_eq(o.rule.file, span_str(name)) &&
                 span_eq(o.credential, s->use == USE_GIVEN ? s->used[0] : SPAN_NONE);
    return right ? LEFT_NOT : LEFT_UNSURE;
}

/* Is a read allowed by it and all else held, and nothing not judged? How many are not; leave: they are left out. */
static int judge_all(struct learnt *t, const struct loaded *l, struct source *source, const char *name, bool leave,
                     size_t *wrong)
{
    struct bench *b = bench_new(l->p, source);
    *wrong = 0;
    for (size_t i = 0; b && i < t->n; i++) {
        struct shape *s = t->shape[i];
        enum left why = s->left ? s->left : judge(b, s, name);
        *wrong += why != s->left;
        s->left = leave ? why : s->left;
    }
    int rc = b ? 0 : -1;
    bench_free(&b);
    return rc;
}

static size_t count_rules(const struct learnt *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->shape[i]->left == LEFT_NOT;
    return n;
}

int learn_check(struct learnt *t, struct source *source, const struct cli_call *c, size_t *wrong)
{
    struct dynbuf text;
    struct loaded l = {0};
    char name[PATH_MAX];
    const char *policy = cli_value(c, "policy");
    *wrong = 0;
    if (count_rules(t) == 0)
        return 0;
    (void)snprintf(name, sizeof(name), "%s(proposed)", policy ? policy : "");
    dynbuf_init(&text, LEARNT_MAX);
    (void)dynbuf_add(&text, policy ? SPAN("version: 1\nrules:\n") : SPAN_NONE);
    learn_write(t, policy == NULL, &text);
    int rc = dynbuf_ok(&text) ? load_text(dynbuf_span(&text), c, name, &l) : err_set(&l.e, "it would be too long");
    if (rc != 0)
        loaded_print(&l, false);
    else
        rc = judge_all(t, &l, source, name, true, wrong);
    loaded_close(&l);
    dynbuf_free(&text);
    return rc;
}

/* The same of the file as it would be: where the lines of a patch go is found without reading YAML. */
int learn_check_patched(struct learnt *t, struct source *source, const struct cli_call *c, struct span text,
                        struct err *e)
{
    struct loaded l = {0};
    size_t wrong = 0, rules = count_rules(t);
    if (text.n == 0)
        return 0;
    const char *policy = cli_value(c, "policy");
    int rc = loaded_open(&l, (struct policy_place){.paths = &policy,
                                                   .texts = &text,
                                                   .n = 1,
                                                   .packs = cli_value(c, "packs"),
                                                   .signers = cli_value(c, "signers")});
    if (rc != 0)
        (void)err_set(e, "the file would not be valid with it, leave --patch out and copy the rules: %.200s",
                      l.e.text);
    else if (judge_all(t, &l, source, policy, false, &wrong) != 0 || wrong ||
             policy_rules(l.p) != policy_rules(t->policy) + rules)
        rc = err_set(e, "the file would not do with it what is proposed: leave --patch out and copy the rules");
    loaded_close(&l);
    return rc;
}
