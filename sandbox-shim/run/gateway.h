/* What `run` asks of the gateway: that it runs, that credentials exist, a sandbox. */
#ifndef SANDBOX_SHIM_RUN_GATEWAY_H
#define SANDBOX_SHIM_RUN_GATEWAY_H

#include <limits.h>
#include <sys/types.h>

#include "common/dynbuf.h"
#include "common/err.h"
#include "sandbox-shim/plan/plan.h"

enum { GATEWAY_WITH_MAX = 16, GATEWAY_NAME_MAX = 64 };

struct gateway {
    char state_dir[PATH_MAX], sock[PATH_MAX];
    pid_t own; /* a gateway of our own for our lifetime, or 0 */
    int lock;  /* held while a sandbox with a name of the caller's is ours; the kernel lets go of it with us */
    /* the sandbox it gave */
    char name[GATEWAY_NAME_MAX];
    char listener[PATH_MAX], ca[PATH_MAX], bundle[PATH_MAX], truststore[PATH_MAX];
};

/* Fill in where its state and control socket are. */
int gateway_find(struct gateway *g, const char *state_dir, struct err *e) MUSTCHECK;
/* The running gateway, or one of our own with `policy`. Without a policy and with
 * one name in `with`, the shipped policy of that name is taken. 0, or the cli_exit
 * to end with (a gateway of our own that did not start: its status). */
int gateway_open(struct gateway *g, const char *policy, const char *const *with, size_t nwith,
                 struct err *e) MUSTCHECK;
/* A credential of each name must be there. */
int gateway_check_with(struct gateway *g, const char *const *with, size_t nwith, struct err *e) MUSTCHECK;
/* Say on standard error which files of the policy and configuration in force lie in one of these directories. */
void gateway_warn_files(struct gateway *g, const struct plan_dir *dirs, size_t n);
/* Ask for a sandbox; its name and paths are in g. name may be NULL. captured: its listener also takes connections
 * that were on their way elsewhere. */
int gateway_sandbox(struct gateway *g, const char *name, const char *session, bool captured, const char *const *with,
                    size_t nwith, struct err *e) MUSTCHECK;
/* A lease for the sandbox of each of these that the policy gives leases, where its provider's tools read it, or as
 * the set of each says (NULL: its own): leases and npmrc of the plan, which are not initialised. say: where, or that
 * there is none, on standard error. They end with the sandbox. */
int gateway_leases(struct gateway *g, const char *const *with, const char *const *set, size_t nwith, bool say,
                   struct plan *p, struct err *e) MUSTCHECK;
/* Give the sandbox back (its session and tickets stay) and end a gateway of our own. */
void gateway_close(struct gateway *g);

#endif
