#include "proxy/keeper/sources/fetch.h"

#include <stdlib.h>

#include "common/text/visible.h"
#include "proxy/keeper/sources/asked.h"
#include "proxy/keeper/sources/minted.h"
#include "proxy/keeper/sources/signed.h"
#include "proxy/keeper/value.h"
#include "proxy/fetcher/wire_fetch.h"

struct fetch {
    struct digest is; /* what its source says, and the policy of the server that is asked */
    enum asked_step step;
    bool anew;      /* somebody looks: it is asked as soon as the first step was */
    uint64_t ends;  /* when what it was asked with does; 0: that is no token that ends */
    uint64_t asked; /* the question that is on its way; 0: none */
    uint64_t used;  /* when it was looked for last; 0: this place is free */
    uint64_t fresh_until, live_until, failed_until, renewed_until;
    uint64_t version;                 /* of value: the question that it first answered */
    uint64_t lifetime;                /* as the policy says; 0: it does not */
    char rotates[VAULT_NAME_MAX + 1]; /* the name in the store of what the answer may replace; empty: nothing */
    struct digest spent;              /* of what stood there when it was asked */
    struct secret *unkept;            /* what the store would not take in its place; the only one there is */
    struct secret *held;              /* what is told again with the next question */
    struct secret *value, *previous[FETCHES_PREVIOUS];
    struct err why; /* of the last answer; empty: it was a value */
};

struct fetches {
    struct sources *sources;
    struct signer *signer;
    const struct fetch_ops *ops;
    void *arg;
    const struct policy *policy;
    uint64_t last; /* question */
    struct fetch v[FETCHES_MAX];
};

struct fetches *fetches_new(struct sources *s, const struct fetch_ops *ops, void *arg)
{
    struct fetches *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return NULL;
    *f = (struct fetches){.sources = s, .signer = signer_new(), .ops = ops, .arg = arg};
    if (f->signer == NULL)
        fetches_free(&f);
    return f;
}

static void forget(struct fetch *e)
{
    secret_free(&e->value);
    secret_free(&e->unkept);
    secret_free(&e->held);
    for (size_t i = 0; i < FETCHES_PREVIOUS; i++)
        secret_free(&e->previous[i]);
    *e = (struct fetch){.asked = 0};
}

void fetches_free(struct fetches **f)
{
    if (*f == NULL)
        return;
    for (size_t i = 0; i < FETCHES_MAX; i++)
        forget(&(*f)->v[i]);
    signer_free(&(*f)->signer);
    free(*f);
    *f = NULL;
}

void fetches_policy(struct fetches *f, const struct policy *p)
{
    f->policy = p;
}

/* ---- which one ---- */

static const struct fetch *find(const struct fetches *f, const struct credential *c, enum asked_step step)
{
    struct digest is;
    asked_identify(f->policy, c, step, &is);
    for (size_t i = 0; i < FETCHES_MAX; i++)
        if (f->v[i].used && memcmp(&f->v[i].is, &is, sizeof(is)) == 0)
            return &f->v[i];
    return NULL;
}

/* What is used up by asking, if it is of the store. */
static void rotating(const struct fetches *f, const struct credential *c, struct fetch *known)
{
    struct setting s;
    known->rotates[0] = '\0';
    for (size_t i = 0; asked_setting(f->policy, c, known->step, &i, &s);)
        if (span_eq(s.key, SPAN("refresh_token")) && s.from == SOURCE_STORE && s.value.n <= VAULT_NAME_MAX) {
            memcpy(known->rotates, s.value.p, s.value.n);
            known->rotates[s.value.n] = '\0';
        }
}

/* Found or made, in the place of the one that was used longest ago, is not asked for, and is not `but`. */
static struct fetch *open_fetch(struct fetches *f, const struct credential *c, enum asked_step step,
                                const struct fetch *but, uint64_t now)
{
    struct fetch *e = (struct fetch *)find(f, c, step), *oldest = NULL;
    for (size_t i = 0; i < FETCHES_MAX && e == NULL; i++)
        if (!f->v[i].asked && f->v[i].unkept == NULL && &f->v[i] != but &&
            (oldest == NULL || f->v[i].used < oldest->used))
            oldest = &f->v[i];
    if (e == NULL && oldest != NULL) {
        forget(e = oldest);
        e->step = step;
        asked_identify(f->policy, c, step, &e->is);
        rotating(f, c, e);
    }
    if (e != NULL)
        e->used = now + 1;
    return e;
}

/* ---- asking ---- */

/* A key that is signed with here, or what a program of the operator's reads. */
static bool may_have_lines(const struct credential *c, struct span key)
{
    return c->source == SOURCE_EXEC || span_eq(key, SPAN("jwt.key"));
}

/* Every setting, with the secret itself in the place of where it is; held is what they borrow from. */
static int collect(struct fetches *f, const struct credential *c, enum asked_step step, struct wire_fetch *w,
                   struct secret *held[FETCH_SETTINGS_MAX], struct err *e)
{
    struct setting s;
    struct err why = {{0}};
    for (size_t at = 0; asked_setting(f->policy, c, step, &at, &s);) {
        size_t i = w->nsettings;
        if (i == FETCH_SETTINGS_MAX)
            return err_set(e, "its source has too many settings");
        w->setting[w->nsettings] = (struct wire_setting){s.key, s.value};
        if (s.from != SOURCE_NONE && (held[i] = sources_stored(f->sources, s.from, s.value, &why)) == NULL)
            return err_set(e, "%.*s, which it is asked with: %s", SPAN_FMT(s.key), why.text);
        if (s.from != SOURCE_NONE)
            w->setting[w->nsettings].value = secret_bytes(held[i]);
        if (s.from != SOURCE_NONE && !may_have_lines(c, s.key) &&
            span_index(secret_bytes(held[i]), '\n') < secret_bytes(held[i]).n)
            return err_set(e, "%.*s, which it is asked with, has more than one line", SPAN_FMT(s.key));
        w->nsettings++;
    }
    return 0;
}

/* Does the store still hold what it was asked with? What somebody put there since, or took away, stays like that. */
static bool still_stored(const struct fetches *f, const struct fetch *e)
{
    struct err unused;
    struct digest is;
    struct secret *s = sources_stored(f->sources, SOURCE_STORE, span_str(e->rotates), &unused);
    digest_of(s != NULL ? secret_bytes(s) : SPAN_NONE, &is);
    bool same = s != NULL && memcmp(&is, &e->spent, sizeof(is)) == 0;
    secret_free(&s);
    return same;
}

/* What an earlier answer brought and the store did not take. Before that, what stands there is used up. */
static int keep_again(struct fetches *f, const struct fetch *known, struct err *e)
{
    struct err lost = {{0}};
    for (size_t i = 0; i < FETCHES_MAX; i++) {
        struct fetch *x = &f->v[i];
        if (x->unkept == NULL || strcmp(x->rotates, known->rotates) != 0)
            continue;
        if (still_stored(f, x) && f->ops->keep(f->arg, span_str(x->rotates), secret_bytes(x->unkept), &lost) != 0)
            return err_set(e, "the next %s cannot be kept: %s", x->rotates, lost.text);
        secret_free(&x->unkept);
    }
    return 0;
}

static void take(struct fetch *e, struct secret *value, uint64_t version, uint64_t told_ms, uint64_t now)
{
    bool replaces = false;
    uint64_t left = e->ends > now ? e->ends - now : 1;
    if (e->ends && (told_ms == 0 || told_ms > left))
        told_ms = left; /* what says nothing ends with what it was asked with, and nothing lives longer */
    uint64_t most = e->lifetime ? e->lifetime : told_ms ? FETCH_LIFE_MAX_MS : FETCH_LIFE_MS;
    uint64_t life = told_ms && told_ms < most ? told_ms : most;
    life = life < FETCH_LIFE_MIN_MS ? FETCH_LIFE_MIN_MS : life;
    if (e->value != NULL && !span_eq(secret_bytes(e->value), secret_bytes(value))) {
        secret_free(&e->previous[FETCHES_PREVIOUS - 1]);
        memmove(&e->previous[1], &e->previous[0], sizeof(e->previous) - sizeof(e->previous[0]));
        e->previous[0] = e->value;
        e->value = NULL;
        replaces = true;
    }
    if (e->value == NULL)
        e->version = version;
    secret_free(&e->value);
    e->value = value;
    e->live_until = now + life;
    e->fresh_until = now + life / 10 * 8;
    if (replaces && e->held != NULL && e->fresh_until > now + FETCH_BACK_MS)
        e->fresh_until = now + FETCH_BACK_MS;
    e->failed_until = 0;
    e->why.text[0] = '\0';
}

/* A JWT that is the value itself: nobody is asked. */
static int take_signed(struct fetches *f, struct fetch *known, struct secret **jwt, uint64_t life_ms, struct err *e)
{
    if (*jwt == NULL)
        return err_set(e, "it has no key to sign with");
    if (value_check(secret_bytes(*jwt), e) != 0)
        return -1;
    take(known, *jwt, ++f->last, life_ms, f->ops->now(f->arg));
    *jwt = NULL;
    return 0;
}

static int send_it(struct fetches *f, struct fetch *known, struct span spends, struct span payload, struct err *e)
{
    if (f->ops->send(f->arg, f->last + 1, payload) != 0)
        return err_set(e, "the fetcher is restarting; repeat the request");
    known->asked = ++f->last;
    digest_of(spends, &known->spent);
    return 0;
}

/* What no policy can say: what it said the last time; and that what it gave then is not to be given again. */
static void remind(struct wire_fetch *w, const struct fetch *known, bool anew)
{
    if (known->held == NULL || w->nsettings + 2 > FETCH_SETTINGS_MAX)
        return;
    w->setting[w->nsettings++] = (struct wire_setting){SPAN("held"), secret_bytes(known->held)};
    if (anew)
        w->setting[w->nsettings++] = (struct wire_setting){SPAN("anew"), SPAN("1")};
}

/* The second question is asked with what the first one gave. */
static int ask_with(struct fetch *known, const struct fetch *first, struct wire_fetch *w, struct err *e)
{
    if (first->value == NULL || w->nsettings == FETCH_SETTINGS_MAX)
        return err_set(e, "there is no token to ask with");
    w->setting[w->nsettings++] = (struct wire_setting){SPAN("subject_token"), secret_bytes(first->value)};
    known->ends = first->live_until;
    return 0;
}

/* first: the answer it is asked with; NULL: with none. */
static int ask(struct fetches *f, struct fetch *known, const struct credential *c, const struct fetch *first,
               bool anew, struct err *e)
{
    struct wire_fetch w = {.kind = (uint8_t)c->source};
    struct secret *held[FETCH_SETTINGS_MAX] = {NULL}, *jwt = NULL;
    struct signed_ask own = {.signature = {.nfields = 0}};
    struct arena a;
    struct dynbuf b;
    int rc = -1;
    arena_init(&a, 1024 * 1024);
    dynbuf_init(&b, FETCH_PAYLOAD_MAX);
    if (keep_again(f, known, e) != 0 || collect(f, c, known->step, &w, held, e) != 0 ||
        (first != NULL && ask_with(known, first, &w, e) != 0))
        goto out;
    uint64_t life = minted_ms(&w);
    if (minted_jwt(&w, f->ops->wall(f->arg), &jwt, e) != 0)
        goto out;
    if (c->source == SOURCE_JWT) {
        rc = take_signed(f, known, &jwt, life, e);
        goto out;
    }
    remind(&w, known, anew);
    w.timeout_ms = wire_setting_u64(&w, SPAN("timeout"), FETCH_TIMEOUT_MS);
    known->lifetime = wire_setting_u64(&w, SPAN("lifetime"), 0);
    if (asked_servers(f->policy, c, known->step, &w, &a, e) != 0)
        goto out;
    if (signed_ask(&w, f->signer, f->ops->wall(f->arg), &own, e) != 0)
        goto out;
    wire_put_fetch(&b, &w);
    if (!dynbuf_ok(&b)) {
        err_set(e, "what must be told to its source is too long");
        goto out;
    }
    rc = send_it(f, known, wire_setting(&w, SPAN("refresh_token"), 0), dynbuf_span(&b), e);
out:
    signed_clear(&own);
    for (size_t i = 0; i < FETCH_SETTINGS_MAX; i++)
        secret_free(&held[i]);
    secret_free(&jwt);
    dynbuf_wipe(&b);
    arena_free(&a);
    return rc;
}

/* Who asks just now with what this one would ask with, and what only one can use. */
static const struct fetch *asks_with(const struct fetches *f, const struct fetch *known)
{
    for (size_t i = 0; known->rotates[0] != '\0' && i < FETCHES_MAX; i++)
        if (&f->v[i] != known && f->v[i].asked && strcmp(f->v[i].rotates, known->rotates) == 0)
            return &f->v[i];
    return NULL;
}

struct want {              /* of a value, by somebody */
    uint64_t refused, now; /* the version that the upstream would not take; 0: none */
    bool again;            /* whether there is one or not */
};

static bool is_stale(const struct fetch *known, const struct want *w)
{
    return known->value != NULL && w->now < known->live_until && !w->again && w->refused != 0 &&
           w->refused == known->version;
}

static bool is_renewed(const struct fetch *known, const struct want *w)
{
    return is_stale(known, w) && w->now >= known->renewed_until;
}

static bool is_due(const struct fetch *known, const struct want *w)
{
    bool live = known->value != NULL && w->now < known->live_until, renew = is_renewed(known, w);
    return w->again || (w->now >= known->failed_until && (!live || w->now >= known->fresh_until || renew));
}

static enum fetch_found need_step(struct fetches *f, struct fetch *known, const struct credential *c,
                                  const struct fetch *first, const struct want *w, uint64_t *wait, struct err *e)
{
    const struct fetch *other = asks_with(f, known);
    bool live = known->value != NULL && w->now < known->live_until && !w->again;
    bool stale = is_stale(known, w), renew = is_renewed(known, w), due = is_due(known, w);
    struct err why = {{0}};
    if (!known->asked && due && other != NULL && w->again)
        err_set(&known->why, "%s is being asked with for another credential; try again shortly", known->rotates);
    else if (!known->asked && due && other == NULL && ask(f, known, c, first, w->again || renew, &why) != 0)
        known->why = why;
    if (renew)
        known->renewed_until = w->now + FETCH_RENEW_MS;
    *wait = known->asked ? known->asked : due && other != NULL && !w->again ? other->asked : 0;
    bool made = known->value != NULL && !known->asked && known->why.text[0] == '\0'; /* just now, or it lives */
    if ((live && !(stale && *wait)) || (made && w->now < known->live_until))
        return FETCH_HERE;
    if (*wait)
        return FETCH_LATER;
    err_set(e, "%s", known->why.text);
    return FETCH_REFUSED;
}

/* The narrow one is asked for when the other is there, which is asked for anew where it was perhaps no good. */
static enum fetch_found need_both(struct fetches *f, struct fetch *first, struct fetch *narrow,
                                  const struct credential *c, struct want w, uint64_t *wait, struct err *e)
{
    const struct want of_first = {narrow->why.text[0] != '\0' ? first->version : 0, w.now, w.again};
    bool live = narrow->value != NULL && w.now < narrow->live_until && !w.again;
    bool usable = live && !is_stale(narrow, &w);
    enum fetch_found found = FETCH_HERE;
    narrow->anew = w.again || (narrow->anew && (first->asked || first->why.text[0] == '\0'));
    w.again = narrow->anew;
    if (!narrow->asked && is_due(narrow, &w))
        found = need_step(f, first, c, NULL, &of_first, wait, e);
    if (found == FETCH_HERE && first->asked && (usable || narrow->anew)) {
        *wait = first->asked; /* with what comes it lives longer */
        found = FETCH_LATER;
    }
    if (found == FETCH_LATER)
        return usable ? FETCH_HERE : FETCH_LATER;
    bool longer = narrow->anew || first->live_until > narrow->live_until;
    narrow->anew = false;
    if (live && (found == FETCH_REFUSED || (usable && !longer)))
        return FETCH_HERE;
    return found == FETCH_REFUSED ? FETCH_REFUSED : need_step(f, narrow, c, first, &w, wait, e);
}

static enum fetch_found need(struct fetches *f, const struct credential *c, uint64_t refused, bool again,
                             uint64_t *wait, struct err *e)
{
    const struct want w = {refused, f->ops->now(f->arg), again};
    bool two = asked_last(f->policy, c) == ASKED_DOWNSCOPE;
    struct fetch *first = f->policy != NULL ? open_fetch(f, c, ASKED_FIRST, NULL, w.now) : NULL;
    struct fetch *narrow = first != NULL && two ? open_fetch(f, c, ASKED_DOWNSCOPE, first, w.now) : NULL;
    *wait = 0;
    if (first == NULL || (two && narrow == NULL)) {
        err_set(e, "too many values are being fetched; try again shortly");
        return FETCH_REFUSED;
    }
    return two ? need_both(f, first, narrow, c, w, wait, e) : need_step(f, first, c, NULL, &w, wait, e);
}

enum fetch_found fetch_need(struct fetches *f, const struct credential *c, uint64_t refused, uint64_t *wait,
                            struct err *e)
{
    return need(f, c, refused, false, wait, e);
}

enum fetch_found fetch_again(struct fetches *f, const struct credential *c, uint64_t *wait, struct err *e)
{
    return need(f, c, 0, true, wait, e);
}

enum fetch_found fetch_go_on(struct fetches *f, const struct credential *c, uint64_t *wait, struct err *e)
{
    const struct fetch *narrow = asked_last(f->policy, c) == ASKED_FIRST ? NULL : find(f, c, ASKED_DOWNSCOPE);
    *wait = narrow != NULL ? narrow->asked : 0;
    return *wait ? FETCH_LATER : narrow != NULL ? need(f, c, 0, false, wait, e) : FETCH_HERE;
}

/* ---- what is known ---- */

int fetch_outcome(const struct fetches *f, const struct credential *c, struct err *e)
{
    const struct fetch *first = find(f, c, ASKED_FIRST), *known = first;
    if (first == NULL || first->why.text[0] == '\0')
        known = find(f, c, asked_last(f->policy, c));
    return known == NULL || known->why.text[0] == '\0' ? 0 : err_set(e, "%s", known->why.text);
}

uint64_t fetch_version(const struct fetches *f, const struct credential *c)
{
    const struct fetch *known = find(f, c, asked_last(f->policy, c));
    return known != NULL && known->value != NULL ? known->version : 0;
}

struct secret *fetch_value(const struct fetches *f, const struct credential *c, struct err *e)
{
    const struct fetch *known = find(f, c, asked_last(f->policy, c));
    if (known != NULL && known->value != NULL && f->ops->now(f->arg) < known->live_until)
        return secret_new(secret_bytes(known->value));
    err_set(e, "%s", known && known->why.text[0] ? known->why.text : "it was not fetched yet");
    return NULL;
}

struct secret *fetch_previous(const struct fetches *f, const struct credential *c, size_t i)
{
    const struct fetch *known = find(f, c, asked_last(f->policy, c));
    bool dead = known != NULL && known->value != NULL && f->ops->now(f->arg) >= known->live_until;
    if (known == NULL || i >= (size_t)FETCHES_PREVIOUS + dead)
        return NULL;
    const struct secret *s = dead && i == 0 ? known->value : known->previous[i - dead];
    return s != NULL ? secret_new(secret_bytes(s)) : NULL;
}

/* ---- answers ---- */

/* What the answer brings in place of what was used up; and whether its value may be used. */
static int keep(struct fetches *f, struct fetch *e, struct span next, struct err *why)
{
    struct err lost = {{0}};
    if (e->rotates[0] == '\0')
        return 0;
    if (!still_stored(f, e))
        return err_set(why, "%s was changed while it was asked with; repeat the request", e->rotates);
    if (next.n == 0)
        return 0;
    if (value_check(next, &lost) == 0) {
        if (f->ops->keep(f->arg, span_str(e->rotates), next, &lost) == 0)
            return 0;
        e->unkept = secret_new(next);
    }
    return err_set(why, "the next %s cannot be kept: %s", e->rotates, lost.text);
}

/* A job parses what a stranger sends; its words go to the operator's terminal. */
static void take_words(struct span words, struct err *why)
{
    struct dynbuf shown;
    dynbuf_init(&shown, VISIBLE_ESCAPE_MAX * FETCH_WHY_MAX);
    visible_text(&shown, words, false);
    err_set(why, "%.*s", SPAN_FMT(dynbuf_span(&shown)));
    dynbuf_free(&shown);
}

int fetch_answered(struct fetches *f, uint64_t id, struct span payload)
{
    struct msg_in m = msg_in(payload);
    struct wire_fetched w;
    struct fetch *e = NULL;
    struct secret *value = NULL;
    uint64_t now = f->ops->now(f->arg);
    for (size_t i = 0; i < FETCHES_MAX && e == NULL; i++)
        if (f->v[i].asked == id && id != 0)
            e = &f->v[i];
    if (e == NULL)
        return -1;
    e->asked = 0;
    e->why.text[0] = '\0';
    if (wire_get_fetched(&m, &w) != 0 || msg_end(&m) != 0) {
        err_set(&e->why, "the fetcher's answer cannot be read");
    } else if ((w.ok || w.keep.n) && keep(f, e, w.keep, &e->why) != 0) {
        value = NULL;
    } else if (!w.ok) {
        take_words(w.why, &e->why);
    } else {
        struct span v = value_trim(w.value);
        if (value_check(v, &e->why) == 0 && (value = secret_new(v)) == NULL)
            err_set(&e->why, "out of memory");
    }
    if (value != NULL && e->rotates[0] == '\0') {
        secret_free(&e->held);
        e->held = w.keep.n ? secret_new(w.keep) : NULL; /* without it another value is got the next time */
    }
    if (value != NULL)
        take(e, value, id, w.lifetime_ms, now);
    else
        e->failed_until = now + FETCH_FAILED_MS;
    if (value == NULL && e->step == ASKED_DOWNSCOPE) {
        const struct err why = e->why;
        err_set(&e->why, "downscope: %s", why.text);
    }
    return 0;
}

bool fetches_rotate(const struct fetches *f)
{
    for (size_t i = 0; i < FETCHES_MAX; i++)
        if (f->v[i].asked && f->v[i].rotates[0] != '\0')
            return true;
    return false;
}

void fetches_lost(struct fetches *f)
{
    for (size_t i = 0; i < FETCHES_MAX; i++)
        if (f->v[i].asked) {
            f->v[i].asked = 0;
            err_set(&f->v[i].why, "the fetcher is restarting; repeat the request");
        }
}
