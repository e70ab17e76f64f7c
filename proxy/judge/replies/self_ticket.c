/* /v1/tickets/ID and /v1/tickets/ID/answer: what has become of a ticket of the asker's own session, and what was
 * answered. The ledger knows: it is asked, and the exchange waits. */
#include "common/json/json.h"
#include "proxy/judge/post.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/replies/self_service.h"
#include "proxy/judge/tickets/ticket.h"

/* What the ledger said. */
struct said {
    uint8_t known; /* as M_TICKET_IS has it */
    struct wire_ticket_state state;
    bool later;
    uint64_t tries, until_ms;
};

static int read_said(struct exchange *x, struct said *s)
{
    struct msg_in m = msg_in(x->answer);
    *s = (struct said){.known = msg_get_u8(&m)};
    if (s->known == 1 && wire_get_ticket_state(&m, &s->state) == 0) {
        s->later = msg_get_bool(&m);
        s->tries = msg_get_u64(&m);
        s->until_ms = msg_get_u64(&m);
    }
    if (m.bad)
        return -1;
    if (s->state.has_answer)
        x->answer = m.rest;
    else if (m.rest.n > 0)
        return -1;
    return 0;
}

static struct span is_asked(struct span path, bool *answer)
{
    struct span id, rest;
    *answer = span_cut(span_from(path, sizeof("/v1/tickets/") - 1), '/', &id, &rest) && span_eq(rest, SPAN("answer"));
    return *answer || rest.n == 0 ? id : SPAN_NONE;
}

static int ask(struct exchange *x, const struct id *ticket, bool answer)
{
    struct dynbuf *b = post_begin(x->judge, ROLE_LEDGER, 0, M_TICKET_ASK, x->xid);
    msg_put_id(b, ticket);
    msg_put_span(b, x->sandbox->session);
    msg_put_u8(b, answer);
    if (post_commit(x->judge, -1) != 0)
        return -1;
    x->told = TOLD_ASKED;
    exchange_wait(x, X_TICKET, SELF_TICKET_WAIT_MS);
    return 0;
}

/* The words of what such a request would be refused with; of what goes on, its own. */
static void words(const struct said *s, struct refusal *r)
{
    static const enum refuse_why why[] = {[TICKET_DENIED] = REFUSE_TICKET_DENIED,
                                          [TICKET_EXPIRED] = REFUSE_TICKET_EXPIRED,
                                          [TICKET_CANCELLED] = REFUSE_TICKET_CANCELLED,
                                          [TICKET_FAILED] = REFUSE_NOT_SENT,
                                          [TICKET_UNKNOWN] = REFUSE_OUTCOME_UNKNOWN,
                                          [TICKET_DONE] = REFUSE_EXECUTED,
                                          [TICKET_PENDING] = REFUSE_HELD};
    if (s->state.state != TICKET_APPROVED && s->state.state != TICKET_EXECUTING)
        refuse_words(s->later && s->state.state == TICKET_PENDING ? REFUSE_ACCEPTED : why[s->state.state], r);
    if (s->state.state == TICKET_DONE && s->until_ms)
        r->detail = SPAN("This request was approved and carried out, and what was answered is kept.");
    if (s->state.state == TICKET_DONE && s->until_ms)
        r->next = SPAN("Ask for answer.");
    if (s->state.state == TICKET_EXECUTING)
        r->detail = SPAN("This request was approved and is being carried out.");
    if (s->state.state != TICKET_APPROVED)
        return;
    r->detail =
        s->tries ? SPAN("This request was approved; it could not be sent yet, which is certain, and is tried again.")
        : s->later ? SPAN("This request was approved, and the gateway is about to send it.")
                   : SPAN("This request was approved. Nothing was sent yet.");
    r->next = s->later ? SPAN("Ask again.") : SPAN("Repeat the same request, unchanged: it is sent then.");
}

static void link_to_answer(struct jsonw *w, struct span id)
{
    struct dynbuf b;
    dynbuf_init(&b, 128);
    dynbuf_addf(&b, "http://countersign.internal/v1/tickets/%.*s/answer", SPAN_FMT(id));
    jsonw_kv(w, "answer", dynbuf_span(&b));
    dynbuf_free(&b);
}

static void tell(struct exchange *x, const struct said *s, struct span id, struct jsonw *w)
{
    struct refusal r = {.code = NULL};
    struct span when = dialect_time(s->state.expires_ms, &x->arena);
    bool open = s->state.state == TICKET_PENDING || s->state.state == TICKET_APPROVED;
    words(s, &r);
    jsonw_object(w);
    jsonw_kv(w, "ticket", id);
    jsonw_kv(w, "state", span_str(ticket_state_name((enum ticket_state)s->state.state)));
    jsonw_kv(w, "detail", r.detail);
    if (r.next.n)
        jsonw_kv(w, "next_steps", r.next);
    if (s->state.state == TICKET_DENIED && wire_ticket_told(&s->state).n)
        jsonw_kv(w, "words", wire_ticket_told(&s->state));
    if (when.n)
        jsonw_kv(w, "expires", when);
    if (open)
        jsonw_kv_bool(w, "sent_by_gateway", s->later);
    if (open && s->tries)
        jsonw_kv_u64(w, "tries", s->tries);
    if (s->until_ms) {
        link_to_answer(w, id);
        jsonw_kv(w, "answer_until", dialect_time(s->until_ms, &x->arena));
    }
    jsonw_end_object(w);
}

enum self_found self_ticket(struct exchange *x, struct jsonw *w)
{
    struct id id;
    struct said s;
    bool answer;
    struct span text = is_asked(x->request.path, &answer);
    if (id_parse(text, &id) != 0)
        return SELF_NOT_HERE;
    if (x->told == TOLD_NOTHING)
        return judge_store_ok(x->judge) && ask(x, &id, answer) == 0 ? SELF_WAITS : SELF_NO_STORE;
    if (read_said(x, &s) != 0 || s.known > 1)
        return SELF_NO_STORE;
    if (s.known == 0)
        return SELF_NOT_HERE;
    if (!answer) {
        tell(x, &s, text, w);
        return SELF_JSON;
    }
    return s.state.has_answer && ticket_replay(x) == 0 ? SELF_ANSWERED : SELF_NO_ANSWER;
}

int self_ticket_told(struct judge *j, struct frame *f)
{
    struct exchange *x = exchange_find(j, f->id);
    if (x == NULL || x->wait != X_TICKET || x->told != TOLD_ASKED)
        return 0;
    x->told = TOLD_ALL;
    x->answer = arena_copy(&x->arena, f->payload);
    exchange_resume(j, x->xid);
    return 0;
}
