#include "tests/unit/broker/recorder.h"

#include "tests/kit.h"

enum { QUEUE = 2 * TURN_CALLS_MAX + 8, CALLS = 4, WORKERS = 12 };

struct due {
    uint64_t at, order;
    struct loop_event e;
};

static struct recorder {
    uint64_t dice, now, order, epoch, cancel_at, lose_at;
    struct agent m;
    struct due due[QUEUE];
    size_t ndue;
    struct dynbuf rows, pending; /* pending: not written down yet */
    bool lossy, back;
    uint64_t back_ms;
    enum turn_end ended, wanted;
    /* the store */
    uint64_t settled, attempts;
    bool planned, cut, cancelled, summary, sums; /* sums: the next begin is of one */
    struct used used, answer, budget_of;
    struct budget budget;
    struct dynbuf kept;
    struct loop_asked asked[TURN_CALLS_MAX + 1], of_answer[TURN_CALLS_MAX + 1];
    enum call_end end[TURN_CALLS_MAX];
    bool ran[TURN_CALLS_MAX];
    size_t n;
} r;

static uint64_t pick(uint64_t n)
{
    r.dice = r.dice * 6364136223846793005u + 1442695040888963407u;
    return (r.dice >> 33) % n;
}

static void later(struct loop_event e, uint64_t ms)
{
    assert_true(r.ndue < QUEUE);
    r.due[r.ndue++] = (struct due){r.now + ms, r.order++, e};
}

static void write_row(struct tape_row *row, const struct loop_actions *out)
{
    static const struct span names[TURN_CALLS_MAX + 1] = {SPAN("read_file"), SPAN("run_command")};
    struct span tool[TURN_CALLS_MAX + 1];
    struct dynbuf did;
    dynbuf_init(&did, TAPE_DID_MAX);
    tape_did(&did, out);
    for (size_t i = 0; i <= TURN_CALLS_MAX; i++)
        tool[i] = names[i % 2];
    row->t = r.now;
    row->did = dynbuf_span(&did);
    row->tool = tool;
    row->same = r.m.same;
    row->model = pick(2) ? SPAN("one") : SPAN("two");
    tape_put(&r.pending, row);
    dynbuf_free(&did);
    assert_true(dynbuf_ok(&r.pending));
}

static void write_down(void)
{
    assert_int_equal(dynbuf_add(&r.rows, dynbuf_span(&r.pending)), 0);
    dynbuf_reset(&r.pending);
}

static void think(void)
{
    uint64_t n = pick(8) == 0 ? TURN_CALLS_MAX + 1 : pick(CALLS + 1);
    bool again = pick(3) == 0 && r.settled > 0;
    if (!r.m.summary && pick(16) == 0) {
        r.sums = true;
        later((struct loop_event){.heard = HEARD_LONG}, pick(5));
        return;
    }
    if (pick(5) == 0) {
        struct tape_row spent = {.kind = TAPE_SPENT, .used = {.tokens = 7, .cost_micro = 3}};
        struct loop_actions none = {.n = 0};
        write_row(&spent, &none);
        r.used.tokens += 7;
        r.used.cost_micro += 3;
        later(pick(19) == 0
                  ? (struct loop_event){.heard = HEARD_BUDGET}
                  : (struct loop_event){.heard = HEARD_NO_ANSWER, .retry = pick(9) != 0, .after_ms = pick(3000)},
              pick(900));
        return;
    }
    if (n > CALLS && pick(4) != 0)
        n = 2;
    n = r.m.summary ? 0 : n;
    for (uint64_t i = 0; i < n; i++) {
        r.of_answer[i].class = again ? CALL_READ : (enum call_class)pick(CALL_CLASSES);
        memset(&r.of_answer[i].what, again ? 1 : (int)(2 + pick(200)), DIGEST_BYTES);
    }
    r.answer = (struct used){.tokens = 10 + pick(90), .cost_micro = pick(500)};
    later((struct loop_event){.heard = HEARD_ANSWER,
                              .asked = r.of_answer,
                              .n = n,
                              .used = r.answer,
                              .cut = !r.m.summary && pick(9) == 0},
          pick(2000));
}

static enum call_end some_end(void)
{
    uint64_t n = pick(8);
    return n == 0 ? CALL_UNKNOWN : n == 1 ? CALL_ERROR : CALL_DONE;
}

static void plan(size_t n)
{
    r.planned = true;
    r.n = n;
    memcpy(r.asked, r.of_answer, sizeof(r.asked));
    memset(r.end, 0, sizeof(r.end));
    memset(r.ran, 0, sizeof(r.ran));
    r.used.tokens += r.answer.tokens;
    r.used.cost_micro += r.answer.cost_micro;
    later((struct loop_event){.heard = HEARD_PLANNED}, pick(5));
}

static void checkpoint(void)
{
    dynbuf_reset(&r.kept);
    agent_save(&r.m, &r.kept);
    r.settled++;
    r.used.steps++;
    r.planned = r.cut = r.summary = false;
    r.attempts = 0;
    write_down();
    later((struct loop_event){.heard = HEARD_STEP}, pick(5));
}

static void ask(const struct loop_action *a, enum loop_heard heard)
{
    static const enum known may[] = {KNOWN_SENT, KNOWN_NOT_SENT, KNOWN_ANSWERED, KNOWN_GOING, KNOWN_NOTHING};
    enum known k = may[pick(heard == HEARD_LOOKED ? 3 : 5)];
    later((struct loop_event){.heard = heard, .ord = a->ord, .known = k, .end = CALL_DONE}, pick(60));
}

static void act(const struct loop_action *a)
{
    switch (a->what) {
    case DO_REVOKE: later((struct loop_event){.heard = HEARD_REVOKED}, pick(5)); break;
    case DO_BEGIN:
        r.summary = r.sums;
        r.sums = false;
        later((struct loop_event){.heard = HEARD_BEGUN, .attempts = ++r.attempts, .summary = r.summary}, pick(5));
        break;
    case DO_THINK: think(); break;
    case DO_NOT_THINK: r.ndue = 0; break;
    case DO_PLAN: plan(a->n); break;
    case DO_RUN:
    case DO_WAIT:
        later((struct loop_event){.heard = HEARD_DONE, .ord = a->ord, .end = some_end()}, pick(4) * 50);
        break;
    case DO_ASK: ask(a, HEARD_KNOWN); break;
    case DO_LOOK: ask(a, HEARD_LOOKED); break;
    case DO_SETTLE:
        r.end[a->ord] = a->end;
        later((struct loop_event){.heard = HEARD_SETTLED, .ord = a->ord}, pick(3));
        break;
    case DO_CHECKPOINT: checkpoint(); break;
    case DO_FINISH:
        r.wanted = a->turn;
        later((struct loop_event){.heard = HEARD_ENDED}, pick(20));
        break;
    case DO_GIVE_BACK:
        write_down();
        r.back = true;
        r.back_ms = a->after_ms;
        break;
    default: break;
    }
}

/* Each thing takes its time, so that what is heard at the same moment is heard in the order it was asked for. */
static struct due first(void)
{
    size_t best = 0;
    for (size_t i = 1; i < r.ndue; i++)
        if (r.due[i].at < r.due[best].at || (r.due[i].at == r.due[best].at && r.due[i].order < r.due[best].order))
            best = i;
    struct due d = r.due[best];
    r.due[best] = r.due[--r.ndue];
    return d;
}

static void hear(struct loop_event e)
{
    struct loop_actions out;
    struct tape_row row = {.kind = TAPE_HEARD};
    e.now_ms = r.now;
    assert_true(agent_hear(&r.m, &e, &out));
    row.e = e;
    if (e.heard == HEARD_ANSWER)
        r.cut = e.cut;
    if (e.heard == HEARD_ENDED)
        r.ended = r.wanted;
    else
        write_row(&row, &out);
    for (size_t i = 0; i < out.n; i++) {
        if (out.a[i].what == DO_FINISH)
            write_down();
        act(&out.a[i]);
    }
}

static void worker(void)
{
    struct loop_actions out;
    struct tape_row row = {.kind = TAPE_BEGIN};
    const struct loop_found f = {.epoch = ++r.epoch,
                                 .now_ms = r.now,
                                 .settled = r.settled,
                                 .attempts = r.attempts,
                                 .cancelled = r.cancelled,
                                 .planned = r.planned,
                                 .summary = r.planned && r.summary,
                                 .cut = r.cut && r.planned,
                                 .budget = r.budget,
                                 .used = r.used,
                                 .kept = dynbuf_span(&r.kept),
                                 .asked = r.asked,
                                 .end = r.end,
                                 .n = r.planned ? r.n : 0};
    r.back = false;
    r.ndue = 0;
    agent_begin(&r.m, &f, &out);
    row.found = f;
    write_row(&row, &out);
    for (size_t i = 0; i < out.n; i++)
        act(&out.a[i]);
    for (uint64_t n = 0; r.m.state != LOOP_OVER && r.m.state != LOOP_STOPPED && r.ndue > 0; n++) {
        struct due d = first();
        if (r.lossy && r.epoch < WORKERS && pick(60) == 0) {
            dynbuf_reset(&r.pending); /* what it had not written down is gone */
            r.now += 15000;
            return;
        }
        r.now = d.at > r.now ? d.at : r.now;
        bool cancel = r.cancel_at > 0 && r.now >= r.cancel_at && r.m.state != LOOP_ENDING && !r.cancelled;
        if (cancel) {
            r.cancelled = true;
            bool thought = r.m.state == LOOP_THINKING;
            r.due[r.ndue++] = d;
            hear((struct loop_event){.heard = HEARD_CANCEL});
            if (thought)
                continue;
            continue;
        }
        hear(d.e);
    }
    r.now += r.back ? r.back_ms + pick(200) : 0;
}

enum turn_end recorder_run(struct dynbuf *set, uint64_t seed, bool lossy)
{
    struct set_run run = {.cut = false};
    r = (struct recorder){.dice = seed * 2654435761u + 17, .lossy = lossy};
    r.budget = run.budget = (struct budget){.steps = 2 + pick(6), .same_calls = 3, .tokens = pick(4) == 0 ? 200 : 0};
    r.cancel_at = pick(4) == 0 ? 1 + pick(6000) : 0;
    r.now = pick(40);
    dynbuf_init(&r.rows, 4 << 20);
    dynbuf_init(&r.pending, 1 << 20);
    dynbuf_init(&r.kept, LOOP_KEPT_MAX);
    while (r.ended == END_NONE && r.epoch < 40)
        worker();
    memcpy(run.turn.b, &seed, sizeof(seed));
    run.turn.b[15] = run.conversation.b[0] = 1;
    run.end = r.ended;
    run.used = r.used;
    set_put_run(set, &run);
    assert_int_equal(dynbuf_add(set, dynbuf_span(&r.rows)), 0);
    dynbuf_free(&r.rows);
    dynbuf_free(&r.pending);
    dynbuf_free(&r.kept);
    return run.end;
}
