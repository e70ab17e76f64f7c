/* What a backend of the store has to do: the functions of store.h, with their bounds already checked and what is made
 * of a call, its key or a text in the log, already made. Only backends and store.c include this. */
#ifndef BROKER_STORE_OPS_H
#define BROKER_STORE_OPS_H

#include "broker/store/store.h"

enum { BSTORE_END_TEXT_MAX = 2048, BSTORE_WHY_MAX = 256 };

struct bstore_ops {
    void (*close)(struct bstore *s);
    const char *(*why)(struct bstore *s);
    enum bstore_result (*chat)(struct bstore *s, const struct bstore_chat *in, struct bstore_chatted *out);
    enum bstore_result (*claim)(struct bstore *s, const struct id *worker, uint64_t ms, struct claim *out);
    enum bstore_result (*ended)(struct bstore *s, const struct id *worker);
    enum bstore_result (*extend)(struct bstore *s, const struct claim *c, bool *cancelled);
    enum bstore_result (*release)(struct bstore *s, const struct claim *c, uint64_t after_ms);
    enum bstore_result (*load)(struct bstore *s, const struct claim *c, struct arena *a, struct bstore_turn *out);
    enum bstore_result (*step)(struct bstore *s, const struct claim *c, uint64_t n, struct span kind,
                               uint64_t *attempts);
    enum bstore_result (*plan)(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_plan *p,
                               const struct digest *key);
    enum bstore_result (*ask)(struct bstore *s, const struct claim *c, uint64_t n, struct span word,
                              const struct used *most);
    enum bstore_result (*budgets)(struct bstore *s, struct span tenant, struct budgets_stand *out);
    enum bstore_result (*spent)(struct bstore *s, const struct claim *c, const struct used *used,
                                const struct bstore_asked *asked);
    enum bstore_result (*stricter)(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                                   enum call_class class);
    enum bstore_result (*call)(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                               const struct bstore_settled *how);
    enum bstore_result (*settle)(struct bstore *s, const struct claim *c, uint64_t n,
                                 const struct bstore_settle *what);
    enum bstore_result (*log)(struct bstore *s, const struct claim *c, const struct bstore_event *event, size_t n,
                              uint64_t *seq);
    enum bstore_result (*finish)(struct bstore *s, const struct claim *c, enum turn_end end, struct span why);
    enum bstore_result (*cancel)(struct bstore *s, struct span tenant, const struct id *turn);
    enum bstore_result (*turn)(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                               struct bstore_turn_row *out);
    enum bstore_result (*events)(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t epoch,
                                 uint64_t after, struct arena *a, struct bstore_log *out);
    enum bstore_result (*messages)(struct bstore *s, struct span tenant, const struct id *conversation,
                                   uint64_t after, struct arena *a, struct bstore_messages *out);
    enum bstore_result (*queued)(struct bstore *s, struct span tenant, const struct id *conversation, struct arena *a,
                                 struct bstore_messages *out);
    enum bstore_result (*conversations)(struct bstore *s, struct span tenant, const struct id *after, struct arena *a,
                                        struct bstore_conversations *out);
    enum bstore_result (*lately)(struct bstore *s, struct span tenant, const struct id *only, struct arena *a,
                                 struct bstore_conversations *out);
    enum bstore_result (*fork)(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t messages,
                               struct id *out);
    enum bstore_result (*record)(struct bstore *s, const struct claim *c, struct span lines);
    enum bstore_result (*recorded)(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                                   struct bstore_recorded *out);
    enum bstore_result (*replay)(struct bstore *s, struct span tenant, const struct id *turn,
                                 struct bstore_chatted *out);
    enum bstore_result (*live)(struct bstore *s, const struct bstore_live *in, struct bstore_chatted *out);
    enum bstore_result (*replayed)(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                                   const struct bstore_call *call, struct arena *a, struct bstore_replayed *out);
    enum bstore_result (*turns)(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                                struct arena *a, struct bstore_turns *out);
    enum bstore_result (*usage)(struct bstore *s, struct span tenant, const struct bstore_usage_ask *ask,
                                struct arena *a, struct bstore_usage *out);
    enum bstore_result (*tenant)(struct bstore *s, struct span after, struct arena *a, struct span *out);
    enum bstore_result (*waiting)(struct bstore *s, uint64_t ms, struct bstore_waiting *out);
    uint64_t (*pulse)(struct bstore *s);
    enum bstore_result (*sweep)(struct bstore *s);
};

static inline struct span claim_tenant(const struct claim *c)
{
    return span_of(c->tenant, c->tenant_n);
}

/* The role of a message that has nothing but results of the calls in the one before it. */
#define BSTORE_RESULTS SPAN("results")

/* The event of a turn that is over: its type, and its body in text (BSTORE_END_TEXT_MAX bytes). */
struct bstore_event bstore_end_event(const struct id *turn, enum turn_end end, struct span why, char *text);
/* The message that tells the next turn of calls with no end, whose words are text (recalled_begin); in out, which is
 * begun here. False: no memory. */
bool bstore_recalled(struct dynbuf *text, struct dynbuf *out) MUSTCHECK;
/* Of a turn on the queue, and of a step that is begun once more. */
struct bstore_event bstore_queued_event(const struct id *turn, char *text);
struct bstore_event bstore_again_event(const struct id *turn, uint64_t step, uint64_t attempt, char *text);

#endif
