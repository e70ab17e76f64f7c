/* What a sandbox and its tenant may still send and be sent. Both counts are taken from before anything leaves, and
 * what was taken is on disk by then: the ledger keeps the counts, a little ahead, and as they are once nothing of
 * them is under way. Whoever of the two is past its limit refuses.
 *
 *   enforce: one request is taken ── release: the carrier is told that it is metered, and bytes are taken for it
 *   ──► M_EGRESS_GIVE when they are on disk ──► M_EGRESS_ASK: it needs more ──► ... ──► the rest is given back */
#ifndef PROXY_JUDGE_EGRESS_H
#define PROXY_JUDGE_EGRESS_H

#include "proxy/egress/egress.h"
#include "proxy/judge/state.h"

/* More than anybody passes: a request or an answer that says it is longer is over any limit. */
#define EGRESS_BYTES_MAX (UINT64_C(1) << 50)
enum {
    EGRESS_PART_MIN = 16 * 1024, /* bytes that a request takes at a time: an eighth of what is left, between these */
    EGRESS_PART_MAX = 256 * 1024,
    EGRESS_AHEAD = 1024 * 1024,  /* bytes that are on disk before they are taken, at most, */
    EGRESS_AHEAD_REQUESTS = 16,  /* and requests: a judge that dies leaves so many counted that never were */
    EGRESS_AHEAD_PART = 16,      /* and never more of either than this part of the limit */
    EGRESS_SETTLE_MS = 250,      /* nothing is under way for so long: the ledger is told the count as it is */
    EGRESS_STORE_MS = 10 * 1000, /* the longest that a request waits for the ledger */
};

/* A count, by reference: of the sandboxes that it is of, and of each exchange that took from it. */
struct egress {
    struct egress *next;
    unsigned refs;
    enum egress_whose whose;
    struct span name;
    bool gone;  /* nobody is counted with it any more but what is under way */
    bool known; /* whose limits these are is known; else the ledger alone spoke of it */
    uint64_t epoch, per_ms;
    uint64_t most[EGRESS_MEASURES]; /* 0: no limit */
    uint64_t used[EGRESS_MEASURES], kept[EGRESS_MEASURES], asked[EGRESS_MEASURES];
    uint64_t question; /* that the ledger was asked; 0: none is open */
    uint64_t idle_ms;  /* since when nothing is under way, or the disk is behind */
    size_t flying;
    uint64_t out; /* bytes that were taken and may come back */
    uint8_t name_bytes[];
};

/* An exchange's part. */
struct egress_part {
    struct egress *of[EGRESS_WHOSE];
    uint64_t epoch[EGRESS_WHOSE];
    bool counted;                                /* as a request */
    bool metered;                                /* the carrier was told so */
    bool spent;                                  /* how many bytes it was is known */
    uint64_t was;                                /* that */
    uint64_t given;                              /* bytes that were taken for it, */
    uint64_t of_it[EGRESS_WHOSE];                /* of each count, as it is now; */
    uint64_t owed;                               /* of these not told to the carrier: they are not on disk, */
    uint64_t due[EGRESS_WHOSE][EGRESS_MEASURES]; /* until so much is */
    uint64_t since_ms;                           /* that they are owed */
    bool busy;                                   /* what others have under way is in its way, and comes back */
    struct egress *past;                         /* what refused it, and by which measure */
    enum egress_measure by;
};

struct exchange;
/* Settings: the limits of tenants. -1: they are none. */
int egress_config(struct judge *j, struct span text) MUSTCHECK;
/* The counts that this sandbox's requests are taken from, as it is now. -1: no memory. */
int egress_of_sandbox(struct judge *j, struct sandbox *s, const struct wire_sandbox *w) MUSTCHECK;
void egress_unref(struct egress *e); /* NULL is fine */
/* It is gone: the next one of its name begins at nothing. */
void egress_forget(struct judge *j, struct span sandbox);
bool egress_is_metered(const struct exchange *x);
/* Take one request, unless that was done; bytes: of its body, as far as that is known. False: there is none left. */
bool egress_request(struct exchange *x, uint64_t bytes) MUSTCHECK;
/* The carrier has it: take bytes for it. */
void egress_begin(struct exchange *x, uint64_t body);
/* M_EGRESS_ASK of the carrier's. */
int egress_more(struct exchange *x, struct span payload) MUSTCHECK;
/* The carrier said how many bytes it was. */
void egress_spent(struct exchange *x, uint64_t bytes);
void egress_end(struct exchange *x);
/* M_EGRESS, M_EGRESS_KEPT of the ledger's; it is gone; it can be asked again. */
int egress_told(struct judge *j, struct span payload) MUSTCHECK;
int egress_kept(struct judge *j, uint64_t question, struct span payload) MUSTCHECK;
void egress_ledger_gone(struct judge *j);
void egress_ledger_back(struct judge *j);
/* Tell the ledger what is settled. When to look again, monotonic ms; UINT64_MAX: need not. */
uint64_t egress_look(struct judge *j, uint64_t now);
/* "its 100 requests", "its tenant's 10 MiB in 24 h": the limit that refused x; and until when, Unix ms, 0: for good.
 */
struct span egress_words(struct exchange *x, uint64_t *until_ms);
void egress_free_all(struct judge *j);

#endif
