#include "proxy/judge/accounts/sandbox.h"

#include <stdlib.h>

#include "proxy/judge/accounts/account.h"
#include "proxy/judge/accounts/egress.h"
#include "proxy/judge/post.h"

enum { HOUR_MS = 3600 * 1000, TOKEN_MAX = 1024 };

struct sandbox *sandbox_ref(struct sandbox *s)
{
    s->refs++;
    return s;
}

void sandbox_unref(struct sandbox *s)
{
    if (s == NULL || --s->refs > 0)
        return;
    arena_free(&s->text);
    for (size_t i = 0; i < EGRESS_WHOSE; i++)
        egress_unref(s->egress[i]);
    account_unref(s->account);
    free(s);
}

struct sandbox *sandbox_find(struct judge *j, struct span name)
{
    struct sandbox *s = j->sandboxes;
    while (s != NULL && !span_eq(s->name, name))
        s = s->next;
    return s;
}

struct sandbox *sandbox_still(struct judge *j, struct span name, struct span session)
{
    struct sandbox *s = sandbox_find(j, name);
    return s != NULL && !s->ended && span_eq(s->session, session) ? s : NULL;
}

struct subject sandbox_who(const struct sandbox *s, struct span lane, struct label own[SANDBOX_LABELS])
{
    struct subject who = {s->name, s->label, s->nlabels};
    size_t n = 0;
    if (lane.n == 0)
        return who;
    for (size_t i = 0; i < s->nlabels; i++)
        if (!span_eq(s->label[i].key, SPAN("lane")))
            own[n++] = s->label[i];
    own[n++] = (struct label){.key = SPAN("lane"), .value = lane};
    return (struct subject){s->name, own, n};
}

static int copy(struct arena *a, struct span from, struct span *to)
{
    *to = arena_copy(a, from);
    return to->n == from.n ? 0 : -1;
}

/* Nothing of it runs: it has ended, or its files alone are kept. */
static bool is_over(const struct wire_sandbox *w)
{
    return span_eq(w->kind, SPAN("ended")) || span_eq(w->kind, SPAN("idle"));
}

static bool is_wardens(const struct wire_sandbox *w)
{
    return span_eq(w->kind, SPAN("started")) || is_over(w);
}

static struct sandbox *make(struct judge *j, const struct wire_sandbox *w, struct account *account)
{
    struct sandbox *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->refs = 1;
    arena_init(&s->text, 64 * 1024);
    int bad = copy(&s->text, w->name, &s->name) | copy(&s->text, w->session, &s->session) |
              copy(&s->text, w->reach, &s->reach);
    for (s->nlabels = 0; s->nlabels < w->nlabels; s->nlabels++) {
        struct label *l = &s->label[s->nlabels];
        bad |= copy(&s->text, w->label[s->nlabels].key, &l->key);
        bad |= copy(&s->text, w->label[s->nlabels].value, &l->value);
    }
    s->has_token = w->has_token;
    s->token_hash = w->token_hash;
    s->generation = w->generation;
    s->started = is_wardens(w);
    s->ended = is_over(w);
    s->frozen = w->frozen.n > 0;
    s->nolder = w->nolder;
    memcpy(s->older, w->older, sizeof(s->older));
    s->leafs_left = DENIED_LEAFS;
    s->account = account ? account_ref(account) : account_new();
    bad |= egress_of_sandbox(j, s, w);
    if (bad || s->account == NULL) {
        sandbox_unref(s);
        return NULL;
    }
    return s;
}

static void unlink_sandbox(struct judge *j, struct sandbox *s)
{
    struct sandbox **at = &j->sandboxes;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->next = NULL;
    j->nsandboxes--;
}

void sandbox_end_front(struct judge *j, struct front *f)
{
    f->over = true;
    msg_put_u64(post_begin(j, ROLE_PARENT, 0, M_FRONT_OVER, 0), f->instance);
    post_send(j, "the parent could not be told that a front is over");
}

/* One of the warden's that ended, began anew or went on after a pause: what was connected before is not its own. */
static bool is_anew(const struct sandbox *old, const struct wire_sandbox *w)
{
    return is_wardens(w) && (old->generation != w->generation || is_over(w));
}

/* Fronts of the name follow the sandbox through new labels and tokens, and never into another session. over (as for
 * s NULL): they follow it nowhere. */
static void point_fronts(struct judge *j, struct span name, struct sandbox *s, bool over)
{
    for (struct front *f = j->fronts; f != NULL; f = f->next) {
        if (!span_eq(f->name, name) || (f->sandbox == NULL && s == NULL))
            continue;
        if (f->sandbox != NULL && (over || !span_eq(f->sandbox->session, s->session)))
            sandbox_end_front(j,
                              f); /* its connections are those of a sandbox that is gone, whoever has the name now */
        sandbox_unref(f->sandbox);
        f->sandbox = f->over ? NULL : sandbox_ref(s);
    }
}

int sandbox_put(struct judge *j, const struct wire_sandbox *w)
{
    struct sandbox *old = sandbox_find(j, w->name);
    if (old == NULL && j->nsandboxes >= SANDBOXES_MAX)
        return -1;
    struct sandbox *s = make(j, w, old ? old->account : NULL);
    if (s == NULL)
        return -1;
    if (old != NULL) {
        unlink_sandbox(j, old);
        s->leafs_left = old->leafs_left;
        s->leafs_since = old->leafs_since;
        if (span_eq(old->session, s->session))
            s->stubs_over = old->stubs_over && old->generation == s->generation;
    }
    s->next = j->sandboxes;
    j->sandboxes = s;
    j->nsandboxes++;
    point_fronts(j, s->name, s, old != NULL && is_anew(old, w));
    sandbox_unref(old);
    return 0;
}

void sandbox_remove(struct judge *j, struct span name)
{
    struct sandbox *s = sandbox_find(j, name);
    if (s == NULL)
        return;
    unlink_sandbox(j, s);
    egress_forget(j, name);
    point_fronts(j, s->name, NULL, true);
    sandbox_unref(s);
}

/* Every one is compared, whichever fits. */
static bool has_token(const struct sandbox *s, const struct digest *d)
{
    const struct span want = span_of(d->b, DIGEST_BYTES);
    bool same = span_eq_consttime(want, span_of(s->token_hash.b, DIGEST_BYTES));
    for (size_t i = 0; i < s->nolder; i++)
        same |= span_eq_consttime(want, span_of(s->older[i].b, DIGEST_BYTES));
    return same && s->has_token;
}

struct sandbox *sandbox_by_token(struct judge *j, struct span token)
{
    struct sandbox *found = NULL;
    struct digest d;
    if (token.n == 0 || token.n > TOKEN_MAX)
        return NULL;
    digest_of(token, &d);
    for (struct sandbox *s = j->sandboxes; s != NULL; s = s->next)
        if (has_token(s, &d))
            found = s;
    return found;
}

bool sandbox_take_leaf(struct sandbox *s, uint64_t now)
{
    const uint64_t each = HOUR_MS / DENIED_LEAFS;
    uint64_t more = (now - s->leafs_since) / each;
    if (s->leafs_left + more >= DENIED_LEAFS) {
        s->leafs_left = DENIED_LEAFS;
        s->leafs_since = now;
    } else {
        s->leafs_left += (unsigned)more;
        s->leafs_since += more * each;
    }
    if (s->leafs_left == 0)
        return false;
    s->leafs_left--;
    return true;
}
