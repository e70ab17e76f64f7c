/* pool: of the configuration: sandboxes that are started before anybody asks for them. */
#include <stdio.h>

#include "proxy/parent/config/config_in.h"

struct row_pool {
    const struct node *at;
    struct item image;
    struct number size, memory, pids, cpu_percent, disk, files;
};

#define MIB UINT64_C(1048576)
static const struct key pool_keys[] = {
    {"image", KEY_TEXT, AT(row_pool, image), 0, .help = "an imported image, or host"},
    {"size", KEY_COUNT, AT(row_pool, size), KEY_NEEDED, .lo = 1, .hi = POOL_MAX, .help = "how many of them wait"},
    {"memory", KEY_SIZE, AT(row_pool, memory), 0, .lo = 64 * MIB, .hi = UINT64_C(1) << 50,
     .help = "bytes, of all its processes"},
    {"pids", KEY_COUNT, AT(row_pool, pids), 0, .lo = 8, .hi = 4194304, .help = "processes and threads"},
    {"cpu_percent", KEY_COUNT, AT(row_pool, cpu_percent), 0, .lo = 1, .hi = 102400, .help = "of one CPU"},
    {"disk", KEY_SIZE, AT(row_pool, disk), 0, .lo = MIB, .hi = UINT64_C(1) << 50, .help = "bytes of its workspace"},
    {"files", KEY_COUNT, AT(row_pool, files), 0, .lo = 64, .hi = 65536, .help = "open files of each process"},
    {.type = KEY_END}};
const struct table config_ready_table = {"a pool", sizeof(struct row_pool), pool_keys};

static bool same(const struct config_ready *a, const struct config_ready *b)
{
    return strcmp(a->image, b->image) == 0 && a->memory == b->memory && a->pids == b->pids &&
           a->cpu_percent == b->cpu_percent && a->disk == b->disk && a->files == b->files;
}

static void take_row(struct loader *l, const struct row_pool *r, struct config *c)
{
    struct config_ready *p = &c->ready[c->nready];

    *p = (struct config_ready){.size = r->size.v,
                               .memory = r->memory.v,
                               .pids = r->pids.v,
                               .cpu_percent = r->cpu_percent.v,
                               .disk = r->disk.v,
                               .files = r->files.v};
    bool named = r->image.at != NULL && !span_eq(r->image.text, SPAN("host"));
    if (named && !config_sandbox_ok(r->image.text))
        load_problem(l, r->image.at, "C026", "an image's name is 1 to 63 of a-z 0-9 . _ -");
    else if (named)
        config_copy(l, p->image, sizeof(p->image), &r->image);
    for (size_t i = 0; i < c->nready; i++)
        if (same(&c->ready[i], p))
            load_problem(l, r->at, "C026", "another pool has this image and these limits");
    c->nready++;
}

void config_take_ready(struct loader *l, const struct list *rows, struct config *c)
{
    uint64_t all = 0;

    if (rows->n > POOL_ROWS_MAX)
        load_problem(l, rows->at, "C026", "at most %d pools", POOL_ROWS_MAX);
    for (size_t i = 0; i < rows->n && !l->failed; i++) {
        take_row(l, (const struct row_pool *)rows->v + i, c);
        all += c->ready[i].size;
    }
    if (all > POOL_MAX)
        load_problem(l, rows->at, "C026", "at most %d sandboxes wait in all pools together", POOL_MAX);
}
