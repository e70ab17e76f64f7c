/* One YAML document as a tree, read from libyaml's events, with everything
 * refused that makes YAML mean more than it shows: anchors, aliases, merge keys,
 * tags, directives, a second document, duplicate keys, tabs, odd encodings.
 * Limits: POLICY_FILE_MAX bytes, POLICY_DEPTH_MAX levels, NODES_MAX nodes. */
#ifndef POLICY_LOAD_READ_YAML_H
#define POLICY_LOAD_READ_YAML_H

#include "common/arena.h"
#include "policy/load/load.h"

enum { NODES_MAX = 1000 * 1000 };

enum node_kind { NODE_TEXT = 1, NODE_LIST, NODE_MAP };

struct node {
    enum node_kind kind;
    bool plain;  /* text without quotes */
    bool broken; /* of a mapping: something in it was refused when it was read */
    uint32_t line, col;
    const char *file;
    struct span text;
    const struct node *key; /* of a member of a map */
    struct node *child, *next;
    size_t count;
};

/* What one load carries around. Problems end in problems and, the first error, in *e. */
struct loader {
    struct arena a;
    struct policy_problems *problems;
    struct err *e;
    bool failed, told;
    size_t refused;   /* how many problems that refuse there were, kept or not */
    const char *file; /* being read */
    policy_fetch_fn *fetch;
    void *fetch_arg;
    uint64_t now_ms;
    size_t compared; /* names of rules with names of others (warn_covers.c) */
};

/* at: where (NULL: the file as a whole). code "P0xx" refuses, "P1xx" warns. */
void load_problem(struct loader *l, const struct node *at, const char *code, const char *fmt, ...) PRINTF(4, 5);
/* Would one more be kept? If not, nobody needs to look for it, or for better words. */
bool load_problem_kept(const struct loader *l, bool refuses);
/* The root, or NULL after a problem. */
struct node *yaml_tree(struct loader *l, const char *file, struct span text) MUSTCHECK;

#endif
