/* What policy diff found. */
#ifndef CLI_POLICY_DIFF_DIFF_FOUND_H
#define CLI_POLICY_DIFF_DIFF_FOUND_H

#include "cli/policy/diff/diff.h"

enum diff_kind { DIFF_NOTE = 0, DIFF_NARROWED, DIFF_CHANGED, DIFF_WIDENED };
enum aspect {
    ASPECT_VERDICT = 1,
    ASPECT_CREDENTIAL = 2,
    ASPECT_APPROVERS = 4,
    ASPECT_REASON = 8,
    ASPECT_WITHIN = 16,
    ASPECT_LIMITS = 32,
    ASPECT_OVER = 64,
    ASPECT_MESSAGES = 128,
    ASPECT_PROTOCOLS = 256,
    ASPECT_COUNTED = 512,
    ASPECTS = 10
};
struct drift {
    uint32_t widened, narrowed, changed; /* aspects */
};
struct decided { /* what is shown of a decision */
    enum verdict verdict;
    struct span code, rule, file;
    uint32_t line;
};
struct witness {
    struct span method, scheme, host, path, query, sandbox, body;
    uint16_t port;
    bool has_query, has_body, upgrade, ref;
    uint64_t now_ms; /* 0: at any time */
    const struct label *labels;
    size_t nlabels;
    const struct http_field *fields; /* without Upgrade, and for a push without its type */
    size_t nfields;
    struct git_ref push;
    size_t cost;
};
struct entry {
    enum diff_kind kind;
    struct drift what;
    struct span op, text; /* text: the whole of it, when no request shows it */
    struct decided was[2];
    struct witness witness;
    bool plain; /* a request that asks for no other method shows it, too */
    size_t classes;
    struct span last_host;
    size_t hosts;
};
struct diff {
    struct loaded side[2];
    const struct policy *p[2];
    struct span *rule_text[2];
    struct arena a; /* of what is found */
    struct entry *entry;
    size_t nentries, max;
    struct span *unread; /* "HOST (why)": not fully analysed */
    size_t nunread, max_unread, hosts, points;
    uint64_t now_ms;
    bool failed;
};

#endif
