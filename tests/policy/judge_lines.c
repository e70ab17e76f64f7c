/* Judges requests by the line, for tests that ask thousands of questions: one JSON array of texts a line,
 * [sandbox, method, url, "Name: value\n...", body or null], answered by a line "VERDICT CODE RULE OP EFFECT", or
 * "refused" where the gateway would answer 400 before any policy is asked. With two texts more, "label: value\n..."
 * and the second it is judged at, the answer goes on: "CREDENTIAL APPROVERS REASON WITHIN SEND LIMIT,...".
 * Usage: judge_lines [--floors FILE] FILE... */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/json/json.h"
#include "policy/limit.h"
#include "policy/load/disk.h"
#include "policy/test/asked.h"

static bool add_each(struct asked *q, struct span fields, int (*add)(struct asked *, struct span, struct span))
{
    while (fields.n) {
        struct span line, name, value;
        (void)span_cut(fields, '\n', &line, &fields);
        if (line.n && (!span_cut(line, ':', &name, &value) || add(q, span_trim(name), span_trim(value)) != 0))
            return false;
    }
    return true;
}

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
    struct err e = {""};
    uint64_t seconds = 0;
    asked_init(&q);
    const struct json *v = json_parse(line, &q.a), *part[7] = {NULL};
    const struct json *c = v && v->type == JSON_ARRAY && (v->count == 5 || v->count == 7) ? v->child : NULL;
    for (size_t i = 0; c != NULL; c = c->next)
        part[i++] = c;
    bool good = part[4] != NULL && add_each(&q, part[3]->text, asked_header), more = good && part[6] != NULL;
    if (more) {
        good = add_each(&q, part[5]->text, asked_label) && span_u64(part[6]->text, UINT32_MAX, &seconds) == 0;
        q.now_ms = 1000 * seconds;
    }
    if (good) {
        q.subject.sandbox = part[0]->text;
        q.request.method = part[1]->text;
        q.request.has_body = part[4]->type == JSON_STRING;
        q.request.body = part[4]->text;
        if (asked_url(&q, part[2]->text, &e) != 0) {
            puts("refused");
        } else {
            asked_judge(&q, p);
            put_answer(p, &q.decision, more);
        }
    }
    asked_free(&q);
    return good;
}

/* The policy of these files, or NULL after words on stderr; image: born here, the caller's to free. */
static struct policy *open_policy(struct policy_place from, struct dynbuf *image)
{
    static struct policy_problem v[1000];
    struct policy_problems problems = {v, 0, 1000};
    struct err e = {""};
    dynbuf_init(image, POLICY_IMAGE_MAX);
    from.now_ms = (uint64_t)time(NULL) * 1000;
    struct policy *p =
        policy_load_from_disk(&from, image, &problems, &e) == 0 ? policy_open(dynbuf_span(image), &e) : NULL;
    for (size_t i = 0; p == NULL && i < problems.n; i++)
        fprintf(stderr, "%s: %s: %s\n", v[i].where, v[i].code, v[i].text);
    if (p == NULL)
        fprintf(stderr, "%s\n", e.text);
    return p;
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
    struct policy *p = open_policy((struct policy_place){.paths = (const char *const *)&argv[skip],
                                                         .n = (size_t)argc - skip,
                                                         .floors = skip == 3 ? argv[2] : NULL,
                                                         .packs = getenv("PACKS")},
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
