/* An answer with tokens: read whole, the tokens given to the keeper, the judge told of the leases that stand for
 * them, and only when those are written down does it go on, with the leases in their places. Whatever cannot be
 * found, kept or written down refuses the answer; one whose status is an error has no tokens, and goes on as it is.
 */
#include <stdlib.h>

#include "common/lease/lease.h"
#include "common/time/clock.h"
#include "proxy/carrier/exchange.h"
#include "proxy/carrier/swap/swap.h"

struct swapping {
    struct swap swap;
    struct {
        char text[LEASE_TEXT_MAX], secret[LEASE_TEXT_MAX];
        size_t ntext, nsecret;
    } lease[SWAPS_MAX];
};

static const char code[] = "token-unswapped";

bool swap_is_open(const struct exchange *x)
{
    return x->swap != SWAP_NONE && x->swap != SWAP_DONE;
}

enum walk_next swap_head(struct exchange *x, const struct http_head *h)
{
    if (x->f.swaps.n == 0 || h->status >= 400)
        return WALK_NEXT;
    if ((h->status != 200 && h->status != 201) || h->framing == HTTP_NO_BODY)
        return carry_fail(x, code, "an answer with a token was expected, and one with status %u came", h->status);
    for (size_t i = 0; i < h->nfields; i++)
        if (span_ieq(h->field[i].name, SPAN("content-encoding")) && !span_ieq(h->field[i].value, SPAN("identity")))
            return carry_fail(x, code, "an answer with a token came encoded, although identity was asked for");
    carry_swap(x, SWAP_DUE);
    return WALK_NEXT;
}

static void late(void *arg)
{
    struct exchange *x = arg;
    (void)carry_fail(x, code, "the answer's token was not kept, or its lease not written down, in time");
    carry_end(x);
}

static int give_keeper(struct exchange *x)
{
    const struct swap *s = &x->swapping->swap;
    struct chan *keeper = x->carrier->keeper;
    struct dynbuf *b = keeper ? chan_begin(keeper, M_SWAP, x->xid) : NULL;
    if (b == NULL)
        return -1;
    msg_put_u8(b, (uint8_t)s->n);
    for (size_t i = 0; i < s->n; i++) {
        msg_put_span(b, s->token[i].what.credential);
        for (enum swap_part part = SWAP_TOKEN; part < SWAP_PARTS; part++)
            msg_put_span(b, swap_value(s, i, part));
        msg_put_u64(b, s->token[i].lives_ms);
    }
    return chan_commit(keeper);
}

static enum walk_next begin(struct exchange *x)
{
    struct err why;
    x->swapping = calloc(1, sizeof(*x->swapping));
    timer_free(&x->timer);
    x->timer = timer_new(x->carrier->loop, late, x);
    if (x->swapping == NULL || x->timer == NULL)
        return carry_fail(x, code, "no memory for the answer's token");
    if (swap_read(&x->swapping->swap, x->f.swaps, dynbuf_span(&x->ready), clock_ms(CLOCK_REALTIME), &why) != 0)
        return carry_fail(x, code, "an answer with a token was expected: %s", why.text);
    if (give_keeper(x) != 0)
        return carry_fail(x, code, "there is no keeper to keep the answer's token");
    timer_set(x->timer, x->carrier->settings.release_ms);
    carry_swap(x, SWAP_ASKED);
    return WALK_WAIT;
}

enum walk_next swap_go(struct exchange *x)
{
    if (x->swap != SWAP_DUE)
        return WALK_WAIT;
    if (x->ready.n > SWAP_BODY_MAX)
        return carry_fail(x, code, "an answer with a token was expected: it is longer than %d bytes", SWAP_BODY_MAX);
    if (x->answer == ANSWER_CUT)
        return carry_fail(x, "answer-cut", "the upstream's answer was cut short");
    return x->answer == ANSWER_WHOLE ? begin(x) : WALK_WAIT;
}

static void refused(struct exchange *x, const char *who, struct span why)
{
    (void)carry_fail(x, code, "%s: %.*s", who, SPAN_FMT(why));
    carry_end(x);
}

/* Of each the lease's text, and the judge is told of it. -1: it is no such message, or there is no judge. */
static int take_leases(struct exchange *x, struct msg_in *m, uint8_t n)
{
    struct swapping *s = x->swapping;
    struct wire_swapped w[SWAPS_MAX];
    struct chan *judge = x->carrier->judge;
    if (n != s->swap.n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (wire_get_swapped(m, &w[i]) != 0 || !span_eq(w[i].credential, s->swap.token[i].what.credential))
            return -1;
        struct span text = msg_get_span(m, LEASE_TEXT_MAX), secret = msg_get_span(m, LEASE_TEXT_MAX);
        if (text.n == 0 || (secret.n == 0) != (swap_value(&s->swap, i, SWAP_KEY).n == 0))
            return -1;
        memcpy(s->lease[i].text, text.p, s->lease[i].ntext = text.n);
        if (secret.n)
            memcpy(s->lease[i].secret, secret.p, s->lease[i].nsecret = secret.n);
    }
    struct dynbuf *b = msg_end(m) == 0 && judge != NULL ? chan_begin(judge, M_SWAP_TAKE, x->xid) : NULL;
    if (b == NULL)
        return -1;
    msg_put_u8(b, n);
    for (size_t i = 0; i < n; i++)
        wire_put_swapped(b, &w[i]);
    return chan_commit(judge);
}

void swap_keeper_said(struct carrier *c, struct frame *f)
{
    struct exchange *x = carry_find(c, f->id);
    struct msg_in m = msg_in(f->payload);
    uint8_t n = msg_get_u8(&m);
    struct span why = msg_get_span(&m, sizeof(((struct err *)NULL)->text));
    if (x == NULL || x->swap != SWAP_ASKED)
        return;
    if (n == 0) {
        refused(x, "the answer's token cannot be kept", why);
        return;
    }
    if (take_leases(x, &m, n) != 0) {
        refused(x, "the answer's token", SPAN("the keeper's leases cannot be understood, or there is no judge"));
        return;
    }
    carry_swap(x, SWAP_TOLD);
}

static int cover_text(struct exchange *x, const struct scrub *set, struct span s, bool *refuse)
{
    return s.n ? scrub_cover(set, x->head.p + (s.p - x->head.p), s.n, refuse) : 0;
}

/* Its texts, and not the lengths between them. */
static int cover_head(struct exchange *x, const struct scrub *set, bool *refuse)
{
    struct msg_in m = msg_in(dynbuf_span(&x->head));
    struct wire_answer a;
    int bad = wire_get_answer(&m, &a) != 0 || cover_text(x, set, a.reason, refuse) < 0 ? -1 : 0;
    for (size_t i = 0; bad == 0 && i < a.nfields; i++)
        if (cover_text(x, set, a.field[i].name, refuse) < 0 || cover_text(x, set, a.field[i].value, refuse) < 0)
            bad = -1;
    return bad;
}

/* Wherever else it stands, in whatever form an answer is searched for; and all that the answer is searched for
 * anyway, which may be the same token, if it was given out before. */
static int cover(struct exchange *x, struct dynbuf *body)
{
    const struct swap *s = &x->swapping->swap;
    struct scrub_secret secret[SWAPS_MAX * SWAP_PARTS] = {0};
    struct err unused;
    bool refuse = false;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        for (enum swap_part part = SWAP_TOKEN; part < SWAP_PARTS; part++)
            if (swap_value(s, i, part).n)
                secret[n++].bytes = swap_value(s, i, part);
    struct scrub *set = scrub_new(secret, n, &unused);
    int bad = set == NULL || cover_head(x, set, &refuse) != 0 || scrub_cover(set, body->p, body->n, &refuse) < 0 ||
                      (!scrub_is_empty(x->scrub.set) && scrub_cover(x->scrub.set, body->p, body->n, &refuse) < 0)
                  ? -1
                  : 0;
    scrub_unref(&set);
    return refuse ? -1 : bad;
}

static int write_leases(struct exchange *x)
{
    struct swapping *s = x->swapping;
    struct swap_lease lease[SWAPS_MAX] = {{.text = SPAN_NONE}};
    struct dynbuf body;
    for (size_t i = 0; i < s->swap.n; i++)
        lease[i] = (struct swap_lease){span_of(s->lease[i].text, s->lease[i].ntext),
                                       span_of(s->lease[i].secret, s->lease[i].nsecret)};
    dynbuf_init(&body, 2 * SWAP_BODY_MAX);
    if (swap_write(&s->swap, lease, &body) != 0 || cover(x, &body) != 0 || delivery_new_length(x, body.n) != 0) {
        dynbuf_wipe(&body);
        return -1;
    }
    dynbuf_wipe(&x->ready);
    int bad = dynbuf_add(&x->ready, dynbuf_span(&body));
    if (!x->f.repeatable)
        (void)dynbuf_add(&x->kept, dynbuf_span(&body));
    dynbuf_free(&body);
    return bad;
}

void swap_judge_said(struct carrier *c, struct frame *f)
{
    struct exchange *x = carry_find(c, f->id);
    struct msg_in m = msg_in(f->payload);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, 256);
    if (x == NULL || x->swap != SWAP_TOLD)
        return;
    if (msg_end(&m) != 0 || !ok) {
        refused(x, "the lease for the answer's token was not written down", why);
        return;
    }
    if (write_leases(x) != 0) {
        refused(x, "the answer's token",
                SPAN("no memory to put its lease in its place, or a secret beside it that says scrub: refuse"));
        return;
    }
    timer_free(&x->timer);
    carry_swap(x, SWAP_DONE);
    carry_resume(x);
}

void swap_release(struct exchange *x)
{
    struct chan *keeper = x->carrier->keeper;
    if ((x->swap == SWAP_ASKED || x->swap == SWAP_TOLD) && keeper != NULL)
        (void)chan_send(keeper, M_SWAP_DROP, x->xid, SPAN_NONE);
    if (x->swapping == NULL)
        return;
    swap_end(&x->swapping->swap);
    explicit_bzero(x->swapping, sizeof(*x->swapping));
    free(x->swapping);
    x->swapping = NULL;
}
