/* What a held push, a held `npm publish`, or a held push of an image, changes, like a pull request: found out by the
 * git in a sandbox of its own (sandbox-shim/inside/diff/), which reads that one repository or package by the lane
 * that the configuration names. What comes back is held against diff.schema.json and is a result or an error in a
 * word; it belongs to the digest of its ticket. Kept in memory, within limits: another desk has it made again. */
#ifndef WEB_APPROVAL_DIFFS_DIFFS_H
#define WEB_APPROVAL_DIFFS_DIFFS_H

#include "policy/decision.h"
#include "web-approval/page/page.h"

enum {
    DIFFS_MAX = 64,                     /* known of at once: made, or to be made */
    DIFFS_EACH_MAX = 16,                /* of these, of one sandbox */
    DIFFS_BYTES_MAX = 32 * 1024 * 1024, /* of all results together */
    DIFFS_AT_ONCE = 2,                  /* that are being made, of one sandbox one */
    DIFFS_TRIES = 3,                    /* where the warden or a process was lost, and not by what was found */
    DIFFS_RETRY_MS = 3000,              /* between these */
    DIFFS_STALE_MS = 20000,             /* a failure is this old before a look at it begins anew */
    DIFFS_PUSH_MAX = 64 * 1024 * 1024,  /* of a held body */
    DIFFS_RESULT_MAX = 4 * 1024 * 1024,
    DIFFS_NAMES_MAX = 2 * 1024 * 1024, /* of the names of a push's refs: 16 lines of a packet */
    DIFFS_COMMAND_S = 150,
    DIFFS_RESULT_ARENA = 24 * 1024 * 1024, /* for a result, taken apart */
};

/* Of what it is one: the rest is the same for all. */
enum diff_kind { DIFF_OF_NONE = 0, DIFF_OF_PUSH, DIFF_OF_PACKAGE, DIFF_OF_IMAGE };
enum diff_state { DIFF_NONE = 0, DIFF_WAITS, DIFF_RUNS, DIFF_MADE, DIFF_FAILED };

struct diff {
    struct diff *next;
    char ticket[ID_TEXT + 1], sandbox[64]; /* who asked: it pays for what is made */
    struct digest digest;                  /* of the ticket that was made of */
    enum diff_kind kind;
    enum diff_state state;
    unsigned tries;
    size_t nrefs;                             /* of its push; 0: it is none */
    uint64_t not_before_ms, at_ms, used, ran; /* used, ran: turns */
    uint64_t wall_ms;                         /* when it was over, of the clock */
    bool unwanted;                            /* its ticket is decided */
    char said[768];                           /* what why is, where it is not fixed */
    const char *why;     /* DIFF_FAILED: in words; DIFF_MADE: what of it is not there; NULL: it is complete */
    struct dynbuf json;  /* DIFF_MADE: fits the schema */
    struct dynbuf names; /* of its refs, a line each: what is shown does not depend on the body being read again */
};

/* A push, as its body says it; the spans point into that. */
enum { PUSH_REFS = 16 };
struct push {
    struct span old_id[PUSH_REFS], new_id[PUSH_REFS], name[PUSH_REFS];
    size_t n, pack_at;  /* pack_at: bytes before the pack; 0: there is none, each ref is deleted */
    const char *format; /* sha1, sha256 */
};
/* NULL, or why it cannot be read, in words. */
const char *push_read(struct span body, struct push *p) MUSTCHECK;

/* What can be compared of it. */
enum diff_kind diffs_kind(const struct ticket *t);
/* Does its rule ask for one? */
bool diffs_asked(const struct ticket *t);
/* It is to be made, if it is asked for and is not there: at once, or when its turn comes. */
void diffs_want(struct desk *d, const struct ticket *t);
/* What is known of it; NULL: nothing. Until the loop goes on. */
const struct diff *diffs_of(struct desk *d, const struct ticket *t);
/* NULL: nothing of this is in the way of a yes. Else why not, in words. */
const char *diffs_refuse(struct desk *d, const struct ticket *t);
/* Something happened to a ticket; the ledger is there. */
void diffs_event(struct desk *d, struct span ticket);
void diffs_all(struct desk *d);
/* Begin those whose turn it is. */
void diffs_due(struct desk *d, uint64_t now_ms);
/* None is being made. */
void diffs_free(struct desk *d);
/* Told when one is over, if it is set: for who looks at a page. */
extern void (*diffs_over)(struct desk *d, struct span ticket);

/* --- typed.c --------------------------------------------------------------------------------------------------- */
/* NULL, or why a request that publishes is not what its bytes say, in words: its fields let a server read others. */
const char *diff_typed(const struct ticket *t, struct arena *a) MUSTCHECK;

/* --- make.c: the way of one. It ends with diff_made or diff_failed, later or at once -------------------------- */
void diff_make(struct desk *d, struct diff *one);
/* Which refs it is of. False: no memory. */
bool diff_names(struct diff *one, const struct push *p) MUSTCHECK;
void diff_made(struct desk *d, struct diff *one, struct span json);
/* again: it may well be made the next time. */
void diff_failed(struct desk *d, struct diff *one, const char *why, bool again);

/* --- result.c: is it one, and what is missing ------------------------------------------------------------------ */
/* *why: until the next one is read.
 * 1: it is one of this kind (a push's: of so many refs), and *why is what is missing in it, or NULL; 0: it says that
 * there is none, and why; -1: it is none. */
int diff_result(struct span json, enum diff_kind kind, size_t refs, const char **why, bool *again) MUSTCHECK;

/* --- page_diff.c -------------------------------------------------------------------------------------------------
 */
void page_diff(struct exchange *x, const struct view *v);
/* "diff": {...} of a ticket's JSON. */
void diffs_json(struct jsonw *w, struct desk *d, const struct ticket *t);
/* /api/v1/tickets/ID/diff */
void api_ticket_diff(struct exchange *x);

#endif
