/* What each role is told when it starts: the one place that maps the
 * configuration to roles. A role learns no more than it needs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/duty/duty.h"
#include "proxy/parent/parent.h"
#include "proxy/parent/secrets/places.h"

struct settings {
    struct dynbuf pairs;
    uint16_t n;
};

static void text(struct settings *s, const char *key, const char *value)
{
    msg_put_span(&s->pairs, span_str(key));
    msg_put_span(&s->pairs, span_str(value));
    s->n++;
}

static void path_below(struct settings *s, const char *key, const struct config *c, const char *file)
{
    char value[CONFIG_PATH + 64];
    snprintf(value, sizeof(value), "%s/%s", c->state_dir, file);
    text(s, key, value);
}

/* To the ledger, before it opens its store: what it mends there may have to be told. */
static void targets(struct settings *s, const struct config *c)
{
    struct dynbuf all;
    dynbuf_init(&all, 32 * 1024);
    parent_put_targets(c, &all);
    msg_put_span(&s->pairs, SPAN("notify"));
    msg_put_span(&s->pairs, dynbuf_span(&all));
    s->n++;
    dynbuf_free(&all);
}

static void number(struct settings *s, const char *key, uint64_t v)
{
    char value[32];
    snprintf(value, sizeof(value), "%llu", (unsigned long long)v);
    text(s, key, value);
}

/* Our own TCP listeners, and where others are told to find them: never a destination (C21). */
static void own(struct settings *s, const struct parent *p)
{
    char all[LISTENERS_MAX * 64];
    size_t n = 0;
    all[0] = '\0';
    for (size_t i = 0; i < p->nlisteners && n < sizeof(all); i++) {
        const struct listener *l = &p->listeners[i];
        if (l->fd < 0 || !l->tcp)
            continue;
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", n ? " " : "", l->path);
        if (n < sizeof(all) && l->conf != NULL && config_literal(l->conf->advertise))
            n += (size_t)snprintf(all + n, sizeof(all) - n, " %s", l->conf->advertise);
    }
    if (n >= sizeof(all)) /* the list is what keeps a sandbox from its own gateway */
        log_die("the listeners' addresses are too long");
    text(s, "own", all);
}

/* As browsers go to it; a proxy before it is at the usual port, or the name says which. */
static void desk_url(const struct config *c, const struct listener *l, char *url, size_t cap)
{
    const char *port = strrchr(l->path, ':');
    if (c->desk_name[0] == '\0')
        snprintf(url, cap, "http://%s", l->path);
    else
        snprintf(url, cap, "https://%s%s", c->desk_name,
                 strchr(c->desk_name, ':') || port == NULL || c->desk_certificate[0] == '\0' ||
                         strcmp(port, ":443") == 0
                     ? ""
                     : port);
}

/* Where the page is: what it answers to, and what passkeys are for. */
static void page(struct settings *s, const struct parent *p)
{
    char url[CONFIG_PATH + 16] = "";
    for (size_t i = 0; i < p->nlisteners; i++)
        if (p->listeners[i].kind == LISTEN_DESK)
            desk_url(p->config, &p->listeners[i], url, sizeof(url));
    text(s, "desk_url", url);
}

/* Through whom people sign in: what the desk needs to send them there; and what the keeper asks, and whom, which is
 * not the desk's to say. */
static void sign_in(struct settings *s, const struct config_oidc *o, enum role_id role)
{
    static const char *const claims[] = {"", "preferred_username", "email", "sub"};
    text(s, "oidc_issuer", o->issuer);
    text(s, "oidc_client", o->client);
    text(s, "oidc_claim", claims[o->claim]);
    if (role == ROLE_DESK) {
        text(s, "oidc_authorization", o->authorization);
        text(s, "oidc_name", o->name);
    } else {
        text(s, "oidc_token", o->token);
        text(s, "oidc_secret", o->secret);
    }
}

static void desk(struct settings *s, const struct parent *p)
{
    const struct config *c = p->config;
    char url[CONFIG_PATH + 16] = "", why[480] = "";
    page(s, p);
    text(s, "desk_tls", c->desk_certificate[0] ? "own" : "");
    bool http = parent_token_url(p, LISTEN_HTTP, url, sizeof(url), why, sizeof(why));
    bool told = url[0] != '\0';
    text(s, "proxy_url", url);
    bool socks = parent_token_url(p, LISTEN_SOCKS, url, sizeof(url), why, sizeof(why));
    told |= url[0] != '\0';
    text(s, "socks_url", url);
    if (!http && !socks)
        snprintf(why, sizeof(why),
                 "the gateway has no listener for tokens: add one with `identity: token` to countersign.yaml");
    text(s, "proxy_why", told ? "" : why);
    path_below(s, "db", c, "store/ledger.db");
    path_below(s, "ca", c, "ca.crt");
    path_below(s, "bundle", c, "bundle.crt");
    path_below(s, "truststore", c, "truststore.p12");
    path_below(s, "state_dir", c, "");
}

/* What the sandboxes have that its callers start. */
static void boxes(struct settings *s, const struct config *c)
{
    char told[TELL_TARGETS_MAX * (CONFIG_NAME + 16)];
    text(s, "dock_lanes", c->dock_lanes);
    text(s, "dock_mounts", c->dock_mounts);
    number(s, "idle_ms", c->idle_ms);
    number(s, "egress_requests", c->egress[EGRESS_REQUESTS]);
    number(s, "egress_bytes", c->egress[EGRESS_BYTES]);
    text(s, "broker_lanes", c->broker.lanes);
    text(s, "broker_image", c->broker.image);
    text(s, "broker_people", c->broker.people);
    text(s, "broker_only", duty_alone(c->broker.duties));
    parent_name_targets(c, told, sizeof(told));
    text(s, "notify", told);
    text(s, "diff_lane", c->diff_lane);
    text(s, "diff_image", c->diff_image);
}

/* Where models are asked: the proxy's own address, as a client of this machine reaches it. */
static void broker(struct settings *s, const struct parent *p, const struct child *c)
{
    const char *proxy = "";
    for (size_t i = 0; i < p->nlisteners; i++) {
        const struct listener *l = &p->listeners[i];
        if (l->fd >= 0 && l->kind == LISTEN_HTTP && l->conf->identity == IDENTITY_TOKEN &&
            l->conf->certificate[0] == '\0' && *proxy == '\0')
            proxy = l->path;
    }
    text(s, "proxy", proxy);
    number(s, "worker", c->instance);
    number(s, "workers", p->config->broker.workers);
    path_below(s, "broker_dir", p->config, "broker");
    path_below(s, "broker_db", p->config, "broker/broker.db");
    text(s, "broker_store", p->config->broker.store);
    text(s, "broker_password", p->config->broker.password[0] ? "given" : "");
    text(s, "models", p->config->broker.models);
    text(s, "tools", p->config->broker.tools);
    text(s, "otlp", p->config->broker.otlp);
    text(s, "broker_budgets", p->config->broker.budgets);
    text(s, "otlp_metrics", p->config->broker.otlp_metrics);
}

void parent_give_tasks(const struct parent *p, struct child *desk)
{
    const struct config *c = p->config;
    struct dynbuf *b = desk->chan != NULL ? chan_begin(desk->chan, M_TASKS, 0) : NULL;
    if (b == NULL)
        return;
    msg_put_u16(b, (uint16_t)c->ntasks);
    (void)chan_commit(desk->chan);
    for (size_t i = 0; i < c->ntasks; i++)
        if (chan_send(desk->chan, M_TASK, 0, dynbuf_span(&c->task[i])) != 0)
            log_error("cannot tell the desk of a kind of task");
}

/* What is not said is as of any sandbox that is started: that the warden knows. */
void parent_give_pool(const struct parent *p, struct child *warden)
{
    const struct config *c = p->config;
    struct dynbuf *b = warden->chan != NULL ? chan_begin(warden->chan, M_POOL, 0) : NULL;
    if (b == NULL)
        return;
    msg_put_u8(b, geteuid() == 0); /* limits: strict is root's default */
    msg_put_u16(b, (uint16_t)c->nready);
    for (size_t i = 0; i < c->nready; i++) {
        const struct config_ready *r = &c->ready[i];
        msg_put_span(b, span_str(r->image));
        msg_put_u16(b, (uint16_t)r->size);
        msg_put_u64(b, r->memory);
        msg_put_u64(b, r->pids);
        msg_put_u64(b, r->cpu_percent);
        msg_put_u64(b, r->disk);
        msg_put_u64(b, r->files);
    }
    (void)chan_commit(warden->chan);
}

static void ledger(struct settings *s, struct parent *p)
{
    const struct config *conf = p->config;
    path_below(s, "db", conf, "store/ledger.db");
    path_below(s, "store_dir", conf, "store");
    number(s, "expires_ms", conf->expires_ms);
    number(s, "pending_max", conf->pending_max);
    number(s, "new_state", p->new_state);
    p->new_state = false;
    number(s, "secrets_only", p->args.secrets_only);
    page(s, p);
    targets(s, conf);
}

/* Read by who connects; the user it runs as could not open it. */
static int open_password(const struct config_broker *b)
{
    struct stat st;
    if (b->password[0] == '\0')
        return -1;
    /* It may have become another kind of file since the configuration was read: nobody waits for a pipe's writer. */
    int fd = open(b->password, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        log_error("store_password: %s cannot be opened: %s", b->password, strerror(errno));
    } else if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0) {
        log_error("store_password: %s has to be a file that its owner alone can read: chmod 600", b->password);
    } else {
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static void keeper(struct settings *s, struct parent *p)
{
    page(s, p);
    if (p->config->master.from != SOURCE_NONE)
        text(s, "master_key", policy_source_name(p->config->master.from));
}

void parent_configure(struct parent *p, struct child *c)
{
    const struct config *conf = p->config;
    struct settings s = {.n = 0};
    dynbuf_init(&s.pairs, 64 * 1024);
    text(&s, "boot", p->boot);
    text(&s, "log_form", conf->log_form == LOG_JSON ? "json" : conf->log_form == LOG_TEXT ? "text" : "auto");
    number(&s, "owner_uid", geteuid());
    if (c->role == ROLE_LEDGER)
        ledger(&s, p);
    if (c->role == ROLE_JUDGE) {
        number(&s, "hold.inline_wait_ms", conf->inline_wait_ms);
        number(&s, "hold.expires_ms", conf->expires_ms);
        number(&s, "body_max", conf->body_max);
        text(&s, "egress_tenants", conf->egress_tenants);
        text(&s, "store_lost", conf->store_lost_allow_reads ? "allow-reads" : "deny");
        text(&s, "disclose", conf->disclose_rules ? "rules" : "");
    }
    if (c->role == ROLE_DESK || c->role == ROLE_JUDGE)
        text(&s, "mode", conf->shadow ? "shadow" : "enforce");
    if (c->role == ROLE_DESK || c->role == ROLE_JUDGE)
        desk(&s, p);
    if (c->role == ROLE_DESK)
        boxes(&s, conf);
    if (c->role == ROLE_WARDEN)
        number(&s, "away", conf->away.endpoint[0] != '\0');
    if (c->role == ROLE_BROKER)
        broker(&s, p, c);
    if (c->role == ROLE_CARRIER || c->role == ROLE_FETCHER) {
        text(&s, "roots", conf->roots);
        text(&s, "crl", conf->crl);
    }
    if (c->role == ROLE_RESOLVER)
        text(&s, "dns", conf->dns_servers);
    if (c->role == ROLE_CARRIER || c->role == ROLE_RESOLVER)
        own(&s, p);
    if (c->role == ROLE_FRONT) {
        text(&s, "sandbox", c->info);
        number(&s, "instance", c->instance);
        number(&s, "connections_max", conf->connections_max);
    }
    if (c->role == ROLE_KEEPER)
        keeper(&s, p);
    if (c->role == ROLE_DESK || c->role == ROLE_KEEPER)
        sign_in(&s, &conf->oidc, c->role);
    const int fds[] = {p->keeper_dir, p->master.fd};
    unsigned nfds = c->role != ROLE_KEEPER ? 0 : p->master.fd >= 0 ? 2 : 1;
    int password = c->role == ROLE_BROKER ? open_password(&conf->broker) : -1;
    struct dynbuf *b = chan_begin(c->chan, M_CONFIG, 0);
    if (b != NULL && dynbuf_ok(&s.pairs)) {
        msg_put_u32(b, MSG_VERSION);
        msg_put_u16(b, s.n);
        (void)dynbuf_add(b, dynbuf_span(&s.pairs));
        int rc = password >= 0 ? chan_commit_fd(c->chan, password)
                 : nfds > 0    ? chan_commit_fds(c->chan, fds, nfds)
                               : chan_commit(c->chan);
        if (rc != 0)
            log_error("cannot configure the %s", role_name(c->role));
    }
    if (password >= 0)
        close(password);
    dynbuf_free(&s.pairs);
}
