/* SIGHUP and `countersign reload`: the configuration is read again and its policy compiled; only then is anything
 * exchanged. What roles are told when they start, or what is bound, stays until a restart, and is named. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/parent/parent.h"

static void needs(char list[PARENT_NEEDS], bool differs, const char *key)
{
    size_t n = strlen(list);
    if (differs && n < PARENT_NEEDS)
        snprintf(list + n, PARENT_NEEDS - n, "%s%s", n ? ", " : "", key);
}

static struct config_listener *named(struct config *c, const char *name)
{
    for (size_t i = 0; i < c->nlisteners; i++)
        if (strcmp(c->listener[i].name, name) == 0)
            return &c->listener[i];
    return NULL;
}

/* In all that is bound or decides who accepts: what is left can be told to the lobby. */
static bool same_door(const struct config_listener *a, const struct config_listener *b)
{
    return a->kind == b->kind && a->identity == b->identity && strcmp(a->address, b->address) == 0 &&
           strcmp(a->dns, b->dns) == 0 && strcmp(a->sandbox, b->sandbox) == 0 &&
           (a->certificate[0] != '\0') == (b->certificate[0] != '\0') && config_of_front(a) == config_of_front(b);
}

static void differences(struct config *old, struct config *new, char list[PARENT_NEEDS])
{
    bool doors = old->nlisteners != new->nlisteners, advertise = false;
    for (size_t i = 0; i < new->nlisteners; i++) {
        const struct config_listener *l = named(old, new->listener[i].name);
        doors |= l == NULL || !same_door(l, &new->listener[i]);
        advertise |= l != NULL && strcmp(l->advertise, new->listener[i].advertise) != 0;
    }
    needs(list, strcmp(old->state_dir, new->state_dir) != 0, "state_dir");
    needs(list, old->uid_base != new->uid_base, "uid_base");
    needs(list, memcmp(&old->master, &new->master, sizeof(old->master)) != 0, "master_key");
    needs(list, old->shadow != new->shadow, "mode");
    needs(list, strcmp(old->roots, new->roots) != 0, "roots for sandboxes");
    needs(list, strcmp(old->dns_servers, new->dns_servers) != 0, "dns");
    needs(list, doors, "listeners");
    needs(list, advertise, "advertise");
    needs(list,
          strcmp(old->desk_address, new->desk_address) != 0 || strcmp(old->desk_name, new->desk_name) != 0 ||
              strcmp(old->desk_certificate, new->desk_certificate) != 0 || strcmp(old->desk_key, new->desk_key) != 0,
          "desk");
    needs(list, memcmp(&old->oidc, &new->oidc, sizeof(old->oidc)) != 0, "desk.oidc");
    needs(list,
          strcmp(old->dock_address, new->dock_address) != 0 || strcmp(old->dock_lanes, new->dock_lanes) != 0 ||
              strcmp(old->dock_mounts, new->dock_mounts) != 0,
          "e2b");
    needs(list, old->nnotify != new->nnotify || memcmp(old->notify, new->notify, sizeof(old->notify)) != 0, "notify");
    needs(list, memcmp(&old->broker, &new->broker, sizeof(old->broker)) != 0, "broker");
    needs(list, strcmp(old->diff_lane, new->diff_lane) != 0 || strcmp(old->diff_image, new->diff_image) != 0, "diff");
    needs(list,
          old->inline_wait_ms != new->inline_wait_ms || old->expires_ms != new->expires_ms ||
              old->pending_max != new->pending_max,
          "hold");
    needs(list, memcmp(&old->away, &new->away, sizeof(old->away)) != 0, "checkpoints");
    needs(list, old->sandboxes_max != new->sandboxes_max || old->connections_max != new->connections_max, "limits");
    needs(list,
          memcmp(old->egress, new->egress, sizeof(old->egress)) != 0 ||
              strcmp(old->egress_tenants, new->egress_tenants) != 0,
          "egress");
    needs(list, old->idle_ms != new->idle_ms, "idle");
    needs(list, old->body_max != new->body_max, "body");
    needs(list, old->store_lost_allow_reads != new->store_lost_allow_reads, "store_lost");
    needs(list, old->disclose_rules != new->disclose_rules, "disclose");
    needs(list, old->log_form != new->log_form, "log.format");
}

/* Whose they are, who may speak for others, and with which certificate. */
static void take_listeners(struct config *old, struct config *new)
{
    for (size_t i = 0; i < new->nlisteners; i++) {
        struct config_listener *from = &new->listener[i], *to = named(old, from->name);
        if (to == NULL || !same_door(to, from))
            continue;
        free(to->source);
        to->source = from->source;
        to->nsources = from->nsources;
        from->source = NULL;
        to->npeers = from->npeers;
        memcpy(to->peer, from->peer, sizeof(to->peer));
        memcpy(to->certificate, from->certificate, sizeof(to->certificate));
        memcpy(to->key, from->key, sizeof(to->key));
        memcpy(to->clients, from->clients, sizeof(to->clients));
    }
}

/* Those of before go with `new`; what sandboxes have of mounts and devices stays theirs until they end. */
static void take_tasks(struct config *old, struct config *new)
{
    for (size_t i = 0; i < TASKS_MAX; i++) {
        struct dynbuf before = old->task[i];
        old->task[i] = new->task[i];
        new->task[i] = before;
    }
    old->ntasks = new->ntasks;
    memcpy(old->mount, new->mount, sizeof(old->mount));
    memcpy(old->pool, new->pool, sizeof(old->pool));
    old->nmounts = new->nmounts;
    old->npools = new->npools;
    memcpy(old->ready, new->ready, sizeof(old->ready));
    old->nready = new->nready;
}

static int may_read(const char *path, const char *key, struct err *e)
{
    int fd = path[0] == '\0' ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (path[0] != '\0' && fd < 0)
        return err_errno(e, "%s: %s cannot be read", key, path);
    if (fd >= 0)
        close(fd);
    return 0;
}

/* The carrier has no way to a file any more. As when it starts: without roots it trusts no CA but those of the
 * policy, without the lists that are configured it does not run (what was promised are two files, and it ends for
 * want of one). */
static void give_trust(struct parent *p, struct child *carrier)
{
    const char *crl = p->config->crl;
    int fd[2], roots = open(p->config->roots, O_RDONLY | O_CLOEXEC);
    int list = crl[0] != '\0' ? open(crl, O_RDONLY | O_CLOEXEC) : -1;
    unsigned n = 0;
    if (roots < 0)
        log_warn("no system roots can be read from %s: only upstreams with a CA of their own can be reached over TLS",
                 p->config->roots);
    if (roots >= 0)
        fd[n++] = roots;
    if (list >= 0)
        fd[n++] = list;
    struct dynbuf *b = chan_begin(carrier->chan, M_TRUST, 0);
    if (b != NULL) {
        msg_put_u8(b, roots >= 0);
        msg_put_u8(b, crl[0] != '\0');
        (void)chan_commit_fds(carrier->chan, fd, n);
    }
    for (unsigned i = 0; i < n; i++)
        close(fd[i]);
}

/* Its jobs read them each time. */
static void give_trust_files(const struct config *conf, struct child *fetcher)
{
    struct dynbuf *b = chan_begin(fetcher->chan, M_TRUST_FILES, 0);
    if (b == NULL)
        return;
    msg_put_span(b, span_str(conf->roots));
    msg_put_span(b, span_str(conf->crl));
    (void)chan_commit(fetcher->chan);
}

static int readable(const struct config *c, struct err *e)
{
    if (may_read(c->crl, "crl", e) != 0)
        return -1;
    for (size_t i = 0; i < c->nlisteners; i++)
        if (parent_files_ok(&c->listener[i], e) != 0)
            return -1;
    return 0;
}

/* All of them are told again: the files of tls: may hold something else now. */
static void tell(struct parent *p)
{
    struct child *lobby = parent_child(p, ROLE_LOBBY, 0), *ledger = parent_child(p, ROLE_LEDGER, 0);
    struct child *carrier = parent_child(p, ROLE_CARRIER, 0), *fetcher = parent_child(p, ROLE_FETCHER, 0);
    struct child *desk = parent_child(p, ROLE_DESK, 0), *warden = parent_child(p, ROLE_WARDEN, 0);
    for (struct child *c = p->children; c != NULL; c = c->next)
        parent_send_image(p, c);
    if (ledger != NULL && ledger->chan != NULL)
        parent_say_sandboxes(p, ledger);
    if (desk != NULL)
        parent_give_tasks(p, desk);
    if (warden != NULL)
        parent_give_pool(p, warden);
    if (carrier != NULL && carrier->chan != NULL)
        give_trust(p, carrier);
    if (fetcher != NULL && fetcher->chan != NULL)
        give_trust_files(p->config, fetcher);
    if (lobby != NULL && lobby->chan != NULL)
        parent_give_listeners(p, lobby);
}

static int read_again(struct parent *p, struct config *fresh, struct compiled *out, struct err *e)
{
    return readable(fresh, e) != 0 ? -1 : parent_compile(fresh, NULL, out, e);
}

/* From the files. before: what must be done between knowing that they are good and using them. */
static int from_files(struct parent *p, int before(const char *state, struct err *e), const char *how,
                      struct span who, char *said, size_t cap, struct err *e)
{
    char *list = p->needs_restart;
    struct compiled made;
    struct config *old = p->config, *fresh = config_load(&p->args, e);
    int bad = fresh == NULL || read_again(p, fresh, &made, e) != 0 ? -1 : 0;
    if (bad == 0 && before != NULL && before(old->state_dir, e) != 0) {
        parent_drop(&made);
        bad = -1;
    }
    if (bad == 0) {
        p->pin.hex[0] = '\0';
        parent_take(p, &made);
        list[0] = '\0';
        differences(old, fresh, list);
        old->text = fresh->text;
        memcpy(old->policy, fresh->policy, sizeof(old->policy));
        old->npolicy = fresh->npolicy;
        memcpy(old->floors, fresh->floors, sizeof(old->floors));
        memcpy(old->signers, fresh->signers, sizeof(old->signers));
        memcpy(old->roots, fresh->roots, sizeof(old->roots));
        memcpy(old->crl, fresh->crl, sizeof(old->crl));
        old->log_level = fresh->log_level;
        memcpy(old->log_trace, fresh->log_trace, sizeof(old->log_trace));
        take_listeners(old, fresh);
        take_tasks(old, fresh);
        tell(p);
        parent_log_configured(p);
        parent_switched(p, how, who);
        snprintf(said, cap, "the new policy is in force%s%s%s", list[0] ? "; what changed in " : "", list,
                 list[0] ? " needs a restart of countersign up" : "");
    } else {
        parent_refused(p, how, who, e->text);
    }
    config_free(&fresh);
    return bad;
}

int parent_reload(struct parent *p, struct span who, char *said, size_t cap, struct err *e)
{
    if (p->pin.hex[0] != '\0')
        return err_set(e,
                       "the policy is pinned to version %.12s by a rollback of %s; nothing was changed. `countersign "
                       "policy rollback --end` goes back to the files",
                       p->pin.hex, p->pin.by);
    return from_files(p, NULL, "reload", who, said, cap, e);
}

int parent_unpin(struct parent *p, struct span who, char *said, size_t cap, struct err *e)
{
    if (p->pin.hex[0] == '\0')
        return err_set(e, "the policy is not pinned: it is that of the files already");
    return from_files(p, pin_remove, "rollback-end", who, said, cap, e);
}
