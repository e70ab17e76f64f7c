/* The one table of variables that lead every ecosystem's tools through the proxy
 * and make them trust its certificates: used by `countersign run` and by the
 * verbs that print it for a sandbox that exists already.
 *
 * Every variable is set, also where it only overrides what might be inherited:
 * an inherited REQUESTS_CA_BUNDLE beats pip's own PIP_CERT and --cert, an npm
 * cafile switches NODE_EXTRA_CA_CERTS off. The bundle must hold the system's
 * roots and ours: a file with our CA alone breaks what is not intercepted. */
#ifndef SANDBOX_SHIM_ENV_H
#define SANDBOX_SHIM_ENV_H

#include "common/dynbuf.h"
#include "common/err.h"

enum env_kind {
    ENV_NONE = 0,
    ENV_PROXY_URL,  /* http://[user:password@]host:port, or socks5h:// */
    ENV_PROXY_HTTP, /* the same for tools that know no SOCKS: left out with it */
    ENV_PROXY_TYPE, /* http or socks5 */
    ENV_PROXY_HOST, /* its parts, for tools that want them apart; */
    ENV_PROXY_PORT, /* left out when the URL has no such part */
    ENV_PROXY_USER,
    ENV_PROXY_PASSWORD,
    ENV_NO_PROXY, /* loopback only: never a means of security */
    ENV_BUNDLE,   /* system roots and our CA, replaces the tool's own list */
    ENV_CA,       /* our CA alone, added to the tool's own list */
    ENV_JAVA,     /* -D flags; the JVM reads no variable of proxies or trust */
    ENV_LITERAL,
};

struct env_row {
    const char *name;
    enum env_kind kind;
    const char *literal; /* with ENV_LITERAL */
};
extern const struct env_row env_rows[]; /* ends with a NULL name */

/* The values the table is filled with. */
struct env_values {
    struct span proxy_url;
    const char *bundle, *ca, *truststore; /* paths as the sandbox sees them */
    bool captured;                        /* trust only: connections are captured, and proxy_url is not looked at */
};

/* Called with each name and NUL-terminated value; not 0 ends the walk with that. */
typedef int env_fn(void *ctx, const char *name, const char *value);
/* Fill the table. -1: a URL is not http:// or socks5h://host:port, or a value holds a control
 * character (no format could carry it), or what fn gave. */
int env_each(const struct env_values *v, env_fn *fn, void *ctx, struct err *e) MUSTCHECK;

/* A proxy's URL in its parts, which point into it. */
struct env_url {
    bool socks, tls;
    struct span user, password, host, port;
};
/* http://[user[:password]@]host:port[/], https:// (tls: to the proxy itself) or socks5h:// */
int env_url_split(struct span s, struct env_url *u) MUSTCHECK;

enum env_format { ENV_FORMAT_BAD = 0, ENV_SHELL, ENV_DOCKER, ENV_COMPOSE, ENV_KUBERNETES, ENV_GITHUB };
/* shell, docker, compose, kubernetes, github; anything else is ENV_FORMAT_BAD. */
enum env_format env_format_named(const char *name);
/* shell: export lines to eval. docker: a --env-file. compose: an `environment:`
 * map. kubernetes: a container's `env:` list. github: lines for $GITHUB_ENV. */
int env_print(struct dynbuf *out, enum env_format format, const struct env_values *v, struct err *e) MUSTCHECK;

/* The same, of variables of the caller's own: the line before them, and one of them (an env_fn; ctx is this). */
struct env_printer {
    struct dynbuf out;
    enum env_format format;
};
void env_print_head(struct env_printer *p);
int env_print_one(void *ctx, const char *name, const char *value) MUSTCHECK;

/* May the caller set this one (NAME=VALUE) by hand? Not the table's, and nothing without a name. */
int env_may_set(const char *assignment, struct err *e) MUSTCHECK;
/* May `run` hand this variable of its caller to a sandbox? Names of an allow-list
 * (TERM, LANG, LC_*, TZ ...) with a short printable value; nothing else, ever. */
bool env_may_pass(const char *name, const char *value);

#endif
