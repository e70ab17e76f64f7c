/* The leases the ledger told us of: live ones, and dead ones of the last day, so that a text that was one can be told
 * from chance. Found by id, or by the SHA-256 of the text; the text itself is nowhere. */
#ifndef PROXY_JUDGE_LEASES_TABLE_H
#define PROXY_JUDGE_LEASES_TABLE_H

#include "proxy/judge/state.h"
#include "common/lease/wire_lease.h"

enum { LEASE_TAGS_MAX = 4, LEASE_BUCKETS = 4096, LEASE_NEEDLES = 6 /* forms of one tag */, NEEDLE_MAX = 16 };

struct lease {
    struct lease *next_text, *next_id;
    struct id id, parent;
    struct digest meaning, text;
    enum lease_format format;
    enum lease_state state;
    bool untold; /* leaked, and the ledger was not there to be told */
    uint64_t generation, expires_ms, ended_ms;
    struct {
        uint64_t policy; /* by its serial; 0: none was asked yet */
        size_t at;
        bool same;
    } meant; /* check.c: what that policy means by the name of its credential */
    struct span sandbox, session, credential, how, layers; /* layers: as wire_put_layers wrote them */
    uint8_t bytes[];
};

struct lease_table {
    struct lease *by_text[LEASE_BUCKETS], *by_id[LEASE_BUCKETS];
    size_t n, ntags;
    struct lease_tag {
        uint8_t tag[LEASE_TAG];
        struct {
            uint8_t b[NEEDLE_MAX];
            size_t n;
        } needle[LEASE_NEEDLES]; /* as it is, in base64 at its three offsets, in hex of both cases */
    } tag[LEASE_TAGS_MAX];
};

struct lease_table *lease_table_new(void) MUSTCHECK;
void lease_table_free(struct lease_table **t);
/* Add, or replace the one of that id. now_ms: Unix time; where there is no room, one that is long dead goes. -1: no
 * memory, no room, or more tags than one gateway has; then its text is not known, and one
 * that was known by that id is dead. */
int lease_table_put(struct lease_table *t, const struct wire_lease *w, uint64_t now_ms) MUSTCHECK;
struct lease *lease_by_text(const struct lease_table *t, struct span text);
struct lease *lease_by_digest(const struct lease_table *t, const struct digest *text);
struct lease *lease_by_id(const struct lease_table *t, const struct id *id);
/* It and all it came from live, at this Unix time. What it came from must be known. */
bool lease_lives(const struct lease_table *t, const struct lease *l, uint64_t now_ms);

/* Any form of a tag in these bytes: where it begins, or s.n. *as_is: the tag itself is there, in its own letters. */
size_t lease_find(const struct lease_table *t, struct span s, bool *as_is);
/* How many bytes of what came before must be searched again with what follows. */
enum { LEASE_OVERLAP = NEEDLE_MAX - 1 };

#endif
