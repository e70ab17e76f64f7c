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

extern const struct choice scheme_choices[]; /* masks of SCHEME_* */
extern const struct table rule_table, source_table;

#endif
