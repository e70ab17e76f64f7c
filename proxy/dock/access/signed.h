/* Signed URLs of files, as E2B's SDK makes them: who has one may read or write one file of one sandbox, until it
 * expires. The signature is a digest in which the token of the sandbox is, so that only who has that token can tell
 * whether it is right: of those that the desk has found good, or that were given out, so many are remembered here, in
 * memory. A URL whose token is not among them opens nothing. */
#ifndef PROXY_DOCK_ACCESS_SIGNED_H
#define PROXY_DOCK_ACCESS_SIGNED_H

#include "proxy/dock/dock.h"

enum {
    SIGNED_TOKENS = 512, /* remembered; past them, of the tenant with most the one that was used longest ago goes */
    SIGNED_TENANT_TOKENS = 128, /* the same, of one tenant */
    SIGNED_PATH_MAX = 1024      /* bytes of a path that is signed */
};

/* What a URL says that is signed. */
struct signed_url {
    struct span box; /* empty: any */
    struct span path, user, expires;
    bool write;
    struct span signature;
};

/* The token opens the sandbox, as the desk says or will know in a moment. A token of another form is not kept. */
void signed_keep(struct dock *d, struct span box, struct span token, const struct digest *tenant);
/* Of those that are kept, the one that it is signed with: *box lives as long as that is kept. False: none is. */
bool signed_find(struct dock *d, const struct signed_url *u, struct span *box, struct digest *token) MUSTCHECK;
/* The caller x shows a signed URL: as if it had brought the token. False: answered. */
bool signed_take(struct call *x, struct span signature) MUSTCHECK;

#endif
