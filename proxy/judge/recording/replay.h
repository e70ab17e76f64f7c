/* A recording, given to a judge alone. */
#ifndef PROXY_JUDGE_REPLAY_H
#define PROXY_JUDGE_REPLAY_H

#include <stdio.h>

#include "common/err.h"

struct replay_result {
    unsigned heard, said,
        differs; /* of the exchange: frames to the judge, from it, and of these others than recorded */
};

/* Play it, and print to `out` what goes to and fro of this exchange, a line each: "<" heard, ">" said, "!" said now
 * and not then, "?" said then and not now. -1: no recording, or the exchange is not in it. */
int replay_run(struct span recording, uint64_t exchange, FILE *out, struct replay_result *r, struct err *e) MUSTCHECK;

#endif
