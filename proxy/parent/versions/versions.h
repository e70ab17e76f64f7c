/* The versions of the policy that were in force, in STATE_DIR/policies: their texts by the digest of their image,
 * which one is in force, and which one a rollback has pinned. */
#ifndef PROXY_PARENT_VERSIONS_VERSIONS_H
#define PROXY_PARENT_VERSIONS_VERSIONS_H

#include "common/dynbuf.h"
#include "policy/load/stored.h"

enum { VERSIONS_MAX = 100, VERSIONS_PATH = 4096 + 256, PIN_WHO = 128 };

/* While there is one, the policy is this version, whatever the files say. It is a file: it outlives a restart. */
struct pin {
    char hex[STORED_HEX + 1]; /* empty: none */
    char by[PIN_WHO];
    uint64_t since_ms;
};

/* versions.c */
int versions_dir(const char *state, char out[VERSIONS_PATH], struct err *e) MUSTCHECK;
/* Store what a compiler gave, unless it is there and sound: all of it under another name, synced, then renamed. */
int versions_keep(const char *state, struct span bundle, struct err *e) MUSTCHECK;
/* hex is in force from now on. */
void versions_in_force(const char *state, const char *hex);
/* The one that was, at the last switch; empty: not known. */
void versions_last(const char *state, char hex[STORED_HEX + 1]);
/* Of more than VERSIONS_MAX the ones longest out of force go, but neither of these two; so does what a broken end
 * has left half done. */
void versions_sweep(const char *state, const char *current, const char *pinned);
/* All of them, the newest first: {"current":..,"pinned":..,"versions":[..]} */
int versions_json(const char *state, const char *current, const struct pin *pin, struct dynbuf *out) MUSTCHECK;

/* pin.c. A pin that cannot be read is a failure, not none: it is what somebody wanted in force. */
int pin_read(const char *state, struct pin *out, struct err *e) MUSTCHECK;
int pin_write(const char *state, const struct pin *pin, struct err *e) MUSTCHECK;
int pin_remove(const char *state, struct err *e) MUSTCHECK;
/* A small file of our own, synced and renamed into its place. */
int versions_put_file(const char *dir, const char *name, struct span text, struct err *e) MUSTCHECK;

#endif
