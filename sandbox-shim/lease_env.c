#include "sandbox-shim/lease_env.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/file.h"
#include "common/id.h"

enum { TABLE_MAX = 64 * 1024, NAME_ROOM = 1024, VALUE_ROOM = 1024, KEY_ROOM = 64 };

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

/* For {basic}: what a client sends of them as Authorization: Basic. A credential that has no user of its own is
 * "user:password" itself, and any user will do. */
static void put_basic(struct dynbuf *out, const struct lease_env *l)
{
    struct span user = json_text(l->credential, SPAN("user"));
    struct dynbuf pair;
    char text[VALUE_ROOM];

    dynbuf_init(&pair, VALUE_ROOM / 4 * 3 - 3);
    (void)dynbuf_addf(&pair, "%.*s:%.*s", SPAN_FMT(user.n ? user : SPAN("lease")), SPAN_FMT(l->lease));
    (void)dynbuf_add(out, span_of(text, dynbuf_ok(&pair) ? base64_encode(dynbuf_span(&pair), text) : 0));
    dynbuf_wipe(&pair);
}

/* {env:NAME}: the caller's own variable, if it is a plain word, an address or a path: nothing to a shell. */
static struct span env_of(struct span name)
{
    char key[KEY_ROOM];
    struct span v = SPAN_NONE;

    if (name.n > 0 && name.n < sizeof(key)) {
        memcpy(key, name.p, name.n);
        key[name.n] = '\0';
        const char *is = getenv(key);
        v = is ? span_str(is) : SPAN_NONE;
    }
    for (size_t i = 0; i < v.n; i++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/@", v.p[i]) == NULL)
            return SPAN_NONE;
    return v;
}

/* text with what stands in braces filled in, and a NUL. False: one of them is nothing here, or it is too long. */
static bool fill(struct dynbuf *out, struct span text, const struct lease_env *l, struct span url)
{
    const struct json *basic = json_get(l->credential, SPAN("basic"));
    struct span plain, name, site = span_from(url, span_find(url, SPAN("//")) + 2);
    bool ok = true;

    dynbuf_reset(out);
    while (ok && span_cut(text, '{', &plain, &text)) {
        (void)dynbuf_add(out, plain);
        ok = span_cut(text, '}', &name, &text);
        if (span_eq(name, SPAN("basic"))) {
            ok = basic && basic->type == JSON_BOOL && basic->truth;
            put_basic(out, l);
            continue;
        }
        struct span v = span_eq(name, SPAN("lease"))      ? l->lease
                        : span_eq(name, SPAN("secret"))   ? l->secret
                        : span_eq(name, SPAN("url"))      ? url
                        : span_eq(name, SPAN("site"))     ? site
                        : span_starts(name, SPAN("env:")) ? env_of(span_from(name, 4))
                                                          : SPAN_NONE;
        ok = ok && v.n > 0;
        (void)dynbuf_add(out, v);
    }
    (void)dynbuf_add(out, plain);
    (void)dynbuf_add_byte(out, '\0');
    return ok && dynbuf_ok(out);
}

/* Emptied first, as Git has it of settings with several values: of two places, one of which lies in the other, it
 * would send both headers to the inner one. */
static int put_git(struct lease_env *l, const char *key, const char *value)
{
    char name[sizeof("GIT_CONFIG_VALUE_4294967295")];
    const char *const values[] = {"", value};
    int rc = 0;

    for (size_t i = 0; i < 2 && rc == 0; i++) {
        (void)snprintf(name, sizeof(name), "GIT_CONFIG_KEY_%u", l->git);
        rc = l->variable(l->ctx, name, key);
        (void)snprintf(name, sizeof(name), "GIT_CONFIG_VALUE_%u", l->git++);
        rc = rc ? rc : l->variable(l->ctx, name, values[i]);
    }
    return rc;
}

static int put_row(struct lease_env *l, struct span variable, struct span text, struct span url)
{
    struct dynbuf name, value;
    int rc = 0;

    dynbuf_init(&name, NAME_ROOM);
    dynbuf_init(&value, VALUE_ROOM);
    if (fill(&name, variable, l, url) && fill(&value, text, l, url)) {
        const char *n = (const char *)name.p, *v = (const char *)value.p;
        rc = strncmp(n, "git:", 4) == 0   ? put_git(l, n + 4, v)
             : strncmp(n, "npm:", 4) == 0 ? l->npm(l->ctx, n + 4, v)
                                          : l->variable(l->ctx, n, v);
    }
    dynbuf_wipe(&name);
    dynbuf_wipe(&value);
    return rc;
}

/* A row that names the place stands for as many as there are. */
static int put_rows(struct lease_env *l, struct span variable, struct span text)
{
    const struct json *places = json_get(l->credential, SPAN("places"));
    int rc = 0;

    if (span_find(variable, SPAN("{url}")) == variable.n && span_find(variable, SPAN("{site}")) == variable.n)
        return put_row(l, variable, text, SPAN_NONE);
    for (const struct json *p = places ? places->child : NULL; p && rc == 0; p = p->next)
        rc = put_row(l, variable, text, p->text);
    return rc;
}

int lease_env_each(struct lease_env *l, struct err *e)
{
    struct span set = l->set.n ? l->set : json_text(l->credential, SPAN("lease")), rest, line, of, variable, text;
    unsigned git = l->git;
    struct dynbuf table;
    char number[16];
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
        rc = put_rows(l, variable, text);
    }
    (void)snprintf(number, sizeof(number), "%u", l->git);
    if (rc == 0 && l->git != git)
        rc = l->variable(l->ctx, "GIT_CONFIG_COUNT", number);
    if (rc != 0)
        (void)err_set(e, "its variables are longer, all together, than there is room for");
    else if (!found)
        rc = err_set(e, "there is no set of variables named `%.*s` in lease-env.tsv", SPAN_FMT(set));
out:
    dynbuf_wipe(&table);
    return rc;
}

const struct json *lease_env_credential(const struct json *answer, struct span key, struct span value)
{
    const struct json *list = json_get(answer, SPAN("credentials")), *c;

    for (c = list ? list->child : NULL; c && !span_eq(json_text(c, key), value);)
        c = c->next;
    return c;
}
