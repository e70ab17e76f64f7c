/* countersign.yaml: one row a key, with bounds, default and a sentence (config.c). */
#ifndef PROXY_PARENT_CONFIG_H
#define PROXY_PARENT_CONFIG_H

#include "common/err.h"

enum { CONFIG_LISTENERS = 16, CONFIG_POLICIES = 16, CONFIG_PATH = 1024 };

struct config_listener {
    char name[64], address[256]; /* host:port, or a path for unix */
    char sandbox[64];            /* identity: { sandbox: NAME }; empty: by token */
    bool is_unix;
};

struct config {
    char state_dir[CONFIG_PATH], packs_dir[CONFIG_PATH], policy[CONFIG_POLICIES][CONFIG_PATH], floors[CONFIG_PATH];
    char roots[CONFIG_PATH], crl[CONFIG_PATH]; /* crl: empty for none */
    char dns_servers[512];                     /* address:port, separated by commas; empty: resolv.conf's */
    size_t npolicy;
    struct config_listener listener[CONFIG_LISTENERS];
    size_t nlisteners;
    char desk_address[256]; /* host:port */
    uint64_t inline_wait_ms, expires_ms, body_max, pending_max;
    bool store_lost_allow_reads, disclose_rules, shadow;
};

/* From the command line; NULL where not given. */
struct config_args {
    const char *config, *state_dir, *policy, *data_dir;
    bool check_only, private; /* private: no listener for others, and any port for the page */
};

/* Defaults, then the file, then the arguments. NULL: *e has file:line:col and what to do. Lives as long as the
 * process. */
struct config *config_load(const struct config_args *a, struct err *e) MUSTCHECK;

#endif
