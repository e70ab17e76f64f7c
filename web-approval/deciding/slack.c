#include "web-approval/deciding/slack.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"
#include "web-approval/api/api.h"
#include "web-approval/ask.h"
#include "web-approval/people/who.h"
#include "web-approval/rooms/told.h"

enum { PRESSED_ARENA = 1024 * 1024, WHY_MOST = 512, NAME_MOST = 63 };

bool slack_is(const struct http_head *h)
{
    return span_starts(h->path, SPAN("/slack/"));
}

/* ---- what was pressed, once Slack has its answer ---- */

struct press {
    uint64_t number; /* by which the keeper knows where its words go; 0: nowhere */
    struct ticket t;
};

static void tell(struct exchange *x, bool replace, struct span words)
{
    const struct press *p = x->holds;
    struct dynbuf *b = x->desk->keeper ? chan_begin(x->desk->keeper, M_SLACK_ANSWER, 0) : NULL;

    if (b) {
        msg_put_u64(b, p->number);
        msg_put_u8(b, replace);
        msg_put_span(b, span_first(words, SLACK_WORDS_MAX));
        (void)chan_commit(x->desk->keeper);
    }
    reply_empty(x, 204);
}

static void nothing_done(struct exchange *x, const char *why)
{
    tell(x, false, arena_printf(&x->arena, "Nothing was decided: %s", why));
}

/* It says so where the message was, and has no buttons any more; also of what somebody else decided before. */
static void denied(struct exchange *x, struct frame *f)
{
    const struct press *p = x->holds;
    const char *state, *why;
    unsigned status = api_decided(f, &state, &why);

    if (status == 200)
        tell(x, true,
             arena_printf(&x->arena, "Denied in Slack by %s: the request %.*s of sandbox %.*s. %s/tickets/%.*s",
                          x->operator, SPAN_FMT(p->t.id), SPAN_FMT(span_first(p->t.sandbox, 64)), x->desk->desk_url,
                          SPAN_FMT(p->t.id)));
    else if (status == 409)
        tell(x, true,
             arena_printf(&x->arena,
                          "The request %.*s does not wait any more, and nothing was decided here: %s/tickets/%.*s",
                          SPAN_FMT(p->t.id), x->desk->desk_url, SPAN_FMT(p->t.id)));
    else
        nothing_done(x, why);
}

static void deny(struct exchange *x)
{
    struct press *p = x->holds;
    struct digest shown;
    struct id id;
    bool gone;

    if (!x->operator[0])
        nothing_done(x, "the gateway's configuration names nobody for you in Slack (people: of notify:); open it "
                        "on its page");
    else if (!who_find(x, &gone) || !x->who.person)
        nothing_done(x, "the operator whom the configuration names for you is not there, or cannot be looked up now");
    else if (api_ticket_find(x, &p->t) != 0 || id_parse(x->arg, &id) != 0 || p->t.digest.n != DIGEST_BYTES)
        nothing_done(x, "this request is not there any more, or cannot be looked up now");
    else {
        memcpy(shown.b, p->t.digest.p, DIGEST_BYTES);
        api_decide(x, &id, DECIDE_DENY, SPAN_NONE, &shown, "slack", denied);
        if (x->status == 503)
            nothing_done(x, "the ledger takes no question now; try again in a moment");
    }
}

/* An exchange of its own, which nobody waits for: Slack has its answer. NULL: no memory. */
static struct exchange *alone(struct desk *d, struct span name, struct span ticket, uint64_t number)
{
    struct exchange *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->desk = d;
    x->place = PLACE_CONTROL;
    x->slack = true;
    x->file = -1;
    if (d->loop) {
        x->now_ms = loop_now(d->loop);
        x->wall_ms = loop_wall(d->loop);
    }
    dynbuf_init(&x->out, DESK_TEXT * 4);
    arena_init(&x->arena, PRESSED_ARENA);
    struct press *p = arena_alloc(&x->arena, sizeof(*p));
    x->arg = arena_copy(&x->arena, ticket);
    if (!p || x->arg.n != ticket.n || name.n >= sizeof(x->operator)) {
        x->status = 503;
        exchange_answered(x);
        return NULL;
    }
    *p = (struct press){.number = number};
    x->holds = p;
    (void)snprintf(x->operator, sizeof(x->operator), "%.*s", SPAN_FMT(name));
    return x;
}

/* ---- what came ---- */

/* The keeper's log has the words: who sends without a signature is told no more than what to do. */
static bool answered(struct exchange *x, uint8_t what)
{
    switch (what) {
    case SLACK_NOTHING:
    case SLACK_DENY: return false;
    case SLACK_UNKNOWN:
        reply_problem(x, 400, "Not understood", "Slack signed this, and it is not what Slack is known to send");
        return true;
    case SLACK_NOT_NOW:
        reply_problem(x, 503, "Not possible now",
                      "nothing was done, for what Slack says cannot be taken in now; the gateway's log says why: try "
                      "again in a few minutes");
        return true;
    default:
        reply_problem(x, 403, "Refused", "this is not signed by Slack for this gateway, is too old, or came before");
        return true;
    }
}

static void taken(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    uint8_t what = msg_get_u8(&m);
    uint64_t number = msg_get_u64(&m);
    struct span name = msg_get_span(&m, GUARD_OPERATOR - 1), ticket = msg_get_span(&m, ID_TEXT);

    (void)msg_get_span(&m, WHY_MOST);
    if (msg_end(&m) != 0) {
        reply_problem(x, 503, "Not possible now", "whether Slack said this cannot be looked up; try again");
        return;
    }
    if (answered(x, what))
        return;
    struct exchange *own = what == SLACK_DENY ? alone(x->desk, name, ticket, number) : NULL;
    if (what == SLACK_DENY && !own) {
        reply_problem(x, 503, "Not possible now", "there is no memory for it now, and nothing was done; try again");
        return;
    }
    reply_empty(x, 200);
    if (!own)
        return;
    deny(own);
    if (own->status != 0)
        exchange_answered(own);
}

/* Also those that Slack has its answer to, and the ledger has not: a ledger that stands still holds no more. */
static bool is_room(const struct desk *d)
{
    size_t looked = 0, behind = 0;

    for (size_t i = 0; i < DESK_ASKS; i++) {
        if (d->asks[i].id == 0)
            continue;
        looked += d->asks[i].fn == taken;
        behind += d->asks[i].x && d->asks[i].x->slack;
    }
    return looked < SLACK_AT_ONCE && looked + behind < SLACK_ASKS;
}

void page_slack(struct exchange *x)
{
    const struct http_field *stamp = http_find(&x->head, SPAN("x-slack-request-timestamp"));
    const struct http_field *signature = http_find(&x->head, SPAN("x-slack-signature"));

    if (!told_signs(x, x->arg)) {
        reply_problem(x, 404, "Not found", "nothing that comes back is taken by this name");
        return;
    }
    if (!stamp || !signature || stamp->value.n > SLACK_FIELD_MAX || signature->value.n > SLACK_FIELD_MAX ||
        x->body.n == 0 || x->body.n > SLACK_BODY_MAX || x->arg.n > NAME_MOST) {
        reply_problem(x, 403, "Refused", "this is not signed by Slack for this gateway");
        return;
    }
    if (!is_room(x->desk)) {
        reply_problem(x, 503, "Too many", "too many come at once; try again in a moment");
        return;
    }
    struct dynbuf *b = ask_begin(x, ASK_KEEPER, M_SLACK, M_SLACK_SAID, taken);
    if (!b)
        return;
    msg_put_span(b, x->arg);
    msg_put_span(b, stamp->value);
    msg_put_span(b, signature->value);
    msg_put_span(b, x->body);
    ask_send(x);
}
