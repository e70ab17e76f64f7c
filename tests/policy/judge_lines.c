/* Judges requests by the line, for tests that ask thousands of questions: one JSON array of texts a line,
 * [sandbox, method, url, "Name: value\n...", body or null], answered by a line "VERDICT CODE RULE OP EFFECT", or
 * "refused" where the gateway would answer 400 before any policy is asked. Usage: judge_lines FILE... */
#include <stdio.h>
#include <stdlib.h>

#include "common/json/json.h"
#include "policy/cli/policy_cli.h"

static bool add_fields(struct asked *q, struct span fields)
{
    while (fields.n) {
        struct span line, name, value;
        (void)span_cut(fields, '\n', &line, &fields);
        if (line.n && (!span_cut(line, ':', &name, &value) || asked_header(q, name, value) != 0))
            return false;
    }
    return true;
}

/* false: the line is no question. */
static bool answer(const struct policy *p, struct span line)
{
    struct asked q;
    struct err e = {""};
    asked_init(&q);
    const struct json *v = json_parse(line, &q.a), *part[5] = {NULL};
    const struct json *c = v && v->type == JSON_ARRAY && v->count == 5 ? v->child : NULL;
    for (size_t i = 0; c != NULL; c = c->next)
        part[i++] = c;
    bool good = part[4] != NULL && add_fields(&q, part[3]->text);
    if (good) {
        q.subject.sandbox = part[0]->text;
        q.request.method = part[1]->text;
        q.request.has_body = part[4]->type == JSON_STRING;
        q.request.body = part[4]->text;
        if (asked_url(&q, part[2]->text, &e) != 0) {
            puts("refused");
        } else {
            const struct decision *d = &q.decision;
            asked_judge(&q, p);
            printf("%s %s %.*s %.*s %s\n", verdict_name(d->verdict), d->code,
                   SPAN_FMT(d->rule.id.n ? d->rule.id : SPAN("-")), SPAN_FMT(d->op.n ? d->op : SPAN("-")),
                   effect_name(d->effect));
        }
    }
    asked_free(&q);
    return good;
}

int main(int argc, char **argv)
{
    struct loaded l;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    const char *const *files = (const char *const *)&argv[1];
    int rc = argc > 1 && loaded_open(&l, files, (size_t)argc - 1, NULL, NULL) == 0 ? 0 : 3;
    if (rc != 0) {
        if (argc > 1)
            print_problems(&l, false);
        return rc;
    }
    while (rc == 0 && (n = getline(&line, &room, stdin)) > 0) {
        rc = answer(l.p, span_of(line, (size_t)n)) ? 0 : 2;
        fflush(stdout);
    }
    free(line);
    loaded_close(&l);
    return rc;
}
