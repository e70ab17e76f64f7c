#include "tests/policy/lines/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct policy *lines_policy(struct policy_place from, struct dynbuf *image)
{
    static struct policy_problem v[1000];
    struct policy_problems problems = {v, 0, 1000};
    struct err e = {""};
    from.packs = getenv("PACKS");
    from.now_ms = (uint64_t)time(NULL) * 1000;
    struct policy *p =
        policy_load_from_disk(&from, image, &problems, &e) == 0 ? policy_open(dynbuf_span(image), &e) : NULL;
    for (size_t i = 0; p == NULL && i < problems.n; i++)
        fprintf(stderr, "%s: %s: %s\n", v[i].where, v[i].code, v[i].text);
    if (p == NULL)
        fprintf(stderr, "%s\n", e.text);
    return p;
}

bool lines_each(struct asked *q, struct span fields, int (*add)(struct asked *, struct span, struct span))
{
    while (fields.n) {
        struct span line, name, value;
        (void)span_cut(fields, '\n', &line, &fields);
        if (line.n && (!span_cut(line, ':', &name, &value) || add(q, span_trim(name), span_trim(value)) != 0))
            return false;
    }
    return true;
}

int lines_request(struct asked *q, const struct json *v, bool *refused)
{
    const struct json *part[4] = {NULL};
    struct err e = {""};
    for (size_t i = 0; i < 4 && v != NULL; i++, v = v->next)
        part[i] = v;
    if (part[3] == NULL || !lines_each(q, part[2]->text, asked_header))
        return -1;
    q->request.method = part[0]->text;
    q->request.has_body = part[3]->type == JSON_STRING;
    q->request.body = part[3]->text;
    *refused = asked_url(q, part[1]->text, &e) != 0;
    return 0;
}
