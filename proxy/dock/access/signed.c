#include "proxy/dock/access/signed.h"

#include <stdlib.h>

enum {
    SIGNATURE_TEXT = 43, /* of base64 without its padding */
    HASHED_MAX = SIGNED_PATH_MAX + ACCESS_TEXT + 64
};

struct signed_token {
    char box[DOCK_BOX_MAX + 1], text[ACCESS_TEXT];
    struct digest tenant;
    uint64_t used; /* 0: free */
    size_t held;   /* room: so many of its tenant */
};

/* --- what is remembered ------------------------------------------------------------ */

static bool same_tenant(const struct signed_token *t, const struct digest *tenant)
{
    return memcmp(t->tenant.b, tenant->b, DIGEST_BYTES) == 0;
}

static struct signed_token *oldest_of(struct dock *d, const struct digest *tenant)
{
    struct signed_token *old = NULL;

    for (struct signed_token *t = d->tokens; t < d->tokens + SIGNED_TOKENS; t++)
        if (t->used > 0 && same_tenant(t, tenant) && (!old || t->used < old->used))
            old = t;
    return old;
}

/* One that is free, or that goes: nobody but who holds most of them notices that there are too many. */
static struct signed_token *room(struct dock *d, const struct digest *tenant)
{
    struct signed_token *none = NULL, *most = NULL, *end = d->tokens + SIGNED_TOKENS;
    size_t own = 0;

    for (struct signed_token *t = d->tokens; t < end; t++) {
        t->held = 0;
        if (t->used == 0)
            none = t;
        else if (same_tenant(t, tenant))
            own++;
    }
    if (own >= SIGNED_TENANT_TOKENS)
        return oldest_of(d, tenant);
    if (none)
        return none;
    for (struct signed_token *t = d->tokens; t < end; t++) {
        struct signed_token *first = d->tokens;
        while (!same_tenant(first, &t->tenant))
            first++;
        first->held++; /* the first of them counts */
        if (!most || first->held > most->held)
            most = first;
    }
    return oldest_of(d, &most->tenant);
}

void signed_keep(struct dock *d, struct span box, struct span token, const struct digest *tenant)
{
    struct signed_token *t = d->tokens;

    if (token.n != ACCESS_TEXT || box.n == 0 || box.n > DOCK_BOX_MAX)
        return;
    if (!t && !(t = d->tokens = calloc(SIGNED_TOKENS, sizeof(*t)))) /* then no URL is good, which is said */
        return;
    while (t < d->tokens + SIGNED_TOKENS && !(t->used > 0 && span_eq(span_str(t->box), box) &&
                                              span_eq_consttime(span_of(t->text, ACCESS_TEXT), token)))
        t++;
    if (t == d->tokens + SIGNED_TOKENS)
        t = room(d, tenant);
    explicit_bzero(t, sizeof(*t));
    memcpy(t->box, box.p, box.n);
    memcpy(t->text, token.p, ACCESS_TEXT);
    t->tenant = *tenant;
    t->used = ++d->tokens_used;
}

/* --- which of them ------------------------------------------------------------------- */

/* "PATH:read:USER:TOKEN", and ":SECONDS" where it expires; where the token stands is left out. */
static size_t put_signed(uint8_t out[HASHED_MAX], const struct signed_url *u, size_t *token)
{
    const struct span before[] = {u->path, u->write ? SPAN(":write:") : SPAN(":read:"), u->user, SPAN(":")};
    const struct span after[] = {u->expires.n ? SPAN(":") : SPAN_NONE, u->expires};
    size_t n = 0;

    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < before[i].n; k++)
            out[n++] = before[i].p[k];
    *token = n;
    n += ACCESS_TEXT;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < after[i].n; k++)
            out[n++] = after[i].p[k];
    return n;
}

/* All are looked at: how long it takes says nothing of which it is. */
bool signed_find(struct dock *d, const struct signed_url *u, struct span *box, struct digest *token)
{
    uint8_t text[HASHED_MAX];
    char base64[4 * ((DIGEST_BYTES + 2) / 3) + 1];
    const struct signed_token *found = NULL;
    struct digest sum;
    size_t at, n;

    if (u->path.n > SIGNED_PATH_MAX || u->user.n > 32 || u->expires.n > 20 || u->signature.n != SIGNATURE_TEXT)
        return false;
    n = put_signed(text, u, &at);
    for (size_t i = 0; d->tokens && i < SIGNED_TOKENS; i++) {
        const struct signed_token *t = &d->tokens[i];
        if (t->used == 0 || (u->box.n > 0 && !span_eq(span_str(t->box), u->box)))
            continue;
        memcpy(text + at, t->text, ACCESS_TEXT);
        digest_of(span_of(text, n), &sum);
        (void)base64_encode(span_of(sum.b, DIGEST_BYTES), base64);
        if (span_eq_consttime(span_of(base64, SIGNATURE_TEXT), u->signature))
            found = t;
    }
    explicit_bzero(text, sizeof(text));
    if (!found)
        return false;
    *box = span_str(found->box);
    token_hash(span_of(found->text, ACCESS_TEXT), token);
    return true;
}

/* --- a call ------------------------------------------------------------------------------ */

static bool url_read(struct call *x, struct span signature, struct signed_url *u)
{
    uint64_t until = 0;

    *u = (struct signed_url){.box = call_field(x, SPAN("e2b-sandbox-id")),
                             .write = span_eq(x->head.method, SPAN("POST")),
                             .signature = span_from(signature, 3)};
    if (!span_eq(x->head.path, SPAN("/files")) || call_field(x, SPAN("x-access-token")).n > 0 ||
        !span_starts(signature, SPAN("v1_")) || call_query(x, "path", &u->path) != 0 || u->path.n == 0 ||
        call_query(x, "username", &u->user) != 0 || call_query(x, "signature_expiration", &u->expires) != 0) {
        reply_no(x, 400, "a signed URL is of one file (`path`), and is shown without a token");
        return false;
    }
    if (u->expires.n > 0 && span_u64(u->expires, UINT64_MAX / 1000, &until) != 0) {
        reply_no(x, 400, "`signature_expiration` is a time in seconds");
        return false;
    }
    if (u->expires.n == 0 || x->wall_ms / 1000 < until)
        return true;
    reply_no(x, 401, "this URL has expired");
    return false;
}

bool signed_take(struct call *x, struct span signature)
{
    struct signed_url u;
    struct span box;

    if (!url_read(x, signature, &u))
        return false;
    if (!signed_find(x->dock, &u, &box, &x->token)) {
        reply_no(x, 401,
                 "this URL opens nothing: it is not signed with what opens a sandbox, or this gateway was started "
                 "anew since, and whoever signed it connects to the sandbox once more");
        return false;
    }
    x->arg = arena_copy(&x->arena, box);
    if (x->arg.n > 0)
        return true;
    reply_no(x, 503, "no memory");
    return false;
}
