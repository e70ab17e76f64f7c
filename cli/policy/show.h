/* An answer in JSON, on standard output. */
#ifndef CLI_POLICY_SHOW_H
#define CLI_POLICY_SHOW_H

#include "common/dynbuf.h"

/* A line of JSON; -1: it did not fit its buffer, which is said, or could not be written. */
int show_json(const struct dynbuf *out) MUSTCHECK;

#endif
