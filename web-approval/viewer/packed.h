/* What the viewer lists of a package (a gzipped tar): written by the viewer, who unpacks it, and read by the desk,
 * who never does. Names are the package's own, and so anybody's: who took a viewer over chooses them, too. */
#ifndef WEB_APPROVAL_VIEWER_PACKED_H
#define WEB_APPROVAL_VIEWER_PACKED_H

#include "common/dynbuf.h"
#include "common/msg.h"

enum packed_type {
    PACKED_NONE = 0,
    PACKED_FILE,
    PACKED_FOLDER,
    PACKED_LINK,
    PACKED_HARD_LINK,
    PACKED_OTHER,
    PACKED_TYPES
};

enum {
    PACKED_FILES_MAX = 5000,          /* more are not shown of one */
    PACKED_MANIFEST_MAX = 128 * 1024, /* bytes of its package.json */
    PACKED_LIST_MAX = 2 * 1024 * 1024,
    PACKED_NAME_MAX = 4096,
};
#define PACKED_BYTES_MAX (512ull * 1024 * 1024) /* of it, unpacked */

struct packed_file {
    enum packed_type type;
    uint32_t mode; /* 0 to 07777 */
    uint64_t size; /* of a file */
    struct span name, target;
};

/* The list: at first the package.json (the one at the top, the last of several), and how many there are. */
void packed_begin(struct dynbuf *out, unsigned manifests, struct span manifest);
void packed_put(struct dynbuf *out, const struct packed_file *f);

/* Reading it. -1: it is no list. What is read borrows. */
struct packed {
    struct msg_in m;
    unsigned manifests;
    struct span manifest;
};
int packed_open(struct span list, struct packed *p) MUSTCHECK;
/* 1: the next one, 0: that was all, -1: it is no list. */
int packed_next(struct packed *p, struct packed_file *f) MUSTCHECK;
/* Is it one of so many files, whole? */
bool packed_good(struct span list, uint32_t files);

#endif
