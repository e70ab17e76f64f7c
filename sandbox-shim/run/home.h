/* Homes that outlive a sandbox (`run --home NAME`): directories of the caller's, in $XDG_DATA_HOME/countersign/homes
 * or ~/.local/share/countersign/homes. What one sandbox leaves in its home the next one of that name finds. */
#ifndef SANDBOX_SHIM_RUN_HOME_H
#define SANDBOX_SHIM_RUN_HOME_H

#include <limits.h>

#include "common/err.h"

/* Where they lie; need not exist. -1: no home of the caller's to be found, or too long. */
int home_base(char base[PATH_MAX], struct err *e) MUSTCHECK;
/* The one of that name (a plain one), made when it is not there yet; for the caller alone. -1 in words. */
int home_make(const char *base, const char *name, char out[PATH_MAX], struct err *e) MUSTCHECK;

#endif
