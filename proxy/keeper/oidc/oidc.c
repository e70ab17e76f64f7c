#include "proxy/keeper/oidc/oidc.h"

#include <stdio.h>

#include "common/arena.h"
#include "common/log.h"
#include "common/msg.h"
#include "proxy/fetcher/wire_fetch.h"
#include "proxy/keeper/sources/asked.h"

enum { ARENA_MAX = 1024 * 1024 };

/* Of countersign.yaml; all empty: nobody signs in so. */
static struct {
    char issuer[OIDC_TEXT_MAX], client[OIDC_TEXT_MAX], secret[OIDC_TEXT_MAX], token[OIDC_TEXT_MAX],
        claim[OIDC_TEXT_MAX];
} conf;

/* What is being asked. number: the keeper's own, never used again; 0: free. id: the desk's. */
static struct {
    uint64_t number, id;
} asked[OIDC_ASKED_MOST];
static uint64_t numbers;

bool keeper_oidc_setting(struct span key, struct span value)
{
    const struct {
        struct span key;
        char *to;
    } texts[] = {{SPAN("oidc_issuer"), conf.issuer},
                 {SPAN("oidc_client"), conf.client},
                 {SPAN("oidc_secret"), conf.secret},
                 {SPAN("oidc_token"), conf.token},
                 {SPAN("oidc_claim"), conf.claim}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (!span_eq(key, texts[i].key))
            continue;
        if (value.n >= OIDC_TEXT_MAX)
            log_die("the setting %.*s is too long", SPAN_FMT(key));
        snprintf(texts[i].to, OIDC_TEXT_MAX, "%.*s", SPAN_FMT(value));
        return true;
    }
    return false;
}

static void say(struct keeper *k, uint64_t id, struct span value, struct span why)
{
    struct dynbuf *b = k->desk != NULL ? chan_begin(k->desk, M_OIDC_SAID, id) : NULL;
    if (b == NULL)
        return;
    msg_put_u8(b, value.n > 0);
    msg_put_span(b, value);
    msg_put_span(b, value.n > 0 ? SPAN_NONE : span_first(why, FETCH_WHY_MAX));
    (void)chan_commit(k->desk);
}

struct brought {
    struct span code, verifier, nonce; /* by the browser; made by the desk for it */
};

static int put_question(struct keeper *k, const struct brought *b, struct secret *client_secret, struct dynbuf *out,
                        struct err *e)
{
    static struct wire_fetch ask;
    char back[sizeof(k->desk_url) + 32];
    struct arena a;
    arena_init(&a, ARENA_MAX);
    snprintf(back, sizeof(back), "%.*s/sign-in/oidc", SPAN_FMT(k->site.origin));
    ask = (struct wire_fetch){.kind = FETCH_OIDC,
                              .timeout_ms = OIDC_ASK_MS,
                              .nsettings = 9,
                              .setting = {{SPAN("url"), span_str(conf.token)},
                                          {SPAN("client_id"), span_str(conf.client)},
                                          {SPAN("client_secret"), secret_bytes(client_secret)},
                                          {SPAN("issuer"), span_str(conf.issuer)},
                                          {SPAN("claim"), span_str(conf.claim)},
                                          {SPAN("code"), b->code},
                                          {SPAN("code_verifier"), b->verifier},
                                          {SPAN("nonce"), b->nonce},
                                          {SPAN("redirect_uri"), span_str(back)}}};
    int bad = asked_url(k->policy, ask.setting[0].value, &a, &ask.to, e);
    if (bad == 0)
        wire_put_fetch(out, &ask);
    arena_free(&a);
    return bad;
}

/* 0: it was asked. */
static int ask(struct keeper *k, uint64_t id, const struct brought *brought, struct err *e)
{
    size_t at = 0;
    struct dynbuf b;
    struct secret *client_secret = NULL;
    int bad = -1;
    dynbuf_init(&b, FETCH_PAYLOAD_MAX);
    while (at < OIDC_ASKED_MOST && asked[at].number != 0)
        at++;
    uint64_t number = ++numbers;
    if (conf.token[0] == '\0' || k->site.rp.n == 0)
        err_set(e, "nobody signs in through a provider here");
    else if (k->fetcher == NULL || k->policy == NULL)
        err_set(e, "the provider cannot be asked now; try again in a moment");
    else if (at == OIDC_ASKED_MOST)
        err_set(e, "too many sign in at once; try again in a moment");
    else if ((client_secret = sources_stored(k->sources, SOURCE_STORE, span_str(conf.secret), e)) != NULL)
        bad = put_question(k, brought, client_secret, &b, e);
    if (bad == 0 && (!dynbuf_ok(&b) || chan_send(k->fetcher, M_FETCH, number | OIDC_FETCH, dynbuf_span(&b)) != 0))
        bad = err_set(e, "the provider cannot be asked now; try again in a moment");
    if (bad == 0) {
        asked[at].number = number;
        asked[at].id = id;
        vault_use(k->keep.vault, span_str(conf.secret), loop_wall(k->loop));
    }
    secret_free(&client_secret);
    dynbuf_wipe(&b);
    return bad;
}

void keeper_oidc(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct err e = {"the message cannot be read"};
    struct brought b;
    b.code = msg_get_span(&m, OIDC_CODE_MAX);
    b.verifier = msg_get_span(&m, OIDC_PROOF_MAX);
    b.nonce = msg_get_span(&m, OIDC_PROOF_MAX);
    if (msg_end(&m) == 0 && b.code.n > 0 && b.verifier.n > 0 && b.nonce.n > 0 && ask(k, f->id, &b, &e) == 0)
        return;
    log_warn("nobody is signed in through the provider: %s", e.text);
    say(k, f->id, SPAN_NONE, span_str(e.text));
}

void keeper_oidc_fetched(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_fetched got;
    struct span why = SPAN("what the provider answered cannot be read");
    uint64_t number = f->id & ~OIDC_FETCH;
    size_t at = 0;
    while (at < OIDC_ASKED_MOST && (asked[at].number != number || number == 0))
        at++;
    if (at == OIDC_ASKED_MOST)
        return; /* who asked is not there any more */
    asked[at].number = 0;
    bool ok = wire_get_fetched(&m, &got) == 0 && msg_end(&m) == 0;
    if (ok && got.ok) {
        say(k, asked[at].id, got.value, SPAN_NONE);
        return;
    }
    if (ok)
        why = got.why;
    log_info("somebody was not signed in through the provider: %.*s", SPAN_FMT(why));
    say(k, asked[at].id, SPAN_NONE, why);
}

void keeper_oidc_lost(struct keeper *k)
{
    for (size_t i = 0; i < OIDC_ASKED_MOST; i++) {
        bool was = asked[i].number != 0;
        asked[i].number = 0;
        if (was)
            say(k, asked[i].id, SPAN_NONE, SPAN("the fetcher, which asks the provider, has ended"));
    }
}

void keeper_oidc_forget(void)
{
    for (size_t i = 0; i < OIDC_ASKED_MOST; i++)
        asked[i].number = 0;
}
