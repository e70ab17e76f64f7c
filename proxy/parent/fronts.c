/* Fronts, one a sandbox: started when somebody knocks, gone when idle. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/parent/parent.h"

enum { AUTH_MAX = 8 * 1024, READ_MAX = 64 * 1024 };

static struct child *front_of(struct parent *p, const char *sandbox)
{
    size_t n = 0;
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->role == ROLE_FRONT && ++n && !c->leaving && strcmp(c->info, sandbox) == 0)
            return c;
    if (n >= FRONTS_MAX || p->stopping) {
        log_warn("no front for %s: %zu are running; close sandboxes that are not used", sandbox, n);
        return NULL;
    }
    struct child *c = parent_child_new(p, ROLE_FRONT, sandbox);
    if (c != NULL && parent_spawn(p, c) != 0) {
        log_error("cannot start a front for %s", sandbox);
        parent_child_free(p, &c);
    }
    return c;
}

/* Somebody knocked at a listener that belongs to one sandbox: its front takes it over. */
static void knocked(void *arg, unsigned ready)
{
    struct listener *l = arg;
    struct child *c = front_of(l->parent, l->name);
    if (c == NULL)
        return;
    watch_set(l->watch, 0);
    struct dynbuf *b = chan_begin(c->chan, M_LISTEN, 0);
    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)l->kind);
    msg_put_span(b, span_str(l->name));
    (void)chan_commit_fd(c->chan, l->fd);
}

void parent_poll(struct listener *l)
{
    if (l->watch == NULL)
        l->watch = watch_new(l->parent->loop, l->fd, WATCH_READ, knocked, l);
    else
        watch_set(l->watch, WATCH_READ);
    if (l->watch == NULL)
        log_error("cannot poll the listener of %s", l->name);
}

/* The lobby learned who that is: give the connection, with what was read of it, to the sandbox's front. */
void parent_handover(struct parent *p, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
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
    struct child *c = front_of(p, name);
    struct dynbuf *b = c ? chan_begin(c->chan, M_ADOPT, 0) : NULL;
    if (b != NULL) {
        msg_put_span(b, auth);
        msg_put_span(b, bytes);
        if (chan_commit_fd(c->chan, fd) == 0)
            c->adopted++;
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
    c->leaving = true;
    chan_send(c->chan, M_STOP, 0, SPAN_NONE);
}

void parent_front_died(struct parent *p, struct child *c)
{
    for (size_t i = 0; i < p->nlisteners; i++)
        if (p->listeners[i].fd >= 0 && p->listeners[i].role == ROLE_FRONT &&
            strcmp(p->listeners[i].name, c->info) == 0)
            parent_poll(&p->listeners[i]);
    parent_child_free(p, &c);
}

static struct listener *listener_of(struct parent *p, const char *name)
{
    for (size_t i = 0; i < p->nlisteners; i++)
        if (p->listeners[i].fd >= 0 && p->listeners[i].role == ROLE_FRONT && strcmp(p->listeners[i].name, name) == 0)
            return &p->listeners[i];
    return NULL;
}

static bool name_ok(struct span s)
{
    if (s.n == 0 || s.n > 63)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '-' ||
              s.p[i] == '_' || (s.p[i] == '.' && i > 0)))
            return false;
    return true;
}

int parent_sandbox_open(struct parent *p, struct span name, char *path, size_t cap, struct err *e)
{
    char own[64];
    if (!name_ok(name))
        return err_set(e, "a sandbox's name is 1 to 63 of a-z 0-9 . _ -");
    snprintf(own, sizeof(own), "%.*s", SPAN_FMT(name));
    struct listener *l = listener_of(p, own);
    if (l == NULL) {
        int n = snprintf(path, cap, "%s/run/sb-%s.sock", p->config->state_dir, own);
        if (n < 0 || (size_t)n >= cap || n > 107)
            return err_set(e, "the state directory's path is too long for a Unix socket; choose a shorter one");
        int fd = listen_unix(path, 0600);
        if (fd < 0)
            return err_errno(e, "cannot listen on %s", path);
        if ((l = parent_listener_add(p, fd, 2, ROLE_FRONT, own)) == NULL) {
            close(fd);
            unlink(path);
            return err_set(e, "too many sandboxes are open; remove some with `countersign sandbox rm`");
        }
        snprintf(l->path, sizeof(l->path), "%s", path);
        parent_poll(l);
    }
    snprintf(path, cap, "%s", l->path);
    return 0;
}

void parent_sandbox_close(struct parent *p, struct span name)
{
    char own[64];
    snprintf(own, sizeof(own), "%.*s", SPAN_FMT(name));
    struct listener *l = listener_of(p, own);
    if (l == NULL || !name_ok(name) || l->path[0] == '\0')
        return;
    watch_free(&l->watch);
    close(l->fd);
    l->fd = -1;
    unlink(l->path);
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->role == ROLE_FRONT && strcmp(c->info, own) == 0 && !c->leaving) {
            c->leaving = true;
            chan_send(c->chan, M_STOP, 0, SPAN_NONE);
        }
}
