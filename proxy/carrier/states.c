/* Which changes the states of an exchange may go through. */
#include "common/state.h"

#include "proxy/carrier/exchange.h"

static const struct state_row link_states[] = {
    [LINK_NONE] = {"none", STATE(LINK_NAMING) | STATE(LINK_ADDRESSED)},
    [LINK_NAMING] = {"naming", STATE(LINK_ADDRESSED)},
    [LINK_ADDRESSED] = {"addressed", STATE(LINK_DIALLING) | STATE(LINK_POOLED)},
    [LINK_DIALLING] = {"dialling", STATE(LINK_DIALLING) | STATE(LINK_HANDSHAKE) | STATE(LINK_UP)},
    [LINK_HANDSHAKE] = {"handshake", STATE(LINK_UP)},
    [LINK_UP] = {"up", STATE(LINK_LOST)},
    [LINK_POOLED] = {"pooled", STATE(LINK_LOST)},
    /* It may break after its end. A kept one that was lost unused: once more, on a fresh one. */
    [LINK_LOST] = {"lost", STATE(LINK_LOST) | STATE(LINK_ADDRESSED)},
};
static const struct state_row sent_states[] = {
    [SENT_NOTHING] = {"nothing", STATE(SENT_HEAD)},
    [SENT_BEFORE] = {"before", STATE(SENT_HEAD)},
    [SENT_HEAD] = {"head", STATE(SENT_ALL) | STATE(SENT_BEFORE)},
    [SENT_ALL] = {"all", STATE(SENT_BEFORE)},
};
static const struct state_row answer_states[] = {
    [ANSWER_NONE] = {"none", STATE(ANSWER_BEGUN)},
    /* Asked once more: dial.c. */
    [ANSWER_BEGUN] = {"begun", STATE(ANSWER_HEAD) | STATE(ANSWER_NONE)},
    [ANSWER_HEAD] = {"head", STATE(ANSWER_WHOLE) | STATE(ANSWER_CUT)},
    [ANSWER_WHOLE] = {"whole", 0},
    [ANSWER_CUT] = {"cut", 0},
};
static const struct state_row delivery_states[] = {
    [DELIVERY_NONE] = {"none", STATE(DELIVERY_BEGUN) | STATE(DELIVERY_NOBODY)},
    [DELIVERY_BEGUN] = {"begun", STATE(DELIVERY_ENDED) | STATE(DELIVERY_NOBODY)},
    [DELIVERY_ENDED] = {"ended", 0},
    [DELIVERY_NOBODY] = {"nobody", 0},
};

static const struct state_row swap_states[] = {
    [SWAP_NONE] = {"none", STATE(SWAP_DUE)},
    [SWAP_DUE] = {"due", STATE(SWAP_ASKED)},
    [SWAP_ASKED] = {"asked", STATE(SWAP_TOLD)},
    [SWAP_TOLD] = {"told", STATE(SWAP_DONE)},
    [SWAP_DONE] = {"done", 0},
};

bool carry_may(struct exchange *x, const struct state_kind *k, unsigned from, unsigned to)
{
    bool may = state_may(k, x->xid, from, to);
    if (!may && x->code == NULL)
        (void)carry_fail(x, walk_code(x->step), "the carrier has lost track of the %s", k->what);
    return may;
}

#define SETTER(what)                                                                                                 \
    void carry_##what(struct exchange *x, enum what##_state to)                                                      \
    {                                                                                                                \
        if (carry_may(x, STATE_KIND(#what, what##_states), x->what, to))                                             \
            x->what = to;                                                                                            \
    }
SETTER(link)
SETTER(sent)
SETTER(answer)
SETTER(delivery)
SETTER(swap)
