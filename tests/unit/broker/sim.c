#include "tests/unit/broker/sim.h"

#include <stdlib.h>

#include "tests/unit/broker/matrix/kills.h"

enum { PENDING_MAX = 256, TICKS_MAX = 400000, KINDS = 6, ASKED_FIRST = 6 };

struct worker {
    bool busy, sums, summed; /* the next begin is of a summary; the last settled step was one */
    unsigned life, turn;
    struct claim claim;
    struct agent loop;
    struct loop_action todo[PENDING_MAX];
    size_t n;
    struct bstore_call call[TURN_CALLS_MAX + 1]; /* of the answer that is being written down */
    struct loop_asked asked[TURN_CALLS_MAX + 1];
    char args[SIM_CALLS][32];
    struct used used;
};

static struct worker workers[SIM_WORKERS];
static struct bstore_chatted turns[SIM_TURNS];
static unsigned asked_for; /* turns that there are */
static enum fault fault;
static struct sim_stats *stats;
static const char *wrong;
static enum bstore_result said; /* by the store, last */

static uint64_t now_of(void *arg)
{
    (void)arg;
    return ++fix_now;
}

static void violated(const char *what)
{
    if (wrong == NULL)
        wrong = what;
}

static void trace(uint64_t a, uint64_t b)
{
    stats->trace = (stats->trace ^ (a * 1000003 + b)) * 0x100000001b3ull;
}

static const char *tenant_of(unsigned turn)
{
    return turn % 2 ? "acme" : "other";
}

static int number(const char *sql)
{
    char n[32];
    return fix_one(sql, n, sizeof(n)) ? atoi(n) : -1;
}

/* A turn of each sort: most end by themselves; one asks for the same for ever, one's model is silent, one asks for
 * too much at once. */
enum sort { SORT_PLAIN = 0, SORT_SAME, SORT_SILENT, SORT_GREEDY };
static enum sort sort_of(unsigned turn)
{
    static const enum sort sorts[KINDS] = {SORT_PLAIN, SORT_PLAIN, SORT_SAME, SORT_PLAIN, SORT_SILENT, SORT_GREEDY};
    return sorts[turn % KINDS];
}

static void drop(struct worker *w)
{
    w->busy = false;
    w->life++;
    w->n = 0;
}

static void tell(struct worker *w, struct loop_event e)
{
    struct loop_actions out;
    e.now_ms = fix_now;
    trace(e.heard, e.ord);
    bool waited = agent_hear(&w->loop, &e, &out);
    for (size_t i = 0; waited && i < out.n; i++) {
        if (out.a[i].what == DO_NOT_THINK)
            w->n = 0;
        else if (w->n < PENDING_MAX)
            w->todo[w->n++] = out.a[i];
        else
            violated("more to do than there is room for");
    }
    if (w->loop.state == LOOP_OVER || (w->loop.state == LOOP_STOPPED && w->n == 0))
        drop(w);
}

/* What the store said; now and then its answer is lost, though it was done. False: the worker has nothing to do here
 * any more. */
static bool passed(struct worker *w, enum bstore_result r)
{
    trace(100 + r, w->turn);
    said = r;
    if (r == BS_FENCED) {
        stats->fenced++;
        if (fault == FAULT_NO_FENCE)
            return true;
    } else if (r == BS_CONFLICT || r == BS_NONE || r == BS_FULL || r == BS_LOST) {
        violated("the store says that this cannot be");
    } else if (r != BS_FAIL && world_pick(150) == 0) {
        stats->lost_answers++;
        r = BS_FAIL;
    }
    if (r == BS_OK || r == BS_AGAIN)
        return true;
    tell(w, (struct loop_event){.heard = r == BS_FENCED ? HEARD_FENCED : HEARD_FAILED});
    return false;
}

/* --- what the loop asks for ------------------------------------------------------------ */

static void think(struct worker *w, uint64_t step)
{
    enum sort sort = sort_of(w->turn);
    if (!w->loop.summary && sort != SORT_SAME && world_pick(6) == 0) {
        w->sums = true;
        tell(w, (struct loop_event){.heard = HEARD_LONG});
        return;
    }
    const struct used most = {0, 10, 1};
    if (!passed(w, bstore_ask(fix, &w->claim, step, w->loop.summary ? SPAN("summary") : SPAN("model"), &most)))
        return;
    uint64_t n = sort == SORT_GREEDY ? TURN_CALLS_MAX + 1 : sort == SORT_SAME ? 2 : world_pick(SIM_CALLS + 1);
    if (sort == SORT_SILENT || world_pick(kills_on ? 4 : 12) == 0) {
        tell(w, (struct loop_event){
                    .heard = HEARD_NO_ANSWER, .retry = world_pick(40) != 0, .after_ms = world_pick(500)});
        return;
    }
    n = w->loop.summary ? 0 : n;
    for (uint64_t i = 0; i < n && i < SIM_CALLS; i++) {
        snprintf(w->args[i], sizeof(w->args[i]), "{\"n\":%u}", sort == SORT_SAME ? 1 : (unsigned)(step * 10 + i));
        enum call_class class = sort == SORT_SAME ? (enum call_class)i : (enum call_class)world_pick(CALL_CLASSES);
        w->call[i] = (struct bstore_call){SPAN("tool"), span_str(w->args[i]), class};
        w->asked[i].class = fault == FAULT_LAX ? CALL_IDEMPOTENT : class;
        agent_call_digest(w->call[i].tool, w->call[i].args, &w->asked[i].what);
    }
    w->used = (struct used){0, 1 + world_pick(9), 1};
    tell(w, (struct loop_event){.heard = HEARD_ANSWER, .asked = w->asked, .n = n, .used = w->used});
}

/* What is written down now. */
static void planned(struct worker *w, const struct loop_action *a)
{
    for (size_t i = 0; i < a->n; i++) {
        struct op *o = &world_op[w->turn][a->step][i];
        *o = (struct op){.planned = true, .command = world_pick(3) == 0, .class = w->call[i].class};
        call_key(&w->claim.turn, a->step, i, w->call[i].tool, w->call[i].args, &o->key);
    }
}

static void plan(struct worker *w, const struct loop_action *a)
{
    struct bstore_call declared[SIM_CALLS];
    struct bstore_plan p = {SPAN("answer"), w->used, declared, a->n, {.input = 0}};
    for (size_t i = 0; i < a->n; i++) {
        declared[i] = w->call[i];
        declared[i].class = w->asked[i].class;
    }
    enum bstore_result r = bstore_plan(fix, &w->claim, a->step, &p);
    if (r == BS_OK)
        planned(w, a);
    if (r == BS_OK && kills_on && bstore_plan(fix, &w->claim, a->step, &p) != BS_AGAIN)
        violated("what was planned is not known again");
    if (passed(w, r))
        tell(w, (struct loop_event){.heard = HEARD_PLANNED});
}

static void run(struct worker *w, const struct loop_action *a)
{
    const struct op *o = world_op[w->turn][a->step];
    struct digest key = o[a->ord].key;
    for (uint64_t i = 0; i < a->ord; i++)
        if (o[i].told == CALL_OPEN && (o[i].class != CALL_READ || o[a->ord].class != CALL_READ))
            violated("a call was run before one that it may build on had ended");
    if (fault == FAULT_FRESH_KEY)
        key.b[0] = (uint8_t)world_pick(256);
    world_fly(w->turn, a->step, a->ord, w->claim.epoch, &key, (unsigned)(w - workers), w->life);
}

static void told(struct op *o, enum call_end end)
{
    if (o->told != CALL_OPEN && o->told != end)
        violated("a call was settled twice");
    o->told = end;
    stats->unknown += end == CALL_UNKNOWN;
}

static void settle(struct worker *w, const struct loop_action *a)
{
    struct bstore_settled how = {a->end, span_str(call_end_name(a->end)), SPAN_NONE};
    enum bstore_result r = BS_OK;
    if (fault != FAULT_FORGET || world_pick(4) != 0)
        r = bstore_call(fix, &w->claim, a->step, a->ord, &how);
    if (r == BS_OK && kills_on && fault != FAULT_FORGET &&
        bstore_call(fix, &w->claim, a->step, a->ord, &how) != BS_AGAIN)
        violated("what was settled is not known again");
    if (r == BS_OK || r == BS_AGAIN || (r == BS_FENCED && fault == FAULT_NO_FENCE))
        told(&world_op[w->turn][a->step][a->ord], a->end);
    if (passed(w, r))
        tell(w, (struct loop_event){.heard = HEARD_SETTLED, .ord = a->ord});
}

static void checkpoint(struct worker *w, const struct loop_action *a)
{
    struct dynbuf b;
    dynbuf_init(&b, LOOP_KEPT_MAX);
    agent_save(&w->loop, &b);
    assert_true(dynbuf_ok(&b));
    const struct bstore_event e = {SPAN("step.settled"), SPAN("{}")};
    const struct bstore_settle s = {
        .checkpoint = {.execution_state = fault == FAULT_NO_MEMORY ? SPAN_NONE : dynbuf_span(&b)},
        .phase = kills_on ? SPAN("building") : SPAN_NONE,
        .record = kills_on ? SPAN("settled\n") : SPAN_NONE,
        .event = &e,
        .events = 1};
    stats->steps++;
    stats->summaries += w->loop.summary;
    w->summed = w->loop.summary;
    enum bstore_result r = bstore_settle(fix, &w->claim, a->step, &s);
    dynbuf_free(&b);
    if (passed(w, r))
        tell(w, (struct loop_event){.heard = HEARD_STEP});
}

static void known(struct worker *w, const struct loop_action *a)
{
    struct loop_event e = {.heard = HEARD_KNOWN, .ord = a->ord, .known = KNOWN_NOT_SENT};
    stats->asked++;
    if (fault != FAULT_BLIND)
        e.known = world_ask(w->turn, a->step, a->ord, &e.end);
    tell(w, e);
}

static void looked(struct worker *w, const struct loop_action *a)
{
    struct loop_event e = {.heard = HEARD_LOOKED, .ord = a->ord};
    e.known = world_look(w->turn, a->step, a->ord, &e.end);
    tell(w, e);
}

static void act(struct worker *w, const struct loop_action *a)
{
    uint64_t attempts = 0;
    trace(200 + a->what, a->ord);
    switch (a->what) {
    case DO_REVOKE:
        if (fault != FAULT_NO_REVOKE)
            world_revoke(w->turn, w->claim.epoch - 1);
        tell(w, (struct loop_event){.heard = HEARD_REVOKED});
        break;
    case DO_BEGIN:
        if (passed(w, bstore_step(fix, &w->claim, a->step, w->sums ? SPAN("summary") : SPAN("model"), &attempts)))
            tell(w, (struct loop_event){.heard = HEARD_BEGUN, .attempts = attempts, .summary = w->sums});
        w->sums = false;
        break;
    case DO_THINK: think(w, a->step); break;
    case DO_PLAN: plan(w, a); break;
    case DO_RUN: run(w, a); break;
    case DO_ABORT: world_abort(w->turn, a->step, a->ord); break;
    case DO_WAIT:
        if (!world_wait(w->turn, a->step, a->ord, (unsigned)(w - workers), w->life))
            tell(w, (struct loop_event){.heard = HEARD_DONE, .ord = a->ord, .end = CALL_UNKNOWN});
        break;
    case DO_ASK: known(w, a); break;
    case DO_LOOK: looked(w, a); break;
    case DO_SETTLE: settle(w, a); break;
    case DO_CHECKPOINT: checkpoint(w, a); break;
    case DO_FINISH:
        if (w->summed && a->turn == END_COMPLETED)
            violated("a summary was taken for an answer");
        if (passed(w, bstore_finish(fix, &w->claim, a->turn, SPAN_NONE)))
            tell(w, (struct loop_event){.heard = HEARD_ENDED});
        break;
    case DO_GIVE_BACK:
        if (passed(w, bstore_release(fix, &w->claim, a->after_ms)))
            drop(w);
        break;
    case DO_NOTHING:
    case DO_NOT_THINK:
    default: violated("it asks for what nobody does");
    }
}

/* --- workers ----------------------------------------------------------------------------- */

static void found(struct worker *w, const struct bstore_turn *t)
{
    struct loop_asked asked[TURN_CALLS_MAX];
    enum call_end ends[TURN_CALLS_MAX];
    struct loop_actions out;
    const struct loop_found f = {.epoch = w->claim.epoch,
                                 .now_ms = fix_now,
                                 .started_ms = t->started_ms,
                                 .settled = t->settled,
                                 .attempts = t->attempts,
                                 .cancelled = t->cancelled,
                                 .planned = t->planned,
                                 .summary = span_starts(t->kind, SPAN("summary")),
                                 .budget = t->budget,
                                 .used = t->used,
                                 .kept = t->checkpoint.execution_state,
                                 .asked = asked,
                                 .end = ends,
                                 .n = t->calls};
    for (size_t i = 0; i < t->calls; i++) {
        struct op *o = &world_op[w->turn][t->open][i];
        asked[i].class = t->call[i].call.class;
        agent_call_digest(t->call[i].call.tool, t->call[i].call.args, &asked[i].what);
        ends[i] = t->call[i].settled.end;
        if (memcmp(o->key.b, t->call[i].key.b, DIGEST_BYTES) != 0)
            violated("a key is not what it was");
        if (o->told != CALL_OPEN && o->told != ends[i])
            violated("a settlement was lost");
        if (ends[i] != CALL_OPEN)
            told(o, ends[i]);
    }
    agent_begin(&w->loop, &f, &out);
    for (size_t i = 0; i < out.n; i++)
        w->todo[w->n++] = out.a[i];
}

static void take(struct worker *w)
{
    struct id id = fix_id((unsigned)(w - workers) + 1);
    struct bstore_turn t;
    if ((said = bstore_claim(fix, &id, SIM_CLAIM, &w->claim)) != BS_OK)
        return;
    w->busy = true;
    w->sums = w->summed = false;
    w->n = 0;
    for (w->turn = 0; w->turn < asked_for && !id_eq(&turns[w->turn].turn, &w->claim.turn);)
        w->turn++;
    if (w->turn == asked_for) {
        assert_true(kills_on);
        serve_replay(&w->claim);
        drop(w);
        return;
    }
    trace(300, w->turn);
    arena_free(&fix_arena);
    if (bstore_load(fix, &w->claim, &fix_arena, &t) == BS_OK)
        found(w, &t);
    else
        drop(w);
}

static void beat(struct worker *w)
{
    bool cancelled;
    if (!passed(w, bstore_cancelled(fix, &w->claim, &cancelled)))
        return;
    tell(w, (struct loop_event){.heard = HEARD_TICK});
    if (cancelled && w->busy)
        tell(w, (struct loop_event){.heard = HEARD_CANCEL});
}

static unsigned texts; /* none is written twice, not by one that is killed either */

/* What a worker does besides: what a reader sees of it, what is recorded of it, what it learns of a call. */
static void besides(struct worker *w)
{
    char text[32];
    uint64_t seq;
    snprintf(text, sizeof(text), "{\"n\":%u}", texts);
    const struct bstore_event e = {SPAN("text"), span_str(text)};
    if (passed(w, bstore_log(fix, &w->claim, &e, 1, &seq)) &&
        passed(w, bstore_record(fix, &w->claim, SPAN("line\n"))))
        said = bstore_class(fix, &w->claim, w->loop.step, 0, CALL_READ); /* laxer than it is: nothing */
}

struct doing {
    struct worker *w;
    const struct loop_action *a;
    enum { TAKES = 0, TAKES_LOST, TAKES_REPLAY, BEATS, BESIDES, ACTS } what;
};

static bool does(void *arg)
{
    const struct doing *d = arg;
    if (d->what <= TAKES_REPLAY)
        take(d->w);
    else if (d->what == BEATS)
        beat(d->w);
    else if (d->what == BESIDES)
        besides(d->w);
    else
        act(d->w, d->a);
    return wrong == NULL;
}

/* What is rare among what a worker takes is a kind by itself. */
static unsigned taken_next(void)
{
    char sql[256];
    snprintf(
        sql, sizeof(sql),
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM turn WHERE state='running' AND lost>0 AND claimed_until<=%llu) THEN 1"
        " WHEN EXISTS (SELECT 1 FROM turn WHERE state IN ('queued','running') AND replays<>'') THEN 2 ELSE 0 END",
        (unsigned long long)fix_now);
    return (unsigned)number(sql);
}

/* The classes of the calls of its newest step that has some: what could be lost or doubled now. */
static unsigned at_stake(unsigned turn)
{
    unsigned classes = 0;
    for (unsigned s = SIM_STEPS; s > 0 && classes == 0; s--)
        for (unsigned i = 0; i < SIM_CALLS; i++)
            if (world_op[turn][s][i].planned)
                classes |= 1u << world_op[turn][s][i].class;
    return classes;
}

static unsigned all_at_stake(void)
{
    unsigned classes = 0;
    for (unsigned i = 0; i < asked_for; i++)
        classes |= at_stake(i);
    return classes;
}

/* By the worker, or by one that is killed at it. */
static void done_by(struct worker *w, struct doing d)
{
    bool stored = d.a == NULL || d.a->what == DO_BEGIN || d.a->what == DO_THINK || d.a->what == DO_PLAN ||
                  d.a->what == DO_SETTLE || d.a->what == DO_CHECKPOINT || d.a->what == DO_FINISH ||
                  d.a->what == DO_GIVE_BACK;
    d.w = w;
    texts++;
    if (kills_on && kills_all() && d.what == TAKES)
        d.what = taken_next();
    unsigned kind = d.a == NULL ? (unsigned)d.what : ACTS + (unsigned)d.a->what;
    if (kills_on)
        kills_begin(KILL_WORKER, kind, d.what <= TAKES_REPLAY ? all_at_stake() : at_stake(w->turn));
    if (!kills_on || !stored || !kills_in(does, &d, &said)) {
        (void)does(&d);
        return;
    }
    if (d.a != NULL && d.a->what == DO_PLAN && said == BS_OK)
        planned(w, d.a);
    stats->crashes++;
    drop(w);
}

static void works(struct worker *w)
{
    if (!w->busy) {
        done_by(w, (struct doing){.what = TAKES});
    } else if (w->n == 0) {
        done_by(w, (struct doing){.what = kills_on && world_pick(8) == 0 ? BESIDES : BEATS});
    } else { /* in any order */
        size_t i = world_pick(w->n);
        struct loop_action a = w->todo[i];
        w->todo[i] = w->todo[--w->n];
        done_by(w, (struct doing){.what = ACTS, .a = &a});
    }
}

static struct bstore_chat chat_of(unsigned i)
{
    static char key[16];
    struct bstore_chat c = {
        .tenant = span_str(tenant_of(i)), .body = SPAN("{}"), .budget = {SIM_STEPS, 60, 0, i % 5 ? 0 : 400000, 3}};
    if (i >= SIM_TURNS / 2)
        c.conversation = turns[i - SIM_TURNS / 2].conversation;
    snprintf(key, sizeof(key), "turn %u", i);
    if (kills_on)
        c.key = span_str(key);
    return c;
}

static void tick(void)
{
    struct world_word word;
    if (kills_on && world_pick(20) == 0) {
        struct serving s = {turns, &asked_for, chat_of, tenant_of, all_at_stake()};
        const char *why = serve_something(&s);
        if (why != NULL)
            violated(why);
        return;
    }
    struct worker *w = &workers[world_pick(SIM_WORKERS)];
    uint64_t chance = world_pick(1000);
    fix_now += world_pick(20);
    if (chance < 4) {
        stats->crashes += w->busy;
        trace(400, (uint64_t)(w - workers));
        drop(w);
    } else if (chance < 6) {
        fix_now += SIM_CLAIM; /* all of them sleep, and come back too late */
    } else if (chance < 8) {
        unsigned i = (unsigned)world_pick(asked_for);
        if (world_pick(4) == 0 && !kills_on && bstore_cancel(fix, span_str(tenant_of(i)), &turns[i].turn) == BS_FAIL)
            violated("it cannot be cancelled");
    } else if (chance < 500) {
        if (!world_turns(&word))
            return;
        w = &workers[word.worker];
        if (w->busy && w->life == word.life && w->turn == word.turn && w->loop.step == word.step)
            tell(w, (struct loop_event){.heard = HEARD_DONE, .ord = word.ord, .end = word.end});
    } else {
        works(w);
    }
}

/* --- was it all right? --------------------------------------------------------------------- */

static void check_op(const struct op *o)
{
    stats->effects += o->effects;
    stats->doubled += o->effects > 1;
    stats->silent +=
        (o->told == CALL_DONE && o->effects == 0 && o->reads == 0) || (o->told == CALL_NOT_RUN && o->effects);
    if (o->effects > 1)
        violated(o->class == CALL_UNSAFE ? "an unsafe effect was there twice" : "an effect was there twice");
    if (o->told == CALL_DONE && o->effects == 0 && o->reads == 0)
        violated("what was told as done was never done");
    if (o->told == CALL_NOT_RUN && o->effects)
        violated("what was told as not run was done");
}

static void check_all(void)
{
    for (unsigned i = 0; i < SIM_TURNS; i++) {
        const struct bstore_turn_row *row = fix_row(tenant_of(i), &turns[i].turn);
        stats->ends[row->end]++;
        if (row->used.steps > SIM_STEPS || (sort_of(i) == SORT_SAME && row->used.steps > 3))
            violated("a turn went on past its budget");
        if (row->end == END_STUCK)
            violated("a turn could not be gone on with");
        for (unsigned s = 1; s <= SIM_STEPS; s++)
            for (unsigned c = 0; c < SIM_CALLS; c++)
                check_op(&world_op[i][s][c]);
    }
    if (number("SELECT count(*) FROM turn WHERE replays=''") != SIM_TURNS)
        violated("what was asked for with one key is more than one turn, or none");
    if (number("SELECT count(*)-count(DISTINCT body) FROM display WHERE type='text'") != 0)
        violated("a reader sees the same twice");
    if (number("SELECT count(*)-(SELECT count(*) FROM turn) FROM display WHERE type='turn.done'") != 0 ||
        number("SELECT count(DISTINCT turn)-(SELECT count(*) FROM turn) FROM display WHERE type='turn.done'") != 0)
        violated("not every turn ended once in the log");
    if (number("SELECT count(*) FROM conversation WHERE log_next-1<>(SELECT count(*) FROM display d WHERE"
               " d.tenant=conversation.tenant AND d.conversation=conversation.id)") != 0)
        violated("a log has a gap");
    if (number(
            "SELECT count(*) FROM tool_call c JOIN turn t ON t.id=c.turn WHERE t.state='done' AND c.ending='open'") !=
        0)
        violated("a call of a turn that is over has no end");
    if (number(fix_postgres ? "SELECT count(*) FROM tool_call c JOIN turn t ON t.id=c.turn WHERE t.state='done' AND"
                              " convert_from(c.result,'UTF8')<>c.ending"
                            : "SELECT count(*) FROM tool_call c JOIN turn t ON t.id=c.turn WHERE t.state='done' AND"
                              " cast(c.result AS TEXT)<>c.ending") != 0)
        violated("a result is not of its settlement");
}

static bool all_over(void)
{
    return asked_for == SIM_TURNS && number("SELECT count(*) FROM turn WHERE state IN ('queued','running')") == 0;
}

const char *sim_run(uint64_t seed, enum fault off, struct sim_stats *out)
{
    *out = (struct sim_stats){.trace = 1};
    stats = out;
    fault = off;
    wrong = NULL;
    fix_test.now_ms = now_of;
    assert_int_equal(fix_setup(NULL), 0);
    world_reset(seed);
    memset(workers, 0, sizeof(workers));
    if (kills_on)
        serve_anew();
    for (asked_for = 0; asked_for < (kills_on ? ASKED_FIRST : SIM_TURNS); asked_for++) {
        struct bstore_chat c = chat_of(asked_for);
        fix_ok(bstore_chat(fix, &c, &turns[asked_for]));
    }
    unsigned ticks = 0;
    for (bool over = false; !over && wrong == NULL; ticks++) {
        tick();
        over = ticks % 128 == 0 && all_over();
        if (ticks == TICKS_MAX)
            violated("it never ends");
    }
    if (kills_on)
        kills_begin(KILL_BROKER, KILLS_KINDS - 1, 0);
    if (wrong == NULL)
        check_all();
    assert_int_equal(fix_teardown(NULL), 0);
    return wrong;
}
