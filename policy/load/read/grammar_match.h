/* What a rule is about, and what may follow a WebSocket upgrade, as written; the rest is grammar.h. */
#ifndef POLICY_LOAD_READ_GRAMMAR_MATCH_H
#define POLICY_LOAD_READ_GRAMMAR_MATCH_H

#include "policy/load/read/keys.h"

struct m_git {
    const struct node *at;
    struct items refs;
    struct number force, delete, service;
};

struct m_ws {
    const struct node *at;
    struct items subprotocols;
};

struct m_messages {
    const struct node *at;
    struct number send, max, total, within;
};

/* One condition on a body: of a JSON pointer or of a form's field. */
struct m_cond {
    const struct node *at;
    struct item pointer, field;
    struct items equals, in, glob;
    struct number at_most, at_least, exists, absent;
};

struct m_match {
    const struct node *at;
    struct items hosts, ports, methods, paths, ops, resources;
    struct number schemes, effects;
    struct list query, header; /* struct pair */
    struct items query_names;
    struct items written; /* each of paths, where one has {name}; paths has * there */
    struct m_git git;
    struct m_ws ws;
    struct list json, form; /* m_cond */
    struct items derived;   /* hosts that the resource or operation implies; at is set when they are used */
    uint64_t can;           /* effects it can have, as far as effect:, op: and method: tell; 0: any. warn_never.c */
    bool except;
};

/* Whole numbers that every implementation of JSON keeps exactly. */
#define COND_NUMBER_MAX (UINT64_C(1) << 53)

/* messages: what it does not say. The most that one message may have is what travels in one piece. */
enum {
    WS_MAX_USUAL = 64 * 1024,
    WS_MAX_MOST = 192 * 1024,
    WS_TOTAL_USUAL = 16 * 1024 * 1024,
    WS_WITHIN_USUAL = 3600 * 1000
};

#endif
