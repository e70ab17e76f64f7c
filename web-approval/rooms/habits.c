#include "web-approval/rooms/habits.h"

#include <stdlib.h>
#include <string.h>

#include "web-approval/deciding/deciding.h"

static bool is_one_of(struct span s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (span_eq(s, span_str(words[i])))
            return true;
    return false;
}

/* 1: a yes, 0: a no, -1: nobody decided it one by one. */
static int decided(const struct ticket *t)
{
    static const char *const yes[] = {"approved", "executing", "done", "failed", "unknown"};

    if (t->decided_channel.n == 0 || span_eq(t->decided_channel, SPAN("grant")) ||
        span_eq(t->decided_channel, SPAN("gate")))
        return -1;
    return is_one_of(t->state, yes, sizeof yes / sizeof yes[0]) ? 1 : span_eq(t->state, SPAN("denied")) ? 0 : -1;
}

static bool alike(const struct ticket *a, const struct ticket *b)
{
    return span_eq(a->method, b->method) && span_eq(a->scheme, b->scheme) && span_eq(a->host, b->host) &&
           a->port == b->port && span_eq(a->op, b->op) && span_eq(a->effect, b->effect) &&
           span_eq(a->credential, b->credential) && span_eq(a->rule_id, b->rule_id) &&
           span_eq(a->tenant, b->tenant) && page_path_like(a->path, b->path);
}

/* Both have the same number of steps. */
static struct span merged(struct span pattern, struct span path, struct arena *a)
{
    struct dynbuf b;
    struct span x, y;
    bool more = true;

    dynbuf_init(&b, 2 * HTTP_TARGET_MAX);
    for (bool first = true; more; first = false) {
        more = span_cut(pattern, '/', &x, &pattern);
        (void)span_cut(path, '/', &y, &path);
        if (!first)
            (void)dynbuf_add_byte(&b, '/');
        (void)dynbuf_add(&b, span_eq(x, y) ? x : SPAN("*"));
    }
    struct span out = dynbuf_ok(&b) ? arena_copy(a, dynbuf_span(&b)) : SPAN_NONE;
    dynbuf_free(&b);
    return out;
}

void habits_add(struct habits *h, const struct ticket *t, struct arena *a)
{
    int yes = decided(t);
    size_t i = 0;

    if (yes < 0 || h->seen == HABIT_SEEN)
        return;
    while (i < h->n && !alike(&h->v[i].t, t))
        i++;
    if (i == HABITS) {
        h->left++;
        return;
    }
    struct habit *is = &h->v[i];
    if (i == h->n) {
        h->n++;
        *is = (struct habit){.t = *t, .path = t->path};
    } else if (!span_eq(is->path, t->path)) {
        is->path = merged(is->path, t->path, a);
    }
    uint64_t ms = t->decided_ms > t->created_ms ? t->decided_ms - t->created_ms : 0;
    *(yes ? &is->approved : &is->denied) += 1;
    is->fast += ms < HABIT_FAST_MS;
    h->time[h->seen].habit = i;
    h->time[h->seen++].ms = ms;
}

static int by_ms(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Of one shape, or of all (HABITS). */
static uint64_t median(const struct habits *h, size_t of)
{
    uint64_t ms[HABIT_SEEN];
    size_t n = 0;

    for (size_t i = 0; i < h->seen; i++)
        if (of == HABITS || h->time[i].habit == of)
            ms[n++] = h->time[i].ms;
    qsort(ms, n, sizeof ms[0], by_ms);
    return n ? ms[n / 2] : 0;
}

static int by_number(const void *a, const void *b)
{
    const struct habit *x = a, *y = b;
    size_t n = x->approved + x->denied, m = y->approved + y->denied;

    return n > m ? -1 : n < m;
}

void habits_end(struct habits *h)
{
    for (size_t i = 0; i < h->n; i++)
        h->v[i].median_ms = median(h, i);
    qsort(h->v, h->n, sizeof h->v[0], by_number);
}

uint64_t habits_median(const struct habits *h)
{
    return median(h, HABITS);
}

/* --- the rule ------------------------------------------------------------------------ */

/* Can it stand in a policy between quotation marks, and mean itself? star: `*` is our own. */
static bool is_plain(struct span s, const char *also)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

    for (size_t i = 0; i < s.n; i++)
        if (!memchr(letters, s.p[i], sizeof letters - 1) && !strchr(also, s.p[i]))
            return false;
    return s.n > 0 && !span_eq(s, SPAN("-"));
}

/* A `*` of the path itself would be a pattern. */
static bool is_ours(const struct habit *h)
{
    return span_index(h->t.path, '*') == h->t.path.n && is_plain(h->path, "/%@:+,=!$&()*");
}

static void place(const struct habit *h, struct dynbuf *out)
{
    (void)dynbuf_addf(out, "method: %.*s, path: \"%.*s\"", SPAN_FMT(h->t.method), SPAN_FMT(h->path));
}

bool habit_rule(const struct habit *h, struct dynbuf *out)
{
    const struct ticket *t = &h->t;
    bool https = span_eq(t->scheme, SPAN("https"));

    if (h->approved < HABIT_LEAST || h->denied || deciding_is_grave(t) || !span_eq(t->code, SPAN("rule")) ||
        !is_ours(h) || !is_plain(t->host, "") || !is_plain(t->method, "") || !is_plain(t->rule_id, "") ||
        (t->credential.n && !is_plain(t->credential, "")))
        return false;
    (void)dynbuf_addf(out, "  # in the rule %.*s", SPAN_FMT(t->rule_id));
    if (is_plain(t->rule_file, "/"))
        (void)dynbuf_addf(out, " (%.*s:%llu)", SPAN_FMT(t->rule_file), (unsigned long long)t->rule_line);
    (void)dynbuf_add(out, SPAN(", that it holds these no more:\n    except: [{ "));
    place(h, out);
    (void)dynbuf_addf(out, " }]\n\n  # and a rule of its own:\n  - id: %.*s-as-always\n    match: { host: %.*s, ",
                      SPAN_FMT(t->rule_id), SPAN_FMT(t->host));
    if (!https)
        (void)dynbuf_add(out, SPAN("scheme: http, "));
    if (t->port != (https ? 443 : 80))
        (void)dynbuf_addf(out, "port: %llu, ", (unsigned long long)t->port);
    place(h, out);
    (void)dynbuf_add(out, SPAN(" }\n    decide: allow\n"));
    if (t->credential.n)
        (void)dynbuf_addf(out, "    use: %.*s\n", SPAN_FMT(t->credential));
    return true;
}
