#include "sandbox-shim/lease_env.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/file.h"

enum { TABLE_MAX = 64 * 1024, NAME_ROOM = 128, VALUE_ROOM = 512 };

static int read_table(struct dynbuf *out, struct err *e)
{
    const char *beside = getenv("COUNTERSIGN_LEASE_ENV");
    const char *const paths[] = {beside && beside[0] == '/' ? beside : PKGDATADIR "/lease-env.tsv",
                                 PKGDATADIR "/conf/lease-env.tsv"};
    for (size_t i = 0; i < 2; i++) {
        dynbuf_reset(out);
        if (file_read(paths[i], out) == 0)
            return 0;
    }
    return err_set(e, "the table of variables cannot be read (looked in %s)", paths[0]);
}

/* {lease} and {secret} filled in. False: it asks for a secret that there is not, or is too long. */
static bool fill(struct span value, struct span lease, struct span secret, char to[VALUE_ROOM])
{
    struct span v = span_eq(value, SPAN("{lease}")) ? lease : span_eq(value, SPAN("{secret}")) ? secret : value;
    if (v.n == 0 || v.n >= VALUE_ROOM)
        return false;
    memcpy(to, v.p, v.n);
    to[v.n] = '\0';
    return true;
}

int lease_env_each(struct span set, struct span lease, struct span secret, env_fn *fn, void *ctx, struct err *e)
{
    char name[NAME_ROOM], value[VALUE_ROOM];
    struct span rest, line, of, variable, text;
    struct dynbuf table;
    bool found = false;
    int rc = 0;

    dynbuf_init(&table, TABLE_MAX);
    if (read_table(&table, e) != 0) {
        rc = -1;
        goto out;
    }
    rest = dynbuf_span(&table);
    while (rc == 0 && rest.n) {
        span_cut(rest, '\n', &line, &rest);
        if (line.n == 0 || line.p[0] == '#' || !span_cut(line, '\t', &of, &line) ||
            !span_cut(line, '\t', &variable, &text) || !span_eq(of, set))
            continue;
        found = true;
        if (variable.n == 0 || variable.n >= sizeof(name) || !fill(text, lease, secret, value))
            continue;
        memcpy(name, variable.p, variable.n);
        name[variable.n] = '\0';
        rc = fn(ctx, name, value);
    }
    if (rc == 0 && !found)
        rc = err_set(e, "there is no set of variables named `%.*s` in lease-env.tsv", SPAN_FMT(set));
out:
    dynbuf_wipe(&table);
    return rc;
}
