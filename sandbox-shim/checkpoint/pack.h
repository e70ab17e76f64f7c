/* The pieces of one shelf: which there are, and where. */
#ifndef SANDBOX_SHIM_CHECKPOINT_PACK_H
#define SANDBOX_SHIM_CHECKPOINT_PACK_H

#include "sandbox-shim/checkpoint/shelf.h"

enum { PACKS_MAX = 4096, PIECES_MAX = 1024 * 1024 };

struct piece {
    uint8_t name[FORM_MAC];
    uint64_t at; /* of its stored bytes in its pack */
    uint32_t size, stored, pack;
    bool there, wanted;
};

struct pieces {
    struct piece *slot;
    size_t nslots, n;
    char (*pack)[SHELF_FILE + 1];
    uint64_t *bytes; /* of each pack */
    size_t npacks;
    uint32_t open; /* which pack fd is, plus one */
    int fd;
};

/* All of a shelf. What is broken in a pack ends what is known of it, and is logged. pieces_free is right in any case.
 */
int pieces_load(const struct shelf *s, struct pieces *all, struct err *e) MUSTCHECK;
void pieces_free(struct pieces *all);
struct piece *pieces_find(const struct pieces *all, const uint8_t name[FORM_MAC]);
/* Those that the rows of a checkpoint name are wanted. 0; 1: not all of them are there; -1: the rows cannot be read.
 */
int pieces_want(struct pieces *all, struct span rows) MUSTCHECK;
/* -1: as many are kept as may be, or no memory. */
int pieces_add(struct pieces *all, const struct piece *p) MUSTCHECK;
/* Its bytes into out, of FORM_PIECE, held against its name. -1: they are not what was written, or cannot be read. */
int piece_read(const struct shelf *s, struct pieces *all, const struct piece *p, uint8_t *out) MUSTCHECK;

/* A pack that is being written. */
struct pack_out {
    const struct shelf *shelf;
    int fd; /* -1: nothing was written yet */
    uint64_t bytes, most;
    char tmp[4 + ID_TEXT + 1];
    uint8_t *room; /* of FORM_PIECE_HEAD and what a piece may be when deflated */
};
int pack_begin(struct pack_out *o, const struct shelf *s, uint64_t most) MUSTCHECK;
/* 0 with *where; 1: it would be more than `most`; -1 with errno. */
int pack_put(struct pack_out *o, const uint8_t name[FORM_MAC], struct span piece, struct piece *where) MUSTCHECK;
/* The same of a piece as it is stored. */
int pack_copy(struct pack_out *o, const struct piece *p, int from, struct piece *where) MUSTCHECK;
/* On the disk; pack_name then gives it its name. pack_drop: forget it, and is right after both. */
int pack_sync(const struct pack_out *o) MUSTCHECK;
int pack_name(struct pack_out *o, const char *id) MUSTCHECK;
void pack_drop(struct pack_out *o);

#endif
