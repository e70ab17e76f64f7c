/* The desk role: reads the ledger's store, asks the ledger to write, never sees traffic or secrets. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include "common/msg.h"
#include "common/net/loop.h"
#include "common/net/tls.h"
#include "common/role/role.h"
#include "common/text/person.h"
#include "proxy/msgs.h"
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/api/steps.h"
#include "web-approval/ask.h"
#include "web-approval/diffs/diffs.h"
#include "web-approval/dock.h"
#include "web-approval/idle/idle.h"
#include "web-approval/image.h"
#include "web-approval/pictures/viewers.h"
#include "web-approval/server.h"
#include "web-approval/tasks/chore.h"

enum { PEM_MAX = 256 * 1024 };
static struct desk desk;

static void config(void *arg, struct span key, struct span value)
{
    struct desk *d = arg;
    const struct {
        const char *key;
        char *to;
        size_t room;
    } texts[] = {
        {"db", d->db, sizeof(d->db)},
        {"desk_url", d->desk_url, sizeof(d->desk_url)},
        {"desk_tls", d->desk_tls, sizeof(d->desk_tls)},
        {"proxy_url", d->proxy_url, sizeof(d->proxy_url)},
        {"socks_url", d->socks_url, sizeof(d->socks_url)},
        {"truststore", d->truststore, sizeof(d->truststore)},
        {"proxy_why", d->proxy_why, sizeof(d->proxy_why)},
        {"ca", d->ca, sizeof(d->ca)},
        {"bundle", d->bundle, sizeof(d->bundle)},
        {"mode", d->mode, sizeof(d->mode)},
        {"dock_lanes", d->dock_lanes, sizeof(d->dock_lanes)},
        {"dock_mounts", d->dock_mounts, sizeof(d->dock_mounts)},
        {"notify", d->notify, sizeof(d->notify)},
        {"broker_lanes", d->broker_lanes, sizeof(d->broker_lanes)},
        {"broker_image", d->broker_image, sizeof(d->broker_image)},
        {"broker_only", d->broker_only, sizeof(d->broker_only)},
        {"broker_people", d->broker_people, sizeof(d->broker_people)},
        {"diff_lane", d->diff_lane, sizeof(d->diff_lane)},
        {"diff_image", d->diff_image, sizeof(d->diff_image)},
        {"boot", d->boot, sizeof(d->boot)},
        {"oidc_issuer", d->oidc.issuer, sizeof(d->oidc.issuer)},
        {"oidc_client", d->oidc.client, sizeof(d->oidc.client)},
        {"oidc_claim", d->oidc.claim, sizeof(d->oidc.claim)},
        {"oidc_authorization", d->oidc.authorization, sizeof(d->oidc.authorization)},
        {"oidc_name", d->oidc.name, sizeof(d->oidc.name)},
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (span_eq(key, span_str(texts[i].key))) {
            if (value.n >= texts[i].room || memchr(value.p, '\0', value.n))
                log_die("the setting %s is too long", texts[i].key);
            memcpy(texts[i].to, value.p, value.n);
            texts[i].to[value.n] = '\0';
        }
    if (span_eq(key, SPAN("owner_uid")) && span_u64(value, UINT32_MAX, &d->owner_uid) != 0)
        log_die("owner_uid is not a number");
    if ((span_eq(key, SPAN("egress_requests")) && span_u64(value, INT64_MAX, &d->egress_requests) != 0) ||
        (span_eq(key, SPAN("egress_bytes")) && span_u64(value, INT64_MAX, &d->egress_bytes) != 0))
        log_die("a limit of egress is not a number");
    if (span_eq(key, SPAN("idle_ms")) && span_u64(value, BOX_IDLE_MAX_MS, &d->idle_ms) != 0)
        log_die("idle_ms is not a number");
}

/* --- the ledger ----------------------------------------------------------- */

static void ledger_frame(void *arg, struct chan *c, struct frame *f)
{
    struct desk *d = arg;

    if (f->type == M_EVENT) {
        struct msg_in m = msg_in(f->payload);
        struct span kind = msg_get_span(&m, 64), subject = msg_get_span(&m, 256);
        if (msg_end(&m) == 0) {
            server_event(d->server, f->id, kind, subject);
            if (span_eq(kind, SPAN("ticket")))
                diffs_event(d, subject);
        }
        return;
    }
    if (f->type == M_AUDIT_KEY) {
        struct msg_in m = msg_in(f->payload);
        struct span key = msg_get_span(&m, (sizeof(d->audit_key) - 1) / 2);
        if (msg_end(&m) == 0 && key.n == (sizeof(d->audit_key) - 1) / 2)
            hex_text(key, d->audit_key);
        return;
    }
    (void)ask_answer(d, ASK_LEDGER, f);
}

static void ledger_gone(void *arg, struct chan *c)
{
    struct desk *d = arg;

    chan_free(&d->ledger);
    ask_gone(d, ASK_LEDGER);
}

/* --- the warden ----------------------------------------------------------- */

static void warden_frame(void *arg, struct chan *c, struct frame *f)
{
    struct desk *d = arg;

    bool of_run = f->type == M_SB_OUTPUT || f->type == M_SB_EXIT || f->type == M_SB_FED || f->type == M_SB_CUT;

    if (!of_run)
        (void)ask_answer(d, ASK_WARDEN, f);
    else if (!chore_hear(d, f))
        server_follow(d->server, f);
}

static void warden_gone(void *arg, struct chan *c)
{
    struct desk *d = arg;

    chan_free(&d->warden);
    ask_gone(d, ASK_WARDEN);
    chore_gone(d);
    server_follow_gone(d->server);
}

static void peer_warden(struct desk *d, int fd)
{
    static const struct chan_ops ops = {warden_frame, warden_gone};

    if (d->warden)
        warden_gone(d, d->warden);
    d->warden = chan_new(d->loop, fd, &ops, d);
    api_moment_look(d);
    api_checkpoints_sweep(d);
    idle_met(d);
}

/* --- the keeper ----------------------------------------------------------- */

static void keeper_frame(void *arg, struct chan *c, struct frame *f)
{
    struct desk *d = arg;

    if (f->type != M_PASSKEYS) {
        (void)ask_answer(d, ASK_KEEPER, f);
        return;
    }
    dynbuf_reset(&d->passkeys);
    (void)dynbuf_add(&d->passkeys, f->payload);
}

static void keeper_gone(void *arg, struct chan *c)
{
    struct desk *d = arg;

    chan_free(&d->keeper);
    ask_gone(d, ASK_KEEPER);
}

static void peer_keeper(struct desk *d, int fd)
{
    static const struct chan_ops ops = {keeper_frame, keeper_gone};

    if (d->keeper)
        keeper_gone(d, d->keeper);
    d->keeper = chan_new(d->loop, fd, &ops, d);
}

/* --- who they are --------------------------------------------------------- */

static void peer(void *arg, unsigned who, uint64_t instance, struct span info, int fd)
{
    static const struct chan_ops ops = {ledger_frame, ledger_gone};
    struct desk *d = arg;

    if (who == ROLE_WARDEN) {
        peer_warden(d, fd);
        return;
    }
    if (who == ROLE_KEEPER) {
        peer_keeper(d, fd);
        return;
    }
    if (who == ROLE_DOCK || who == ROLE_BROKER) {
        dock_peer(d, who == ROLE_BROKER, instance, fd);
        return;
    }
    if (who != ROLE_LEDGER) {
        close(fd);
        return;
    }
    if (d->ledger) {
        chan_free(&d->ledger);
        ask_gone(d, ASK_LEDGER);
    }
    d->ledger = chan_new(d->loop, fd, &ops, d);
    d->diffs_again = true;
}

/* Who looks at its page is told. */
static void diff_over(struct desk *d, struct span ticket)
{
    server_event(d->server, 0, SPAN("diff"), ticket);
}

/* --- the parent ----------------------------------------------------------- */

/* The page's own certificate and its key, behind the listener. */
static void take_tls(struct desk *d, struct frame *f)
{
    struct err e = {{0}};
    struct dynbuf pem[2];
    int bad = 0;

    for (int i = 0; i < 2; i++) {
        int fd = frame_take_fd(f, i + 1);
        dynbuf_init(&pem[i], PEM_MAX);
        if (fd < 0 || file_read_fd(fd, &pem[i]) != 0)
            bad = err_set(&e, "its certificate or key cannot be read");
        if (fd >= 0)
            close(fd);
    }
    if (bad == 0)
        d->tls = tls_server_own(dynbuf_span(&pem[0]), dynbuf_span(&pem[1]), SPAN_NONE, &e);
    for (int i = 0; i < 2; i++)
        dynbuf_wipe(&pem[i]);
    if (!d->tls)
        log_die("the page is not opened: %s", e.text);
}

static void listen_on(struct desk *d, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint8_t kind = msg_get_u8(&m);
    int fd = frame_take_fd(f, 0);

    if (kind == 3 && d->desk_tls[0] && !d->tls)
        take_tls(d, f);
    if (kind != 3 && kind != 4) {
        if (fd >= 0)
            close(fd);
    } else if (server_listen(d->server, kind == 3 ? PLACE_PAGE : PLACE_CONTROL, fd) != 0) {
        log_die("the desk cannot listen");
    }
}

static void parent_frame(void *arg, struct frame *f)
{
    struct desk *d = arg;

    switch (f->type) {
    case M_LISTEN: listen_on(d, f); break;
    case M_IMAGE:
        if (image_take(d, frame_take_fd(f, 0)) != 0) /* the next one begins with what is in force */
            log_die("the page does not show requests by a policy that is in force no more");
        break;
    case M_JOB_NONE: viewers_none(d, f->id); break;
    case M_SECRETS:
        dynbuf_reset(&d->secrets);
        (void)dynbuf_add(&d->secrets, f->payload);
        break;
    case M_TASKS:
    case M_TASK:
        if (kinds_hear(&d->kinds, f->type, f->payload) != 0)
            log_error("the kinds of tasks stay as they were: they cannot be taken");
        break;
    case M_POLICY_NOTICE:
        dynbuf_reset(&d->notice);
        (void)dynbuf_add(&d->notice, f->payload);
        break;
    default: (void)ask_answer(d, ASK_PARENT, f);
    }
}

/* The link that `countersign up` prints. */
static void say_link(struct desk *d)
{
    char token[ID_TEXT + 1], who[GUARD_OPERATOR], url[DESK_TEXT + 64];

    (void)snprintf(who, sizeof(who), "uid %llu", (unsigned long long)d->owner_uid);
    if (guard_link_new(&d->guard, who, loop_now(d->loop), token) != 0)
        log_die("the system has no randomness to give");
    int n = snprintf(url, sizeof(url), "%s/sign-in?t=%s", d->desk_url, token);
    struct dynbuf *b = chan_begin(d->parent, M_SIGNIN, 0);
    if (!b)
        return;
    msg_put_span(b, span_of(url, (size_t)n));
    (void)chan_commit(d->parent);
}

/* The folder of the store; SQLite needs its -wal and -shm as well. */
static void folder_of(const char *path, char out[DESK_TEXT])
{
    const char *slash = strrchr(path, '/');
    (void)snprintf(out, DESK_TEXT, "%.*s", slash && slash > path ? (int)(slash - path) : 1, slash ? path : ".");
}

int main(void)
{
    static const struct role_ops ops = {.frame = parent_frame, .peer = peer, .config = config};
    char store_dir[DESK_TEXT];
    const char *const readable[] = {store_dir, NULL};
    struct wall wall = {.calls = WALL_ACCEPT | WALL_MEMFD | WALL_PAIR | WALL_READ_FILES, .ro_paths = readable};
    struct desk *d = &desk;
    struct err e = {{0}};

    d->loop = loop_new();
    if (!d->loop)
        log_die("no event loop");
    dynbuf_init(&d->secrets, CHAN_PAYLOAD_MAX);
    dynbuf_init(&d->notice, CHAN_PAYLOAD_MAX);
    dynbuf_init(&d->passkeys, CHAN_PAYLOAD_MAX);
    struct role *r = role_start("desk", d->loop, &ops, d);
    d->parent = role_parent(r);
    if (guard_init(&d->guard, span_str(d->desk_url)) != 0)
        log_die(
            "the page is served without TLS on this machine only: desk.http must be localhost or 127.0.0.1 with a "
            "port, not %s",
            d->desk_url);
    if (d->desk_tls[0] && !(d->tls = tls_server_new(&e)))
        log_die("%s", e.text);
    tls_server_free(&d->tls); /* the library has set itself up while it still may */
    d->store = desk_store_new(d->db);
    d->server = server_new(d);
    if (!d->store || !d->server)
        log_die("no memory");
    folder_of(d->db, store_dir);
    pictures_by = &viewers;
    diffs_over = diff_over;
    person_numbers_stay(); /* behind the wall nobody is looked up */
    role_confine(r, &wall);
    role_ready(r);
    say_link(d);
    return loop_run(d->loop) == 0 ? 0 : 1;
}
