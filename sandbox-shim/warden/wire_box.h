/* What a sandbox is to be, in messages (proxy/msgs.h: wire_box). Written and read in this order. */
#ifndef SANDBOX_SHIM_WARDEN_WIRE_BOX_H
#define SANDBOX_SHIM_WARDEN_WIRE_BOX_H

#include "common/msg.h"

enum {
    BOX_NAME_MAX = 63,
    BOX_DIGEST_MAX = 71, /* "sha256:" and 64 digits */
    BOX_MEMORY_MIN_MIB = 64,
    BOX_PIDS_MIN = 8,
    BOX_FILES_MIN = 64,
    BOX_DISK_MIN_MIB = 1,
    /* when nothing else is asked for */
    BOX_MEMORY_MIB = 1024,
    BOX_PIDS = 256,
    BOX_CPU_PERCENT = 100,
    BOX_DISK_MIB = 512,
    BOX_FILES = 4096,
    BOX_EGRESS_MIN_BYTES = 1024,
    BOX_EXTRAS_MAX = 768, /* so that all sandboxes fit into one list */
};

#define BOX_EGRESS_MAX  (UINT64_C(1) << 50)
#define BOX_IDLE_MAX_MS (UINT64_C(7) * 86400 * 1000)

struct wire_box {
    struct span name; /* 1 to BOX_NAME_MAX of a-z 0-9 . _ - */
    uint64_t memory;  /* bytes; 0 in an order alone: its cgroup holds it */
    uint64_t pids;    /* processes and threads; the same */
    uint64_t disk;    /* bytes of its workspace, which is in memory; its other places have an eighth of it each */
    uint64_t files;   /* descriptors of each process */
    uint64_t idle_ms; /* paused for so long its files are put aside, and it ends; 0: never */
    uint64_t egress_requests, egress_bytes; /* that the judge lets it send and be sent; 0: no limit */
    struct span image;  /* the name of its image, of the same letters; empty: the machine's own files */
    struct span digest; /* of these: sha256:HEX of the image's manifest, of the list of packages; empty: unknown */
    struct span lane;   /* by which it sends through the gateway, of the same letters; empty: it has no network */
    struct span extras; /* what else it has (proxy/extras/), as the parent gives it; empty: nothing */
};

void wire_put_box(struct dynbuf *b, const struct wire_box *x);
/* -1: not what it may be. order: a limit that a cgroup holds may be 0. The spans are borrowed. */
int wire_get_box(struct msg_in *m, struct wire_box *x, bool order) MUSTCHECK;
/* sha256:HEX, in small letters. */
bool box_digest_ok(struct span s);
/* The name alone. */
bool box_name_ok(struct span s);

#endif
