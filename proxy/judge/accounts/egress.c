#include "proxy/judge/accounts/egress.h"

#include <stdlib.h>

#include "proxy/judge/exchange/exchange.h"
#include "proxy/judge/post.h"

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void egress_unref(struct egress *e)
{
    if (e != NULL && --e->refs == 0)
        free(e);
}

static struct egress **place(struct judge *j, enum egress_whose whose, struct span name)
{
    struct egress **at = &j->egress;
    while (*at != NULL && ((*at)->whose != whose || !span_eq((*at)->name, name)))
        at = &(*at)->next;
    return at;
}

static struct egress *add(struct judge *j, enum egress_whose whose, struct span name)
{
    struct egress *e = calloc(1, sizeof(*e) + name.n);
    if (e == NULL)
        return NULL;
    e->refs = 1;
    e->whose = whose;
    e->name = span_of(e->name_bytes, name.n);
    memcpy(e->name_bytes, name.p, name.n);
    e->next = j->egress;
    j->egress = e;
    return e;
}

static void drop(struct egress **at)
{
    struct egress *e = *at;
    *at = e->next;
    e->next = NULL;
    e->question = 0;
    e->gone = true;
    egress_unref(e);
}

void egress_forget(struct judge *j, struct span sandbox)
{
    struct egress **at = place(j, EGRESS_SANDBOX, sandbox);
    if (*at != NULL)
        drop(at);
}

void egress_free_all(struct judge *j)
{
    while (j->egress != NULL)
        drop(&j->egress);
}

static void begin_anew(struct egress *e, uint64_t epoch)
{
    e->epoch = epoch;
    e->out = 0;
    for (size_t m = 0; m < EGRESS_MEASURES; m++)
        e->used[m] = e->kept[m] = e->asked[m] = 0; /* also what an open question would keep */
}

/* Of a sandbox that began anew what is under way keeps the count of the one before. */
static struct egress *of_sandbox(struct judge *j, const struct wire_sandbox *w)
{
    struct egress **at = place(j, EGRESS_SANDBOX, w->name), *e = *at;
    if (e != NULL && e->epoch != w->egress_epoch) {
        drop(at);
        e = NULL;
    }
    if (e == NULL && (e = add(j, EGRESS_SANDBOX, w->name)) == NULL)
        return NULL;
    e->known = true;
    e->epoch = w->egress_epoch;
    memcpy(e->most, w->egress, sizeof(e->most));
    return e;
}

/* NULL with *ok: it has no limits. */
static struct egress *of_tenant(struct judge *j, struct span tenant, bool *ok)
{
    struct span rest = dynbuf_span(&j->egress_tenants);
    struct egress_tenant t;
    *ok = true;
    while (egress_tenant_next(&rest, &t) == 1)
        if (span_eq(t.name, tenant)) {
            struct egress *e = *place(j, EGRESS_TENANT, tenant);
            if (e == NULL)
                e = add(j, EGRESS_TENANT, tenant);
            *ok = e != NULL;
            if (e == NULL)
                return NULL;
            e->known = true;
            e->per_ms = t.per_ms;
            memcpy(e->most, t.most, sizeof(e->most));
            return e;
        }
    return NULL;
}

int egress_of_sandbox(struct judge *j, struct sandbox *s, const struct wire_sandbox *w)
{
    bool limits = w->egress[EGRESS_REQUESTS] != 0 || w->egress[EGRESS_BYTES] != 0, ok;
    struct egress *own = limits ? of_sandbox(j, w) : NULL;
    s->egress[EGRESS_TENANT] = of_tenant(j, w->tenant, &ok);
    s->egress[EGRESS_SANDBOX] = own;
    for (size_t i = 0; i < EGRESS_WHOSE; i++)
        if (s->egress[i] != NULL)
            s->egress[i]->refs++;
    return ok && (own != NULL || !limits) ? 0 : -1;
}

int egress_config(struct judge *j, struct span text)
{
    struct span rest = text;
    struct egress_tenant t;
    int rc;
    while ((rc = egress_tenant_next(&rest, &t)) == 1)
        ;
    dynbuf_reset(&j->egress_tenants);
    return rc == 0 && dynbuf_add(&j->egress_tenants, text) == 0 ? 0 : -1;
}

/* --- the ledger --------------------------------------------------------------- */

static bool is_kept(const struct egress *e)
{
    return e->used[EGRESS_REQUESTS] <= e->kept[EGRESS_REQUESTS] && e->used[EGRESS_BYTES] <= e->kept[EGRESS_BYTES];
}

static void say(struct judge *j, struct egress *e, const uint64_t n[EGRESS_MEASURES])
{
    struct wire_egress w = {.whose = (uint8_t)e->whose, .name = e->name, .epoch = e->epoch};
    if (!j->ledger || e->question != 0 || e->gone)
        return;
    for (size_t m = 0; m < EGRESS_MEASURES; m++)
        w.used[m] = e->asked[m] = at_most(n[m], INT64_MAX);
    for (size_t m = 0; m < EGRESS_MEASURES; m++)
        e->kept[m] = at_most(e->kept[m], e->asked[m]); /* what is settled may be on disk before it is said so */
    wire_put_egress(post_begin(j, ROLE_LEDGER, 0, M_EGRESS_PUT, j->egress_questions + 1), &w);
    if (post_commit(j, -1) == 0)
        e->question = ++j->egress_questions;
}

/* So much ahead that not each request waits for the disk. */
static void ask(struct judge *j, struct egress *e)
{
    static const uint64_t ahead[] = {[EGRESS_REQUESTS] = EGRESS_AHEAD_REQUESTS, [EGRESS_BYTES] = EGRESS_AHEAD};
    uint64_t n[EGRESS_MEASURES];
    for (size_t m = 0; m < EGRESS_MEASURES; m++) {
        uint64_t more = e->most[m] ? at_most(ahead[m], e->most[m] / EGRESS_AHEAD_PART) : ahead[m];
        n[m] = e->used[m] + more;
        if (e->most[m] && n[m] > e->most[m])
            n[m] = e->used[m] > e->most[m] ? e->used[m] : e->most[m];
    }
    say(j, e, n);
}

int egress_told(struct judge *j, struct span payload)
{
    struct msg_in m = msg_in(payload);
    struct wire_egress w;
    if (wire_get_egress(&m, &w) != 0 || msg_end(&m) != 0)
        return -1;
    struct egress *e = *place(j, (enum egress_whose)w.whose, w.name);
    bool is_new = e == NULL;
    if (is_new && (e = add(j, (enum egress_whose)w.whose, w.name)) == NULL)
        return -1;
    if (!is_new && e->epoch != w.epoch && (e->known || e->epoch > w.epoch) && e->epoch != 0)
        return 0; /* of one before */
    e->epoch = w.epoch;
    memcpy(e->kept, w.used, sizeof(e->kept));
    for (size_t i = 0; i < EGRESS_MEASURES; i++)
        if (e->used[i] < w.used[i] && is_new)
            e->used[i] = w.used[i];
    return 0;
}

static void give(struct exchange *x, uint64_t n, const char *code)
{
    if (n == 0 && websocket_spent(x, code))
        return;
    struct dynbuf *b = post_begin(x->judge, ROLE_CARRIER, 0, M_EGRESS_GIVE, x->xid);
    msg_put_u64(b, n);
    msg_put_span(b, span_str(code));
    post_send(x->judge, "how much more it may send could not be said to the carrier");
}

/* Of what it was waiting for nothing is on disk. */
static void give_up(struct exchange *x)
{
    x->egress.owed = 0;
    give(x, 0, "store-unavailable");
}

static bool waits_for(const struct exchange *x, const struct egress *e)
{
    return x->egress.owed > 0 && (e == NULL || x->egress.of[EGRESS_SANDBOX] == e || x->egress.of[EGRESS_TENANT] == e);
}

static void settle_debt(struct exchange *x)
{
    const struct egress_part *p = &x->egress;
    for (size_t i = 0; i < EGRESS_WHOSE; i++) {
        const struct egress *e = p->of[i];
        if (e != NULL && p->epoch[i] == e->epoch && !e->gone &&
            (p->due[i][EGRESS_REQUESTS] > e->kept[EGRESS_REQUESTS] ||
             p->due[i][EGRESS_BYTES] > e->kept[EGRESS_BYTES]))
            return;
    }
    uint64_t n = p->owed;
    x->egress.owed = 0;
    give(x, n, "");
}

static void is_on_disk(struct exchange *x, void *arg)
{
    if (waits_for(x, arg))
        settle_debt(x);
}

static void is_not(struct exchange *x, void *arg)
{
    if (waits_for(x, arg))
        give_up(x);
}

int egress_kept(struct judge *j, uint64_t question, struct span payload)
{
    struct msg_in m = msg_in(payload);
    bool ok = msg_get_bool(&m);
    struct egress *e = j->egress;
    if (msg_end(&m) != 0)
        return -1;
    while (e != NULL && e->question != question)
        e = e->next;
    if (e == NULL || question == 0)
        return 0;
    e->question = 0;
    if (ok)
        memcpy(e->kept, e->asked, sizeof(e->kept));
    exchange_each(j, ok ? is_on_disk : is_not, e);
    if (ok && !is_kept(e))
        ask(j, e);
    return 0;
}

void egress_ledger_gone(struct judge *j)
{
    for (struct egress *e = j->egress; e != NULL; e = e->next)
        e->question = 0;
}

void egress_ledger_back(struct judge *j)
{
    for (struct egress *e = j->egress; e != NULL; e = e->next)
        if (e->known && !is_kept(e))
            ask(j, e);
}

static void too_long(struct exchange *x, void *arg)
{
    uint64_t now = *(const uint64_t *)arg;
    if (x->egress.owed > 0 && now - x->egress.since_ms >= EGRESS_STORE_MS)
        give_up(x);
}

uint64_t egress_look(struct judge *j, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    bool owed = false;
    for (struct egress *e = j->egress; e != NULL; e = e->next) {
        bool same = memcmp(e->kept, e->used, sizeof(e->kept)) == 0;
        /* What waits for a person is counted on disk as well. */
        if (e->known && e->flying > 0 && e->question == 0 && !is_kept(e) && now - e->idle_ms >= EGRESS_SETTLE_MS) {
            e->idle_ms = now;
            ask(j, e);
        }
        owed |= e->flying > 0 && (e->question != 0 || !is_kept(e)); /* also while there is no ledger to ask */
        if (!e->known || same || e->flying > 0 || e->question != 0)
            continue;
        if (now - e->idle_ms >= EGRESS_SETTLE_MS || j->ending)
            say(j, e, e->used);
        else
            next = at_most(next, e->idle_ms + EGRESS_SETTLE_MS);
    }
    if (owed) {
        exchange_each(j, too_long, &now);
        next = at_most(next, now + EGRESS_STORE_MS);
    }
    return next;
}

/* --- one exchange ------------------------------------------------------------- */

static void roll(struct judge *j, struct egress *e)
{
    uint64_t now = j->ports.wall(j->ports.arg);
    /* A clock that is set back a little gives nothing anew. */
    if (e->whose == EGRESS_TENANT &&
        (e->epoch == 0 || now + e->per_ms < e->epoch || (now >= e->epoch && now - e->epoch >= e->per_ms)))
        begin_anew(e, now);
}

static uint64_t left(const struct egress *e, enum egress_measure m)
{
    if (e->most[m] == 0)
        return UINT64_MAX;
    return e->used[m] < e->most[m] ? e->most[m] - e->used[m] : 0;
}

/* From now on it is counted with what its sandbox is counted with. */
static void take_part(struct exchange *x)
{
    struct egress_part *p = &x->egress;
    for (size_t i = 0; i < EGRESS_WHOSE; i++) {
        struct egress *e = x->sandbox->egress[i];
        if (e != NULL && p->of[i] == NULL) {
            roll(x->judge, e);
            p->of[i] = e;
            e->refs++;
            e->flying++;
        }
        if (p->of[i] != NULL)
            p->epoch[i] = p->of[i]->epoch;
    }
}

bool egress_is_metered(const struct exchange *x)
{
    return !x->judge->config.shadow && x->sandbox != NULL &&
           (x->sandbox->egress[EGRESS_SANDBOX] != NULL || x->sandbox->egress[EGRESS_TENANT] != NULL);
}

static bool is_past(struct exchange *x, enum egress_measure m, uint64_t more)
{
    struct egress_part *p = &x->egress;
    for (size_t i = 0; i < EGRESS_WHOSE; i++) {
        struct egress *e = p->of[i];
        if (e == NULL || left(e, m) >= more)
            continue;
        uint64_t back = m == EGRESS_BYTES ? e->out - at_most(e->out, p->of_it[i]) : 0;
        p->past = e;
        p->by = m;
        p->busy = back > 0 && more <= e->most[m] && e->used[m] - at_most(e->used[m], back) <= e->most[m] - more;
        return true;
    }
    return false;
}

static void count_request(struct judge *j, struct egress *e)
{
    if (is_kept(e))
        e->idle_ms = j->ports.now(j->ports.arg); /* it may be behind from now on */
    e->used[EGRESS_REQUESTS]++;
}

bool egress_request(struct exchange *x, uint64_t bytes)
{
    struct egress_part *p = &x->egress;
    if (!egress_is_metered(x) || p->counted)
        return true;
    take_part(x);
    if (is_past(x, EGRESS_REQUESTS, 1) || is_past(x, EGRESS_BYTES, bytes < UINT64_MAX ? bytes + 1 : 1))
        return false;
    p->counted = true;
    for (size_t i = 0; i < EGRESS_WHOSE; i++)
        if (p->of[i] != NULL)
            count_request(x->judge, p->of[i]);
    judge_wake_in(x->judge, EGRESS_SETTLE_MS);
    return true;
}

/* Of a window that is over: what is taken from now on is the new one's. */
static void roll_part(struct exchange *x)
{
    struct egress_part *p = &x->egress;
    for (size_t i = 0; i < EGRESS_WHOSE; i++) {
        if (p->of[i] == NULL)
            continue;
        roll(x->judge, p->of[i]);
        if (p->epoch[i] != p->of[i]->epoch)
            p->of_it[i] = 0;
        p->epoch[i] = p->of[i]->epoch;
    }
}

static void take_of(struct exchange *x, size_t i, uint64_t n)
{
    struct egress_part *p = &x->egress;
    struct egress *e = p->of[i];
    bool limited = e->most[EGRESS_BYTES] != 0; /* else it is counted when it is known */
    if (limited) {
        e->used[EGRESS_BYTES] += n;
        e->out += n;
        p->of_it[i] += n;
    }
    memcpy(p->due[i], e->used, sizeof(p->due[i]));
    if (!limited)
        p->due[i][EGRESS_BYTES] = 0;
    if (!is_kept(e))
        ask(x->judge, e);
}

/* want 0: as much as a part is. */
static void take_bytes(struct exchange *x, uint64_t want)
{
    struct egress_part *p = &x->egress;
    uint64_t most = EGRESS_BYTES_MAX;
    roll_part(x);
    for (size_t i = 0; i < EGRESS_WHOSE; i++)
        if (p->of[i] != NULL)
            most = at_most(most, left(p->of[i], EGRESS_BYTES));
    uint64_t part = most / 8 > EGRESS_PART_MAX   ? EGRESS_PART_MAX
                    : most / 8 < EGRESS_PART_MIN ? EGRESS_PART_MIN
                                                 : most / 8;
    uint64_t n = want <= most ? at_most(most, want + part) : 0; /* a part of what is wanted would help nobody */
    if (n == 0) {
        (void)is_past(x, EGRESS_BYTES, want ? want : 1);
        give(x, 0, "egress-limit");
        return;
    }
    for (size_t i = 0; i < EGRESS_WHOSE; i++)
        if (p->of[i] != NULL)
            take_of(x, i, n);
    p->given += n;
    p->owed = n;
    p->since_ms = x->judge->ports.now(x->judge->ports.arg);
    settle_debt(x);
    if (p->owed > 0)
        judge_wake_in(x->judge, EGRESS_STORE_MS);
}

void egress_begin(struct exchange *x, uint64_t body)
{
    x->egress.metered = true;
    /* What is sent later, by a judge that was started anew, was not counted by this one. */
    if (!egress_request(x, body)) {
        give(x, 0, "egress-limit");
        return;
    }
    take_part(x);
    take_bytes(x, body < UINT64_MAX ? body : 0);
}

int egress_more(struct exchange *x, struct span payload)
{
    struct msg_in m = msg_in(payload);
    uint64_t want = msg_get_u64(&m);
    if (msg_end(&m) != 0 || !x->egress.metered || x->egress.owed > 0)
        return -1;
    take_bytes(x, want);
    return 0;
}

void egress_spent(struct exchange *x, uint64_t bytes)
{
    x->egress.spent = true;
    x->egress.was = at_most(bytes, EGRESS_BYTES_MAX);
}

/* What it was and what was taken for it, of one count. */
static void settle(struct egress_part *p, size_t i, uint64_t was)
{
    struct egress *e = p->of[i];
    uint64_t *used = &e->used[EGRESS_BYTES], taken = p->epoch[i] == e->epoch ? p->of_it[i] : 0;
    e->out -= at_most(e->out, taken);
    if (e->most[EGRESS_BYTES] == 0 || was > p->given)
        *used = at_most(*used + (e->most[EGRESS_BYTES] == 0 ? was : was - p->given), EGRESS_BYTES_MAX);
    else
        *used -= at_most(*used, at_most(taken, p->given - was));
}

void egress_end(struct exchange *x)
{
    struct egress_part *p = &x->egress;
    uint64_t was = p->spent ? p->was : x->delivery < DELIVERY_FORWARDED ? 0 : p->given;
    for (size_t i = 0; i < EGRESS_WHOSE; i++) {
        struct egress *e = p->of[i];
        if (e == NULL)
            continue;
        settle(p, i, was);
        if (--e->flying == 0) {
            e->idle_ms = x->judge->ports.now(x->judge->ports.arg);
            judge_wake_in(x->judge, EGRESS_SETTLE_MS);
        }
        egress_unref(e);
        p->of[i] = NULL;
    }
}

/* 10485760 -> "10 MiB": whole ones only. */
static struct span amount(struct exchange *x, const struct egress *e, enum egress_measure m)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    struct dynbuf b;
    uint64_t n = e->most[m];
    unsigned u = 0;
    dynbuf_init(&b, 64);
    for (; m == EGRESS_BYTES && u < 4 && n >= 1024 && n % 1024 == 0; u++)
        n /= 1024;
    dynbuf_addf(&b, "%llu %s", (unsigned long long)n, m == EGRESS_REQUESTS ? "requests" : unit[u]);
    struct span s = arena_copy(&x->arena, dynbuf_span(&b));
    dynbuf_free(&b);
    return s;
}

struct span egress_words(struct exchange *x, uint64_t *until_ms)
{
    const struct egress *e = x->egress.past;
    struct dynbuf b;
    *until_ms = 0;
    if (e == NULL)
        return SPAN_NONE;
    struct span n = amount(x, e, x->egress.by);
    dynbuf_init(&b, 256);
    if (e->whose == EGRESS_SANDBOX) {
        dynbuf_addf(&b, "this sandbox may use %.*s of egress", SPAN_FMT(n));
    } else {
        *until_ms = e->epoch + e->per_ms;
        dynbuf_addf(&b, "all sandboxes of its tenant together may use %.*s of egress in %llu s", SPAN_FMT(n),
                    (unsigned long long)(e->per_ms / 1000));
    }
    struct span s = arena_copy(&x->arena, dynbuf_span(&b));
    dynbuf_free(&b);
    return s;
}
