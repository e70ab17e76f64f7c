/* Somebody pressed a button in Slack: who that is by the configuration, and the words that they are told. */
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/keeper/tell/slack.h"
#include "proxy/keeper/tell/tell.h"

enum {
    PRESSED_MOST = 8,   /* of those who are named, of one row, at once */
    STRANGERS_MOST = 2, /* of all others; of more nobody is told that they are not named */
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
static uint64_t numbers;

/* What is kept of a row of notify: each has its own, so that who may press there takes nothing from another. */
static struct row {
    const struct wire_tell_place *place; /* NULL: free */
    struct slack_seen seen;
    struct pressed pressed[PRESSED_MOST + STRANGERS_MOST];
} rows[TELL_TARGETS_MAX];

/* There are no more rows than places. NULL all the same. */
static struct row *row_of(const struct wire_tell_place *p)
{
    for (size_t i = 0; i < TELL_TARGETS_MAX; i++)
        if (rows[i].place == p || rows[i].place == NULL) {
            rows[i].place = p;
            return &rows[i];
        }
    return NULL;
}

static struct pressed *pressed_of(uint64_t number, bool sent)
{
    for (size_t i = 0; i < TELL_TARGETS_MAX && number != 0; i++)
        for (size_t k = 0; k < PRESSED_MOST + STRANGERS_MOST; k++)
            if (rows[i].pressed[k].number == number && rows[i].pressed[k].sent == sent)
                return &rows[i].pressed[k];
    return NULL;
}

/* Those who are named, and all others, have places of their own. NULL: all are in use. */
static struct pressed *free_pressed(struct row *r, bool named, uint64_t now)
{
    size_t end = named ? PRESSED_MOST : PRESSED_MOST + STRANGERS_MOST;
    for (size_t i = named ? 0 : PRESSED_MOST; i < end; i++)
        if (r->pressed[i].number == 0 || now - r->pressed[i].since >= ANSWER_MS)
            return &r->pressed[i];
    return NULL;
}

/* 0: it is told nothing, for Slack named no place for that which words may go to. */
static uint64_t keep_answer(struct keeper *k, const struct row *r, struct pressed *to, struct span url)
{
    struct secret *notify = vault_get(k->keep.vault, r->place->secret);
    bool ok = notify != NULL && slack_answer_ok(url, secret_bytes(notify));
    secret_free(&notify);
    if (!ok)
        return 0;
    *to = (struct pressed){.number = ++numbers, .since = loop_now(k->loop), .place = r->place, .nurl = url.n};
    memcpy(to->url, url.p, url.n);
    return to->number;
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

/* Did Slack say so, now? What cannot be looked at is none of the two. */
static enum slack_said look(struct keeper *k, const struct wire_tell_place *p, struct msg_in *m, struct span *body,
                            struct slack_mark *mark, struct err *e)
{
    struct span stamp = msg_get_span(m, SLACK_FIELD_MAX), signature = msg_get_span(m, SLACK_FIELD_MAX);
    *body = msg_get_span(m, SLACK_BODY_MAX);
    if (msg_end(m) != 0 || p == NULL || p->signing.n == 0) {
        (void)err_set(e, "nothing that comes back is taken by this name");
        return SLACK_REFUSED;
    }
    struct secret *key = vault_get(k->keep.vault, p->signing);
    if (key == NULL) {
        (void)err_set(e, "there is no stored secret %.*s; `countersign secret set` puts it there",
                      SPAN_FMT(p->signing));
        return SLACK_NOT_NOW;
    }
    int bad = slack_signed(secret_bytes(key), stamp, signature, *body, loop_wall(k->loop) / 1000, mark, e);
    secret_free(&key);
    if (bad == 0)
        vault_use(k->keep.vault, p->signing, loop_wall(k->loop));
    return bad == 0 ? SLACK_NOTHING : SLACK_REFUSED;
}

/* Somebody denies. What somebody who is named says counts once, and not at all where there is no place to tell them
 * what became of it; of anybody else nothing is remembered, for it decides nothing. */
static enum slack_said take(struct keeper *k, struct row *r, const struct slack_press *what,
                            const struct slack_mark *mark, bool named, uint64_t *number, struct err *e)
{
    struct pressed *to = r != NULL ? free_pressed(r, named, loop_now(k->loop)) : NULL;
    enum slack_said why;
    if (!named) {
        *number = to != NULL ? keep_answer(k, r, to, what->answer) : 0;
        return SLACK_DENY;
    }
    if (to == NULL) {
        (void)err_set(e, "%d that were pressed there are not told yet; try again in a minute", PRESSED_MOST);
        return SLACK_NOT_NOW;
    }
    if (slack_once(&r->seen, mark, loop_wall(k->loop) / 1000, &why, e) != 0)
        return why;
    *number = keep_answer(k, r, to, what->answer);
    return SLACK_DENY;
}

/* Anybody who reaches the page can send such: they fill no log. */
static void not_taken(uint64_t now, const struct wire_tell_place *p, enum slack_said said, const struct err *e)
{
    static uint64_t quiet_until[2];
    uint64_t *quiet = &quiet_until[said == SLACK_NOT_NOW];
    if (now < *quiet) {
        log_debug("what came as if from Slack is not taken: %s", e->text);
        return;
    }
    *quiet = now + NOT_TAKEN_MS;
    if (said == SLACK_NOT_NOW)
        log_warn("notify %.*s: a button that was pressed in Slack did nothing, and more of it is not told for a "
                 "minute: %s",
                 SPAN_FMT(p->name), e->text);
    else
        log_info("what came as if from Slack is not taken, and more of it is not told for a minute: %s", e->text);
}

void keeper_slack(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct slack_press what = {.deny = false};
    struct slack_mark mark;
    struct span body, name = SPAN_NONE;
    struct arena a;
    struct err e = {{0}};
    uint64_t number = 0;
    const struct wire_tell_place *p = keeper_tell_place_of(msg_get_span(&m, TELL_NAME_MAX), NULL);
    arena_init(&a, READ_MOST);
    enum slack_said said = look(k, p, &m, &body, &mark, &e);
    if (said == SLACK_NOTHING && slack_read(body, &a, &what, &e) != 0)
        said = SLACK_UNKNOWN;
    if (said == SLACK_NOTHING && what.deny) {
        name = name_of(p, what.who);
        said = take(k, row_of(p), &what, &mark, name.n > 0, &number, &e);
    }
    if (e.text[0] != '\0')
        not_taken(loop_now(k->loop), p, said, &e);
    say(k, f->id, said, number, name, what.ticket, e.text);
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
    for (size_t i = 0; i < TELL_TARGETS_MAX; i++)
        for (size_t k = 0; k < PRESSED_MOST + STRANGERS_MOST; k++)
            if (rows[i].pressed[k].sent)
                rows[i].pressed[k].number = 0;
}
