/* The checkpoints of one owner: a folder below the store's, with a key of its own, made at its first use.
 *
 *   key       FORM_MAC random bytes
 *   ck-ID     a checkpoint; complete as soon as it has this name
 *   ck-ID.pack  pieces; written with that checkpoint, and shared by those that have the same
 *   tmp-ID    what is being written; of nobody any more once nobody has the lock
 *   lock      shared: who reads or writes one; alone: who throws away what no checkpoint needs
 *   waste     there may be some
 *   up-key    the key is elsewhere as well (away/away.h): below which folder of which store
 *   gone-NAME   what is not here any more is to go there as well
 *   seen      which files need not be told again (seen.h); not counted, and gone with the last checkpoint
 *   removed   names of what went there
 *   away      locked shared: who writes there, or reads packs; alone: who removes there
 *
 * What is to survive is on the disk before it has its name, and its name before it is answered. */
#ifndef SANDBOX_SHIM_CHECKPOINT_SHELF_H
#define SANDBOX_SHIM_CHECKPOINT_SHELF_H

#include "common/err.h"
#include "sandbox-shim/checkpoint/form.h"

enum {
    SHELF_NAME = 32,
    SHELF_FILE = FORM_ID + 5,
    SHELF_KEPT_MAX = 4096, /* checkpoints of one owner: whoever looks for one looks at all of all owners' */
};
#define SHELF_OPERATORS SPAN("default") /* the tenant whom the operator's own are of (api_tenant) */

struct evp_mac_ctx_st;
struct shelf {
    int dir, lock; /* -1: none */
    char name[SHELF_NAME + 1];
    char there[SHELF_NAME + 1]; /* its tenant's folder elsewhere (away_place); empty: not known */
    struct evp_mac_ctx_st *mac;
};

/* Which of the store's folders is this owner's. */
void shelf_of(struct span tenant, struct span owner, char name[SHELF_NAME + 1]);
/* make: if there is none yet. 0; 1: there is none, or somebody is about to make it; -1. shelf_close is right in any
 * case. */
int shelf_open(int store, const char *name, bool make, struct shelf *s, struct err *e) MUSTCHECK;
void shelf_close(struct shelf *s);
/* Of these bytes, for this purpose: 'p' a piece, 'h' a head, 'r' head and rows, 's' what seen says; of nothing, 'm':
 * seen_key. */
void shelf_mac(const struct shelf *s, char purpose, struct span a, struct span b, uint8_t out[FORM_MAC]);
/* The lock of the store's folder, or of one below it, which nobody has by that yet; made if there is none. -1 with
 * errno. */
int shelf_lock_at(int dir) MUSTCHECK;
/* Alone, if nobody else has it; else false. shelf_share waits for who is alone. */
bool shelf_alone(const struct shelf *s) MUSTCHECK;
int shelf_share(const struct shelf *s) MUSTCHECK;
/* Of all shelves of the store: who gives a checkpoint its name, or removes one. A descriptor, whose end ends it; -1
 * with errno. */
int shelf_names_lock(int store) MUSTCHECK;

/* Bytes of all its packs and checkpoints. */
uint64_t shelf_bytes(const struct shelf *s);
/* How many checkpoints there are on it. */
size_t shelf_kept(const struct shelf *s);
/* For each name in the folder that begins and ends so; what fn says below zero ends it and is said. */
typedef int shelf_each_fn(void *arg, const char *name);
int shelf_each(int dir, const char *begins, const char *ends, shelf_each_fn *fn, void *arg) MUSTCHECK;
/* A checkpoint's file, whole, verified, into b; f borrows from b. id is NUL-terminated. 1: there is none. */
int shelf_read(const struct shelf *s, const char *id, struct dynbuf *b, struct form_file *f, struct err *e) MUSTCHECK;
/* Its head alone, verified; h borrows from b. */
int shelf_head(const struct shelf *s, const char *id, struct dynbuf *b, struct form_head *h, struct err *e) MUSTCHECK;

/* One of all shelves of that tenant, by its id or its name; by its id the operator finds a damaged one too. 1: there
 * is none. *s is open otherwise alone. */
int shelf_find(int store, struct span tenant, struct span which, struct shelf *s, char id[FORM_ID + 1],
               struct err *e) MUSTCHECK;

#endif
