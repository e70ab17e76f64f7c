/* The master key, where it is kept elsewhere than in the keeper's folder (master_key: of countersign.yaml): read from
 * a descriptor that the parent opened and did not read. It is 32 bytes, or 64 hex digits with at most one line feed
 * behind them. */
#ifndef PROXY_KEEPER_MASTER_H
#define PROXY_KEEPER_MASTER_H

#include "common/crypto/secret.h"
#include "common/err.h"
#include "policy/policy.h"

/* Of its name: SOURCE_FILE, SOURCE_SYSTEMD or SOURCE_EXEC; SOURCE_NONE: another one. */
enum source_kind master_from(struct span name) MUSTCHECK;
/* Of SOURCE_EXEC fd is a pipe whose writer has ended, and does not block. owner: a uid that may own the file, beside
 * root's and ours. NULL with words, which never repeat what was read. */
struct secret *master_read(enum source_kind from, int fd, unsigned owner, struct err *e) MUSTCHECK;

#endif
