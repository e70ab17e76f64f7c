/* What the judge keeps, for the files of this room. Names point into the owner's arena. */
#ifndef PROXY_JUDGE_STATE_H
#define PROXY_JUDGE_STATE_H

#include "policy/policy.h"
#include "proxy/judge/judge.h"
#include "proxy/wire_ticket.h"

enum {
    XID_BUCKETS = 4096,
    FRONT_EXCHANGES_MAX = 256, /* open at once for one sandbox, at all of its fronts together, */
    FRONT_CONNECTS_MAX = 256,  /* and so many that wait for a leaf */
    FRONT_LEAFS_MAX = 512,
    SPKI_MAX = 1024,
    DENIED_LEAFS = 32, /* leafs for hosts no rule names: so many at once, and so many an hour */
    SANDBOXES_MAX = 10000,
    UPSTREAMS_EACH = 1024,   /* of the places told to the carrier (WIRE_UPSTREAMS_MAX), one sandbox's */
    SANDBOX_LABELS = 16 + 1, /* and the lane of one of its commands */
};
#define SANDBOX_BODIES_MAX (256ull * 1024 * 1024) /* bytes of bodies read whole, at once, for one sandbox */

struct sandbox {
    struct sandbox *next;
    unsigned refs; /* the table's, a front's and each exchange's */
    struct account *account;
    struct egress *egress[EGRESS_WHOSE]; /* references; NULL: no limit (accounts/egress.h) */
    struct span name, session;
    size_t nlabels;
    struct label label[16];
    bool has_token;
    struct digest token_hash, older[WIRE_TOKENS_OLDER];
    size_t nolder;
    struct span reach; /* what it may reach of what the policy lets it: proxy/reach/ */
    uint64_t generation;
    bool started;    /* by the warden: it has a generation */
    bool ended;      /* it was; nothing is sent for it any more */
    bool frozen;     /* its writes are stopped */
    bool stubs_over; /* a lease that a stub gave it was revoked, or one has leaked: no other is given */
    uint64_t body_bytes;
    unsigned leafs_left;
    uint64_t leafs_since; /* monotonic ms up to which leafs_left was refilled */
    struct arena text;
};

/* A CONNECT that waits for its leaf. */
struct connect {
    struct connect *next;
    struct account *of;
    uint64_t xid;
    struct wire_step by;
    char host[HTTP_HOST_MAX + 1];
    size_t nhost;
    uint16_t port;
};

struct leaf {
    struct leaf *next;
    uint64_t born;
    struct span host, der, ca;
    uint8_t bytes[];
};

struct front {
    struct front *next;
    uint64_t instance;
    struct sandbox *sandbox; /* NULL: not known yet, or over */
    bool over;               /* the session it was bound to has ended: it serves no other one */
    struct span info; /* all that the parent said of it: its name and, of a front of one command, which that is */
    struct span name;
    struct span lane;     /* of one command of its sandbox, which it serves alone; empty: of none */
    struct wire_step one; /* which that is */
    uint8_t spki[SPKI_MAX];
    size_t nspki, nexchanges, nleafs;
    bool held_back;                                                /* not read, because its sandbox has overspent */
    uint64_t refused_since, refused_last, refused_n, refused_more; /* record.c: in this second, from ms; last xid */
    uint64_t said_of;      /* the id that what it said last of a step was about, and */
    struct wire_step said; /* which one: what comes next of that id is of it */
    struct connect *connects;
    struct leaf *leafs; /* newest use first */
    uint8_t name_bytes[];
};

struct account;
struct egress;
struct exchange;
struct image;
struct lease_table;
struct upstreams;
struct backlog;

struct judge {
    struct judge_ports ports;
    struct {
        uint64_t inline_wait_ms, expires_ms, body_max;
        bool allow_reads, disclose_rules;
        bool shadow; /* decide and record, and let everything pass without credentials of ours */
        char desk_url[256];
    } config;
    struct image *image; /* the policy of now, or NULL */
    struct sandbox *sandboxes;
    size_t nsandboxes, nexchanges;
    struct front *fronts;
    struct exchange *by_xid[XID_BUCKETS];
    struct exchange *timed; /* those with a deadline */
    uint64_t reviews;       /* asked for so far */
    uint64_t alarm;         /* what ports.wake was last told, as a time; 0: none */
    bool carrier, keeper, ledger, store_lost, silent, ending;
    bool welcomed;       /* by the ledger, as the parent knows */
    bool told;           /* who the sandboxes are: until then one that is not known may well be there */
    bool broken;         /* an exchange is, in this turn */
    bool stub_turn;      /* one that asked for a stub's lease asks no more, in this turn */
    bool thawed, frozen; /* the ledger said that writes may leave; that an operator has frozen them */
    /* When the first word was said to the ledger since it last said one, by ports.clock, and later by all the time
     * that was spent on turns since: it could not have been heard then. 0: none. */
    uint64_t unheard_us;
    struct {
        struct account *pays; /* NULL: nobody */
        uint64_t since_us;
        uint64_t began_us;
    } turn;
    struct {
        enum role_id to;
        uint64_t instance, xid;
        bool nobody;
        struct dynbuf nowhere;
    } post; /* post.h */
    uint32_t carrier_boot;
    uint8_t stub_key[2 * ID_BYTES]; /* of session tokens: stubs/token.c */
    uint64_t policies;              /* images so far */
    struct upstreams *upstreams;
    struct lease_table *leases;
    struct egress *egress; /* all counts */
    uint64_t egress_questions;
    struct dynbuf egress_tenants; /* as the settings say them */
    struct backlog *backlog;
};

/* Who it is to the policy, in the lane of one of its commands (empty: its own); own: room for its labels then. */
struct subject sandbox_who(const struct sandbox *s, struct span lane, struct label own[SANDBOX_LABELS]);
/* NULL: it is gone. */
struct front *judge_front(const struct judge *j, uint64_t instance);
/* See that judge_tick is called in so many ms, or before. */
void judge_wake_in(struct judge *j, uint64_t ms);

#endif
