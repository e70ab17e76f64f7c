/* Whose turn it is with a store, where one is moved to another (broker/store/move/). */
#ifndef BROKER_STORE_STATE_H
#define BROKER_STORE_STATE_H

enum bstore_state {
    BSTORE_ABSENT = 0, /* there is none */
    BSTORE_WHOLE,      /* brokers may use it; no other has this value */
    BSTORE_COPYING,    /* what is copied to it is not all there yet */
    BSTORE_MOVED       /* all of it is elsewhere now */
};

#endif
