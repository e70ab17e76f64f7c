/* What a rule asks of the query and of header fields. Every occurrence counts: what lets through needs all of them to
 * fit as they are written, what restricts one of them in any spelling (B12, B60, B62). */
#include "common/text/utf8.h"
#include "policy/image/glob.h"
#include "policy/match/match.h"

struct seen {
    bool fit, unfit, failed;
};

static bool any_value(const struct policy *p, struct img_range globs, struct span value)
{
    for (uint32_t i = 0; i < globs.n; i++) {
        const struct img_glob *g = img_at(p, IMG_GLOB, globs.first + i);
        struct glob glob = {img_span(p, g->text), g->head, g->tail, g->literal, g->deep, g->after};
        if (glob_match(&glob, value, 0, false))
            return true;
    }
    return false;
}

static enum fit fit_of(const struct seen *seen, bool strictly)
{
    if (seen->failed)
        return FIT_MAYBE;
    return seen->fit && (!strictly || !seen->unfit) ? FIT_YES : FIT_NO;
}

/* ---- the query ---- */

static const struct params *query_of(const struct ask *k)
{
    if (!k->body->query.looked)
        params_of_query(&k->body->query, k->request->query, k->request->path, k->arena);
    return &k->body->query;
}

static enum fit query_fits(const struct ask *k, const struct img_pair *want, bool strictly)
{
    const struct params *ps = query_of(k);
    struct span name = img_span(k->p, want->key);
    struct seen seen = {.failed = ps->failed};
    uint64_t key = params_key(name);
    uint32_t at = IMG_NONE;
    for (struct param *one; !seen.failed && (one = params_next(ps, key, &at)) != NULL;) {
        if (strictly) {
            bool fits = any_value(k->p, want->values, one->value);
            seen.fit |= fits && !one->late;
            seen.unfit |= !fits || !span_eq(one->name, name);
        } else if (param_fits(k->p, want->values, one, k->arena)) {
            return FIT_YES;
        }
    }
    return fit_of(&seen, strictly);
}

/* Strictly: exactly these names, each once, and so whether ';' parts or not (B12): servers differ in that, and in
 * which of two counts. */
static bool names_are(const struct ask *k, const struct img_match *m, struct params *ps)
{
    size_t whole = 0, pieces = 0;
    for (uint32_t i = 0; i < m->query_names.n; i++) {
        struct span name = img_text(k->p, m->query_names, i);
        uint64_t key = params_key(name);
        uint32_t at = IMG_NONE;
        size_t of_whole = 0, of_pieces = 0;
        for (struct param *one; (one = params_next(ps, key, &at)) != NULL;) {
            if (one->met == ps->question || one->late || !span_eq(one->name, name))
                continue;
            one->met = ps->question;
            of_whole += !one->piece;
            of_pieces += !one->parted;
        }
        if (of_whole > 1 || of_pieces > 1)
            return false;
        whole += of_whole;
        pieces += of_pieces;
    }
    return whole == ps->whole && pieces == ps->pieces;
}

/* One of these names, or none: many servers drop what has no name. */
static bool may_be(const struct params *ps, const struct param *one)
{
    return one->met == ps->question || one->name.n == 0;
}

static bool each_may_be(const struct params *ps, size_t from, size_t n)
{
    for (size_t i = from; i < from + n; i++)
        if (!may_be(ps, &ps->v[i]))
            return false;
    return true;
}

/* Of each parameter itself, or all that some take in its place. */
static bool all_may_be(const struct params *ps, size_t from, size_t to)
{
    for (size_t i = from, next; i < to; i = next) {
        const struct param *one = &ps->v[i];
        size_t hidden = i + 1 + one->pieces;
        next = hidden + one->hidden[0] + one->hidden[1];
        if (!may_be(ps, one) && !(one->parted && each_may_be(ps, i + 1, one->pieces)) && /* of a ';' alone nothing */
            !(one->hidden[0] && each_may_be(ps, hidden, one->hidden[0])) &&
            !(one->hidden[1] && each_may_be(ps, hidden + one->hidden[0], one->hidden[1])))
            return false;
    }
    return true;
}

/* Else: some server may find these names alone, in the query or at the end of the path. */
static bool names_may_be(const struct ask *k, const struct img_match *m, struct params *ps)
{
    for (uint32_t i = 0; i < m->query_names.n; i++) {
        uint64_t key = params_key(img_text(k->p, m->query_names, i));
        uint32_t at = IMG_NONE;
        for (struct param *one; (one = params_next(ps, key, &at)) != NULL;)
            one->met = ps->question;
    }
    return all_may_be(ps, 0, ps->of_query) || (ps->of_query < ps->n && all_may_be(ps, ps->of_query, ps->n));
}

static enum fit names_fit(const struct ask *k, const struct img_match *m, bool strictly)
{
    if (query_of(k)->failed)
        return FIT_MAYBE;
    struct params *ps = &k->body->query;
    ps->question++;
    return (strictly ? names_are(k, m, ps) : names_may_be(k, m, ps)) ? FIT_YES : FIT_NO;
}

/* ---- header fields ---- */

static bool value_fits(const struct ask *k, const struct img_pair *want, struct span value)
{
    struct spellings s;
    if (spelling_fits(k->p, want->values, value, k->arena))
        return true;
    spellings_of(value, SPAN_NONE, k->arena, &s);
    bool fits = s.failed;
    for (size_t i = 0; !fits && i < s.n; i++)
        fits = spelling_fits(k->p, want->values, s.v[i], k->arena);
    return fits;
}

/* Each side by itself: of a list that is cut at its commas a quote may have lost the other one. */
static struct span unquoted(struct span s)
{
    s = span_trim(s);
    if (s.n && s.p[0] == '"')
        s = span_from(s, 1);
    if (s.n && s.p[s.n - 1] == '"')
        s.n--;
    return s;
}

static int without_pairs(struct span s, struct arena *a, struct span *out)
{
    uint8_t *dst = arena_alloc(a, s.n);
    size_t n = 0;
    for (size_t i = 0; dst && i < s.n; i++) {
        i += s.p[i] == '\\' && i + 1 < s.n;
        dst[n++] = s.p[i];
    }
    *out = span_of(dst, n);
    return dst ? 0 : -1;
}

/* A quoted string without its quotes, and without the '\\' before what it quotes (RFC 9110 section 5.6.4). */
static bool quoted_fits(const struct ask *k, const struct img_pair *want, struct span item)
{
    struct span is = unquoted(item);
    if (value_fits(k, want, is))
        return true;
    return span_index(is, '\\') < is.n && (without_pairs(is, k->arena, &is) != 0 || value_fits(k, want, is));
}

/* One of a list, with and without the parameters behind its ';', in quotes or not. */
static bool item_fits(const struct ask *k, const struct img_pair *want, struct span item)
{
    struct span bare = span_first(item, span_index(item, ';'));
    return quoted_fits(k, want, item) || (bare.n < item.n && quoted_fits(k, want, bare));
}

/* Does this one of a list of patterns fit one of the items of all fields of that name? */
static bool some_item_fits(const struct ask *k, struct span name, struct span pattern)
{
    struct span item, rest;
    struct glob glob = glob_of(unquoted(pattern), 0);
    for (size_t i = 0; i < k->request->nfields; i++) {
        if (!spelling_of_name(k->request->fields[i].name, name))
            continue;
        rest = k->request->fields[i].value;
        for (bool more = true; more;) {
            more = span_cut(rest, ',', &item, &rest);
            struct span bare = unquoted(span_first(item, span_index(item, ';')));
            if (glob_match(&glob, bare, 0, true) || glob_match(&glob, unquoted(item), 0, true))
                return true;
        }
    }
    return false;
}

/* A pattern that is a list itself: each of it is there, in whatever order and in how many fields. */
static bool list_fits(const struct ask *k, const struct img_pair *want)
{
    for (uint32_t i = 0; i < want->values.n; i++) {
        const struct img_glob *g = img_at(k->p, IMG_GLOB, want->values.first + i);
        struct span one, rest = img_span(k->p, g->text);
        bool all = span_index(rest, ',') < rest.n;
        for (bool more = all; more && all;) {
            more = span_cut(rest, ',', &one, &rest);
            all = span_trim(one).n == 0 || some_item_fits(k, img_span(k->p, want->key), one);
        }
        if (all)
            return true;
    }
    return false;
}

/* Some servers leave out what is not ASCII. -1: no memory. */
static int ascii_alone(struct span s, struct arena *a, struct span *out)
{
    uint8_t all = 0, *dst;
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        all |= s.p[i];
    *out = s;
    if (all < 0x80)
        return 0;
    if ((dst = arena_alloc(a, s.n)) == NULL)
        return -1;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x80)
            dst[n++] = s.p[i];
    *out = span_of(dst, n);
    return 0;
}

static bool field_fits(const struct ask *k, const struct img_pair *want, struct span value)
{
    struct span item, rest = value, ascii;
    /* In which charset it is read, and so what it says, only its server knows. */
    if (utf8_run(value) != value.n || value_fits(k, want, value) || ascii_alone(value, k->arena, &ascii) != 0)
        return true;
    if (ascii.n < value.n && field_fits(k, want, ascii))
        return true;
    for (bool more = true; more;) {
        more = span_cut(rest, ',', &item, &rest);
        if (item_fits(k, want, item))
            return true;
    }
    return false;
}

static enum fit header_fits(const struct ask *k, const struct img_pair *want, bool strictly)
{
    struct seen seen = {0};
    struct span name = img_span(k->p, want->key);
    for (size_t i = 0; i < k->request->nfields; i++) {
        const struct http_field *f = &k->request->fields[i];
        if (!spelling_of_name(f->name, name))
            continue;
        bool fits = strictly ? any_value(k->p, want->values, f->value) : field_fits(k, want, f->value);
        seen.fit |= fits;
        seen.unfit |= !fits || !span_ieq(f->name, name);
    }
    if (k->request->fields_unknown)
        return FIT_MAYBE;
    if (!strictly && !seen.fit)
        seen.fit = list_fits(k, want);
    return fit_of(&seen, strictly);
}

enum fit pairs_fit(const struct ask *k, const struct img_match *m, bool strictly)
{
    enum fit fit = m->query_only ? names_fit(k, m, strictly) : FIT_YES;
    for (uint32_t i = 0; i < m->query.n + m->header.n && fit != FIT_NO; i++) {
        bool is_query = i < m->query.n;
        uint32_t at = is_query ? m->query.first + i : m->header.first + i - m->query.n;
        const struct img_pair *want = img_at(k->p, IMG_PAIR, at);
        enum fit one = is_query ? query_fits(k, want, strictly) : header_fits(k, want, strictly);
        fit = one < fit ? one : fit;
    }
    return fit;
}
