/* Rows of the grammar: what the table files share. */
#ifndef POLICY_LOAD_TABLES_TABLES_H
#define POLICY_LOAD_TABLES_TABLES_H

#include "policy/load/read/model.h"

#define AT(T, f) offsetof(struct T, f)
#define LATER(name_)                                                                                                 \
    {                                                                                                                \
        .name = name_, .type = KEY_LATER                                                                             \
    }
#define TEXT(T, f, name_, help_)                                                                                     \
    {                                                                                                                \
        .name = name_, .type = KEY_TEXT, .at = AT(T, f), .help = help_                                               \
    }

/* How many must agree, and who counts: of an approvers entry, and of a rule. */
#define PEOPLE_KEYS(T)                                                                                               \
    {.name = "quorum",                                                                                               \
     .type = KEY_COUNT,                                                                                              \
     .at = AT(T, people.quorum),                                                                                     \
     .lo = 1,                                                                                                        \
     .hi = QUORUM_MOST,                                                                                              \
     .help = "so many different people must approve, default 1"},                                                    \
        {.name = "self_approval",                                                                                    \
         .type = KEY_BOOL,                                                                                           \
         .at = AT(T, people.self),                                                                                   \
         .help = "may the sandbox's owner approve"},                                                                 \
    {                                                                                                                \
        .name = "step_up", .type = KEY_ONE_OF, .at = AT(T, people.step_up), .choices = step_ups,                     \
        .help = "what each approval needs"                                                                           \
    }
extern const struct choice step_ups[];
extern const struct choice scheme_choices[]; /* masks of SCHEME_* */
extern const struct table rule_table, source_table;

#endif
