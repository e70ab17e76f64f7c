/* What the tables decode into: the policy as written, every value with its
 * place. Lives in the loader's arena. Each key is a row of tables.c. */
#ifndef POLICY_LOAD_READ_GRAMMAR_H
#define POLICY_LOAD_READ_GRAMMAR_H

#include "common/http/slot.h"
#include "policy/load/read/grammar_body.h"
#include "policy/load/read/grammar_limits.h"
#include "policy/load/read/grammar_source.h"

/* What a rule is about, and what may follow a WebSocket upgrade. */
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

struct m_match {
    const struct node *at;
    struct items hosts, ports, methods, paths, ops, resources;
    struct number schemes, effects;
    struct list query, header; /* struct pair */
    struct items query_names;
    struct items written; /* each of paths, where one has {name}; paths has * there */
    struct m_git git;
    struct m_ws ws;
    struct list json, form, multipart; /* m_cond */
    struct m_graphql graphql;
    struct m_jsonrpc jsonrpc, mcp;
    struct items derived; /* hosts that the resource or operation implies; at is set when they are used */
    uint64_t can;         /* effects it can have, as far as effect:, op: and method: tell; 0: any. warn_never.c */
    bool except;
};

/* messages: what it does not say. The most that one message may have is what travels in one piece. */
enum {
    WS_MAX_USUAL = 64 * 1024,
    WS_MAX_MOST = 192 * 1024,
    WS_TOTAL_USUAL = 16 * 1024 * 1024,
    WS_WITHIN_USUAL = 3600 * 1000,
    GRANT_USES_USUAL = 10,
    GRANT_WITHIN_USUAL = 3600 * 1000
};

/* One entry of when:. What it means stands beside what is written once it is checked (policy/load/emit/when.c). */
struct zone;
struct m_window {
    const struct node *at;
    struct items days, hours;
    struct item zone;
    uint32_t mask;
    struct zone *in;
};

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
    struct m_source source;
    struct m_inject {
        const struct node *at;
        struct item header, format, user;
        struct item slot[SLOT_KINDS]; /* but SLOT_HEADER: that is header */
        struct number certificate;
        bool basic;
        struct m_sign {
            const struct node *at;
            struct item region, service;
        } sigv4, tc3;
        struct m_hmac {
            const struct node *at;
            struct item sign;
            struct list headers; /* struct pair, one value each */
            struct number algorithm, encoding, key;
        } hmac;
    } inject;
    struct list only;                            /* m_place */
    struct number scrub;                         /* 1: refuse */
    struct number lease, require_lease, on_leak; /* on_leak: 1 is freeze */
    struct number stub;                          /* enum stub_kind */
    struct item beside, token_url;
};

struct m_upstream {
    const struct node *at;
    struct item host, address, ca, region;
    struct number port, cleartext;
    bool http; /* it is known to speak http; warn_place.c */
    struct items allow_private;
    struct m_tls {
        const struct node *at;
        struct item ca;
        struct items pins, crls;
        struct number min;
    } tls;
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
        struct items gates;
        struct list escalate; /* m_escalate */
        struct number within, reason, inline_wait;
        struct m_people people;
        struct number diff; /* enum diff_wish */
        struct m_grants {
            const struct node *at;
            struct number uses, within, effects;
        } grants;
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
    struct list scopes, credentials, upstreams, approvers, gates, rules;
};

extern const struct table file_table, floors_table;

/* A pack file (conf/packs). */
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
