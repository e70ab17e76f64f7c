/* The verbs of `countersign`: one table in main.c, from which the dispatch and
 * the help are made. A verb lives in its own file; argv[0] is its name. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/exit.h"

struct verb {
    const char *name;
    const char *usage; /* what follows the name on the command line */
    const char *help;  /* one line */
    int (*fn)(int argc, char **argv);
};

extern const struct verb cli_verbs[]; /* ends with a NULL name */

/* The verb of that name, or NULL. */
const struct verb *cli_verb(const char *name);
/* "usage: countersign NAME USAGE" on stderr; returns CLI_USAGE. */
int cli_usage(const char *name);

/* verb_secret.c */
int verb_secret(int argc, char **argv);

#endif
