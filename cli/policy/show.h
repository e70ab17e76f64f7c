/* An answer in JSON, on standard output. */
#ifndef CLI_POLICY_SHOW_H
#define CLI_POLICY_SHOW_H

#include "common/dynbuf.h"

/* A line of JSON, whose buffer is freed; -1: it did not fit there, which is said, or could not be written. */
int show_json(struct dynbuf *out) MUSTCHECK;

#endif
