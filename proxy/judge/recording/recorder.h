/* Writes down what the judge hears and says of some exchanges. Without any it costs one comparison a frame. */
#ifndef PROXY_JUDGE_RECORDER_H
#define PROXY_JUDGE_RECORDER_H

#include "proxy/judge/judge.h"
#include "proxy/judge/recording/entry.h"

struct recorder {
    struct judge *judge;
    /* Takes what was written; bytes are borrowed. -1: there is no room for it, and the recording ends. */
    int (*sink)(void *arg, struct span bytes);
    void *arg;
    uint64_t from, upto; /* exchanges with these numbers, of one front; both 0: none */
};

/* From now on these, after all that a new judge must know to go on from here; both 0: none. */
void recorder_set(struct recorder *r, uint64_t from, uint64_t upto);
/* A frame that came, before the judge has it; its descriptors stay as they are. */
void recorder_in(struct recorder *r, enum role_id role, uint64_t instance, const struct frame *f);
void recorder_out(struct recorder *r, enum role_id role, uint64_t instance, uint16_t type, uint64_t id,
                  struct span payload);
/* ENTRY_PEER, ENTRY_GONE, ENTRY_TICK */
void recorder_event(struct recorder *r, enum entry_kind kind, enum role_id role, uint64_t instance, struct span info);

#endif
