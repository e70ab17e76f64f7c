/* A folder as a tar stream, and back. Links inside are kept as links, hard links come out as files of their own, and
 * what is neither a file, a folder nor a link is left out. -1 with errno; `why`: more words than errno has, or NULL.
 */
#ifndef SANDBOX_SHIM_INSIDE_TREE_H
#define SANDBOX_SHIM_INSIDE_TREE_H

#include <sys/stat.h>

#include "sandbox-shim/inside/shim_tar.h"

enum { TREE_DEPTH_MAX = 256, TREE_PIECE = 32 * 1024 };

/* Takes all of these bytes, or -1. */
typedef int tree_put(void *arg, const uint8_t *p, size_t n);
/* Somebody who knows files by their bytes, and is asked about each that fits: 1: its bytes are not told again, and
 * its header says that it has none; -1 with errno ends it all. */
struct tree_known {
    int (*same)(void *arg, int fd, const struct stat *st); /* 0: fd is at its beginning again */
    void *arg;
};
struct pack {
    tree_put *put;
    void *arg;
    const struct tree_known *known; /* NULL: nobody */
    uint64_t most;                  /* bytes that may come yet; EFBIG */
    unsigned left_out;              /* devices, pipes and sockets */
    /* inside */
    struct tar_member m;
    uint8_t head[TAR_HEAD_MAX], piece[TREE_PIECE];
};
/* The folder that dir is, with all in it; dir stays the caller's. */
int pack_folder(struct pack *k, int dir);

/* Into the folder that root is. What is there is replaced, but, unless exact, no folder by anything else. */
struct unpack {
    int root;
    bool outside; /* the stream is not trusted here: no symbolic link is followed or made that leads out of root */
    bool exact;   /* links are made wherever they lead; modes and times are those of the stream, a folder's when it
                     comes again: then nothing more may come of what is in it */
    unsigned left_out; /* such links, hard links to what is no file, devices and pipes */
    const char *why;
    /* inside */
    struct tar tar;
    int file, dir;
    int64_t mtime;                /* of the file */
    unsigned mode;                /* the same */
    char above[TAR_NAME_MAX + 1]; /* the name of the folder dir */
};
void unpack_begin(struct unpack *u, int root, bool outside);
int unpack_take(struct unpack *u, const uint8_t *p, size_t n);
/* No more comes. EBADMSG: it was cut short. Closes what is open; without it unpack_drop does. */
int unpack_end(struct unpack *u);
void unpack_drop(struct unpack *u);

#endif
