/* The table of proxy and trust variables, and its printed forms. */
#include "sandbox-shim/env.h"

#include <stdio.h>

#define NO_PROXY_LIST "127.0.0.1,localhost,::1"

enum { VALUE_MAX = 4096, PASS_MAX = 256 };

const struct env_row env_rows[] = {
    /* curl reads http_proxy only in lower case, wget reads only lower case. */
    {"HTTP_PROXY", ENV_PROXY_URL, NULL},
    {"http_proxy", ENV_PROXY_URL, NULL},
    {"HTTPS_PROXY", ENV_PROXY_URL, NULL},
    {"https_proxy", ENV_PROXY_URL, NULL},
    {"ALL_PROXY", ENV_PROXY_URL, NULL},
    {"all_proxy", ENV_PROXY_URL, NULL},
    {"NO_PROXY", ENV_NO_PROXY, NULL},
    {"no_proxy", ENV_NO_PROXY, NULL},
    {"grpc_proxy", ENV_PROXY_HTTP, NULL},
    {"no_grpc_proxy", ENV_NO_PROXY, NULL},
    {"NODE_USE_ENV_PROXY", ENV_LITERAL, "1"}, /* Node 22.21 and 24 on; older ones ignore it */
    {"npm_config_proxy", ENV_PROXY_HTTP, NULL},
    {"npm_config_https_proxy", ENV_PROXY_HTTP, NULL},
    {"npm_config_noproxy", ENV_NO_PROXY, NULL},
    {"YARN_HTTP_PROXY", ENV_PROXY_HTTP, NULL},
    {"YARN_HTTPS_PROXY", ENV_PROXY_HTTP, NULL},
    {"CLOUDSDK_PROXY_TYPE", ENV_PROXY_TYPE, NULL},
    {"CLOUDSDK_PROXY_ADDRESS", ENV_PROXY_HOST, NULL},
    {"CLOUDSDK_PROXY_PORT", ENV_PROXY_PORT, NULL},
    {"CLOUDSDK_PROXY_USERNAME", ENV_PROXY_USER, NULL},
    {"CLOUDSDK_PROXY_PASSWORD", ENV_PROXY_PASSWORD, NULL},
    {"JAVA_TOOL_OPTIONS", ENV_JAVA, NULL},

    {"SSL_CERT_FILE", ENV_BUNDLE, NULL}, /* OpenSSL, Go; neither requests, aws nor Debian's git */
    /* Beats PIP_CERT and pip --cert when inherited; botocore takes it too. AWS_CA_BUNDLE is not set: the AWS SDK for
     * Go ends with it where its program brings a transport of its own (rclone 1.60). */
    {"REQUESTS_CA_BUNDLE", ENV_BUNDLE, NULL},
    {"CURL_CA_BUNDLE", ENV_BUNDLE, NULL},
    {"GIT_SSL_CAINFO", ENV_BUNDLE, NULL}, /* git over GnuTLS ignores SSL_CERT_FILE */
    {"PIP_CERT", ENV_BUNDLE, NULL},
    {"CARGO_HTTP_CAINFO", ENV_BUNDLE, NULL},
    {"npm_config_cafile", ENV_BUNDLE, NULL}, /* switches NODE_EXTRA_CA_CERTS off, so it must be the bundle */
    {"YARN_HTTPS_CA_FILE_PATH", ENV_BUNDLE, NULL},
    {"HTTPLIB2_CA_CERTS", ENV_BUNDLE, NULL},
    {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", ENV_BUNDLE, NULL},
    {"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", ENV_BUNDLE, NULL},
    {"NIX_SSL_CERT_FILE", ENV_BUNDLE, NULL},
    {"BUNDLE_SSL_CA_CERT", ENV_BUNDLE, NULL},
    {"NODE_EXTRA_CA_CERTS", ENV_CA, NULL},
    {"DENO_CERT", ENV_CA, NULL},
    {"DENO_TLS_CA_STORE", ENV_LITERAL, "system,mozilla"},

    /* The credential is added outside: a prompt could only wait for what must not be typed in here. */
    {"GIT_TERMINAL_PROMPT", ENV_LITERAL, "0"},
    {NULL, ENV_NONE, NULL},
};

static bool is_plain(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= 0x20 || s.p[i] >= 0x7f)
            return false;
    return true;
}

int env_url_split(struct span s, struct env_url *u)
{
    struct span rest, auth, left;

    memset(u, 0, sizeof(*u));
    u->socks = span_starts(s, SPAN("socks5h://"));
    struct span scheme = u->socks                           ? SPAN("socks5h://")
                         : span_starts(s, SPAN("https://")) ? SPAN("https://")
                                                            : SPAN("http://");
    u->tls = scheme.n == sizeof("https://") - 1;
    if (!span_starts(s, scheme) || !is_plain(s) || s.n >= VALUE_MAX / 4)
        return -1;
    rest = span_from(s, scheme.n);
    if (span_ends(rest, SPAN("/")))
        rest.n--;
    if (span_cut(rest, '@', &auth, &left)) {
        (void)span_cut(auth, ':', &u->user, &u->password);
        rest = left;
    }
    for (size_t i = rest.n; i-- > 0 && u->port.p == NULL;)
        if (rest.p[i] == ':') {
            u->host = span_first(rest, i);
            u->port = span_from(rest, i + 1);
        }
    uint64_t port;
    return u->host.n == 0 || span_index(u->host, '/') < u->host.n || span_u64(u->port, 65535, &port) != 0 || port == 0
               ? -1
               : 0;
}

/* The way out for the JVM, as properties. It says no token on it: Basic to a CONNECT proxy cannot be given this way,
 * and to a SOCKS proxy it gives its user's name without a password (measured with 17; java.net.socks.password is not
 * looked at). With a token, Java needs a listener that knows the sandbox otherwise, or capture. */
static void java_proxy(struct dynbuf *b, const struct env_url *u)
{
    if (!u->socks) {
        (void)dynbuf_addf(
            b, "-Dhttp.proxyHost=%.*s -Dhttp.proxyPort=%.*s -Dhttps.proxyHost=%.*s -Dhttps.proxyPort=%.*s ",
            SPAN_FMT(u->host), SPAN_FMT(u->port), SPAN_FMT(u->host), SPAN_FMT(u->port));
        (void)dynbuf_add(b, SPAN("-Dhttp.nonProxyHosts=localhost|127.*|[::1]"));
        return;
    }
    (void)dynbuf_addf(b, "-DsocksProxyHost=%.*s -DsocksProxyPort=%.*s", SPAN_FMT(u->host), SPAN_FMT(u->port));
}

static int java_value(char *dst, const struct env_values *v, const struct env_url *u)
{
    const char *quote = strchr(v->truststore, ' ') ? "\"" : "";
    struct dynbuf b;
    int rc = -1;

    if (strchr(v->truststore, '"'))
        return -1; /* no way to write it */
    dynbuf_init(&b, VALUE_MAX - 1);
    if (!v->captured)
        java_proxy(&b, u);
    (void)dynbuf_addf(&b,
                      "%s%s-Djavax.net.ssl.trustStore=%s%s -Djavax.net.ssl.trustStoreType=PKCS12"
                      " -Djavax.net.ssl.trustStorePassword=changeit",
                      v->captured ? "" : " ", quote, v->truststore, quote);
    if (dynbuf_ok(&b)) {
        memcpy(dst, b.p, b.n);
        dst[b.n] = '\0';
        rc = 0;
    }
    dynbuf_wipe(&b);
    return rc;
}

static struct span row_value(const struct env_row *r, const struct env_values *v, const struct env_url *u)
{
    switch (r->kind) {
    case ENV_PROXY_URL: return v->proxy_url;
    case ENV_PROXY_HTTP: return u->socks ? SPAN_NONE : v->proxy_url;
    case ENV_PROXY_TYPE: return u->socks ? SPAN("socks5") : SPAN("http");
    case ENV_PROXY_HOST: return u->host;
    case ENV_PROXY_PORT: return u->port;
    case ENV_PROXY_USER: return u->user;
    case ENV_PROXY_PASSWORD: return u->password;
    case ENV_NO_PROXY: return SPAN(NO_PROXY_LIST);
    case ENV_BUNDLE: return span_str(v->bundle);
    case ENV_CA: return span_str(v->ca);
    case ENV_LITERAL: return span_str(r->literal);
    case ENV_JAVA:
    case ENV_NONE: break;
    }
    return SPAN_NONE;
}

/* What only says where the proxy is. */
static bool is_proxy(enum env_kind k)
{
    switch (k) {
    case ENV_PROXY_URL:
    case ENV_PROXY_HTTP:
    case ENV_PROXY_TYPE:
    case ENV_PROXY_HOST:
    case ENV_PROXY_PORT:
    case ENV_PROXY_USER:
    case ENV_PROXY_PASSWORD:
    case ENV_NO_PROXY: return true;
    case ENV_NONE:
    case ENV_BUNDLE:
    case ENV_CA:
    case ENV_JAVA:
    case ENV_LITERAL: break;
    }
    return false;
}

static bool has_control(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    return false;
}

int env_each(const struct env_values *v, env_fn *fn, void *ctx, struct err *e)
{
    struct env_url u = {.socks = false};
    char value[VALUE_MAX];

    if (!v->captured && env_url_split(v->proxy_url, &u) != 0)
        return err_set(e, "the proxy's URL must read http://[user:password@]host:port, or https:// or socks5h://");
    for (const struct env_row *r = env_rows; r->name; r++) {
        if (v->captured && is_proxy(r->kind))
            continue;
        struct span s = row_value(r, v, &u);
        if (r->kind == ENV_JAVA) {
            if (has_control(span_str(v->truststore)) || java_value(value, v, &u) != 0)
                return err_set(e, "%s would be too long, or the truststore's path holds a quote", r->name);
        } else {
            if (s.n >= sizeof(value) || has_control(s))
                return err_set(e, "the value of %s is too long or holds a control character", r->name);
            if (s.n == 0)
                continue; /* a part this URL does not have */
            memcpy(value, s.p, s.n);
            value[s.n] = '\0';
        }
        int rc = fn(ctx, r->name, value);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* --- printing ------------------------------------------------------------- */

/* For a shell: in single quotes, where only the quote itself is special. */
static void put_shell(struct dynbuf *out, const char *value)
{
    (void)dynbuf_add_byte(out, '\'');
    for (const char *p = value; *p; p++)
        (void)(*p == '\'' ? dynbuf_add(out, SPAN("'\\''")) : dynbuf_add_byte(out, (uint8_t)*p));
    (void)dynbuf_add_byte(out, '\'');
}

/* A single-quoted YAML scalar. Compose and Kubernetes both expand $ in values and
 * both take a doubled one for itself. */
static void put_yaml(struct dynbuf *out, const char *value)
{
    (void)dynbuf_add_byte(out, '\'');
    for (const char *p = value; *p; p++) {
        if (*p == '\'' || *p == '$')
            (void)dynbuf_add_byte(out, (uint8_t)*p);
        (void)dynbuf_add_byte(out, (uint8_t)*p);
    }
    (void)dynbuf_add_byte(out, '\'');
}

int env_print_one(void *ctx, const char *name, const char *value)
{
    struct env_printer *p = ctx;
    struct dynbuf *out = &p->out;

    switch (p->format) {
    case ENV_SHELL:
        (void)dynbuf_addf(out, "export %s=", name);
        put_shell(out, value);
        break;
    case ENV_DOCKER: /* taken as it stands up to the line's end */
    case ENV_GITHUB: (void)dynbuf_addf(out, "%s=%s", name, value); break;
    case ENV_COMPOSE:
        (void)dynbuf_addf(out, "  %s: ", name);
        put_yaml(out, value);
        break;
    case ENV_KUBERNETES:
        (void)dynbuf_addf(out, "  - name: %s\n    value: ", name);
        put_yaml(out, value);
        break;
    case ENV_FORMAT_BAD: return -1;
    }
    (void)dynbuf_add_byte(out, '\n');
    return dynbuf_ok(out) ? 0 : -1;
}

enum env_format env_format_named(const char *name)
{
    static const char *const names[] = {
        [ENV_SHELL] = "shell",           [ENV_DOCKER] = "docker", [ENV_COMPOSE] = "compose",
        [ENV_KUBERNETES] = "kubernetes", [ENV_GITHUB] = "github",
    };

    for (size_t i = ENV_SHELL; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return (enum env_format)i;
    return ENV_FORMAT_BAD;
}

void env_print_head(struct env_printer *p)
{
    if (p->format == ENV_COMPOSE)
        (void)dynbuf_add(&p->out, SPAN("environment:\n"));
    if (p->format == ENV_KUBERNETES)
        (void)dynbuf_add(&p->out, SPAN("env:\n"));
}

int env_print(struct dynbuf *out, enum env_format format, const struct env_values *v, struct err *e)
{
    struct env_printer p = {*out, format};
    int rc;

    if (format == ENV_FORMAT_BAD)
        return err_set(e, "no such format; there are shell, docker, compose, kubernetes and github");
    env_print_head(&p);
    if (e)
        e->text[0] = '\0';
    rc = env_each(v, env_print_one, &p, e);
    *out = p.out;
    if (rc == 0)
        return 0;
    return e && e->text[0] ? -1 : err_set(e, "the variables do not fit");
}

/* --- what a caller's environment may lend --------------------------------- */

int env_may_set(const char *assignment, struct err *e)
{
    const char *eq = strchr(assignment, '=');
    size_t n = eq ? (size_t)(eq - assignment) : 0;

    if (n == 0)
        return err_set(e, "--setenv takes NAME=VALUE, not `%s`", assignment);
    for (const struct env_row *r = env_rows; r->name; r++)
        if (strlen(r->name) == n && memcmp(r->name, assignment, n) == 0)
            return err_set(e, "%s leads the sandbox through its proxy: --setenv cannot change it", r->name);
    return 0;
}

bool env_may_pass(const char *name, const char *value)
{
    static const char *const allowed[] = {"TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE", "TZ", NULL};
    static const char *const locale[] = {"LC_ALL",       "LC_CTYPE",       "LC_COLLATE", "LC_MESSAGES", "LC_MONETARY",
                                         "LC_NUMERIC",   "LC_TIME",        "LC_PAPER",   "LC_NAME",     "LC_ADDRESS",
                                         "LC_TELEPHONE", "LC_MEASUREMENT", NULL};
    size_t n = strlen(value);

    if (n == 0 || n > PASS_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((uint8_t)value[i] <= 0x20 || (uint8_t)value[i] >= 0x7f)
            return false;
    for (const char *const *p = allowed; *p; p++)
        if (strcmp(*p, name) == 0)
            return true;
    for (const char *const *p = locale; *p; p++)
        if (strcmp(*p, name) == 0)
            return true;
    return false;
}
