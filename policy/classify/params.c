#include "policy/classify/params.h"

#include "common/text/utf8.h"

/* ---- names ---- */

/* Bytes that do not tell two names apart for everybody: PHP makes an underscore of '.', ' ' and a '[' that nothing
 * closes, and cuts blanks in front; Rack cuts brackets in front. */
static bool is_unsure(uint8_t c)
{
    return c <= ' ' || c == '[' || c == ']' || c == '.' || c == '_' || c == '+';
}

static const uint64_t key_begin = UINT64_C(0xcbf29ce484222325), key_prime = UINT64_C(0x100000001b3);

uint64_t params_key(struct span want)
{
    uint64_t key = key_begin;
    for (size_t i = 0; i < want.n;) {
        uint8_t c = spelling_letter(want, &i);
        if (!is_unsure(c))
            key = (key ^ c) * key_prime;
    }
    return key;
}

static void add_key(struct params *ps, uint64_t key, size_t param)
{
    if (ps->nkeys == PARAM_KEYS_MAX) {
        ps->failed = true;
        return;
    }
    ps->key[ps->nkeys++] = (struct param_key){key, (uint32_t)param, IMG_NONE};
}

/* The keys of a name: of all of it, and of what is in front of each '['. */
static void add_keys(struct params *ps, size_t param, struct span name)
{
    uint64_t key = key_begin, last = 0;
    for (size_t i = 0; i < name.n;) {
        if (name.p[i] == '[' && key != last) {
            add_key(ps, key, param);
            last = key;
        }
        uint8_t c = spelling_letter(name, &i);
        if (!is_unsure(c))
            key = (key ^ c) * key_prime;
    }
    if (key != last)
        add_key(ps, key, param);
}

static size_t most_keys(struct span name)
{
    size_t n = 1;
    for (; name.n; name = span_from(name, span_index(name, '[') + 1))
        n++;
    return n;
}

static void build_index(struct params *ps, struct arena *a)
{
    size_t most = 0, slots = 16;
    for (size_t i = 0; i < ps->n; i++)
        most += most_keys(ps->v[i].name) + (ps->v[i].again.n ? most_keys(ps->v[i].again) : 0);
    most = most < PARAM_KEYS_MAX ? most : PARAM_KEYS_MAX;
    while (slots < 2 * most)
        slots *= 2;
    ps->key = arena_alloc(a, (most ? most : 1) * sizeof(*ps->key));
    ps->slot = arena_alloc(a, slots * sizeof(*ps->slot));
    if (ps->key == NULL || ps->slot == NULL) {
        ps->failed = true;
        return;
    }
    ps->slots = slots;
    memset(ps->slot, 0xff, slots * sizeof(*ps->slot));
    for (size_t i = 0; i < ps->n; i++) {
        add_keys(ps, i, ps->v[i].name);
        if (ps->v[i].again.n)
            add_keys(ps, i, ps->v[i].again);
    }
    for (size_t i = ps->nkeys; i > 0; i--) {
        uint32_t *slot = &ps->slot[ps->key[i - 1].key % slots];
        ps->key[i - 1].next = *slot;
        *slot = (uint32_t)(i - 1);
    }
}

struct param *params_next(const struct params *ps, uint64_t key, uint32_t *at)
{
    if (ps->slots == 0)
        return NULL;
    *at = *at == IMG_NONE ? ps->slot[key % ps->slots] : ps->key[*at].next;
    while (*at != IMG_NONE && ps->key[*at].key != key)
        *at = ps->key[*at].next;
    return *at == IMG_NONE ? NULL : &ps->v[ps->key[*at].param];
}

/* ---- a query ---- */

static struct param *add_param(struct params *ps, struct span text, bool piece, struct arena *a)
{
    struct param *one = &ps->v[ps->n++];
    struct span name, value;
    (void)span_cut(text, '=', &name, &value);
    *one = (struct param){.raw = value, .parted = !piece && span_index(text, ';') < text.n, .piece = piece};
    if (spelling_decode(name, true, a, &one->name) != 0 || spelling_decode(value, true, a, &one->value) != 0 ||
        spelling_decode(one->name, true, a, &one->again) != 0)
        ps->failed = true;
    if (span_eq(one->again, one->name))
        one->again = SPAN_NONE;
    ps->doubtful |= name.n != one->name.n && utf8_run(one->name) != one->name.n;
    return one;
}

static void add_pieces(struct params *ps, struct span text, struct arena *a)
{
    struct param *whole = add_param(ps, text, false, a);
    ps->whole++;
    ps->pieces += !whole->parted;
    for (struct span rest = whole->parted ? text : SPAN_NONE; rest.n;) {
        struct span piece = span_first(rest, span_index(rest, ';'));
        rest = span_from(rest, piece.n + 1);
        if (piece.n == 0)
            continue;
        (void)add_param(ps, piece, true, a);
        whole->pieces++;
        ps->pieces++;
    }
}

void params_of_query(struct params *ps, struct span query, struct arena *a)
{
    size_t most = 0;
    if (ps->looked)
        return;
    *ps = (struct params){.looked = true};
    for (struct span rest = query; rest.n;) {
        struct span one = span_first(rest, span_index(rest, '&'));
        rest = span_from(rest, one.n + 1);
        most += one.n > 0;
        for (struct span piece = one; piece.n; piece = span_from(piece, span_index(piece, ';') + 1))
            most++;
    }
    if (most == 0)
        return;
    ps->v = most <= PARAMS_MAX ? arena_alloc(a, most * sizeof(*ps->v)) : NULL;
    ps->failed = ps->v == NULL;
    for (struct span rest = query; rest.n && ps->v;) {
        struct span one = span_first(rest, span_index(rest, '&'));
        rest = span_from(rest, one.n + 1);
        if (one.n)
            add_pieces(ps, one, a);
    }
    if (!ps->failed)
        build_index(ps, a);
}

/* ---- a form ---- */

/* A broken escape stays what it is when it is decoded; here it is none. */
static bool escapes_well(struct span s)
{
    for (size_t i = span_index(s, '%'); i < s.n; i += 1 + span_index(span_from(s, i + 1), '%'))
        for (size_t k = 1; k <= 2; k++)
            if (s.n - i <= k || span_index(SPAN("0123456789abcdefABCDEF"), s.p[i + k]) == 22)
                return false;
    return true;
}

static int add_field(struct params *ps, struct span text, struct arena *a)
{
    if (!escapes_well(text))
        return -1;
    struct param *one = add_param(ps, text, false, a);
    ps->whole++;
    ps->pieces++;
    bool good = one->name.n <= PARAM_NAME_MAX && span_index(one->name, 0) == one->name.n &&
                span_index(one->value, 0) == one->value.n && utf8_run(one->name) == one->name.n &&
                utf8_run(one->value) == one->value.n && !span_eq(one->name, SPAN("_charset_"));
    return good && !ps->failed ? 0 : -1;
}

int params_of_form(struct params *ps, struct span body, struct arena *a)
{
    size_t most = 0;
    *ps = (struct params){.looked = true};
    if (span_index(body, ';') < body.n)
        return -1;
    for (struct span rest = body; rest.n; rest = span_from(rest, span_index(rest, '&') + 1))
        if (++most > PARAMS_MAX / 2)
            return -1;
    ps->v = arena_alloc(a, (most ? most : 1) * sizeof(*ps->v));
    if (ps->v == NULL)
        return -1;
    while (body.n) {
        struct span one = span_first(body, span_index(body, '&'));
        body = span_from(body, one.n + 1);
        if (one.n && add_field(ps, one, a) != 0)
            return -1;
    }
    build_index(ps, a);
    return ps->failed ? -1 : 0;
}

/* ---- values ---- */

struct spellings *param_spellings(struct param *one, struct arena *a)
{
    if (one->other == NULL && (one->other = arena_alloc(a, sizeof(*one->other))) != NULL)
        spellings_of(one->value, one->raw, a, one->other);
    return one->other;
}

bool param_fits(const struct policy *p, struct img_range globs, struct param *one, struct arena *a)
{
    if (spelling_fits(p, globs, one->value, a))
        return true;
    const struct spellings *s = param_spellings(one, a);
    bool fits = s == NULL || s->failed;
    for (size_t i = 0; !fits && i < s->n; i++)
        fits = spelling_fits(p, globs, s->v[i], a);
    return fits;
}
