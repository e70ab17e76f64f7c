/* What the desk asks the keeper of passkeys: to take a new one, and to look at what one signed. */
#include "common/log.h"
#include "proxy/keeper/keeper.h"
#include "proxy/keeper/oidc/oidc.h"
#include "proxy/keeper/tell/tell.h"

enum { ANSWER_NAME = PASSKEYS_NAME };

void keeper_tell_passkeys(struct keeper *k)
{
    struct dynbuf *b = k->desk ? chan_begin(k->desk, M_PASSKEYS, 0) : NULL;
    if (b == NULL)
        return;
    passkeys_list(k->passkeys, b);
    (void)chan_commit(k->desk);
}

static void say(struct keeper *k, uint64_t id, bool ok, struct span name, const struct err *e)
{
    struct dynbuf *b = chan_begin(k->desk, M_PASSKEY_SAID, id);
    if (b == NULL)
        return;
    msg_put_u8(b, ok);
    msg_put_span(b, ok ? name : SPAN_NONE);
    msg_put_span(b, ok ? SPAN_NONE : span_str(e->text));
    (void)chan_commit(k->desk);
}

static void add(struct keeper *k, struct frame *f)
{
    struct err e = {"the message cannot be read"};
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, PASSKEYS_NAME), code = msg_get_span(&m, ID_TEXT);
    struct span json = msg_get_span(&m, WEBAUTHN_JSON_MAX), object = msg_get_span(&m, WEBAUTHN_OBJECT_MAX);
    bool ok = msg_end(&m) == 0 && passkeys_add(k->passkeys, name, code, json, object, loop_wall(k->loop), &e) == 0;
    if (ok)
        log_info("%.*s has another passkey", SPAN_FMT(name));
    say(k, f->id, ok, name, &e);
    if (ok)
        keeper_tell_passkeys(k);
}

static void check(struct keeper *k, struct frame *f)
{
    struct err e = {"the message cannot be read"};
    struct msg_in m = msg_in(f->payload);
    struct digest challenge;
    struct span name = msg_get_span(&m, PASSKEYS_NAME), whose = SPAN_NONE;
    msg_get_digest(&m, &challenge);
    struct span proof = msg_get_span(&m, PASSKEYS_PROOF_MAX);
    bool ok = msg_end(&m) == 0 && passkeys_check(k->passkeys, name, &challenge, proof, false, &whose, &e) == 0;
    say(k, f->id, ok, whose, &e);
}

static void forget(struct keeper *k, struct frame *f)
{
    struct err e = {"the message cannot be read"};
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, PASSKEYS_NAME);
    int n = msg_end(&m) == 0 ? passkeys_remove(k->passkeys, name, &e) : -1;
    say(k, f->id, n >= 0, name, &e);
    if (n <= 0)
        return;
    keeper_note(k, "passkeys removed", name, (unsigned)k->owner); /* in whose name the desk asks */
    keeper_tell_passkeys(k);
}

void keeper_desk(void *arg, struct chan *c, struct frame *f)
{
    if (f->type == M_PASSKEY_ADD)
        add(arg, f);
    else if (f->type == M_PASSKEY_CHECK)
        check(arg, f);
    else if (f->type == M_PASSKEYS_FORGET)
        forget(arg, f);
    else if (f->type == M_OIDC)
        keeper_oidc(arg, f);
    else if (f->type == M_SLACK)
        keeper_slack(arg, f);
    else if (f->type == M_SLACK_ANSWER)
        keeper_slack_answer(arg, f);
    else
        log_error("the desk said %u, which is no question", f->type);
}

/* "https://approve.example:8443" and "approve.example"; a page by an address has no passkeys. */
void keeper_site(struct keeper *k, struct span url)
{
    struct span host = SPAN_NONE;
    if (url.n == 0 || url.n >= sizeof(k->desk_url))
        return;
    memcpy(k->desk_url, url.p, url.n);
    k->site.origin = span_of(k->desk_url, url.n);
    bool tls = span_starts(k->site.origin, SPAN("https://"));
    host = span_from(k->site.origin, tls ? 8 : 7);
    host = span_first(host, span_index(host, ':'));
    bool named = tls || span_eq(host, SPAN("localhost"));
    k->site.rp = named ? host : SPAN_NONE;
}
