/* Start bubblewrap around a plan and stay with it until it ends. */
#ifndef SANDBOX_SHIM_RUN_SPAWN_H
#define SANDBOX_SHIM_RUN_SPAWN_H

#include "sandbox-shim/plan/plan.h"

/* 0: *status is the command's own (128 + signal). -1: the sandbox could not be set
 * up and the command did not run; the reason is in e and, from bubblewrap, on
 * stderr. nft is for a plan that is captured. TERM, INT, HUP, QUIT, WINCH and USR1/2 go to the command meanwhile.
 */
int spawn_run(const char *bwrap, const char *nft, struct plan *p, int *status, struct err *e) MUSTCHECK;

/* 0, 1 and 2 must be open and must not be directories (a directory is a way out of
 * the mount namespace). Opens /dev/null where one is closed. */
int spawn_check_stdio(struct err *e) MUSTCHECK;

#endif
