/* egress: of the configuration: how much started sandboxes may send and be sent, and all of a tenant's together. */
#include <stdio.h>

#include "proxy/parent/config/config_in.h"

struct row_egress_tenant {
    const struct node *at;
    struct item tenant;
    struct number requests, bytes, per;
};

#define MOST (UINT64_C(1) << 50)
#define AMOUNTS(row)                                                                                                 \
    {"requests", KEY_COUNT, AT(row, requests), 0, .lo = 1, .hi = MOST, .help = "that leave, or wait for approval"},  \
    {                                                                                                                \
        "bytes", KEY_SIZE, AT(row, bytes), 0, .lo = 1024, .hi = MOST, .help = "both ways"                            \
    }
static const struct key tenant_keys[] = {
    {"tenant", KEY_TEXT, AT(row_egress_tenant, tenant), KEY_NEEDED, .help = "whose sandboxes are counted together"},
    AMOUNTS(row_egress_tenant),
    {"per", KEY_TIME, AT(row_egress_tenant, per), KEY_NEEDED, .lo = 1000, .hi = UINT64_C(366) * 86400 * 1000,
     .help = "then it is counted anew"},
    {.type = KEY_END}};
static const struct table tenant_table = {"a tenant's egress", sizeof(struct row_egress_tenant), tenant_keys};
static const struct key egress_keys[] = {AMOUNTS(row_egress),
                                         {"tenants", KEY_LIST, AT(row_egress, tenants), 0, .table = &tenant_table,
                                          .help = "of all sandboxes of one tenant together, in some time"},
                                         {.type = KEY_END}};
const struct table config_egress_table = {"egress", sizeof(struct row_egress), egress_keys};
static const struct key limit_keys[] = {AMOUNTS(row_egress_limit), {.type = KEY_END}};
const struct table config_egress_limit_table = {"egress", sizeof(struct row_egress_limit), limit_keys};

void config_take_egress(struct loader *l, const struct row_egress *r, struct config *c)
{
    c->egress[EGRESS_REQUESTS] = r->requests.v;
    c->egress[EGRESS_BYTES] = r->bytes.v;
    if (r->tenants.n > EGRESS_TENANTS_MAX)
        load_problem(l, r->tenants.at, "C027", "at most %d tenants", EGRESS_TENANTS_MAX);
    for (size_t i = 0; i < r->tenants.n && !l->failed; i++) {
        const struct row_egress_tenant *t = (const struct row_egress_tenant *)r->tenants.v + i;
        const struct row_egress_tenant *other = r->tenants.v;
        size_t n = strlen(c->egress_tenants);
        if (!config_sandbox_ok(t->tenant.text))
            load_problem(l, t->tenant.at, "C027", "a tenant's name is 1 to 63 of a-z 0-9 . _ -");
        if (t->requests.at == NULL && t->bytes.at == NULL)
            load_problem(l, t->at, "C027", "one of requests: and bytes: is wanted");
        for (size_t k = 0; k < i; k++)
            if (span_eq(other[k].tenant.text, t->tenant.text))
                load_problem(l, t->at, "C027", "this tenant is there already");
        (void)snprintf(c->egress_tenants + n, sizeof(c->egress_tenants) - n, "%.*s %llu %llu %llu\n",
                       SPAN_FMT(t->tenant.text), (unsigned long long)t->requests.v, (unsigned long long)t->bytes.v,
                       (unsigned long long)t->per.v);
    }
}
