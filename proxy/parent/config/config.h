/* countersign.yaml: one row a key, with bounds, default and a sentence (config.c; listeners: config_listener.c,
 * tasks: config_tasks.c). */
#ifndef PROXY_PARENT_CONFIG_CONFIG_H
#define PROXY_PARENT_CONFIG_CONFIG_H

#include "common/err.h"
#include "common/id.h"
#include "common/log.h"
#include "policy/policy.h"
#include "proxy/egress/egress.h"
#include "proxy/task/wire_task.h"
#include "proxy/tell/wire_tell.h"
#include "proxy/wire.h"

enum { CONFIG_LISTENERS = 16, CONFIG_POLICIES = 16, CONFIG_PATH = 1024, CONFIG_ADDRESS = 256, CONFIG_NAME = 65 };
enum { CONFIG_ARGS = 32 };                                   /* of a program, its path among them */
enum { CONFIG_SANDBOXES = 2000, CONFIG_CONNECTIONS = 4000 }; /* the most that limits: may say */
enum { CONFIG_PEOPLE = 4096 };                               /* bytes of broker: people, with line ends */
enum { CONFIG_BUDGETS = 8192 };                              /* bytes of broker: budgets (broker/budgets.h) */
enum { CONFIG_DOCK_LANES = 4096 };                           /* bytes of them, with their tenants */
enum { CONFIG_UIDS = 740 };                                  /* user ids from uid_base on */
enum { POOL_ROWS_MAX = 16, POOL_MAX = 64 };                  /* of pool:, and sandboxes that wait in all of them */
enum {
    CONFIG_DOCK_MOUNTS = 8192,
    CONFIG_MOUNTS = 16,
    CONFIG_POOLS = 8,
    CONFIG_NODES = 32,
    CONFIG_WITH = 8,
    CONFIG_TENANTS = 16,
    CONFIG_NODE = 128
};

enum config_kind { CONFIG_NO_KIND = 0, CONFIG_HTTP, CONFIG_SOCKS5, CONFIG_TRANSPARENT, CONFIG_UNIX };

/* Who comes from this range, or with this DNS name in its certificate, is that sandbox. */
struct config_source {
    char key[CONFIG_ADDRESS], sandbox[CONFIG_NAME];
};

struct config_listener {
    enum config_kind kind;
    enum listener_identity identity;
    char name[CONFIG_NAME], address[CONFIG_ADDRESS]; /* address: host:port, or a path for unix */
    char sandbox[CONFIG_NAME];                       /* IDENTITY_SANDBOX */
    struct config_source *source;                    /* IDENTITY_SOURCE, IDENTITY_CERTIFICATE */
    size_t nsources, npeers;
    char peer[LISTENER_PEERS_MAX][64];                                     /* must send a PROXY v2 header */
    char certificate[CONFIG_PATH], key[CONFIG_PATH], clients[CONFIG_PATH]; /* tls; empty: none */
    char advertise[CONFIG_ADDRESS], dns[CONFIG_ADDRESS];                   /* empty: none */
};

/* Where the keeper's master key is. */
struct config_master {
    enum source_kind from;                   /* SOURCE_NONE: in its folder; else SOURCE_FILE, _SYSTEMD or _EXEC */
    char where[CONFIG_PATH];                 /* a path, or a credential's name */
    char argv[CONFIG_ARGS + 1][CONFIG_PATH]; /* SOURCE_EXEC; ends with an empty one */
};

/* What of an ID token is a person's name. */
enum oidc_claim { OIDC_NONE = 0, OIDC_USERNAME, OIDC_EMAIL, OIDC_SUB };

/* Through whom people sign in to the page; all zeros: through nobody. secret: its name in the store. */
struct config_oidc {
    char issuer[CONFIG_PATH], client[CONFIG_ADDRESS], secret[CONFIG_ADDRESS], authorization[CONFIG_PATH],
        token[CONFIG_PATH], name[CONFIG_NAME];
    enum oidc_claim claim;
};

/* Conversations; all zeros: there are none. */
struct config_broker {
    char address[CONFIG_ADDRESS], models[CONFIG_PATH], tools[CONFIG_PATH], image[CONFIG_NAME];
    char store[CONFIG_PATH],
        password[CONFIG_PATH];      /* postgresql://..., empty: a file here; the file of its password */
    char lanes[CONFIG_DOCK_LANES];  /* as dock_lanes */
    char otlp[CONFIG_PATH];         /* where spans are sent; empty: nowhere */
    char otlp_metrics[CONFIG_PATH]; /* and metrics */
    char people[CONFIG_PEOPLE];     /* who has conversations on the page: "NAME\n" each, of a person or a group */
    char budgets[CONFIG_BUDGETS];   /* "TENANT day|month TOKENS|- MILLIONTHS|-\n" each; what is not there has none */
    uint64_t workers;               /* 0: it runs no turns */
    unsigned duties;                /* enum duty, of proxy/duty/duty.h: what of it runs here */
};

/* Sandboxes that wait. */
struct config_ready {
    char image[CONFIG_NAME];                               /* empty: the machine's own files */
    uint64_t size, memory, pids, cpu_percent, disk, files; /* of the limits, 0: as of any sandbox that is started */
};

/* A store that speaks S3's API. endpoint empty: none. */
struct config_store {
    char endpoint[CONFIG_ADDRESS + 16], bucket[64], prefix[256], credential[CONFIG_NAME];
};

/* The tenants of something. */
struct config_whose {
    char tenant[CONFIG_TENANTS][CONFIG_NAME];
    size_t n;
};

/* A directory of this machine that sandboxes may read, or (path empty) one that is kept for them. */
struct config_mount {
    char name[CONFIG_NAME], path[CONFIG_PATH];
    uint64_t size;   /* bytes of what is kept */
    bool of_session; /* and each session has one of its own */
    struct config_whose whose;
};

/* Devices, each of one sandbox at a time. */
struct config_pool {
    char name[CONFIG_NAME], node[CONFIG_NODES][CONFIG_NODE], with[CONFIG_WITH][CONFIG_NODE];
    size_t nnodes, nwith, most; /* most: of one tenant */
    struct config_whose whose;
};

/* Who is told outside the page; url: empty for Slack's, whose secret it is. */
struct config_notify {
    char name[CONFIG_NAME], url[TELL_URL_MAX], secret[129], ca[CONFIG_PATH];
    enum tell_kind kind;
    uint32_t events, budget; /* budget 0: none */
    uint64_t give_up_ms;
    char tenant[TELL_TENANTS_MAX][CONFIG_NAME], cidr[8][64];
    char from[TELL_ADDRESS_MAX + 1], user[TELL_ADDRESS_MAX + 1], to[TELL_TO_MAX][TELL_ADDRESS_MAX + 1];
    char signing[TELL_SECRET_MAX + 1]; /* of Slack: what signs the way back; empty: there is none */
    struct {
        char who[TELL_WHO_MAX + 1], name[TELL_WHO_MAX + 1];
    } people[TELL_PEOPLE_MAX];
    size_t ntenants, ncidrs, nto, npeople;
    bool tls_required, loopback;
};
/* Of all that is said of it, and of nothing else: what was written down for one is not told to another of its name.
 * -1: no memory. */
int config_notify_digest(const struct config_notify *n, struct digest *out) MUSTCHECK;

struct config {
    char state_dir[CONFIG_PATH], packs_dir[CONFIG_PATH], policy[CONFIG_POLICIES][CONFIG_PATH], floors[CONFIG_PATH];
    char signers[CONFIG_PATH];                 /* of the policy; empty: none */
    char roots[CONFIG_PATH], crl[CONFIG_PATH]; /* crl: empty for none */
    char dns_servers[512];                     /* address:port, separated by commas; empty: resolv.conf's */
    size_t npolicy;
    struct config_master master;
    struct config_listener listener[CONFIG_LISTENERS];
    size_t nlisteners;
    char desk_address[CONFIG_ADDRESS];                                                    /* host:port */
    char desk_certificate[CONFIG_PATH], desk_key[CONFIG_PATH], desk_name[CONFIG_ADDRESS]; /* empty: without
                                  TLS of its own; a name without a certificate: behind a proxy that has one */
    struct config_oidc oidc;
    char dock_address[CONFIG_ADDRESS];  /* of the sandbox API; empty: it is off */
    char dock_lanes[CONFIG_DOCK_LANES]; /* of it, by tenant: "TENANT LANE\n" each */
    struct config_broker broker;
    char diff_lane[CONFIG_NAME], diff_image[CONFIG_NAME]; /* of diffs of pushes; lane empty: none are made */
    uint64_t inline_wait_ms, expires_ms, body_max, pending_max, sandboxes_max, connections_max;
    uint64_t checkpoints_max;                  /* bytes of one owner's */
    struct config_store away;                  /* where they are as well */
    uint64_t idle_ms;                          /* of each started sandbox that asks for none; 0: never */
    uint64_t egress[EGRESS_MEASURES];          /* of each started sandbox that asks for none; 0: no limit */
    char egress_tenants[EGRESS_TENANTS_BYTES]; /* of all of a tenant's (egress_tenant_next) */
    int uid_base;                              /* 0: not said */
    bool store_lost_allow_reads, disclose_rules, shadow;
    struct dynbuf task[TASKS_MAX]; /* each a wire_task */
    size_t ntasks;
    struct config_ready ready[POOL_ROWS_MAX];
    size_t nready;
    struct config_mount mount[CONFIG_MOUNTS];
    struct config_pool pool[CONFIG_POOLS];
    size_t nmounts, npools;
    struct config_notify notify[TELL_TARGETS_MAX];
    size_t nnotify;
    char dock_mounts[CONFIG_DOCK_MOUNTS]; /* of what the dock starts: "TENANT NAME PLACE\n" each */
    struct digest text;                   /* of the file, as it was read */
    enum log_level log_level;
    enum log_form log_form;
    char log_trace[CONFIG_NAME]; /* a sandbox; empty: none */
};

/* From the command line; NULL where not given. */
struct config_args {
    const char *config, *state_dir, *policy, *data_dir;
    bool check_only, private; /* private: no listener for others, and any port for the page */
    bool secrets_only;        /* the keeper, its socket and the ledger: no policy is needed to seal a secret */
};

/* Defaults, then the file, then the arguments. NULL: *e has file:line:col and what to do. */
struct config *config_load(const struct config_args *a, struct err *e) MUSTCHECK;
void config_free(struct config **c);

/* Of this name, or NULL. */
const struct config_mount *config_mount(const struct config *c, struct span name);
const struct config_pool *config_pool(const struct config *c, struct span name);
bool config_is_of(const struct config_whose *w, struct span tenant);
/* Does its sandbox's front accept on it? Else the lobby does, which finds out who that is or ends TLS first. */
bool config_of_front(const struct config_listener *l);
/* 1 to 63 of a-z 0-9 . _ -, and not a dot first: it becomes part of a path. */
bool config_sandbox_ok(struct span name);
/* Does it listen on every address, so that only advertise: can say which one others are to use? */
bool config_unspecified(const char *address);
/* Is the host of host:port a literal address? */
bool config_literal(const char *address);

#endif
