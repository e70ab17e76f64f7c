/* What a sandbox is made of, and the bubblewrap arguments that make it. */
#ifndef SANDBOX_SHIM_RUN_PLAN_H
#define SANDBOX_SHIM_RUN_PLAN_H

#include <limits.h>

#include "common/dynbuf.h"
#include "common/err.h"

enum { PLAN_READ_MAX = 32, PLAN_FDS_MAX = 16 + PLAN_READ_MAX, PLAN_LIST_MAX = 32, PLAN_ARGS_MAX = 256 * 1024 };

/* Where things are inside. All of it is read-only but the last two. */
#define INSIDE_SHIM       "/countersign/countersign-shim"
#define INSIDE_SOCKET     "/countersign/proxy.sock"
#define INSIDE_CA         "/countersign/ca.crt"
#define INSIDE_BUNDLE     "/countersign/bundle.crt"
#define INSIDE_TRUSTSTORE "/countersign/truststore.p12"
#define INSIDE_PROXY      "127.0.0.1:3128"
#define INSIDE_HOME       "/home/agent"
#define INSIDE_WORKSPACE  "/workspace"

/* A directory mounted read-only where it is: what was opened, not what its path leads to by then. */
struct plan_read {
    char path[PATH_MAX];
    int fd; /* O_PATH */
};

struct plan {
    /* what the gateway gave: paths outside */
    const char *name, *listener, *ca, *bundle, *truststore;
    /* what the caller asked for */
    int workspace; /* O_PATH descriptor */
    struct plan_read read[PLAN_READ_MAX];
    size_t nread;
    const char *setenv[PLAN_LIST_MAX];
    size_t nsetenv;   /* NAME=VALUE */
    bool transparent; /* no proxy variables: whatever a program sends is captured */
    char **cmd;
    /* what plan_build made of it */
    char shim[PATH_MAX];
    struct dynbuf args;    /* NUL-terminated words, for bwrap --args */
    int fds[PLAN_FDS_MAX]; /* what bubblewrap must inherit besides 0, 1 and 2 */
    size_t nfds;
    int args_fd;
};

/* Fill the last part. -1 in words; plan_free in either case. */
int plan_build(struct plan *p, char *const *environ, struct err *e) MUSTCHECK;
void plan_free(struct plan *p);

#endif
