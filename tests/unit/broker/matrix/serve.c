/* Who serves while turns run: it is asked for turns, and readers look at everything. */
#include "tests/unit/broker/matrix/kills.h"

enum { REPLAYS_MAX = 4, TALKS = SIM_TURNS / 2 };
enum request {
    ASK = 0,
    ASK_AGAIN,
    READ,
    READ_MESSAGES,
    LIST,
    FORK,
    READ_RECORDED,
    SWEEP,
    WORKER_ENDED,
    REPLAY,
    CANCEL,
    CANCEL_NEW,
    REQUESTS
};

/* What a reader has seen of a conversation. */
static struct seen {
    uint64_t n, sum;
} seen[TALKS];
static unsigned replays;
static const char *wrong;

struct one {
    const struct serving *s;
    enum request what;
    unsigned i;
    struct bstore_chatted out;
};
static enum bstore_result result;

void serve_anew(void)
{
    memset(seen, 0, sizeof(seen));
    replays = 0;
    kills_home();
    kills_begin(KILL_BROKER, KILLS_KINDS - 1, 0); /* nobody is killed at what comes next */
}

static uint64_t mix(uint64_t sum, struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        sum = (sum ^ s.p[i]) * 0x100000001b3ull;
    return sum;
}

/* From the first event on: no gap, and what was seen before is as it was. */
static enum bstore_result read_all(struct span tenant, const struct id *conversation, struct seen *was)
{
    struct seen is = {0, 1};
    struct bstore_log log;
    struct arena a;
    enum bstore_result r;
    arena_init(&a, 64 << 20);
    do {
        r = bstore_events(fix, tenant, conversation, is.n ? log.epoch : 0, is.n, &a, &log);
        for (size_t i = 0; r == BS_OK && i < log.n; i++) {
            if (log.event[i].seq != ++is.n)
                wrong = "a reader sees a gap";
            is.sum = mix(mix(is.sum, log.event[i].type), log.event[i].body);
            if (is.n == was->n && is.sum != was->sum)
                wrong = "a reader sees something else than before";
        }
    } while (r == BS_OK && log.n > 0);
    if (r == BS_OK && is.n < was->n)
        wrong = "a reader sees less than before";
    if (r == BS_OK)
        *was = is;
    arena_free(&a);
    return r;
}

static enum bstore_result metered(struct span tenant, const struct bstore_chatted *t, struct arena *a)
{
    const struct bstore_usage_ask all = {.to = BSTORE_DAY_MAX};
    const struct bstore_usage_ask one = {.to = BSTORE_DAY_MAX, .conversation = t->conversation};
    struct bstore_usage u;
    struct span next;
    enum bstore_result r = bstore_usage(fix, tenant, &all, a, &u);
    if (r == BS_OK)
        r = bstore_usage(fix, tenant, &one, a, &u);
    return r == BS_OK ? bstore_tenant(fix, SPAN_NONE, a, &next) : r;
}

static enum bstore_result list(struct span tenant, const struct bstore_chatted *t, struct arena *a)
{
    struct bstore_conversations c;
    struct bstore_turns turns;
    struct bstore_turn_row row;
    struct bstore_waiting late;
    struct budgets_stand stand;
    enum bstore_result r = bstore_conversations(fix, tenant, &(struct id){{0}}, a, &c);
    if (r == BS_OK)
        r = bstore_lately(fix, tenant, &(struct id){{0}}, a, &c);
    if (r == BS_OK)
        r = bstore_lately(fix, tenant, &t->conversation, a, &c);
    if (r == BS_OK)
        r = bstore_turns(fix, tenant, &t->conversation, 0, a, &turns);
    if (r == BS_OK)
        r = metered(tenant, t, a);
    if (r == BS_OK)
        r = bstore_waiting(fix, 1, &late);
    if (r == BS_OK)
        r = bstore_budgets(fix, tenant, &stand);
    return r == BS_OK ? bstore_turn(fix, tenant, &t->turn, a, &row) : r;
}

static enum bstore_result read_messages(struct span tenant, const struct bstore_chatted *t, struct arena *a)
{
    struct bstore_messages m;
    enum bstore_result r = bstore_messages(fix, tenant, &t->conversation, 0, a, &m);
    return r == BS_OK ? bstore_queued(fix, tenant, &t->conversation, a, &m) : r;
}

/* With recorded tools, or live. */
static enum bstore_result replay(struct span tenant, unsigned i, const struct bstore_chatted *t,
                                 struct bstore_chatted *out)
{
    const struct bstore_live live = {.tenant = tenant, .turn = t->turn, .model = SPAN("small")};
    return i % 2 ? bstore_live(fix, &live, out) : bstore_replay(fix, tenant, &t->turn, out);
}

static bool does(void *arg)
{
    struct one *o = arg;
    struct span tenant = span_str(o->s->tenant_of(o->i));
    const struct bstore_chatted *t = &o->s->turns[o->i];
    struct bstore_chat chat = o->s->chat_of(o->i);
    struct bstore_recorded recorded;
    struct id id = fix_id(o->i % SIM_WORKERS + 100);
    struct arena a;
    arena_init(&a, 64 << 20);
    switch (o->what) {
    case ASK:
    case ASK_AGAIN: result = bstore_chat(fix, &chat, &o->out); break;
    case READ: result = read_all(tenant, &t->conversation, &seen[o->i % TALKS]); break;
    case READ_MESSAGES: result = read_messages(tenant, t, &a); break;
    case LIST: result = list(tenant, t, &a); break;
    case FORK: result = bstore_fork(fix, tenant, &t->conversation, 1, &id); break;
    case READ_RECORDED: result = bstore_recorded(fix, tenant, &t->turn, &a, &recorded); break;
    case SWEEP: result = bstore_sweep(fix); break;
    case WORKER_ENDED: result = bstore_ended(fix, &id); break;
    case CANCEL:
    case CANCEL_NEW: result = bstore_cancel(fix, tenant, &t->turn); break;
    case REPLAY: result = replay(tenant, o->i, t, &o->out); break;
    default: result = BS_FAIL;
    }
    arena_free(&a);
    return wrong == NULL;
}

static const char *judge(struct one *o, bool kept)
{
    struct bstore_chatted *t = &o->s->turns[o->i];
    if (wrong != NULL)
        return wrong;
    if (result == BS_FAIL)
        return "who serves cannot";
    if (o->what == ASK) {
        if (result != (kept ? BS_AGAIN : BS_OK))
            return "what was asked for is there twice, or was lost";
        *t = o->out;
        *o->s->asked = o->i + 1;
    } else if (o->what == ASK_AGAIN) {
        if (result != BS_AGAIN || !id_eq(&o->out.turn, &t->turn))
            return "what was asked for with one key is not one turn";
    } else if (o->what == REPLAY) {
        replays += (kept ? 1u : 0u) + (result == BS_OK);
    }
    return NULL;
}

/* As if a tenant had more recorded than is kept, so that the oldest goes. */
static void fill(void)
{
    fix_exec(fix_postgres ? "UPDATE recorded_size SET bytes=33600000" : "UPDATE tenant SET recorded=33600000");
}

/* A turn that nobody has begun. */
static const char *ask_new(struct one *o)
{
    o->i = *o->s->asked;
    o->what = ASK;
    kills_begin(KILL_BROKER, SERVE_KINDS + ASK, o->s->classes);
    (void)does(o);
    const char *why = judge(o, false);
    o->what = CANCEL_NEW;
    return why;
}

const char *serve_something(const struct serving *s)
{
    struct one o = {.s = s, .what = (enum request)world_pick(REQUESTS), .i = (unsigned)world_pick(*s->asked)};
    wrong = NULL;
    if (o.what == ASK && *s->asked < SIM_TURNS)
        o.i = *s->asked;
    else if (o.what == ASK || (o.what == CANCEL && world_pick(5) != 0) ||
             (o.what == REPLAY && replays >= REPLAYS_MAX))
        o.what = ASK_AGAIN;
    else if (o.what == CANCEL_NEW && (*s->asked == SIM_TURNS || world_pick(3) != 0))
        o.what = READ;
    if (o.what == CANCEL_NEW && ask_new(&o) != NULL)
        return "what was asked for is not taken";
    if (o.what == READ_RECORDED && world_pick(4) == 0)
        fill();
    kills_begin(KILL_BROKER, SERVE_KINDS + (unsigned)o.what, s->classes);
    bool kept = kills_in(does, &o, &result) && result == BS_OK;
    (void)does(&o);
    return judge(&o, kept);
}

void serve_replay(const struct claim *c)
{
    const struct bstore_call call = {SPAN("tool"), SPAN("{\"n\":1}"), CALL_READ};
    const struct bstore_plan plan = {SPAN("answer"), {0, 1, 1}, &call, 1, {.input = 0}};
    const struct bstore_settled how = {CALL_DONE, SPAN("done"), SPAN_NONE};
    const struct bstore_settle settle = {.messages = 0};
    struct bstore_replayed then;
    struct arena a;
    uint64_t attempts;
    arena_init(&a, 1 << 20);
    /* whoever had it before has come so far or not */
    if (bstore_step(fix, c, 1, SPAN("model"), &attempts) != BS_FENCED && bstore_plan(fix, c, 1, &plan) != BS_FENCED &&
        bstore_replayed(fix, c, 1, 0, &call, &a, &then) != BS_FENCED &&
        bstore_call(fix, c, 1, 0, &how) != BS_FENCED && bstore_settle(fix, c, 1, &settle) != BS_FENCED)
        fix_ok(bstore_finish(fix, c, END_COMPLETED, SPAN_NONE));
    arena_free(&a);
}
