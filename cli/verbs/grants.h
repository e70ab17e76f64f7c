/* Grants, as `approvals approve` gives them. */
#ifndef CLI_VERBS_GRANTS_H
#define CLI_VERBS_GRANTS_H

#include "cli/verb.h"

/* --uses and --for of a call; both 0: neither was given. CLI_OK, or what to exit with. */
int grants_asked(const struct cli_call *c, uint64_t *uses, uint64_t *for_ms) MUSTCHECK;
/* Print what would be covered beside the ticket t of this id; CLI_OK, or no such grant may be given. g's tree is
 * another one then. */
int grants_say(struct gateway_call *g, const char *ticket, const struct json *t, uint64_t uses,
               uint64_t for_ms) MUSTCHECK;

#endif
