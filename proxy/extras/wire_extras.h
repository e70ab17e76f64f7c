/* What a started sandbox has beside its limits: labels, directories, devices. The desk says it and the parent, which
 * has the configuration, gives it; the warden passes it on (wire_box, M_BOX) and looks at nothing of it. */
#ifndef PROXY_EXTRAS_WIRE_EXTRAS_H
#define PROXY_EXTRAS_WIRE_EXTRAS_H

#include "common/msg.h"

enum {
    EXTRAS_NAME_MAX = 63, /* bytes of each name */
    EXTRAS_TENANT_MAX = 64,
    EXTRAS_AT_MAX = 255,    /* bytes of a place inside */
    EXTRAS_MOUNTS_MAX = 8,  /* directories of one sandbox */
    EXTRAS_DEVICES_MAX = 4, /* pools that one sandbox takes from */
    EXTRAS_OF_POOL_MAX = 8, /* devices that it takes of one */
    EXTRAS_BYTES_MAX = 768, /* of all of it, as it is written: all sandboxes are in one list */
};

struct extras_mount {
    struct span name, at;
};
struct extras_device {
    struct span pool;
    unsigned count;
};

struct wire_extras {
    struct span tenant;          /* whose sandbox it is, which says what it may have */
    struct span session;         /* a digest of its session's name, or empty */
    struct span task, residency; /* labels; empty: none */
    struct extras_mount mount[EXTRAS_MOUNTS_MAX];
    struct extras_device device[EXTRAS_DEVICES_MAX];
    size_t nmounts, ndevices;
};

void wire_put_extras(struct dynbuf *b, const struct wire_extras *x);
/* The spans are borrowed. -1: not what it may be. No bytes at all are nothing but empty. */
int wire_get_extras(struct span bytes, struct wire_extras *x) MUSTCHECK;
/* 1 to 63 of a-z 0-9 . _ -, and begins with a letter or digit. */
bool extras_name_ok(struct span s);
/* A place for a mount inside: below /mnt or the home, each part plain, and no path that leads anywhere else. */
bool extras_at_ok(struct span s);

#endif
