/* A compiled schema: a node for each schema in it, with a rule for each keyword of that schema which says something.
 * The rules of a node stand in the order of the table below, which is that in which they are tried. */
#ifndef COMMON_SCHEMA_SCHEMA_IN_H
#define COMMON_SCHEMA_SCHEMA_IN_H

#include "common/json/json.h"
#include "common/schema/decimal.h"
#include "common/schema/pattern.h"
#include "common/schema/schema.h"

struct run;
struct node;
struct rule;

/* How the value of a keyword is read (arguments.c). */
enum argument {
    ARG_ANY = 0, /* a value as it is */
    ARG_VALUES,
    ARG_TYPES,
    ARG_NUMBER,
    ARG_DIVISOR,
    ARG_COUNT,
    ARG_BOOL,
    ARG_PATTERN,
    ARG_FORMAT,
    ARG_NAMES,
    ARG_NAMES_OF, /* an object of lists of names */
    ARG_SCHEMA,
    ARG_SCHEMAS,
    ARG_SCHEMA_OF,  /* an object of schemas */
    ARG_PATTERN_OF, /* the same, whose names are patterns */
    ARG_REF,
    ARG_ANCHOR,
    ARG_ID,
    ARG_DIALECT,
    ARG_KINDS
};

/* NEWER: not of draft-07. SAME: what it has is held against the same value, so that a circle of these never ends.
 *
 * Name, keyword, how its value is read, which of these it is, and the function that checks (NULL: it only says what
 * others do). */
enum { NEWER = 1, SAME = 2 };
#define KEYWORDS(X)                                                                                                  \
    X(DIALECT, "$schema", ARG_DIALECT, 0, NULL)                                                                      \
    X(ID, "$id", ARG_ID, 0, NULL)                                                                                    \
    X(ANCHOR, "$anchor", ARG_ANCHOR, NEWER, NULL)                                                                    \
    X(DEFS, "$defs", ARG_SCHEMA_OF, 0, NULL)                                                                         \
    X(DEFINITIONS, "definitions", ARG_SCHEMA_OF, 0, NULL)                                                            \
    X(TYPE, "type", ARG_TYPES, 0, check_type)                                                                        \
    X(CONST, "const", ARG_ANY, 0, check_const)                                                                       \
    X(ENUM, "enum", ARG_VALUES, 0, check_enum)                                                                       \
    X(MINIMUM, "minimum", ARG_NUMBER, 0, check_minimum)                                                              \
    X(MAXIMUM, "maximum", ARG_NUMBER, 0, check_maximum)                                                              \
    X(ABOVE, "exclusiveMinimum", ARG_NUMBER, 0, check_above)                                                         \
    X(UNDER, "exclusiveMaximum", ARG_NUMBER, 0, check_under)                                                         \
    X(MULTIPLE, "multipleOf", ARG_DIVISOR, 0, check_multiple)                                                        \
    X(MIN_LENGTH, "minLength", ARG_COUNT, 0, check_min_length)                                                       \
    X(MAX_LENGTH, "maxLength", ARG_COUNT, 0, check_max_length)                                                       \
    X(FORMAT, "format", ARG_FORMAT, 0, check_format)                                                                 \
    X(PATTERN, "pattern", ARG_PATTERN, 0, check_pattern)                                                             \
    X(MIN_PROPERTIES, "minProperties", ARG_COUNT, 0, check_min_properties)                                           \
    X(MAX_PROPERTIES, "maxProperties", ARG_COUNT, 0, check_max_properties)                                           \
    X(REQUIRED, "required", ARG_NAMES, 0, check_required)                                                            \
    X(DEPENDENT_REQUIRED, "dependentRequired", ARG_NAMES_OF, NEWER, check_dependent_required)                        \
    X(PROPERTY_NAMES, "propertyNames", ARG_SCHEMA, 0, check_property_names)                                          \
    X(MIN_ITEMS, "minItems", ARG_COUNT, 0, check_min_items)                                                          \
    X(MAX_ITEMS, "maxItems", ARG_COUNT, 0, check_max_items)                                                          \
    X(UNIQUE, "uniqueItems", ARG_BOOL, 0, check_unique)                                                              \
    X(PROPERTIES, "properties", ARG_SCHEMA_OF, 0, check_properties)                                                  \
    X(PATTERN_PROPERTIES, "patternProperties", ARG_PATTERN_OF, 0, check_pattern_properties)                          \
    X(ADDITIONAL, "additionalProperties", ARG_SCHEMA, 0, check_additional)                                           \
    X(PREFIX_ITEMS, "prefixItems", ARG_SCHEMAS, NEWER, check_prefix_items)                                           \
    X(ITEMS, "items", ARG_SCHEMA, 0, check_items)                                                                    \
    X(MIN_CONTAINS, "minContains", ARG_COUNT, NEWER, NULL)                                                           \
    X(MAX_CONTAINS, "maxContains", ARG_COUNT, NEWER, NULL)                                                           \
    X(CONTAINS, "contains", ARG_SCHEMA, 0, check_contains)                                                           \
    X(REF, "$ref", ARG_REF, SAME, check_ref)                                                                         \
    X(ALL_OF, "allOf", ARG_SCHEMAS, SAME, check_all_of)                                                              \
    X(ANY_OF, "anyOf", ARG_SCHEMAS, SAME, check_any_of)                                                              \
    X(ONE_OF, "oneOf", ARG_SCHEMAS, SAME, check_one_of)                                                              \
    X(NOT, "not", ARG_SCHEMA, SAME, check_not)                                                                       \
    X(THEN, "then", ARG_SCHEMA, SAME, NULL)                                                                          \
    X(ELSE, "else", ARG_SCHEMA, SAME, NULL)                                                                          \
    X(IF, "if", ARG_SCHEMA, SAME, check_if)                                                                          \
    X(DEPENDENT_SCHEMAS, "dependentSchemas", ARG_SCHEMA_OF, NEWER | SAME, check_dependent_schemas)                   \
    X(UNEVALUATED_ITEMS, "unevaluatedItems", ARG_SCHEMA, NEWER, check_unevaluated)                                   \
    X(UNEVALUATED, "unevaluatedProperties", ARG_SCHEMA, NEWER, check_unevaluated)

enum keyword_id {
#define X(id, name, argument, flags, check) KW_##id,
    KEYWORDS(X)
#undef X
        KW_COUNT
};

/* Does the value fit? Of a kind that the keyword says nothing about: true. */
typedef bool keyword_check(struct run *r, const struct node *n, const struct rule *rule, const struct json *j);

struct keyword {
    const char *name;
    enum argument argument;
    unsigned flags;
    keyword_check *check;
};
extern const struct keyword schema_keywords[KW_COUNT];

/* A schema inside a rule, and the name it has there. */
struct branch {
    const struct json *at; /* at->key: its name, if the rule has names */
    struct node *node;
    const struct pattern *pattern; /* of the name */
};

struct rule {
    const struct keyword *word;
    const struct json *value;
    struct rule *next;
    uint64_t count; /* ARG_COUNT; ARG_TYPES: a bit for each; ARG_BOOL; ARG_FORMAT: which */
    struct decimal number;
    struct divisor divisor;
    const struct pattern *pattern;
    struct branch *branch;
    size_t nbranch;
};

enum { TYPE_INTEGER = 16 }; /* among the bits of types, which otherwise are those of enum json_type */

enum node_kind { NODE_NEVER = 0, NODE_ALWAYS, NODE_RULES };

struct node {
    enum node_kind kind;
    const struct json *at;
    struct rule *rules;
    struct node *next; /* in the order of the text */
    bool open;         /* while circles are looked for */
    unsigned chain;    /* how many nodes one value may be held against in a row, from here; 0: not known yet */
};

enum {
    SCHEMA_CHAIN_MAX = 64,
    SCHEMA_ARENA = 32 * 1024 * 1024,
    SCHEMA_PATTERNS_MAX = 64 * 1024 /* instructions of all patterns */
};

struct schema {
    struct arena arena;
    struct node *top, *last;
    size_t nodes;
    size_t largest; /* instructions of the largest pattern */
    bool tracks;    /* some keyword asks what others have looked at */
};

/* The rule of one keyword, or NULL. */
const struct rule *schema_rule(const struct node *n, enum keyword_id id);
/* /a~1b behind a pointer of `cap` bytes with its NUL, *n of which are used; false: it does not fit whole. */
bool schema_pointer_add(char *to, size_t cap, size_t *n, struct span token) MUSTCHECK;
/* The first number of the tree that is too large to be compared exactly, or NULL. */
const struct json *schema_number_past(const struct json *j);

/* --- while it is compiled: compile.c, arguments.c, refs.c --- */

struct compile {
    struct schema *s;
    struct schema_fault *fault;
    const struct json *top;
    unsigned options;
    bool old;        /* it says that it is draft-07 */
    size_t patterns; /* instructions so far */
};

/* Where in the text `at` stands, and words; -1 for `return`. keyword: may be NULL. */
int compile_refuse(struct compile *c, const struct json *at, const char *keyword, const char *why) MUSTCHECK;
/* The schema that stands there, with all inside it; NULL after compile_refuse. */
struct node *compile_schema(struct compile *c, const struct json *at) MUSTCHECK;
/* The value of a rule whose word and value are set. */
int compile_argument(struct compile *c, struct rule *r) MUSTCHECK;
/* Every $ref is led to its schema; circles are refused. */
int compile_refs(struct compile *c) MUSTCHECK;

#endif
