/* Recorded runs, gone through again. */
#include <stdlib.h>

#include "broker/replay/report.h"
#include "common/file.h"
#include "common/json/json.h"
#include "tests/kit.h"
#include "tests/unit/broker/recorder.h"

static struct dynbuf text;
static struct arena arena;

static int setup(void **state)
{
    dynbuf_init(&text, 64 << 20);
    arena_init(&arena, SET_ARENA_MAX);
    assert_int_equal(dynbuf_add(&text, SPAN(SET_HEAD "\n")), 0);
    return 0;
}

static int teardown(void **state)
{
    dynbuf_free(&text);
    arena_free(&arena);
    return 0;
}

static struct replay_set read_it(void)
{
    struct replay_set set;
    struct err e = {{0}};
    if (set_read(dynbuf_span(&text), &arena, &set, &e) != 0)
        fail_msg("%s", e.text);
    return set;
}

/* Each of so many runs is as it was, and the machine ends it. */
static void as_recorded(bool lossy, uint64_t runs)
{
    struct again out;
    unsigned ends[TURN_ENDS] = {0}, workers = 0;
    for (uint64_t seed = 1; seed <= runs; seed++)
        ends[recorder_run(&text, seed, lossy)]++;
    struct replay_set set = read_it();
    assert_int_equal(set.n, runs);
    for (size_t i = 0; i < set.n; i++) {
        again_run(&set.run[i], NULL, &arena, &out);
        const struct again_difference *d = &out.differs;
        if (d->is)
            fail_msg("seed %zu: step %d: %.*s: then %.*s; now %.*s", i + 1, (int)d->step, SPAN_FMT(d->heard),
                     SPAN_FMT(d->then), SPAN_FMT(d->now));
        assert_int_equal(out.state, AGAIN_ENDED);
        assert_int_equal(out.end, set.run[i].end);
        assert_true(out.used.tokens == set.run[i].used.tokens && out.used.cost_micro == set.run[i].used.cost_micro);
        workers += out.workers > 1;
    }
    assert_true(ends[END_COMPLETED] > runs / 10 && ends[END_CANCELLED] > 0 && ends[END_MODEL] > 0);
    assert_true(ends[END_SAME_CALLS] + ends[END_STEPS] + ends[END_TOKENS] + ends[END_CUT] + ends[END_BAD_MODEL] > 0);
    assert_true(workers > runs / 10);
}

static void what_was_recorded_is_what_comes(void **state)
{
    as_recorded(false, 200);
}

static void workers_that_were_lost_left_no_difference(void **state)
{
    as_recorded(true, 200);
}

/* --- differences ------------------------------------------------------------------------------------ */

static void replace(const char *from, const char *to)
{
    struct dynbuf b;
    size_t at = span_find(dynbuf_span(&text), span_str(from));
    assert_true(at < text.n);
    dynbuf_init(&b, 64 << 20);
    (void)dynbuf_add(&b, span_first(dynbuf_span(&text), at));
    (void)dynbuf_add(&b, span_str(to));
    (void)dynbuf_add(&b, span_from(dynbuf_span(&text), at + strlen(from)));
    dynbuf_free(&text);
    text = b;
    assert_true(dynbuf_ok(&text));
}

static const char one[] = SET_HEAD
    "\n"
    "{\"run\":{\"turn\":\"04000000000000000000000004\",\"conversation\":\"04000000000000000000000008\",\"end\":"
    "\"completed\","
    "\"cut\":false,\"steps\":2,\"tokens\":30,\"cost_micro\":9,\"budget\":{\"steps\":9,\"tokens\":0,\"cost_micro\":0,"
    "\"wall_ms\":0,\"same_calls\":5}}}\n"
    "{\"heard\":\"begin\",\"t\":3,\"epoch\":1,\"settled\":0,\"attempts\":0,\"steps\":0,\"tokens\":0,\"cost_micro\":0,"
    "\"cancelled\":false,\"cut\":false,\"ends\":\"none\",\"planned\":false,\"did\":\"begin 1\"}\n"
    "{\"heard\":\"begun\",\"t\":5,\"attempts\":1,\"did\":\"think\"}\n"
    "{\"heard\":\"answer\",\"t\":105,\"model\":\"<b>one\",\"tokens\":20,\"cost_micro\":6,\"cut\":false,\"n\":2,"
    "\"same\":1,"
    "\"calls\":[{\"class\":\"read\",\"tool\":\"list_files\"},{\"class\":\"unsafe\",\"tool\":\"run_command\"}],"
    "\"did\":\"plan 2\"}\n"
    "{\"heard\":\"planned\",\"t\":107,\"did\":\"run 0\"}\n"
    "{\"heard\":\"done\",\"t\":157,\"end\":\"done\",\"call\":0,\"did\":\"settle 0 done\"}\n"
    "{\"heard\":\"settled\",\"t\":158,\"call\":0,\"did\":\"run 1\"}\n"
    "{\"heard\":\"done\",\"t\":458,\"end\":\"error\",\"call\":1,\"did\":\"settle 1 error\"}\n"
    "{\"heard\":\"settled\",\"t\":459,\"call\":1,\"did\":\"checkpoint\"}\n"
    "{\"heard\":\"step\",\"t\":461,\"did\":\"begin 2\"}\n"
    "{\"heard\":\"begun\",\"t\":462,\"attempts\":1,\"did\":\"think\"}\n"
    "{\"heard\":\"answer\",\"t\":562,\"model\":\"<b>one\",\"tokens\":10,\"cost_micro\":3,\"cut\":false,\"n\":0,"
    "\"same\":0,"
    "\"calls\":[],\"did\":\"plan 0\"}\n"
    "{\"heard\":\"planned\",\"t\":563,\"did\":\"checkpoint\"}\n"
    "{\"heard\":\"step\",\"t\":565,\"did\":\"finish completed\"}\n";

static struct again again_one(void)
{
    struct again out;
    struct replay_set set = read_it();
    assert_int_equal(set.n, 1);
    again_run(&set.run[0], NULL, &arena, &out);
    return out;
}

static void begin_with_one(void)
{
    dynbuf_reset(&text);
    assert_int_equal(dynbuf_add(&text, span_str(one)), 0);
}

static void times_and_calls_are_counted(void **state)
{
    begin_with_one();
    struct again out = again_one();
    assert_false(out.differs.is);
    assert_int_equal(out.state, AGAIN_ENDED);
    assert_int_equal(out.end, END_COMPLETED);
    assert_int_equal(out.ms, 562);
    assert_int_equal(out.model_ms, 200);
    assert_int_equal(out.tool_ms, 350);
    assert_int_equal(out.calls, 2);
    assert_int_equal(out.ends[CALL_DONE], 1);
    assert_int_equal(out.ends[CALL_ERROR], 1);
    assert_int_equal(out.workers, 1);
}

#define ANSWER(t, model, used, same)                                                                                 \
    "{\"heard\":\"answer\",\"t\":" t ",\"model\":\"" model "\"," used ",\"cut\":false,\"n\":0,\"same\":" same        \
    ",\"calls\":[],\"did\":\"plan 0\"}\n"
#define BEHIND                                                                                                       \
    "{\"heard\":\"step\",\"t\":512,\"did\":\"begin 3\"}\n"                                                           \
    "{\"heard\":\"begun\",\"t\":513,\"attempts\":1,\"did\":\"think\"}\n" ANSWER(                                     \
        "562", "<b>one", "\"tokens\":10,\"cost_micro\":3", "0")

/* Two steps and a summary between them: of one worker, or written down by one and settled by another. */
static void begin_with_a_summary(bool lost)
{
    static const char *const from = "{\"heard\":\"step\",\"t\":461,\"did\":\"begin 2\"}\n"
                                    "{\"heard\":\"begun\",\"t\":462,\"attempts\":1,\"did\":\"think\"}\n" ANSWER(
                                        "562", "<b>one", "\"tokens\":10,\"cost_micro\":3", "0");
    static const char *const one_worker =
        "{\"heard\":\"step\",\"t\":461,\"did\":\"begin 2\"}\n"
        "{\"heard\":\"begun\",\"t\":462,\"attempts\":1,\"did\":\"think\"}\n"
        "{\"heard\":\"spent\",\"t\":463,\"tokens\":2,\"cost_micro\":1}\n" /* it is in the summary's price */
        "{\"heard\":\"long\",\"t\":463,\"did\":\"begin 2\"}\n"
        "{\"heard\":\"begun\",\"t\":464,\"attempts\":2,\"summary\":true,\"did\":\"think\"}\n" ANSWER(
            "500", "two", "\"tokens\":7,\"cost_micro\":1", "1") "{\"heard\":\"planned\",\"t\":501,\"did\":"
                                                                "\"checkpoint\"}\n" BEHIND;
    static const char *const two_workers =
        "{\"heard\":\"begin\",\"t\":510,\"epoch\":2,\"settled\":1,\"attempts\":2,\"steps\":1,\"tokens\":27,"
        "\"cost_micro\":7,\"cancelled\":false,\"cut\":false,\"ends\":\"none\",\"planned\":true,\"summary\":true,"
        "\"n\":0,\"same\":1,\"calls\":[],\"did\":\"revoke\"}\n"
        "{\"heard\":\"revoked\",\"t\":511,\"did\":\"checkpoint\"}\n" BEHIND;
    begin_with_one();
    replace(from, lost ? two_workers : one_worker);
    replace("\"steps\":2,\"tokens\":30,\"cost_micro\":9", "\"steps\":3,\"tokens\":37,\"cost_micro\":10");
}

/* A summary is no end of the turn, in whosever hands it is settled; and whatever fault is put in, it stays one. */
static void a_summary_comes_as_it_was_recorded(void **state)
{
    static const enum replay_fault faults[] = {REPLAY_MODEL, REPLAY_TOOL, REPLAY_WORKER};
    struct again out, with;
    for (unsigned lost = 0; lost < 2; lost++) {
        begin_with_a_summary(lost);
        out = again_one();
        if (out.differs.is)
            fail_msg("%.*s: then %.*s; now %.*s", SPAN_FMT(out.differs.heard), SPAN_FMT(out.differs.then),
                     SPAN_FMT(out.differs.now));
        assert_true(out.state == AGAIN_ENDED && out.end == END_COMPLETED && out.used.steps == 3);
        assert_int_equal(out.workers, lost + 1);
        replace("\"summary\":true", "\"summary\":false");
        assert_true(again_one().differs.is);
    }
    begin_with_a_summary(false);
    struct replay_set set = read_it();
    again_run(&set.run[0], NULL, &arena, &out);
    for (uint64_t seed = 1; seed <= 40; seed++)
        for (size_t i = 0; i < 3; i++) {
            const struct again_inject inject = {faults[i], seed, &out};
            again_run(&set.run[0], &inject, &arena, &with);
            assert_true(with.injected && with.state == AGAIN_ENDED);
            assert_true(with.end == END_COMPLETED && with.used.steps == 3);
        }
}

/* What it has wasted by then is recorded with it. */
static void a_step_that_is_not_begun_once_more_for_its_budget_is_none_again(void **state)
{
    static const char ends[] =
        "{\"heard\":\"spent\",\"t\":463,\"tokens\":2,\"cost_micro\":1}\n"
        "{\"heard\":\"long\",\"t\":463,\"tokens\":2,\"cost_micro\":1,\"did\":\"finish tokens\"}\n";
    begin_with_one();
    replace("\"steps\":9,\"tokens\":0", "\"steps\":9,\"tokens\":22");
    replace("\"completed\"", "\"tokens\"");
    replace("\"steps\":2,\"tokens\":30,\"cost_micro\":9", "\"steps\":1,\"tokens\":22,\"cost_micro\":7");
    text.n = span_find(dynbuf_span(&text), SPAN("{\"heard\":\"answer\",\"t\":562"));
    assert_int_equal(dynbuf_add(&text, span_str(ends)), 0);
    struct again out = again_one();
    if (out.differs.is)
        fail_msg("%.*s: then %.*s; now %.*s", SPAN_FMT(out.differs.heard), SPAN_FMT(out.differs.then),
                 SPAN_FMT(out.differs.now));
    assert_int_equal(out.end, END_TOKENS);
}

/* A machine that does otherwise is the same to a replay as a recording of another machine. */
static void what_the_machine_does_otherwise_is_told(void **state)
{
    static const struct {
        const char *from, *to, *heard, *then, *now;
    } cases[] = {
        {"\"did\":\"run 0\"", "\"did\":\"run 0, run 1\"", "planned", "run 0, run 1", "run 0"},
        {"\"did\":\"settle 1 error\"", "\"did\":\"ask 1\"", "done", "ask 1", "settle 1 error"},
        {"\"did\":\"begin 2\"", "\"did\":\"finish steps\"", "step", "finish steps", "begin 2"},
        {"\"did\":\"finish completed\"", "\"did\":\"begin 3\"", "step", "begin 3", "finish completed"},
        {"\"did\":\"begin 1\"", "\"did\":\"revoke\"", "begin", "revoke", "begin 1"},
        {"\"class\":\"unsafe\"", "\"class\":\"read\"", "planned", "run 0", "run 0, run 1"},
        {"\"steps\":9", "\"steps\":1", "step", "begin 2", "finish steps"},
        {"\"end\":\"completed\"", "\"end\":\"cancelled\"", "ended", "cancelled, 2 steps, 30 tokens, 9 millionths",
         "completed, 2 steps, 30 tokens, 9 millionths"},
        {"\"tokens\":30", "\"tokens\":31", "ended", "completed, 2 steps, 31 tokens, 9 millionths",
         "completed, 2 steps, 30 tokens, 9 millionths"},
        {"\"heard\":\"planned\",\"t\":107", "\"heard\":\"tick\",\"t\":107", "tick", "run 0", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin_with_one();
        replace(cases[i].from, cases[i].to);
        struct again out = again_one();
        assert_true(out.differs.is);
        assert_true(span_eq(out.differs.heard, span_str(cases[i].heard)));
        assert_true(span_eq(out.differs.then, span_str(cases[i].then)));
        assert_true(cases[i].now[0] == '\0' || span_eq(out.differs.now, span_str(cases[i].now)));
    }
}

/* --- reports ------------------------------------------------------------------------------------------ */

enum { RUNS = 30, SEEDS = 5 };

static void report(struct dynbuf out[3])
{
    static const enum replay_fault faults[] = {REPLAY_MODEL, REPLAY_TOOL, REPLAY_WORKER};
    static struct score score;
    struct replay_set set = read_it();
    assert_int_equal(score_set(&set, faults, 3, SEEDS, &arena, &score), 0);
    for (int i = 0; i < 3; i++)
        dynbuf_init(&out[i], REPORT_MAX);
    report_text(&score, &out[0]);
    report_json(&score, &out[1]);
    report_page(&score, &out[2]);
    for (int i = 0; i < 3; i++)
        assert_true(dynbuf_ok(&out[i]));
}

static void write_anew(const char *folder, const char *name, struct span s)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(s.p, 1, s.n, f), s.n);
    assert_int_equal(fclose(f), 0);
}

static void the_same_set_gives_the_same_bytes(void **state)
{
    struct dynbuf a[3], b[3];
    for (uint64_t seed = 1; seed <= RUNS; seed++)
        (void)recorder_run(&text, seed, seed % 3 == 0);
    report(a);
    arena_free(&arena);
    arena_init(&arena, SET_ARENA_MAX);
    report(b);
    for (int i = 0; i < 3; i++) {
        assert_true(span_eq(dynbuf_span(&a[i]), dynbuf_span(&b[i])));
        dynbuf_free(&a[i]);
        dynbuf_free(&b[i]);
    }
}

/* --- as it was written down once ------------------------------------------------------------------------ */

enum { GOLDEN_RUNS = 32 };

static void golden(const char *name, struct dynbuf *out)
{
    char path[512];
    const char *top = getenv("srcdir");
    (void)snprintf(path, sizeof(path), "%s/tests/unit/broker/golden/%s", top != NULL ? top : ".", name);
    dynbuf_init(out, 64 << 20);
    if (file_read(path, out) != 0)
        fail_msg("%s cannot be read", path);
}

/* Runs that an earlier version recorded, and what it said of them: who changes what the loop does sees it here. Where
 * that was meant, BROKER_GOLDEN=DIR writes them anew. */
static void runs_of_earlier_are_as_they_were(void **state)
{
    const char *anew = getenv("BROKER_GOLDEN");
    struct dynbuf said[3], was;
    golden("runs.set", &was);
    dynbuf_reset(&text);
    if (anew == NULL) {
        assert_int_equal(dynbuf_add(&text, dynbuf_span(&was)), 0);
    } else {
        assert_int_equal(dynbuf_add(&text, SPAN(SET_HEAD "\n")), 0);
        for (uint64_t seed = 1; seed <= GOLDEN_RUNS; seed++)
            (void)recorder_run(&text, seed, seed % 4 == 0);
    }
    dynbuf_free(&was);
    report(said);
    if (anew != NULL) {
        write_anew(anew, "runs.set", dynbuf_span(&text));
        write_anew(anew, "report.txt", dynbuf_span(&said[0]));
    }
    golden("report.txt", &was);
    if (!span_eq(dynbuf_span(&was), dynbuf_span(&said[0])))
        fail_msg("the report is another one than it was:\n%.*s", SPAN_FMT(dynbuf_span(&said[0])));
    dynbuf_free(&was);
    for (int i = 0; i < 3; i++)
        dynbuf_free(&said[i]);
}

static void no_fault_repeats_or_hides_a_call(void **state)
{
    static const enum replay_fault faults[] = {REPLAY_MODEL, REPLAY_TOOL, REPLAY_WORKER};
    static struct score s;
    for (uint64_t seed = 1; seed <= 60; seed++)
        (void)recorder_run(&text, seed, false);
    struct replay_set set = read_it();
    assert_int_equal(score_set(&set, faults, 3, 10, &arena, &s), 0);
    assert_int_equal(s.faults, 3);
    for (size_t i = 0; i < s.faults; i++) {
        const struct score_fault *f = &s.fault[i];
        assert_true(f->placed > f->tried / 3);
        assert_int_equal(f->repeated, 0);
        assert_int_equal(f->hidden, 0);
        assert_true(f->recovered > f->placed / 2);
    }
}

static void a_page_is_of_words_alone(void **state)
{
    struct dynbuf out[3];
    begin_with_one();
    report(out);
    struct span page = dynbuf_span(&out[2]);
    assert_true(span_find(page, SPAN("&lt;b&gt;one")) < page.n);
    assert_int_equal(span_find(page, SPAN("<b>")), page.n);
    assert_int_equal(span_find(page, SPAN("<script")), page.n);
    assert_int_equal(span_find(page, SPAN("http://")), page.n);
    assert_int_equal(span_find(page, SPAN("https://")), page.n);
    assert_true(span_find(page, SPAN("default-src 'none'")) < page.n);
    for (int i = 0; i < 3; i++)
        dynbuf_free(&out[i]);
}

/* --- live --------------------------------------------------------------------------------------------- */

static void a_live_plan_is_each_turn_by_each_model_as_often_as_was_said(void **state)
{
    static const struct span models[] = {
        {(const uint8_t *)"a", 1}, {(const uint8_t *)"b", 1}, {(const uint8_t *)"a", 1}};
    struct live l;
    struct err e;
    for (uint64_t seed = 1; seed <= 3; seed++)
        (void)recorder_run(&text, seed, false);
    struct replay_set set = read_it();
    assert_int_equal(live_plan(&l, &set, models, 2, 4, &arena, &e), 0);
    assert_int_equal(l.runs, 3 * 2 * 4);
    for (size_t i = 0; i < l.runs; i++) /* a repetition of all comes before the next */
        assert_true(l.run[i].seed == i / 6 + 1 && l.run[i].turn == i % 6 / 2 && l.run[i].model == i % 2 &&
                    l.run[i].state == LIVE_NOT);
    assert_int_equal(live_plan(&l, &set, models, 3, 1, &arena, &e), -1);
    assert_non_null(strstr(e.text, "twice"));
    assert_int_equal(live_plan(&l, &set, models, 0, 1, &arena, &e), -1);
    assert_int_equal(live_plan(&l, &set, models, 1, LIVE_SEEDS_MAX + 1, &arena, &e), -1);
    set.n = LIVE_RUNS_MAX;
    assert_int_equal(live_plan(&l, &set, models, 2, 1, &arena, &e), -1);
}

/* Whatever is spent and promised: all together it is never more than was said. */
static void no_run_is_promised_what_is_not_there(void **state)
{
    assert_int_equal(live_share(100, 0, 0, 4), 25);
    assert_int_equal(live_share(100, 10, 25, 3), 21);
    assert_int_equal(live_share(100, 60, 40, 1), 0);
    assert_int_equal(live_share(100, 90, 40, 1), 0);
    assert_int_equal(live_share(100, UINT64_MAX, 2, 1), 0);
    assert_int_equal(live_share(100, 0, 0, 0), 0);
    uint64_t spent = 0;
    for (uint64_t left = 7; left > 0; left--) {
        uint64_t share = live_share(100, spent, 0, left);
        spent += left % 2 == 0 ? share / 2 : share; /* not all of them take what they may */
    }
    assert_true(spent <= 100 && spent > 90);
}

/* Seven recorded runs that are made up stand for what two models made of two turns; of one nothing was recorded, and
 * another one was not by its model. What completes and what it costs is counted of all. */
static void what_models_made_of_it_is_scored_beside_what_was_recorded(void **state)
{
    static const struct span models[] = {{(const uint8_t *)"<b>one", 6}, {(const uint8_t *)"two", 3}};
    static struct score now, then;
    struct replay_set set, made, was;
    struct live l;
    struct err e;
    struct dynbuf out[3];
    for (uint64_t seed = 1; seed <= 2; seed++)
        (void)recorder_run(&text, seed, false);
    set = read_it();
    dynbuf_reset(&text);
    assert_int_equal(dynbuf_add(&text, SPAN(SET_HEAD "\n")), 0);
    for (uint64_t seed = 11; seed <= 17; seed++)
        (void)recorder_run(&text, seed, false);
    made = read_it();
    assert_int_equal(live_plan(&l, &set, models, 2, 2, &arena, &e), 0);
    for (size_t i = 0; i < 6; i++) /* made in another order than they were planned */
        l.run[i].state = LIVE_RAN, l.run[i].made = 5 - i, l.run[i].undecided = i == 3;
    l.run[6].state = LIVE_LOST, l.run[6].end = END_COMPLETED, l.run[6].cost_micro = 1000000;
    l.run[7].state = LIVE_RAN, l.run[7].made = 6, l.run[7].end = END_COMPLETED;
    for (size_t i = 0; i < 7; i++)
        for (size_t k = 0; k < made.run[i].rows; k++)
            made.run[i].row[k].row.model = i == 6 ? SPAN("three") : models[(5 - i) % 2];
    assert_int_equal(live_then(&l, made.n, &arena, &was), 0);
    for (size_t i = 0; i < 6; i++)
        assert_true(id_eq(&was.run[l.run[i].made].turn, &set.run[l.run[i].turn].turn));
    assert_int_equal(score_set(&was, NULL, 0, 0, &arena, &then), 0);
    assert_int_equal(score_set(&made, NULL, 0, 0, &arena, &now), 0);
    for (size_t i = 0; i < 6; i++)
        l.run[i].end = now.run[5 - i].end, l.run[i].cost_micro = now.run[5 - i].used.cost_micro;
    assert_int_equal(live_score(&l, &now, &arena), 0);
    now.then = &then;
    assert_true(l.ran == 6 && l.lost == 2 && l.not_begun == 0 && l.undecided == 1);
    assert_non_null(strstr(l.run[7].why, "another model"));
    uint64_t well[2] = {1, 0}, cost[2] = {1000000, 0};
    for (size_t i = 0; i < 6; i++) {
        well[i % 2] += now.run[5 - i].end == END_COMPLETED;
        cost[i % 2] += now.run[5 - i].used.cost_micro;
    }
    for (size_t m = 0; m < 2; m++) {
        assert_true(l.model[m].part.runs == 4 && l.model[m].part.completed == well[m]);
        assert_int_equal(l.model[m].part.cost_micro, cost[m]);
        assert_true(l.model[m].completed_each.least <= l.model[m].completed_each.most);
        assert_true(l.model[m].cost_each_micro.least * 4 <= cost[m] &&
                    cost[m] <= l.model[m].cost_each_micro.most * 4);
    }
    assert_true(l.model[0].lost == 1 && l.model[1].lost == 1);
    assert_true(l.cell[0].ran == 2 && l.cell[1].ran == 2 && l.cell[2].ran == 2 && l.cell[3].ran == 2);
    for (int i = 0; i < 3; i++)
        dynbuf_init(&out[i], REPORT_MAX);
    report_text(&now, &out[0]);
    report_json(&now, &out[1]);
    report_page(&now, &out[2]);
    for (int i = 0; i < 3; i++)
        assert_true(dynbuf_ok(&out[i]));
    struct span page = dynbuf_span(&out[2]), words = dynbuf_span(&out[0]);
    assert_true(span_find(page, SPAN("&lt;b&gt;one")) < page.n && span_find(page, SPAN("<b>")) == page.n);
    assert_true(span_find(words, SPAN("6 ran, 2 lost, 0 not begun; 1 requests")) < words.n);
    assert_true(json_get(json_parse(dynbuf_span(&out[1]), &arena), SPAN("live")) != NULL);
    for (int i = 0; i < 3; i++)
        dynbuf_free(&out[i]);
}

/* --- what is no set ----------------------------------------------------------------------------------- */

static void what_is_no_set_is_refused(void **state)
{
    static const struct {
        const char *from, *to, *why;
    } cases[] = {
        {"\"version\":1", "\"version\":2", "line 1: this is no set"},
        {"{\"run\":{\"turn\":\"0", "{\"run\":{\"turn\":\"?", "line 2: the line of a run"},
        {"\"heard\":\"begin\"", "\"heard\":\"sung\"", "line 3: `heard`"},
        {"\"class\":\"unsafe\"", "\"class\":\"bold\"", "line 5: `class`"},
        {"\"n\":2", "\"n\":3", "line 5: `calls`"},
        {"\"t\":107", "\"t\":-1", "line 6: `t`"},
        {"\"call\":0,\"did\":\"settle", "\"call\":64,\"did\":\"settle", "line 7: `call`"},
        {"\"end\":\"error\"", "\"end\":\"bad\"", "line 9: `end`"},
        {"{\"heard\":\"planned\",\"t\":107,", "{\"heard\":\"planned\",", "line 6: `t`"},
        {"\"t\":565", "\"t\":5", "goes back in time"},
        {"finish completed\"}\n", "finish completed\"}", "cut off"},
    };
    struct replay_set set;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = {{0}};
        begin_with_one();
        replace(cases[i].from, cases[i].to);
        assert_int_equal(set_read(dynbuf_span(&text), &arena, &set, &e), -1);
        assert_non_null(strstr(e.text, cases[i].why));
    }
    begin_with_one();
    assert_int_equal(dynbuf_add(&text, span_from(span_str(one), sizeof(SET_HEAD))), 0);
    struct err e = {{0}};
    assert_int_equal(set_read(dynbuf_span(&text), &arena, &set, &e), -1);
    assert_non_null(strstr(e.text, "twice"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(what_was_recorded_is_what_comes),
                                       T(workers_that_were_lost_left_no_difference),
                                       T(times_and_calls_are_counted),
                                       T(a_summary_comes_as_it_was_recorded),
                                       T(a_step_that_is_not_begun_once_more_for_its_budget_is_none_again),
                                       T(what_the_machine_does_otherwise_is_told),
                                       T(the_same_set_gives_the_same_bytes),
                                       T(runs_of_earlier_are_as_they_were),
                                       T(no_fault_repeats_or_hides_a_call),
                                       T(a_page_is_of_words_alone),
                                       T(a_live_plan_is_each_turn_by_each_model_as_often_as_was_said),
                                       T(no_run_is_promised_what_is_not_there),
                                       T(what_models_made_of_it_is_scored_beside_what_was_recorded),
                                       T(what_is_no_set_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
