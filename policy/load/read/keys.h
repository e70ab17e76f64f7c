/* A mapping's keys as rows of one table: name, type, where the value goes, help.
 * The loader decodes by it and the JSON schema is printed from it. A key that
 * the grammar knows but nothing enforces yet is a row too: it is refused, never
 * loaded and ignored.
 *
 * Every decoded struct begins with `const struct node *at`; one that is a member
 * of a named mapping goes on with `struct item name`. */
#ifndef POLICY_LOAD_READ_KEYS_H
#define POLICY_LOAD_READ_KEYS_H

#include "policy/load/read/yaml.h"

struct item { /* a text and where it stands; at NULL: not given */
    struct span text;
    const struct node *at;
};
struct items {
    const struct node *at;
    struct item *v;
    size_t n;
};
struct list { /* of structs of one type, contiguous */
    const struct node *at;
    void *v;
    size_t n;
};
struct number {
    const struct node *at;
    uint64_t v;
};
struct pair {
    const struct node *at;
    struct item name;
    struct items values;
};

enum key_type {
    KEY_END = 0,
    KEY_TEXT,    /* struct item */
    KEY_PROSE,   /* struct item; may span lines */
    KEY_TEXTS,   /* struct items: one text or a list of them */
    KEY_BOOL,    /* struct number, 0 or 1 */
    KEY_COUNT,   /* struct number, bounds lo..hi */
    KEY_COUNTS,  /* struct items of which each is such a number */
    KEY_RATES,   /* struct items of which each is such a rate: 20/1d */
    KEY_TIME,    /* struct number, ms: 500ms, 30s, 15m, 2h, 7d */
    KEY_INSTANT, /* struct number, Unix ms: 2026-11-23T09:00:00Z */
    KEY_SIZE,    /* struct number, bytes: 512KiB, 64MiB */
    KEY_ONE_OF,  /* struct number: the value of a choice */
    KEY_SOME_OF, /* struct number: the values of choices, or'ed; one or a list */
    KEY_MAP,     /* the struct itself */
    KEY_LIST,    /* struct list of mappings */
    KEY_MAPS,    /* struct list: one mapping or a list of them */
    KEY_NAMED,   /* struct list: a mapping from names to mappings */
    KEY_PAIRS,   /* struct list of struct pair: a mapping from names to texts */
    KEY_CALL,    /* a function reads the node */
    KEY_LATER,   /* refused: "not available yet" */
    KEY_NEVER    /* refused: help says what to do instead */
};
/* KEY_EMPTY: a KEY_TEXTS that may be []; KEY_SINGLE: a KEY_PAIRS whose names have one text each. */
enum { KEY_NEEDED = 1, KEY_EMPTY = 2, KEY_SINGLE = 4 };

struct choice {
    const char *name;
    uint64_t value; /* LATER: refused for now */
};
#define CHOICE_LATER UINT64_MAX

struct table;
typedef void key_fn(struct loader *l, const struct node *n, void *field);

struct key {
    const char *name;
    enum key_type type;
    size_t at;
    unsigned flags;
    const struct table *table;    /* KEY_MAP, KEY_LIST, KEY_NAMED */
    const struct choice *choices; /* KEY_ONE_OF, KEY_SOME_OF; ends with a NULL name */
    key_fn *call;
    uint64_t lo, hi;
    const char *pattern; /* KEY_CALL: a regular expression for the schema, or NULL */
    const char *help;    /* one line, for the schema and the manual */
};

struct table {
    const char *what; /* "a rule", for errors */
    size_t size;
    const struct key *keys;
};

/* Decode a mapping into out (zeroed, table->size bytes). Problems go to l. */
void keys_decode_map(struct loader *l, const struct node *n, const struct table *t, void *out);
/* A text that YAML 1.1 takes for nothing else; false after a problem. */
bool keys_decode_text(struct loader *l, const struct node *n, struct item *out);

#endif
