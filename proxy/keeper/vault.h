/* The sealed store of secrets: STATE/keeper/secrets.sealed, and its copy in memory,
 * sealed there too until one is asked for.
 *
 * Each value: AES-256-GCM under a key derived from the master key, with its name as
 * context; a last seal covers the whole file, so that nothing in it can be moved,
 * dropped or dated otherwise. A rotated secret's last values are kept, because an
 * upstream may still echo them: until VAULT_PREVIOUS newer ones are there, or for a time that was set.
 *
 * Names: VAULT_NAME_MAX of A-Z a-z 0-9 . _ -, not beginning with '.' or '-'.
 * Changes are on disk before they return 0; after -1 the old state stands. Times: Unix ms. */
#ifndef PROXY_KEEPER_VAULT_H
#define PROXY_KEEPER_VAULT_H

#include "common/dynbuf.h"
#include "common/err.h"
#include "common/crypto/secret.h"

enum { VAULT_NAME_MAX = 128, VAULT_MAX = 256, VAULT_PREVIOUS = 3, VAULT_FILE_MAX = 64 * 1024 * 1024 };

struct vault;

/* master: the keeper's master key. first: write an empty store; it must not exist. Borrows dir. */
struct vault *vault_open(int dir, const struct secret *master, bool first, struct err *e) MUSTCHECK;
void vault_free(struct vault **v);

bool vault_name_ok(struct span name);
/* The value now; NULL: none of that name, or no memory. */
struct secret *vault_get(const struct vault *v, struct span name) MUSTCHECK;
/* Value i of those it had before, newest first; NULL past the last. Values deleted since the start are among them. */
struct secret *vault_previous(const struct vault *v, struct span name, size_t i) MUSTCHECK;
/* New, or rotated: the old value becomes the first of the previous ones, which are kept until then (Unix ms, in the
 * future; 0: nothing is said of a time). The value was checked (value.h). -1: neither is written down. */
int vault_set(struct vault *v, struct span name, const struct secret *value, uint64_t until_ms, uint64_t now_ms,
              struct err *e) MUSTCHECK;
/* How long its earlier values are kept from now on, those of today and the next: until then (Unix ms; a moment that
 * is over: they are dropped now), or with 0 as if nothing had been said. A new value says 0. 1 done, 0 no such name,
 * -1. */
int vault_earlier_until(struct vault *v, struct span name, uint64_t until_ms, uint64_t now_ms,
                        struct err *e) MUSTCHECK;
/* Drop those whose time is over. -1 with words: they are gone from memory alone, and from the file with its next
 * change. */
int vault_expire(struct vault *v, uint64_t now_ms, struct err *e) MUSTCHECK;
/* 1 removed, 0 there was none, -1. */
int vault_remove(struct vault *v, struct span name, struct err *e) MUSTCHECK;

/* It was released to the carrier just now; remembered until the end of this process, and told by vault_used: 0,
 * never. */
void vault_use(struct vault *v, struct span name, uint64_t now_ms);
uint64_t vault_used(const struct vault *v, struct span name) MUSTCHECK;

/* For lists: false past the end. */
bool vault_at(const struct vault *v, size_t i, struct span *name, uint64_t *created_ms, uint64_t *changed_ms);
/* How many earlier values it has, and until when they are kept; 0: no moment was set. */
size_t vault_earlier(const struct vault *v, struct span name, uint64_t *until_ms);

#endif
