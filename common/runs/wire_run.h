/* What the warden says of a command to the ledger: M_RUN_BEGIN before it is ordered, M_RUN_END when it is over.
 * Written and read in this order. Of variables there are names alone. */
#ifndef COMMON_RUNS_WIRE_RUN_H
#define COMMON_RUNS_WIRE_RUN_H

#include "common/id.h"
#include "common/msg.h"

enum {
    RUN_WORDS_KEPT = 64,  /* words of a command in its record, and names of variables ... */
    RUN_BYTES_KEPT = 4096 /* ... and bytes of either */
};

/* Words, of which the first are kept. */
struct wire_words {
    struct span word[RUN_WORDS_KEPT]; /* the last may be cut */
    size_t n;
    uint64_t all, cut;    /* words there were; bytes of them that are not here */
    struct digest digest; /* of all of them, each with its length (digest_add_field) */
};
/* Of these: the bytes in front of `until` (0: all of each). */
void wire_words_of(struct wire_words *w, const struct span *word, size_t n, uint8_t until);

struct wire_run {
    struct span sandbox, image,
        packages;              /* image: its name, or empty; packages: sha256:HEX of what it is, or empty */
    struct span lane;          /* of its sandbox; empty: it has no network */
    uint64_t generation, born; /* of its sandbox now, and of its start */
    uint32_t number;
    struct span dir, user;
    uint8_t input; /* enum talk_input */
    bool detached;
    uint64_t timeout_ms;
    struct wire_words argv, env;
};
void wire_put_run(struct dynbuf *b, const struct wire_run *r);
int wire_get_run(struct msg_in *m, struct wire_run *r) MUSTCHECK;

/* What one of its outputs was. */
struct wire_said {
    uint64_t bytes;
    struct digest digest;
};
struct wire_run_end {
    uint8_t how, code; /* enum sb_end; status or signal */
    uint64_t user_us, system_us, memory_kib;
    struct wire_said out[2]; /* as they were delivered; of a detached command as it said them */
    uint64_t cut;            /* bytes it said that were not */
    struct span why;
};
void wire_put_run_end(struct dynbuf *b, const struct wire_run_end *e);
int wire_get_run_end(struct msg_in *m, struct wire_run_end *e) MUSTCHECK;

#endif
