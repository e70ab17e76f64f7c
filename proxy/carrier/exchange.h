/* One decided request on its way upstream and back.
 *
 *   M_FORWARD ─► AWAIT_CREDENTIAL ─► FORWARD (address, connection, head with the credential, body; answer's head)
 *             ─► SCRUB (answer's body) ─► M_RESULT, always exactly once
 *
 * Events set fields and call carry_resume; each step looks at the fields and says what comes next.
 * Only carry_end frees; after a call that may end it, the exchange is not touched again. */
#ifndef CARRIER_EXCHANGE_H
#define CARRIER_EXCHANGE_H

#include "proxy/carrier/carrier.h"
#include "proxy/carrier/scrub/decode.h"
#include "proxy/carrier/meter/meter.h"
#include "proxy/carrier/range.h"
#include "proxy/carrier/websocket.h"
#include "proxy/walk.h"

enum {
    READY_MAX = 2 * 1024 * 1024, /* answer bytes that wait for the front's credit: one input buffer, once decoded */
    CONN_IN = 96 * 1024,         /* the most input kept of an upstream: more than one read and one TLS record */
    INTERIM_MAX = 8,             /* 1xx answers before the real one */
    PIECE = 64 * 1024,           /* of a body, at a time */
    NO_KEEPER_MS = 2000,         /* for a credential, while there is no keeper */
    REUSE_ONCE_MS = 1000,        /* older connections may be stale, and what is sent once has no second try */
};

/* One range of a searched answer. */
struct part {
    struct range asked, wide;
    char sent[RANGE_TEXT]; /* what the request that left asks for; empty: for no part */
    enum range_fit fit;    /* RANGE_WRONG: the answer is no part */
    struct range_part part;
};

/* States: one setter each, in states.c, where the changes are that may be. First, of the connection upstream. */
enum link_state {
    LINK_NONE = 0,
    LINK_NAMING,    /* its name was asked for */
    LINK_ADDRESSED, /* its addresses are checked */
    LINK_DIALLING,  /* one of them */
    LINK_HANDSHAKE, /* TLS */
    LINK_UP,        /* verified where it must be: it can be written to */
    LINK_POOLED,    /* the same, of a connection that was kept */
    LINK_LOST,      /* it ended; what came can still be read */
};
/* Of the request. */
enum sent_state {
    SENT_NOTHING = 0,
    SENT_BEFORE, /* on a connection that was lost; on this one nothing */
    SENT_HEAD,   /* at least begun */
    SENT_ALL,
};
/* Of the answer. */
enum answer_state {
    ANSWER_NONE = 0,
    ANSWER_BEGUN, /* bytes came */
    ANSWER_HEAD,  /* understood */
    ANSWER_WHOLE, /* the last byte came */
    ANSWER_CUT,   /* it ended before that: what came is handed on, and marked as not all */
};
/* Of its way to the front. */
enum delivery_state {
    DELIVERY_NONE = 0,
    DELIVERY_BEGUN,
    DELIVERY_ENDED,
    DELIVERY_NOBODY, /* the front is gone or has cancelled: a sent write goes on, for the record */
};

/* Of the tokens in the answer. From SWAP_DUE to SWAP_TOLD nothing of it goes to the front. */
enum swap_state {
    SWAP_NONE = 0, /* it has none, or not this answer */
    SWAP_DUE,      /* it is read whole */
    SWAP_ASKED,    /* the keeper has them and makes leases */
    SWAP_TOLD,     /* judge and ledger write down whose the leases are */
    SWAP_DONE,
};

struct swapping;
struct exchange {
    struct carrier *carrier;
    struct exchange *next; /* in its bucket */
    uint64_t xid;
    enum walk_step step, waited;
    struct front *front;
    enum link_state link;
    enum sent_state sent;
    enum answer_state answer;
    enum delivery_state delivery;
    enum swap_state swap;
    struct timer *timer; /* for the credential, once it was asked for; then for the leases of the answer's tokens */

    /* what is asked */
    uint8_t *payload; /* of M_FORWARD; f, at the end, borrows from it */
    struct upstream *upstream;
    struct cred *cred;
    uint64_t refused; /* the version of its value that the upstream refused, so that another was asked for; 0: none */
    struct cred *renewed; /* what came then */

    struct meter meter;

    /* the body */
    uint64_t size;     /* ~0: not known */
    struct span whole; /* inline, or the mapped descriptor */
    struct span map;
    struct dynbuf stream; /* came, not yet written */
    uint64_t body_out, body_came;
    size_t owed;     /* written, not yet credited */
    bool body_ended; /* all of it has come */

    /* the connection */
    struct addr to[UPSTREAM_ADDRS]; /* checked for this exchange */
    size_t nto, tried;
    struct addr addr;
    unsigned trust;       /* upstreams.changes when the connection was verified */
    enum conn_event lost; /* CONN_EOF, CONN_TRUNCATED or CONN_FAILED of LINK_LOST */
    struct conn *conn;
    struct websocket *websocket; /* of a WebSocket upgrade */

    /* the answer */
    struct http_body in;
    size_t seen;
    unsigned interim;
    uint16_t status;
    bool keep_alive; /* the connection may serve another one after it */
    bool flows;      /* of unknown length, or nothing to wait for: the head goes at once */
    bool folded;     /* its head had folded lines */
    bool text, digests, covered;
    struct part part;
    struct dynbuf head;        /* wire_answer, encoded */
    struct scrub_stream scrub; /* its set: all that this origin was ever given; NULL: nothing */
    struct decode *decode;
    struct swapping *swapping; /* swapping.c */
    struct rpc_answer rpc;     /* of an answer that goes on with another id */
    struct dynbuf ready, kept; /* kept fails for good where there is too much to keep */
    uint64_t credit, in_bytes, out_bytes;
    uint64_t head_ms; /* when its head had come */

    /* why it ends, if not well */
    const char *code;
    char why[300];

    struct wire_forward f; /* what is asked; last, for carry_new clears all but the request's fields */
};

#include "proxy/carrier/steps.h"

#endif
