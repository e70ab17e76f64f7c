/* What the verbs on started sandboxes share (started.c). */
#ifndef CLI_VERBS_STARTED_H
#define CLI_VERBS_STARTED_H

#include "cli/verb.h"

enum { PATH_ROOM = 256, BODY_MAX = 64 * 1024 }; /* of what is asked of the gateway */

/* NULL, or what is wrong with it as the name of one. */
const char *started_name_wrong(const char *s);
/* One starts, of this name (NULL: one that is made up), with the files of this checkpoint (NULL: with none). */
int started_start(const struct cli_call *c, const char *name, const char *from);
/* The option's value, where it was given, as a member of the same name: a length of time, in whole seconds; an amount
 * of bytes, at least so many MiB. CLI_OK, or CLI_USAGE, said. */
int started_put_seconds(struct jsonw *w, const struct cli_call *c, const char *option) MUSTCHECK;
int started_put_bytes(struct jsonw *w, const struct cli_call *c, const char *option, unsigned least_mib) MUSTCHECK;
/* The number of a step (NULL: none), as the member `step`. The same. */
int started_put_step(struct jsonw *w, const char *text) MUSTCHECK;
/* Those of --mount. The same. */
int started_put_mounts(struct jsonw *w, const struct cli_call *c) MUSTCHECK;

#endif
