/* How the value of each keyword is read. */
#include "common/schema/format.h"
#include "common/schema/schema_in.h"

static int refuse(struct compile *c, const struct rule *r, const char *why)
{
    return compile_refuse(c, r->value, r->word->name, why);
}

static int any(struct compile *c, struct rule *r)
{
    return 0;
}

static int values(struct compile *c, struct rule *r)
{
    return r->value->type == JSON_ARRAY && r->value->child ? 0 : refuse(c, r, "is a list of values, of one at least");
}

static int type_bit(struct span name, uint64_t *bits)
{
    static const struct {
        const char *name;
        unsigned type;
    } types[] = {{"null", JSON_NULL},   {"boolean", JSON_BOOL},  {"number", JSON_NUMBER},  {"string", JSON_STRING},
                 {"array", JSON_ARRAY}, {"object", JSON_OBJECT}, {"integer", TYPE_INTEGER}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (span_eq(name, span_str(types[i].name))) {
            *bits |= (uint64_t)1 << types[i].type;
            return 0;
        }
    return -1;
}

static int types(struct compile *c, struct rule *r)
{
    static const char why[] = "is null, boolean, integer, number, string, array or object, or a list of these";
    const struct json *v = r->value;
    if (v->type == JSON_STRING)
        return type_bit(v->text, &r->count) == 0 ? 0 : refuse(c, r, why);
    if (v->type != JSON_ARRAY || v->child == NULL)
        return refuse(c, r, why);
    for (const struct json *one = v->child; one; one = one->next)
        if (one->type != JSON_STRING || type_bit(one->text, &r->count) != 0)
            return refuse(c, r, why);
    return 0;
}

static int number(struct compile *c, struct rule *r)
{
    return r->value->type == JSON_NUMBER && decimal_of(r->value->text, &r->number) ? 0 : refuse(c, r, "is a number");
}

static int divisor(struct compile *c, struct rule *r)
{
    if (r->value->type != JSON_NUMBER || !decimal_of(r->value->text, &r->number) ||
        !decimal_divisor(&r->number, &r->divisor))
        return refuse(c, r, "is a number above 0, of at most nine digits beside the zeros before and behind them");
    return 0;
}

static int count(struct compile *c, struct rule *r)
{
    struct divisor whole;
    if (r->value->type != JSON_NUMBER || !decimal_of(r->value->text, &r->number) || !decimal_is_integer(&r->number) ||
        r->number.negative)
        return refuse(c, r, "is a whole number, 0 or more");
    if (r->number.count == 0)
        return 0;
    if (r->number.top > DECIMAL_DIVISOR_DIGITS || !decimal_divisor(&r->number, &whole)) {
        r->count = UINT64_MAX; /* more than anything here has */
        return 0;
    }
    r->count = whole.digits;
    for (int64_t i = 0; i < whole.low; i++)
        r->count *= 10;
    return 0;
}

static int truth(struct compile *c, struct rule *r)
{
    r->count = r->value->truth;
    return r->value->type == JSON_BOOL ? 0 : refuse(c, r, "is true or false");
}

static int pattern_at(struct compile *c, const struct rule *r, const struct json *at, struct span text,
                      const struct pattern **out)
{
    const char *why;
    *out = pattern_compile(text, &c->s->arena, &why);
    if (*out == NULL)
        return compile_refuse(c, at, r->word->name, why);
    size_t n = pattern_size(*out);
    c->patterns += n;
    if (c->patterns > SCHEMA_PATTERNS_MAX)
        return compile_refuse(c, at, r->word->name, "the patterns of the schema are too large together");
    if (n > c->s->largest)
        c->s->largest = n;
    return 0;
}

static int pattern(struct compile *c, struct rule *r)
{
    if (r->value->type != JSON_STRING)
        return refuse(c, r, "is a text");
    return pattern_at(c, r, r->value, r->value->text, &r->pattern);
}

static int format(struct compile *c, struct rule *r)
{
    if ((c->options & SCHEMA_FORMATS) == 0)
        return 0;
    r->count = r->value->type == JSON_STRING ? format_of(r->value->text) : FORMAT_NONE;
    return r->count != FORMAT_NONE ? 0 : refuse(c, r, "is none that is checked here: " FORMAT_NAMES);
}

static bool is_names(const struct json *list)
{
    if (list->type != JSON_ARRAY)
        return false;
    for (const struct json *one = list->child; one; one = one->next)
        if (one->type != JSON_STRING)
            return false;
    return true;
}

static int names(struct compile *c, struct rule *r)
{
    return is_names(r->value) ? 0 : refuse(c, r, "is a list of names");
}

static int names_of(struct compile *c, struct rule *r)
{
    if (r->value->type != JSON_OBJECT)
        return refuse(c, r, "is an object of lists of names");
    for (const struct json *one = r->value->child; one; one = one->next)
        if (!is_names(one))
            return compile_refuse(c, one, r->word->name, "is a list of names");
    return 0;
}

static int branches(struct compile *c, struct rule *r, size_t n)
{
    r->branch = arena_alloc(&c->s->arena, (n ? n : 1) * sizeof *r->branch);
    return r->branch ? 0 : refuse(c, r, "the schema is too large");
}

static int add_branch(struct compile *c, struct rule *r, const struct json *at)
{
    struct branch *b = &r->branch[r->nbranch];
    b->at = at;
    b->node = compile_schema(c, at);
    r->nbranch++;
    return b->node ? 0 : -1;
}

static int schema(struct compile *c, struct rule *r)
{
    if (r->value->type == JSON_ARRAY && r->word == &schema_keywords[KW_ITEMS])
        return refuse(c, r, "is one schema; a list of them is prefixItems");
    return branches(c, r, 1) == 0 ? add_branch(c, r, r->value) : -1;
}

/* One for each element or member. */
static int each_schema(struct compile *c, struct rule *r)
{
    if (branches(c, r, r->value->count) != 0)
        return -1;
    for (const struct json *one = r->value->child; one; one = one->next)
        if (add_branch(c, r, one) != 0)
            return -1;
    return 0;
}

static int schemas(struct compile *c, struct rule *r)
{
    if (r->value->type != JSON_ARRAY || r->value->child == NULL)
        return refuse(c, r, "is a list of schemas, of one at least");
    return each_schema(c, r);
}

static int schema_of(struct compile *c, struct rule *r)
{
    return r->value->type == JSON_OBJECT ? each_schema(c, r) : refuse(c, r, "is an object of schemas");
}

static int pattern_of(struct compile *c, struct rule *r)
{
    if (schema_of(c, r) != 0)
        return -1;
    for (size_t i = 0; i < r->nbranch; i++)
        if (pattern_at(c, r, r->branch[i].at, r->branch[i].at->key, &r->branch[i].pattern) != 0)
            return -1;
    return 0;
}

/* Led to its schema when all of them are known (refs.c). */
static int ref(struct compile *c, struct rule *r)
{
    if (r->value->type != JSON_STRING)
        return refuse(c, r, "is a text");
    if (!span_starts(r->value->text, SPAN("#")))
        return refuse(c, r, "leads to another document; only what begins with # is followed");
    return branches(c, r, 1);
}

static int anchor(struct compile *c, struct rule *r)
{
    struct span s = r->value->text;
    bool good = r->value->type == JSON_STRING && s.n > 0;
    for (size_t i = 0; i < s.n && good; i++) {
        uint8_t x = s.p[i];
        bool letter = (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || x == '_';
        good = letter || (i > 0 && ((x >= '0' && x <= '9') || x == '-' || x == '.'));
    }
    return good ? 0 : refuse(c, r, "is a name of letters, digits, - . and _ that begins with a letter or _");
}

static int identity(struct compile *c, struct rule *r)
{
    if (r->value->type != JSON_STRING)
        return refuse(c, r, "is a text");
    if (json_get(c->top, r->value->key) != r->value)
        return refuse(c, r, "makes another document of a part; only the whole may have one");
    return span_index(r->value->text, '#') == r->value->text.n || span_ends(r->value->text, SPAN("#"))
               ? 0
               : refuse(c, r, "has a fragment; $anchor names a part");
}

static int dialect(struct compile *c, struct rule *r)
{
    if (json_get(c->top, r->value->key) != r->value)
        return refuse(c, r, "stands at the top only");
    struct span s = r->value->type == JSON_STRING ? r->value->text : SPAN_NONE;
    bool known = c->old || span_eq(s, SPAN("https://json-schema.org/draft/2020-12/schema")) ||
                 span_eq(s, SPAN("https://json-schema.org/draft/2020-12/schema#"));
    return known ? 0 : refuse(c, r, "is neither 2020-12 nor draft-07");
}

int compile_argument(struct compile *c, struct rule *r)
{
    static int (*const readers[ARG_KINDS])(struct compile *, struct rule *) = {
        [ARG_ANY] = any,         [ARG_VALUES] = values,       [ARG_TYPES] = types,
        [ARG_NUMBER] = number,   [ARG_DIVISOR] = divisor,     [ARG_COUNT] = count,
        [ARG_BOOL] = truth,      [ARG_PATTERN] = pattern,     [ARG_FORMAT] = format,
        [ARG_NAMES] = names,     [ARG_NAMES_OF] = names_of,   [ARG_SCHEMA] = schema,
        [ARG_SCHEMAS] = schemas, [ARG_SCHEMA_OF] = schema_of, [ARG_PATTERN_OF] = pattern_of,
        [ARG_REF] = ref,         [ARG_ANCHOR] = anchor,       [ARG_ID] = identity,
        [ARG_DIALECT] = dialect};
    return readers[r->word->argument](c, r);
}
