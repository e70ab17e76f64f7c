#include "proxy/judge/leases/search.h"

#include "proxy/judge/leases/table.h"

enum { ROUNDS = 3, UNDONE_MAX = 256 * 1024, BASIC_MAX = 8 * 1024 };

static bool search(const struct lease_table *t, struct span s, struct lease_hit *hit)
{
    bool as_is;
    size_t at = lease_find(t, s, &as_is);
    if (at == s.n)
        return false;
    hit->text = as_is ? lease_around(s, at) : SPAN_NONE;
    return true;
}

/* %XX and \uXXXX become the byte they stand for. */
static size_t undo(struct span s, uint8_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        int v = -1;
        if (s.p[i] == '%' && i + 2 < s.n && (v = hex_number(span_of(s.p + i + 1, 2), 2)) >= 0)
            i += 2;
        else if (s.p[i] == '\\' && i + 5 < s.n && s.p[i + 1] == 'u' &&
                 (v = hex_number(span_of(s.p + i + 2, 4), 4)) >= 0 && v < 256)
            i += 5;
        else
            v = s.p[i];
        out[n++] = (uint8_t)v;
    }
    return n;
}

static bool is_coded(struct span s)
{
    return span_index(s, '%') < s.n || span_find(s, SPAN("\\u")) < s.n;
}

/* Also as it would read once its codings are undone. */
static bool search_coded(struct exchange *x, struct span s, struct lease_hit *hit)
{
    const struct lease_table *t = x->judge->leases;
    struct arena a;
    bool found = search(t, s, hit);
    if (found || !is_coded(s) || s.n > UNDONE_MAX)
        return found;
    arena_init(&a, 2 * UNDONE_MAX + 4096);
    uint8_t *to = arena_alloc(&a, s.n);
    for (unsigned i = 0; to != NULL && i < ROUNDS && !found && is_coded(s); i++) {
        s = span_of(to,
                    undo(s, to)); /* in place from the second time on: what is written is never past what is read */
        found = search(t, s, hit);
    }
    hit->text = found ? arena_copy(&x->arena, hit->text) : SPAN_NONE;
    arena_free(&a);
    return found || to == NULL;
}

/* A host is lower case by now, and a name of a field may be. */
static bool search_folded(struct exchange *x, struct span s, struct lease_hit *hit)
{
    const struct lease_table *t = x->judge->leases;
    if (search_coded(x, s, hit))
        return true;
    for (size_t i = 0; i < t->ntags; i++)
        for (size_t at = 0; at + LEASE_TAG <= s.n; at++)
            if (span_ieq(span_of(s.p + at, LEASE_TAG), span_of(t->tag[i].tag, LEASE_TAG)))
                return true;
    return false;
}

/* A field's value; Basic is taken apart, for a lease in it stands at any offset. */
static bool search_value(struct exchange *x, struct span v, struct lease_hit *hit)
{
    uint8_t pair[BASIC_MAX];
    struct span scheme, rest;
    size_t n = 0;
    if (span_cut(v, ' ', &scheme, &rest) && span_ieq(scheme, SPAN("basic")) && rest.n <= BASIC_MAX &&
        base64_decode(span_trim(rest), pair, &n) == 0 && search(x->judge->leases, span_of(pair, n), hit)) {
        hit->text = arena_copy(&x->arena, hit->text);
        return true;
    }
    return search_coded(x, v, hit);
}

/* What stands in the slot's field before and behind the lease; of Basic both halves were looked at. */
static bool search_beside(struct exchange *x, struct span v, struct span but, struct lease_hit *hit)
{
    if (but.p < v.p || but.p + but.n > v.p + v.n)
        return false;
    size_t before = (size_t)(but.p - v.p);
    return search_coded(x, span_first(v, before), hit) || search_coded(x, span_from(v, before + but.n), hit);
}

static bool search_fields(struct exchange *x, const struct brought *slot, struct span but, struct lease_hit *hit)
{
    const struct wire_request *r = &x->request;
    for (size_t i = 0; i < r->nfields; i++) {
        if (search_folded(x, r->field[i].name, hit))
            return true;
        if (i == slot->token && but.n > 0)
            continue;
        if (i == slot->field && but.n > 0 ? search_beside(x, r->field[i].value, but, hit)
                                          : search_value(x, r->field[i].value, hit))
            return true;
    }
    return false;
}

bool lease_search_head(struct exchange *x, const struct brought *slot, struct span but, struct lease_hit *hit)
{
    const struct wire_request *r = &x->request;
    *hit = (struct lease_hit){.in_target = true};
    if (search_coded(x, r->path, hit) || search_coded(x, r->query, hit))
        return true;
    hit->in_target = false;
    if (search_folded(x, r->host, hit) || search_folded(x, r->method, hit))
        return true;
    hit->in_reason = true;
    if (search_coded(x, x->reason, hit))
        return true;
    hit->in_reason = false;
    hit->in_field = true;
    return search_fields(x, slot, but, hit);
}

bool lease_search_body(struct exchange *x, struct lease_hit *hit)
{
    *hit = (struct lease_hit){.in_reason = true};
    if (search_coded(x, x->elicit.reason, hit))
        return true;
    hit->in_reason = false;
    return search_coded(x, body_bytes(x->body), hit);
}

bool lease_search_piece(struct exchange *x, struct span piece, struct lease_hit *hit)
{
    uint8_t seam[2 * LEASE_OVERLAP];
    struct span begin = span_first(piece, LEASE_OVERLAP);
    *hit = (struct lease_hit){.in_target = false};
    memcpy(seam, x->lease_seam, x->nseam);
    if (begin.n)
        memcpy(seam + x->nseam, begin.p, begin.n);
    bool found =
        search(x->judge->leases, piece, hit) || search(x->judge->leases, span_of(seam, x->nseam + begin.n), hit);
    struct span whole = piece.n >= LEASE_OVERLAP ? piece : span_of(seam, x->nseam + begin.n);
    size_t keep = whole.n < LEASE_OVERLAP ? whole.n : LEASE_OVERLAP;
    memcpy(x->lease_seam, whole.p + whole.n - keep, keep);
    x->nseam = (uint8_t)keep;
    hit->text = found ? arena_copy(&x->arena, hit->text) : SPAN_NONE;
    return found;
}
