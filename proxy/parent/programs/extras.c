/* Directories and devices of sandboxes: which there are for whom the configuration says, by names, and nothing that
 * is asked for becomes a path. A device is one sandbox's as long as anything of that is left: it is counted in its
 * place among the sandboxes, which nobody can leave without giving it back. */
#include "proxy/parent/programs/extras.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/extras/kept.h"

static struct err why; /* until it is told */

static int add(char *to, const char *fmt, ...) PRINTF(2, 3);
static int add(char *to, const char *fmt, ...)
{
    size_t n = strlen(to);
    va_list ap;
    va_start(ap, fmt);
    int more = vsnprintf(to + n, GIVES_BYTES - n, fmt, ap);
    va_end(ap);
    return more >= 0 && (size_t)more < GIVES_BYTES - n ? 0 : err_set(&why, "these are too many mounts or devices");
}

/* Its size is held by a file system of its own, which an ordinary user cannot mount. */
static int kept_give(const struct parent *p, struct running_box *b, const struct wire_extras *x,
                     const struct extras_mount *m, const struct config_mount *is, bool strict, char *to)
{
    char key[KEPT_KEY_MAX + 1], path[CONFIG_PATH + KEPT_KEY_MAX + 16];
    bool held = p->uid_base > 0;
    if (!held && strict)
        return err_set(
            &why,
            "the size of the directory %s cannot be held here, for which the gateway must be root's; `limits: "
            "approximate` holds none",
            is->name);
    kept_key(x, m->name, is->of_session, key);
    int fd = kept_hold(p->config->state_dir, key, &why);
    if (fd < 0)
        return -1;
    b->has.kept[b->has.nkept++] = fd;
    snprintf(path, sizeof(path), "%s/mounts/%s", p->config->state_dir, key);
    if (held)
        return add(to, "k %.*s %llu %s.img\n", SPAN_FMT(m->at), (unsigned long long)is->size, path);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return err_errno(&why, "its directory %s cannot be made", path);
    return add(to, "w %.*s %s\n", SPAN_FMT(m->at), path);
}

void parent_extras_end(struct running_box *b)
{
    while (b->has.nkept > 0)
        close(b->has.kept[--b->has.nkept]);
    b->has.ndevices = 0;
}

/* The same words whether there is one that is others'. */
static int mount_give(const struct parent *p, struct running_box *b, const struct wire_extras *x,
                      const struct extras_mount *m, bool strict, char *to)
{
    const struct config_mount *is = config_mount(p->config, m->name);
    if (is == NULL || !config_is_of(&is->whose, x->tenant))
        return err_set(&why,
                       "there is no mount %.*s for this tenant: `mounts:` of the configuration says whose there are",
                       SPAN_FMT(m->name));
    if (is->path[0] == '\0')
        return kept_give(p, b, x, m, is, strict, to);
    return add(to, "r %.*s %s\n", SPAN_FMT(m->at), is->path);
}

static bool is_held(const struct parent *p, uint64_t device)
{
    for (size_t i = 0; i < BOXES_MAX; i++)
        for (size_t k = 0; p->boxes[i].id != 0 && k < p->boxes[i].has.ndevices; k++)
            if (p->boxes[i].has.device[k] == device)
                return true;
    return false;
}

static int device_of(const char *node, uint64_t *device)
{
    struct stat st;
    if (lstat(node, &st) != 0)
        return err_errno(&why, "its device %s cannot be found", node);
    if (!S_ISCHR(st.st_mode))
        return err_set(&why, "its device %s is no character device", node);
    *device = st.st_rdev;
    return 0;
}

/* Those of the pool that sandboxes of this tenant hold. */
static size_t held_by(const struct parent *p, const struct config_pool *pool, struct span tenant)
{
    size_t n = 0;
    uint64_t device;
    for (size_t i = 0; i < BOXES_MAX; i++) {
        const struct running_box *b = &p->boxes[i];
        if (b->id == 0 || b->has.ndevices == 0 || !span_eq(span_str(b->has.tenant), tenant))
            continue;
        for (size_t k = 0; k < pool->nnodes; k++)
            for (size_t d = 0; device_of(pool->node[k], &device) == 0 && d < b->has.ndevices; d++)
                n += b->has.device[d] == device;
    }
    return n;
}

static int devices_give(struct parent *p, struct running_box *b, const struct extras_device *want, char *to)
{
    const struct config_pool *pool = config_pool(p->config, want->pool);
    struct span tenant = span_str(b->has.tenant);
    unsigned left = want->count;
    uint64_t device;
    if (pool == NULL || !config_is_of(&pool->whose, tenant))
        return err_set(&why,
                       "there are no devices %.*s for this tenant: `devices:` of the configuration says whose there "
                       "are",
                       SPAN_FMT(want->pool));
    if (held_by(p, pool, tenant) + want->count > pool->most)
        return err_set(&why, "sandboxes of this tenant have as many of the devices %s as may at once (%zu)",
                       pool->name, pool->most);
    for (size_t i = 0; i < pool->nnodes && left > 0; i++) {
        if (device_of(pool->node[i], &device) != 0)
            return -1;
        if (is_held(p, device))
            continue;
        b->has.device[b->has.ndevices++] = device;
        left--;
        if (add(to, "%s\n", pool->node[i]) != 0)
            return -1;
    }
    for (size_t i = 0; i < pool->nwith; i++)
        if (device_of(pool->with[i], &device) != 0 || add(to, "%s\n", pool->with[i]) != 0)
            return -1;
    return left == 0 ? 0
                     : err_set(&why, "not as many of the devices %s are free: try again when a sandbox has ended",
                               pool->name);
}

const char *parent_extras_give(struct parent *p, struct running_box *b, struct span extras, bool strict,
                               struct box_gives *g)
{
    struct wire_extras x;
    *g = (struct box_gives){.mounts = ""};
    if (wire_get_extras(extras, &x) != 0)
        return "what else it is to have cannot be understood";
    snprintf(b->has.tenant, sizeof(b->has.tenant), "%.*s", SPAN_FMT(x.tenant));
    int rc = 0;
    if (x.nmounts > 0)
        rc = add(g->mounts, "COUNTERSIGN_MOUNTS=");
    for (size_t i = 0; i < x.nmounts && rc == 0; i++)
        rc = mount_give(p, b, &x, &x.mount[i], strict, g->mounts);
    if (x.ndevices > 0 && rc == 0)
        rc = add(g->devices, "COUNTERSIGN_DEVICES=");
    for (size_t i = 0; i < x.ndevices && rc == 0; i++)
        rc = devices_give(p, b, &x.device[i], g->devices);
    return rc == 0 ? NULL : why.text;
}
