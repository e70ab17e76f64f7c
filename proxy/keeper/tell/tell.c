#include "proxy/keeper/tell/tell.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/fetcher/wire_fetch.h"

/* What one is asked with, in memory of its own for as long as the configuration. */
struct place {
    struct dynbuf said;
    struct wire_tell_place is; /* borrows from said */
};
static struct place place[TELL_TARGETS_MAX];
static size_t nplaces;

/* number: the keeper's own, of its question to the fetcher, never used again; 0: free. id: the ledger's, which a
 * ledger that was started again uses again: it is told which message was meant. */
struct told {
    uint64_t number, id;
    size_t nmessage;
    uint8_t message[TELL_ID_MAX];
};
static struct told asked[TELL_TARGETS_MAX];
static uint64_t numbers;

void keeper_tell_place(struct keeper *k, struct frame *f)
{
    struct place *p = nplaces < TELL_TARGETS_MAX ? &place[nplaces] : NULL;
    if (p == NULL)
        return;
    dynbuf_init(&p->said, f->payload.n + 1);
    (void)dynbuf_add(&p->said, f->payload);
    struct msg_in m = msg_in(dynbuf_span(&p->said));
    if (!dynbuf_ok(&p->said) || wire_get_tell_place(&m, &p->is) != 0 || msg_end(&m) != 0) {
        log_error("who is to be told cannot be read");
        dynbuf_free(&p->said);
        return;
    }
    nplaces++;
}

static void say(struct keeper *k, const struct told *a, enum tell_outcome what, struct span words)
{
    struct dynbuf *b = k->ledger != NULL ? chan_begin(k->ledger, M_TOLD, a->id) : NULL;
    if (b == NULL)
        return;
    msg_put_span(b, span_of(a->message, a->nmessage));
    msg_put_u8(b, (uint8_t)what);
    msg_put_span(b, span_first(words, TELL_WORDS_MAX));
    (void)chan_commit(k->ledger);
}

void keeper_tell_put(struct wire_fetch *w, const char *key, struct span value)
{
    if (value.n > 0 && w->nsettings < FETCH_SETTINGS_MAX)
        w->setting[w->nsettings++] = (struct wire_setting){span_str(key), value};
}

/* What belongs to one question, until it is written. */
struct letter {
    struct wire_fetch ask;
    struct span id, title, body;
    uint64_t seconds;
    char stamp[24];
    struct dynbuf signature;
    struct secret *secret;
};

int keeper_tell_to(struct wire_fetch *ask, const struct wire_tell_place *p, struct span url, struct err *e)
{
    struct tell_url u;
    if (tell_url_parse(url, &u) != 0)
        return err_set(e, "its URL is none, or has a user or a #");
    bool clear = span_eq(u.scheme, SPAN("http"));
    if ((p->kind == TELL_MAIL) != (u.scheme.p[0] == 's') || (clear && !tell_url_is_loopback(&u)))
        return err_set(e, "its URL is not https");
    ask->to = (struct wire_upstream){
        .scheme = u.scheme, .host = u.host, .port = u.port, .ca_pem = p->ca_pem, .ncidrs = p->ncidrs};
    for (size_t i = 0; i < p->ncidrs; i++)
        ask->to.cidr[i] = p->cidr[i];
    if (p->kind == TELL_SLACK && tell_url_is_loopback(&u)) { /* as of a webhook that is written in the file */
        ask->to.cidr[ask->to.ncidrs++] = SPAN("127.0.0.0/8");
        ask->to.cidr[ask->to.ncidrs++] = SPAN("::1/128");
    }
    keeper_tell_put(ask, "url", url);
    return 0;
}

static int as_webhook(struct letter *t, const struct wire_tell_place *p, struct err *e)
{
    if (tell_sign(secret_bytes(t->secret), t->id, t->seconds, t->body, &t->signature, e) != 0)
        return -1;
    (void)snprintf(t->stamp, sizeof(t->stamp), "%llu", (unsigned long long)t->seconds);
    keeper_tell_put(&t->ask, "field.Content-Type", SPAN("application/json"));
    keeper_tell_put(&t->ask, "field.webhook-id", t->id);
    keeper_tell_put(&t->ask, "field.webhook-timestamp", span_str(t->stamp));
    keeper_tell_put(&t->ask, "field.webhook-signature", dynbuf_span(&t->signature));
    keeper_tell_put(&t->ask, "body", t->body);
    return keeper_tell_to(&t->ask, p, p->url, e);
}

static int as_slack(struct letter *t, const struct wire_tell_place *p, struct err *e)
{
    keeper_tell_put(&t->ask, "field.Content-Type", SPAN("application/json"));
    keeper_tell_put(&t->ask, "body", t->body);
    return keeper_tell_to(&t->ask, p, secret_bytes(t->secret), e);
}

static int as_mail(struct letter *t, const struct wire_tell_place *p, struct err *e)
{
    keeper_tell_put(&t->ask, "from", p->from);
    for (size_t i = 0; i < p->nto; i++)
        keeper_tell_put(&t->ask, "to", p->to[i]);
    keeper_tell_put(&t->ask, "id", t->id);
    keeper_tell_put(&t->ask, "title", t->title);
    keeper_tell_put(&t->ask, "body", t->body);
    keeper_tell_put(&t->ask, "tls", p->tls_required ? SPAN("required") : SPAN("offered"));
    if (t->secret != NULL) {
        keeper_tell_put(&t->ask, "user", p->user);
        keeper_tell_put(&t->ask, "password", secret_bytes(t->secret));
    }
    return keeper_tell_to(&t->ask, p, p->url, e);
}

/* 0, or -1 with words that hold no secret. */
static int write_letter(struct keeper *k, struct letter *t, const struct wire_tell_place *p, struct err *e)
{
    t->seconds = loop_wall(k->loop) / 1000;
    t->ask.kind = FETCH_TELL;
    t->ask.timeout_ms = FETCH_TIMEOUT_MS;
    if (p->secret.n > 0 && (t->secret = vault_get(k->keep.vault, p->secret)) == NULL)
        return err_set(e, "there is no stored secret %.*s; `countersign secret set` puts it there",
                       SPAN_FMT(p->secret));
    keeper_tell_put(&t->ask, "way", p->kind == TELL_MAIL ? SPAN("mail") : SPAN("http"));
    int bad = p->kind == TELL_WEBHOOK ? as_webhook(t, p, e)
              : p->kind == TELL_SLACK ? as_slack(t, p, e)
                                      : as_mail(t, p, e);
    if (bad == 0 && p->secret.n > 0)
        vault_use(k->keep.vault, p->secret, loop_wall(k->loop));
    return bad;
}

static int ask(struct keeper *k, struct told *a, const struct wire_tell_place *p, struct letter *t, struct err *e)
{
    if (k->fetcher == NULL)
        return err_set(e, "the fetcher, which sends it, does not run at the moment");
    if (write_letter(k, t, p, e) != 0)
        return -1;
    uint64_t number = ++numbers;
    struct dynbuf *b = chan_begin(k->fetcher, M_FETCH, number | TELL_FETCH);
    if (b == NULL)
        return err_set(e, "the fetcher takes no question now");
    wire_put_fetch(b, &t->ask);
    if (chan_commit(k->fetcher) != 0)
        return err_set(e, "the fetcher takes no question now");
    a->number = number;
    return 0;
}

const struct wire_tell_place *keeper_tell_place_of(struct span name, const struct digest *of)
{
    for (size_t i = 0; i < nplaces; i++)
        if (span_eq(place[i].is.name, name) && (of == NULL || memcmp(&place[i].is.of, of, sizeof(*of)) == 0))
            return &place[i].is;
    return NULL;
}

/* It becomes a field of a request and of a mail. */
static bool id_ok(struct span id)
{
    return id.n > 0 && span_is_of(id, SPAN("_"));
}

void keeper_tell(struct keeper *k, struct frame *f)
{
    static struct letter t;
    struct msg_in m = msg_in(f->payload);
    struct told what = {.id = f->id};
    struct err e = {{0}};
    struct digest of;
    t = (struct letter){.seconds = 0};
    struct span name = msg_get_span(&m, TELL_NAME_MAX);
    msg_get_digest(&m, &of);
    t.id = msg_get_span(&m, TELL_ID_MAX);
    t.title = msg_get_span(&m, TELL_TITLE_MAX);
    t.body = msg_get_span(&m, TELL_BODY_MAX);
    if (msg_end(&m) != 0 || f->id == 0 || !id_ok(t.id) || t.body.n == 0) {
        log_error("what is to be told cannot be read");
        return; /* the ledger has its patience */
    }
    what.nmessage = t.id.n;
    memcpy(what.message, t.id.p, t.id.n);
    dynbuf_init(&t.signature, 128);
    const struct wire_tell_place *p = keeper_tell_place_of(name, &of);
    struct told *slot = NULL;
    for (size_t i = 0; i < TELL_TARGETS_MAX; i++)
        if (asked[i].number == 0)
            slot = &asked[i];
    int bad = p == NULL      ? err_set(&e, "nobody of that name is told by the configuration of now")
              : slot == NULL ? err_set(&e, "too many are told at once")
                             : ask(k, &what, p, &t, &e);
    if (bad == 0)
        *slot = what;
    else
        say(k, &what, TELL_NOT_NOW, span_str(e.text));
    secret_free(&t.secret);
    dynbuf_wipe(&t.signature);
}

/* The job says "told", or "never" and why, or why not now. */
void keeper_tell_fetched(struct keeper *k, struct frame *f)
{
    static const struct span never = SPAN("never: ");
    struct msg_in m = msg_in(f->payload);
    struct wire_fetched got;
    uint64_t number = f->id & ~TELL_FETCH;
    struct told *a = NULL;
    for (size_t i = 0; i < TELL_TARGETS_MAX && number != 0; i++)
        if (asked[i].number == number)
            a = &asked[i];
    if (a == NULL) {
        log_debug("a message was told, and who asked is not there any more");
        return;
    }
    a->number = 0;
    if (wire_get_fetched(&m, &got) != 0 || msg_end(&m) != 0)
        say(k, a, TELL_NOT_NOW, SPAN("what its job said cannot be read"));
    else if (!got.ok)
        say(k, a, TELL_NOT_NOW, got.why);
    else if (span_starts(got.value, never))
        say(k, a, TELL_NEVER, span_from(got.value, never.n));
    else
        say(k, a, TELL_TOLD, got.value);
}

void keeper_tells_lost(struct keeper *k)
{
    for (size_t i = 0; i < TELL_TARGETS_MAX; i++) {
        bool was = asked[i].number != 0;
        asked[i].number = 0;
        if (was)
            say(k, &asked[i], TELL_NOT_NOW, SPAN("the fetcher, which sends it, has ended"));
    }
}

void keeper_tells_forget(void)
{
    for (size_t i = 0; i < TELL_TARGETS_MAX; i++)
        asked[i].number = 0;
}
