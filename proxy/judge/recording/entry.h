/* One line of a recording: what happened to the judge, and when. */
#ifndef PROXY_JUDGE_ENTRY_H
#define PROXY_JUDGE_ENTRY_H

#include "common/msg.h"
#include "proxy/words.h"

enum entry_kind {
    ENTRY_NONE = 0,
    ENTRY_START,  /* what follows is for a new judge; id: MSG_VERSION */
    ENTRY_CONFIG, /* payload: KEY=VALUE */
    ENTRY_PEER,   /* a channel stands; payload: its info */
    ENTRY_GONE,
    ENTRY_IN, /* a frame; body: what its descriptor held */
    ENTRY_OUT,
    ENTRY_TICK,
};

struct entry {
    enum entry_kind kind;
    uint64_t now, wall, clock; /* as struct judge_ports tells them */
    enum role_id role;         /* from or to */
    uint64_t instance, id;
    uint16_t type;
    struct span payload, body; /* borrowed */
    bool has_body;
};

void entry_put(struct dynbuf *b, const struct entry *e);
/* Borrows from the message. -1: not one, or cut short. */
int entry_get(struct msg_in *m, struct entry *e) MUSTCHECK;

#endif
