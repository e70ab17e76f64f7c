/* All of a file into a buffer that is born with its limit, and all of some bytes into one. For our own files and
 * those of the operator: links are followed, and a regular file is expected. What may hold a secret is the caller's
 * to wipe, also after a failure. */
#ifndef COMMON_FILE_H
#define COMMON_FILE_H

#include "common/dynbuf.h"

/* What is left of an open file, appended; fd stays the caller's. -1 with errno: EFBIG when b cannot hold it. */
int file_read_fd(int fd, struct dynbuf *b) MUSTCHECK;
/* The same of a path. */
int file_read(const char *path, struct dynbuf *b) MUSTCHECK;

/* All of s. -1 with errno. */
int file_write_fd(int fd, struct span s) MUSTCHECK;

#endif
