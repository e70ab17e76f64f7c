/* The states of one exchange. Each changes in one function, which marks the change in the trace. One that cannot be
 * (states.c has those that can) leaves the state as it was and breaks the exchange: no step runs for it any more, and
 * at the end of this turn it is refused or, when the carrier has it, cancelled there. The order of the values counts:
 * they are compared. */
#ifndef PROXY_JUDGE_STATES_H
#define PROXY_JUDGE_STATES_H

struct exchange;

/* What it waits for, which exchange_wait (exchange.h) changes. */
enum x_wait {
    X_RUNS = 0,
    X_BODY,      /* the front reads the body whole */
    X_PROOF,     /* the keeper looks at the signature of a lease's key */
    X_TICKET,    /* the ledger opens or finds the ticket */
    X_PARKED,    /* somebody decides */
    X_CLAIM,     /* the ledger takes the approval */
    X_INTENT,    /* the ledger writes down what is about to happen */
    X_STUB,      /* the ledger gives the lease that it is answered with */
    X_STUB_TURN, /* until another request of its sandbox has got that */
    X_RESULT,    /* the carrier has it */
};

/* Who asked. */
enum client_state {
    CLIENT_GONE = 0,
    CLIENT_WAITS,
    CLIENT_ANSWERED, /* by the judge; an answer that the carrier relays is a delivery */
    CLIENT_LATER,    /* nobody: what it is answered is kept, for whoever asks for it */
};

/* The request's body. */
enum upload_state {
    UPLOAD_NONE = 0,
    UPLOAD_WHOLE,
    UPLOAD_TO_COME, /* the front has it; from here on it is not, or not all, here */
    UPLOAD_STREAMS, /* through the judge to the carrier */
    UPLOAD_ENDED,   /* its last byte was passed on */
};

/* The signature that it says was made with a lease's key. */
enum proof_state {
    PROOF_NONE = 0,
    PROOF_WANTED, /* the lease may be used like this, if it was */
    PROOF_ASKED,
    PROOF_WRONG,
    PROOF_GIVEN,
};

/* Its ticket, and the approval of that. From CLAIM_ASKED on it is held; from CLAIM_MADE on the approval may be taken.
 */
enum claim_state {
    CLAIM_NONE = 0,
    CLAIM_FACTS_WANTED, /* there is no ticket yet, and the ledger opens none without its facts */
    CLAIM_FACTS_DUE,    /* evaluated again, for its facts were dropped while it waited */
    CLAIM_ASKED,        /* for a ticket */
    CLAIM_ASKED_AGAIN,  /* with its facts */
    CLAIM_TICKET,       /* which x->ticket tells of */
    CLAIM_LOST,         /* the approval was not given to this exchange */
    CLAIM_MADE,
    CLAIM_GRANTED,
};

/* What the ledger is to write down before an allowed effect leaves. From INTENT_ASKED on it may be written. */
enum intent_state {
    INTENT_NONE = 0,
    INTENT_REFUSED,
    INTENT_OVER_LIMIT, /* nothing was written: a limit has no room */
    INTENT_ASKED,
    INTENT_WRITTEN,
};

/* The request on its way. From DELIVERY_FORWARDED on the carrier has it, from DELIVERY_FINISHED on no more. */
enum delivery_state {
    DELIVERY_NONE = 0,
    DELIVERY_OFFERED, /* is being given to the carrier */
    DELIVERY_FORWARDED,
    DELIVERY_SENT,     /* its first byte has left; not told of what may be repeated */
    DELIVERY_SWITCHED, /* answered with 101, which is its result */
    DELIVERY_FINISHED, /* the client has nothing of an answer */
    DELIVERY_RELAYED,  /* the client has at least the answer's head */
    DELIVERY_CLOSED,   /* what followed the 101 has ended */
};

/* Why the carrier was told to drop it. */
enum cancel_state {
    CANCEL_NONE = 0,
    CANCEL_CLIENT_GONE,
    CANCEL_CREDENTIAL,
    CANCEL_FROZEN,
    CANCEL_LEASE,
    CANCEL_POLICY,
    CANCEL_BROKEN
};

/* What follows a 101. */
enum websocket_state {
    WEBSOCKET_NONE = 0,
    WEBSOCKET_ON,     /* an upgrade, and the carrier has it */
    WEBSOCKET_ENDING, /* the carrier was told to end it: nothing more is passed on */
};

void exchange_client(struct exchange *x, enum client_state to);
void exchange_upload(struct exchange *x, enum upload_state to);
void exchange_proof(struct exchange *x, enum proof_state to);
void exchange_claim(struct exchange *x, enum claim_state to);
void exchange_intent(struct exchange *x, enum intent_state to);
void exchange_delivery(struct exchange *x, enum delivery_state to);
void exchange_websocket(struct exchange *x, enum websocket_state to);
/* The first reason stays; the carrier is told once. */
void exchange_cancel(struct exchange *x, enum cancel_state why);

#endif
