#include "proxy/keeper/release.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "proxy/identity.h"
#include "proxy/keeper/passkey/passkeys.h"
#include "proxy/keeper/signer/hmac.h"
#include "proxy/keeper/sources/fetch.h"
#include "proxy/keeper/sources/tokens.h"
#include "proxy/keeper/value.h"
#include "proxy/wire_ticket.h"

struct releaser {
    struct sources *sources;
    struct fetches *fetches;
    const struct tokens *tokens;
    struct signer *signer;
    const struct policy *policy;
    EVP_PKEY *ledger;
    struct passkeys *passkeys;
    uint64_t once[RELEASE_ONCE];
    size_t at;
};

struct releaser *releaser_new(struct sources *s, struct fetches *f, const struct tokens *t)
{
    struct releaser *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->sources = s;
    r->fetches = f;
    r->tokens = t;
    r->signer = signer_new();
    if (r->signer == NULL)
        releaser_free(&r);
    return r;
}

void releaser_free(struct releaser **r)
{
    if (r == NULL || *r == NULL)
        return;
    EVP_PKEY_free((*r)->ledger);
    signer_free(&(*r)->signer);
    free(*r);
    *r = NULL;
}

void releaser_policy(struct releaser *r, const struct policy *p)
{
    r->policy = p;
}

void releaser_ledger_gone(struct releaser *r)
{
    EVP_PKEY_free(r->ledger);
    r->ledger = NULL;
}

int releaser_ledger_key(struct releaser *r, struct span key)
{
    releaser_ledger_gone(r);
    r->ledger = key.n == RELEASE_KEY ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key.p, key.n) : NULL;
    return r->ledger ? 0 : -1;
}

void release_clear(struct release *out)
{
    secret_free(&out->value);
    secret_free(&out->pem);
    signature_clear(&out->signature);
    for (size_t i = 0; i < out->nscrub; i++)
        secret_free(&out->scrub[i]);
    *out = (struct release){.ttl_ms = 0};
}

static int refuse(struct release *out, const char *code, const char *why)
{
    out->code = code;
    return err_set(&out->why, "%s", why);
}

static bool signed_by_ledger(const struct releaser *r, const struct release_ask *a)
{
    struct dynbuf b;
    bool ok = false;
    if (r->ledger == NULL || a->signature.n < RELEASE_SIGNATURE)
        return false;
    dynbuf_init(&b, 4096 + RELEASE_PROOF_MAX);
    wire_release_statement(&b, a->xid, a->credential, a->host, a->port, &a->digest);
    dynbuf_add(&b, span_from(a->signature, RELEASE_SIGNATURE)); /* what comes with it, it covers too */
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    if (dynbuf_ok(&b) && c != NULL && EVP_DigestVerifyInit(c, NULL, NULL, NULL, r->ledger) == 1)
        ok = EVP_DigestVerify(c, a->signature.p, RELEASE_SIGNATURE, b.p, b.n) == 1;
    EVP_MD_CTX_free(c);
    dynbuf_free(&b);
    return ok;
}

void releaser_passkeys(struct releaser *r, struct passkeys *p)
{
    r->passkeys = p;
}

/* Behind the signature of what needs passkeys (wire_proof): so many people, each once, each with a passkey of their
 * own that signed over the facts of this very ticket. Whoever says yes in another's name has not that. */
static bool proven(const struct releaser *r, const struct release_ask *a, struct err *e)
{
    struct msg_in m = msg_in(span_from(a->signature, RELEASE_SIGNATURE));
    struct span name[RELEASE_QUORUM], whose;
    struct digest facts;
    if (m.rest.n == 0)
        return true;
    size_t quorum = msg_get_u8(&m), n = msg_get_u8(&m);
    msg_get_digest(&m, &facts);
    bool ok = r->passkeys != NULL && quorum > 0 && n >= quorum && n <= RELEASE_QUORUM;
    for (size_t i = 0; ok && i < n; i++) {
        name[i] = msg_get_span(&m, PASSKEYS_NAME);
        struct span proof = msg_get_span(&m, PASSKEYS_PROOF_MAX);
        ok = !m.bad && name[i].n > 0 && passkeys_check(r->passkeys, name[i], &facts, proof, true, &whose, e) == 0;
        for (size_t k = 0; ok && k < i; k++)
            ok = !span_eq(name[k], name[i]);
    }
    return ok && msg_end(&m) == 0;
}

static bool served_before(const struct releaser *r, uint64_t xid)
{
    for (size_t i = 0; i < RELEASE_ONCE; i++)
        if (r->once[i] == xid)
            return true;
    return xid == 0;
}

/* Takes s. False when there is no more room. */
static bool add_scrub(struct release *out, size_t *bytes, const struct credential *c, struct secret *s)
{
    if (s == NULL)
        return true;
    *bytes += secret_bytes(s).n;
    if (out->nscrub == RELEASE_SCRUB_MAX || *bytes > RELEASE_BYTES_MAX) {
        secret_free(&s);
        return false;
    }
    out->refuse[out->nscrub] = c->refuse;
    out->scrub[out->nscrub++] = s;
    return true;
}

static bool add_part(struct release *out, size_t *bytes, const struct credential *c, struct span part)
{
    struct secret *one = part.n ? secret_new(part) : NULL;
    return (part.n == 0 || one != NULL) && add_scrub(out, bytes, c, one);
}

/* Of keys to sign with each part by itself, for each may come back alone, and a key that is written in another way
 * as bytes too. Takes s. */
static bool add_pair(struct release *out, size_t *bytes, const struct credential *c, struct secret *s)
{
    struct signer_pair pair;
    struct err unused;
    struct span value = s != NULL ? secret_bytes(s) : SPAN_NONE;
    bool ok = true;
    if (signer_parts(c, value, &pair, &unused) != 0)
        return add_scrub(out, bytes, c, s);
    if (c->sign == SIGN_HMAC && c->hmac.key != SIGN_AS_TEXT) {
        struct secret *raw = signer_key_bytes(c, pair.key);
        ok = raw != NULL && add_scrub(out, bytes, c, raw);
    }
    ok = (pair.key.n == value.n || add_part(out, bytes, c, pair.key)) && ok;
    ok = add_part(out, bytes, c, pair.token) && ok;
    ok = (pair.id.n < VALUE_MIN || add_part(out, bytes, c, pair.id)) && ok;
    return add_scrub(out, bytes, c, s) && ok;
}

/* A value as it is, as Basic carries it, and the password in it. Takes s. */
static bool add_forms(struct release *out, size_t *bytes, const struct credential *c, struct secret *s)
{
    if (s == NULL)
        return true;
    if (c->sign != SIGN_NONE)
        return add_pair(out, bytes, c, s);
    struct secret *pair = value_basic(c, secret_bytes(s));
    struct span password = value_password(c, secret_bytes(s));
    struct secret *part = password.n ? secret_new(password) : NULL;
    if (pair != NULL && span_eq(secret_bytes(pair), secret_bytes(s)))
        secret_free(&pair);
    bool ok = add_scrub(out, bytes, c, s);
    ok = add_scrub(out, bytes, c, pair) && ok;
    return add_scrub(out, bytes, c, part) && ok;
}

/* The token behind the lease that the request brought, if it is one of this credential as it is now. A copy. */
static struct secret *token_of(const struct releaser *r, const struct release_ask *a, size_t credential)
{
    struct digest meaning;
    if (id_is_none(&a->lease) || identity_of_credential(r->policy, credential, &meaning) != 0)
        return NULL;
    const struct secret *s = tokens_find(r->tokens, &a->lease, &meaning, a->now_ms);
    return s != NULL ? secret_new(secret_bytes(s)) : NULL;
}

/* Everything that may go to this host, at whatever path, now or before. Of tokens that came in answers the one of
 * this request: nothing else that is answered here was given another. */
static int add_bound(struct releaser *r, const struct release_ask *a, struct release *out)
{
    struct credential c;
    size_t bytes = 0;
    bool ok = true;
    for (size_t i = 0; policy_credential(r->policy, i, &c); i++) {
        /* A private key is never sent, so nobody can echo it. */
        if (c.certificate || !policy_credential_bound(r->policy, i, a->scheme, a->host, a->port))
            continue;
        struct err unused;
        struct secret *s = c.source == SOURCE_ANSWER
                               ? token_of(r, a, i)
                               : sources_value(r->sources, &c, &unused); /* what has no value now was never sent */
        ok = add_forms(out, &bytes, &c, s) && ok;
        for (size_t k = 0; (s = sources_previous(r->sources, &c, k)) != NULL; k++)
            ok = add_forms(out, &bytes, &c, s) && ok;
    }
    return ok ? 0 : refuse(out, "credential-unavailable", "more secrets are bound to this host than can be scrubbed");
}

static int find(const struct policy *p, struct span name, struct credential *c)
{
    for (size_t i = 0; policy_credential(p, i, c); i++)
        if (span_eq(c->name, name))
            return (int)i;
    return -1;
}

/* http:// carries no credential unless the policy says so for this host. */
static bool wire_may_be_open(const struct policy *p, const struct release_ask *a)
{
    struct arena arena;
    struct upstream u = {.cleartext_credentials = false};
    if (span_eq(a->scheme, SPAN("https")))
        return true;
    arena_init(&arena, 64 * 1024);
    bool ok = policy_upstream(p, a->host, a->port, &arena, &u) && u.cleartext_credentials;
    arena_free(&arena);
    return ok;
}

static int check_word(struct releaser *r, const struct release_ask *a, struct release *out)
{
    static const struct digest none;
    struct err why = {"too few of them"};
    if (!a->held)
        return 0;
    if (memcmp(&a->digest, &none, sizeof(none)) == 0 || !signed_by_ledger(r, a))
        return refuse(out, "approval-not-proven",
                      "the ledger's word that this request was approved is missing or false");
    if (!proven(r, a, &why)) {
        out->code = "approval-not-proven";
        return err_set(&out->why, "the passkeys that it needs have not signed it: %s", why.text);
    }
    if (served_before(r, a->xid))
        return refuse(out, "approval-not-proven", "this exchange was given its credential already");
    return 0;
}

static int check(struct releaser *r, const struct release_ask *a, struct credential *c, struct release *out)
{
    int i = find(r->policy, a->credential, c);
    if (i < 0)
        return refuse(out, "credential-unavailable", "the policy names no such credential");
    if (!policy_credential_may_go(r->policy, (size_t)i, a->scheme, a->host, a->port, a->path))
        return refuse(out, "credential-not-for-host", "the credential's only: list does not name this place");
    if ((c->certificate || c->beside.n) && !span_eq(a->scheme, SPAN("https")))
        return refuse(out, "credential-not-for-host", "a client certificate goes over https only");
    if (!wire_may_be_open(r->policy, a))
        return refuse(out, "credential-not-for-host", "the credential would travel in clear text");
    return check_word(r, a, out);
}

/* What goes into the request: the value in its field, or a signature made with it. */
static bool use(struct releaser *r, const struct release_ask *a, const struct credential *c, struct span value,
                struct release *out, struct secret **rendered)
{
    const struct signer_place at = {a->scheme, a->host, a->port};
    if (c->sign == SIGN_NONE) {
        *rendered = value_render(c, value, &out->why);
        return *rendered != NULL;
    }
    out->ttl_ms = 0; /* of this request alone */
    if (c->sign == SIGN_HMAC)
        return hmac_sign(r->policy, c, value, a->sign, &at, a->now_ms, &out->signature, &out->why) == 0;
    int64_t now = (int64_t)(a->now_ms / 1000);
    return signer_sign(r->signer, c, value, a->sign, &at, now, &out->signature, &out->why) == 0;
}

/* It is gone with the keeper that had it, or its time is over: its client can ask for another one. */
static enum release_answer value_of_answer(struct releaser *r, const struct release_ask *a,
                                           const struct credential *c, struct release *out, struct secret **value)
{
    int at = find(r->policy, c->name, &(struct credential){0});
    struct secret *v = at >= 0 ? token_of(r, a, (size_t)at) : NULL;
    bool ok = v != NULL && use(r, a, c, secret_bytes(v), out, value);
    out->ttl_ms = 0; /* of this lease alone */
    if (v == NULL)
        (void)refuse(out, "token-gone", "the token behind the lease is not there any more");
    else if (!ok)
        out->code = "credential-unavailable";
    secret_free(&v);
    return ok ? RELEASE_GIVEN : RELEASE_REFUSED;
}

static enum release_answer value_of(struct releaser *r, const struct release_ask *a, const struct credential *c,
                                    uint64_t refused, struct release *out, struct secret **value)
{
    bool ok = false;
    if (c->source == SOURCE_ANSWER)
        return value_of_answer(r, a, c, out, value);
    if (policy_source_is_asked(c->source)) {
        struct err why = {{0}};
        enum fetch_found found = r->fetches ? fetch_need(r->fetches, c, refused, &out->wait, &why) : FETCH_REFUSED;
        if (found == FETCH_LATER)
            return RELEASE_LATER;
        if (found == FETCH_REFUSED) {
            err_set(&out->why, "credential %.*s: %s", SPAN_FMT(c->name), why.text);
            goto refused;
        }
    }
    struct secret *v = sources_value(r->sources, c, &out->why);
    if (v != NULL)
        ok = use(r, a, c, secret_bytes(v), out, value);
    secret_free(&v);
    if (ok)
        return RELEASE_GIVEN;
refused:
    out->code = "credential-unavailable";
    return RELEASE_REFUSED;
}

static enum release_answer render(struct releaser *r, const struct release_ask *a, const struct credential *c,
                                  struct release *out)
{
    struct credential beside;
    if ((c->sign != SIGN_NONE) != (a->sign != NULL)) {
        (void)refuse(out, "credential-unavailable", "judge and keeper do not agree whether the credential signs");
        return RELEASE_REFUSED;
    }
    out->slot = slot_is_marked(c->slot) ? c->slot : SLOT_HEADER;
    out->header = value_header(c);
    enum release_answer answer = value_of(r, a, c, a->refused, out, c->certificate ? &out->pem : &out->value);
    out->version = answer == RELEASE_GIVEN && policy_source_is_asked(c->source) ? fetch_version(r->fetches, c) : 0;
    if (answer != RELEASE_GIVEN || c->beside.n == 0)
        return answer;
    if (find(r->policy, c->beside, &beside) >= 0 && beside.certificate)
        return value_of(r, a, &beside, 0, out, &out->pem);
    (void)refuse(out, "credential-unavailable", "the policy names no such certificate");
    return RELEASE_REFUSED;
}

static bool means_the_same(const struct releaser *r, const struct release_ask *a)
{
    struct digest place;
    return identity_of_place(r->policy, a->scheme, a->host, a->port, &place) == 0 &&
           memcmp(&place, &a->place, sizeof(place)) == 0;
}

enum release_answer releaser_ask(struct releaser *r, const struct release_ask *a, struct release *out)
{
    struct credential c;
    enum release_answer answer = RELEASE_GIVEN;
    *out = (struct release){.ttl_ms = a->held ? 0 : RELEASE_TTL_MS};
    if (r->policy == NULL)
        (void)refuse(out, "credential-unavailable", "no policy is in force yet");
    else if (!means_the_same(r, a))
        (void)refuse(out, "policy-changed", "the policy has just redefined what may go there; repeat the request");
    bool proof = a->signature.n > RELEASE_SIGNATURE;
    if (out->code != NULL || (a->credential.n && check(r, a, &c, out) != 0) ||
        (a->credential.n == 0 && proof && check_word(r, a, out) != 0))
        return RELEASE_REFUSED;
    if (a->credential.n)
        answer = render(r, a, &c, out);
    if (answer != RELEASE_GIVEN)
        return answer;
    if (add_bound(r, a, out) != 0) {
        secret_free(&out->value);
        secret_free(&out->pem);
        signature_clear(&out->signature);
        return RELEASE_REFUSED;
    }
    if (a->held && (a->credential.n || proof)) {
        r->once[r->at] = a->xid;
        r->at = (r->at + 1) % RELEASE_ONCE;
    }
    return RELEASE_GIVEN;
}
