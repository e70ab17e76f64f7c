/* The records of packs in a compiled policy (records.h). */
#ifndef POLICY_IMAGE_RECORDS_PACK_H
#define POLICY_IMAGE_RECORDS_PACK_H

#include "policy/image/records.h"

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

#endif
