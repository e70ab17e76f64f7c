/* The keeper's own folder (STATE/keeper), reached only through the descriptor it
 * was given. A file there is regular, ours, mode 0600 or stricter and not a link,
 * or it is refused. Every change is whole and on disk before it is visible. */
#ifndef PROXY_KEEPER_FILES_H
#define PROXY_KEEPER_FILES_H

#include "common/dynbuf.h"
#include "common/err.h"

/* 1 and the bytes appended to out, 0 when there is no such file, -1 with words. At most out->max bytes. */
int files_read(int dir, const char *name, struct dynbuf *out, struct err *e) MUSTCHECK;
/* A file that must not exist yet. */
int files_create(int dir, const char *name, struct span bytes, struct err *e) MUSTCHECK;
/* In place of the old one, or new. */
int files_replace(int dir, const char *name, struct span bytes, struct err *e) MUSTCHECK;
int files_remove(int dir, const char *name, struct err *e) MUSTCHECK;
/* 1 there is something of that name, 0 there is not, -1 cannot tell. */
int files_exist(int dir, const char *name, struct err *e) MUSTCHECK;
/* The folder itself: ours, and nobody else may enter it. */
int files_check_dir(int dir, struct err *e) MUSTCHECK;

#endif
