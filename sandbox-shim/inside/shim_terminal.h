/* A terminal of a command's own, in a sandbox that is told what to run. */
#ifndef SANDBOX_SHIM_INSIDE_TERMINAL_H
#define SANDBOX_SHIM_INSIDE_TERMINAL_H

/* A new one of this size: our end, which does not block, and the command's. -1 with errno, and neither is open. */
int terminal_open(unsigned rows, unsigned columns, int *ours, int *theirs);
/* Who runs in it is told by the kernel. */
void terminal_resize(int ours, unsigned rows, unsigned columns);
/* In the child: begin a session whose terminal this is, for standard input, output and error. -1 with errno. */
int terminal_take(int theirs);

#endif
