/* What roles tell the parent. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/duty/duty.h"
#include "proxy/parent/parent.h"
#include "proxy/parent/programs/cells.h"
#include "proxy/parent/programs/stores.h"

static void say_listener(const struct listener *l)
{
    static const char *const whose[] = {[IDENTITY_TOKEN] = "token: countersign sandbox create",
                                        [IDENTITY_SOURCE] = "sandboxes by source address",
                                        [IDENTITY_CERTIFICATE] = "sandboxes by certificate"};
    char url[CONFIG_PATH];
    if (l->fd < 0 || l->conf == NULL || l->conf->kind == CONFIG_UNIX)
        return;
    const char *what = parent_listener_way(l);
    parent_listener_url(l, url, sizeof(url));
    if (l->kind == LISTEN_DNS)
        printf("%-8s %s  (answers with an address of its own)\n", what, url);
    else if (l->conf->identity == IDENTITY_SANDBOX)
        printf("%-8s %s  (sandbox %s)\n", what, url, l->conf->sandbox);
    else
        printf("%-8s %s  (%s)\n", what, url, whose[l->conf->identity]);
}

/* Everybody is up: say so, once, to the person and to whoever waits on --ready-fd. */
static void announce(struct parent *p)
{
    if (p->announced)
        return;
    for (struct child *c = p->children; c != NULL; c = c->next)
        if ((!c->ready && c->role != ROLE_FRONT) || (!c->welcomed && c->role == ROLE_JUDGE))
            return; /* what came before a judge has heard who the sandboxes are would be told to come again */
    if (p->signin[0] == '\0' && !p->args.secrets_only)
        return;
    p->announced = true;
    if (!p->quiet)
        printf("page     %s  (opens once)\n", p->signin);
    if (!p->quiet && p->pin.hex[0] != '\0')
        printf("policy   pinned to version %.12s by a rollback of %s; the policy files are not in force\n",
               p->pin.hex, p->pin.by);
    if (!p->quiet && p->config->shadow)
        printf("mode     shadow: nothing is held or denied\n");
    if (!p->quiet)
        for (size_t i = 0; i < p->nlisteners; i++)
            say_listener(&p->listeners[i]);
    for (size_t i = 0; i < p->nlisteners && !p->quiet; i++)
        if (p->listeners[i].kind == LISTEN_DOCK)
            printf("e2b      http://%s  (key: countersign key create)\n", p->listeners[i].path);
    for (size_t i = 0; i < p->nlisteners && !p->quiet; i++)
        if (p->listeners[i].kind == LISTEN_BROKER)
            printf("broker   http://%s  (key: countersign key create --broker; here: countersign chat)\n",
                   p->listeners[i].path);
    if (!p->quiet && p->config->broker.duties == DUTY_TURN)
        printf("broker   runs turns, %llu at once, and serves nobody (only: turn)\n",
               (unsigned long long)p->config->broker.workers);
    if (!p->quiet && p->config->broker.duties == DUTY_STREAM)
        printf("broker   runs no turns (only: stream): another gateway with its store has to\n");
    if (!p->quiet)
        printf("control  %s/control.sock\ncountersign is up; Ctrl-C ends it\n", p->config->state_dir);
    fflush(stdout);
    if (p->ready_fd >= 0) {
        if (write(p->ready_fd, "ready\n", 6) != 6)
            log_warn("nobody waits on --ready-fd");
        close(p->ready_fd);
        p->ready_fd = -1;
    }
}

static void on_ready(struct parent *p, struct child *c)
{
    c->ready = true;
    if (c->role == ROLE_DESK && p->secrets.n)
        chan_send(c->chan, M_SECRETS, 0, dynbuf_span(&p->secrets));
    if (c->role == ROLE_DESK)
        parent_say_notice(p, c);
    if (c->role == ROLE_LEDGER)
        parent_say_notes(p, c);
    announce(p);
}

static void on_welcomed(struct parent *p, struct child *c)
{
    c->welcomed = true;
    announce(p);
}

static void on_secrets(struct parent *p, struct frame *f)
{
    dynbuf_reset(&p->secrets);
    if (dynbuf_add(&p->secrets, f->payload) != 0)
        return;
    struct child *desk = parent_child(p, ROLE_DESK, 0);
    if (desk != NULL && desk->chan != NULL)
        chan_send(desk->chan, M_SECRETS, 0, f->payload);
}

static void answer(struct child *c, uint16_t type, uint64_t id, bool ok, const char *text)
{
    struct dynbuf *b = chan_begin(c->chan, type, id);
    if (b == NULL)
        return;
    msg_put_u8(b, ok);
    msg_put_span(b, span_str(text));
    (void)chan_commit(c->chan);
}

static void on_sandbox(struct parent *p, struct child *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, 255);
    bool captured = f->type == M_SANDBOX_OPEN && msg_get_bool(&m);
    char path[256];
    struct err e = {{0}};
    if (msg_end(&m) != 0)
        return;
    if (f->type == M_SANDBOX_CLOSE) {
        parent_sandbox_close(p, name);
        return;
    }
    bool ok = parent_sandbox_open(p, name, captured, path, sizeof(path), &e) == 0;
    answer(c, M_SANDBOX_OPENED, f->id, ok, ok ? path : e.text);
}

/* reload, rollback and its end: who, and for a rollback which (empty: the end). */
static void on_policy(struct parent *p, struct child *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span who = msg_get_span(&m, 256), which = f->type == M_ROLLBACK ? msg_get_span(&m, 256) : SPAN_NONE;
    struct err e = {{0}};
    char said[512];
    if (msg_end(&m) != 0)
        return;
    int bad = f->type == M_RELOAD ? parent_reload(p, who, said, sizeof(said), &e)
              : which.n           ? parent_rollback(p, which, who, said, sizeof(said), &e)
                                  : parent_unpin(p, who, said, sizeof(said), &e);
    if (bad)
        log_error("%s refused, the policy stays: %s", f->type == M_RELOAD ? "reload" : "rollback", e.text);
    else
        log_info("%s: %s", f->type == M_RELOAD ? "reloaded" : "policy", said);
    if (bad)
        answer(c, M_RELOADED, f->id, false, e.text);
    else
        parent_await(p, f->id, said);
}

static void on_versions(struct parent *p, struct child *c, struct frame *f)
{
    struct dynbuf *b, json;
    char current[STORED_HEX + 1];
    hex_text(span_of(p->policy.digest.b, DIGEST_BYTES), current);
    dynbuf_init(&json, CHAN_PAYLOAD_MAX - 64);
    if (versions_json(p->config->state_dir, current, &p->pin, &json) == 0 &&
        (b = chan_begin(c->chan, M_VERSIONS, f->id)) != NULL) {
        msg_put_span(b, dynbuf_span(&json));
        (void)chan_commit(c->chan);
    }
    dynbuf_free(&json);
}

/* A front speaks for its own sandbox alone. */
static void on_refused(struct parent *p, struct child *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    if (wire_get_refusals(&m, c->role == ROLE_FRONT ? span_str(c->info) : SPAN_NONE, &p->refused) != 0)
        log_error("the %s counts what cannot be read", role_name(c->role));
}

/* Only what that role may say; anything else is a broken peer, and is ignored loudly. */
static bool may_say(enum role_id r, uint16_t type)
{
    switch (type) {
    case M_SYNC:
    case M_LOST:
    case M_TRACE:
    case M_READY: return true;
    case M_RECORDED:
    case M_WELCOMED:
    case M_FRONT_OVER: return r == ROLE_JUDGE;
    case M_HANDOVER: return r == ROLE_LOBBY;
    case M_JOB:
    case M_JOB_END: return r == ROLE_FETCHER || r == ROLE_DESK;
    case M_BOX:
    case M_BOX_CLAIMED:
    case M_BOX_PAUSE:
    case M_BOX_METER:
    case M_BOX_IMAGE:
    case M_CHECKPOINT:
    case M_CHECKPOINT_END:
    case M_CELL:
    case M_CELL_END:
    case M_BOX_END: return r == ROLE_WARDEN;
    case M_REFUSED: return r == ROLE_LOBBY || r == ROLE_FRONT;
    case M_IDLE: return r == ROLE_FRONT;
    case M_SECRETS:
    case M_CA: return r == ROLE_KEEPER;
    case M_SIGNIN:
    case M_SANDBOX_OPEN:
    case M_SANDBOX_CLOSE:
    case M_RELOAD:
    case M_ROLLBACK:
    case M_VERSIONS:
    case M_LOG_SET:
    case M_TRACE_OF:
    case M_STATUS: return r == ROLE_DESK;
    default: return false;
    }
}

void parent_give_ca(struct parent *p, struct child *broker)
{
    if (p->ca.n > 0 && broker->chan != NULL)
        (void)chan_send(broker->chan, M_BROKER_CA, 0, dynbuf_span(&p->ca));
}

static void keep_ca(struct parent *p, struct span pem)
{
    dynbuf_reset(&p->ca);
    if (dynbuf_add(&p->ca, pem) != 0)
        return;
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->role == ROLE_BROKER)
            parent_give_ca(p, c);
}

static void on_signin(struct parent *p, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span url = msg_get_span(&m, 512);
    if (msg_end(&m) != 0)
        return;
    snprintf(p->signin, sizeof(p->signin), "%.*s", SPAN_FMT(url));
    announce(p);
}

void parent_frame(void *arg, struct chan *ch, struct frame *f)
{
    struct child *c = arg;
    struct parent *p = c->parent;
    if (!may_say(c->role, f->type)) {
        log_error("the %s said %u, which it may not", role_name(c->role), f->type);
        return;
    }
    switch (f->type) {
    case M_READY: on_ready(p, c); break;
    case M_SYNC:
        if (!parent_sign_of_life(c, f->id))
            parent_synced(p, c, f->id);
        break;
    case M_LOST: parent_link_lost(p, c, f); break;
    case M_WELCOMED: on_welcomed(p, c); break;
    case M_FRONT_OVER: parent_front_over(p, f); break;
    case M_HANDOVER: parent_handover(p, f); break;
    case M_IDLE: parent_front_idle(p, c, f); break;
    case M_REFUSED: on_refused(p, c, f); break;
    case M_SECRETS: on_secrets(p, f); break;
    case M_JOB: parent_job_start(p, c, f); break;
    case M_JOB_END: parent_job_end(p, c, f); break;
    case M_BOX: parent_box_start(p, f); break;
    case M_BOX_CLAIMED: parent_box_claimed(p, f); break;
    case M_BOX_END: parent_box_end(p, f); break;
    case M_BOX_PAUSE: parent_box_pause(p, f); break;
    case M_CELL: parent_cell_start(p, f); break;
    case M_CELL_END: parent_cell_end(p, f); break;
    case M_BOX_METER: parent_boxes_meter(p, f); break;
    case M_BOX_IMAGE: parent_image_find(p, f); break;
    case M_CHECKPOINT: parent_store_start(p, f); break;
    case M_CHECKPOINT_END: parent_store_end(p, f); break;
    case M_SIGNIN: on_signin(p, f); break;
    case M_SANDBOX_OPEN:
    case M_SANDBOX_CLOSE: on_sandbox(p, c, f); break;
    case M_RELOAD:
    case M_ROLLBACK: on_policy(p, c, f); break;
    case M_VERSIONS: on_versions(p, c, f); break;
    case M_STATUS: parent_status(p, c, f); break;
    case M_LOG_SET: parent_log_set(p, c, f); break;
    case M_TRACE_OF: parent_trace_of(p, c, f); break;
    case M_TRACE: parent_trace_came(p, c, f); break;
    case M_RECORDED: parent_recorded(p, f); break;
    case M_CA: {
        struct msg_in m = msg_in(f->payload);
        struct span pem = msg_get_span(&m, 16 * 1024);
        if (msg_end(&m) == 0)
            keep_ca(p, pem);
        if (msg_end(&m) != 0 || parent_write_public(p, pem) != 0)
            log_error("cannot write the CA certificate below %s", p->config->state_dir);
        break;
    }
    default: break;
    }
}
