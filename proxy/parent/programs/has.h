#ifndef PROXY_PARENT_PROGRAMS_HAS_H
#define PROXY_PARENT_PROGRAMS_HAS_H

#include "proxy/extras/wire_extras.h"

/* What a sandbox has beside its limits (programs/extras.c): devices, and locks of directories that are kept. */
struct box_has {
    char tenant[EXTRAS_TENANT_MAX + 1];
    uint64_t device[EXTRAS_DEVICES_MAX * EXTRAS_OF_POOL_MAX];
    size_t ndevices, nkept;
    int kept[EXTRAS_MOUNTS_MAX];
};

#endif
