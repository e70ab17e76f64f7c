/* What waits as a view with keys; and a ticket as text, which `approvals show` prints too. */
#ifndef CLI_VERBS_WATCH_WATCH_H
#define CLI_VERBS_WATCH_WATCH_H

#include "cli/verb.h"
#include "sandbox-shim/run/terminal.h"

/* `approvals watch` at a terminal, until q. CLI_OK, or what to exit with after words on stderr. */
int watch_view(const struct cli_call *c) MUSTCHECK;

/* Is it there, and true? */
bool verb_true(const struct json *j, const char *key);
/* All of it but its body, to stdout. */
void ticket_print(const struct json *t);
/* Its body; raw: to the byte. *read (or NULL): all of it stands there, and as text. */
int ticket_print_body(struct gateway_call *g, const char *id, uint64_t size, bool raw, bool *read) MUSTCHECK;

/* Text cut into the lines of a screen: what is no ASCII counts as two cells. Pure. */
enum { LINES_MAX = 20000 };
struct lines {
    size_t at[LINES_MAX + 1]; /* where each begins; at[n]: the end of the last */
    size_t n;
    bool cut; /* there are more */
};
void lines_cut(struct span text, unsigned columns, struct lines *out);
/* May a yes be said on this screen: does it show all of it at once? rows: for the text alone. */
bool lines_fit(const struct lines *l, unsigned rows, unsigned columns);

#endif
