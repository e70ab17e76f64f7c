/* The commits and tags in the pack of a push, for a person to read (gitformat-pack, version 2). What a sandbox sent
 * is walked object by object: headers strictly, streams inflated to find their end, nothing but commits and tags
 * kept. Git sends most commits as deltas of another commit of the same pack: these are put together; a delta of
 * anything else is only counted. Whatever is over a limit or malformed ends the walk with words, never with a
 * failure: it is the upstream that judges a pack, this only shows it. */
#ifndef PROXY_JUDGE_PACK_H
#define PROXY_JUDGE_PACK_H

#include "common/arena.h"

enum {
    PACK_LISTED_MAX = 200,           /* commits and tags kept */
    PACK_TEXT_MAX = 256 * 1024,      /* of one of them; a larger one is counted and not kept */
    PACK_KEPT_MAX = 8 * 1024 * 1024, /* of all of them */
    PACK_OBJECTS_MAX = 200 * 1000,
    PACK_INFLATE_MAX = 64 * 1024 * 1024, /* 0.2 s at worst, while the lane waits; git puts commits first */
    PACK_ID_MAX = 32,
};

struct pack_entry {
    size_t at;        /* where its object begins: what a delta names */
    struct span text; /* the object's content */
    uint8_t id[PACK_ID_MAX];
    bool is_tag;
};

struct pack {
    size_t id_bytes;          /* 20, or 32 in a repository of object-format sha256 */
    uint32_t declared, count; /* objects said to be there, and met */
    uint32_t commits, trees, blobs, tags, deltas;
    uint32_t unlisted;   /* commits and tags met that are not in the list */
    const char *stopped; /* NULL: read to its end, and nothing is after it; else why not */
    struct pack_entry *entry;
    size_t nentries;
    size_t max_listed; /* the limits above; a test may lower these three before pack_read, after pack_init */
    uint32_t max_objects;
    uint64_t max_inflate;
    struct arena arena; /* of the entries and their texts */
};

void pack_init(struct pack *p, bool sha256);
/* The bytes from "PACK" to the end. They are borrowed for the call only. */
void pack_read(struct pack *p, struct span bytes);
void pack_free(struct pack *p);

#endif
