/* Two automata, one above the other. The lower one reads the bytes of a segment for all segment patterns at once and
 * yields the classes of segments; the upper one reads segments, which are those classes, for all whole patterns. */
#include "cli/policy/diff/minterms.h"

#include <stdlib.h>
#include <string.h>

#include "cli/policy/diff/states.h"
#include "policy/image/glob.h"

enum { STATES_MAX = 100 * 1000, SYMBOLS_MAX = 400, DEEP = UINT32_MAX };

struct finder {
    struct arena *a;
    enum minterm_kind kind;
    struct pattern *segment; /* distinct */
    size_t nsegments;
    struct minterm *class; /* of segments */
    size_t nclasses;
    struct minterm *found;
    size_t nfound;
};

static void set_bit(uint64_t *v, size_t i)
{
    v[i / 64] |= UINT64_C(1) << i % 64;
}

static bool bit(const uint64_t *v, size_t i)
{
    return v[i / 64] >> i % 64 & 1;
}

static size_t words_of(size_t bits)
{
    return bits / 64 + 1;
}

/* ---- the lower automaton: bytes of one segment ---- */

/* Where the bits of each pattern begin; one bit a position, from 0 to its length. */
struct bytes {
    const struct pattern *v;
    size_t n;
    size_t *first;
    uint32_t *owner;
    size_t bits;
    struct span symbol[SYMBOLS_MAX]; /* a byte, or an escape as a whole: half of one is no path */
    size_t nsymbols;
};

static size_t symbol_length(struct span s)
{
    return s.n >= 3 && s.p[0] == '%' ? 3 : 1;
}

static bool same(struct span a, struct span b, bool fold)
{
    return fold ? span_ieq(a, b) : span_eq(a, b);
}

static int add_symbol(struct bytes *b, struct span s)
{
    for (size_t i = 0; i < b->nsymbols; i++)
        if (span_eq(b->symbol[i], s))
            return 0;
    if (b->nsymbols == SYMBOLS_MAX)
        return -1;
    b->symbol[b->nsymbols++] = s;
    return 0;
}

/* The same symbol in the other case, or itself. */
static struct span other_case(struct span s, struct arena *a)
{
    uint8_t *dst = arena_alloc(a, s.n);
    if (dst == NULL)
        return s;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t low = s.p[i] | 0x20;
        dst[i] = s.n == 1 && low >= 'a' && low <= 'z' ? s.p[i] ^ 0x20 : s.p[i];
    }
    return span_of(dst, s.n);
}

/* A byte that no pattern names, in no case; it stands for all such. */
static struct span fresh_symbol(const struct bytes *b)
{
    static const char all[] = "xyzwvutsrqponmlkjihgfedcba0123456789_-~!$'()+,:@ ";
    static const uint8_t rest = 0x7e;
    for (size_t i = 0; i < sizeof(all) - 1; i++) {
        bool used = false;
        for (size_t k = 0; k < b->nsymbols && !used; k++)
            used = span_ieq(b->symbol[k], span_of(all + i, 1));
        if (!used)
            return span_of(all + i, 1);
    }
    return span_of(&rest, 1);
}

static int collect_symbols(struct bytes *b, struct arena *a)
{
    int rc = 0;
    for (size_t i = 0; i < b->n; i++) {
        struct span s = b->v[i].text;
        while (s.n) {
            struct span one = span_first(s, symbol_length(s));
            s = span_from(s, one.n);
            if (span_eq(one, SPAN("*")))
                continue;
            rc |= add_symbol(b, one);
            if (b->v[i].fold)
                rc |= add_symbol(b, other_case(one, a));
        }
    }
    struct span fresh = fresh_symbol(b);
    rc |= add_symbol(b, fresh);
    if (rc == 0) { /* it goes first: of two strings of one length the one without meaning is the simpler */
        struct span first = b->symbol[0];
        b->symbol[0] = b->symbol[b->nsymbols - 1];
        b->symbol[b->nsymbols - 1] = first;
    }
    return rc;
}

/* A star may stand for nothing. */
static void set_position(const struct bytes *b, size_t i, size_t at, uint64_t *state)
{
    struct span text = b->v[i].text;
    set_bit(state, b->first[i] + at);
    while (at < text.n && text.p[at] == '*')
        set_bit(state, b->first[i] + ++at);
}

/* Whose bit is it? One owner for each bit; few of them are set at once, so that only those are looked at. */
static uint32_t *owners_of(const size_t *first, size_t n, size_t bits, struct arena *a)
{
    uint32_t *owner = arena_alloc(a, (bits + 1) * sizeof(*owner));
    for (size_t i = 0; owner && i < n; i++)
        for (size_t k = first[i]; k < (i + 1 < n ? first[i + 1] : bits); k++)
            owner[k] = (uint32_t)i;
    return owner;
}

static bool next_bit(const uint64_t *v, size_t bits, size_t *at)
{
    for (; *at < bits; *at = (*at / 64 + 1) * 64) {
        uint64_t rest = v[*at / 64] >> *at % 64;
        if (rest) {
            *at += (size_t)__builtin_ctzll(rest);
            return *at < bits;
        }
    }
    return false;
}

static void step_bytes(const struct bytes *b, const uint64_t *from, struct span symbol, uint64_t *to)
{
    for (size_t k = 0; next_bit(from, b->bits, &k); k++) {
        uint32_t i = b->owner[k];
        struct span here = span_from(b->v[i].text, k - b->first[i]);
        if (here.n == 0)
            continue;
        if (here.p[0] == '*')
            set_position(b, i, k - b->first[i], to);
        else if (same(span_first(here, symbol_length(here)), symbol, b->v[i].fold))
            set_position(b, i, k - b->first[i] + symbol.n, to);
    }
}

/* ---- what was found ---- */

static int add_found(struct finder *f, struct states *seen, const uint64_t *fits, struct span text,
                     struct minterm *list, size_t *n)
{
    size_t at;
    int rc = states_add(seen, fits, (struct state_from){0}, &at);
    if (rc <= 0)
        return rc;
    uint64_t *copy = arena_alloc(f->a, seen->words * sizeof(*copy));
    if (copy == NULL)
        return -1;
    memcpy(copy, fits, seen->words * sizeof(*copy));
    list[(*n)++] = (struct minterm){text, copy};
    return 0;
}

static struct span spell(struct finder *f, const struct states *s, size_t at, const struct span *symbol)
{
    size_t n = 0;
    for (size_t i = at; i; i = s->from[i].parent)
        n += symbol[s->from[i].symbol].n;
    uint8_t *dst = arena_alloc(f->a, n + 1);
    if (dst == NULL)
        return SPAN_NONE;
    struct span out = span_of(dst, n);
    for (size_t i = at; i; i = s->from[i].parent) {
        struct span one = symbol[s->from[i].symbol];
        n -= one.n;
        memcpy(dst + n, one.p, one.n);
    }
    return out;
}

static void fits_of(const struct bytes *b, struct span text, uint64_t *fits)
{
    for (size_t i = 0; i < b->n; i++)
        if (glob_segment(b->v[i].text, text, b->v[i].fold))
            set_bit(fits, i);
}

/* What a person would write: every pattern with a word for its stars. */
static int add_samples(struct finder *f, const struct bytes *b, struct states *seen)
{
    struct span fresh = b->symbol[0];
    for (size_t i = 0; i <= b->n; i++) {
        struct span text = i ? b->v[i - 1].text : SPAN("*");
        uint8_t *dst = arena_alloc(f->a, text.n + 1);
        uint64_t *fits = calloc(seen->words, sizeof(*fits));
        int rc = dst && fits ? 0 : -1;
        for (size_t k = 0; k < text.n && rc == 0; k++)
            dst[k] = text.p[k] == '*' ? fresh.p[0] : text.p[k];
        if (rc == 0 && text.n) {
            fits_of(b, span_of(dst, text.n), fits);
            rc = add_found(f, seen, fits, span_of(dst, text.n), f->class, &f->nclasses);
        }
        free(fits);
        if (rc != 0)
            return -1;
    }
    return 0;
}

static bool is_dots(struct span s)
{
    return span_eq(s, SPAN(".")) || span_eq(s, SPAN(".."));
}

static int accept_bytes(struct finder *f, const struct bytes *b, const struct states *walk, size_t at,
                        struct states *seen)
{
    uint64_t *fits = calloc(seen->words, sizeof(*fits));
    int rc = fits ? 0 : -1;
    for (size_t i = 0; i < b->n && rc == 0; i++)
        if (bit(states_at(walk, at), b->first[i] + b->v[i].text.n))
            set_bit(fits, i);
    if (rc == 0 && (at || f->kind == MINTERM_TEXT)) {
        struct span text = spell(f, walk, at, b->symbol);
        if (text.p == NULL)
            rc = -1;
        else if (f->kind == MINTERM_TEXT || f->kind == MINTERM_NAME || !is_dots(text))
            rc = add_found(f, seen, fits, text, f->class, &f->nclasses);
    }
    free(fits);
    return rc;
}

static int walk_bytes(struct finder *f, const struct bytes *b, struct states *walk, struct states *seen)
{
    uint64_t *next = calloc(walk->words, sizeof(*next));
    size_t at;
    int rc = next ? 0 : -1;
    for (size_t i = 0; i < b->n && rc == 0; i++)
        set_position(b, i, 0, next);
    /* A mark that no later state has: the start stays number 0, and alone. */
    if (rc == 0)
        set_bit(next, b->bits);
    if (rc == 0 && states_add(walk, next, (struct state_from){0}, &at) != 1)
        rc = -1;
    for (size_t i = 0; rc == 0 && i < walk->n; i++) {
        rc = accept_bytes(f, b, walk, i, seen);
        for (size_t k = 0; k < b->nsymbols && rc == 0; k++) {
            memset(next, 0, walk->words * sizeof(*next));
            step_bytes(b, states_at(walk, i), b->symbol[k], next);
            rc = states_add(walk, next, (struct state_from){(uint32_t)i, (uint32_t)k}, &at) < 0 ? -1 : 0;
        }
    }
    free(next);
    return rc;
}

static int find_classes(struct finder *f)
{
    struct bytes *b = arena_alloc(f->a, sizeof(*b));
    struct states walk = {0}, seen = {0};
    int rc = -1;
    f->class = arena_alloc(f->a, (MINTERMS_MAX + 1) * sizeof(*f->class));
    if (b == NULL || f->class == NULL)
        return -1;
    b->v = f->segment;
    b->n = f->nsegments;
    b->first = arena_alloc(f->a, (b->n + 1) * sizeof(*b->first));
    if (b->first == NULL || collect_symbols(b, f->a) != 0)
        return -1;
    for (size_t i = 0; i < b->n; i++) {
        b->first[i] = b->bits;
        b->bits += b->v[i].text.n + 1;
    }
    b->owner = owners_of(b->first, b->n, b->bits, f->a);
    if (b->owner && states_init(&walk, words_of(b->bits + 1), STATES_MAX) == 0 &&
        states_init(&seen, words_of(b->n), MINTERMS_MAX) == 0)
        rc = add_samples(f, b, &seen) != 0 ? -1 : walk_bytes(f, b, &walk, &seen);
    states_free(&walk);
    states_free(&seen);
    return rc;
}

/* ---- the upper automaton: segments ---- */

struct whole {
    size_t n;        /* patterns */
    size_t *first;   /* where the positions of each begin, in bits */
    uint32_t *owner; /* whose they are */
    uint32_t **part; /* its segments, by number; DEEP for a "**" */
    size_t *parts;
    size_t bits;
};

static uint32_t segment_number(struct finder *f, struct span text, bool fold)
{
    for (size_t i = 0; i < f->nsegments; i++)
        if (f->segment[i].fold == fold && span_eq(f->segment[i].text, text))
            return (uint32_t)i;
    f->segment[f->nsegments] = (struct pattern){text, fold};
    return (uint32_t)f->nsegments++;
}

static size_t count_parts(struct span s)
{
    size_t n = 1;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == '/';
    return n;
}

static struct span without_root(const struct finder *f, struct span s)
{
    return f->kind == MINTERM_PATH ? span_from(s, 1) : s;
}

static int cut_patterns(struct finder *f, struct whole *w, const struct pattern *v)
{
    size_t all = 1;
    for (size_t i = 0; i < w->n; i++)
        all += count_parts(v[i].text);
    f->segment = arena_alloc(f->a, all * sizeof(*f->segment));
    w->first = arena_alloc(f->a, (w->n + 1) * sizeof(*w->first));
    w->parts = arena_alloc(f->a, (w->n + 1) * sizeof(*w->parts));
    w->part = arena_alloc(f->a, (w->n + 1) * sizeof(*w->part));
    if (f->segment == NULL || w->first == NULL || w->parts == NULL || w->part == NULL)
        return -1;
    for (size_t i = 0; i < w->n; i++) {
        struct span rest = without_root(f, v[i].text);
        w->first[i] = w->bits;
        w->parts[i] = count_parts(rest);
        w->bits += w->parts[i] + 1;
        w->part[i] = arena_alloc(f->a, w->parts[i] * sizeof(uint32_t));
        if (w->part[i] == NULL)
            return -1;
        for (size_t k = 0; k < w->parts[i]; k++) {
            struct span one = span_first(rest, span_index(rest, '/'));
            rest = span_from(rest, one.n + 1);
            w->part[i][k] = span_eq(one, SPAN("**")) ? DEEP : segment_number(f, one, v[i].fold);
        }
    }
    return 0;
}

static void set_part(const struct whole *w, size_t i, size_t at, uint64_t *state)
{
    set_bit(state, w->first[i] + at);
    while (at < w->parts[i] && w->part[i][at] == DEEP)
        set_bit(state, w->first[i] + ++at);
}

/* class NULL: the empty segment behind a last '/'. */
static void step_parts(const struct finder *f, const struct whole *w, const uint64_t *from,
                       const struct minterm *class, uint64_t *to)
{
    for (size_t k = 0; next_bit(from, w->bits, &k); k++) {
        uint32_t i = w->owner[k];
        size_t at = k - w->first[i];
        uint32_t part = at < w->parts[i] ? w->part[i][at] : 0;
        if (at == w->parts[i])
            continue;
        if (part == DEEP)
            set_part(w, i, at, to);
        else if (class ? minterm_fits(class, part) : glob_segment(f->segment[part].text, SPAN_NONE, false))
            set_part(w, i, at + 1, to);
    }
}

static int accept_parts(struct finder *f, const struct whole *w, const uint64_t *state, struct span text,
                        struct states *seen)
{
    uint64_t *fits = calloc(seen->words, sizeof(*fits));
    int rc = fits ? 0 : -1;
    for (size_t i = 0; i < w->n && rc == 0; i++)
        if (bit(state, w->first[i] + w->parts[i]))
            set_bit(fits, i);
    if (rc == 0)
        rc = text.p ? add_found(f, seen, fits, text, f->found, &f->nfound) : -1;
    free(fits);
    return rc;
}

static struct span spell_path(struct finder *f, const struct states *s, size_t at, bool slash)
{
    size_t n = f->kind == MINTERM_PATH || at == 0, total;
    for (size_t i = at; i; i = s->from[i].parent)
        n += f->class[s->from[i].symbol].text.n + 1;
    n = at ? n - 1 : n;
    total = n + (slash && at);
    uint8_t *dst = arena_alloc(f->a, total + 1);
    if (dst == NULL)
        return SPAN_NONE;
    memset(dst, '/', total + 1);
    for (size_t i = at; i; i = s->from[i].parent) {
        struct span one = f->class[s->from[i].symbol].text;
        n -= one.n;
        memcpy(dst + n, one.p, one.n);
        n -= n > 0;
    }
    return span_of(dst, total);
}

static int walk_parts(struct finder *f, const struct whole *w, struct states *walk, struct states *seen)
{
    uint64_t *next = calloc(walk->words, sizeof(*next));
    size_t at;
    int rc = next ? 0 : -1;
    for (size_t i = 0; i < w->n && rc == 0; i++)
        set_part(w, i, 0, next);
    /* A mark that no later state has: the start stays number 0, and alone. */
    if (rc == 0)
        set_bit(next, w->bits);
    if (rc == 0 && states_add(walk, next, (struct state_from){0}, &at) != 1)
        rc = -1;
    for (size_t i = 0; rc == 0 && i < walk->n; i++) {
        if (i)
            rc = accept_parts(f, w, states_at(walk, i), spell_path(f, walk, i, false), seen);
        if (rc == 0 && f->kind == MINTERM_PATH) {
            memset(next, 0, walk->words * sizeof(*next));
            step_parts(f, w, states_at(walk, i), NULL, next);
            rc = accept_parts(f, w, next, spell_path(f, walk, i, true), seen);
        }
        for (size_t k = 0; k < f->nclasses && rc == 0; k++) {
            memset(next, 0, walk->words * sizeof(*next));
            step_parts(f, w, states_at(walk, i), &f->class[k], next);
            rc = states_add(walk, next, (struct state_from){(uint32_t)i, (uint32_t)k}, &at) < 0 ? -1 : 0;
        }
    }
    free(next);
    return rc;
}

static int find_whole(struct finder *f, const struct pattern *v, size_t n)
{
    struct whole w = {.n = n};
    struct states walk = {0}, seen = {0};
    int rc = -1;
    f->found = arena_alloc(f->a, (MINTERMS_MAX + 1) * sizeof(*f->found));
    if (f->found == NULL || cut_patterns(f, &w, v) != 0 || find_classes(f) != 0)
        return -1;
    w.owner = owners_of(w.first, n, w.bits, f->a);
    if (w.owner && states_init(&walk, words_of(w.bits + 1), STATES_MAX) == 0 &&
        states_init(&seen, words_of(n), MINTERMS_MAX) == 0)
        rc = walk_parts(f, &w, &walk, &seen);
    states_free(&walk);
    states_free(&seen);
    return rc;
}

int minterms_find(const struct pattern *v, size_t n, enum minterm_kind kind, struct arena *a, struct minterms *out)
{
    struct finder f = {.a = a, .kind = kind};
    bool parts = kind == MINTERM_PATH || kind == MINTERM_REF;
    int rc;
    if (parts) {
        rc = find_whole(&f, v, n);
    } else {
        f.segment = arena_alloc(a, (n + 1) * sizeof(*f.segment));
        if (f.segment == NULL)
            return -1;
        for (size_t i = 0; i < n; i++)
            f.segment[i] = v[i];
        f.nsegments = n;
        rc = find_classes(&f);
    }
    *out = parts ? (struct minterms){f.found, f.nfound} : (struct minterms){f.class, f.nclasses};
    return rc;
}
