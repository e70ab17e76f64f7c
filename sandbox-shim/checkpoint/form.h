/* What a checkpoint is on disk: a file of its own, and pieces of content in packs, which checkpoints of one owner
 * share.
 *
 *   checkpoint: "CSCKPT1\n" | span head | MAC of it | u32 n, rows | MAC of head and rows
 *   pack:       "CSPACK1\n" | pieces, each: name 32 | u32 size | u32 stored | stored bytes (of size: as they are,
 *               else deflated)                                                         numbers are big-endian
 *
 * A file is cut every FORM_PIECE bytes. A piece is named by the HMAC-SHA256 of its bytes under the owner's own key,
 * so that neither its name nor that it is there already says anything to somebody else; what is read is held against
 * that name. Nothing here opens a file. */
#ifndef SANDBOX_SHIM_CHECKPOINT_FORM_H
#define SANDBOX_SHIM_CHECKPOINT_FORM_H

#include "common/msg.h"
#include "sandbox-shim/inside/shim_tar.h"

enum {
    FORM_PIECE = 1024 * 1024,
    FORM_MAC = 32,
    FORM_ID = 3 + ID_TEXT, /* ck- and the text of an id */
    FORM_NAME_MAX = 63,    /* of a sandbox, and of a checkpoint */
    FORM_OWNER_MAX = 256,
    FORM_REACH_MAX = 8192, /* REACH_MAX of proxy/reach/reach.h */
    FORM_HEAD_MAX = 12 * 1024,
    FORM_ROWS_MAX = 64 * 1024 * 1024, /* bytes: some 500,000 files */
    FORM_PIECE_HEAD = FORM_MAC + 8,
    FORM_MAGIC = 8,
};
#define FORM_CHECKPOINT SPAN("CSCKPT1\n")
#define FORM_PACK       SPAN("CSPACK1\n")
#define FORM_OF_IDLE    SPAN(".idle") /* the same, of one that is idle: it is whose files these are alone */
#define FORM_OF_UNDO    SPAN(".undo") /* of the files as they were before a step of a sandbox that runs */
#define FORM_OF_FORK    SPAN(".fork") /* the name, which nobody can give, of one that is made for a fork alone */

/* What is told of one. Spans are borrowed. */
struct form_head {
    struct span id, tenant, owner, name, sandbox; /* name: may be empty */
    uint64_t generation, created_ms;
    uint64_t files, folders, links;
    uint64_t left_out; /* devices, pipes and sockets */
    uint64_t bytes;    /* of its files */
    uint64_t added;    /* bytes of packs that were written for it */
    /* What its sandbox might reach (proxy/reach/), and so may no more who begins with its files; empty: whatever the
     * policy lets it. */
    struct span reach;
};
void form_put_head(struct dynbuf *b, const struct form_head *h);
/* -1: it is none. */
int form_get_head(struct msg_in *m, struct form_head *h) MUSTCHECK;
/* All of a head on disk: those of before sandboxes were narrowed end without a reach. */
int form_get_kept(struct span head, struct form_head *h) MUSTCHECK;

/* The names of its pieces follow a row; *n of them, by its size. */
struct form_row {
    enum tar_type type; /* a file, a folder or a symbolic link */
    unsigned mode;      /* 0 to 07777 */
    uint64_t size;      /* of a file */
    int64_t mtime;
    struct span name, target; /* target: of a link */
    struct span pieces;       /* FORM_MAC bytes each; form_get_row alone */
};
uint64_t form_pieces(uint64_t size);
void form_put_row(struct dynbuf *b, const struct form_row *r);
/* The next one; spans are borrowed, no name leads out of where it is put, none has a NUL. -1: it is none. */
int form_get_row(struct msg_in *m, struct form_row *r) MUSTCHECK;

/* The parts of a checkpoint's file, by their lengths alone. */
struct form_file {
    struct span head, head_mac, rows, rows_mac;
};
int form_split(struct span file, struct form_file *f) MUSTCHECK;

/* ck- and an id; or a name, which is none of those: 1 to FORM_NAME_MAX of a-z 0-9 . _ -, the first a letter or digit.
 */
bool form_is_id(struct span s);
bool form_is_name(struct span s);
/* What one is called that is made: nothing, a name, FORM_OF_FORK, FORM_OF_UNDO or FORM_OF_IDLE. */
bool form_is_called(struct span s);
/* Of one that is for this gateway's sandboxes alone: it never lies elsewhere. FORM_OF_FORK, FORM_OF_UNDO or
 * FORM_OF_IDLE. */
bool form_stays_here(struct span name);

#endif
