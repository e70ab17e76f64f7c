/* The policy: read again, its versions, and an earlier one in force again. */
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/ask.h"
#include "web-approval/route.h"

enum { OPERATOR_MAX = 128 };

static void reloaded(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span text = msg_get_span(&m, 16 * 1024);
    struct jsonw w;

    if (msg_end(&m) != 0) {
        reply_problem(x, 503, "Not known", "the gateway's parent process did not answer; see its log");
        return;
    }
    if (!ok) {
        reply_problem(x, 422, "Not done", "%.*s", (int)(text.n < 480 ? text.n : 480), (const char *)text.p);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "text", text);
    jsonw_end_object(&w);
}

void api_reload(struct exchange *x)
{
    struct member none[1];

    if (body_members(x, none, 0) != 0)
        return;
    struct dynbuf *b = ask_begin(x, ASK_PARENT, M_RELOAD, M_RELOADED, reloaded);
    if (!b)
        return;
    msg_put_span(b, span_first(span_str(x->operator), OPERATOR_MAX));
    ask_send(x);
}

/* {"digest": its first digits}, or {"end": true}. */
void api_policy_rollback(struct exchange *x)
{
    struct member m[] = {{"digest", JSON_STRING, false, NULL}, {"end", JSON_BOOL, false, NULL}};
    struct span digest;

    if (body_members(x, m, 2) != 0)
        return;
    digest = m[0].value ? m[0].value->text : SPAN_NONE;
    if ((digest.n > 0) == (m[1].value && m[1].value->truth) || digest.n > 2 * DIGEST_BYTES) {
        reply_problem(x, 400, "Bad request",
                      "a rollback has `digest`, the first digits of a version's, or `end`: true");
        return;
    }
    struct dynbuf *b = ask_begin(x, ASK_PARENT, M_ROLLBACK, M_RELOADED, reloaded);
    if (!b)
        return;
    msg_put_span(b, span_first(span_str(x->operator), OPERATOR_MAX));
    msg_put_span(b, digest);
    ask_send(x);
}

static void versions_came(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct span json = msg_get_span(&m, CHAN_PAYLOAD_MAX);
    struct jsonw w;

    if (msg_end(&m) != 0 || !json_parse(json, &x->arena)) {
        reply_problem(x, 503, "Not possible now", "the gateway's parent process did not answer; see its log");
        return;
    }
    reply_json(x, 200, &w);
    jsonw_raw(&w, json);
}

void api_policy_versions(struct exchange *x)
{
    if (ask_begin(x, ASK_PARENT, M_VERSIONS, M_VERSIONS, versions_came))
        ask_send(x);
}
