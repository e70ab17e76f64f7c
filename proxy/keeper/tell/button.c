/* Somebody pressed a button in Slack: who that is by the configuration, and the words that they are told. */
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/keeper/tell/slack.h"
#include "proxy/keeper/tell/tell.h"

enum {
    PRESSED_MOST = 8,
    ANSWER_MS = 60 * 1000,
    ANSWER_MOST = 8 * 1024,
    READ_MOST = 512 * 1024,
    NOT_TAKEN_MS = 60 * 1000
};

/* One that may be told something, once. */
struct pressed {
    uint64_t number, since; /* never used again; 0: free */
    bool sent;
    const struct wire_tell_place *place;
    size_t nurl;
    uint8_t url[SLACK_URL_MAX];
};
static struct pressed pressed[PRESSED_MOST];
static uint64_t numbers;
static struct slack_seen seen;

static struct pressed *pressed_of(uint64_t number, bool sent)
{
    for (size_t i = 0; i < PRESSED_MOST && number != 0; i++)
        if (pressed[i].number == number && pressed[i].sent == sent)
            return &pressed[i];
    return NULL;
}

/* 0: it is told nothing: Slack named no place for that which words may go to, or there is none free. */
static uint64_t keep_answer(struct keeper *k, const struct wire_tell_place *p, struct span url)
{
    struct secret *notify = vault_get(k->keep.vault, p->secret);
    bool ok = notify != NULL && slack_answer_ok(url, secret_bytes(notify));
    uint64_t now = loop_now(k->loop);
    secret_free(&notify);
    for (size_t i = 0; ok && i < PRESSED_MOST; i++) {
        if (pressed[i].number != 0 && now - pressed[i].since < ANSWER_MS)
            continue;
        pressed[i] = (struct pressed){.number = ++numbers, .since = now, .place = p, .nurl = url.n};
        memcpy(pressed[i].url, url.p, url.n);
        return pressed[i].number;
    }
    return 0;
}

static struct span name_of(const struct wire_tell_place *p, struct span who)
{
    for (size_t i = 0; i < p->npeople; i++)
        if (span_eq(p->people[i].who, who))
            return p->people[i].name;
    return SPAN_NONE;
}

static void say(struct keeper *k, uint64_t id, enum slack_said what, uint64_t number, struct span name,
                struct span ticket, const char *why)
{
    struct dynbuf *b = k->desk != NULL ? chan_begin(k->desk, M_SLACK_SAID, id) : NULL;
    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)what);
    msg_put_u64(b, number);
    msg_put_span(b, name);
    msg_put_span(b, ticket);
    msg_put_span(b, span_str(why));
    (void)chan_commit(k->desk);
}

/* 0: Slack said so, now, and for the first time. */
static int take(struct keeper *k, const struct wire_tell_place *p, struct msg_in *m, struct span *body, struct err *e)
{
    struct span stamp = msg_get_span(m, SLACK_FIELD_MAX), signature = msg_get_span(m, SLACK_FIELD_MAX);
    *body = msg_get_span(m, SLACK_BODY_MAX);
    if (msg_end(m) != 0)
        return err_set(e, "the message cannot be read");
    if (p == NULL || p->signing.n == 0)
        return err_set(e, "nothing that comes back is taken by this name");
    struct secret *key = vault_get(k->keep.vault, p->signing);
    if (key == NULL)
        return err_set(e, "there is no stored secret %.*s; `countersign secret set` puts it there",
                       SPAN_FMT(p->signing));
    int bad = slack_take(&seen, secret_bytes(key), stamp, signature, *body, loop_wall(k->loop) / 1000, e);
    secret_free(&key);
    if (bad == 0)
        vault_use(k->keep.vault, p->signing, loop_wall(k->loop));
    return bad;
}

/* Anybody who reaches the page can send such: they fill no log. */
static void not_taken(uint64_t now, const struct err *e)
{
    static uint64_t quiet_until;
    if (now < quiet_until) {
        log_debug("what came as if from Slack is not taken: %s", e->text);
        return;
    }
    quiet_until = now + NOT_TAKEN_MS;
    log_info("what came as if from Slack is not taken, and more of it is not told for a minute: %s", e->text);
}

void keeper_slack(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct slack_press what;
    struct span body;
    struct arena a;
    struct err e = {{0}};
    const struct wire_tell_place *p = keeper_tell_place_of(msg_get_span(&m, TELL_NAME_MAX), NULL);
    arena_init(&a, READ_MOST);
    if (take(k, p, &m, &body, &e) != 0 || slack_read(body, &a, &what, &e) != 0) {
        not_taken(loop_now(k->loop), &e);
        say(k, f->id, SLACK_REFUSED, 0, SPAN_NONE, SPAN_NONE, e.text);
    } else if (!what.deny) {
        say(k, f->id, SLACK_NOTHING, 0, SPAN_NONE, SPAN_NONE, "");
    } else {
        say(k, f->id, SLACK_DENY, keep_answer(k, p, what.answer), name_of(p, what.who), what.ticket, "");
    }
    arena_free(&a);
}

static int send(struct keeper *k, const struct pressed *a, struct span body, struct err *e)
{
    struct wire_fetch ask = {.kind = FETCH_TELL, .timeout_ms = FETCH_TIMEOUT_MS};
    keeper_tell_put(&ask, "way", SPAN("http"));
    keeper_tell_put(&ask, "field.Content-Type", SPAN("application/json"));
    keeper_tell_put(&ask, "body", body);
    if (keeper_tell_to(&ask, a->place, span_of(a->url, a->nurl), e) != 0)
        return -1;
    struct dynbuf *b = k->fetcher != NULL ? chan_begin(k->fetcher, M_FETCH, a->number | SLACK_FETCH) : NULL;
    if (b == NULL)
        return err_set(e, "the fetcher, which sends it, does not run, or takes no question now");
    wire_put_fetch(b, &ask);
    return chan_commit(k->fetcher) == 0 ? 0 : err_set(e, "the fetcher takes no question now");
}

void keeper_slack_answer(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct err e = {{0}};
    struct dynbuf body;
    struct pressed *a = pressed_of(msg_get_u64(&m), false);
    bool replace = msg_get_bool(&m);
    struct span words = msg_get_span(&m, SLACK_WORDS_MAX);
    if (msg_end(&m) != 0 || a == NULL)
        return; /* it took too long, or it was said already */
    dynbuf_init(&body, ANSWER_MOST);
    slack_answer(words, replace, &body);
    a->sent = true;
    if (!dynbuf_ok(&body) || send(k, a, dynbuf_span(&body), &e) != 0) {
        log_warn("notify %.*s: what became of a button was not told: %s", SPAN_FMT(a->place->name), e.text);
        a->number = 0;
    }
    dynbuf_free(&body);
}

void keeper_slack_fetched(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_fetched got;
    struct pressed *a = pressed_of(f->id & ~SLACK_FETCH, true);
    if (a == NULL)
        return;
    if (wire_get_fetched(&m, &got) != 0 || msg_end(&m) != 0 || !got.ok)
        log_warn("notify %.*s: what became of a button was not told", SPAN_FMT(a->place->name));
    a->number = 0;
}

void keeper_slack_lost(void)
{
    for (size_t i = 0; i < PRESSED_MOST; i++)
        if (pressed[i].sent)
            pressed[i].number = 0;
}
