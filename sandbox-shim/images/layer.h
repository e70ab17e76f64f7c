/* Layers, one over the other, into one folder: what a sandbox has as its root. A layer is a tar stream of anybody's.
 * No name in it leads out of the folder, no symbolic link is followed, and nothing is made but files, folders and
 * links, which belong to who unpacks: a sandbox has one user, so what a file's owner may do, everybody may. */
#ifndef SANDBOX_SHIM_IMAGES_LAYER_H
#define SANDBOX_SHIM_IMAGES_LAYER_H

#include "common/dynbuf.h"
#include "common/err.h"
#include "sandbox-shim/inside/shim_tar.h"

enum {
    LAYER_ENTRIES_MAX = 2000000,       /* files, folders and links of all layers, and folders that none names */
    LAYER_DEPTH_MAX = 128,             /* folders in folders */
    LAYER_HIDES_MAX = 8 * 1024 * 1024, /* bytes of the names that a layer hides */
};

/* Born as zeros, but for root. */
struct layering {
    int root;
    uint64_t entries, bytes; /* that were made, and of their content */
    uint64_t left_out;       /* devices, pipes and what is not known */
    uint64_t lost_rights;    /* setuid, setgid and sticky bits */
    /* inside */
    struct tar tar;
    struct dynbuf hides; /* what it hides of those below it: 'o' or 'w' and a name, each with a NUL */
    bool looks;          /* it is only looked for those */
    int file, dir;
    unsigned mode;
    int64_t mtime;
    char above[TAR_NAME_MAX + 1];
};

/* Twice: first what the layer hides is found (looks), and hidden by layer_hide; then its own is made. */
void layer_begin(struct layering *l, bool looks);
int layer_take(struct layering *l, struct span bytes, struct err *e) MUSTCHECK;
/* No more comes. layer_drop is right at any time, also after it. */
int layer_end(struct layering *l, struct err *e) MUSTCHECK;
int layer_hide(struct layering *l, struct err *e) MUSTCHECK;
void layer_drop(struct layering *l);

/* What the sandbox's own mounts need of a root: their places, none of them behind a link (bones.c). */
int bones_put(int root, struct err *e) MUSTCHECK;
/* A name in a folder, and all below it, is gone. -1 with errno. */
int layer_remove(int dir, const char *name) MUSTCHECK;

#endif
