/* Which credential a proposed rule uses: the one that all of its requests went with, where the policy there is has it
 * and lets it go there. Never one that some of them went without: that would give them more than they had. */
#include "cli/policy/learn/learn.h"

/* A denied one was never sent with it, nor one that went no further for another reason. */
static bool went_or_waits(const struct record *r)
{
    static const struct span codes[] = {SPAN("rule"), SPAN("floor"), SPAN("over-limit")};
    bool decided = false;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        decided |= span_eq(r->code, codes[i]);
    return decided && (span_eq(r->verdict, SPAN("allow")) || span_eq(r->verdict, SPAN("hold")));
}

void learn_take_credential(struct learnt *t, struct shape *s, const struct record *r)
{
    size_t i = 0;
    /* Of what is refused, only learned or not enforced, no rule said that it goes without. */
    if (r->credential.n == 0) {
        s->bare |= !r->shadow && !span_eq(r->verdict, SPAN("deny")) && span_eq(r->code, SPAN("rule"));
        return;
    }
    if (!went_or_waits(r)) {
        s->doubt[DOUBT_UNSENT] = true;
        return;
    }
    while (i < s->nused && !span_eq(s->used[i], r->credential))
        i++;
    if (i == s->nused && i < CREDENTIALS_MOST)
        s->used[s->nused++] = arena_copy(&t->a, r->credential);
}

static bool find_credential(const struct policy *p, struct span name, size_t *at, struct credential *c)
{
    for (*at = 0; policy_credential(p, *at, c); (*at)++)
        if (span_eq(c->name, name))
            return true;
    return false;
}

static bool path_may(const struct policy *p, size_t at, const struct shape *s, struct span base, struct span end)
{
    struct dynbuf path;
    dynbuf_init(&path, 2 * RECORD_CUT);
    (void)dynbuf_add(&path, base);
    (void)dynbuf_add(&path, end);
    bool may = dynbuf_ok(&path) &&
               policy_credential_may_go(p, at, s->scheme, s->host, (uint16_t)s->port, dynbuf_span(&path));
    dynbuf_free(&path);
    return may;
}

/* A rule about a repository is about the list of its refs and what comes after. */
static bool may_go(const struct policy *p, size_t at, const struct shape *s)
{
    static const struct span ends[] = {SPAN("/info/refs"), SPAN("/git-upload-pack"), SPAN("/git-receive-pack")};
    struct span base = s->path;
    if (!learn_is_git(s))
        return path_may(p, at, s, s->path, SPAN_NONE);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (span_ends(s->path, ends[i]))
            base = span_first(s->path, s->path.n - ends[i].n);
    return path_may(p, at, s, base, ends[0]) &&
           path_may(p, at, s, base, span_eq(s->op, SPAN("git.push")) ? ends[2] : ends[1]);
}

static bool clear_text_may(const struct policy *p, const struct shape *s, const struct credential *c, struct arena *a)
{
    struct upstream u;
    return span_eq(s->scheme, SPAN("https")) ||
           (!c->certificate && policy_upstream(p, s->host, (uint16_t)s->port, a, &u) && u.cleartext_credentials);
}

void learn_use(struct learnt *t)
{
    for (size_t i = 0; i < t->n; i++) {
        struct shape *s = t->shape[i];
        struct credential c;
        size_t at = 0;
        s->doubt[DOUBT_UNSENT] &= s->nused == 0;
        s->use = s->nused == 0                                      ? USE_NONE
                 : s->nused > 1                                     ? USE_SEVERAL
                 : s->bare                                          ? USE_SOMETIMES
                 : t->policy == NULL                                ? USE_NO_POLICY
                 : !find_credential(t->policy, s->used[0], &at, &c) ? USE_UNKNOWN
                 : !may_go(t->policy, at, s)                        ? USE_NOT_HERE
                 : !clear_text_may(t->policy, s, &c, &t->a)         ? USE_CLEARTEXT
                                                                    : USE_GIVEN;
    }
}
