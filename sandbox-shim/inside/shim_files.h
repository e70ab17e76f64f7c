/* What is done with the files of a sandbox's workspace, as its user, by a process of its own: nothing in it can lead
 * that outside (shim_beneath.h), and it is ended as any command. */
#ifndef SANDBOX_SHIM_INSIDE_FILES_H
#define SANDBOX_SHIM_INSIDE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "sandbox-shim/inside/shim_talk.h"

struct file_order {
    enum talk_file what;
    unsigned mode;
    bool whole;
    uint64_t from, most;
    const char *path, *other;
};

/* Before anything runs: the workspace is where we are. */
void files_begin(void);
/* In a child whose standard descriptors are its input, its output and its words: do that and exit with 0 or an errno.
 */
void files_become(const struct file_order *o) __attribute__((noreturn));

#endif
