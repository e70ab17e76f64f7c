/* JSON, by pointer (RFC 6901). */
#include "policy/body/parsers.h"
#include "policy/spelling/letters.h"

enum ambiguity_cause body_json_look(struct body_view *v, struct span body, struct arena *a)
{
    static const enum ambiguity_cause faults[] = {[JSON_MALFORMED] = AMBIGUITY_JSON,
                                                  [JSON_BYTES] = AMBIGUITY_ENCODING,
                                                  [JSON_KEY_TWICE] = AMBIGUITY_KEY_TWICE,
                                                  [JSON_OVER_LIMIT] = AMBIGUITY_BODY_LARGE};
    enum json_fault why;
    v->json = json_parse_or(body, a, &why);
    return v->json ? AMBIGUITY_NONE : faults[why];
}

/* A reference token with ~0 and ~1 undone. -1: no memory. */
static int token_name(struct span token, struct arena *a, struct span *out)
{
    *out = token;
    if (span_index(token, '~') == token.n)
        return 0;
    uint8_t *name = arena_alloc(a, token.n);
    size_t n = 0;
    for (size_t i = 0; name && i < token.n; i++) {
        bool escape = token.p[i] == '~' && i + 1 < token.n;
        i += escape;
        name[n++] = !escape ? token.p[i] : token.p[i] == '0' ? '~' : '/';
    }
    *out = span_of(name, n);
    return name ? 0 : -1;
}

/* The members of a large object by their names, as name_next has them: made when it is first asked for one. */
struct json_object {
    const struct json *node;
    struct json_object *next;
    struct json_member {
        const struct json *at;
        uint64_t key;
        uint32_t next;
    } * member;
    uint32_t *slot;
    size_t slots;
};
enum { OBJECT_SMALL = 16 };

/* The next letter that tells two names apart for everybody, 0 at the end: case does not (Go, .NET), nor a '_' or '-'
 * inside of one (the JSON of protobuf takes user_id and userId for one field, Go's second encoding/json also
 * user-id). In front or at the end they do: id and _id stand side by side. */
static uint8_t name_next(struct span name, size_t *i)
{
    uint8_t c = 0;
    while (c == 0 && *i < name.n) {
        bool first = *i == 0;
        c = letter_next(name, i);
        if ((c == '_' || c == '-') && !first && *i < name.n)
            c = 0;
    }
    return c;
}

static bool names_same(struct span a, struct span b)
{
    size_t i = 0, k = 0;
    uint8_t c;
    do {
        c = name_next(a, &i);
        if (c != name_next(b, &k))
            return false;
    } while (c != 0);
    return true;
}

static uint64_t key_of(struct span name)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    uint8_t c;
    for (size_t i = 0; (c = name_next(name, &i)) != 0;)
        key = (key ^ c) * UINT64_C(0x100000001b3);
    return key;
}

/* NULL: no memory. */
static const struct json_object *object_of(struct body_view *v, const struct json *j, struct arena *a)
{
    size_t n = 0;
    for (struct json_object *o = v->object; o; o = o->next)
        if (o->node == j)
            return o;
    struct json_object *o = arena_alloc(a, sizeof(*o));
    if (o == NULL)
        return NULL;
    *o = (struct json_object){.node = j, .next = v->object, .slots = OBJECT_SMALL};
    while (o->slots < 2 * j->count)
        o->slots *= 2;
    o->member = arena_alloc(a, j->count * sizeof(*o->member));
    o->slot = arena_alloc(a, o->slots * sizeof(*o->slot));
    if (o->member == NULL || o->slot == NULL)
        return NULL;
    memset(o->slot, 0xff, o->slots * sizeof(*o->slot));
    for (const struct json *at = j->child; at; at = at->next, n++) {
        uint64_t key = key_of(at->key);
        uint32_t *slot = &o->slot[key % o->slots];
        o->member[n] = (struct json_member){at, key, *slot};
        *slot = (uint32_t)n;
    }
    v->object = o;
    return o;
}

/* Of one member: is it the one, or may it be? */
static void see_member(const struct json *at, struct span name, const struct json **found,
                       enum ambiguity_cause *doubt)
{
    if (span_eq(name, at->key))
        *found = at;
    else if (names_same(name, at->key))
        *doubt = AMBIGUITY_KEY_CASE;
}

static const struct json *member_of(struct body_view *v, const struct json *j, struct span name,
                                    enum ambiguity_cause *doubt, struct arena *a)
{
    const struct json *found = NULL;
    const struct json_object *o = j->count > OBJECT_SMALL ? object_of(v, j, a) : NULL;
    if (o == NULL) {
        for (const struct json *at = j->child; at; at = at->next)
            see_member(at, name, &found, doubt);
        return found;
    }
    uint64_t key = key_of(name);
    for (uint32_t i = o->slot[key % o->slots]; i != IMG_NONE && *doubt == AMBIGUITY_NONE; i = o->member[i].next)
        if (o->member[i].key == key)
            see_member(o->member[i].at, name, &found, doubt);
    return found;
}

/* Of an object; an index may be meant for a list of which it is the one element, or for members in their order. */
static const struct json *named_child(struct body_view *v, const struct json *j, struct span token, bool index,
                                      enum ambiguity_cause *doubt, struct arena *a)
{
    struct span name;
    if (token_name(token, a, &name) != 0) {
        *doubt = AMBIGUITY_OTHER;
        return NULL;
    }
    const struct json *at = member_of(v, j, name, doubt, a);
    if (at == NULL && index && *doubt == AMBIGUITY_NONE)
        *doubt = AMBIGUITY_VALUE;
    return at;
}

const struct json *body_json_child(struct body_view *v, const struct json *j, struct span token,
                                   enum ambiguity_cause *doubt, struct arena *a)
{
    const struct json *at = j->child;
    uint64_t n = 0;
    bool index = span_u64(token, JSON_NODES_MAX, &n) == 0;
    if (j->type == JSON_OBJECT)
        return named_child(v, j, token, index, doubt, a);
    if (j->type != JSON_ARRAY && j->type != JSON_NULL)
        *doubt = AMBIGUITY_VALUE;
    else if (!index && at != NULL)
        *doubt = AMBIGUITY_BATCH;
    if (j->type != JSON_ARRAY || !index)
        return NULL;
    for (; at && n; n--)
        at = at->next;
    return at;
}

const struct json *body_json_below(struct body_view *v, const struct json *j, struct span pointer,
                                   enum ambiguity_cause *doubt, struct arena *a)
{
    struct span token;
    bool more = pointer.n > 0;
    pointer = span_from(pointer, 1);
    while (more && j) {
        more = span_cut(pointer, '/', &token, &pointer);
        j = body_json_child(v, j, token, doubt, a);
    }
    return j;
}

static const struct json *json_at(struct body_view *v, struct span pointer, enum ambiguity_cause *doubt,
                                  struct arena *a)
{
    return body_json_below(v, v->json, pointer, doubt, a);
}

/* The other spellings of a text: those of a long one are not looked for again for each rule. */
struct json_spelt {
    const struct json *node;
    struct json_spelt *next;
    struct spellings other;
};

/* NULL: no memory. */
static const struct spellings *json_spellings(struct body_view *v, const struct json *j, struct span text,
                                              struct arena *a)
{
    struct json_spelt *s = v->spelt;
    while (s && s->node != j)
        s = s->next;
    if (s == NULL && (s = arena_alloc(a, sizeof(*s))) != NULL) {
        *s = (struct json_spelt){.node = j, .next = v->spelt};
        spellings_of(text, SPAN_NONE, a, &s->other);
        v->spelt = s;
    }
    return s ? &s->other : NULL;
}

/* Some servers read such a text as JSON where they take a list or an object, each by rules of its own. */
static bool may_be_json(const struct json *j)
{
    struct span s = j->type == JSON_STRING ? j->text : SPAN_NONE;
    while (s.n > 0 && s.p[0] <= ' ')
        s = span_from(s, 1);
    while (s.n > 0 && s.p[s.n - 1] <= ' ')
        s.n--;
    return s.n > 1 && ((s.p[0] == '[' && s.p[s.n - 1] == ']') || (s.p[0] == '{' && s.p[s.n - 1] == '}'));
}

enum fit body_json_value_fits(struct body_view *v, const struct json *j, const struct body_question *q,
                              struct arena *a)
{
    const struct img_cond *c = q->c;
    if (cond_asks_presence(q))
        return cond_presence_fits(q, j != NULL,
                                  j && (j->type == JSON_NULL || (j->type == JSON_STRING && j->text.n == 0)));
    if (j == NULL)
        return FIT_NO;
    struct span text = j->type == JSON_BOOL   ? (j->truth ? SPAN("true") : SPAN("false"))
                       : j->type == JSON_NULL ? SPAN("null")
                                              : j->text;
    bool plain = j->type != JSON_ARRAY && j->type != JSON_OBJECT, boolean = !q->strictly && cond_asks_boolean(q);
    int64_t n;
    if (j->type == JSON_NULL && boolean)
        return cond_any_spelling(q, SPAN("false"), a) ? FIT_MAYBE : FIT_NO;
    if (c->op != COND_TEXT)
        plain = j->type == JSON_NUMBER;
    else if (q->strictly && j->type == JSON_STRING && (span_eq(text, SPAN("false")) || span_eq(text, SPAN("null"))))
        plain = false; /* quoted, it is true to many */
    else if (j->type == JSON_NUMBER && !q->strictly)
        plain = cond_whole_number(text, &n); /* 5.0 and 5e0 are 5 to many */
    if (j->type == JSON_STRING && span_index(text, 0) < text.n)
        plain = false; /* to a C program it ends there */
    bool others = plain && !q->strictly && c->op == COND_TEXT;
    struct value is = {text, plain, others ? json_spellings(v, j, text, a) : NULL};
    enum fit fit = cond_value_fits(q, &is, a);
    if (fit == FIT_NO && !q->strictly && may_be_json(j))
        return FIT_MAYBE;
    /* 0 is true in Ruby, and "false" wherever any text is. */
    return fit == FIT_NO && boolean && j->type != JSON_BOOL ? FIT_MAYBE : fit;
}

enum fit body_json_fits(struct body_view *v, const struct body_question *q, struct arena *a)
{
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    const struct json *j = json_at(v, img_span(q->p, q->c->key), &doubt, a);
    return doubt != AMBIGUITY_NONE ? FIT_MAYBE : body_json_value_fits(v, j, q, a);
}

enum ambiguity_cause body_json_doubt(struct body_view *v, struct span key, struct arena *a)
{
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    const struct json *j = json_at(v, key, &doubt, a);
    if (doubt != AMBIGUITY_NONE)
        return doubt;
    return j && j->type == JSON_NUMBER ? AMBIGUITY_NUMBER : AMBIGUITY_VALUE;
}

struct span body_json_digits(struct body_view *v, struct span key, struct arena *a)
{
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    const struct json *j = json_at(v, key, &doubt, a);
    return j && j->type == JSON_NUMBER && doubt == AMBIGUITY_NONE ? j->text : SPAN_NONE;
}

/* The member that the pointer begins with. */
int body_json_param(struct span key, struct arena *a, struct span *name)
{
    struct span token = span_from(key, 1);
    *name = SPAN_NONE;
    return key.n < 2 ? 0 : token_name(span_first(token, span_index(token, '/')), a, name);
}

/* With its type: "5" is no 5 to the judge, and null is not nothing. */
struct body_shown body_json_shown(const struct json *j)
{
    switch (j ? j->type : JSON_BAD) {
    case JSON_BAD: break;
    case JSON_NULL: return (struct body_shown){.before = "null"};
    case JSON_BOOL: return (struct body_shown){.before = j->truth ? "true" : "false"};
    case JSON_ARRAY: return (struct body_shown){.before = j->child ? "a list" : "an empty list"};
    case JSON_OBJECT: return (struct body_shown){.before = j->child ? "an object" : "an empty object"};
    case JSON_NUMBER: return (struct body_shown){"the number ", j->text, ""};
    case JSON_STRING: return (struct body_shown){"the string \"", j->text, "\""};
    }
    return (struct body_shown){.before = "not there"};
}

struct body_shown body_json_show(struct body_view *v, const struct body_question *q, struct arena *a)
{
    (void)a;
    return body_json_shown(json_pointer(v->json, img_span(q->p, q->c->key)));
}
