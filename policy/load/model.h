/* What the tables decode into: the policy as written, every value with its
 * place. Lives in the loader's arena. */
#ifndef POLICY_LOAD_MODEL_H
#define POLICY_LOAD_MODEL_H

#include "policy/image.h"
#include "policy/load/keys.h"

struct m_scope {
    const struct node *at;
    struct item name;
    struct items sandboxes;
    struct list labels; /* struct pair */
};

struct m_place {
    const struct node *at;
    struct item host, path;
    struct number port, scheme;
};

struct m_credential {
    const struct node *at;
    struct item name;
    struct m_source {
        const struct node *at;
        struct item file, env, store;
    } source;
    struct m_inject {
        const struct node *at;
        struct item header, format, user;
        bool basic;
    } inject;
    struct list only; /* m_place */
};

struct m_upstream {
    const struct node *at;
    struct item host, address, ca;
    struct number port, cleartext;
    struct items allow_private;
};

struct m_approver {
    const struct node *at;
    struct item name;
    struct items operators;
};

struct m_git {
    const struct node *at;
    struct items refs;
    struct number force, delete, service;
};

struct m_match {
    const struct node *at;
    struct items hosts, ports, methods, paths, ops, resources;
    struct number schemes, effects;
    struct list query, header; /* struct pair */
    struct m_git git;
    struct items derived; /* hosts that the resource or operation implies; at is set when they are used */
    bool except;
};

struct m_rule {
    const struct node *at;
    struct item id, use, say, instead;
    struct items scope;
    struct m_match match;
    struct list except; /* m_match */
    struct number decide;
    struct m_approve {
        const struct node *at;
        struct item by;
        struct number within, reason, inline_wait;
    } approve;
    bool floor;
};

struct m_packuse {
    const struct node *at;
    struct item name;
    struct items hosts; /* with ports */
};

struct m_file {
    const struct node *at;
    struct number version;
    struct item name;
    struct list packs; /* m_packuse */
    struct m_defaults {
        const struct node *at;
        struct number any;
    } defaults;
    struct list scopes, credentials, upstreams, approvers, rules;
};

/* A pack file. */
struct m_op {
    const struct node *at;
    struct item op, path, query, content_type, resource, strip, summary, about;
    struct items methods;
    struct number effect, dialect, body, body_max;
    struct m_could {
        const struct node *at;
        struct item op, method, path;
    } could;
};
struct m_resource {
    const struct node *at;
    struct item host, resource;
};
struct m_pack {
    const struct node *at;
    struct item pack, about;
    struct items hosts;
    struct list resources, ops;
    struct number encoded_slash;
    const struct m_packuse *use;
};

extern const struct table file_table, floors_table, pack_table;

/* Everything of all files, in one place. */
struct model {
    struct item name;
    struct m_scope **scopes;
    struct m_credential **credentials;
    struct m_upstream **upstreams;
    struct m_approver **approvers;
    struct m_rule **rules; /* by id */
    struct m_pack **packs; /* by name */
    size_t nscopes, ncredentials, nupstreams, napprovers, nrules, npacks;
};

/* Each reports its problems; l->failed says whether any refuses. */
struct m_file *read_file(struct loader *l, const struct policy_file *f);
void gather(struct loader *l, struct m_file *const *files, size_t n, struct model *m);
void read_packs(struct loader *l, struct m_file *const *files, size_t n, struct model *m);
void check_model(struct loader *l, struct model *m);
void warn_model(struct loader *l, const struct model *m);
int emit_image(struct loader *l, const struct model *m, struct dynbuf *out) MUSTCHECK;

/* Index by name, or -1. */
int find_scope(const struct model *m, struct span name);
int find_credential(const struct model *m, struct span name);
int find_approver(const struct model *m, struct span name);

#endif
