/* What a command in a started sandbox reads: our standard input, which a process beside this one says to the gateway
 * while this one follows the command's output. Of a terminal, that is each key as it is typed, and its size. */
#ifndef CLI_VERBS_FEED_H
#define CLI_VERBS_FEED_H

#include <sys/types.h>

#include "common/span.h"
#include "sandbox-shim/run/terminal.h"

struct feed {
    pid_t pid; /* 0: there is none */
    int more;  /* into which it is told that there is room again */
    struct terminal caller;
};

/* hello: the data of the stream's first event, which has its number; sock: the control socket. terminal: standard
 * input is one, which is switched now and put back by feed_end, or by what ends us before. Once. 0; or a status,
 * said. */
int feed_begin(struct feed *f, const char *sock, struct span hello, bool terminal) MUSTCHECK;
/* So many bytes were taken: the data of an event `fed`. */
void feed_more(const struct feed *f, struct span data);
/* Also of one that never began. */
void feed_end(struct feed *f);

#endif
