/* The grammar as JSON Schema (2020-12), for editors: printed from the very tables the loader decodes by, so the two
 * cannot drift apart. It says what a file may look like; what it may mean only `policy check` knows. */
#include <stdio.h>

#include "common/json/json.h"
#include "cli/policy/loaded.h"
#include "policy/test/test_file.h"
#include "policy/load/read/model.h"

enum { SCHEMA_MAX = 1024 * 1024, TABLES_MAX = 64, NAME_ROOM = 64 };

struct schema {
    struct jsonw w;
    const struct table *table[TABLES_MAX]; /* to be written below $defs, once each */
    size_t n;
};

/* A table's place below $defs: its words, of letters alone. */
static void def_name(const struct table *t, char out[NAME_ROOM])
{
    size_t n = 0;
    for (const char *p = t->what; *p && n + 1 < NAME_ROOM; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || *p == '_';
        if (letter)
            out[n++] = *p;
        else if (n > 0 && out[n - 1] != '-')
            out[n++] = '-';
    }
    while (n > 0 && out[n - 1] == '-')
        n--;
    out[n] = '\0';
}

static void ref(struct schema *s, const struct table *t)
{
    char name[NAME_ROOM], path[NAME_ROOM + 16];
    size_t i = 0;
    while (i < s->n && s->table[i] != t)
        i++;
    if (i == s->n && s->n < TABLES_MAX)
        s->table[s->n++] = t;
    def_name(t, name);
    snprintf(path, sizeof(path), "#/$defs/%s", name);
    jsonw_kv(&s->w, "$ref", span_str(path));
}

static void type(struct schema *s, const char *name)
{
    jsonw_kv(&s->w, "type", span_str(name));
}

static void pattern(struct schema *s, const char *text)
{
    type(s, "string");
    jsonw_kv(&s->w, "pattern", span_str(text));
}

static void begin(struct schema *s, const char *key)
{
    if (key)
        jsonw_kv_object(&s->w, key);
    else
        jsonw_object(&s->w);
}

static void end(struct schema *s)
{
    jsonw_end_object(&s->w);
}

static void words(struct schema *s, const struct choice *c)
{
    jsonw_kv_array(&s->w, "enum");
    for (; c->name; c++)
        if (c->value != CHOICE_LATER)
            jsonw_string(&s->w, span_str(c->name));
    jsonw_end_array(&s->w);
}

static void number(struct schema *s, const struct key *k)
{
    type(s, "integer");
    jsonw_kv_u64(&s->w, "minimum", k->lo);
    if (k->hi <= INT64_MAX)
        jsonw_kv_u64(&s->w, "maximum", k->hi);
}

static void one(struct schema *s, const struct key *k)
{
    switch (k->type) {
    case KEY_COUNTS: number(s, k); break;
    case KEY_SOME_OF: words(s, k->choices); break;
    case KEY_RATES: pattern(s, "^[0-9]+/[0-9]+(ms|s|m|h|d)$"); break;
    default: type(s, "string");
    }
}

/* One value, or a list of at least one. */
static void one_or_many(struct schema *s, const struct key *k)
{
    jsonw_kv_array(&s->w, "anyOf");
    begin(s, NULL);
    one(s, k);
    end(s);
    begin(s, NULL);
    type(s, "array");
    jsonw_kv_u64(&s->w, "minItems", !(k->flags & KEY_EMPTY));
    begin(s, "items");
    one(s, k);
    end(s);
    end(s);
    jsonw_end_array(&s->w);
}

static void maps(struct schema *s, const struct key *k, bool one_too)
{
    if (one_too) {
        jsonw_kv_array(&s->w, "anyOf");
        begin(s, NULL);
        ref(s, k->table);
        end(s);
        begin(s, NULL);
    }
    type(s, "array");
    if (one_too)
        jsonw_kv_u64(&s->w, "minItems", 1);
    begin(s, "items");
    ref(s, k->table);
    end(s);
    if (one_too) {
        end(s);
        jsonw_end_array(&s->w);
    }
}

static void mapping(struct schema *s, const struct key *k)
{
    type(s, "object");
    begin(s, "additionalProperties");
    if (k->type == KEY_NAMED)
        ref(s, k->table);
    else if (k->flags & KEY_SINGLE)
        one(s, k);
    else
        one_or_many(s, k);
    end(s);
}

static void value(struct schema *s, const struct key *k)
{
    switch (k->type) {
    case KEY_TEXT:
    case KEY_PROSE: type(s, "string"); break;
    case KEY_TEXTS:
    case KEY_COUNTS:
    case KEY_RATES:
    case KEY_SOME_OF: one_or_many(s, k); break;
    case KEY_BOOL: type(s, "boolean"); break;
    case KEY_COUNT: number(s, k); break;
    case KEY_TIME: pattern(s, "^[0-9]+(ms|s|m|h|d)$"); break;
    case KEY_INSTANT: pattern(s, "^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(Z|[+-][0-9]{2}:[0-9]{2})$"); break;
    case KEY_SIZE: pattern(s, "^[0-9]+(KiB|MiB|GiB)$"); break;
    case KEY_ONE_OF: words(s, k->choices); break;
    case KEY_MAP: ref(s, k->table); break;
    case KEY_LIST:
    case KEY_MAPS: maps(s, k, k->type == KEY_MAPS); break;
    case KEY_NAMED:
    case KEY_PAIRS: mapping(s, k); break;
    case KEY_NEVER:
    case KEY_LATER: jsonw_key(&s->w, "not"), jsonw_object(&s->w), jsonw_end_object(&s->w); break;
    case KEY_CALL: /* more than one shape: the loader's own function knows them */
        if (k->pattern)
            pattern(s, k->pattern);
        break;
    case KEY_END: break;
    }
}

/* The keys of a table as an object's properties, into the object that is open. */
static void properties(struct schema *s, const struct table *t)
{
    bool needed = false;
    type(s, "object");
    jsonw_kv_bool(&s->w, "additionalProperties", false);
    begin(s, "properties");
    for (const struct key *k = t->keys; k->name; k++) {
        begin(s, k->name);
        jsonw_kv(&s->w, "description", span_str(k->type == KEY_LATER ? "not available yet" : k->help));
        value(s, k);
        end(s);
        needed |= (k->flags & KEY_NEEDED) != 0;
    }
    end(s);
    if (!needed)
        return;
    jsonw_kv_array(&s->w, "required");
    for (const struct key *k = t->keys; k->name; k++)
        if (k->flags & KEY_NEEDED)
            jsonw_string(&s->w, span_str(k->name));
    jsonw_end_array(&s->w);
}

static void print(const struct table *t, const char *title, struct dynbuf *out)
{
    struct schema s = {.n = 0};
    char name[NAME_ROOM];
    jsonw_begin(&s.w, out);
    begin(&s, NULL);
    jsonw_kv(&s.w, "$schema", SPAN("https://json-schema.org/draft/2020-12/schema"));
    jsonw_kv(&s.w, "title", span_str(title));
    properties(&s, t);
    begin(&s, "$defs");
    for (size_t i = 0; i < s.n; i++) { /* which adds to it as it goes */
        def_name(s.table[i], name);
        begin(&s, name);
        properties(&s, s.table[i]);
        end(&s);
    }
    end(&s);
    end(&s);
}

int policy_schema(const struct cli_call *c)
{
    static const struct {
        const char *name, *title;
        const struct table *table;
    } kinds[] = {{"policy", "A Countersign policy", &file_table},
                 {"floors", "Countersign floors", &floors_table},
                 {"pack", "A Countersign pack", &pack_table},
                 {"test", "Tests of a Countersign policy", &test_file_table}};
    const char *want = c->nwords ? c->word[0] : "policy";
    size_t k = 0, known = sizeof(kinds) / sizeof(kinds[0]);
    struct dynbuf out;
    while (k < known && strcmp(kinds[k].name, want) != 0)
        k++;
    if (k == known)
        return verb_fail(CLI_USAGE,
                         "policy schema: of a policy, floors, a pack or a file of tests: policy, floors, pack, test");
    dynbuf_init(&out, SCHEMA_MAX);
    print(kinds[k].table, kinds[k].title, &out);
    bool fits = dynbuf_ok(&out);
    if (fits)
        printf("%.*s\n", SPAN_FMT(dynbuf_span(&out)));
    dynbuf_free(&out);
    return fits ? CLI_OK : CLI_RUNTIME;
}
