/* countersign sandbox create|list|rm, countersign env */
#include <stdio.h>
#include <unistd.h>

#include "cli/table.h"
#include "cli/verb.h"
#include "sandbox-shim/env.h"

enum {
    LABELS_MAX = 17 /* one more than a sandbox may have, so that too many are seen */,
    URL_ROOM = 1024,
    TEXT_ROOM = 64 * 1024
};

struct sandbox {
    struct gateway_call g;
    const char *name, *session, *format, *token, *via, *dir;
    const char *label[LABELS_MAX];
    size_t nlabels;
    bool end_session, revoke_others;
};

/* SCHEME://NAME:TOKEN@host:port; the lobby takes the token as the password. `where` is what the gateway says of a
 * listener, SCHEME://host:port, or nothing. False: it has no such listener. */
static bool url_with_token(struct span where, struct span name, struct span token, char out[URL_ROOM])
{
    static const char *const schemes[] = {"http://", "https://", "socks5h://"};

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        struct span scheme = span_str(schemes[i]), rest = span_from(where, scheme.n);
        if (!span_starts(where, scheme))
            continue;
        int n =
            snprintf(out, URL_ROOM, "%s%.*s:%.*s@%.*s", schemes[i], SPAN_FMT(name), SPAN_FMT(token), SPAN_FMT(rest));
        return n > 0 && n < URL_ROOM;
    }
    out[0] = '\0';
    return false;
}

/* Where the sandbox sees one of our public files: where it lies here, or in --dir. */
static const char *path_member(struct sandbox *s, const char *key, const char *file)
{
    struct span here = member_text(s->g.tree, key);
    size_t room = (s->dir ? strlen(s->dir) : 0) + here.n + strlen(file) + 2;
    char *p = arena_alloc(&s->g.arena, room);

    if (!p)
        return "";
    if (s->dir)
        (void)snprintf(p, room, "%s/%s", s->dir, file);
    else
        (void)snprintf(p, room, "%.*s", SPAN_FMT(here));
    return p;
}

/* url: nothing for a sandbox whose way out is not ours to say. */
static int print_filled(struct sandbox *s, struct span url)
{
    enum env_format format = env_format_named(s->format ? s->format : "shell");
    struct env_values v = {
        .proxy_url = url,
        .bundle = path_member(s, "bundle", "bundle.crt"),
        .ca = path_member(s, "ca", "ca.crt"),
        .truststore = path_member(s, "truststore", "truststore.p12"),
        .captured = url.n == 0,
    };
    struct dynbuf out;
    struct err e;
    int rc = CLI_OK;

    dynbuf_init(&out, TEXT_ROOM);
    if (env_print(&out, format, &v, &e) == 0 && dynbuf_ok(&out))
        (void)fwrite(out.p, 1, out.n, stdout);
    else
        rc = verb_fail(CLI_RUNTIME, "%s", e.text);
    dynbuf_wipe(&out);
    return rc;
}

static int print_variables(struct sandbox *s, struct span name, struct span token)
{
    char http[URL_ROOM], socks[URL_ROOM];
    bool has_http = url_with_token(member_text(s->g.tree, "proxy"), name, token, http);
    bool has_socks = url_with_token(member_text(s->g.tree, "socks"), name, token, socks);
    bool by_socks = s->via ? strcmp(s->via, "socks5") == 0 : !has_http;

    if (!(by_socks ? has_socks : has_http))
        return verb_fail(CLI_RUNTIME,
                         "the gateway has no %s listener for tokens: see `listeners` in countersign.yaml",
                         by_socks ? "socks5" : "http");
    return print_filled(s, span_str(by_socks ? socks : http));
}

/* What making a sandbox, or one more token for it, gave. */
static int print_token(struct sandbox *s)
{
    struct span name = member_text(s->g.tree, "name"), token = member_text(s->g.tree, "token");

    if (s->g.json) {
        verb_print_answer(&s->g);
        return CLI_OK;
    }
    fprintf(stderr, "# sandbox %.*s; its token is shown this once: %.*s\n", SPAN_FMT(name), SPAN_FMT(token));
    fprintf(stderr, "# set these in it; the files they name must be there too (`countersign ca export DIR`):\n");
    return print_variables(s, name, token);
}

static bool labelled_before(const struct sandbox *s, size_t n, struct span key)
{
    struct span other, value;
    for (size_t i = 0; i < n; i++)
        if (span_cut(span_str(s->label[i]), '=', &other, &value) && span_eq(other, key))
            return true;
    return false;
}

static int labels_put(struct jsonw *w, struct sandbox *s)
{
    jsonw_kv_object(w, "labels");
    if (s->nlabels == LABELS_MAX)
        return verb_fail(CLI_USAGE, "a sandbox has up to %d labels", LABELS_MAX - 1);
    for (size_t i = 0; i < s->nlabels; i++) {
        struct span key, value;
        char name[128];
        if (!span_cut(span_str(s->label[i]), '=', &key, &value) || key.n == 0 || key.n >= sizeof(name))
            return verb_fail(CLI_USAGE, "a label is KEY=VALUE");
        if (labelled_before(s, i, key))
            return verb_fail(CLI_USAGE, "--label %.*s is there twice: a sandbox has one value of each label",
                             SPAN_FMT(key));
        (void)snprintf(name, sizeof(name), "%.*s", SPAN_FMT(key));
        jsonw_kv(w, name, value);
    }
    jsonw_end_object(w);
    return CLI_OK;
}

static int create(struct sandbox *s)
{
    struct dynbuf body;
    struct jsonw w;
    int rc;

    dynbuf_init(&body, TEXT_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, "kind", SPAN("token"));
    if (s->name)
        jsonw_kv(&w, "name", span_str(s->name));
    if (s->session)
        jsonw_kv(&w, "session", span_str(s->session));
    rc = labels_put(&w, s);
    jsonw_end_object(&w);
    if (rc == CLI_OK)
        rc = verb_ask(&s->g, "POST", "/api/v1/sandboxes", dynbuf_span(&body), 201);
    dynbuf_free(&body);
    if (rc != CLI_OK)
        return rc;
    return print_token(s);
}

/* Known by where it comes from: it has no token, and nothing to have one for. */
static bool without_token(struct sandbox *s)
{
    const struct json *rows = json_get(s->g.tree, SPAN("sandboxes"));

    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
        const struct json *token = json_get(r, SPAN("token"));
        if (span_eq(member_text(r, "name"), span_str(s->name)))
            return token && !token->truth && !span_eq(member_text(r, "kind"), SPAN("run"));
    }
    return false;
}

/* What it is to trust. Where its proxy is stands in the configuration, which may lie elsewhere than we do. */
static int print_trust(struct sandbox *s)
{
    fprintf(stderr,
            "# sandbox %s is known without a token, so these lines name no proxy. Captured, it needs none; else set "
            "HTTP_PROXY, HTTPS_PROXY and their lower-case twins to the listener that knows it (`listeners` in "
            "countersign.yaml).\n",
            s->name);
    fprintf(stderr, "# the files they name must be there too (`countersign ca export DIR`):\n");
    return print_filled(s, SPAN_NONE);
}

static int fresh(struct sandbox *s)
{
    struct span body = s->revoke_others ? SPAN("{\"revoke_others\":true}") : SPAN("{\"revoke_others\":false}");
    char path[256];
    int rc = verb_ask(&s->g, "GET", "/api/v1/sandboxes", SPAN_NONE, 200);

    if (rc == CLI_OK && !s->revoke_others && !s->g.json && without_token(s))
        return print_trust(s);
    if (rc != CLI_OK)
        return rc;
    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%s/token", s->name);
    rc = verb_ask(&s->g, "POST", path, body, 201);
    return rc == CLI_OK ? print_token(s) : rc;
}

static int list(struct sandbox *s)
{
    const struct json *rows;
    struct table t;
    char when[32];
    int rc = verb_ask(&s->g, "GET", "/api/v1/sandboxes", SPAN_NONE, 200);

    if (rc != CLI_OK)
        return rc;
    if (s->g.json) {
        verb_print_answer(&s->g);
        return CLI_OK;
    }
    rows = json_get(s->g.tree, SPAN("sandboxes"));
    table_begin(&t, "NAME\tKIND\tGENERATION\tSINCE\tWAITING\tSESSION");
    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
        table_text(&t, member_text(r, "name"));
        table_text(&t, member_text(r, "kind"));
        table_cell(&t, "%s%llu", t.people ? "" : "generation ", (unsigned long long)member_u64(r, "generation"));
        table_cell(&t, "%s", time_text(member_u64(r, "changed_ms"), when));
        table_cell(&t, "%llu%s", (unsigned long long)member_u64(r, "pending"), t.people ? "" : " waiting");
        table_add(&t, t.people ? "" : "session ");
        table_text(&t, member_text(r, "session"));
        table_row(&t);
    }
    table_end(&t, "No sandbox is known.");
    return CLI_OK;
}

static int name_ok(const char *s)
{
    return s[0] && strlen(s) < 64 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-._") == strlen(s);
}

static int rm(struct sandbox *s)
{
    char path[256];

    if (!name_ok(s->name))
        return verb_fail(CLI_USAGE, "that is not a sandbox's name");
    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%s%s", s->name, s->end_session ? "?end_session=1" : "");
    return verb_ask(&s->g, "DELETE", path, SPAN_NONE, 204);
}

/* What the options of printing and making say. */
static int begin(struct sandbox *s, const struct cli_call *c)
{
    s->format = cli_value(c, "format");
    s->via = cli_value(c, "via");
    s->dir = cli_value(c, "dir");
    if (c->nwords)
        s->name = c->word[0];
    if (s->dir && s->dir[0] != '/')
        return verb_fail(CLI_USAGE, "--dir is an absolute path");
    return verb_begin(&s->g, c);
}

int sandbox_create(const struct cli_call *c)
{
    struct sandbox s = {.name = cli_value(c, "name"), .session = cli_value(c, "session")};

    s.nlabels = cli_values(c, "label", s.label, LABELS_MAX);
    int rc = begin(&s, c);
    if (rc == CLI_OK)
        rc = create(&s);
    verb_end(&s.g);
    return rc;
}

int sandbox_list(const struct cli_call *c)
{
    struct sandbox s = {0};
    int rc = verb_begin(&s.g, c);

    if (rc == CLI_OK)
        rc = list(&s);
    verb_end(&s.g);
    return rc;
}

int sandbox_rm(const struct cli_call *c)
{
    struct sandbox s = {.name = c->word[0], .end_session = cli_flag(c, "end-session")};
    int rc = verb_begin(&s.g, c);

    if (rc == CLI_OK)
        rc = rm(&s);
    verb_end(&s.g);
    return rc;
}

int env_main(const struct cli_call *c)
{
    struct sandbox s = {.token = cli_value(c, "token"), .revoke_others = cli_flag(c, "revoke-others")};

    if (!c->nwords && !s.token)
        return cli_complain(c->verb, "NAME is missing, or --token TOKEN");
    if (c->nwords && !name_ok(c->word[0]))
        return cli_complain(c->verb, "`%s` is not a sandbox's name", c->word[0]);
    if (s.token && s.revoke_others)
        return cli_complain(c->verb, "--token and --revoke-others exclude each other");
    int rc = begin(&s, c);
    if (rc == CLI_OK && !s.token)
        rc = fresh(&s);
    else if (rc == CLI_OK && (rc = verb_ask(&s.g, "GET", "/api/v1/sandboxes", SPAN_NONE, 200)) == CLI_OK)
        rc = print_variables(&s, span_str(s.name ? s.name : "sandbox"), span_str(s.token));
    verb_end(&s.g);
    return rc;
}
