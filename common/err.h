/* A failure in words: what, why, and what to do next. Functions that can
 * explain themselves take a struct err and return -1 after filling it; they
 * do not log. The caller that knows whom to tell does. */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include "common/span.h"

struct err {
    char text[512];
};

/* Set the text (cut to fit) and return -1, for `return err_set(e, ...)`. e may be NULL. */
int err_set(struct err *e, const char *fmt, ...) PRINTF(2, 3);
/* As err_set, followed by ": " and the words of the current errno. */
int err_errno(struct err *e, const char *fmt, ...) PRINTF(2, 3);

#endif
