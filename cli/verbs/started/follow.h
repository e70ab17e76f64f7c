/* A command in a started sandbox, followed: what it says comes on our standard output and error, what it reads is
 * ours.
 */
#ifndef CLI_VERBS_FOLLOW_H
#define CLI_VERBS_FOLLOW_H

#include "cli/verbs/started/feed.h"

enum { EXIT_TIMED_OUT = 124, EXIT_LOST = 125, EXIT_SIGNAL = 128 };

struct follow {
    const char *sock; /* the control socket */
    bool json;        /* print the events, as they come */
    bool input;       /* it is given our standard input */
    bool terminal;    /* which is a terminal, and what it says goes there as it is */
    int status;       /* follow_run's own, like the rest */
    bool cut;
    struct feed feed;
};

/* Ask the gateway for the stream, and follow it to its end. What to exit with: the command's own status, 128 and the
 * number of the signal that ended it, or one of the above, said. */
int follow_run(struct follow *f, const char *path, struct span body) MUSTCHECK;

#endif
