#include "proxy/judge/tickets/review.h"

#include "proxy/identity.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/accounts/turn.h"

enum { HELD_MAX = 1024 * 1024 * 1024 };

void review_ask(struct judge *j)
{
    if (j->image == NULL)
        return;
    (void)post_begin(j, ROLE_LEDGER, 0, M_REVIEW, ++j->reviews);
    post_send(j, "what is held is not looked at again; it will be when it is used");
}

static bool is_same(const struct evaluation *v, const struct wire_review *w)
{
    struct digest terms;
    return v->d.verdict == VERDICT_HOLD && identity_of_terms(v->image->policy, &v->d, &terms) == 0 &&
           memcmp(&terms, &w->terms, sizeof(terms)) == 0;
}

static bool holds_if(struct judge *j, const struct sandbox *s, const struct request *r, struct body *body,
                     const struct exceeded *over, const struct wire_review *w)
{
    struct evaluation v;
    evaluation_make(j, s, SPAN_NONE, r, body, over, &v);
    bool same = is_same(&v, w);
    evaluation_drop(&v);
    return same;
}

/* Of which rules is not told: of any one of them, or all. */
bool review_past(struct judge *j, const struct sandbox *s, const struct request *r, const struct evaluation *v,
                 const struct wire_review *w, struct exceeded *over)
{
    static struct exceeded all;
    all.n = 0;
    for (size_t i = 0; i < v->d.nlimits && i < LIMITS_MAX; i++) {
        all.past[all.n++] = v->d.limits[i];
        *over = (struct exceeded){.n = 1, .past = {v->d.limits[i]}};
        if (holds_if(j, s, r, v->body, over, w))
            return true;
    }
    *over = all;
    return holds_if(j, s, r, v->body, over, w);
}

/* Would the policy of now hold it as it was held? */
static bool still_held(struct judge *j, const struct sandbox *s, const struct wire_review *w, struct body *body)
{
    const struct wire_request *q = &w->request;
    struct request r = {.scheme = q->scheme,
                        .host = q->host,
                        .method = q->method,
                        .path = q->path,
                        .query = q->query,
                        .port = q->port,
                        .has_query = q->has_query,
                        .fields = q->field,
                        .nfields = q->nfields,
                        .has_body = w->has_body || body_bytes(body).n > 0,
                        .body_complete = true};
    static struct exceeded over;
    struct evaluation v;
    evaluation_make(j, s, SPAN_NONE, &r, body, NULL, &v);
    bool same = is_same(&v, w);
    if (!same && v.d.verdict == VERDICT_ALLOW && span_eq(w->code, SPAN("over-limit")))
        same = review_past(j, s, &r, &v, w, &over);
    evaluation_drop(&v);
    return same;
}

int review_ticket(struct judge *j, struct frame *f)
{
    static struct wire_review w; /* too large for a stack */
    struct body *body = NULL;
    struct msg_in m = msg_in(f->payload);
    if (wire_get_review(&m, &w) != 0)
        return -1;
    uint64_t size = msg_get_u64(&m);
    struct span bytes = msg_get_span(&m, BODY_INLINE_MAX);
    int fd = frame_take_fd(f, 0);
    if (fd >= 0)
        body = body_of_memfd(fd, size, HELD_MAX);
    if (msg_end(&m) != 0 || (fd < 0 && bytes.n != size)) {
        body_unref(&body);
        return -1;
    }
    if (fd < 0 && size > 0)
        body = body_inline(bytes);
    bool lost = body == NULL && (fd >= 0 || size > 0); /* no memory for it: judged when it is used */
    /* Of a sandbox that is gone, or a session that has ended, nothing can be used, and nothing is to be said here. */
    const struct sandbox *s = sandbox_find(j, w.sandbox);
    turn_for(j, s);
    bool keep = lost || s == NULL || j->image == NULL || j->config.shadow || !span_eq(s->session, w.session) ||
                still_held(j, s, &w, body);
    body_unref(&body);
    struct dynbuf *b = post_begin(j, ROLE_LEDGER, 0, M_REVIEWED, f->id);
    msg_put_id(b, &w.ticket);
    msg_put_u8(b, keep);
    post_send(j, "a ticket the policy no longer allows could not be cancelled");
    return 0;
}
