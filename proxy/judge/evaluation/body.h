/* A request's body: none (NULL), bytes, or a sealed memfd that is mapped to be read. Counted: what is parsed from one
 * points into it, and whoever keeps that keeps a reference, as struct evaluation does. */
#ifndef PROXY_JUDGE_BODY_H
#define PROXY_JUDGE_BODY_H

#include "proxy/wire.h"

struct body {
    unsigned refs;
    enum wire_body kind; /* BODY_INLINE or BODY_FD; one that streams through is not here */
    int fd;              /* with BODY_FD; owned */
    struct span bytes;   /* with BODY_FD mapped, else borrowed from what lives as long as every reference */
};

/* One reference to it; NULL: no memory. The bytes stay the caller's, and must outlive it. */
struct body *body_inline(struct span bytes) MUSTCHECK;
/* Take a sealed memfd of exactly this size. Takes fd over, also on failure, which is NULL. */
struct body *body_of_memfd(int fd, uint64_t size, uint64_t max) MUSTCHECK;
/* One reference more; b may be NULL, as for all of these. */
struct body *body_ref(struct body *b) MUSTCHECK;
/* One less; with the last one its bytes are gone. *b becomes NULL. */
void body_unref(struct body **b);
struct span body_bytes(const struct body *b);
enum wire_body body_kind(const struct body *b);
/* To be sent along; -1: it is no memfd. Stays the body's. */
int body_fd(const struct body *b);

#endif
