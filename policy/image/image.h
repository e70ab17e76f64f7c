/* The compiled policy: one run of bytes that every process maps and none can
 * change. Written by policy/load, judged from in place.
 *
 *      [ head: magic, size, digest, name, table of tables ]
 *      [ table 0: fixed-size records ][ table 1 ] ...
 *      [ bytes of all strings ]
 *
 * A string is an offset and a length; a list is a range of records of one table.
 * policy_open checks every offset, range, index and enumeration once (image.c
 * has one row a field), so that judging may follow them without looking.
 * Native byte order: an image never leaves its machine. */
#ifndef POLICY_IMAGE_IMAGE_H
#define POLICY_IMAGE_IMAGE_H

#include "policy/policy.h"
#include "policy/image/records.h"

enum { IMG_VERSION = 20 };
#define IMG_MAGIC "CSPOLICY"
#define IMG_NONE  UINT32_MAX

enum img_table {
    IMG_STR = 0,
    IMG_GLOB,
    IMG_PAIR,
    IMG_HOST,
    IMG_PORT,
    IMG_SCOPE,
    IMG_SCOPE_REF,
    IMG_MATCH,
    IMG_RULE,
    IMG_RULE_REF,
    IMG_SLOT,
    IMG_CRED,
    IMG_PLACE,
    IMG_UPSTREAM,
    IMG_APPROVER,
    IMG_PACK,
    IMG_OP,
    IMG_RESOURCE,
    IMG_COND,
    IMG_LIMIT,
    IMG_WINDOW,
    IMG_ZONE,
    IMG_SHIFT,
    IMG_SETTING,
    IMG_STUB,
    IMG_GATE,
    IMG_ESCALATE,
    IMG_TABLES
};

struct img_head {
    uint8_t magic[8];
    uint32_t version, size;
    uint8_t digest[32]; /* SHA-256 of all but where the files lie */
    struct img_str name;
    uint64_t learning_until_ms;         /* Unix time; 0: never */
    struct img_range residents;         /* IMG_SCOPE_REF: the scopes that have regions */
    struct img_range table[IMG_TABLES]; /* first: byte offset of the table */
};

struct policy {
    const uint8_t *base;
    const struct img_head *head;
    const void *table[IMG_TABLES];
    uint32_t n[IMG_TABLES];
    uint64_t *never; /* of each rule: in which classes of requests it never fits (prefilter.h) */
};

static inline struct span img_span(const struct policy *p, struct img_str s)
{
    return span_of(p->base + s.off, s.n);
}

/* Record i of table t; the caller knows the type, policy_open knew that i exists. */
const void *img_at(const struct policy *p, enum img_table t, uint32_t i);
size_t img_record_size(enum img_table t);

/* Number i of a list of texts; of a list of globs, as it is written. */
static inline struct span img_text(const struct policy *p, struct img_range texts, uint32_t i)
{
    return img_span(p, *(const struct img_str *)img_at(p, IMG_STR, texts.first + i));
}

static inline struct span img_glob(const struct policy *p, struct img_range globs, uint32_t i)
{
    return img_span(p, ((const struct img_glob *)img_at(p, IMG_GLOB, globs.first + i))->text);
}

/* The number of the rule with this id, or -1. */
int img_rule_named(const struct policy *p, struct span id);

/* Find the tables of an image whose head is known, and check everything that points. False: something points outside.
 */
bool img_check(struct policy *p) MUSTCHECK;
/* The keys of the rule index (FNV-1a over lower-cased bytes). */
uint32_t img_hash_begin(uint8_t kind);
uint32_t img_hash_add(uint32_t h, struct span s);
uint32_t img_hash_end(uint32_t h);
/* Rules under a key; n 0 when there are none. */
struct img_range img_find(const struct policy *p, uint32_t hash);

#endif
