/* What a sandbox is made of, and the bubblewrap arguments that make it. */
#ifndef SANDBOX_SHIM_PLAN_PLAN_H
#define SANDBOX_SHIM_PLAN_PLAN_H

#include <limits.h>

#include "common/dynbuf.h"
#include "common/err.h"
#include "sandbox-shim/plan/limits.h"

enum {
    PLAN_WORK_MAX = 16,
    PLAN_READ_MAX = 32,
    PLAN_FDS_MAX = 24 + PLAN_WORK_MAX + PLAN_READ_MAX,
    PLAN_LIST_MAX = 32,
    PLAN_DEVICES_MAX = 64,
    PLAN_ARGS_MAX = 256 * 1024
};

/* Where things are inside. All of it is read-only but the home and the workspaces. */
#define INSIDE_SHIM       "/countersign/countersign-shim"
#define INSIDE_SOCKET     "/countersign/proxy.sock"
#define INSIDE_CA         "/countersign/ca.crt"
#define INSIDE_BUNDLE     "/countersign/bundle.crt"
#define INSIDE_TRUSTSTORE "/countersign/truststore.p12"
#define INSIDE_PROXY      "127.0.0.1:3128"
#define INSIDE_LANE       "127.128.0.0:3128" /* of a lane: the shim puts each command's own address in its place */
#define INSIDE_NPMRC      "/etc/npmrc"
#define INSIDE_HOME       "/home/agent"
#define INSIDE_WORKSPACE  "/workspace"
#define INSIDE_MNT        "/mnt"
#define INSIDE_PATH       "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define INSIDE_WORKSPACES "/workspaces/" /* the second and further ones, by their names */

/* A directory that is mounted: what was opened, not what its path leads to by then. */
struct plan_dir {
    char path[PATH_MAX]; /* outside; of what is read the place inside, the same unless the gateway gave it */
    int fd;              /* O_PATH */
    bool writes;         /* of read: the sandbox may write it as well */
};

/* The same of who will be somebody else by then, whom no path leads there: all of it open. */
struct plan_lane {
    int listener;               /* O_PATH, and the user of the sandbox may connect to it; 0: none of them */
    int ca, bundle, truststore; /* at their beginning */
};

struct plan {
    const char *name;
    /* what the gateway gave: paths outside. listener NULL: none of them, and no way out but by lane */
    const char *listener, *ca, *bundle, *truststore;
    struct plan_lane lane;
    /* what the caller asked for */
    struct plan_dir work[PLAN_WORK_MAX], read[PLAN_READ_MAX];
    size_t nwork, nread;
    const char *device[PLAN_DEVICES_MAX]; /* nodes, which are where they are outside */
    size_t ndevices;
    uint64_t disk;        /* without work: bytes of a workspace in memory, which ends with the sandbox */
    uint64_t scratch;     /* bytes of each place in memory but the workspace; 0: as memory may be, or 2 GiB */
    struct plan_dir home; /* path empty: a fresh one, in memory */
    int image;            /* its root, open (O_PATH), which has the places of what is mounted; 0: the machine's own */
    struct dynbuf variables_of_image; /* NAME=VALUE, each with its NUL; what the gateway sets takes their place */
    struct limits limits;
    const char *setenv[PLAN_LIST_MAX];
    size_t nsetenv;           /* NAME=VALUE */
    struct dynbuf leases;     /* --setenv NAME VALUE, each word with its NUL: what --with gave */
    struct dynbuf npmrc;      /* and to npm, which shells keep such names from */
    bool captured, variables; /* whatever a program sends is; proxy variables are set */
    char **cmd;               /* NULL: none of its own; the shim is told what to run (countersign-shim --warden) */
    int shim;                 /* the first process inside: its program, open; 0: plan_build opens the installed one */
    /* what plan_build made of it */
    struct dynbuf args;    /* NUL-terminated words, for bwrap --args */
    int fds[PLAN_FDS_MAX]; /* what bubblewrap must inherit besides 0, 1 and 2 */
    size_t nfds;
    int args_fd;
};

/* What nobody in a sandbox sees of /proc; ends with a NULL. */
extern const char *const plan_hidden[];
/* Name and value of what each has, over what an image says; ends with a NULL. */
extern const char *const plan_variables[];
/* The last part of its path. */
const char *plan_name(const struct plan_dir *d);
/* Open the installed one; plan_build does it too. For who will be somebody else by then, who may not find it. -1 in
 * words.
 */
int plan_open_shim(struct plan *p, struct err *e) MUSTCHECK;
/* Fill the last part. -1 in words; plan_free in either case. */
int plan_build(struct plan *p, char *const *environ, struct err *e) MUSTCHECK;
void plan_free(struct plan *p);

#endif
