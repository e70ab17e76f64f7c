/* source: of a credential as written; the rest is grammar.h. */
#ifndef POLICY_LOAD_READ_GRAMMAR_SOURCE_H
#define POLICY_LOAD_READ_GRAMMAR_SOURCE_H

#include "policy/image/image.h"
#include "policy/load/read/keys.h"

/* Where a secret is: one of them. */
struct m_stored {
    const struct node *at;
    struct item file, env, store, systemd;
};

/* What must be known to ask for a value elsewhere: policy.h, struct setting. */
enum { SETTINGS_MAX = 64 };
struct m_setting {
    const struct node *at;
    struct span key;
    struct item value;
    enum source_kind from;
};
struct m_asked {
    const struct node *at;
    struct m_setting *v;
    size_t n;
};
struct m_source {
    struct m_stored stored;             /* at: of the whole source */
    struct m_asked asked[SOURCE_KINDS]; /* by kind, from SOURCE_EXEC on */
};

#endif
