/* What changes in a folder of the workspace, while somebody listens (TALK_FILE_WATCH). */
#ifndef SANDBOX_SHIM_INSIDE_WATCH_WATCH_H
#define SANDBOX_SHIM_INSIDE_WATCH_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Say what changes in the folder at path, beneath root; deep: also in all folders below it. out takes what is said,
 * as TALK_FILE_WATCH has it, and gives -1 when nobody listens any more. 0: there is nothing more to say, as the last
 * says why; -1 with errno: nothing was said, or nobody listens. */
int watch_folder(int root, const char *path, bool deep, int (*out)(void *arg, const uint8_t *p, size_t n));

#endif
