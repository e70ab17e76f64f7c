/* The keeper as a process: what main.c and door.c share. */
#ifndef PROXY_KEEPER_KEEPER_H
#define PROXY_KEEPER_KEEPER_H

#include "common/http/http.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "common/role/role.h"
#include "proxy/keeper/sources/fetch.h"
#include "proxy/keeper/keep.h"
#include "proxy/keeper/lease/verify.h"
#include "proxy/keeper/mint.h"
#include "proxy/keeper/passkey/passkeys.h"
#include "proxy/keeper/release.h"
#include "proxy/keeper/sources/tokens.h"
#include "proxy/msgs.h"

struct caller;
struct parked;
struct keeper {
    struct loop *loop;
    struct role *role;
    struct chan *judge, *carrier, *ledger, *fetcher, *desk;
    struct passkeys *passkeys;
    struct webauthn_site site; /* of the page; spans into the next */
    char desk_url[512];
    struct keep keep;
    struct sources *sources;
    struct fetches *fetches;
    struct tokens *tokens;
    struct parked *parked; /* parked.h */
    size_t nparked, parked_bytes;
    struct releaser *releaser;
    struct mint *mint;
    struct secret *lease_root;
    struct signer *lease_keys; /* of what sandboxes sign */
    struct policy *policy;
    struct span image;
    struct timer *end; /* told to end */
    uint64_t owner;
    enum source_kind master_from; /* SOURCE_NONE: it lies in dir */
    int dir;
};

/* main.c: the names of the credentials that have a value, to the parent. */
void keeper_tell_secrets(struct keeper *k);
void keeper_note(struct keeper *k, const char *act, struct span name, unsigned uid);
/* An M_RELEASE of the judge's, which came just now or whose value was waited for. */
void keeper_release(struct keeper *k, uint64_t xid, struct span payload);
/* passkey/desk.c: the desk's questions; where the page is; whose passkeys there are, to the desk. */
void keeper_desk(void *arg, struct chan *c, struct frame *f);
void keeper_site(struct keeper *k, struct span url);
void keeper_tell_passkeys(struct keeper *k);
/* swap.c: M_SWAP of the carrier's. */
void keeper_swap(struct keeper *k, struct frame *f);
/* door.c: what is not to be looked for any more is forgotten. */
void keeper_expire(struct keeper *k);
/* door.c: what this caller waited for is known. */
void keeper_caller_told(struct caller *c);
/* door.c: serve `countersign secret` on this Unix listener; takes fd over. */
void keeper_door_open(struct keeper *k, int fd);

#endif
