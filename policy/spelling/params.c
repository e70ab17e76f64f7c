#include "policy/spelling/params.h"

#include "common/text/utf8.h"
#include "policy/spelling/letters.h"

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
        uint8_t c = letter_next(want, &i);
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
        uint8_t c = letter_next(name, &i);
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

bool params_have(const struct params *ps, struct span name)
{
    uint32_t at = IMG_NONE;
    return params_next(ps, params_key(name), &at) != NULL;
}

/* ---- what may be cut into parameters ---- */

/* Would it, decoded, be cut in other places? again: there are escapes of a '%', so that what is decoded may be. */
static bool hides_cuts(struct span s, bool *again)
{
    bool named = false, hides = false;
    *again = false;
    for (size_t i = span_index(s, '%'); i < s.n && !hides; i++) {
        int c = s.p[i] == '%' ? spelling_escape(s, i) : -1;
        if (s.p[i] == '&' || s.p[i] == ';')
            named = false;
        named |= s.p[i] == '=';
        hides |= c == '&' || c == ';' || (c == '=' && !named);
        *again |= c == '%';
    }
    return hides;
}

/* Each text decoded once more, as long as that changes where it is cut. */
static int add_decoded(struct span text, struct arena *a, struct param_texts *out)
{
    for (unsigned i = 0; i < 2; i++) {
        bool again, hides = hides_cuts(text, &again);
        if (!hides && !again)
            return 0;
        if (spelling_decode(text, false, a, &text) != 0)
            return -1;
        if (hides)
            out->v[out->n++] = text;
    }
    return 0;
}

int param_texts_of(struct span text, struct span path, struct arena *a, struct param_texts *out)
{
    *out = (struct param_texts){.v[0] = text, .n = 1};
    if (!path_hides_query(path))
        return add_decoded(text, a, out);
    if (add_decoded(text, a, out) != 0 || spelling_decode(path, false, a, &path) != 0)
        return -1;
    out->v[out->n++] = span_from(path, span_index(path, '?') + 1);
    return 0;
}

bool path_hides_query(struct span path)
{
    for (size_t i = span_index(path, '%'); i < path.n; i += 1 + span_index(span_from(path, i + 1), '%'))
        if (spelling_escape(path, i) == '?')
            return true;
    return false;
}

static void decode_again(struct params *ps, struct param *one, struct arena *a)
{
    ps->failed |= spelling_decode(one->name, true, a, &one->again) != 0;
    if (span_eq(one->again, one->name))
        one->again = SPAN_NONE;
}

/* NULL: there are too many, or no memory. */
static struct param *add_param(struct params *ps, struct span text, bool late, struct arena *a)
{
    if (ps->n == ps->room) {
        size_t room = ps->room ? 2 * ps->room : 8;
        struct param *more = ps->n < PARAMS_MAX ? arena_alloc(a, room * sizeof(*more)) : NULL;
        ps->failed |= more == NULL;
        if (more == NULL)
            return NULL;
        if (ps->n)
            memcpy(more, ps->v, ps->n * sizeof(*more));
        ps->v = more;
        ps->room = room;
    }
    struct param *one = &ps->v[ps->n++];
    struct span name, value;
    (void)span_cut(text, '=', &name, &value);
    *one = (struct param){.name = name, .value = value, .raw = value, .late = late};
    if (!late) /* else it is decoded already */
        ps->failed |=
            spelling_decode(name, true, a, &one->name) != 0 || spelling_decode(value, true, a, &one->value) != 0;
    decode_again(ps, one, a);
    ps->doubtful |= name.n != one->name.n && utf8_run(one->name) != one->name.n;
    return one;
}

/* How many are put behind the one that they are pieces of: cut at ';', and with `all` at '&' too. */
static size_t add_pieces(struct params *ps, struct span text, bool all, bool late, struct arena *a)
{
    size_t n = 0;
    while (text.n && !ps->failed) {
        size_t to = 0;
        while (to < text.n && text.p[to] != ';' && !(all && text.p[to] == '&'))
            to++;
        struct span piece = span_first(text, to);
        text = span_from(text, piece.n + 1);
        struct param *one = piece.n ? add_param(ps, piece, late, a) : NULL;
        if (one != NULL)
            one->piece = true;
        n += one != NULL;
    }
    return n;
}

/* A parameter, and behind it what some take in its place: the pieces that a ';' parts, and those that it is cut into
 * when it is decoded before, once or twice. */
static void add_whole(struct params *ps, struct span text, bool late, struct arena *a)
{
    size_t at = ps->n, pieces = 0;
    bool parted = span_index(text, ';') < text.n, again;
    if (add_param(ps, text, late, a) == NULL)
        return;
    if (parted)
        pieces = add_pieces(ps, text, false, late, a);
    ps->v[at].parted = parted;
    ps->v[at].pieces = pieces;
    ps->whole += !late;
    ps->pieces += late ? 0 : parted ? pieces : 1;
    for (unsigned i = 0; i < 2 && !ps->failed; i++) {
        bool hides = hides_cuts(text, &again);
        if (!hides && !again)
            break;
        ps->failed |= spelling_decode(text, false, a, &text) != 0;
        size_t n = hides ? add_pieces(ps, text, true, true, a) : 0;
        ps->v[at].hidden[i] = n;
    }
}

static void add_text(struct params *ps, struct span text, bool late, struct arena *a)
{
    while (text.n && !ps->failed) {
        struct span one = span_first(text, span_index(text, '&'));
        text = span_from(text, one.n + 1);
        if (one.n)
            add_whole(ps, one, late, a);
    }
}

/* ---- a query ---- */

void params_of_query(struct params *ps, struct span query, struct span path, struct arena *a)
{
    if (ps->looked)
        return;
    *ps = (struct params){.looked = true};
    add_text(ps, query, false, a);
    ps->of_query = ps->n;
    if (path_hides_query(path)) {
        ps->failed |= spelling_decode(path, false, a, &path) != 0;
        add_text(ps, span_from(path, span_index(path, '?') + 1), true, a);
    }
    if (ps->n && !ps->failed)
        build_index(ps, a);
}

/* ---- a form ---- */

/* A broken escape stays what it is when it is decoded; here it is none. */
static bool escapes_well(struct span s)
{
    for (size_t i = span_index(s, '%'); i < s.n; i += 1 + span_index(span_from(s, i + 1), '%'))
        if (spelling_escape(s, i) < 0)
            return false;
    return true;
}

static bool is_good(const struct param *one)
{
    return one->name.n <= PARAM_NAME_MAX && span_index(one->name, 0) == one->name.n &&
           span_index(one->value, 0) == one->value.n && utf8_run(one->name) == one->name.n &&
           utf8_run(one->value) == one->value.n && !span_eq(one->name, SPAN("_charset_"));
}

int params_of_form(struct params *ps, struct span body, struct arena *a)
{
    size_t most = 0;
    *ps = (struct params){.looked = true};
    if (span_index(body, ';') < body.n || !escapes_well(body))
        return -1;
    for (struct span rest = body; rest.n; rest = span_from(rest, span_index(rest, '&') + 1))
        if (++most > PARAMS_MAX / 2)
            return -1;
    add_text(ps, body, false, a);
    for (size_t i = 0; i < ps->n && !ps->failed; i++)
        if (!ps->v[i].late && !is_good(&ps->v[i]))
            return -1;
    if (!ps->failed)
        build_index(ps, a);
    return ps->failed ? -1 : 0;
}

int params_of_parts(struct params *ps, struct param *v, size_t n, struct arena *a)
{
    *ps = (struct params){.looked = true, .v = v, .n = n};
    for (size_t i = 0; i < n; i++) {
        if (!is_good(&v[i]))
            return -1;
        decode_again(ps, &v[i], a);
    }
    if (!ps->failed)
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
