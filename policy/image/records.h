/* The records of a compiled policy (image.h): fixed sizes, 32-bit offsets from its
 * start, native byte order. A zero is the narrower meaning everywhere. */
#ifndef POLICY_IMAGE_RECORDS_H
#define POLICY_IMAGE_RECORDS_H

#include <stdint.h>

struct img_str {
    uint32_t off, n;
};
struct img_range { /* of the table that the field is about */
    uint32_t first, n;
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
    uint32_t resident;                  /* 1: only upstreams of these regions may be reached */
    struct img_range regions;           /* IMG_STR */
};
/* One thing that must hold of a body. */
enum { COND_JSON = 0, COND_FORM, COND_GRAPHQL, COND_JSONRPC, COND_MULTIPART, COND_KINDS };
enum { COND_TEXT = 0, COND_AT_MOST, COND_AT_LEAST, COND_EXISTS, COND_ABSENT, COND_OPS };
struct img_cond {
    uint32_t kind, op;
    struct img_str key;            /* a JSON pointer, a form field's name, or as parsers.h says of the kind */
    struct img_range texts, globs; /* IMG_STR and IMG_GLOB: one of them */
    uint64_t number;               /* at most 2^53 */
};
enum { SCHEME_HTTPS = 1, SCHEME_HTTP = 2 };
enum { TRI_UNSET = 0, TRI_TRUE, TRI_FALSE };
enum { GIT_UPLOAD_PACK = 1, GIT_RECEIVE_PACK = 2 };
struct img_match {
    struct img_range hosts, ports, methods, paths, query, header, ops, resources, git_refs;
    uint32_t schemes, effects;                   /* bit masks, 0: not said; effect e is bit 1 << e */
    uint32_t git_force, git_delete, git_service; /* TRI_*, TRI_*, mask of GIT_* */
    uint32_t any_place;                          /* an except: what it does not say about place is any */
    uint32_t ws;                                 /* 1: WebSocket upgrades, and nothing else */
    struct img_range ws_protocols;               /* IMG_GLOB; none: any */
    struct img_range body;                       /* IMG_COND: all of them */
    uint32_t query_only;                         /* 1: the query has no names but these */
    struct img_range query_names, written;       /* IMG_STR; written: each of paths with its {name}s; or none */
};
struct img_rule { /* sorted by id: the lowest index is the lowest id */
    struct img_str id, file;
    uint32_t line, verdict, floor;
    uint32_t scoped;
    struct img_range scopes; /* IMG_SCOPE_REF */
    struct img_range match;  /* IMG_MATCH: exactly one */
    struct img_range except; /* IMG_MATCH */
    uint32_t credential, approver, reason_required;
    uint32_t ws_send; /* enum ws_kinds: what may be sent after an upgrade */
    uint64_t within_ms, inline_wait_ms, ws_max, ws_total, ws_within_ms;
    struct img_str say, instead;
    struct img_range limits;  /* IMG_LIMIT */
    struct img_range windows; /* IMG_WINDOW: none is always; else it is in force in any of them */
    uint32_t over;            /* IMG_RULE: the hold that takes what is past a limit; IMG_NONE: it is denied */
    uint8_t grant_uses, grant_effects, grant_named; /* struct grant_terms */
    uint8_t quorum, self, step_up;                  /* struct approval_terms; 0, 0, 0 of what does not hold */
    uint8_t gates;                                  /* IMG_GATE i is bit 1 << i */
    uint8_t diff;                                   /* enum diff_wish */
    uint32_t escalate;                              /* IMG_ESCALATE i is bit 1 << i */
    uint64_t grant_within_ms;
};
enum { GRANT_USES_MOST = 100, GRANT_WITHIN_MOST = 8 * 3600 * 1000 }; /* of a grant, whatever a rule says */
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
    struct img_str name, arg, header, where, format, user;
    uint32_t source, slot, basic, certificate, refuse;
    struct img_str region, service;
    uint32_t sign;   /* enum sign_scheme */
    uint32_t beside; /* IMG_CRED or IMG_NONE */
    uint32_t lease;  /* enum lease_format; LEASE_NONE: there are none of it */
    uint32_t require_lease, freeze_on_leak;
    uint32_t stub;             /* enum stub_kind; STUB_NONE: its leases are given by hand alone */
    struct img_range only;     /* IMG_PLACE */
    struct img_range settings; /* IMG_SETTING */
    struct img_str template;   /* of SIGN_HMAC, */
    struct img_range fields;   /* IMG_SETTING: and the fields that it sets */
    uint32_t hash, encoding, key_coding, secret_parts; /* enum sign_hash, sign_coding, sign_coding, sign_secret */
};
struct img_setting {
    struct img_str key, value;
    uint32_t from; /* enum source_kind */
};
struct img_stub {              /* a place that is answered with leases of a credential */
    struct img_str host, path; /* path: exactly it; with a slash at its end, and not "/" alone, what begins with it */
    uint32_t port, scheme;     /* SCHEME_* */
    uint32_t kind;             /* enum stub_kind */
    uint32_t credential;       /* IMG_CRED */
};
struct img_upstream {
    struct img_str host, address, ca, crl, region;
    uint32_t port, cleartext, only_tls13;
    struct img_range allow_private, pins; /* IMG_STR; a pin has 32 bytes */
};
struct img_approver {
    struct img_str name;
    struct img_range operators, groups; /* IMG_STR */
};

struct img_escalate {
    uint32_t approver, unused; /* IMG_APPROVER */
    uint64_t after_ms;
};

struct img_gate {
    struct img_str name;
    struct img_range program; /* IMG_STR: its full path, and its arguments */
    uint64_t timeout_ms;
    uint32_t kind, body;        /* enum gate_kind; is it shown the body? */
    struct img_str url, secret; /* https://...; the name of a stored secret */
    uint32_t api, credential;   /* enum gate_api; IMG_CRED */
    struct img_str model, instructions;
    struct img_str host; /* of url, as upstreams: writes it, */
    uint32_t port;       /* and its port */
};

/* Packs. */
enum { BODY_NONE = 0, BODY_GIT_RECEIVE_PACK, BODY_GRAPHQL, BODY_MCP, BODY_KINDS };
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

/* What bounds a rule in amount and in time. */
/* limits: of a rule; one record a bound. key: a form field's name or a JSON pointer, empty for requests. */
enum { LIMIT_REQUESTS = 0, LIMIT_FORM, LIMIT_JSON, LIMIT_MEASURES };
enum { LIMIT_PER_SANDBOX = 0, LIMIT_PER_SESSION, LIMIT_PER_ALL, LIMIT_PERS };
struct img_limit {
    uint32_t measure, per;
    struct img_str key;
    uint64_t max, window_ms;
};

/* when: of a rule. Minutes of the day in the zone's own time; from >= to goes over midnight and belongs to the day it
 * begins on. */
enum { WINDOW_DAYS_ALL = 0x7f }; /* bit 0 is Monday */
struct img_window {
    uint32_t days, from_min, to_min;
    uint32_t zone; /* IMG_ZONE */
};
/* A zone's offsets from UTC, ascending; before the first and from `until_s` on nothing is known, and a window neither
 * fits nor does not fit. */
struct img_shift {
    int64_t from_s;   /* Unix time */
    int64_t offset_s; /* of local time from UTC */
};
struct img_zone {
    struct img_str name;
    struct img_range shifts; /* IMG_SHIFT */
    int64_t until_s;
};

#endif
