/* Who is told outside the page (notify: of countersign.yaml): what the parent says of each to the ledger, which
 * writes down what is to be told, and to the keeper, which alone knows where that goes. */
#ifndef PROXY_TELL_WIRE_TELL_H
#define PROXY_TELL_WIRE_TELL_H

#include "proxy/wire.h"

enum {
    TELL_TARGETS_MAX = 8, /* each has one message on its way at most, and so one job */
    TELL_NAME_MAX = 63,
    TELL_TENANTS_MAX = 16,
    TELL_TO_MAX = 8,        /* addresses of one mail */
    TELL_ADDRESS_MAX = 254, /* bytes of one */
    TELL_URL_MAX = 2048,
    TELL_CA_MAX = 64 * 1024,
    TELL_TITLE_MAX = 200,
    TELL_BODY_MAX = 8 * 1024,
    TELL_ID_MAX = 64,
    TELL_WORDS_MAX = 480,
    TELL_PEOPLE_MAX = 32, /* who may press a button of one */
    TELL_WHO_MAX = 47,    /* bytes of who that is in Slack, and of an operator's name */
    TELL_SECRET_MAX = 128 /* bytes of a stored secret's name */
};

enum tell_kind { TELL_NO_KIND = 0, TELL_WEBHOOK, TELL_SLACK, TELL_MAIL, TELL_KINDS };
/* Bits: what somebody wants to be told of. */
enum tell_event {
    TELL_WAITING = 1,
    TELL_DECIDED = 2,
    TELL_EXPIRED = 4,
    TELL_CANCELLED = 8,
    TELL_EXECUTED = 16,
    TELL_FAILED = 32,
    TELL_UNKNOWN = 64,
    TELL_FROZEN = 128,
    TELL_ESCALATED = 256, /* of what TELL_WAITING is told of, too, once others are asked */
    TELL_EVENTS = 512
};
/* What became of one try. */
enum tell_outcome { TELL_NOT_NOW = 0 /* it may be tried again */, TELL_TOLD, TELL_NEVER /* it must not be */ };

struct wire_tell_target {
    struct span name;
    enum tell_kind kind;
    struct digest of; /* all that the configuration says of it: what was written down for another is not told to it */
    uint32_t events;
    uint64_t give_up_ms;
    bool buttons;    /* of Slack: what comes back is signed, so a message has a button that denies */
    uint32_t budget; /* so many requests that wait are told of one by one in an hour; 0: as many as there are */
    size_t ntenants; /* 0: of all */
    struct span tenant[TELL_TENANTS_MAX];
};
void wire_put_tell_target(struct dynbuf *b, const struct wire_tell_target *t);
int wire_get_tell_target(struct msg_in *m, struct wire_tell_target *t) MUSTCHECK;

/* Where it goes; the keeper's alone. */
struct wire_tell_place {
    struct span name;
    enum tell_kind kind;
    struct digest of;
    struct span
        url; /* webhook: https://..; mail: smtp://HOST:PORT or smtps://HOST:PORT; slack: empty, the secret is it */
    struct span secret; /* name of a stored one: what signs, Slack's URL, or the relay's password (empty: none) */
    struct span ca_pem; /* empty: the operator's roots */
    size_t ncidrs;
    struct span cidr[16];
    struct span from, user;
    bool tls_required; /* of smtp:// */
    size_t nto;
    struct span to[TELL_TO_MAX];
    struct span signing; /* of Slack: name of the stored secret that signs what comes back; empty: nothing does */
    size_t npeople;      /* whose word counts there, and which operator that is */
    struct {
        struct span who, name;
    } people[TELL_PEOPLE_MAX];
};
void wire_put_tell_place(struct dynbuf *b, const struct wire_tell_place *p);
int wire_get_tell_place(struct msg_in *m, struct wire_tell_place *p) MUSTCHECK;

/* An absolute URL without user, fragment or anything but visible ASCII: its parts, which borrow; port: of the scheme
 * where none is written. -1: it is none. */
struct tell_url {
    struct span scheme, host;
    uint16_t port;
};
int tell_url_parse(struct span url, struct tell_url *out) MUSTCHECK;
/* "localhost", or an address of 127.0.0.0/8: without TLS nothing else is asked. */
bool tell_url_is_loopback(const struct tell_url *u);
/* Somebody in Slack: TEAM/USER, by their ids ("T012AB3C4/U9ZX8Y7"), never by a name that they may change. */
bool tell_slack_who_ok(struct span who);
/* A mail address as it may stand in an SMTP command and a header: LOCAL@DOMAIN of plain ASCII. */
bool tell_address_ok(struct span a);

#endif
