/* Which files of a sandbox its owner's checkpoints have, by their marks (mark.h), and of which pieces each is: a file
 * whose bytes have one of these marks is not told again.
 *
 *   seen: "CSSEEN1\n" | u32 n | n times: whose 8 | mark 16 | u64 size | the names of its pieces | MAC of all before
 *
 * whose: of a sandbox's name, under which its owner starts it again; no other one is given its marks, nor can have
 * what they are of. Those of the last checkpoint come first, behind them those of before, up to SEEN_BYTES_MAX and an
 * eighth of what an owner may keep, in which it is not counted. What is lost of it costs telling a file once more; so
 * it is not elsewhere, nor written to the disk at once. Of two checkpoints at one time one has the last word. */
#ifndef SANDBOX_SHIM_CHECKPOINT_SEEN_H
#define SANDBOX_SHIM_CHECKPOINT_SEEN_H

#include "sandbox-shim/checkpoint/pack.h"
#include "sandbox-shim/checkpoint/stream.h"

enum { SEEN_BYTES_MAX = 8 * 1024 * 1024 /* files that do not fit are told again */ };
#define FORM_SEEN  SPAN("CSSEEN1\n")
#define SHELF_SEEN "seen"

struct seen_file {
    uint8_t key[8 + MARK]; /* whose, and its mark */
    bool again;            /* it is in the checkpoint that is being made */
    uint64_t size;
    struct span pieces;
};

struct seen {
    struct dynbuf file; /* of before; files borrow from it */
    struct seen_file *all;
    size_t n;
    uint8_t whose[8];
    uint8_t *marks; /* of this sandbox, in a row */
    size_t nmarks;
    struct dynbuf next;
    size_t nnext;
};

/* Those whose pieces are all there. What is damaged or missing is none. most: what its owner may keep. seen_end is
 * right in any case. -1: no memory. */
int seen_begin(struct seen *s, const struct shelf *shelf, const struct pieces *pieces, struct span sandbox,
               uint64_t most) MUSTCHECK;
void seen_end(struct seen *s);
/* With which key this owner's marks are made. */
void seen_key(const struct shelf *shelf, uint8_t key[MARK]);
/* Of this sandbox; NULL: none has it. */
struct seen_file *seen_find(const struct seen *s, const uint8_t mark[MARK]);
/* For the next checkpoint: one that was found; a new one of this sandbox, whose pieces are copied. */
void seen_again(struct seen *s, struct seen_file *f);
void seen_add(struct seen *s, const uint8_t mark[MARK], uint64_t size, struct span pieces);
/* Those, and behind them what there was. What fails is logged: the next one is told all. */
void seen_write(struct seen *s, const struct shelf *shelf);

#endif
