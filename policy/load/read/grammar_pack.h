/* A pack file as written (conf/packs). */
#ifndef POLICY_LOAD_READ_GRAMMAR_PACK_H
#define POLICY_LOAD_READ_GRAMMAR_PACK_H

#include "policy/load/read/grammar.h"

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

extern const struct table pack_table;

#endif
