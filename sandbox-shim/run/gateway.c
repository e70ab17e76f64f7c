#include "sandbox-shim/run/gateway.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/control/api.h"
#include "common/control/exit.h"
#include "common/control/own_gateway.h"
#include "common/json/json.h"
#include "common/text/nearest.h"
#include "sandbox-shim/lease_env.h"
#include "sandbox-shim/plan/place.h"

enum {
    TREE_BYTES = 4 * 1024 * 1024,
    LEASE_LIFE_S = 7 * 24 * 3600,
    LEASE_WORDS_MAX = 64 * 1024,
    NAMES_ROOM = 1024,
    CREDENTIALS_COMPARED = 256
};

/* --- the gateway, or one of our own ---------------------------------------- */

static int start(struct gateway *g, const char *policy, struct err *e)
{
    char real[PATH_MAX];
    const char *const more[] = {"--policy", real, NULL};

    if (realpath(policy, real))
        return own_gateway_start(g->state_dir, more, &g->own, e);
    (void)err_errno(e, "the policy %s cannot be read", policy);
    return CLI_INVALID;
}

int gateway_find(struct gateway *g, const char *state_dir, struct err *e)
{
    return api_state_dir(state_dir, g->state_dir, e) != 0 ? -1 : api_socket(state_dir, g->sock, e);
}

int gateway_open(struct gateway *g, const char *policy, const char *const *with, size_t nwith, struct err *e)
{
    char shipped[PATH_MAX];
    int running;

    running = api_running(g->sock, e);
    if (running < 0)
        return CLI_STORE;
    if (running && policy) {
        (void)err_set(e,
                      "a gateway runs already (%s) and has its own policy: leave --policy out, or say another "
                      "--state-dir for a gateway of its own",
                      g->sock);
        return CLI_USAGE;
    }
    if (running)
        return CLI_OK;
    if (!policy && nwith == 1) {
        if (place_policy(with[0], shipped, e) != 0)
            return CLI_INVALID;
        policy = shipped;
    }
    if (!policy) {
        (void)err_set(e,
                      "no gateway runs (%s): start one with `countersign up`, or say --policy FILE to have one for "
                      "this command alone",
                      g->sock);
        return CLI_STORE;
    }
    return start(g, policy, e);
}

/* --- questions ------------------------------------------------------------ */

static int ask(struct gateway *g, const char *method, const char *path, struct span body, unsigned want,
               struct dynbuf *answer, struct err *e)
{
    unsigned status;

    if (api_call(g->sock, method, path, body, &status, answer, e) != 0)
        return -1;
    return status == want ? 0 : api_explain(status, dynbuf_span(answer), e);
}

/* Of the credentials' names the one most like this, or NULL. */
static const char *like(const struct json *answer, const char *name, struct arena *a)
{
    const char *names[CREDENTIALS_COMPARED + 1] = {NULL};
    const struct json *list = json_get(answer, SPAN("credentials"));
    size_t n = 0;

    for (const struct json *c = list ? list->child : NULL; c && n < CREDENTIALS_COMPARED; c = c->next) {
        struct span is = json_text(c, SPAN("name"));
        char *text = arena_alloc(a, is.n + 1);
        if (!text)
            return NULL;
        memcpy(text, is.p, is.n);
        text[is.n] = '\0';
        names[n++] = text;
    }
    return nearest_name(span_str(name), names);
}

/* --with names a credential of the policy, `secret set` what the credential takes from the store. */
static int check_credential(const struct json *answer, const char *name, struct arena *a, struct err *e)
{
    const struct json *c = lease_env_credential(answer, SPAN("name"), span_str(name)), *user;
    const struct json *present = json_get(c, SPAN("present"));
    struct span store = json_text(c, SPAN("store"));

    if (present && present->type == JSON_BOOL && present->truth)
        return 0;
    if (c && store.n > 0)
        return err_set(e, "the credential `%s` has no value yet: `countersign secret set %.*s` seals one", name,
                       SPAN_FMT(store));
    if (c)
        return err_set(e, "the credential `%s` has no value: its source in the policy gives none", name);
    user = lease_env_credential(answer, SPAN("store"), span_str(name));
    if (user)
        return err_set(e,
                       "`%s` is a secret, and the policy has no credential of this name; its credential `%.*s` uses "
                       "that secret: --with %.*s",
                       name, SPAN_FMT(json_text(user, SPAN("name"))), SPAN_FMT(json_text(user, SPAN("name"))));
    const char *near = like(answer, name, a);
    if (near)
        return err_set(e, "the policy has no credential named `%s`; did you mean --with %s?", name, near);
    return err_set(e, "the policy has no credential named `%s`: name it there under credentials:", name);
}

int gateway_check_with(struct gateway *g, const char *const *with, size_t nwith, struct err *e)
{
    struct dynbuf answer;
    struct arena a;
    int rc;

    if (nwith == 0)
        return 0;
    arena_init(&a, TREE_BYTES);
    rc = ask(g, "GET", "/api/v1/credentials", SPAN_NONE, 200, &answer, e);
    if (rc == 0) {
        const struct json *j = json_parse(dynbuf_span(&answer), &a);
        for (size_t i = 0; i < nwith && rc == 0; i++)
            rc = check_credential(j, with[i], &a, e);
    }
    dynbuf_free(&answer);
    arena_free(&a);
    return rc;
}

/* A string of the answer as a C string; paths must be absolute. */
static int take(const struct json *j, const char *key, char *dst, size_t room, bool path)
{
    struct span s = json_text(j, span_str(key));

    if (s.n == 0 || s.n >= room || memchr(s.p, '\0', s.n) || (path && s.p[0] != '/'))
        return -1;
    memcpy(dst, s.p, s.n);
    dst[s.n] = '\0';
    return 0;
}

void gateway_warn_files(struct gateway *g, const struct plan_dir *dirs, size_t n)
{
    char file[PATH_MAX];
    struct dynbuf answer;
    struct arena a;
    struct err e;

    arena_init(&a, TREE_BYTES);
    if (ask(g, "GET", "/api/v1/status", SPAN_NONE, 200, &answer, &e) == 0) {
        const struct json *list = json_get(json_parse(dynbuf_span(&answer), &a), SPAN("files"));
        for (const struct json *f = list ? list->child : NULL; f; f = f->next)
            for (size_t i = 0; take(f, "path", file, sizeof(file), true) == 0 && i < n; i++)
                if (place_overlaps(file, dirs[i].path))
                    fprintf(
                        stderr,
                        "countersign run: warning: %s lies in the workspace %s: the command can change it, and the "
                        "next reload or start takes what it wrote. Keep it elsewhere\n",
                        file, dirs[i].path);
    }
    dynbuf_free(&answer);
    arena_free(&a);
}

static void sandbox_body(struct dynbuf *body, const char *name, const char *session, bool captured,
                         const char *const *with, size_t nwith)
{
    struct jsonw w;

    jsonw_begin(&w, body);
    jsonw_object(&w);
    if (name)
        jsonw_kv(&w, "name", span_str(name));
    jsonw_kv(&w, "session", span_str(session));
    jsonw_kv_array(&w, "with");
    for (size_t i = 0; i < nwith; i++)
        jsonw_string(&w, span_str(with[i]));
    jsonw_end_array(&w);
    jsonw_kv(&w, "kind", SPAN("run"));
    if (captured)
        jsonw_kv_bool(&w, "captured", true);
    jsonw_end_object(&w);
}

/* Two runs of one name would share one listener, and the first to end would take it from the other. A lock of ours,
 * not a mark of the gateway's: a run that is killed leaves none behind. */
static int only_run(struct gateway *g, const char *name, struct err *e)
{
    char path[PATH_MAX + GATEWAY_NAME_MAX + 16];

    if (strlen(name) >= GATEWAY_NAME_MAX || strchr(name, '/'))
        return 0; /* the gateway says what is wrong with it */
    (void)snprintf(path, sizeof(path), "%s/run/sb-%s.lock", g->state_dir, name);
    g->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (g->lock < 0)
        return err_errno(e, "cannot open %s", path);
    if (flock(g->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return err_set(e, "a run of the name %s is going on: wait for its end, or choose another --name", name);
}

int gateway_sandbox(struct gateway *g, const char *name, const char *session, bool captured, const char *const *with,
                    size_t nwith, struct err *e)
{
    struct dynbuf body, answer;
    struct arena a;
    int rc;

    if (name && only_run(g, name, e) != 0)
        return -1;
    dynbuf_init(&body, 16 * 1024);
    dynbuf_init(&answer, 0);
    arena_init(&a, TREE_BYTES);
    sandbox_body(&body, name, session, captured, with, nwith);
    rc = dynbuf_ok(&body) ? ask(g, "POST", "/api/v1/sandboxes", dynbuf_span(&body), 201, &answer, e)
                          : err_set(e, "the workspace's path is too long");
    if (rc == 0) {
        const struct json *j = json_parse(dynbuf_span(&answer), &a);
        if (take(j, "name", g->name, sizeof(g->name), false) != 0 ||
            take(j, "listener", g->listener, sizeof(g->listener), true) != 0 ||
            take(j, "ca", g->ca, sizeof(g->ca), true) != 0 ||
            take(j, "bundle", g->bundle, sizeof(g->bundle), true) != 0 ||
            take(j, "truststore", g->truststore, sizeof(g->truststore), true) != 0)
            rc = err_set(e, "the gateway's answer lacks the sandbox's name, listener or certificates");
    }
    dynbuf_free(&body);
    dynbuf_free(&answer);
    arena_free(&a);
    return rc;
}

/* --- leases --------------------------------------------------------------- */

struct variables {
    struct lease_env env;
    struct plan *plan;
    struct dynbuf names; /* of those that hold the lease, or its secret: "A, B" */
};

static int put_variable(void *ctx, const char *name, const char *value)
{
    struct variables *v = ctx;
    struct dynbuf *out = &v->plan->leases;
    struct span is = span_str(value);

    (void)dynbuf_add(out, span_of("--setenv", sizeof("--setenv")));
    (void)dynbuf_add(out, span_of(name, strlen(name) + 1));
    (void)dynbuf_add(out, span_of(value, strlen(value) + 1));
    if (span_eq(is, v->env.lease) || span_eq(is, v->env.secret))
        (void)dynbuf_addf(&v->names, "%s%s", v->names.n ? ", " : "", name);
    else if (strncmp(name, "GIT_CONFIG_KEY_", 15) == 0 && span_find(dynbuf_span(&v->names), is) == v->names.n)
        (void)dynbuf_addf(&v->names, "%sGit's %s", v->names.n ? ", " : "", value);
    return dynbuf_ok(out) ? 0 : -1;
}

static int put_npm(void *ctx, const char *name, const char *value)
{
    struct variables *v = ctx;

    (void)dynbuf_addf(&v->names, "%snpm's %s", v->names.n ? ", " : "", name);
    return dynbuf_addf(&v->plan->npmrc, "%s=%s\n", name, value);
}

/* As long as one may live: it ends with the sandbox. */
static int lease(struct gateway *g, struct variables *v, bool say, struct err *e)
{
    struct span credential = json_text(v->env.credential, SPAN("name"));
    struct dynbuf body, answer;
    struct arena a;
    struct jsonw w;

    dynbuf_init(&v->names, NAMES_ROOM);
    dynbuf_init(&body, 4096);
    dynbuf_init(&answer, 0);
    arena_init(&a, TREE_BYTES);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, "credential", credential);
    jsonw_kv(&w, "sandbox", span_str(g->name));
    jsonw_kv_u64(&w, "expires_s", LEASE_LIFE_S);
    jsonw_end_object(&w);
    int rc = dynbuf_ok(&body) ? ask(g, "POST", "/api/v1/leases", dynbuf_span(&body), 201, &answer, e)
                              : err_set(e, "the credential's name is too long");
    if (rc == 0) {
        const struct json *j = json_parse(dynbuf_span(&answer), &a);
        v->env.lease = json_text(j, SPAN("lease"));
        v->env.secret = json_text(j, SPAN("secret"));
        rc = lease_env_each(&v->env, e);
    }
    if (rc == 0 && say)
        fprintf(stderr, "countersign: the lease of %.*s is in %.*s\n", SPAN_FMT(credential),
                SPAN_FMT(dynbuf_span(&v->names)));
    dynbuf_free(&v->names);
    dynbuf_free(&body);
    dynbuf_wipe(&answer);
    arena_free(&a);
    return rc;
}

/* Those that Git sends come first: of two that are for the same variable, the other one is the API's. */
int gateway_leases(struct gateway *g, const char *const *with, const char *const *set, size_t nwith, bool say,
                   struct plan *p, struct err *e)
{
    struct variables v = {.plan = p};
    struct dynbuf answer;
    struct arena a;
    int rc = 0;

    dynbuf_init(&p->leases, LEASE_WORDS_MAX);
    dynbuf_init(&p->npmrc, LEASE_WORDS_MAX);
    if (nwith == 0)
        return 0;
    arena_init(&a, TREE_BYTES);
    rc = ask(g, "GET", "/api/v1/credentials", SPAN_NONE, 200, &answer, e);
    const struct json *j = rc == 0 ? json_parse(dynbuf_span(&answer), &a) : NULL;
    v.env = (struct lease_env){.variable = put_variable, .npm = put_npm, .ctx = &v};
    for (size_t i = 0; i < 2 * nwith && rc == 0; i++) {
        v.env.set = set[i % nwith] ? span_str(set[i % nwith]) : SPAN_NONE;
        v.env.credential = lease_env_credential(j, SPAN("name"), span_str(with[i % nwith]));
        const struct json *basic = json_get(v.env.credential, SPAN("basic"));
        bool first = basic && basic->type == JSON_BOOL && basic->truth;
        if (first != (i < nwith))
            continue;
        if (json_text(v.env.credential, SPAN("lease")).n > 0)
            rc = lease(g, &v, say, e);
        else if (say)
            fprintf(stderr,
                    "countersign: no variable for %s: it has no `lease:` in the policy; it is added outside, to what "
                    "the rules that use it let through\n",
                    with[i % nwith]);
    }
    dynbuf_free(&answer);
    arena_free(&a);
    return rc;
}

static void sandbox_end(struct gateway *g)
{
    char path[GATEWAY_NAME_MAX + 32];
    struct dynbuf answer;
    struct err e;

    if (g->name[0] == '\0')
        return;
    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%s", g->name);
    if (ask(g, "DELETE", path, SPAN_NONE, 204, &answer, &e) != 0)
        fprintf(stderr, "countersign run: the sandbox %s could not be given back: %s\n", g->name, e.text);
    dynbuf_free(&answer);
    g->name[0] = '\0';
    if (g->lock > 0)
        close(g->lock);
    g->lock = 0;
}

void gateway_close(struct gateway *g)
{
    sandbox_end(g);
    (void)own_gateway_stop(&g->own);
}
