/* What one conversation has of another. */
#ifndef BROKER_STORE_SQL_FORK_H
#define BROKER_STORE_SQL_FORK_H

#include "broker/store/sql/sq.h"

/* A conversation that is new has the first so many messages of another one, if it may. */
enum bstore_result sq_copy(struct sq *l, struct span tenant, const struct sq_id *from, const struct sq_id *to,
                           uint64_t messages) MUSTCHECK;
/* Which models may see a conversation, as of bstore_chat; out is born with BSTORE_PRIVATE_MAX. */
enum bstore_result sq_private(struct sq *l, struct span tenant, const struct sq_id *id, struct dynbuf *out) MUSTCHECK;

#endif
