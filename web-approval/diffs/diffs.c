#include "web-approval/diffs/diffs.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/net/loop.h"

void (*diffs_over)(struct desk *d, struct span ticket);

struct diffs {
    struct diff *first;
    uint64_t turn;
};

/* --- those that there are ------------------------------------------------------------- */

static struct diff *find(const struct desk *d, struct span ticket)
{
    struct diff *one = d->diffs ? d->diffs->first : NULL;

    while (one && !span_eq(span_str(one->ticket), ticket))
        one = one->next;
    return one;
}

static void forget(struct desk *d, struct diff *one)
{
    struct diff **at = &d->diffs->first;

    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    dynbuf_free(&one->json);
    dynbuf_free(&one->names);
    free(one);
}

static bool is_idle(const struct diff *one)
{
    return one->state == DIFF_MADE || one->state == DIFF_FAILED;
}

static size_t of_sandbox(const struct desk *d, const char *sandbox, enum diff_state state)
{
    size_t n = 0;

    for (const struct diff *o = d->diffs->first; o; o = o->next)
        n += (state == DIFF_NONE || o->state == state) && strcmp(o->sandbox, sandbox) == 0;
    return n;
}

static uint64_t bytes_of(const struct desk *d, const char *sandbox)
{
    uint64_t n = 0;

    for (const struct diff *o = d->diffs->first; o; o = o->next)
        n += !sandbox || strcmp(o->sandbox, sandbox) == 0 ? o->json.n : 0;
    return n;
}

void diffs_free(struct desk *d)
{
    while (d->diffs && d->diffs->first)
        forget(d, d->diffs->first);
    free(d->diffs);
    d->diffs = NULL;
}

/* Of this sandbox what nobody has looked at for longest goes; NULL: of the one that takes most. False: all of it is
 * still to be made. */
static bool oldest_goes(struct desk *d, const char *sandbox, bool by_bytes)
{
    struct diff *oldest = NULL;
    uint64_t most = 0;

    for (struct diff *o = d->diffs->first; o; o = o->next) {
        if (!is_idle(o) || (sandbox && strcmp(o->sandbox, sandbox) != 0))
            continue;
        uint64_t takes = by_bytes ? bytes_of(d, o->sandbox) : of_sandbox(d, o->sandbox, DIFF_NONE);
        if (!oldest || takes > most || (takes == most && o->used < oldest->used)) {
            oldest = o;
            most = takes;
        }
    }
    if (oldest)
        forget(d, oldest);
    return oldest != NULL;
}

/* Who asks for many makes room of its own. */
static bool make_room(struct desk *d, const char *sandbox)
{
    size_t all = 0;

    if (of_sandbox(d, sandbox, DIFF_NONE) >= DIFFS_EACH_MAX && !oldest_goes(d, sandbox, false))
        return false;
    for (const struct diff *o = d->diffs->first; o; o = o->next)
        all++;
    return all < DIFFS_MAX || oldest_goes(d, NULL, false);
}

static bool is_of(const struct diff *one, const struct ticket *t)
{
    return t->digest.n == DIGEST_BYTES && memcmp(one->digest.b, t->digest.p, DIGEST_BYTES) == 0;
}

bool diffs_asked(const struct ticket *t)
{
    return t->diff != 0;
}

enum diff_kind diffs_kind(const struct ticket *t)
{
    if (t->body_size == 0)
        return DIFF_OF_NONE;
    if (span_eq(t->op, SPAN("git.push")) && span_ends(t->path, SPAN("/git-receive-pack")))
        return DIFF_OF_PUSH;
    if (span_eq(t->op, SPAN("npm.publish")) && !t->has_query)
        return DIFF_OF_PACKAGE;
    return span_eq(t->method, SPAN("PUT")) && !t->has_query && span_starts(t->path, SPAN("/v2/")) &&
                   span_find(t->path, SPAN("/manifests/")) < t->path.n
               ? DIFF_OF_IMAGE
               : DIFF_OF_NONE;
}

static uint64_t now_of(const struct desk *d)
{
    return d->loop ? loop_now(d->loop) : 0;
}

static struct diff *add(struct desk *d, const struct ticket *t)
{
    char sandbox[sizeof(((struct diff *)NULL)->sandbox)];
    struct diff *one;

    (void)snprintf(sandbox, sizeof(sandbox), "%.*s", SPAN_FMT(t->sandbox));
    if (t->id.n != ID_TEXT || !make_room(d, sandbox) || !(one = calloc(1, sizeof(*one))))
        return NULL;
    (void)snprintf(one->ticket, sizeof(one->ticket), "%.*s", SPAN_FMT(t->id));
    memcpy(one->sandbox, sandbox, sizeof(sandbox));
    memcpy(one->digest.b, t->digest.p, DIGEST_BYTES);
    one->kind = diffs_kind(t);
    dynbuf_init(&one->json, DIFFS_RESULT_MAX);
    dynbuf_init(&one->names, DIFFS_NAMES_MAX);
    struct diff **end = &d->diffs->first;
    while (*end)
        end = &(*end)->next;
    *end = one;
    return one;
}

void diffs_want(struct desk *d, const struct ticket *t)
{
    struct diff *one = find(d, t->id);
    uint64_t now = now_of(d);

    if (!d->diff_lane[0] || !diffs_asked(t) || diffs_kind(t) == DIFF_OF_NONE || !span_eq(t->state, SPAN("pending")) ||
        t->digest.n != DIGEST_BYTES)
        return;
    if (!d->diffs && !(d->diffs = calloc(1, sizeof(*d->diffs))))
        return;
    if (one && !is_of(one, t) && is_idle(one)) {
        forget(d, one);
        one = NULL;
    }
    if (!one && !(one = add(d, t)))
        return;
    one->used = ++d->diffs->turn;
    if (one->state == DIFF_FAILED && now < one->at_ms + DIFFS_STALE_MS)
        return;
    if (one->state == DIFF_NONE || one->state == DIFF_FAILED) {
        one->state = DIFF_WAITS;
        one->tries = 0;
        one->not_before_ms = now;
    }
}

const struct diff *diffs_of(struct desk *d, const struct ticket *t)
{
    struct diff *one = find(d, t->id);

    if (!one || !is_of(one, t))
        return NULL;
    one->used = ++d->diffs->turn;
    return one;
}

const char *diffs_refuse(struct desk *d, const struct ticket *t)
{
    const struct diff *one = diffs_of(d, t);

    if (t->diff != DIFF_REQUIRED || (one && one->state == DIFF_MADE && !one->why))
        return NULL;
    if (diffs_kind(t) == DIFF_OF_NONE)
        return "its rule wants to see what a push, a package or an image changes, and this is none of them, as far "
               "as "
               "can be compared";
    if (!d->diff_lane[0])
        return "its rule wants to see what it changes, and `diff:` of the configuration names no lane to find that "
               "out "
               "by";
    diffs_want(d, t);
    if (one && one->state == DIFF_MADE)
        return "its rule wants to see all that it changes, and not all of that can be shown";
    if (one && one->state == DIFF_FAILED)
        return "its rule wants to see what it changes, and that could not be found out: its page says why";
    return "its rule wants to see what it changes, and that is still being found out; look again in a moment";
}

/* --- when ------------------------------------------------------------------------------ */

void diffs_event(struct desk *d, struct span ticket)
{
    struct diff *one = find(d, ticket);
    struct ticket t;
    struct arena a;
    struct err e;

    if (!d->diff_lane[0])
        return;
    arena_init(&a, 4 * 1024 * 1024);
    if (desk_store_ticket(d->store, ticket, &a, &t, &e) == 1) {
        diffs_want(d, &t);
        bool waits = span_eq(t.state, SPAN("pending"));
        if (one && !waits && one->state == DIFF_WAITS)
            forget(d, one);
        else if (one && !waits)
            one->unwanted = one->state == DIFF_RUNS;
    }
    arena_free(&a);
}

static int want_row(void *ctx, const struct ticket *t)
{
    diffs_want(ctx, t);
    return 0;
}

void diffs_all(struct desk *d)
{
    struct ticket_filter f = {.state = SPAN("pending"), .limit = DIFFS_MAX};
    struct arena a;
    struct err e;

    if (!d->diff_lane[0])
        return;
    arena_init(&a, DESK_ARENA_MAX);
    if (desk_store_tickets(d->store, &f, &a, want_row, d, &e) != 0)
        d->diffs_again = true; /* the store is not open yet */
    arena_free(&a);
}

static uint64_t last_ran(const struct desk *d, const char *sandbox)
{
    uint64_t last = 0;

    for (const struct diff *o = d->diffs->first; o; o = o->next)
        last = strcmp(o->sandbox, sandbox) == 0 && o->ran > last ? o->ran : last;
    return last;
}

/* The sandboxes take turns, whoever has more of them waiting. */
static struct diff *whose_turn(const struct desk *d, uint64_t now_ms)
{
    struct diff *first = NULL;

    for (struct diff *o = d->diffs ? d->diffs->first : NULL; o; o = o->next)
        if (o->state == DIFF_WAITS && o->not_before_ms <= now_ms && of_sandbox(d, o->sandbox, DIFF_RUNS) == 0 &&
            (!first || last_ran(d, o->sandbox) < last_ran(d, first->sandbox)))
            first = o;
    return first;
}

void diffs_due(struct desk *d, uint64_t now_ms)
{
    size_t runs = 0;

    if (d->diffs_again) {
        d->diffs_again = false;
        diffs_all(d);
    }
    for (const struct diff *o = d->diffs ? d->diffs->first : NULL; o; o = o->next)
        runs += o->state == DIFF_RUNS;
    for (struct diff *o; runs < DIFFS_AT_ONCE && (o = whose_turn(d, now_ms)) != NULL; runs++) {
        o->state = DIFF_RUNS;
        o->tries++;
        o->ran = ++d->diffs->turn;
        diff_make(d, o); /* which may be over with this, and any of them have gone */
    }
}

/* --- how it ended ---------------------------------------------------------------------- */

static void over(struct desk *d, struct diff *one)
{
    one->at_ms = now_of(d);
    one->wall_ms = d->loop ? loop_wall(d->loop) : 0;
    if (diffs_over)
        diffs_over(d, span_str(one->ticket));
    if (one->unwanted)
        forget(d, one);
}

/* It is another's soon. */
static void why_keep(struct diff *one, const char *why)
{
    if (why)
        (void)snprintf(one->said, sizeof(one->said), "%s", why);
    one->why = why ? one->said : NULL;
}

void diff_made(struct desk *d, struct diff *one, struct span json)
{
    bool again = false;
    const char *why;
    int is = diff_result(json, one->kind, one->nrefs, &why, &again);

    if (is != 1) {
        diff_failed(d, one, why, again);
        return;
    }
    dynbuf_reset(&one->json);
    while (bytes_of(d, NULL) + json.n > DIFFS_BYTES_MAX && oldest_goes(d, NULL, true)) /* it is not idle itself */
        ;
    if (dynbuf_add(&one->json, json) != 0) {
        diff_failed(d, one, "there is no memory for it", true);
        return;
    }
    why_keep(one, why);
    one->state = DIFF_MADE;
    over(d, one);
}

void diff_failed(struct desk *d, struct diff *one, const char *why, bool again)
{
    why_keep(one, why);
    if (again && one->tries < DIFFS_TRIES && !one->unwanted) {
        one->state = DIFF_WAITS;
        one->not_before_ms = now_of(d) + DIFFS_RETRY_MS;
        return;
    }
    one->state = DIFF_FAILED;
    over(d, one);
}
