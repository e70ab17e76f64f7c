/* Checkpoints in a store elsewhere as well: what lies on a shelf (shelf.h), file by file, cut into parts that are
 * sealed before they leave and bound to where they belong.
 *
 *   TENANT/FOLDER/key.0-1         the shelf's name and its key, sealed for all shelves
 *   TENANT/FOLDER/ck-ID.I-N       part I of N of a checkpoint; one is there with its part 0, which is written last
 *   TENANT/FOLDER/ck-ID.pack.I-N  part I of N of a pack
 *
 * TENANT and FOLDER are HMACs of the tenant's and the shelf's names, so that they tell of neither; what is looked for
 * for one tenant is looked for below its TENANT alone. The key of all is in the folder of checkpoints (store-key):
 * whoever is to read them elsewhere needs it. One gateway at a time writes there.
 *
 * No object is ever written a second time with other bytes, and what was removed here is never taken from there
 * again: a mark says so (shelf.h). While the store is asked nobody has a shelf alone. */
#ifndef SANDBOX_SHIM_CHECKPOINT_AWAY_AWAY_H
#define SANDBOX_SHIM_CHECKPOINT_AWAY_AWAY_H

#include "sandbox-shim/checkpoint/pack.h"

enum {
    AWAY_PART = 4 * 1024 * 1024, /* bytes */
    AWAY_KEY = 32,               /* bytes */
    AWAY_PLACE = 32,             /* of the text that tells one store, with its store-key, from others */
    AWAY_PARTS_MAX = 16384,
    AWAY_KEY_MAX = 192,                 /* of an object's name below the prefix */
    AWAY_REMOVED_MAX = 1024 * 1024,     /* bytes of the names that are known as removed, of each shelf */
    AWAY_LISTED_MAX = 32 * 1024 * 1024, /* bytes of all names that one look hears of */
};

/* Who carries the objects. All: 0, or -1 in words; get: 1 if there is none. */
typedef int away_name_fn(void *arg, const char *key);
struct away_carrier {
    void *arg;
    int (*put)(void *arg, const char *key, struct span bytes, struct err *e);
    int (*get)(void *arg, const char *key, struct dynbuf *out, struct err *e);
    int (*remove)(void *arg, const char *key, struct err *e);
    /* Each name that begins so; what fn says below zero ends it. */
    int (*list)(void *arg, const char *begins, away_name_fn *fn, void *ctx, struct err *e);
    const char *place; /* which of all stores that is */
};

struct away {
    const struct away_carrier *by;
    uint8_t key[AWAY_KEY]; /* of all shelves */
    char place[AWAY_PLACE + 1];
    int store;     /* the folder of checkpoints */
    uint64_t most; /* bytes that are kept for one owner */
    uint32_t part; /* bytes of each part of a file but its last one: AWAY_PART, which is the most */
};

/* Its key is made where there is none yet. -1 in words. */
int away_open(struct away *a, int store, uint64_t most, const struct away_carrier *by, struct err *e) MUSTCHECK;
void away_close(struct away *a);

/* Where this tenant's shelf lies there; before anything below is asked of it. -1 in words. */
int away_place(const struct away *a, struct shelf *s, struct span tenant, struct err *e) MUSTCHECK;
/* Before a shelf of the tenant is made: it is made, with the key that it has elsewhere, if it has one and that is
 * asked for; else with one that follows from the key of all, so that nobody who makes it without asking makes another
 * one. */
int away_shelf(const struct away *a, struct span tenant, const char *shelf, bool ask, struct err *e) MUSTCHECK;

/* While something goes there that needs packs that lie there: none of these goes. Waits for away_tidy of this shelf.
 * A descriptor, whose end ends that; -1 with errno. */
int away_hold(const struct shelf *s) MUSTCHECK;
/* Its key, and the packs with a piece that is wanted, if a list of what is there has not all of their parts: nothing
 * else is believed of it, as whoever has the store may take away what was there, and another store may be told of in
 * the configuration. What is of checkpoints that stay here alone stays here. */
int away_packs_up(const struct away *a, const struct shelf *s, const struct pieces *all, struct err *e) MUSTCHECK;
/* The checkpoint that lies on the shelf in this file is called so there. */
int away_up(const struct away *a, const struct shelf *s, const char *file, const char *name, struct err *e) MUSTCHECK;
/* Packs that are there and not here. -1: one of them, which may be needed or not: others are here nevertheless. */
int away_packs_down(const struct away *a, const struct shelf *s, struct err *e) MUSTCHECK;
/* All checkpoints of the tenant that are there and not here, but those that were removed here or are on their way
 * there. One that is damaged is logged and left; if it is the one called which, that is said. */
int away_look(const struct away *a, struct span tenant, struct span which, struct err *e) MUSTCHECK;

/* Before a checkpoint, a pack, or what was half written of a checkpoint, is removed here: it is to go there as well,
 * with the next away_tidy, and does not come back from there. Needs no store. -1 with errno. */
int away_gone(const struct shelf *s, const char *name) MUSTCHECK;
/* Is it to go there? */
bool away_is_gone(const struct shelf *s, const char *name);
/* Where something is to go there: that goes, and packs that are here for what stays here alone, after what was
 * written anew of packs is there. Packs stay, and what marks them, while it is not known here what a checkpoint there
 * needs. The caller shares the shelf (shelf_share), whose place need not be known. 0: all of it is done that can be;
 * 1: later, something goes there just now; -1 in words: the next time goes on with the rest. */
int away_tidy(const struct away *a, struct shelf *s, struct err *e) MUSTCHECK;

#endif
