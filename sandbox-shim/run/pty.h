/* A terminal of the sandbox's own. When `run` is used at a terminal, the command
 * gets a fresh pseudo-terminal as its controlling one and bytes are carried
 * between the two: job control and full-screen programs work, and whatever is
 * done to that terminal is not done to the caller's. */
#ifndef SANDBOX_SHIM_RUN_PTY_H
#define SANDBOX_SHIM_RUN_PTY_H

#include <poll.h>

#include "common/err.h"
#include "sandbox-shim/run/terminal.h"

enum { PTY_BYTES = 4096, PTY_POLLS = 3 };

struct pty {
    int master, slave; /* -1 when there is none */
    bool input_ended;
    struct terminal caller;
    struct {
        size_t off, end;
        uint8_t buf[PTY_BYTES];
    } in, out; /* from the caller, to the caller */
};

/* No terminal: everything below does nothing. */
void pty_none(struct pty *t);
/* Make one like the caller's (modes and size). */
int pty_open(struct pty *t, struct err *e) MUSTCHECK;
/* In the child: put it in place of every one of 0, 1, 2 that is a terminal. */
int pty_become(const struct pty *t) MUSTCHECK;
/* In the parent, after the fork: let go of the slave, make the caller's raw. */
int pty_begin(struct pty *t, struct err *e) MUSTCHECK;
/* What to wait for, and what to do when it came. */
void pty_prepare(const struct pty *t, struct pollfd polls[PTY_POLLS]);
void pty_carry(struct pty *t, const struct pollfd polls[PTY_POLLS]);
/* The caller's terminal changed its size. */
void pty_resize(const struct pty *t);
/* Carry what is left to the caller, give the terminal back as it was. */
void pty_end(struct pty *t);

#endif
