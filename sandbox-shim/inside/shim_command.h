/* What any command started in here needs before it is executed. */
#ifndef SANDBOX_SHIM_INSIDE_COMMAND_H
#define SANDBOX_SHIM_INSIDE_COMMAND_H

#include <sys/resource.h>

enum {
    EXIT_SETUP = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
};

/* Say it on standard error and exit. */
void die(int status, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));
/* In the child: nothing of ours stays open but 0, 1 and 2, signals are as anybody finds them, and with `processes`
 * there are so many at most in here (0: no limit). Then the command; exits when it cannot be executed. */
void command_become(char *const argv[], rlim_t processes) __attribute__((noreturn));
/* Watch these signals and SIGCHLD; the descriptor. Exits when that cannot be had. */
int signals_watch(const int *signals, unsigned n);

#endif
