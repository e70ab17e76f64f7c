#include "proxy/judge/judge.h"

#include <stdlib.h>

#include "common/log.h"
#include "proxy/judge/frames/frames.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/leases/check.h"
#include "proxy/judge/leases/table.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/tickets/review.h"
#include "proxy/judge/accounts/turn.h"
#include "proxy/judge/accounts/upstreams.h"

static int make_stub_key(struct judge *j)
{
    struct id half[2];
    if (id_new(&half[0]) != 0 || id_new(&half[1]) != 0)
        return -1;
    memcpy(j->stub_key, half, sizeof(j->stub_key));
    return 0;
}

struct judge *judge_new(const struct judge_ports *ports)
{
    struct judge *j = calloc(1, sizeof(*j));
    if (j == NULL)
        return NULL;
    j->ports = *ports;
    j->config.inline_wait_ms = 50 * 1000;
    j->config.expires_ms = 30 * 60 * 1000;
    j->config.body_max = 64ull * 1024 * 1024;
    dynbuf_init(&j->egress_tenants, EGRESS_TENANTS_BYTES);
    j->backlog = backlog_new();
    j->upstreams = upstreams_new();
    j->leases = lease_table_new();
    if (j->backlog == NULL || j->upstreams == NULL || j->leases == NULL || make_stub_key(j) != 0) {
        backlog_free(&j->backlog);
        lease_table_free(&j->leases);
        upstreams_free(&j->upstreams);
        free(j);
        return NULL;
    }
    return j;
}

static void end(struct exchange *x, void *arg)
{
    exchange_end(x, "the judge ends");
}

void judge_free(struct judge **jp)
{
    struct judge *j = *jp;
    if (j == NULL)
        return;
    exchange_each(j, end, NULL);
    while (j->fronts != NULL)
        judge_gone(j, ROLE_FRONT, j->fronts->instance);
    while (j->sandboxes != NULL)
        sandbox_remove(j, j->sandboxes->name);
    egress_free_all(j);
    dynbuf_free(&j->egress_tenants);
    upstreams_free(&j->upstreams);
    lease_table_free(&j->leases);
    image_unref(j->image);
    backlog_free(&j->backlog);
    free(j);
    *jp = NULL;
}

static enum judge_config_result number(struct span value, uint64_t max, uint64_t *to)
{
    return span_u64(value, max, to) == 0 ? JUDGE_CONFIG_OK : JUDGE_CONFIG_BAD;
}

static enum judge_config_result choice(struct span value, struct span no, struct span yes, bool *to)
{
    *to = span_eq(value, yes);
    return *to || value.n == 0 || span_eq(value, no) ? JUDGE_CONFIG_OK : JUDGE_CONFIG_BAD;
}

enum judge_config_result judge_config(struct judge *j, struct span key, struct span value)
{
    const uint64_t day = 24ull * 3600 * 1000;
    if (span_eq(key, SPAN("hold.inline_wait_ms")))
        return number(value, day, &j->config.inline_wait_ms);
    if (span_eq(key, SPAN("hold.expires_ms")))
        return number(value, 30 * day, &j->config.expires_ms);
    if (span_eq(key, SPAN("body_max")))
        return number(value, 1024ull * 1024 * 1024, &j->config.body_max);
    if (span_eq(key, SPAN("store_lost")))
        return choice(value, SPAN("deny"), SPAN("allow-reads"), &j->config.allow_reads);
    if (span_eq(key, SPAN("mode")))
        return choice(value, SPAN("enforce"), SPAN("shadow"), &j->config.shadow);
    if (span_eq(key, SPAN("disclose")))
        return choice(value, SPAN("none"), SPAN("rules"), &j->config.disclose_rules);
    if (span_eq(key, SPAN("egress_tenants")))
        return egress_config(j, value) == 0 ? JUDGE_CONFIG_OK : JUDGE_CONFIG_BAD;
    if (!span_eq(key, SPAN("desk_url")))
        return JUDGE_CONFIG_OTHER;
    if (value.n >= sizeof(j->config.desk_url))
        return JUDGE_CONFIG_BAD;
    if (value.n)
        memcpy(j->config.desk_url, value.p, value.n);
    j->config.desk_url[value.n] = '\0';
    return JUDGE_CONFIG_OK;
}

size_t judge_exchanges(const struct judge *j)
{
    return j->nexchanges;
}

struct front *judge_front(const struct judge *j, uint64_t instance)
{
    struct front *f = j->fronts;
    while (f != NULL && f->instance != instance)
        f = f->next;
    return f;
}

/* "NAME", or "NAME LANE BORN.NUMBER" of one that serves one command of it alone: the parent's words, who says them of
 * nobody else (proxy/parent/programs/cells.c). -1: neither. */
static int front_named(struct front *f, struct span info)
{
    struct span born, number, rest;
    uint64_t n = 0;
    if (!span_cut(info, ' ', &f->name, &rest))
        return 0;
    (void)span_cut(rest, ' ', &f->lane, &rest);
    (void)span_cut(rest, '.', &born, &number);
    if (f->lane.n == 0 || span_u64(born, INT64_MAX, &f->one.born) != 0 || f->one.born == 0 ||
        span_u64(number, UINT32_MAX, &n) != 0 || n == 0)
        return -1;
    f->one.number = (uint32_t)n;
    return 0;
}

static void front_add(struct judge *j, uint64_t instance, struct span name)
{
    struct front *f = calloc(1, sizeof(*f) + name.n);
    if (f == NULL) {
        log_error("no memory for another front; its requests will not be answered");
        return;
    }
    f->instance = instance;
    f->name = span_of(f->name_bytes, name.n);
    if (name.n)
        memcpy(f->name_bytes, name.p, name.n);
    f->info = f->name;
    f->over = front_named(f, f->name) != 0;
    struct sandbox *s = f->over ? NULL : sandbox_find(j, f->name);
    f->sandbox = s ? sandbox_ref(s) : NULL;
    f->next = j->fronts;
    j->fronts = f;
}

void judge_peer(struct judge *j, enum role_id role, uint64_t instance, struct span info)
{
    judge_gone(j, role, instance);
    switch (role) {
    case ROLE_FRONT: front_add(j, instance, info); break;
    case ROLE_CARRIER:
        j->carrier = true;
        j->carrier_boot++;
        break;
    case ROLE_KEEPER: j->keeper = true; break;
    case ROLE_LEDGER:
        j->ledger = true;
        j->store_lost = false;
        j->thawed = false;
        judge_heard_ledger(j);
        backlog_flush(j);
        review_ask(j);
        break;
    default: break;
    }
}

/* Of a claim, granted or not, "not sent" follows when the ledger is back. */
static void lost_ledger(struct exchange *x, void *arg)
{
    if (x->wait == X_TICKET || x->wait == X_PARKED || x->wait == X_CLAIM || x->wait == X_INTENT ||
        x->wait == X_STUB || x->wait == X_STUB_TURN)
        refuse_now(x, REFUSE_STORE);
}

/* What the carrier had not finished may have been sent: an effect is then of unknown outcome, never repeated. */
static void lost_carrier(struct exchange *x, void *arg)
{
    if (x->delivery < DELIVERY_FORWARDED || x->delivery >= DELIVERY_FINISHED)
        return;
    exchange_delivery(x, x->delivery == DELIVERY_SWITCHED ? DELIVERY_CLOSED : DELIVERY_FINISHED);
    if (x->delivery == DELIVERY_CLOSED) { /* it has its result; what was its end is not known */
        x->socket.code = "carrier-lost";
        exchange_resume(x->judge, x->xid);
        return;
    }
    x->outcome = OUTCOME_UNKNOWN;
    refuse_now(x, exchange_in_doubt(x) ? REFUSE_OUTCOME_UNKNOWN : REFUSE_CARRIER);
}

/* Whether it was signed with a lease's key is now nobody's to say. */
static void lost_keeper(struct exchange *x, void *arg)
{
    if (x->wait == X_PROOF)
        refuse_now(x, REFUSE_INTERNAL);
}

static void lost_front(struct exchange *x, void *arg)
{
    if (x->front != arg)
        return;
    exchange_front_over(x);
    frames_client_gone(x);
}

static void front_gone(struct judge *j, uint64_t instance)
{
    struct front **at = &j->fronts, *f;
    while (*at != NULL && (*at)->instance != instance)
        at = &(*at)->next;
    f = *at;
    if (f == NULL)
        return;
    *at = f->next;
    exchange_each(j, lost_front, f);
    record_refused_rest(j, f);
    connect_forget(f);
    sandbox_unref(f->sandbox);
    free(f);
}

void judge_gone(struct judge *j, enum role_id role, uint64_t instance)
{
    turn_begin(j, NULL);
    switch (role) {
    case ROLE_FRONT: front_gone(j, instance); break;
    case ROLE_CARRIER:
        j->carrier = false;
        exchange_each(j, lost_carrier, NULL);
        break;
    case ROLE_KEEPER:
        j->keeper = false;
        connect_keeper_gone(j);
        exchange_each(j, lost_keeper, NULL);
        break;
    case ROLE_LEDGER:
        j->ledger = false;
        j->told = false; /* what it says meanwhile is heard of with its next welcome */
        egress_ledger_gone(j);
        exchange_each(j, lost_ledger, NULL);
        break;
    default: break;
    }
    turn_end(j, 0);
}

static int frame(struct judge *j, enum role_id role, uint64_t instance, struct front *front, struct frame *f)
{
    switch (role) {
    case ROLE_PARENT: return frames_parent(j, f);
    case ROLE_LOBBY: return frames_lobby(j, instance, f);
    case ROLE_FRONT: return front ? frames_front(j, front, f) : -1;
    case ROLE_CARRIER: return frames_carrier(j, f);
    case ROLE_KEEPER: return frames_keeper(j, f);
    case ROLE_LEDGER: return frames_ledger(j, f);
    default: return -1;
    }
}

int judge_frame(struct judge *j, enum role_id role, uint64_t instance, struct frame *f)
{
    struct front *front = role == ROLE_FRONT ? judge_front(j, instance) : NULL;
    turn_begin(j, front);
    int rc = frame(j, role, instance, front, f);
    if (rc != 0 && front != NULL) /* for one that only lost its channel another one is made */
        sandbox_end_front(j, front);
    turn_end(j, front ? instance : 0);
    return rc;
}

void judge_wake_in(struct judge *j, uint64_t ms)
{
    uint64_t at = j->ports.now(j->ports.arg) + ms;
    if (j->alarm != 0 && at >= j->alarm)
        return;
    j->alarm = at;
    j->ports.wake(j->ports.arg, ms);
}

static void told_of_the_end(struct exchange *x, void *arg)
{
    if (x->wait == X_BODY || x->wait == X_PROOF || x->wait == X_PARKED || x->wait == X_STUB || x->wait == X_STUB_TURN)
        refuse_now(x, REFUSE_ENDING);
    else
        websocket_again(x);
}

void judge_end(struct judge *j)
{
    j->ending = true;
    turn_begin(j, NULL);
    (void)egress_look(j, j->ports.now(j->ports.arg)); /* what is settled is told */
    (void)turn_look(j);                               /* who was made to wait is refused as well */
    exchange_each(j, told_of_the_end, NULL);
    turn_end(j, 0);
}

static void timed_out(struct exchange *x)
{
    enum x_wait w = x->wait;
    switch (w) {
    case X_CLAIM:
    case X_INTENT: /* the client is told now; the answer, when it comes, is answered with "not sent" */
        refuse(x, REFUSE_STORE);
        refuse_send(x);
        exchange_wait(x, w, 0);
        break;
    case X_STUB:
    case X_STUB_TURN:
    case X_TICKET: refuse_now(x, REFUSE_STORE); break;
    case X_PROOF: refuse_now(x, REFUSE_INTERNAL); break;
    case X_RESULT:
        lease_tick(x);
        websocket_tick(x);
        break;
    default: exchange_resume(x->judge, x->xid); break;
    }
}

void judge_tick(struct judge *j)
{
    uint64_t now = j->ports.now(j->ports.arg), next;
    turn_begin(j, NULL);
    for (struct exchange *x = j->timed; x != NULL;) {
        if (x->deadline > now) {
            x = x->next_timed;
            continue;
        }
        timed_out(x);
        x = j->timed; /* the list has changed */
    }
    next = turn_look(j);
    next = next == UINT64_MAX ? next : now + next;
    uint64_t egress = egress_look(j, now);
    next = egress < next ? egress : next;
    for (struct exchange *x = j->timed; x != NULL; x = x->next_timed)
        if (x->deadline < next)
            next = x->deadline;
    j->alarm = next == UINT64_MAX ? 0 : next;
    j->ports.wake(j->ports.arg, next == UINT64_MAX ? UINT64_MAX : next - now);
    turn_end(j, 0);
}
