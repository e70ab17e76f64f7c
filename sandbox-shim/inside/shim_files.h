/* What is done with the files of a sandbox's workspace, as its user, by a process of its own: nothing in it can lead
 * that outside (shim_beneath.h), and it is ended as any command. */
#ifndef SANDBOX_SHIM_INSIDE_FILES_H
#define SANDBOX_SHIM_INSIDE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
/* What is read here and now, without a child: a piece of a plain file that nobody has to wait for. So many bytes, or
 * -1: it is to be done as all else is, also when it cannot be done. */
ssize_t files_read_now(const struct file_order *o, uint8_t *to, size_t room);
/* So it is called (COUNTERSIGN_SANDBOX), and its folders are as new as this. False: it cannot be. */
bool files_named(const char *name);
/* In a child whose standard descriptors are its input, its output and its words: do that and exit with 0 or an errno.
 */
void files_become(const struct file_order *o) __attribute__((noreturn));

#endif
