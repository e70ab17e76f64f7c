#include "proxy/resolver/dns.h"

#include <ares.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "common/log.h"

enum {
    SOCKETS_MAX = 64,
    TIMEOUT_MS = 2000, /* of the first try; doubled for the next */
    TRIES = 2,
    LOOK_AGAIN_MS = 5000,
};

#define RESOLV_CONF "/etc/resolv.conf"

struct dns_socket {
    struct dns *dns;
    struct watch *watch;
    ares_socket_t fd;
    bool used;
};

struct dns {
    struct loop *loop;
    ares_channel ares;
    struct timer *timer;
    struct dns_socket socket[SOCKETS_MAX];
    char *servers; /* NULL: those of resolv.conf */
    size_t open;
    uint64_t looked;
    struct timespec changed;
    bool ending;
};

struct question {
    struct dns *dns;
    dns_fn *fn;
    void *arg;
};

/* ---- c-ares on the loop ---- */

static void set_timer(struct dns *d)
{
    struct timeval tv, *next = ares_timeout(d->ares, NULL, &tv);
    if (next == NULL)
        timer_clear(d->timer);
    else
        timer_set(d->timer, (uint64_t)next->tv_sec * 1000 + (uint64_t)next->tv_usec / 1000 + 1);
}

static void on_timer(void *arg)
{
    struct dns *d = arg;
    ares_process_fd(d->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    set_timer(d);
}

static void on_ready(void *arg, unsigned ready)
{
    struct dns_socket *s = arg;
    struct dns *d = s->dns;
    ares_socket_t fd = s->fd;
    ares_process_fd(d->ares, ready & WATCH_READ ? fd : ARES_SOCKET_BAD, ready & WATCH_WRITE ? fd : ARES_SOCKET_BAD);
    set_timer(d);
}

static struct dns_socket *socket_of(struct dns *d, ares_socket_t fd)
{
    struct dns_socket *spare = NULL;
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        if (d->socket[i].used && d->socket[i].fd == fd)
            return &d->socket[i];
        if (!d->socket[i].used && spare == NULL)
            spare = &d->socket[i];
    }
    return spare;
}

static void on_socket(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct dns *d = arg;
    struct dns_socket *s = socket_of(d, fd);
    unsigned what = (readable ? WATCH_READ : 0) | (writable ? WATCH_WRITE : 0);
    if (s == NULL) /* its query times out */
        return;
    if (what == 0) {
        watch_free(&s->watch);
        s->used = false;
        return;
    }
    if (s->used) {
        watch_set(s->watch, what);
        return;
    }
    s->dns = d;
    s->fd = fd;
    s->watch = watch_new(d->loop, fd, what, on_ready, s);
    s->used = s->watch != NULL;
}

/* Without STAYOPEN a socket lives as long as questions are open on it: the next one has another source port. */
static int open_channel(struct dns *d, ares_channel *out, struct err *e)
{
    struct ares_options o = {.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
                             .timeout = TIMEOUT_MS,
                             .tries = TRIES,
                             .sock_state_cb = on_socket,
                             .sock_state_cb_data = d};
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
    int rc = ares_init_options(out, &o, mask);
    if (rc == ARES_SUCCESS && d->servers != NULL &&
        (rc = ares_set_servers_ports_csv(*out, d->servers)) != ARES_SUCCESS)
        ares_destroy(*out);
    return rc == ARES_SUCCESS
               ? 0
               : err_set(e, "name resolution cannot be set up: %s; look at " RESOLV_CONF, ares_strerror(rc));
}

/* ---- a changed resolv.conf ---- */

static void note_change(struct dns *d, bool *changed)
{
    struct stat st;
    *changed = false;
    if (stat(RESOLV_CONF, &st) != 0)
        return;
    *changed = st.st_mtim.tv_sec != d->changed.tv_sec || st.st_mtim.tv_nsec != d->changed.tv_nsec;
    d->changed = st.st_mtim;
}

/* While nothing is open. What cannot be read again leaves the servers as they were. */
static void look_again(struct dns *d)
{
    uint64_t now = loop_now(d->loop);
    ares_channel fresh;
    struct err e;
    bool changed;
    if (d->open > 0 || d->servers != NULL || now - d->looked < LOOK_AGAIN_MS)
        return;
    d->looked = now;
    note_change(d, &changed);
    if (!changed)
        return;
    if (open_channel(d, &fresh, &e) != 0) {
        log_warn("%s", e.text);
        return;
    }
    ares_destroy(d->ares);
    d->ares = fresh;
}

/* ---- questions ---- */

static size_t addresses(const struct ares_addrinfo *info, struct addr *to)
{
    size_t n = 0;
    const int families[] = {AF_INET, AF_INET6}; /* IPv4 first: the carrier tries them in a row */
    for (size_t f = 0; f < 2; f++)
        for (const struct ares_addrinfo_node *i = info->nodes; i != NULL; i = i->ai_next) {
            uint16_t port;
            if (i->ai_family != families[f])
                continue;
            if (n == DNS_ADDRS_MAX || addr_of_sockaddr(i->ai_addr, &to[n], &port) != 0)
                return 0;
            n++;
        }
    return n;
}

static void answered(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
    struct question *q = arg;
    struct dns *d = q->dns;
    struct addr addr[DNS_ADDRS_MAX];
    size_t n = 0;
    enum dns_result r = DNS_FAILED;
    if (status == ARES_SUCCESS && info != NULL && (n = addresses(info, addr)) > 0)
        r = DNS_FOUND;
    else if (status == ARES_ENOTFOUND || status == ARES_ENODATA || (status == ARES_SUCCESS && info && !info->nodes))
        r = DNS_NOT_FOUND;
    if (info != NULL)
        ares_freeaddrinfo(info);
    d->open--;
    if (!d->ending)
        q->fn(q->arg, r, addr, n);
    free(q);
}

void dns_ask(struct dns *d, const char *name, dns_fn *fn, void *arg)
{
    struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_flags = ARES_AI_NOSORT};
    struct question *q = malloc(sizeof(*q));
    look_again(d);
    if (q == NULL) {
        fn(arg, DNS_FAILED, NULL, 0);
        return;
    }
    *q = (struct question){d, fn, arg};
    d->open++;
    ares_getaddrinfo(d->ares, name, NULL, &hints, answered, q);
    set_timer(d);
}

/* ---- life ---- */

struct dns *dns_new(struct loop *l, const char *servers, struct err *e)
{
    struct dns *d = calloc(1, sizeof(*d));
    bool changed;
    if (d == NULL) {
        err_set(e, "no memory for name resolution");
        return NULL;
    }
    d->loop = l;
    d->looked = loop_now(l);
    note_change(d, &changed);
    d->timer = timer_new(l, on_timer, d);
    bool named = servers == NULL || (d->servers = strdup(servers)) != NULL;
    if (d->timer == NULL || !named || open_channel(d, &d->ares, e) != 0) {
        timer_free(&d->timer);
        free(d->servers);
        free(d);
        return NULL;
    }
    return d;
}

int dns_servers(struct dns *d, const char *servers, struct err *e)
{
    ares_channel fresh;
    char *old = d->servers, *copy = strdup(servers);
    d->servers = copy;
    if (copy == NULL || open_channel(d, &fresh, e) != 0) {
        d->servers = old;
        free(copy);
        return copy == NULL ? err_set(e, "no memory for the name servers") : -1;
    }
    free(old);
    ares_destroy(d->ares);
    d->ares = fresh;
    return 0;
}

void dns_free(struct dns **at)
{
    struct dns *d = *at;
    *at = NULL;
    if (d == NULL)
        return;
    d->ending = true;
    ares_destroy(d->ares);
    for (size_t i = 0; i < SOCKETS_MAX; i++)
        watch_free(&d->socket[i].watch);
    timer_free(&d->timer);
    free(d->servers);
    free(d);
}
