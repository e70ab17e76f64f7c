/* A delta of git's packs: two sizes, then rows of "copy from the base" and "insert these bytes". */
#ifndef PROXY_JUDGE_PACK_DELTA_H
#define PROXY_JUDGE_PACK_DELTA_H

#include "common/span.h"

/* The sizes of the base and of the result; ops goes on behind them. -1: cut short, or too large to be true. */
int delta_sizes(struct span *ops, uint64_t *base, uint64_t *result) MUSTCHECK;
/* Exactly n bytes to `out`, or -1. */
int delta_apply(struct span base, struct span ops, uint8_t *out, size_t n) MUSTCHECK;

#endif
