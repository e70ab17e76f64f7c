/* Fronts, one a sandbox: started when somebody knocks, gone when idle. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/parent/parent.h"
#include "proxy/parent/programs/cells.h"
#include "proxy/wire_ticket.h"

enum { AUTH_MAX = 8 * 1024, READ_MAX = 64 * 1024, REST_MS = 1000, LEAVE_MS = 1000 };

static void too_late(void *arg)
{
    struct child *c = arg;
    if (c->pid > 0)
        kill(c->pid, SIGKILL);
}

void parent_front_leave(struct child *c)
{
    if (c->leaving)
        return;
    c->leaving = true;
    if (c->chan != NULL)
        chan_send(c->chan, M_STOP, 0, SPAN_NONE);
    c->end = timer_new(c->parent->loop, too_late, c);
    if (c->end != NULL)
        timer_set(c->end, LEAVE_MS);
    else
        too_late(c);
}

void parent_front_over(struct parent *p, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint64_t instance = msg_get_u64(&m);
    struct child *c = msg_end(&m) == 0 ? parent_child(p, ROLE_FRONT, instance) : NULL;
    if (c != NULL)
        parent_front_leave(c);
}

/* Those of commands take no sandbox's place, and are bounded as the commands are (programs/cells.c): there are more
 * of them only while those of commands that ended leave. */
static bool has_room(const struct parent *p, const char *sandbox, bool of_command, size_t n)
{
    if (n < (of_command ? CELLS_MAX : p->config->sandboxes_max))
        return true;
    if (of_command)
        log_warn("no front for a command of %s: %zu are running", sandbox, n);
    else
        log_warn("no front for %s: %zu are running; close sandboxes that are not used, or raise limits: sandboxes",
                 sandbox, n);
    return false;
}

/* own: empty, or of which command of it alone. */
static struct child *front_of(struct parent *p, const char *sandbox, const char *own)
{
    size_t n = 0;
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->role == ROLE_FRONT && (!c->own[0]) == (!own[0]) && ++n && c->chan != NULL && !c->leaving &&
            strcmp(c->info, sandbox) == 0 && strcmp(c->own, own) == 0)
            return c; /* one without a channel has died and is only not reaped yet */
    if (p->stopping || !has_room(p, sandbox, own[0] != '\0', n))
        return NULL;
    struct child *c = parent_child_new(p, ROLE_FRONT, sandbox);
    if (c != NULL)
        snprintf(c->own, sizeof(c->own), "%s", own);
    if (c != NULL && parent_spawn(p, c) != 0) {
        log_error("cannot start a front for %s", sandbox);
        parent_child_free(p, &c);
    }
    return c;
}

static void rested(void *arg)
{
    struct parent *p = arg;
    for (size_t i = 0; i < p->nlisteners; i++)
        if (p->listeners[i].fd >= 0 && p->listeners[i].resting)
            parent_poll(&p->listeners[i]);
}

/* A listener nobody takes over stays ready for ever: look away for a while. */
static void rest(struct listener *l)
{
    struct parent *p = l->parent;
    watch_set(l->watch, 0);
    if (p->rest == NULL)
        p->rest = timer_new(p->loop, rested, p);
    if (p->rest == NULL)
        log_die("out of memory");
    l->resting = true;
    timer_set(p->rest, REST_MS);
}

/* Somebody knocked at a listener that belongs to one sandbox: its front takes it over. */
static void knocked(void *arg, unsigned ready)
{
    struct listener *l = arg;
    struct child *c = front_of(l->parent, l->name, l->own);
    if (c == NULL) {
        rest(l);
        return;
    }
    watch_set(l->watch, 0);
    l->holder = c->instance;
    struct dynbuf *b = chan_begin(c->chan, M_LISTEN, 0);
    msg_put_u8(b, (uint8_t)l->kind);
    msg_put_span(b, span_str(l->name));
    (void)chan_commit_fd(c->chan, l->fd);
}

void parent_poll(struct listener *l)
{
    l->holder = 0;
    l->resting = false;
    if (l->watch == NULL)
        l->watch = watch_new(l->parent->loop, l->fd, WATCH_READ, knocked, l);
    else
        watch_set(l->watch, WATCH_READ);
    if (l->watch == NULL)
        log_error("cannot poll the listener of %s", l->name);
}

/* Told on the connection that cannot be served; nothing is read from it. */
static void no_room(struct child *c, int fd, uint8_t way)
{
    static const struct span words = SPAN(
        "HTTP/1.1 503 Service Unavailable\r\nCountersign-Decision: refused\r\nContent-Type: text/plain\r\n"
        "Connection: close\r\nRetry-After: 30\r\n\r\ntoo-many-sandboxes: the gateway serves as many sandboxes as it "
        "may, or cannot start another one now; try again later, or ask its operator, whose log says why\n");
    if (c == NULL && way == WAY_HTTP && write(fd, words.p, words.n) < 0)
        log_debug("a sandbox too many was not told so");
}

/* The lobby learned who that is: give the connection, with what was read of it, to the sandbox's front. */
void parent_handover(struct parent *p, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint8_t way = msg_get_u8(&m);
    uint16_t port = msg_get_u16(&m);
    struct span sandbox = msg_get_span(&m, 255), auth = msg_get_span(&m, AUTH_MAX),
                bytes = msg_get_span(&m, READ_MAX);
    char name[256];
    int fd = frame_take_fd(f, 0);
    if (fd < 0)
        return;
    if (msg_end(&m) != 0 || sandbox.n == 0) {
        close(fd);
        return;
    }
    snprintf(name, sizeof(name), "%.*s", SPAN_FMT(sandbox));
    for (int tries = 0; tries < 2; tries++) {
        struct child *c = front_of(p, name, "");
        no_room(c, fd, way);
        if (c == NULL)
            break;
        struct dynbuf *b = chan_begin(c->chan, M_ADOPT, 0);
        msg_put_u8(b, way);
        msg_put_u16(b, port);
        msg_put_span(b, auth);
        msg_put_span(b, bytes);
        if (chan_commit_fd(c->chan, fd) == 0) {
            c->adopted++;
            break;
        }
        parent_front_leave(c); /* its channel is broken: this one has died, or soon will have */
    }
    close(fd);
}

/* A front has had nothing to do for a while. It may go if nothing is on its way to it. */
void parent_front_idle(struct parent *p, struct child *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint64_t adopted = msg_get_u64(&m);
    if (msg_end(&m) != 0 || adopted != c->adopted)
        return;
    parent_front_leave(c);
}

void parent_front_died(struct parent *p, struct child *c)
{
    bool failed = !c->leaving && loop_now(p->loop) - c->started_ms < REST_MS;
    for (size_t i = 0; i < p->nlisteners; i++) {
        struct listener *l = &p->listeners[i];
        if (l->fd < 0 || l->role != ROLE_FRONT || l->holder != c->instance)
            continue;
        if (failed)
            rest(l); /* one that dies as soon as it is started is not started over and over */
        else
            parent_poll(l);
    }
    parent_child_free(p, &c);
}

static struct listener *listener_of(struct parent *p, const char *name)
{
    for (size_t i = 0; i < p->nlisteners; i++)
        if (p->listeners[i].fd >= 0 && p->listeners[i].role == ROLE_FRONT && p->listeners[i].own[0] == '\0' &&
            strcmp(p->listeners[i].name, name) == 0)
            return &p->listeners[i];
    return NULL;
}

int parent_sandbox_bind(struct parent *p, const char *name, const char *path, unsigned kind,
                        const struct config_listener *conf, struct err *e)
{
    if (!config_sandbox_ok(span_str(name)))
        return err_set(e, "a sandbox's name is 1 to 63 of a-z 0-9 . _ -, not \"%s\"", name);
    if (listener_of(p, name) != NULL)
        return err_set(e, "the sandbox %s has two listeners; give each sandbox its own", name);
    int fd = listen_unix(path, 0600);
    if (fd < 0)
        return err_errno(e, "cannot listen on %s", path);
    struct listener *l = parent_listener_add(p, fd, kind, ROLE_FRONT, name);
    if (l == NULL) {
        close(fd);
        unlink(path);
        return err_set(e, "too many sandboxes are open; remove some with `countersign sandbox rm`");
    }
    snprintf(l->path, sizeof(l->path), "%s", path);
    l->conf = conf;
    parent_poll(l);
    return 0;
}

/* It has one already: of the configuration, or of a run that ended without a word. */
static int open_again(struct listener *l, unsigned kind, char *path, size_t cap, struct err *e)
{
    if (l->lane)
        return err_set(e, "the sandbox %s was started here and runs; choose another name", l->name);
    if (l->tcp)
        return err_set(e, "the sandbox %s has the listener %s of countersign.yaml; choose another name", l->name,
                       l->conf->name);
    if (l->kind != kind && (l->conf != NULL || l->holder != 0))
        return err_set(e, "the sandbox %s is in use with another kind of listener; choose another name", l->name);
    l->kind = kind;
    snprintf(path, cap, "%s", l->path);
    return 0;
}

int parent_sandbox_open(struct parent *p, struct span name, bool captured, char *path, size_t cap, struct err *e)
{
    char own[CONFIG_NAME];
    unsigned kind = captured ? LISTEN_CAPTURED_UNIX : LISTEN_OWN;
    if (!config_sandbox_ok(name))
        return err_set(e, "a sandbox's name is 1 to 63 of a-z 0-9 . _ -");
    snprintf(own, sizeof(own), "%.*s", SPAN_FMT(name));
    struct listener *l = listener_of(p, own);
    if (l != NULL)
        return open_again(l, kind, path, cap, e);
    int n = snprintf(path, cap, "%s/run/sb-%s.sock", p->config->state_dir, own);
    if (n < 0 || (size_t)n >= cap || n > 107)
        return err_set(e, "the state directory's path is too long for a Unix socket; choose a shorter one");
    return parent_sandbox_bind(p, own, path, kind, NULL, e);
}

static void say_sandbox(struct child *ledger, const char *name)
{
    char owner[32];
    snprintf(owner, sizeof(owner), "uid %u", (unsigned)geteuid());
    struct wire_sandbox s = {.name = span_str(name),
                             .session = span_str(name),
                             .owner = span_str(owner),
                             .tenant = SPAN("default"),
                             .kind = SPAN("channel"),
                             .generation = 1};
    struct dynbuf *b = chan_begin(ledger->chan, M_SANDBOX_PUT, 0);
    if (b == NULL)
        return;
    wire_put_sandbox(b, &s);
    (void)chan_commit(ledger->chan); /* if not, it is told when it has been restarted */
}

void parent_say_sandboxes(struct parent *p, struct child *ledger)
{
    for (size_t i = 0; i < p->config->nlisteners; i++) {
        const struct config_listener *l = &p->config->listener[i];
        if (l->identity == IDENTITY_SANDBOX)
            say_sandbox(ledger, l->sandbox);
        for (size_t k = 0; k < l->nsources; k++)
            say_sandbox(ledger, l->source[k].sandbox);
    }
    if (p->config->away.endpoint[0] != '\0')
        say_sandbox(ledger, STORE_SANDBOX);
}

static void listener_close(struct listener *l)
{
    watch_free(&l->watch);
    close(l->fd);
    l->fd = -1;
    if (!l->tcp)
        unlink(l->path);
}

int parent_cell_bind(struct parent *p, const struct running_cell *cell, const char *path, struct err *e)
{
    int fd = listen_unix(path, 0600);
    struct listener *l = fd >= 0 ? parent_listener_add(p, fd, LISTEN_STEPS, ROLE_FRONT, cell->name) : NULL;
    if (fd < 0)
        return err_errno(e, "cannot listen on %s", path);
    if (l == NULL) {
        close(fd);
        unlink(path);
        return err_set(e, "too many sandboxes are open; remove some with `countersign sandbox rm`");
    }
    snprintf(l->path, sizeof(l->path), "%s", path);
    snprintf(l->own, sizeof(l->own), "%s", cell->own);
    parent_poll(l);
    return 0;
}

void parent_cell_close(struct parent *p, const struct running_cell *cell)
{
    for (size_t i = 0; i < p->nlisteners; i++) {
        struct listener *l = &p->listeners[i];
        if (l->fd >= 0 && l->role == ROLE_FRONT && strcmp(l->name, cell->name) == 0 && strcmp(l->own, cell->own) == 0)
            listener_close(l);
    }
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->role == ROLE_FRONT && strcmp(c->info, cell->name) == 0 && strcmp(c->own, cell->own) == 0)
            parent_front_leave(c);
}

void parent_sandbox_close(struct parent *p, struct span name)
{
    char own[64];
    if (!config_sandbox_ok(name))
        return;
    snprintf(own, sizeof(own), "%.*s", SPAN_FMT(name));
    struct listener *l = listener_of(p, own);
    if (l != NULL)
        listener_close(l);
    /* Also without a listener of its own: what came in by a token must not outlive it. */
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->role == ROLE_FRONT && strcmp(c->info, own) == 0)
            parent_front_leave(c);
}
