/* What an operator sees of the running gateway: the log's level, whom it follows, the steps of one exchange. */
#include "common/id.h"
#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/api/api.h"
#include "web-approval/route.h"

enum { FOLLOW_MAX = 127 };

/* bool ok, span json or why */
static void came(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span words = msg_get_span(&m, CHAN_PAYLOAD_MAX);
    struct jsonw w;

    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now", "the gateway's parent process did not answer");
    else if (!ok)
        reply_problem(x, 422, "Not done", "%.*s", SPAN_FMT(span_first(words, 400)));
    else if (json_parse(words, &x->arena)) {
        reply_json(x, 200, &w);
        jsonw_raw(&w, words);
    } else
        reply_problem(x, 500, "Broken answer", "the gateway's parent process answered with what is not JSON");
}

struct wish {
    bool change, follow, record;
    enum log_level level;
    struct span whom;
    uint64_t ms;
};

static void log_ask(struct exchange *x, const struct wish *w)
{
    struct dynbuf *b = ask_begin(x, ASK_PARENT, M_LOG_SET, M_LOG_SET, came);

    if (!b)
        return;
    msg_put_u8(b, w->change);
    msg_put_u8(b, (uint8_t)w->level);
    msg_put_u8(b, w->follow);
    msg_put_span(b, w->whom);
    msg_put_u8(b, w->record);
    msg_put_u64(b, w->ms);
    ask_send(x);
}

void api_log(struct exchange *x)
{
    log_ask(x, &(struct wish){.change = false});
}

void api_log_change(struct exchange *x)
{
    struct member m[] = {{"level", JSON_STRING, false, NULL},
                         {"trace", JSON_STRING, false, NULL},
                         {"for_ms", JSON_NUMBER, false, NULL},
                         {"record", JSON_BOOL, false, NULL}};
    struct wish w = {.change = true};

    if (body_members(x, m, 4) != 0)
        return;
    if (m[0].value && (w.level = log_level_of(m[0].value->text)) == LOG_NONE) {
        reply_problem(x, 400, "Bad request", "`level` is error, warn, info or debug");
        return;
    }
    w.follow = m[1].value != NULL;
    w.record = m[3].value && m[3].value->truth;
    if (w.follow)
        w.whom = m[1].value->text;
    if (w.whom.n > FOLLOW_MAX || (m[2].value && span_u64(m[2].value->text, UINT32_MAX, &w.ms) != 0)) {
        reply_problem(x, 400, "Bad request", "`trace` is a sandbox or an exchange, `for_ms` a whole number");
        return;
    }
    ask_note_operator(x, w.record ? "log-recording" : "log");
    log_ask(x, &w);
}

/* An exchange; or a ticket, for the exchange that opened it, or has it by now. */
void api_trace(struct exchange *x)
{
    struct span of = x->arg;
    struct id id;
    struct err e;

    if (id_parse(of, &id) == 0 && desk_store_ticket_exchange(x->desk->store, x->arg, &x->arena, &of, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    if (of.n == 0 || of.n > FOLLOW_MAX) {
        reply_problem(x, 404, "No such exchange", "there is no exchange of this id, nor of this ticket");
        return;
    }
    struct dynbuf *b = ask_begin(x, ASK_PARENT, M_TRACE_OF, M_TRACE_OF, came);
    if (!b)
        return;
    msg_put_span(b, of);
    ask_send(x);
}
