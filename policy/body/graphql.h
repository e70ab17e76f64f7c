/* GraphQL: executable documents (specification of October 2021, with "\u{...}" of its successor) and what their
 * operations select at their top. What is not read by every server in the same way is malformed. Pure; spans point
 * into the text or the arena. */
#ifndef POLICY_BODY_GRAPHQL_H
#define POLICY_BODY_GRAPHQL_H

#include "policy/body/body.h"

enum {
    GRAPHQL_TOKENS_MAX = 20000, /* these are of a whole request, which may be a batch */
    GRAPHQL_ALIASES_MAX = 500,
    GRAPHQL_OPERATIONS_MAX = 50,
    GRAPHQL_ROOTS_MAX = 500,       /* fields at the top of its operations, fragments put in */
    GRAPHQL_DEPTH_MAX = 64,        /* selections, lists and objects that nest */
    GRAPHQL_DEFINITIONS_MAX = 250, /* operations and fragments of one document */
    GRAPHQL_MEMBERS_MAX = 500      /* of one object, and arguments of one field */
};

/* ---- tokens (graphql_lex.c) ---- */

/* A punctuator is its own character. */
enum graphql_kind {
    GRAPHQL_BAD = 0,
    GRAPHQL_END,
    GRAPHQL_NAME,
    GRAPHQL_INT,
    GRAPHQL_FLOAT,
    GRAPHQL_STRING,
    GRAPHQL_BLOCK,
    GRAPHQL_SPREAD
};
struct graphql_lexer {
    const uint8_t *at, *end;
    uint8_t kind;     /* of the token that stands there */
    struct span text; /* of a name, a number, a string between its quotes; else any */
};
/* text: UTF-8, with a zero byte behind its end. The first token is read with the next call. */
void graphql_lex(struct graphql_lexer *x, struct span text);
void graphql_next(struct graphql_lexer *x);
/* What the string that stands there says. -1: no memory, or half of a surrogate pair. */
int graphql_string(const struct graphql_lexer *x, struct arena *a, struct span *out) MUSTCHECK;

/* ---- documents (graphql_parse.c) ---- */

enum graphql_type { GRAPHQL_FRAGMENT = 0, GRAPHQL_QUERY, GRAPHQL_MUTATION, GRAPHQL_SUBSCRIPTION };

/* Values are as those of JSON, an enum value as a text; one of type JSON_BAD is the variable of the name `text`. */
struct graphql_definition {
    enum graphql_type type;
    struct span name; /* empty: an operation without */
    struct graphql_variable {
        struct span name;
        const struct json *usual; /* its default, or NULL */
        struct graphql_variable *next;
    } * variables;
    struct graphql_selection {
        bool top;                            /* else only spreads are kept */
        struct span name;                    /* of the field, whatever its alias is; or of the fragment */
        const struct json *arguments;        /* an object; NULL: none */
        struct graphql_definition *fragment; /* NULL: it is a field */
        struct graphql_selection *next;
    } * selections;
    uint32_t mark;
    struct graphql_definition *next;
};

/* What is left of the bounds of a request. */
struct graphql_budget {
    int tokens, aliases; /* never below 0 */
};

/* text: UTF-8, with a zero byte behind its end. The definitions of a document, or NULL: malformed, with fragments
 * that are not there, name themselves or stand twice, or over a bound (*why). */
struct graphql_definition *graphql_parse(struct span text, struct graphql_budget *left, struct arena *a,
                                         enum ambiguity_cause *why) MUSTCHECK;

/* ---- requests (graphql.c) ---- */

struct graphql_operation {
    const struct graphql_definition *of;
    const struct json *values; /* of its variables, an object or NULL */
};
struct graphql_root {
    size_t in; /* of the operations */
    const struct graphql_selection *field;
};
/* Of all requests of a batch, all operations of their documents: which of them runs the name beside them says, and
 * there are servers that ask another place for it, or do not ask. */
struct graphql {
    struct graphql_operation *operation;
    struct graphql_root *root;
    struct span *stored; /* names of documents that the server has */
    size_t noperations, nroots, nstored;
};

#endif
