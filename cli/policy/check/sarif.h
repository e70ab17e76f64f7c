/* What check found, for other tools; and what a code means. */
#ifndef CLI_POLICY_CHECK_SARIF_H
#define CLI_POLICY_CHECK_SARIF_H

#include "cli/policy/loaded.h"

/* SARIF 2.1.0; -1 when it is too long. */
int sarif_print(const struct loaded *l) MUSTCHECK;
/* What a code means and what to do: an exit code. */
int sarif_print_code(const char *code);

#endif
