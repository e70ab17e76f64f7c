/* countersign mount list|rm: directories that outlive sandboxes, in the state directory of who owns it; a gateway
 * need not run. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/table.h"
#include "cli/verb.h"
#include "proxy/extras/kept.h"

enum { MIB = 1024 * 1024 };

static int begin(const struct cli_call *c, char dir[PATH_MAX])
{
    struct err e;

    if (api_state_dir(c->state_dir, dir, &e) != 0)
        return verb_fail(CLI_USAGE, "%s", e.text);
    if (access(dir, W_OK) != 0)
        return verb_fail(CLI_RUNTIME, "they lie in the state directory %s, which you cannot write: %s", dir,
                         strerror(errno));
    return CLI_OK;
}

static void row(void *ctx, const char *key, uint64_t bytes)
{
    struct table *t = ctx;

    table_cell(t, "%s", key);
    table_cell(t, "%llu", (unsigned long long)bytes / MIB);
    table_row(t);
}

int mount_list(const struct cli_call *c)
{
    char dir[PATH_MAX];
    struct table t;
    struct err e;
    int rc = begin(c, dir);

    if (rc != CLI_OK)
        return rc;
    table_begin(&t, "NAME@TENANT@SESSION\tMIB");
    if (kept_each(dir, row, &t, &e) != 0)
        rc = verb_fail(CLI_RUNTIME, "%s", e.text);
    table_end(&t, "No directory is kept.");
    return rc;
}

int mount_rm(const struct cli_call *c)
{
    char dir[PATH_MAX];
    struct err e;
    int rc = begin(c, dir);

    if (rc == CLI_OK && kept_remove(dir, c->word[0], &e) != 0)
        rc = verb_fail(CLI_RUNTIME, "%s", e.text);
    return rc;
}
