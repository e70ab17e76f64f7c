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
#ifndef POLICY_IMAGE_H
#define POLICY_IMAGE_H

#include "policy/policy.h"

enum { IMG_VERSION = 1 };
#define IMG_MAGIC "CSPOLICY"
#define IMG_NONE  UINT32_MAX

struct img_str {
    uint32_t off, n;
};
struct img_range { /* of the table that the field is about */
    uint32_t first, n;
};

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
    IMG_TABLES
};

struct img_head {
    uint8_t magic[8];
    uint32_t version, size;
    uint8_t digest[32]; /* SHA-256 of the image with these 32 bytes zero */
    struct img_str name;
    struct img_range table[IMG_TABLES]; /* first: byte offset of the table */
};

/* head and tail: literal bytes before the first and after the last wildcard, less the
 * separator beside a "**" (which may stand for nothing); deep: where the only "**" is, and after:
 * how many segments follow it (0: unknown). All for a quick no. */
struct img_glob {
    struct img_str text;
    uint32_t head, tail, literal, deep, after;
};
struct img_pair { /* a label, query or header name and the values it may have */
    struct img_str key;
    struct img_range values; /* IMG_GLOB */
};
enum { HOST_EXACT = 0, HOST_ONE_LABEL, HOST_ANY_LABELS };
struct img_host {
    struct img_str text; /* without the "*." or "**." */
    uint32_t kind, port; /* port 0: not said */
};
struct img_scope {
    struct img_str name;
    struct img_range sandboxes, labels; /* IMG_GLOB, IMG_PAIR */
};
enum { SCHEME_HTTPS = 1, SCHEME_HTTP = 2 };
enum { TRI_UNSET = 0, TRI_TRUE, TRI_FALSE };
enum { GIT_UPLOAD_PACK = 1, GIT_RECEIVE_PACK = 2 };
struct img_match {
    struct img_range hosts, ports, methods, paths, query, header, ops, resources, git_refs;
    uint32_t schemes, effects;                   /* bit masks, 0: not said; effect e is bit 1 << e */
    uint32_t git_force, git_delete, git_service; /* TRI_*, TRI_*, mask of GIT_* */
    uint32_t any_place;                          /* an except: what it does not say about place is any */
};
struct img_rule { /* sorted by id: the lowest index is the lowest id */
    struct img_str id, file;
    uint32_t line, verdict, floor;
    uint32_t scoped;
    struct img_range scopes; /* IMG_SCOPE_REF */
    struct img_range match;  /* IMG_MATCH: exactly one */
    struct img_range except; /* IMG_MATCH */
    uint32_t credential, approver, reason_required;
    uint64_t within_ms, inline_wait_ms;
    struct img_str say, instead;
};
struct img_slot { /* open addressing; n 0: free. Keys are not kept: a collision costs a look, no more */
    uint32_t hash;
    struct img_range rules; /* IMG_RULE_REF */
};
struct img_place {
    struct img_str host;
    uint32_t port, scheme;
    struct img_range path; /* IMG_GLOB: none or one */
};
struct img_cred {
    struct img_str name, arg, header, format, user;
    uint32_t source, basic;
    struct img_range only; /* IMG_PLACE */
};
struct img_upstream {
    struct img_str host, address, ca;
    uint32_t port, cleartext;
    struct img_range allow_private; /* IMG_STR */
};
struct img_approver {
    struct img_str name;
    struct img_range operators; /* IMG_STR */
};
enum { BODY_NONE = 0, BODY_GIT_RECEIVE_PACK };
enum { QUERY_ANY = 0, QUERY_EXACT };
struct img_op { /* one row of a pack: what a request of this shape is */
    struct img_str op, query, content_type, resource, strip, summary;
    struct img_str could_op, could_method, could_path; /* allowed only where a rule could let that happen */
    struct img_range methods, path;                    /* IMG_STR; IMG_GLOB: exactly one */
    uint32_t effect, dialect, body, query_rule;
    uint64_t body_max;
};
struct img_resource {
    struct img_str host, text; /* empty host: any */
};
struct img_pack {
    struct img_str name;
    struct img_range hosts, ops, resources; /* no hosts: every host */
    uint32_t keep_slash;
};

struct policy {
    const uint8_t *base;
    const struct img_head *head;
    const void *table[IMG_TABLES];
    uint32_t n[IMG_TABLES];
};

static inline struct span img_span(const struct policy *p, struct img_str s)
{
    return span_of(p->base + s.off, s.n);
}

/* Record i of table t; the caller knows the type, policy_open knew that i exists. */
const void *img_at(const struct policy *p, enum img_table t, uint32_t i);
size_t img_record_size(enum img_table t);

/* The keys of the rule index (FNV-1a over lower-cased bytes). */
uint32_t img_hash_begin(uint8_t kind);
uint32_t img_hash_add(uint32_t h, struct span s);
uint32_t img_hash_end(uint32_t h);
/* Rules under a key; n 0 when there are none. */
struct img_range img_find(const struct policy *p, uint32_t hash);

#endif
