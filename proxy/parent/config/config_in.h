/* Inside the configuration only: what its files share. */
#ifndef PROXY_PARENT_CONFIG_CONFIG_IN_H
#define PROXY_PARENT_CONFIG_CONFIG_IN_H

#include "policy/load/read/keys.h"
#include "proxy/parent/config/config.h"

#define AT(type, member) offsetof(struct type, member)

extern const struct table config_listener_table, config_mount_table, config_notify_table, config_pool_table,
    config_ready_table;

struct row_broker {
    const struct node *at;
    struct item http, store, password, models, tools, image, otlp, otlp_metrics;
    struct number workers;
    struct list lanes, budgets;
    struct items people, only;
};
extern const struct table config_broker_table, config_budget_table;

struct row_s3 {
    const struct node *at;
    struct item endpoint, bucket, prefix, credential;
};
struct row_checkpoints {
    const struct node *at;
    struct row_s3 s3;
};
extern const struct table config_checkpoints_table;
void config_take_checkpoints(struct loader *l, const struct row_checkpoints *r, struct config *c);

struct row_egress {
    const struct node *at;
    struct number requests, bytes;
    struct list tenants;
};
/* Of a kind of task. */
struct row_egress_limit {
    const struct node *at;
    struct number requests, bytes;
};
extern const struct table config_egress_table, config_egress_limit_table;
void config_take_egress(struct loader *l, const struct row_egress *r, struct config *c);
struct row_oidc {
    const struct node *at;
    struct item issuer, client, secret, authorization, token, name;
    struct number claim;
};
extern const struct table config_oidc_table;
struct row_diff {
    const struct node *at;
    struct item lane, image;
};
extern const struct table config_diff_table;

/* KEY_CALL: an address with its port, a literal or localhost. */
void config_read_address(struct loader *l, const struct node *n, void *field);
/* Fits, or a problem at it. */
void config_copy(struct loader *l, char *dst, size_t cap, const struct item *it);
/* The same for a path, relative to the folder of the file that named it. */
void config_copy_path(struct loader *l, char *dst, size_t cap, const char *file, const struct item *it);
/* Those files and the schemas that they name, into c->task; problems go to l. */
void config_take_tasks(struct loader *l, const struct items *files, const char *file, struct config *c);
/* After the listeners, of which it needs one. */
void config_take_broker(struct loader *l, const struct row_broker *r, const char *file, struct config *c);
/* Rows of config_budget_table into c->broker; problems go to l. */
void config_take_budgets(struct loader *l, const struct list *rows, struct config *c);
/* named: the page has a name, and with it https. */
void config_take_oidc(struct loader *l, const struct row_oidc *r, bool named, struct config *c);
/* By which lane diffs of pushes are made, and in what. */
void config_take_diff(struct loader *l, const struct row_diff *r, struct config *c);
/* "TENANT LANE\n" each, behind what is there. */
void config_take_lanes(struct loader *l, const struct list *rows, char to[CONFIG_DOCK_LANES]);
/* Does this address lead to this machine alone? */
bool config_loopback(struct span address);
/* Rows of config_mount_table and config_pool_table; problems go to l. Before tasks, which name them. */
void config_take_mounts(struct loader *l, const struct list *mounts, const struct list *pools, struct config *c);
/* None of them is in the state directory, nor that in one of them. */
int config_mounts_apart(const struct config *c, struct err *e) MUSTCHECK;
/* Rows of config_notify_table into c->notify; problems go to l. */
void config_take_notify(struct loader *l, const struct list *rows, const char *file, struct config *c);
/* Rows of config_ready_table into c->ready; problems go to l. */
void config_take_ready(struct loader *l, const struct list *rows, struct config *c);
/* Rows of config_listener_table into c->listener; problems go to l. */
void config_take_listeners(struct loader *l, const struct list *rows, const char *file, struct config *c);

#endif
