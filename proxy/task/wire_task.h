/* A kind of task, in a message (proxy/msgs_box.h: wire_task). Written and read in this order. */
#ifndef PROXY_TASK_WIRE_TASK_H
#define PROXY_TASK_WIRE_TASK_H

#include "proxy/extras/wire_extras.h"

enum {
    TASKS_MAX = 32,      /* kinds of tasks */
    TASK_NAME_MAX = 63,  /* bytes of its name, and of its image's */
    TASK_WORDS_MAX = 64, /* of its command */
    TASK_COMMAND_MAX = 32 * 1024,
    TASK_SCHEMA_MAX = 128 * 1024, /* bytes of each schema */
    TASK_TIMEOUT_MAX_S = 86400,
    TASK_TENANTS_MAX = 16,
    TASK_RETRIES_MAX = 5,
    TASK_BLOB_MAX = 300 * 1024, /* bytes that the ledger keeps by their digest; more of a result are not kept */
};

enum task_limits { TASK_LIMITS_USUAL = 0 /* as of any sandbox that is started */, TASK_STRICT, TASK_APPROXIMATE };

struct wire_task {
    struct span kind, image; /* image empty: the machine's own files */
    uint64_t memory, pids, cpu_percent, disk, files, egress_requests,
        egress_bytes; /* 0: as of any sandbox that is started */
    uint64_t timeout_ms;
    enum task_limits limits;
    struct span lane, residency; /* a lane of its sandbox, and a label; empty: none */
    unsigned retries;            /* how often it may begin anew that has no result, whatever its command did */
    struct span tenant[TASK_TENANTS_MAX];
    size_t ntenants; /* none: it is everybody's, unless another kind of this name is a tenant's own */
    struct extras_mount mount[EXTRAS_MOUNTS_MAX];
    struct extras_device device[EXTRAS_DEVICES_MAX];
    size_t nmounts, ndevices;
    struct span word[TASK_WORDS_MAX];
    size_t nwords;             /* at least one */
    struct span input, output; /* JSON Schemas */
};

void wire_put_task(struct dynbuf *b, const struct wire_task *t);
/* -1: not what it may be. The spans are borrowed. */
int wire_get_task(struct msg_in *m, struct wire_task *t) MUSTCHECK;
/* Is it this tenant's own. */
bool task_is_of(const struct wire_task *t, struct span tenant);

#endif
