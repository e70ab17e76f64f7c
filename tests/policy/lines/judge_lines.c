/* Judges requests by the line, for tests that ask thousands of questions: one JSON array of texts a line,
 * [sandbox, method, url, "Name: value\n...", body or null], answered by a line "VERDICT CODE RULE OP EFFECT", or
 * "refused" where the gateway would answer 400 before any policy is asked. With two texts more, "label: value\n..."
 * and the second it is judged at, the answer goes on: "CREDENTIAL APPROVERS REASON WITHIN SEND LIMIT,...".
 * Usage: judge_lines [--floors FILE] FILE... */
#include <stdio.h>
#include <stdlib.h>

#include "policy/limit.h"
#include "tests/policy/lines/lines.h"

static struct span or_dash(struct span s)
{
    return s.n ? s : SPAN("-");
}

static void put_terms(const struct policy *p, const struct decision *d)
{
    struct credential c = {.name = SPAN_NONE};
    bool any = d->credential >= 0 && policy_credential(p, (size_t)d->credential, &c);
    printf(" %.*s %.*s %d %llu %u ", SPAN_FMT(or_dash(any ? c.name : SPAN_NONE)), SPAN_FMT(or_dash(d->approve_by)),
           d->reason_required, (unsigned long long)d->within_ms, d->messages.send);
    for (size_t i = 0; i < d->nlimits; i++)
        printf("%.*s/%.*s/%u/%llu/%llu,", SPAN_FMT(d->limits[i].rule), SPAN_FMT(d->limits[i].measure),
               d->limits[i].per, (unsigned long long)d->limits[i].max, (unsigned long long)d->limits[i].window_ms);
    printf("-");
}

static void put_answer(const struct policy *p, const struct decision *d, bool terms)
{
    printf("%s %s %.*s %.*s %s", verdict_name(d->verdict), d->code, SPAN_FMT(or_dash(d->rule.id)),
           SPAN_FMT(or_dash(d->op)), effect_name(d->effect));
    if (terms)
        put_terms(p, d);
    putchar('\n');
}

/* false: the line is no question. */
static bool answer(const struct policy *p, struct span line)
{
    struct asked q;
    uint64_t seconds = 0;
    bool refused = false;
    asked_init(&q);
    const struct json *v = json_parse(line, &q.a), *last[2] = {NULL};
    const struct json *c = v && v->type == JSON_ARRAY && (v->count == 5 || v->count == 7) ? v->child : NULL;
    bool good = c != NULL && lines_request(&q, c->next, &refused) == 0, more = good && v->count == 7;
    for (size_t i = 0; more && c != NULL; i++, c = c->next)
        last[i % 2] = c; /* the sixth and the seventh */
    if (more) {
        good = lines_each(&q, last[1]->text, asked_label) && span_u64(last[0]->text, UINT32_MAX, &seconds) == 0;
        q.now_ms = 1000 * seconds;
    }
    if (good && refused)
        puts("refused");
    if (good && !refused) {
        q.subject.sandbox = v->child->text;
        asked_judge(&q, p);
        put_answer(p, &q.decision, more);
    }
    asked_free(&q);
    return good;
}

int main(int argc, char **argv)
{
    struct dynbuf image;
    char *line = NULL;
    size_t room = 0, skip = argc > 3 && strcmp(argv[1], "--floors") == 0 ? 3 : 1;
    ssize_t n;
    int rc = 0;
    if (argc < 2)
        return 3;
    dynbuf_init(&image, POLICY_IMAGE_MAX);
    struct policy *p = lines_policy((struct policy_place){.paths = (const char *const *)&argv[skip],
                                                          .n = (size_t)argc - skip,
                                                          .floors = skip == 3 ? argv[2] : NULL},
                                    &image);
    if (p == NULL)
        rc = 3;
    while (rc == 0 && (n = getline(&line, &room, stdin)) > 0) {
        rc = answer(p, span_of(line, (size_t)n)) ? 0 : 2;
        fflush(stdout);
    }
    free(line);
    policy_close(p);
    dynbuf_free(&image);
    return rc;
}
