#include "proxy/fetcher/job/gates/gate.h"

#include "common/arena.h"
#include "proxy/fetcher/job/gates/model.h"
#include "proxy/fetcher/job/gates/verdict.h"

enum { JSON_MEMORY = 8 * 1024 * 1024, QUESTION_MAX = 2 * 1024 * 1024 };

/* Nobody is asked elsewhere because an answer says so, and nothing is read of one that is no plain yes to the
 * question itself. */
static struct span answer_of(const struct job *j, struct http *h, struct span question)
{
    struct err e = {{0}};
    struct span body = SPAN_NONE;
    unsigned status = 0;
    if (http_post(h, question, &status, &body, &e) != 0)
        job_failed(j, "%s", e.text);
    if (status == 429 || status == 503 ||
        status == 529) /* RFC 6585 4, RFC 9110 15.6.4; 529: so some models' servers say it */
        job_busy(j, "it has no room now (status %u)", status);
    if (status != 200)
        job_failed(j, "it answered with status %u, not 200", status);
    return body;
}

void gate_webhook(const struct job *j, struct http *h)
{
    struct err e = {{0}};
    struct arena a;
    struct span reason, body = answer_of(j, h, j->ask.input);
    arena_init(&a, JSON_MEMORY);
    enum gate_said said = verdict_read(body, &a, &reason, &e);
    if (said == GATE_FAILED)
        job_failed(j, "%s", e.text);
    verdict_done(j, said, reason);
}

void gate_model(const struct job *j, struct http *h)
{
    struct err e = {{0}};
    struct arena a;
    struct dynbuf question;
    struct span reason;
    arena_init(&a, JSON_MEMORY);
    dynbuf_init(&question, QUESTION_MAX);
    if (model_question(&j->ask, &a, &question, &e) != 0)
        job_failed(j, "%s", e.text);
    struct span body = answer_of(j, h, dynbuf_span(&question));
    enum gate_said said = model_answer(&j->ask, body, &a, &reason, &e);
    if (said == GATE_FAILED)
        job_failed(j, "%s", e.text);
    verdict_done(j, said, reason);
}
