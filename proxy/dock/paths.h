/* Paths as callers write them, and files as they are told of. */
#ifndef PROXY_DOCK_PATHS_H
#define PROXY_DOCK_PATHS_H

#include "proxy/dock/dock.h"

#define DOCK_WORKSPACE "/workspace" /* where a relative path begins, and all of a sandbox's files are */

/* The absolute path, without what means nothing in it ("//", "/./", a slash at its end), in the arena. -1, answered:
 * it is none, too long, or has a NUL or a step up. */
int path_take(struct call *x, struct span given, struct span *out) MUSTCHECK;
/* The folder of one; empty: it is the workspace, or above it. */
struct span path_folder(struct span path);
struct span path_name(struct span path);
/* One entry, from the desk's words for it, as envd's EntryInfo. path: its own. */
void path_put_entry(struct jsonw *w, struct span path, const struct json *entry);

#endif
