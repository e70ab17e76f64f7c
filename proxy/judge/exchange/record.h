/* What goes into the ledger's chain. While the ledger is away, outcomes and audit
 * records wait here, within a cap, and follow when it is back: what was sent must
 * not lose its record to a restart. */
#ifndef PROXY_JUDGE_RECORD_H
#define PROXY_JUDGE_RECORD_H

#include "proxy/judge/exchange/exchange.h"
#include "proxy/judge/post.h"

enum { BACKLOG_FRAMES = 4096, BACKLOG_EACH = 1024 /* of one sandbox */, BACKLOG_BYTES = 8 * 1024 * 1024 };
enum { BACKLOG_BYTES_EACH = BACKLOG_BYTES / 4 }; /* past this one sandbox's wait no more */
enum { RECORD_PATH_MAX = 2048, RECORD_TYPE_MAX = 100, RECORD_REFS_MAX = 1024 };

struct backlog;
struct backlog *backlog_new(void) MUSTCHECK;
void backlog_free(struct backlog **b);
/* The ledger is back: send all that waited. */
void backlog_flush(struct judge *j);
/* M_OUTCOME_OK: what was kept of this exchange, to be said again to the next ledger, may go. */
void record_written(struct judge *j, uint64_t xid);

/* What a record says in bytes of its own; it must live as long as the record. */
struct record_text {
    uint8_t path[RECORD_PATH_MAX], type[RECORD_TYPE_MAX], refs[RECORD_REFS_MAX];
};
void record_fill(const struct exchange *x, struct wire_record *r, struct record_text *t);
void record_audit(struct exchange *x);                     /* decided, not sent */
void record_outcome(struct exchange *x);                   /* what came of what may have been sent */
void record_sent(struct exchange *x);                      /* its first byte left */
void record_message(struct exchange *x, const char *code); /* one that was not passed on */
void record_websocket(struct exchange *x);                 /* its end */

/* What was refused without becoming an exchange: by a front, or a CONNECT. At most REFUSED_RECORDS a second and front
 * are recorded; how many more there were follows in one record, with the next refusal after that second or when the
 * front goes. */
struct refused {
    uint64_t xid;
    enum walk_step step;
    struct span code, scheme, host; /* scheme and host may be empty */
    uint16_t port;
    struct wire_step by;
};
enum { REFUSED_RECORDS = 50 };
void record_refused(struct judge *j, struct front *f, const struct refused *r);
void record_refused_rest(struct judge *j, struct front *f);

#endif
