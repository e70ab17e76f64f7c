#include "proxy/judge/recording/replay.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/memfd.h"
#include "proxy/judge/judge.h"
#include "proxy/judge/recording/entry.h"
#include "proxy/msgs.h"

enum { SAID_MAX = 256, SAID_BYTES = 8 * 1024 * 1024 };

struct said {
    enum role_id to;
    uint64_t instance, id;
    uint16_t type;
    struct dynbuf payload;
};

struct replay {
    struct judge *judge;
    struct entry at;                  /* gives the time */
    struct said open, said[SAID_MAX]; /* said: since the last entry of the recording that makes the judge act */
    size_t n, taken;
    uint64_t exchange;
    FILE *out;
    struct replay_result *result;
};

/* ---- the judge's world ---- */

static struct dynbuf *begin(void *arg, enum role_id to, uint64_t instance, uint16_t type, uint64_t id)
{
    struct replay *r = arg;
    dynbuf_free(&r->open.payload);
    r->open = (struct said){.to = to, .instance = instance, .id = id, .type = type};
    dynbuf_init(&r->open.payload, SAID_BYTES);
    return &r->open.payload;
}

static int commit(void *arg, enum role_id to, uint64_t instance, int fd)
{
    struct replay *r = arg;
    (void)to, (void)instance, (void)fd;
    if (r->open.id == r->exchange && r->n < SAID_MAX)
        r->said[r->n++] = r->open;
    else
        dynbuf_free(&r->open.payload);
    r->open = (struct said){.to = ROLE_NONE};
    return 0;
}

static int commit_soon(void *arg, enum role_id to, uint64_t instance)
{
    return commit(arg, to, instance, -1);
}

static uint64_t now(void *arg)
{
    return ((struct replay *)arg)->at.now;
}

static uint64_t wall(void *arg)
{
    return ((struct replay *)arg)->at.wall;
}

static uint64_t clock_us(void *arg)
{
    return ((struct replay *)arg)->at.clock;
}

static void wake(void *arg, uint64_t in_ms) /* when it went off is in the recording */
{
    (void)arg, (void)in_ms;
}

static void hold_back(void *arg, uint64_t instance, bool held)
{
    (void)arg, (void)instance, (void)held;
}

/* ---- what it says, held against what was said ---- */

static const char *message(uint16_t type)
{
    static const struct {
        uint16_t type;
        const char *name;
    } known[] = {
        {M_CONNECT, "CONNECT"},
        {M_LEAF, "LEAF"},
        {M_REQUEST, "REQUEST"},
        {M_BODY_WANTED, "BODY_WANTED"},
        {M_BODY, "BODY"},
        {M_BODY_END, "BODY_END"},
        {M_BODY_CREDIT, "BODY_CREDIT"},
        {M_BODY_WHOLE, "BODY_WHOLE"},
        {M_REPLY, "REPLY"},
        {M_CANCEL, "CANCEL"},
        {M_FRONT_REFUSED, "FRONT_REFUSED"},
        {M_STEP, "STEP"},
        {M_MESSAGE, "MESSAGE"},
        {M_FORWARD, "FORWARD"},
        {M_NEED_RELEASE, "NEED_RELEASE"},
        {M_SENT, "SENT"},
        {M_RESULT, "RESULT"},
        {M_KEPT, "KEPT"},
        {M_MINT, "MINT"},
        {M_MINTED, "MINTED"},
        {M_RELEASE, "RELEASE"},
        {M_RELEASE_FAILED, "RELEASE_FAILED"},
        {M_LEASE_VERIFY, "LEASE_VERIFY"},
        {M_LEASE_NARROWED, "LEASE_NARROWED"},
        {M_LEASE_VERIFIED, "LEASE_VERIFIED"},
        {M_LEASE_STUB, "LEASE_STUB"},
        {M_LEASE_STUBBED, "LEASE_STUBBED"},
        {M_TICKET_OPEN, "TICKET_OPEN"},
        {M_TICKET, "TICKET"},
        {M_CLAIM, "CLAIM"},
        {M_CLAIMED, "CLAIMED"},
        {M_INTENT, "INTENT"},
        {M_INTENT_OVER, "INTENT_OVER"},
        {M_INTENT_OK, "INTENT_OK"},
        {M_SENT_MARK, "SENT_MARK"},
        {M_OUTCOME, "OUTCOME"},
        {M_OUTCOME_OK, "OUTCOME_OK"},
        {M_AUDIT, "AUDIT"},
        {M_WEBSOCKET, "WEBSOCKET"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].type == type)
            return known[i].name;
    return "message";
}

static void line(struct replay *r, char mark, enum role_id role, uint16_t type, size_t bytes, const char *words)
{
    fprintf(r->out, "%c %-8s %3u %-15s %6zu bytes%s%s\n", mark, role_name(role), type, message(type), bytes,
            words[0] ? "  " : "", words);
}

/* The number of a place at the carrier is counted from its start, and is another one here. */
static bool same(const struct said *s, const struct entry *e)
{
    size_t skip = s->type == M_FORWARD ? 4 : 0;
    return s->to == e->role && s->instance == e->instance && s->type == e->type &&
           span_eq(span_from(dynbuf_span(&s->payload), skip), span_from(e->payload, skip));
}

static void was_said(struct replay *r)
{
    struct said *s = r->taken < r->n ? &r->said[r->taken] : NULL;
    bool fits = s != NULL && s->to == r->at.role && s->type == r->at.type;
    r->result->said++;
    r->taken += fits;
    if (fits && same(s, &r->at)) {
        line(r, '>', s->to, s->type, s->payload.n, "");
        return;
    }
    r->result->differs++;
    line(r, fits ? '!' : '?', r->at.role, r->at.type, r->at.payload.n, fits ? "says something else now" : "");
}

static void leftover(struct replay *r)
{
    for (; r->taken < r->n; r->taken++, r->result->differs++)
        line(r, '!', r->said[r->taken].to, r->said[r->taken].type, r->said[r->taken].payload.n, "not said then");
    for (size_t i = 0; i < r->n; i++)
        dynbuf_free(&r->said[i].payload);
    r->n = r->taken = 0;
}

/* ---- the recording ---- */

static int start(struct replay *r, struct err *e)
{
    const struct judge_ports ports = {r, begin, commit, now, wall, wake, commit_soon, clock_us, hold_back};
    if (r->at.id != MSG_VERSION)
        return err_set(e, "it was recorded by another version of countersign");
    judge_free(&r->judge);
    leftover(r);
    r->judge = judge_new(&ports);
    return r->judge != NULL ? 0 : err_set(e, "out of memory");
}

static int heard(struct replay *r, struct err *e)
{
    struct frame f = {.type = r->at.type, .id = r->at.id, .payload = r->at.payload, .fd = {-1}};
    if (r->at.id == r->exchange) {
        r->result->heard++;
        line(r, '<', r->at.role, r->at.type, r->at.payload.n + r->at.body.n, "");
        fflush(r->out); /* before the log's lines of what comes of it */
    }
    if (r->at.has_body) {
        if ((f.fd[0] = memfd_of(r->at.body)) < 0)
            return err_errno(e, "no memory for a body");
        f.nfds = 1;
    }
    if (judge_frame(r->judge, r->at.role, r->at.instance, &f) != 0)
        fprintf(r->out, "  the judge does not take message %u of the %s\n", f.type, role_name(r->at.role));
    if (f.fd[0] >= 0)
        close(f.fd[0]);
    return 0;
}

static int play(struct replay *r, struct err *e)
{
    struct span key, value;
    if (r->at.kind != ENTRY_OUT)
        leftover(r);
    if (r->at.kind == ENTRY_START)
        return start(r, e);
    if (r->judge == NULL)
        return err_set(e, "it does not begin with what the judge knew");
    switch (r->at.kind) {
    case ENTRY_CONFIG:
        if (!span_cut(r->at.payload, '=', &key, &value) || judge_config(r->judge, key, value) != JUDGE_CONFIG_OK)
            return err_set(e, "it has a setting that cannot be used");
        return 0;
    case ENTRY_PEER: judge_peer(r->judge, r->at.role, r->at.instance, r->at.payload); return 0;
    case ENTRY_GONE: judge_gone(r->judge, r->at.role, r->at.instance); return 0;
    case ENTRY_TICK: judge_tick(r->judge); return 0;
    case ENTRY_IN: return heard(r, e);
    case ENTRY_OUT:
        if (r->at.id == r->exchange)
            was_said(r);
        return 0;
    default: return err_set(e, "it has an entry of no known kind");
    }
}

int replay_run(struct span recording, uint64_t exchange, FILE *out, struct replay_result *result, struct err *e)
{
    struct replay *r = calloc(1, sizeof(*r));
    struct msg_in m = msg_in(recording);
    int bad = r == NULL ? err_set(e, "out of memory") : 0;
    *result = (struct replay_result){.heard = 0};
    if (bad == 0) {
        r->exchange = exchange;
        r->out = out;
        r->result = result;
    }
    while (bad == 0 && m.rest.n > 0)
        bad = entry_get(&m, &r->at) != 0 ? err_set(e, "it is no recording, or its end is missing") : play(r, e);
    if (bad == 0)
        leftover(r);
    if (bad == 0 && result->heard == 0)
        bad = err_set(e, "the exchange is not in it");
    if (r != NULL) {
        r->exchange = 0; /* what the judge says at its end is nobody's */
        judge_free(&r->judge);
        leftover(r);
        dynbuf_free(&r->open.payload);
    }
    free(r);
    return bad;
}
