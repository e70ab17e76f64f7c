/* A GitHub App's installation token, for some repositories and permissions of what the installation has. The JWT that
 * it is asked with was signed by the keeper. */
#include "common/arena.h"
#include "common/json/json.h"
#include "common/time/clock.h"
#include "common/time/instant.h"
#include "proxy/fetcher/job/sources.h"

#include <stdio.h>

enum { JSON_MEMORY = 8 * 1024 * 1024, QUESTION_MAX = 64 * 1024, FIELD_MAX = 16 * 1024, PATH_MAX_BYTES = 128 };

int github_app_question(const struct wire_fetch *f, struct dynbuf *body, struct err *e)
{
    static const struct span permission = SPAN("permission.");
    struct span first = wire_setting(f, SPAN("repositories"), 0), one;
    struct jsonw w;
    char name[64];
    jsonw_begin(&w, body);
    jsonw_object(&w);
    if (!span_eq(first, SPAN("*"))) {
        jsonw_kv_array(&w, "repositories");
        for (size_t i = 0; (one = wire_setting(f, SPAN("repositories"), i)).n; i++)
            jsonw_string(&w, one);
        jsonw_end_array(&w);
    }
    jsonw_kv_object(&w, "permissions");
    for (size_t i = 0; i < f->nsettings; i++) {
        if (!span_starts(f->setting[i].key, permission))
            continue;
        int n = snprintf(name, sizeof(name), "%.*s", SPAN_FMT(span_from(f->setting[i].key, permission.n)));
        if (n <= 0 || (size_t)n >= sizeof(name))
            return err_set(e, "a permission's name is too long");
        jsonw_kv(&w, name, f->setting[i].value);
    }
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    return first.n && dynbuf_ok(body) ? 0 : err_set(e, "what it is asked with is too long, or says no repositories");
}

int github_app_answer(struct span json, uint64_t now_ms, struct arena *a, struct wire_fetched *out, struct err *e)
{
    const struct json *all = json_parse(json, a);
    *out = (struct wire_fetched){.ok = false};
    if (all == NULL || all->type != JSON_OBJECT)
        return err_set(e, "GitHub's answer is not a JSON object");
    out->value = json_text(all, SPAN("token"));
    if (out->value.n == 0)
        return err_set(e, "GitHub's answer has no token");
    if (instant_left(json_text(all, SPAN("expires_at")), now_ms, &out->lifetime_ms) != 0)
        return err_set(e, "expires_at of GitHub's answer is no time with its zone");
    return 0;
}

static const char *explain(unsigned status)
{
    return status == 401   ? ": the key is not the app's, app_id is another one's, or a clock is wrong"
           : status == 403 ? ": the app or its installation was suspended"
           : status == 404 ? ": the app has no such installation"
           : status == 422 ? ": the installation has not all of these repositories and permissions"
                           : "";
}

void source_github_app(const struct job *j, struct http *h)
{
    struct wire_fetched got;
    struct dynbuf question, field;
    struct arena a;
    struct err e = {{0}};
    struct span answer;
    unsigned status = 0;
    char path[PATH_MAX_BYTES];
    arena_init(&a, JSON_MEMORY);
    dynbuf_init(&question, QUESTION_MAX);
    dynbuf_init(&field, FIELD_MAX);
    if (github_app_question(&j->ask, &question, &e) != 0)
        job_failed(j, "%s", e.text);
    (void)dynbuf_addf(&field, "Authorization: Bearer %.*s", SPAN_FMT(wire_setting(&j->ask, SPAN("assertion"), 0)));
    int n = snprintf(path, sizeof(path), "/app/installations/%.*s/access_tokens",
                     SPAN_FMT(wire_setting(&j->ask, SPAN("installation"), 0)));
    if (!dynbuf_ok(&field) || n < 0 || (size_t)n >= sizeof(path))
        job_failed(j, "what it is asked with is too long");
    const struct http_ask ask = {.method = "POST",
                                 .path = span_str(path),
                                 .fields = {SPAN("Accept: application/vnd.github+json"), dynbuf_span(&field),
                                            SPAN("Content-Type: application/json"),
                                            SPAN("X-GitHub-Api-Version: 2022-11-28")},
                                 .body = dynbuf_span(&question)};
    if (http_ask(h, &ask, &status, &answer, &e) != 0)
        job_failed(j, "GitHub: %s", e.text);
    dynbuf_wipe(&field);
    if (status != 201)
        job_failed(j, "GitHub answered %u%s", status, explain(status));
    if (github_app_answer(answer, clock_ms(CLOCK_REALTIME), &a, &got, &e) != 0)
        job_failed(j, "%s", e.text);
    job_done(j, got.value, got.lifetime_ms, SPAN_NONE);
}
