/* What the keeper wants to be fetched, and what came of it: between keeper, fetcher and job. */
#ifndef PROXY_WIRE_FETCH_H
#define PROXY_WIRE_FETCH_H

#include "proxy/wire.h"

enum {
    FETCH_SETTINGS_MAX = 64,
    FETCH_SETTING_MAX = 16 * 1024,
    FETCH_VALUE_MAX = 8 * 1024 + 2, /* of a value with the line end of an editor; what it may be the keeper decides */
    FETCH_WHY_MAX = 480,
    FETCH_TIMEOUT_MS = 10 * 1000, /* where the policy says nothing */
    FETCH_TIMEOUT_MAX_MS = 25 * 1000,
    FETCH_HOSTS_MAX = 8,
    FETCH_INPUT_MAX = 224 * 1024,
    FETCH_GATE =
        200, /* in place of a source's kind: a program that is shown the input, and says what it thinks of it */
    FETCH_TELL = 201, /* likewise: a message to people (proxy/keeper/tell), over HTTP or SMTP; its value is what
                        became of it */
    FETCH_OIDC = 202, /* the same: a token endpoint is given the code of somebody who signs in, and says who it is */
    FETCH_GATE_HOOK = 203, /* as FETCH_GATE, but a server is sent the input; */
    FETCH_GATE_MODEL = 204 /* or a model is told it (proxy/fetcher/job/gates/model.h) */
};
/* A held request is shown to it: it has an input. */
static inline bool fetch_is_gate(unsigned kind)
{
    return kind == FETCH_GATE || kind == FETCH_GATE_HOOK || kind == FETCH_GATE_MODEL;
}

/* Settings are those of the policy (struct setting), each with the secret itself where the policy says where it is.
 */
struct wire_setting {
    struct span key, value;
};
struct wire_fetch {
    uint8_t kind;            /* enum source_kind, or one of the above: what is asked and how */
    uint64_t timeout_ms;     /* at most FETCH_TIMEOUT_MAX_MS */
    struct wire_upstream to; /* host empty: nowhere */
    /* That a program may reach, in the order of the policy: host, port, address and ranges, for its TLS is its own.
     */
    size_t nhosts;
    struct wire_upstream host[FETCH_HOSTS_MAX];
    size_t nsettings;
    struct wire_setting setting[FETCH_SETTINGS_MAX];
    struct span input; /* what a gate reads, and nobody else */
};
void wire_put_fetch(struct dynbuf *b, const struct wire_fetch *f);
int wire_get_fetch(struct msg_in *m, struct wire_fetch *f) MUSTCHECK;
/* Whose addresses are looked up for it, in this order: to, or its hosts. NULL past the last. */
const struct wire_upstream *wire_place(const struct wire_fetch *f, size_t i);
/* Setting i of those with this key, in their order; empty when there is none. */
struct span wire_setting(const struct wire_fetch *f, struct span key, size_t i);
/* The same as a number; or what is said when it is not there, or none. */
uint64_t wire_setting_u64(const struct wire_fetch *f, struct span key, uint64_t otherwise);

struct wire_fetched {
    bool ok;
    struct span value;    /* empty unless ok */
    uint64_t lifetime_ms; /* as the answer says; 0: it does not */
    /* To be kept in place of the secret that was asked with (a refresh token), ok or not. Of a source that is asked
     * with none: to be told again as the setting "held" with the next question, and kept nowhere; empty: nothing. */
    struct span keep;
    bool busy; /* unless ok: nobody began with it, or said that there is no room for it: it may be asked again */
    struct span why; /* unless ok: words for the operator, which hold no secret */
};
void wire_put_fetched(struct dynbuf *b, const struct wire_fetched *f);
int wire_get_fetched(struct msg_in *m, struct wire_fetched *f) MUSTCHECK;

#endif
