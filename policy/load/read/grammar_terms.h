/* What bounds a rule in time, as written; the rest is grammar.h. */
#ifndef POLICY_LOAD_READ_GRAMMAR_TERMS_H
#define POLICY_LOAD_READ_GRAMMAR_TERMS_H

#include "policy/load/read/keys.h"

/* One entry of when:. What it means stands beside what is written once it is checked (policy/load/emit/when.c). */
struct zone;
struct m_window {
    const struct node *at;
    struct items days, hours;
    struct item zone;
    uint32_t mask;
    struct zone *in;
};

#endif
