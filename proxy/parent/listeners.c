/* The configuration's doors: bound here, given to the role that answers at them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/parent/parent.h"
#include "proxy/parent/programs/stores.h"
#include "proxy/wire.h"

struct listener *parent_listener_add(struct parent *p, int fd, unsigned kind, enum role_id role, const char *name)
{
    struct listener *l = NULL;
    for (size_t i = 0; i < p->nlisteners && l == NULL; i++)
        if (p->listeners[i].fd < 0)
            l = &p->listeners[i];
    if (l == NULL && p->nlisteners < LISTENERS_MAX)
        l = &p->listeners[p->nlisteners++];
    if (l == NULL)
        return NULL;
    *l = (struct listener){.fd = fd, .fd2 = -1, .kind = kind, .role = role, .parent = p};
    snprintf(l->name, sizeof(l->name), "%s", name);
    return l;
}

static struct listener *bind_tcp(struct parent *p, const char *address, unsigned kind, enum role_id role,
                                 const char *name, struct err *e)
{
    char literal[CONFIG_ADDRESS + 16];
    /* The page's name is localhost (passkeys and cookies know it by name); the socket needs a literal. */
    bool named = strncmp(address, "localhost:", 10) == 0;
    snprintf(literal, sizeof(literal), "%s%s", named ? "127.0.0.1:" : "", named ? address + 10 : address);
    int fd = listen_tcp(literal);
    if (fd < 0) {
        err_errno(e, "cannot listen on %s (listener %s; countersign.yaml(5) can give it another port)", address,
                  name);
        return NULL;
    }
    struct listener *l = parent_listener_add(p, fd, kind, role, name);
    if (l == NULL) {
        close(fd);
        err_set(e, "too many listeners");
        return NULL;
    }
    const char *colon = strrchr(address, ':');
    int host = colon ? (int)(colon - address) : (int)strlen(address);
    snprintf(l->path, sizeof(l->path), "%.*s:%d", host, address, listen_port(fd));
    l->tcp = true;
    return l;
}

static int bind_unix(struct parent *p, const char *file, unsigned kind, enum role_id role, struct err *e)
{
    char path[CONFIG_PATH + 32];
    snprintf(path, sizeof(path), "%s/%s", p->config->state_dir, file);
    if (strlen(path) > 107)
        return err_set(e, "the state directory's path is too long for a Unix socket; choose a shorter one");
    int fd = listen_unix(path, 0600);
    if (fd < 0)
        return err_errno(e, "cannot listen on %s", path);
    return parent_listener_add(p, fd, kind, role, file) ? 0 : err_set(e, "too many listeners");
}

/* Both of one port, which the first may have been given by the system. */
static int bind_dns(struct parent *p, const struct config_listener *c, struct err *e)
{
    struct listener *l = bind_tcp(p, c->dns, LISTEN_DNS, ROLE_RESOLVER, c->name, e);
    if (l == NULL)
        return -1;
    l->conf = c;
    const char *named = strncmp(l->path, "localhost:", 10) == 0 ? l->path + 9 : NULL;
    char literal[CONFIG_PATH + 16];
    snprintf(literal, sizeof(literal), "%s%s", named ? "127.0.0.1" : "", named ? named : l->path);
    l->fd2 = l->fd;
    l->fd = listen_udp(literal);
    if (l->fd < 0) {
        close(l->fd2);
        return err_errno(e, "cannot listen on %s for datagrams (dns of listener %s)", l->path, c->name);
    }
    return 0;
}

/* Said at the start, not when the first client comes. */
static int can_open(const char *path, const struct config_listener *c, struct err *e)
{
    int fd = *path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (*path && fd < 0)
        return err_errno(e, "cannot open %s (tls of listener %s)", path, c->name);
    if (fd >= 0)
        close(fd);
    return 0;
}

static int desk_files_ok(const struct config *c, struct err *e)
{
    static struct config_listener as;
    snprintf(as.name, sizeof(as.name), "desk");
    return can_open(c->desk_certificate, &as, e) != 0 || can_open(c->desk_key, &as, e) != 0 ? -1 : 0;
}

int parent_files_ok(const struct config_listener *c, struct err *e)
{
    bool bad = can_open(c->certificate, c, e) != 0 || can_open(c->key, c, e) != 0 || can_open(c->clients, c, e) != 0;
    return bad ? -1 : 0;
}

static int bind_one(struct parent *p, const struct config_listener *c, struct err *e)
{
    static const unsigned own[] = {[CONFIG_HTTP] = LISTEN_OWN, [CONFIG_TRANSPARENT] = LISTEN_CAPTURED};
    static const unsigned many[] = {
        [CONFIG_HTTP] = LISTEN_HTTP, [CONFIG_SOCKS5] = LISTEN_SOCKS, [CONFIG_TRANSPARENT] = LISTEN_CAPTURED_MANY};
    bool front = config_of_front(c);
    struct listener *l;
    if (c->kind == CONFIG_UNIX)
        return parent_sandbox_bind(p, c->sandbox, c->address, LISTEN_OWN, c, e);
    if (parent_files_ok(c, e) != 0)
        return -1;
    l = front ? bind_tcp(p, c->address, own[c->kind], ROLE_FRONT, c->sandbox, e)
              : bind_tcp(p, c->address, many[c->kind], ROLE_LOBBY, c->name, e);
    if (l == NULL)
        return -1;
    l->conf = c;
    if (front)
        parent_poll(l);
    return c->dns[0] ? bind_dns(p, c, e) : 0;
}

int parent_bind(struct parent *p, struct err *e)
{
    const struct config *c = p->config;
    if (p->args.secrets_only)
        return bind_unix(p, "keeper.sock", LISTEN_SECRETS, ROLE_KEEPER, e);
    for (size_t i = 0; i < c->nlisteners; i++)
        if (bind_one(p, &c->listener[i], e) != 0)
            return -1;
    if (desk_files_ok(c, e) != 0 || bind_tcp(p, c->desk_address, LISTEN_DESK, ROLE_DESK, "desk", e) == NULL ||
        bind_unix(p, "control.sock", LISTEN_CONTROL, ROLE_DESK, e) != 0 ||
        bind_unix(p, "keeper.sock", LISTEN_SECRETS, ROLE_KEEPER, e) != 0 ||
        (c->dock_address[0] != '\0' && bind_tcp(p, c->dock_address, LISTEN_DOCK, ROLE_DOCK, "e2b", e) == NULL) ||
        (c->away.endpoint[0] != '\0' && parent_away_bind(p, e) != 0) ||
        (c->broker.address[0] != '\0' && !p->args.private &&
         (bind_tcp(p, c->broker.address, LISTEN_BROKER, ROLE_BROKER, "broker", e) == NULL ||
          bind_unix(p, "broker.sock", LISTEN_BROKER_OWN, ROLE_BROKER, e) != 0)))
        return -1;
    return 0;
}

/* ---- to the roles ---- */

static void describe(struct dynbuf *b, const struct config_listener *c)
{
    static struct wire_listener w; /* some kilobytes */
    static const enum way ways[] = {
        [CONFIG_HTTP] = WAY_HTTP, [CONFIG_SOCKS5] = WAY_SOCKS, [CONFIG_TRANSPARENT] = WAY_CAPTURED};
    w = (struct wire_listener){.way = ways[c->kind],
                               .identity = c->identity,
                               .sandbox = span_str(c->sandbox),
                               .nsources = c->nsources,
                               .npeers = c->npeers,
                               .tls = c->certificate[0] != '\0'};
    for (size_t i = 0; i < c->nsources; i++) {
        w.source[i].key = span_str(c->source[i].key);
        w.source[i].sandbox = span_str(c->source[i].sandbox);
    }
    for (size_t i = 0; i < c->npeers; i++)
        w.peer[i] = span_str(c->peer[i]);
    wire_put_listener(b, &w);
}

/* The files of tls: are opened anew each time, so that a restarted lobby reads them from the beginning, as they are
 * now. -1: one cannot be opened; none is open. */
static int open_files(const struct config_listener *c, int fd[CHAN_FDS_MAX], unsigned *n)
{
    const char *const file[] = {c->certificate, c->key, c->clients};
    for (size_t i = 0; i < 3 && *file[i]; i++) {
        fd[*n] = open(file[i], O_RDONLY | O_CLOEXEC);
        if (fd[*n] < 0) {
            log_error("listener %s is not opened, or not changed: cannot open %s: %s", c->name, file[i],
                      strerror(errno));
            return -1;
        }
        ++*n;
    }
    return 0;
}

/* Those of the page. */
static int open_desk(const struct config *c, const struct listener *l, int fd[CHAN_FDS_MAX], unsigned *n)
{
    const char *const file[] = {c->desk_certificate, c->desk_key};
    for (size_t i = 0; l->kind == LISTEN_DESK && i < 2 && *file[i]; i++) {
        fd[*n] = open(file[i], O_RDONLY | O_CLOEXEC);
        if (fd[*n] < 0) {
            log_error("the page is not opened: cannot open %s: %s", file[i], strerror(errno));
            return -1;
        }
        ++*n;
    }
    return 0;
}

static void give(struct child *c, const struct listener *l)
{
    int fd[CHAN_FDS_MAX] = {l->fd, l->fd2};
    unsigned n = l->fd2 >= 0 ? 2 : 1, given = n;
    bool ok = c->role == ROLE_LOBBY ? open_files(l->conf, fd, &n) == 0 : open_desk(c->parent->config, l, fd, &n) == 0;
    struct dynbuf *b = ok ? chan_begin(c->chan, M_LISTEN, 0) : NULL;
    if (b != NULL) {
        msg_put_u8(b, (uint8_t)l->kind);
        msg_put_span(b, span_str(l->name));
        if (c->role == ROLE_LOBBY)
            describe(b, l->conf);
        (void)chan_commit_fds(c->chan, fd, n);
    }
    while (n > given)
        close(fd[--n]);
}

void parent_give_listeners(struct parent *p, struct child *c)
{
    for (size_t i = 0; i < p->nlisteners; i++)
        if (p->listeners[i].fd >= 0 && p->listeners[i].role == c->role && c->role != ROLE_FRONT && c->instance == 0)
            give(c, &p->listeners[i]);
}

/* ---- to people ---- */

void parent_listener_url(const struct listener *l, char *out, size_t cap)
{
    const struct config_listener *c = l->conf;
    bool bare = l->kind == LISTEN_DNS || c->kind == CONFIG_TRANSPARENT;
    const char *scheme = bare                       ? ""
                         : c->kind == CONFIG_SOCKS5 ? "socks5h://"
                         : c->certificate[0]        ? "https://"
                                                    : "http://";
    snprintf(out, cap, "%s%s", scheme, c->advertise[0] && !bare ? c->advertise : l->path);
}

const char *parent_listener_way(const struct listener *l)
{
    return l->kind == LISTEN_DNS ? "dns" : l->conf->kind == CONFIG_TRANSPARENT ? "captured" : "proxy";
}

bool parent_token_url(const struct parent *p, unsigned kind, char *out, size_t cap, char *why, size_t whycap)
{
    const struct listener *best = NULL;
    for (size_t i = 0; i < p->nlisteners; i++) {
        const struct listener *l = &p->listeners[i];
        bool theirs = l->fd >= 0 && l->kind == kind && l->conf != NULL && l->conf->identity == IDENTITY_TOKEN;
        bool plain = theirs && l->conf->certificate[0] == '\0'; /* which more programs can speak to */
        if (theirs && (best == NULL || (plain && best->conf->certificate[0] != '\0')))
            best = l;
    }
    out[0] = '\0';
    if (best == NULL)
        return false;
    if (config_unspecified(best->path) && best->conf->advertise[0] == '\0')
        snprintf(why, whycap,
                 "listener %s listens on every address (%s), and which of them sandboxes reach is not known: "
                 "add `advertise: HOST:PORT` to it in countersign.yaml",
                 best->name, best->path);
    else
        parent_listener_url(best, out, cap);
    return true;
}
