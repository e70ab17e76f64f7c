/* What a rule asks of a body. */
#ifndef POLICY_LOAD_READ_GRAMMAR_BODY_H
#define POLICY_LOAD_READ_GRAMMAR_BODY_H

#include "policy/load/read/keys.h"

/* Whole numbers that every implementation of JSON keeps exactly. */
#define COND_NUMBER_MAX (UINT64_C(1) << 53)

/* One condition on a body: of a JSON pointer, of a form's field, or of a part's file name or type. */
struct m_cond {
    const struct node *at;
    struct item pointer, field, file, content_type;
    struct items equals, in, glob;
    struct number at_most, at_least, exists, absent;
};

/* What an operation of GraphQL is and asks for; arguments: their pointers begin with a field. */
struct m_graphql {
    const struct node *at;
    struct items types, operations, fields, persisted;
    struct list arguments; /* m_cond */
};

/* What messages of JSON-RPC ask for: of jsonrpc: params, of mcp: tools and their arguments. */
struct m_jsonrpc {
    const struct node *at;
    struct items methods, tools;
    struct list params, arguments; /* m_cond */
};

#endif
