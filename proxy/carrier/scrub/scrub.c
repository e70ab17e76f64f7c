#include "proxy/carrier/scrub/scrub.h"
#include "common/crypto/secret.h"
#include "proxy/carrier/plan/plan.h"
#include "proxy/carrier/scrub/forms.h"

#include <stdlib.h>

/* How it looks for forms. Let m be the length of the shortest, and the stride m - G + 1. Of any occurrence of any
 * form, one of the last windows of G bytes begins at a multiple of the stride. So only those are looked up, in a
 * bitmap over a hash of their G bytes; a window that is there names the forms and offsets it may belong to, which are
 * compared byte by byte. Each occurrence is found exactly once, however the windows fall; and because it is found at
 * its end, what was looked at already need not be again when more comes.
 *
 *   form:    [ ........ g(stride-1) ... g2 g1 g0 ]    windows entered: the last ones, as many as the stride
 *   input:   |----------|----------|----------|       windows looked up: at 0, stride, 2 stride ...
 */
enum { GATHER_FROM = 4096, GATHER_PART = 16 };
enum { STRIDE_MAX = 32, LONG_FROM = 24, HASH_BITS_MIN = 12, HASH_BITS_MAX = 20 };

struct form {
    uint32_t at, n; /* in bytes */
    bool refuse;
};

struct entry {
    uint32_t form, offset, next; /* next + 1 */
};

struct scrub {
    unsigned refs;
    struct secret *bytes;
    uint32_t literal[SCRUB_SECRETS_MAX]; /* the form that is a secret itself */
    size_t nsecrets;
    struct form *form;
    size_t nforms;
    struct entry *entry;
    size_t nentries;
    uint8_t *filter;
    uint32_t *head; /* entry + 1 */
    unsigned shift;
    size_t reach, stride, gram;
};

struct build {
    struct dynbuf bytes;
    size_t first; /* of this secret's forms, among which none is entered twice */
    size_t most;  /* bytes a form of this secret may have */
    bool refuse;
    struct form *form;
    size_t nforms;
};

static int build_add(void *arg, struct span s)
{
    struct build *b = arg;
    if (s.n > b->most) /* the plan would let its beginning go */
        return -1;
    for (size_t i = b->first; i < b->nforms; i++)
        if (b->form[i].n == s.n && memcmp(b->bytes.p + b->form[i].at, s.p, s.n) == 0)
            return 0;
    if (b->nforms == SCRUB_FORMS_MAX)
        return -1;
    b->form[b->nforms++] = (struct form){(uint32_t)b->bytes.n, (uint32_t)s.n, b->refuse};
    return dynbuf_add(&b->bytes, s);
}

static uint64_t load(const struct scrub *s, const uint8_t *p)
{
    uint64_t v = 0;
    if (s->gram == 8)
        memcpy(&v, p, 8);
    else
        memcpy(&v, p, 4);
    return v;
}

static size_t hash(const struct scrub *s, uint64_t v)
{
    return (size_t)((v * 0x9E3779B97F4A7C15u) >> s->shift);
}

static int index_forms(struct scrub *s)
{
    size_t shortest = SIZE_MAX;
    for (size_t i = 0; i < s->nforms; i++)
        shortest = s->form[i].n < shortest ? s->form[i].n : shortest;
    s->gram = shortest >= LONG_FROM ? 8 : 4;
    s->stride = shortest - s->gram + 1;
    if (s->stride > STRIDE_MAX)
        s->stride = STRIDE_MAX;
    size_t total = s->nforms * s->stride;
    unsigned bits = HASH_BITS_MIN;
    while (bits < HASH_BITS_MAX && ((size_t)1 << bits) < 16 * total)
        bits++;
    s->shift = 64 - bits;
    s->entry = calloc(total, sizeof(*s->entry));
    s->head = calloc((size_t)1 << bits, sizeof(*s->head));
    s->filter = calloc(1, (size_t)1 << (bits - 3));
    if (s->entry == NULL || s->head == NULL || s->filter == NULL)
        return -1;
    const uint8_t *bytes = secret_bytes(s->bytes).p;
    for (size_t i = 0; i < s->nforms; i++) {
        const uint8_t *p = bytes + s->form[i].at;
        size_t end = s->form[i].n - s->gram + 1;
        for (size_t off = end - s->stride; off < end; off++) {
            size_t h = hash(s, load(s, p + off));
            s->entry[s->nentries] = (struct entry){(uint32_t)i, (uint32_t)off, s->head[h]};
            s->head[h] = (uint32_t)++s->nentries;
            s->filter[h >> 3] |= (uint8_t)(1u << (h & 7));
        }
    }
    return 0;
}

static int check_secrets(const struct scrub_secret *secret, size_t n, struct err *e)
{
    if (n > SCRUB_SECRETS_MAX)
        return err_set(e, "%zu secrets for one host are more than %d; narrow the credentials' only: lists", n,
                       SCRUB_SECRETS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct span s = secret[i].bytes;
        if (s.n < SCRUB_SECRET_MIN || s.n > SCRUB_SECRET_MAX)
            return err_set(e,
                           "a secret of %zu bytes cannot be recognised in answers (%d to %d bytes can); "
                           "store another one",
                           s.n, SCRUB_SECRET_MIN, SCRUB_SECRET_MAX);
        if (span_index(s, '\n') < s.n) /* plan/plan.h cuts there */
            return err_set(e, "a secret with a line end in it cannot be recognised in answers; store another one");
    }
    return 0;
}

/* Its forms, the first of which is the secret itself. Of one that is there already they only learn to refuse. */
static int build_secret(struct scrub *s, struct build *b, const struct scrub_secret *secret)
{
    for (size_t i = 0; i < s->nsecrets; i++) {
        const struct form *f = &b->form[s->literal[i]];
        if (!span_eq(span_of(b->bytes.p + f->at, f->n), secret->bytes))
            continue;
        size_t end = i + 1 < s->nsecrets ? s->literal[i + 1] : b->nforms;
        for (size_t k = s->literal[i]; k < end; k++)
            b->form[k].refuse |= secret->refuse;
        return 0;
    }
    b->first = b->nforms;
    b->most = secret->bytes.n * PLAN_FORM_MOST;
    b->refuse = secret->refuse;
    s->literal[s->nsecrets] = (uint32_t)b->nforms;
    if (build_add(b, secret->bytes) != 0 || scrub_forms(secret->bytes, build_add, b) != 0)
        return -1;
    s->nsecrets++;
    return 0;
}

struct scrub *scrub_new(const struct scrub_secret *secret, size_t n, struct err *e)
{
    struct build b = {.form = NULL};
    struct scrub *s = NULL;
    int rc = -1;
    dynbuf_init(&b.bytes, SCRUB_BYTES_MAX);
    if (check_secrets(secret, n, e) != 0)
        goto out;
    err_set(e, "the forms of the secrets do not fit in memory");
    s = calloc(1, sizeof(*s));
    b.form = calloc(SCRUB_FORMS_MAX, sizeof(*b.form));
    if (s == NULL || b.form == NULL)
        goto out;
    s->refs = 1;
    size_t longest = 0;
    for (size_t i = 0; i < n; i++) {
        longest = secret[i].bytes.n > longest ? secret[i].bytes.n : longest;
        if (build_secret(s, &b, &secret[i]) != 0)
            goto out;
    }
    s->reach = plan_reach(longest);
    s->nforms = b.nforms;
    if (b.nforms > 0) {
        s->bytes = secret_new(dynbuf_span(&b.bytes));
        s->form = malloc(b.nforms * sizeof(*s->form));
        if (s->bytes == NULL || s->form == NULL)
            goto out;
        memcpy(s->form, b.form, b.nforms * sizeof(*s->form));
        if (index_forms(s) != 0)
            goto out;
    }
    rc = 0;
out:
    free(b.form);
    dynbuf_wipe(&b.bytes);
    if (rc != 0)
        scrub_unref(&s);
    return s;
}

struct scrub *scrub_ref(struct scrub *s)
{
    s->refs++;
    return s;
}

void scrub_unref(struct scrub **s)
{
    if (s == NULL || *s == NULL)
        return;
    struct scrub *d = *s;
    *s = NULL;
    if (d->refs > 1) {
        d->refs--;
        return;
    }
    secret_free(&d->bytes);
    free(d->form);
    free(d->entry);
    free(d->head);
    free(d->filter);
    free(d);
}

bool scrub_is_empty(const struct scrub *s)
{
    return s == NULL || s->nforms == 0;
}

bool scrub_secret(const struct scrub *s, size_t i, struct scrub_secret *out)
{
    if (s == NULL || i >= s->nsecrets)
        return false;
    const struct form *f = &s->form[s->literal[i]];
    out->bytes = span_first(span_from(secret_bytes(s->bytes), f->at), f->n);
    out->refuse = f->refuse;
    return true;
}

bool scrub_find(const struct scrub *s, struct span secret, struct scrub_secret *out)
{
    for (size_t i = 0; scrub_secret(s, i, out); i++)
        if (span_eq(out->bytes, secret))
            return true;
    return false;
}

size_t scrub_reach(const struct scrub *s)
{
    return s == NULL ? 0 : s->reach;
}

struct range {
    size_t from, to;
};

/* Where something was found, as ranges of the bytes looked at; neighbours that touch are one. */
struct ranges {
    struct dynbuf list;
    size_t found;
    bool refuse;
    size_t after; /* only what ends behind so many bytes: up to there all was found before */
    size_t work;  /* windows looked up */
};

static int ranges_add(struct ranges *r, size_t from, size_t to)
{
    r->found++;
    if (r->list.n >= sizeof(struct range)) {
        struct range last;
        memcpy(&last, r->list.p + r->list.n - sizeof(last), sizeof(last));
        if (from <= last.to && last.from <= to) {
            last.from = from < last.from ? from : last.from;
            last.to = to > last.to ? to : last.to;
            memcpy(r->list.p + r->list.n - sizeof(last), &last, sizeof(last));
            return 0;
        }
    }
    struct range one = {from, to};
    return dynbuf_add(&r->list, span_of(&one, sizeof(one)));
}

static struct range ranges_get(const struct ranges *r, size_t i)
{
    struct range one;
    memcpy(&one, r->list.p + i * sizeof(one), sizeof(one));
    return one;
}

static size_t ranges_count(const struct ranges *r)
{
    return r->list.n / sizeof(struct range);
}

/* A window that may belong to a form: compare. */
static int confirm(const struct scrub *s, const uint8_t *p, size_t n, size_t pos, size_t h, struct ranges *r)
{
    const uint8_t *bytes = secret_bytes(s->bytes).p;
    for (uint32_t e = s->head[h]; e != 0; e = s->entry[e - 1].next) {
        const struct entry *w = &s->entry[e - 1];
        const struct form *f = &s->form[w->form];
        if (w->offset > pos || f->n > n - (pos - w->offset))
            continue;
        size_t from = pos - w->offset;
        if (from + f->n <= r->after)
            continue;
        if (memcmp(p + from, bytes + f->at, f->n) != 0)
            continue;
        r->refuse |= f->refuse;
        if (ranges_add(r, from, from + f->n) != 0)
            return -1;
    }
    return 0;
}

static int scan(const struct scrub *s, const uint8_t *p, size_t n, size_t after, struct ranges *r)
{
    *r = (struct ranges){.after = after};
    dynbuf_init(&r->list, 64 * 1024 * 1024);
    if (s->nforms == 0)
        return 0;
    size_t gram = s->gram, stride = s->stride, back = gram + stride - 2;
    for (size_t pos = after > back ? after - back : 0; pos + gram <= n; pos += stride, r->work++) {
        size_t h = hash(s, load(s, p + pos));
        if ((s->filter[h >> 3] >> (h & 7)) & 1 && confirm(s, p, n, pos, h, r) != 0)
            return -1;
    }
    return 0;
}

static void cover(uint8_t *p, size_t n, const struct ranges *r)
{
    for (size_t i = 0; i < ranges_count(r); i++) {
        struct range one = ranges_get(r, i);
        if (one.from < n)
            memset(p + one.from, '*', (one.to < n ? one.to : n) - one.from);
    }
}

int scrub_cover(const struct scrub *s, uint8_t *p, size_t n, bool *refuse)
{
    struct ranges r;
    int rc = scan(s, p, n, 0, &r);
    if (rc == 0) {
        cover(p, n, &r);
        rc = r.found > INT32_MAX ? INT32_MAX : (int)r.found;
        *refuse = r.refuse;
    }
    dynbuf_free(&r.list);
    return rc;
}

void scrub_begin(struct scrub_stream *t, struct scrub *set)
{
    *t = (struct scrub_stream){.set = scrub_ref(set)};
    dynbuf_init(&t->held, SCRUB_BYTES_MAX);
}

/* Keep p[hold..n) as it is for the next turn, and how much of it something found already covers. */
static int keep(struct scrub_stream *t, const uint8_t *p, size_t n, size_t hold, const struct ranges *r)
{
    size_t covered = t->covered > hold ? t->covered - hold : 0;
    for (size_t i = 0; i < ranges_count(r); i++) {
        struct range one = ranges_get(r, i);
        if (one.from < hold && one.to > hold && one.to - hold > covered)
            covered = one.to - hold;
    }
    t->covered = covered;
    dynbuf_reset(&t->held);
    return dynbuf_add(&t->held, span_of(p + hold, n - hold));
}

/* What is held is searched again with what comes. Where that is much, small pieces gather first, so that an upstream
 * cannot have all of it searched for each byte. It rests on lengths and line feeds alone, as the plan does. */
static bool gathers(const struct scrub_stream *t, struct span in, bool last)
{
    return !last && t->held.n >= GATHER_FROM && t->fresh + in.n < t->held.n / GATHER_PART &&
           span_index(in, '\n') == in.n;
}

int scrub_feed(struct scrub_stream *t, struct span in, bool last, struct dynbuf *out)
{
    if (gathers(t, in, last)) {
        t->fresh += in.n;
        return dynbuf_add(&t->held, in);
    }
    t->fresh = 0;
    size_t n = t->held.n + in.n;
    struct ranges r = {.found = 0};
    int rc = -1;
    if (n == 0)
        return 0;
    uint8_t *p = dynbuf_room(out, n);
    if (p == NULL)
        return -1;
    if (t->held.n)
        memcpy(p, t->held.p, t->held.n);
    if (in.n)
        memcpy(p + t->held.n, in.p, in.n);
    if (scan(t->set, p, n, 0, &r) != 0)
        goto out;
    t->found += r.found;
    t->refuse |= r.refuse;
    size_t was = t->covered;
    size_t hold = last ? n : plan_release(t->set->reach, span_of(p, n));
    if (keep(t, p, n, hold, &r) != 0)
        goto out;
    cover(p, hold, &r);
    memset(p, '*', was < hold ? was : hold);
    explicit_bzero(p + hold, n - hold);
    dynbuf_grew(out, hold);
    rc = 0;
out:
    dynbuf_free(&r.list);
    if (rc != 0)
        explicit_bzero(p, n);
    return rc;
}

int scrub_watch(struct scrub_stream *t, struct span in)
{
    struct ranges r;
    if (t->held.n >= 2 * t->set->reach) { /* not each time: moving it costs no more than what came since */
        dynbuf_drop(&t->held, t->held.n - t->set->reach);
        t->work += t->held.n;
    }
    size_t before = t->held.n;
    if (dynbuf_add(&t->held, in) != 0)
        return -1;
    int rc = scan(t->set, t->held.p, t->held.n, before, &r);
    t->work += r.work;
    t->found += r.found;
    dynbuf_free(&r.list);
    return rc;
}

void scrub_end(struct scrub_stream *t)
{
    dynbuf_wipe(&t->held);
    scrub_unref(&t->set);
    t->covered = 0;
}
