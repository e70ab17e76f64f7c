/* What stands in the file and no request shows: whose key it is, where it may go though no rule sends it, who
 * approves, what upstreams are. Compared by name. */
#include "cli/policy/diff/diff_parts.h"

#include <stdarg.h>
#include <stdio.h>

struct entry *diff_entry(struct diff *d)
{
    struct entry *v = arena_more(&d->a, d->entry, d->nentries, &d->max, sizeof(*v));
    d->failed |= v == NULL;
    if (v == NULL)
        return NULL;
    d->entry = v;
    d->entry[d->nentries] = (struct entry){.classes = 0};
    return &d->entry[d->nentries++];
}

static void PRINTF(4, 5) say(struct diff *d, enum diff_kind kind, struct span op, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    struct entry *e = diff_entry(d);
    if (e == NULL || n < 0)
        return;
    size_t length = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    *e = (struct entry){.kind = kind, .op = op, .text = arena_copy(&d->a, span_of(text, length))};
    d->failed |= e->text.p == NULL;
}

static struct span title(struct diff *d, const char *word, struct span name, uint32_t port)
{
    struct span cut = span_first(name, 300);
    struct span out = port ? arena_printf(&d->a, "%s %.*s:%u", word, SPAN_FMT(cut), port)
                           : arena_printf(&d->a, "%s %.*s", word, SPAN_FMT(cut));
    d->failed |= out.p == NULL;
    return out;
}

static enum diff_kind kind_of(int how)
{
    return how == 1 ? DIFF_WIDENED : how == -1 ? DIFF_NARROWED : DIFF_CHANGED;
}

/* ---- credentials ---- */

/* A place, and one path of it for every class of paths that the places of both policies tell apart. */
static void compare_place(struct diff *d, struct span name, uint32_t was, uint32_t is, const struct policy *p,
                          const struct img_place *l, bool *told)
{
    struct pattern v[256];
    struct minterms found;
    struct arena a;
    size_t n = 0;
    bool all = true;
    arena_init(&a, DIFF_MEMORY);
    for (unsigned side = OLD; side <= NEW; side++) {
        const struct img_cred *c = img_at(d->p[side], IMG_CRED, side == OLD ? was : is);
        for (uint32_t i = 0; i < c->only.n; i++) {
            const struct img_place *o = img_at(d->p[side], IMG_PLACE, c->only.first + i);
            if (o->path.n == 0)
                continue;
            all &= n < 256;
            if (n < 256)
                v[n++] = (struct pattern){img_glob(d->p[side], o->path, 0), false};
        }
    }
    struct span host = img_span(p, l->host);
    if (!all || minterms_find(v, n, MINTERM_PATH, &a, &found) != 0) {
        d->failed = true;
        found.n = 0;
    }
    for (size_t i = 0; i < found.n; i++)
        for (uint32_t bit = SCHEME_HTTPS; bit <= SCHEME_HTTP; bit <<= 1) {
            struct span scheme = bit == SCHEME_HTTPS ? SPAN("https") : SPAN("http");
            uint16_t port = (uint16_t)l->port;
            bool then = policy_credential_may_go(d->p[OLD], was, scheme, host, port, found.v[i].text);
            bool now = policy_credential_may_go(d->p[NEW], is, scheme, host, port, found.v[i].text);
            if (then != now && !told[now])
                say(d, now ? DIFF_WIDENED : DIFF_NARROWED, title(d, "credential", name, 0),
                    "only: it may %s go to %.*s://%.*s:%u%.*s", now ? "now" : "no longer", SPAN_FMT(scheme),
                    SPAN_FMT(host), port, SPAN_FMT(found.v[i].text));
            told[now] |= then != now;
        }
    arena_free(&a);
}

static bool settings_equal(const struct diff *d, struct img_range a, struct img_range b)
{
    const struct policy *old = d->p[OLD], *new = d->p[NEW];
    bool equal = a.n == b.n;
    for (uint32_t i = 0; i < a.n && equal; i++) {
        const struct img_setting *x = img_at(old, IMG_SETTING, a.first + i);
        const struct img_setting *y = img_at(new, IMG_SETTING, b.first + i);
        equal = x->from == y->from && span_eq(img_span(old, x->key), img_span(new, y->key)) &&
                span_eq(img_span(old, x->value), img_span(new, y->value));
    }
    return equal;
}

/* The place that the policy names for it; NULL: it has none, or those that SDKs know by heart. */
static const struct img_stub *token_url(const struct policy *p, uint32_t credential)
{
    for (uint32_t i = 0; i < p->n[IMG_STUB]; i++) {
        const struct img_stub *b = img_at(p, IMG_STUB, i);
        if (b->credential == credential && b->kind == STUB_OAUTH)
            return b;
    }
    return NULL;
}

static void compare_stub(struct diff *d, struct span op, uint32_t was, uint32_t is)
{
    const struct policy *old = d->p[OLD], *new = d->p[NEW];
    uint32_t before = ((const struct img_cred *)img_at(old, IMG_CRED, was))->stub;
    uint32_t after = ((const struct img_cred *)img_at(new, IMG_CRED, is))->stub;
    const struct img_stub *a = token_url(old, was), *b = token_url(new, is);
    if (before != after)
        say(d, after == STUB_NONE ? DIFF_NARROWED : DIFF_WIDENED, op,
            after == STUB_NONE ? "stub: leases are given by hand alone" : "stub: who uses it gets leases by asking");
    else if (a != NULL && b != NULL &&
             (a->port != b->port || !span_eq(img_span(old, a->host), img_span(new, b->host)) ||
              !span_eq(img_span(old, a->path), img_span(new, b->path))))
        say(d, DIFF_CHANGED, op, "token_url: another address");
}

static bool signed_alike(const struct diff *d, const struct img_cred *a, const struct img_cred *b)
{
    return a->hash == b->hash && a->encoding == b->encoding && a->key_coding == b->key_coding &&
           span_eq(img_span(d->p[OLD], a->template), img_span(d->p[NEW], b->template)) &&
           settings_equal(d, a->fields, b->fields);
}

static void compare_credential(struct diff *d, uint32_t was, uint32_t is)
{
    const struct img_cred *a = img_at(d->p[OLD], IMG_CRED, was), *b = img_at(d->p[NEW], IMG_CRED, is);
    struct span name = img_span(d->p[NEW], b->name);
    struct span op = title(d, "credential", name, 0);
    if (a->source != b->source || !span_eq(img_span(d->p[OLD], a->arg), img_span(d->p[NEW], b->arg)) ||
        !settings_equal(d, a->settings, b->settings))
        say(d, DIFF_CHANGED, op, "source: another secret");
    if (!signed_alike(d, a, b) || a->slot != b->slot || a->basic != b->basic || a->certificate != b->certificate ||
        a->sign != b->sign || !span_eq(img_span(d->p[OLD], a->region), img_span(d->p[NEW], b->region)) ||
        !span_eq(img_span(d->p[OLD], a->service), img_span(d->p[NEW], b->service)) ||
        !span_eq(img_span(d->p[OLD], a->where), img_span(d->p[NEW], b->where)) ||
        !span_eq(img_span(d->p[OLD], a->header), img_span(d->p[NEW], b->header)) ||
        !span_eq(img_span(d->p[OLD], a->format), img_span(d->p[NEW], b->format)) ||
        !span_eq(img_span(d->p[OLD], a->user), img_span(d->p[NEW], b->user)))
        say(d, DIFF_CHANGED, op, "inject: in another way");
    if (a->refuse != b->refuse)
        say(d, b->refuse ? DIFF_NARROWED : DIFF_WIDENED, op, "scrub: an answer with it in it is now %s",
            b->refuse ? "refused" : "covered");
    if (a->lease != b->lease)
        say(d, DIFF_CHANGED, op, "lease: of another form, or none; those there are do not count any more");
    if (a->require_lease != b->require_lease)
        say(d, b->require_lease ? DIFF_NARROWED : DIFF_WIDENED, op,
            b->require_lease ? "require_lease: refused without a lease" : "require_lease: given without a lease too");
    if (a->freeze_on_leak != b->freeze_on_leak)
        say(d, DIFF_CHANGED, op, b->freeze_on_leak ? "on_leak: freezes writes" : "on_leak: only refuses");
    compare_stub(d, op, was, is);
    struct credential old, new;
    bool both = policy_credential(d->p[OLD], was, &old) && policy_credential(d->p[NEW], is, &new);
    if (both && !span_eq(old.beside, new.beside))
        say(d, DIFF_CHANGED, op, "beside: another client certificate, or none");
    for (unsigned side = OLD; side <= NEW; side++) {
        const struct img_cred *c = side == OLD ? a : b;
        for (uint32_t i = 0; i < c->only.n; i++) {
            const struct img_place *l = img_at(d->p[side], IMG_PLACE, c->only.first + i);
            bool told[2] = {side == NEW, side == OLD}; /* the old places show what is gone, the new what came */
            compare_place(d, name, was, is, d->p[side], l, told);
        }
    }
}

static uint32_t named(const struct policy *p, enum img_table t, struct span name)
{
    for (uint32_t i = 0; i < p->n[t]; i++)
        if (span_eq(img_span(p, *(const struct img_str *)img_at(p, t, i)), name)) /* a name is the first field */
            return i;
    return IMG_NONE;
}

static void compare_named(struct diff *d, enum img_table t, const char *word,
                          void (*both)(struct diff *d, uint32_t was, uint32_t is))
{
    for (uint32_t i = 0; i < d->p[NEW]->n[t]; i++) {
        struct span name = img_span(d->p[NEW], *(const struct img_str *)img_at(d->p[NEW], t, i));
        uint32_t was = named(d->p[OLD], t, name);
        if (was == IMG_NONE)
            say(d, DIFF_NOTE, title(d, word, name, 0), "is new");
        else
            both(d, was, i);
    }
    for (uint32_t i = 0; i < d->p[OLD]->n[t]; i++) {
        struct span name = img_span(d->p[OLD], *(const struct img_str *)img_at(d->p[OLD], t, i));
        if (named(d->p[NEW], t, name) == IMG_NONE)
            say(d, DIFF_NOTE, title(d, word, name, 0), "is gone");
    }
}

/* ---- approvers and packs ---- */

static void say_operators(struct diff *d, struct span op, unsigned in, struct img_range r, struct img_range other)
{
    const struct policy *p = d->p[in], *q = d->p[1 - in];
    for (uint32_t i = 0; i < r.n; i++)
        if (!diff_texts_within(p, (struct img_range){r.first + i, 1}, q, other))
            say(d, in == NEW ? DIFF_WIDENED : DIFF_NARROWED, op, "%.*s may %s approve",
                SPAN_FMT(span_first(img_text(p, r, i), 200)), in == NEW ? "now" : "no longer");
}

static void compare_approver(struct diff *d, uint32_t was, uint32_t is)
{
    const struct img_approver *a = img_at(d->p[OLD], IMG_APPROVER, was), *b = img_at(d->p[NEW], IMG_APPROVER, is);
    struct span op = title(d, "approvers", img_span(d->p[NEW], b->name), 0);
    say_operators(d, op, NEW, b->operators, a->operators);
    say_operators(d, op, OLD, a->operators, b->operators);
    say_operators(d, op, NEW, b->groups, a->groups);
    say_operators(d, op, OLD, a->groups, b->groups);
}

static void compare_pack(struct diff *d, uint32_t was, uint32_t is)
{
    const struct img_pack *b = img_at(d->p[NEW], IMG_PACK, is);
    struct span then = diff_pack_text(d->p[OLD], img_at(d->p[OLD], IMG_PACK, was), &d->a);
    struct span now = diff_pack_text(d->p[NEW], b, &d->a);
    if (!span_eq(then, now))
        say(d, DIFF_NOTE, title(d, "pack", img_span(d->p[NEW], b->name), 0), "classifies otherwise");
}

/* ---- upstreams ---- */

static void compare_texts(struct diff *d, struct span op, const char *key, struct img_range was, struct img_range is,
                          int more)
{
    bool gone = !diff_texts_within(d->p[OLD], was, d->p[NEW], is),
         came = !diff_texts_within(d->p[NEW], is, d->p[OLD], was);
    if (gone || came)
        say(d, gone && came ? DIFF_CHANGED : kind_of(came ? more : -more), op, "%s: %s", key,
            gone && came ? "others than before"
            : came       ? "more than before"
                         : "fewer than before");
}

static void compare_text(struct diff *d, struct span op, const char *key, struct img_str was, struct img_str is)
{
    if (!span_eq(img_span(d->p[OLD], was), img_span(d->p[NEW], is)))
        say(d, DIFF_CHANGED, op, "%s: %s", key, was.n == 0 ? "is new" : is.n == 0 ? "is gone" : "another one");
}

static void compare_upstream(struct diff *d, const struct img_upstream *a, const struct img_upstream *b)
{
    struct span op = title(d, "upstream", img_span(d->p[NEW], b->host), b->port);
    compare_text(d, op, "address", a->address, b->address);
    compare_text(d, op, "ca", a->ca, b->ca);
    compare_text(d, op, "crl", a->crl, b->crl);
    compare_text(d, op, "region", a->region, b->region);
    compare_texts(d, op, "allow_private", a->allow_private, b->allow_private, 1);
    /* No pin at all is every key; else each more is one more key. */
    if ((a->pins.n == 0) != (b->pins.n == 0))
        say(d, b->pins.n == 0 ? DIFF_WIDENED : DIFF_NARROWED, op, "pins: %s",
            b->pins.n == 0 ? "none any more, any key will do" : "there were none");
    else
        compare_texts(d, op, "pins", a->pins, b->pins, 1);
    if (a->cleartext != b->cleartext)
        say(d, b->cleartext ? DIFF_WIDENED : DIFF_NARROWED, op, "cleartext_credentials: %s",
            b->cleartext ? "a credential may go there over http" : "no longer");
    if (a->only_tls13 != b->only_tls13)
        say(d, b->only_tls13 ? DIFF_NARROWED : DIFF_WIDENED, op, "TLS 1.2: %s", b->only_tls13 ? "no longer" : "too");
}

/* One that is not there is one that says nothing. */
static void compare_upstreams(struct diff *d)
{
    for (uint32_t i = 0; i < d->p[NEW]->n[IMG_UPSTREAM]; i++) {
        const struct img_upstream *b = img_at(d->p[NEW], IMG_UPSTREAM, i), none = {.host = b->host, .port = b->port};
        const struct img_upstream *a = region_upstream(d->p[OLD], img_span(d->p[NEW], b->host), (uint16_t)b->port);
        compare_upstream(d, a ? a : &none, b);
    }
    for (uint32_t i = 0; i < d->p[OLD]->n[IMG_UPSTREAM]; i++) {
        const struct img_upstream *a = img_at(d->p[OLD], IMG_UPSTREAM, i);
        struct span host = img_span(d->p[OLD], a->host);
        if (region_upstream(d->p[NEW], host, (uint16_t)a->port) == NULL)
            say(d, DIFF_CHANGED, title(d, "upstream", host, a->port), "is gone: its name is resolved as any other's");
    }
}

void diff_lists(struct diff *d)
{
    uint64_t was = d->p[OLD]->head->learning_until_ms, is = d->p[NEW]->head->learning_until_ms;
    compare_named(d, IMG_CRED, "credential", compare_credential);
    compare_named(d, IMG_APPROVER, "approvers", compare_approver);
    compare_named(d, IMG_PACK, "pack", compare_pack);
    compare_upstreams(d);
    if (was != is && (was > d->now_ms || is > d->now_ms))
        say(d, is > was ? DIFF_WIDENED : DIFF_NARROWED, SPAN("learning"), "learning: %s",
            is > was ? "reads that no rule names pass, and for longer than before" : "not for so long");
}
