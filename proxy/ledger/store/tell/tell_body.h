/* What a message says, in the form of who is told: facts, each short and visible, none of a body and none that is a
 * secret; and where to open it. Pure. */
#ifndef PROXY_LEDGER_STORE_TELL_TELL_BODY_H
#define PROXY_LEDGER_STORE_TELL_TELL_BODY_H

#include "common/dynbuf.h"
#include "proxy/tell/wire_tell.h"

enum { TELL_FACT_MAX = 256, TELL_WHOSE_MAX = 5 };

struct tell_facts {
    const char *event, *words; /* "ticket.waiting", "A request waits for a decision" */
    struct span desk;          /* the page's URL, without '/' at its end */
    uint64_t at_ms;
    struct span ticket, state, sandbox, tenant, op, effect, method, host, resource, by;
    struct span asked; /* of one that escalates: who is asked now, too */
    uint16_t port;
    bool waits;                    /* people are asked for something */
    uint64_t since_ms, expires_ms; /* 0: there is none */
    uint64_t count, waiting;       /* of many: how many messages it stands for; how many requests wait now */
    size_t nwhose;                 /* whose most of those are */
    struct {
        struct span sandbox;
        uint64_t n;
    } whose[TELL_WHOSE_MAX];
};

/* buttons: of Slack, a request that waits can be denied there.
 * title: at most TELL_TITLE_MAX bytes of ASCII in one line. body: at most TELL_BODY_MAX. Both are initialised here.
 * -1: no memory, or it is longer. */
int tell_write(enum tell_kind k, bool buttons, const struct tell_facts *f, struct dynbuf *title,
               struct dynbuf *body) MUSTCHECK;

#endif
