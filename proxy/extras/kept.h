/* Directories that outlive sandboxes, STATE_DIR/mounts: of each a file system (KEY.img), or a folder (KEY) where no
 * other user than the gateway's is there to be kept out, and KEY.lock. Who has one in use holds its lock, and who
 * removes one needs it. A key is NAME@TENANT, or NAME@TENANT@SESSION where its sessions have one each. */
#ifndef PROXY_EXTRAS_KEPT_H
#define PROXY_EXTRAS_KEPT_H

#include "common/err.h"
#include "proxy/extras/wire_extras.h"

enum {
    KEPT_KEY_MAX = 2 * EXTRAS_NAME_MAX + 2 + 32,
    KEPT_MAX = 4096,     /* directories of one gateway */
    KEPT_OF_TENANT = 512 /* and of one tenant, who stands in a neighbour's way else */
};

/* of_session: each session has its own. */
void kept_key(const struct wire_extras *x, struct span name, bool of_session, char key[KEPT_KEY_MAX + 1]);
/* It stays as long as this descriptor is open. -1 in words: there are as many as may be (of its tenant), or it is
 * being removed. */
int kept_hold(const char *state_dir, const char *key, struct err *e) MUSTCHECK;
/* Each that there is: its key, and how many bytes of the disk it has. */
typedef void kept_fn(void *ctx, const char *key, uint64_t bytes);
int kept_each(const char *state_dir, kept_fn *fn, void *ctx, struct err *e) MUSTCHECK;
/* -1 in words: there is none, or a sandbox has it. */
int kept_remove(const char *state_dir, const char *key, struct err *e) MUSTCHECK;

#endif
