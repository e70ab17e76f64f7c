/* What the tables decode into: the policy as written, every value with its
 * place. Lives in the loader's arena. Each key is a row of tables.c. */
#ifndef POLICY_LOAD_READ_GRAMMAR_H
#define POLICY_LOAD_READ_GRAMMAR_H

#include "policy/load/read/grammar_limits.h"
#include "policy/load/read/grammar_match.h"
#include "policy/load/read/grammar_terms.h"

struct m_scope {
    const struct node *at;
    struct item name;
    struct items sandboxes, regions;
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
        struct number certificate;
        bool basic;
    } inject;
    struct list only; /* m_place */
};

struct m_upstream {
    const struct node *at;
    struct item host, address, ca, region;
    struct number port, cleartext;
    struct items allow_private;
    struct m_tls {
        const struct node *at;
        struct item ca;
        struct items pins, crls;
        struct number min;
    } tls;
};

struct m_approver {
    const struct node *at;
    struct item name;
    struct items operators;
};

struct m_rule {
    const struct node *at;
    struct item id, use, say, instead, over;
    struct items scope;
    struct m_match match;
    struct list except; /* m_match */
    struct number decide;
    struct m_approve {
        const struct node *at;
        struct item by;
        struct number within, reason, inline_wait;
    } approve;
    struct m_messages messages;
    struct list when; /* m_window */
    struct m_limits limits;
    bool floor, taken; /* taken: some over: names it, which does not ask its match: */
};

struct m_packuse {
    const struct node *at;
    struct item name;
    struct items hosts; /* with ports */
};

struct m_file {
    const struct node *at;
    struct number version, learning; /* learning: Unix ms it ends */
    struct item name;
    struct items include;
    struct number require_signed;
    struct list packs; /* m_packuse */
    struct m_defaults {
        const struct node *at;
        struct number any;
    } defaults;
    struct list scopes, credentials, upstreams, approvers, rules;
};

extern const struct table file_table, floors_table;

#endif
