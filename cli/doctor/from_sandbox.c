/* countersign doctor --from-sandbox: no state directory, only what a sandbox sees */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/doctor/findings.h"
#include "common/time/clock.h"
#include "cli/doctor/probe.h"

enum { SKEW_MS = 60 * 1000, DIRECT_MS = 2000, LIST_MAX = 1024 };

#define PRINT_AGAIN "have the variables printed again on the gateway's host: countersign env NAME"

/* Without these one of the usual tools goes its own way; the table's others are for tools that may not be there. */
static const char *const needed[] = {
    "HTTP_PROXY",         "http_proxy",     "HTTPS_PROXY",    "https_proxy",         "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", NULL};

struct look {
    struct findings *f;
    struct env_url url;
    const struct env_url *proxy; /* NULL: none is named */
    bool captured;               /* names are answered: connections are caught on their way */
    struct probe_who who;
    struct dynbuf good; /* roots that verify the gateway; empty: none known */
};

static bool resolves(const char *name)
{
    struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM};
    int rc = getaddrinfo(name, NULL, &hints, &list);

    if (list)
        freeaddrinfo(list);
    return rc == 0;
}

/* --- variables ------------------------------------------------------------ */

static const char *proxy_named(const char **name)
{
    static const char *const names[] = {"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy",
                                        "HTTP_PROXY",  "http_proxy",  NULL};

    for (const char *const *n = names; *n; n++) {
        const char *value = getenv(*n);
        *name = *n;
        if (value && *value)
            return value;
    }
    return NULL;
}

static void look_at_proxy(struct look *l)
{
    const char *name, *value = proxy_named(&name);

    if (!value) {
        if (!l->captured) {
            finding(l->f, FINDING_BAD, "variables", "programs that look for a proxy find none", PRINT_AGAIN,
                    "no proxy is named: HTTPS_PROXY and its kin are not set");
            finding(l->f, FINDING_BAD, "dns", "where connections are captured, names are answered by the gateway",
                    "if they shall be captured: let /etc/resolv.conf name a server that is captured too, and see "
                    "`dns` of the listener in countersign.yaml",
                    PROBE_HOST " has no address");
        }
        return;
    }
    if (span_starts(span_str(value), SPAN("socks5://")))
        finding(l->f, FINDING_BAD, "variables", "with socks5:// a program resolves names by itself, where it cannot",
                "write socks5h:// instead", "%s asks for names to be resolved here", name);
    else if (env_url_split(span_str(value), &l->url) != 0)
        finding(l->f, FINDING_BAD, "variables", "it must read http://NAME:TOKEN@HOST:PORT, or socks5h://",
                PRINT_AGAIN, "%s is not the URL of a proxy", name);
    else
        l->proxy = &l->url;
}

static bool is_needed(const char *name)
{
    for (const char *const *n = needed; *n; n++)
        if (strcmp(*n, name) == 0)
            return true;
    return false;
}

static void add_name(char list[LIST_MAX], const char *name)
{
    size_t n = strlen(list);

    (void)snprintf(list + n, LIST_MAX - n, "%s%s", n ? " " : "", name);
}

struct lists {
    char missing[LIST_MAX], other[LIST_MAX], differ[LIST_MAX];
};

static int compare(void *ctx, const char *name, const char *value)
{
    struct lists *s = ctx;
    const char *is = getenv(name);
    const struct env_row *r = env_rows;

    while (strcmp(r->name, name) != 0)
        r++;
    if (!is || !*is)
        add_name(is_needed(name) ? s->missing : s->other, name);
    else if ((r->kind == ENV_PROXY_URL || r->kind == ENV_PROXY_HTTP) && strcmp(is, value) != 0)
        add_name(s->differ, name);
    return 0;
}

static void look_at_variables(struct look *l)
{
    const char *name, *value = proxy_named(&name);
    struct env_values v = {.proxy_url = l->proxy ? span_str(value) : SPAN_NONE,
                           .bundle = "-",
                           .ca = "-",
                           .truststore = "-",
                           .captured = !l->proxy};
    struct lists s = {.missing = ""};
    struct err e;

    if ((!l->proxy && !l->captured) || env_each(&v, compare, &s, &e) != 0)
        return;
    if (s.missing[0])
        finding(l->f, FINDING_BAD, "variables",
                "the tools that read them go out without the proxy, or do not trust what it shows them", PRINT_AGAIN,
                "not set: %s", s.missing);
    if (s.differ[0])
        finding(l->f, FINDING_BAD, "variables",
                "some tools read only one spelling (curl: http_proxy; wget: lower case), so two values are two ways",
                PRINT_AGAIN, "not the same as %s: %s", name, s.differ);
    if (!s.missing[0] && !s.differ[0] && l->proxy)
        finding(l->f, FINDING_OK, "variables", NULL, NULL, "the proxy is %.*s:%.*s in all of them",
                SPAN_FMT(l->url.host), SPAN_FMT(l->url.port));
    if (s.other[0])
        finding(l->f, FINDING_NOTE, "variables", NULL, NULL, "not set, and only some tools' concern: %s", s.other);
}

/* What it names is asked for without the gateway; only loopback may be. */
static bool is_loopback(struct span s)
{
    return s.n == 0 || span_eq(s, SPAN("localhost")) || span_starts(s, SPAN("127.")) || span_eq(s, SPAN("::1")) ||
           span_eq(s, SPAN("[::1]"));
}

static void look_at_no_proxy(struct look *l)
{
    static const char *const names[] = {"NO_PROXY", "no_proxy", NULL};

    for (const char *const *n = names; *n; n++) {
        const char *value = getenv(*n);
        struct span rest = value ? span_str(value) : SPAN_NONE, one;
        while (rest.n) {
            (void)span_cut(rest, ',', &one, &rest);
            one = span_trim(one);
            if (is_loopback(one))
                continue;
            finding(l->f, FINDING_BAD, "variables",
                    span_eq(one, SPAN("*")) ? "with * no program uses the proxy at all"
                                            : "what it names is asked for without the gateway, where no way out is",
                    "set it to 127.0.0.1,localhost,::1", "%s names %.*s", *n, SPAN_FMT(one));
        }
    }
}

/* --- the way -------------------------------------------------------------- */

static void say_closed(struct look *l, enum probe_result rc, const struct err *e)
{
    const char *to = l->proxy ? "the proxy" : PROBE_HOST;

    if (rc == PROBE_NAME)
        finding(l->f, FINDING_BAD, "dns", "the resolver of this sandbox does not know it",
                "repair the resolver (/etc/resolv.conf, the name of the service), or name the proxy by its address",
                "%s cannot be found: %s", to, e->text);
    else if (rc == PROBE_CLOSED)
        finding(l->f, FINDING_BAD, "proxy", "the gateway does not run, or this network does not lead to it",
                "on its host: countersign doctor; then compare its listener with the address here",
                "%s cannot be reached: %s", to, e->text);
    else if (rc == PROBE_TOKEN)
        finding(l->f, FINDING_BAD, "token", "it was revoked, its sandbox was removed, or it was not copied whole",
                "countersign sandbox list shows which there are; countersign env NAME makes a fresh token",
                "%s does not take this token: %s", to, e->text);
    else
        finding(l->f, FINDING_BAD, "proxy", "something else listens there, or stands between",
                "compare the address with `proxy` in what countersign up prints", "%s: %s", to, e->text);
}

/* 0: the gateway answers and knows us. */
static int look_at_way(struct look *l)
{
    struct err e = {{0}};
    enum probe_result rc = probe_whoami(l->proxy, &l->who, &e);

    if (rc != PROBE_OK) {
        say_closed(l, rc, &e);
        return -1;
    }
    finding(l->f, FINDING_OK, "gateway", NULL, NULL, "it answers, and this is the sandbox %s", l->who.sandbox);
    return 0;
}

static int look_at_clock(struct look *l)
{
    int64_t skew = (int64_t)clock_ms(CLOCK_REALTIME) - (int64_t)l->who.time_ms;
    if (skew <= SKEW_MS && skew >= -SKEW_MS) {
        finding(l->f, FINDING_OK, "clock", NULL, NULL, "the same as the gateway's");
        return 0;
    }
    finding(l->f, FINDING_BAD, "clock", "certificates are not valid yet, or no more; signed requests are refused",
            "set the clock here, or the gateway's, whichever is wrong; then look at the certificates again",
            "%lld seconds %s the gateway's", (long long)((skew < 0 ? -skew : skew) / 1000),
            skew < 0 ? "behind" : "ahead of");
    return -1;
}

static void look_at_names(struct look *l)
{
    if (l->captured)
        finding(l->f, FINDING_OK, "dns", NULL, NULL, PROBE_HOST " has an address: names are answered for capture");
    else if (resolves("example.com"))
        finding(l->f, FINDING_NOTE, "dns",
                "the proxy resolves names itself; a resolver that asks the outside is a way out for data",
                "give this sandbox a resolver that knows only its own network", "names are resolved here");
    else
        finding(l->f, FINDING_OK, "dns", NULL, NULL, "no names are resolved here, and none need be");
}

/* --- the way around ------------------------------------------------------- */

/* Is it the gateway that answers there, having caught the connection? */
static bool is_gateway(const struct look *l, int fd)
{
    struct err e;

    if (l->good.n)
        return probe_tls(fd, dynbuf_span(&l->good), &e) == 0;
    close(fd);
    return false;
}

static void look_around(struct look *l, const char *place)
{
    struct span s = span_str(place), host = s;
    uint64_t port = 443;
    struct err e;
    int fd;

    for (size_t i = s.n; i-- > 0;)
        if (s.p[i] == ':' && span_u64(span_from(s, i + 1), 65535, &port) == 0) {
            host = span_first(s, i);
            break;
        }
    if (probe_dial(host, (uint16_t)port, DIRECT_MS, &fd, &e) != PROBE_OK)
        finding(l->f, FINDING_OK, "direct", NULL, NULL, "%s cannot be reached directly", place);
    else if (is_gateway(l, fd))
        finding(l->f, FINDING_OK, "direct", NULL, NULL, "a connection to %s ends at the gateway", place);
    else if (l->captured && l->good.n == 0)
        finding(l->f, FINDING_NOTE, "direct", NULL, NULL,
                "whether a connection to %s ends at the gateway can be told when the rest is right", place);
    else
        finding(l->f, FINDING_BAD, "direct", "whatever does not read the variables goes past the gateway",
                "put this sandbox on a network that leads to the gateway alone: conf/compose, conf/kubernetes",
                "%s can be reached without the gateway", place);
}

void doctor_sandbox(struct findings *f, const char *const *direct)
{
    struct look l = {.f = f};

    dynbuf_init(&l.good, 0);
    (void)setenv("RES_OPTIONS", "timeout:1 attempts:1", 0); /* a resolver that is not there shall not hold us up */
    l.captured = resolves(PROBE_HOST);
    look_at_proxy(&l);
    look_at_variables(&l);
    look_at_no_proxy(&l);
    if (l.proxy && l.proxy->tls)
        finding(f, FINDING_NOTE, "proxy", NULL, NULL,
                "the way to this proxy is TLS itself and is not tried from here: curl -v -x says more");
    else if ((l.proxy || l.captured) && look_at_way(&l) == 0) {
        if (look_at_clock(&l) == 0)
            doctor_trust(f, l.proxy, &l.good);
        look_at_names(&l);
    }
    for (; *direct; direct++)
        look_around(&l, *direct);
    dynbuf_free(&l.good);
}
