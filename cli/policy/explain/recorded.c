/* One request of the audit (`countersign audit tail --json`), asked again from what was recorded of it: not its
 * fields, nor its body but for the refs of a push. */
#include "cli/policy/explain/explain.h"

#include <stdio.h>

#include "common/json/json.h"
#include "common/time/instant.h"

static int add_refs(struct asked *q, const struct json *refs, struct span url, struct err *e)
{
    struct git_ref *v = arena_alloc(&q->a, (refs->count + 1) * sizeof(*v));
    size_t n = 0;
    for (const struct json *j = refs->child; v && j; j = j->next)
        if (!asked_ref(j->text, &v[n++]))
            return err_set(e, "the record does not have all refs of the push");
    struct span end = SPAN("/git-receive-pack");
    return v ? asked_push(q, span_first(url, url.n - end.n), v, n, e) : err_set(e, "no memory");
}

static int add_seen(struct asked *q, const struct json *j, struct err *e)
{
    const struct json *body = json_get(j, SPAN("body")), *upgrade = json_get(j, SPAN("upgrade"));
    struct span type = json_text(j, SPAN("type"));
    int rc = 0;
    if (type.n)
        rc |= asked_header(q, SPAN("Content-Type"), type);
    if (upgrade && upgrade->type == JSON_BOOL && upgrade->truth)
        rc |= asked_header(q, SPAN("Upgrade"), SPAN("websocket"));
    else if (asked_overrides(q->request.method, body != NULL, json_text(j, SPAN("op")), q->wrote))
        rc |= asked_header(q, SPAN("X-HTTP-Method-Override"), SPAN("POST"));
    if (rc != 0)
        return err_set(e, "no memory");
    q->request.has_body = body && body->type == JSON_BOOL && body->truth;
    q->request.body_complete = !q->request.has_body;
    return 0;
}

/* It is judged as of its own time, unless another one is asked for. A fraction of a second decides nothing. */
static void take_time(struct asked *q, struct span time)
{
    uint8_t whole[20];
    uint64_t ms = 0;
    if (time.n < sizeof(whole) || time.p[time.n - 1] != 'Z')
        return;
    memcpy(whole, time.p, sizeof(whole));
    whole[19] = 'Z';
    if (instant_of(span_of(whole, sizeof(whole)), &ms) == NULL)
        q->now_ms = ms;
}

int asked_record(struct asked *q, struct span text, struct err *e)
{
    const struct json *j = json_parse(text, &q->a);
    struct dynbuf b;
    uint64_t port = 0;
    struct span sandbox = json_text(j, SPAN("sandbox"));
    if (j == NULL || j->type != JSON_OBJECT)
        return err_set(e,
                       "a record is one line of `countersign audit tail --json`, a JSON object: for one of several, "
                       "sed -n 5p FILE | countersign policy explain --record - ...");
    if (json_text(j, SPAN("method")).n == 0 || json_text(j, SPAN("host")).n == 0 ||
        json_u64(j, SPAN("port"), &port) != 0)
        return err_set(e, "the record has no request in it: it needs method, scheme, host, port and path, as records "
                          "of the kinds intent, read and denied have");
    q->request.method = json_text(j, SPAN("method"));
    if (sandbox.n)
        q->subject.sandbox = sandbox;
    dynbuf_init(&b, 256 * 1024);
    (void)dynbuf_add(&b, json_text(j, SPAN("scheme")));
    (void)dynbuf_addf(&b, "://");
    (void)dynbuf_add(&b, json_text(j, SPAN("host")));
    (void)dynbuf_addf(&b, ":%u", (unsigned)port);
    (void)dynbuf_add(&b, json_text(j, SPAN("path")));
    struct span url = arena_keep(&q->a, &b);
    const struct json *refs = json_get(j, SPAN("refs"));
    q->recorded = true;
    q->request.fields_unknown = true;
    if (span_eq(json_text(j, SPAN("effect")), SPAN("write")))
        q->wrote = json_text(j, SPAN("op"));
    take_time(q, json_text(j, SPAN("time")));
    q->note = "a record has neither the fields nor the body of the request, nor the labels of the sandbox (--label)";
    if (refs && refs->count && span_ends(url, SPAN("/git-receive-pack")))
        return add_refs(q, refs, url, e);
    return add_seen(q, j, e) != 0 ? -1 : asked_url(q, url, e);
}
