/* mounts: and devices: of the configuration: which directories and devices of this machine started sandboxes may be
 * given, and whose. What nobody is named for is nobody's. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/parent/config/config_in.h"

struct row_mount {
    const struct node *at;
    struct item name, path, dock;
    struct number size, share;
    struct items tenants;
};
struct row_pool {
    const struct node *at;
    struct item name;
    struct items nodes, with, tenants;
    struct number most;
};

enum { SHARE_SESSION = 0, SHARE_TENANT };
static const struct choice shares[] = {{"session", SHARE_SESSION}, {"tenant", SHARE_TENANT}, {NULL, 0}};
static const struct key mount_keys[] = {
    {"name", KEY_TEXT, AT(row_mount, name), KEY_NEEDED, .help = "what it is asked for by"},
    {"path", KEY_TEXT, AT(row_mount, path), 0, .help = "a directory of this machine, which is read and no more"},
    {"size", KEY_SIZE, AT(row_mount, size), 0, .lo = UINT64_C(16) << 20, .hi = UINT64_C(1) << 44,
     .help = "bytes of one that is kept for sandboxes, which write there and outlive none of it"},
    {"share", KEY_ONE_OF, AT(row_mount, share), 0, .choices = shares,
     .help = "session: each has one of its own; or tenant: all of a tenant's sandboxes have the same"},
    {"tenants", KEY_TEXTS, AT(row_mount, tenants), KEY_NEEDED, .help = "whose sandboxes may have it"},
    {"dock", KEY_TEXT, AT(row_mount, dock), 0, .help = "where it is in every sandbox that these start through e2b:"},
    {.type = KEY_END}};
const struct table config_mount_table = {"mounts", sizeof(struct row_mount), mount_keys};
static const struct key pool_keys[] = {
    {"name", KEY_TEXT, AT(row_pool, name), KEY_NEEDED, .help = "what it is asked for by"},
    {"nodes", KEY_TEXTS, AT(row_pool, nodes), KEY_NEEDED, .help = "device nodes, each of one sandbox at a time"},
    {"with", KEY_TEXTS, AT(row_pool, with), 0, .help = "device nodes that everybody has who has one of these"},
    {"tenants", KEY_TEXTS, AT(row_pool, tenants), KEY_NEEDED, .help = "whose tasks may have them"},
    {"most", KEY_COUNT, AT(row_pool, most), 0, .lo = 1, .hi = CONFIG_NODES,
     .help = "of one tenant at a time; else all"},
    {.type = KEY_END}};
const struct table config_pool_table = {"devices", sizeof(struct row_pool), pool_keys};

static void take_name(struct loader *l, const struct item *it, char to[CONFIG_NAME])
{
    if (!extras_name_ok(it->text))
        load_problem(l, it->at, "C025", "a name here is 1 to %d of a-z 0-9 . _ -, and begins with a letter or digit",
                     EXTRAS_NAME_MAX);
    else
        config_copy(l, to, CONFIG_NAME, it);
}

static void take_whose(struct loader *l, const struct items *tenants, struct config_whose *w)
{
    if (tenants->n > CONFIG_TENANTS)
        load_problem(l, tenants->at, "C025", "at most %d tenants", CONFIG_TENANTS);
    for (size_t i = 0; i < tenants->n && !l->failed; i++)
        take_name(l, &tenants->v[i], w->tenant[w->n++]);
}

/* From the root, and each part a name: no line feed, no part that leads up. */
static bool plain(struct span path)
{
    struct span rest = span_from(path, 1), part;

    if (!span_starts(path, SPAN("/")) || rest.n == 0)
        return false;
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] < 0x20 || path.p[i] == 0x7f)
            return false;
    for (;;) {
        bool more = span_cut(rest, '/', &part, &rest);
        if (part.n == 0 || span_eq(part, SPAN(".")) || span_eq(part, SPAN("..")))
            return false;
        if (!more)
            return true;
    }
}

static void take_directory(struct loader *l, const struct item *it, char to[CONFIG_PATH])
{
    char real[PATH_MAX];

    config_copy(l, to, CONFIG_PATH, it);
    if (l->failed)
        return;
    if (!plain(it->text))
        load_problem(l, it->at, "C026", "a directory is named by its full path, without . and ..");
    else if (realpath(to, real) == NULL)
        load_problem(l, it->at, "C026", "%.200s cannot be found: %s", to, strerror(errno));
    else if (strcmp(real, to) != 0)
        load_problem(l, it->at, "C026", "%.200s leads elsewhere by a link: name %.200s itself", to, real);
}

static void take_dock(struct loader *l, const struct item *it, const struct config_mount *m, struct config *c)
{
    if (!extras_at_ok(it->text))
        load_problem(l, it->at, "C026", "a place inside is below /mnt or /home/agent, of plain names");
    for (size_t i = 0; i < m->whose.n && !l->failed; i++) {
        size_t n = strlen(c->dock_mounts), room = sizeof(c->dock_mounts) - n;
        int more =
            snprintf(c->dock_mounts + n, room, "%s %s %.*s\n", m->whose.tenant[i], m->name, SPAN_FMT(it->text));
        if (more < 0 || (size_t)more >= room)
            load_problem(l, it->at, "C025", "these are too many: at most %d bytes of names", CONFIG_DOCK_MOUNTS - 1);
    }
}

static void take_mount(struct loader *l, const struct row_mount *r, struct config *c)
{
    struct config_mount *m = &c->mount[c->nmounts];

    take_name(l, &r->name, m->name);
    if ((r->path.at != NULL) == (r->size.at != NULL) || (r->share.at != NULL && r->path.at != NULL))
        load_problem(l, r->at, "C026",
                     "a mount has either path:, what is there already, or size: of what is kept for it");
    if (r->path.at != NULL)
        take_directory(l, &r->path, m->path);
    m->size = r->size.v;
    m->of_session = r->share.v == SHARE_SESSION;
    take_whose(l, &r->tenants, &m->whose);
    if (r->dock.at != NULL)
        take_dock(l, &r->dock, m, c);
    if (config_mount(c, r->name.text) != NULL)
        load_problem(l, r->name.at, "C025", "another mount has this name");
    c->nmounts++;
}

static void take_nodes(struct loader *l, const struct items *nodes, char (*to)[CONFIG_NODE], size_t most, size_t *n)
{
    if (nodes->n > most)
        load_problem(l, nodes->at, "C026", "at most %zu device nodes", most);
    for (size_t i = 0; i < nodes->n && !l->failed; i++) {
        const struct item *it = &nodes->v[i];
        if (!plain(it->text) || !span_starts(it->text, SPAN("/dev/")))
            load_problem(l, it->at, "C026", "a device node is named by its full path below /dev");
        config_copy(l, to[(*n)++], CONFIG_NODE, it);
    }
}

static void take_pool(struct loader *l, const struct row_pool *r, struct config *c)
{
    struct config_pool *p = &c->pool[c->npools];

    take_name(l, &r->name, p->name);
    take_nodes(l, &r->nodes, p->node, CONFIG_NODES, &p->nnodes);
    take_nodes(l, &r->with, p->with, CONFIG_WITH, &p->nwith);
    take_whose(l, &r->tenants, &p->whose);
    p->most = r->most.at != NULL ? (size_t)r->most.v : CONFIG_NODES;
    if (config_pool(c, r->name.text) != NULL)
        load_problem(l, r->name.at, "C025", "another pool of devices has this name");
    c->npools++;
}

void config_take_mounts(struct loader *l, const struct list *mounts, const struct list *pools, struct config *c)
{
    if (mounts->n > CONFIG_MOUNTS || pools->n > CONFIG_POOLS)
        load_problem(l, mounts->n > CONFIG_MOUNTS ? mounts->at : pools->at, "C025",
                     "at most %d mounts and %d pools of devices", CONFIG_MOUNTS, CONFIG_POOLS);
    for (size_t i = 0; i < mounts->n && !l->failed; i++)
        take_mount(l, (const struct row_mount *)mounts->v + i, c);
    for (size_t i = 0; i < pools->n && !l->failed; i++)
        take_pool(l, (const struct row_pool *)pools->v + i, c);
}

static bool within(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

int config_mounts_apart(const struct config *c, struct err *e)
{
    char real[PATH_MAX];
    const char *state = realpath(c->state_dir, real) != NULL ? real : c->state_dir;

    for (size_t i = 0; i < c->nmounts; i++)
        if (c->mount[i].path[0] != '\0' && (within(c->mount[i].path, state) || within(state, c->mount[i].path)))
            return err_set(e, "mounts: %s is %s, which overlaps the state directory %s: no sandbox may look in there",
                           c->mount[i].name, c->mount[i].path, c->state_dir);
    return 0;
}
