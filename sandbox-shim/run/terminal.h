/* The caller's terminal: switched so that every key goes on as it is typed, and put back. */
#ifndef SANDBOX_SHIM_RUN_TERMINAL_H
#define SANDBOX_SHIM_RUN_TERMINAL_H

#include <stdbool.h>
#include <termios.h>

#include "common/err.h"

struct terminal {
    bool raw; /* it is switched, and must be put back */
    struct termios saved;
};

/* Is the caller at a terminal, in its foreground, on both stdin and stdout? */
bool terminal_here(void);
/* How stdin's terminal is now. -1: it cannot be known. */
int terminal_look(struct terminal *t, struct err *e) MUSTCHECK;
/* Its size; where that is not known, the usual one. */
void terminal_size(unsigned *rows, unsigned *columns);
/* As it was looked at, but raw. */
int terminal_raw(struct terminal *t, struct err *e) MUSTCHECK;
/* As it was looked at, unless it is somebody else's by now. It may be called by a signal's handler, and of one that
 * is not raw does nothing. */
void terminal_back(struct terminal *t);

#endif
