/* A program that the policy names, run without a network or with one of its own; and what it printed. */
#ifndef PROXY_FETCHER_JOB_PROGRAM_H
#define PROXY_FETCHER_JOB_PROGRAM_H

#include "common/err.h"
#include "proxy/fetcher/wire_fetch.h"

enum { PROGRAM_OUT_MAX = 64 * 1024, PROGRAM_ARGS_MAX = FETCH_SETTINGS_MAX };

/* Start what argv and env.NAME of the settings say. relay: as own_net_relay gave it, for a program with hosts; -1: it
 * has no network. 0 with its pid and the end of a pipe it prints into. */
int program_start(const struct wire_fetch *f, int relay, int *pid, int *out, struct err *e) MUSTCHECK;
/* From here on the calling process's children, of which it is one: no socket but a Unix one (in a network of its own
 * TCP and UDP too), no other process group and no session (it is killed whole), no namespaces, no mounts, nobody
 * else's memory. */
int program_filter(bool own_network, struct err *e) MUSTCHECK;

struct arena;
/* Pure: the value and its life (0: not said) in what was printed. The value borrows from printed or a. */
int program_value(const struct wire_fetch *f, struct span printed, struct arena *a, struct span *value,
                  uint64_t *lifetime_ms, struct err *e) MUSTCHECK;

#endif
