/* What the desk is told when the judge has heard of it, too: who is told that a lease is revoked, that a token is
 * good or that writes are frozen finds it so with the next request.
 *
 *   turn committed -> news to the judge, M_HEARD n -> its echo -> the desk's messages of that turn
 *
 * One question is on its way at a time; what comes meanwhile waits for the next one. */
#ifndef PROXY_LEDGER_HEARD_H
#define PROXY_LEDGER_HEARD_H

#include "proxy/ledger/outbox.h"

struct heard {
    struct outbox box[2]; /* what waits: box[at] for the question that was asked, the other for the next one */
    unsigned at;
    uint64_t number;  /* of the last question */
    bool asked, news; /* it has no answer yet; the judge was told something in this turn, or since it was asked */
};

void heard_init(struct heard *h);
void heard_free(struct heard *h);
/* The judge is told something of this turn. */
void heard_news(struct heard *h);
/* A message for the desk: 1, it is kept (fd is duplicated); 0, it goes out now, for there is nothing to wait for; -1,
 * there is no room: a judge that has let so many wait is as one that is gone (heard_release), and then it goes out.
 */
int heard_keeps(struct heard *h, uint16_t type, uint64_t id, struct span payload, int fd) MUSTCHECK;
/* The turn is over: must the judge be asked, with h->number? */
bool heard_asks(struct heard *h) MUSTCHECK;
/* The judge has echoed this number: what waited is sent. -1: nobody asked that. */
int heard_answer(struct heard *h, uint64_t number, outbox_send_fn *send, void *arg) MUSTCHECK;
/* There is no judge that could answer (the next one hears all of it before its first request), or another desk comes.
 */
void heard_release(struct heard *h, outbox_send_fn *send, void *arg);

#endif
