/* What questions to models cost is metered, whatever comes of them, before anything else is asked. The way to the
 * models is ours here. */
#include "tests/unit/broker/store_fix.h"

#include "broker/store/ops.h"
#include "broker/work/prompt.h"
#include "broker/work/seen/seen.h"
#include "broker/work/servers/servers.h"
#include "broker/work/taped.h"
#include "broker/work/tools.h"
#include "broker/work/wire.h"
#include "common/http/http.h"
#include "common/net/loop.h"

static struct work work;
static struct task task;
static struct budgets budgets;
/* The last question: who hears of it, and how many there were. */
static wire_fn *hears;
static void *hears_arg;
static unsigned questions;
static size_t asked_bytes;
static bool left;
static struct http_head head;
/* What the turn was told last. */
static struct loop_event told;
static bool failed;
static struct used taped;
static void (*looks)(void *arg);
static void *looks_arg;
static uint64_t looks_ms;

/* --- instead of the rest of a process ------------------------------------------------------------ */

struct wire *wire_begin(struct work *w, const struct wire_ask *ask, wire_fn *fn, void *arg, const char **why)
{
    static int some;
    hears = fn;
    hears_arg = arg;
    asked_bytes = ask->body.n;
    questions++;
    return (struct wire *)&some;
}

void wire_free(struct wire **w)
{
    *w = NULL;
}

bool wire_left(const struct wire *w)
{
    return left;
}

const struct http_head *wire_head(const struct wire *w)
{
    return &head;
}

const char *wire_why(const struct wire *w)
{
    return "it broke";
}

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    static int some;
    looks = fn;
    looks_arg = arg;
    return (struct timer *)&some;
}

void timer_set(struct timer *t, uint64_t ms)
{
    looks_ms = ms;
}

void timer_free(struct timer **t)
{
    *t = NULL;
}

uint64_t loop_wall(const struct loop *l)
{
    return fix_now;
}

void task_tell(struct task *t, struct loop_event e)
{
    told = e;
}

bool task_passed(struct task *t, enum bstore_result r)
{
    failed |= r != BS_OK;
    return r == BS_OK;
}

void task_why(struct task *t, struct span words)
{
}

void task_cut(struct task *t, struct span stopped)
{
}

void show_delta(struct task *t, const char *type, uint64_t piece, struct span text)
{
}

void show_begin(struct dynbuf *b, struct jsonw *w)
{
}

void show(struct task *t, const char *type, struct dynbuf *body)
{
}

void seen_chat(struct task *t, const struct seen_chat *k)
{
}

void taped_spent(struct task *t, const struct used *used)
{
    taped.tokens += used->tokens;
    taped.cost_micro += used->cost_micro;
}

void taped_model(struct task *t, struct span name)
{
}

void lease_need(struct task *t, struct span credential, told_fn *fn, uint64_t arg)
{
}

struct span desk_words(struct task *t, unsigned status, struct span body)
{
    return body;
}

const struct tool *tool_of(struct span name)
{
    return NULL;
}

size_t tools_for_model(struct model_tool *out, size_t most)
{
    return 0;
}

bool servers_know(struct task *t, struct span name, struct span *kept, enum call_class *class)
{
    return false;
}

size_t servers_tools(const struct task *t, struct model_tool *out, size_t most)
{
    return 0;
}

const struct prompt *prompt_of(struct task *t)
{
    static const struct block block = {.kind = BLOCK_TEXT,
                                       .text = SPAN("What is there to be done, and what does it cost?")};
    static struct message said = {.of = MESSAGE_USER, .block = &block, .n = 1};
    static struct prompt_row row = {.bytes = 48};
    static struct prompt p = {
        .system = SPAN("You are a test."), .message = &said, .row = &row, .n = 1, .bytes = 48, .output = 32000};
    return &p;
}

/* --- a turn of acme, at its first question ---------------------------------------------------------- */

static const struct route_model models[] = {
    {.target = {.name = SPAN("first"),
                .protocol = MODEL_ANTHROPIC,
                .origin = {SPAN("p"), SPAN("m1"), SPAN("https://one.test/v1")}},
     .context = 1000000,
     .output = 1000,
     .price = {.input = 1000000, .output = 1000000}},
    {.target = {.name = SPAN("second"),
                .protocol = MODEL_ANTHROPIC,
                .origin = {SPAN("p"), SPAN("m2"), SPAN("https://two.test/v1")}},
     .context = 1000000,
     .output = 1000,
     .price = {.input = 1000000, .output = 1000000}}};
static const uint8_t both[] = {0, 1};
static const struct route_task code = {.name = SPAN("code"), .model = both, .n = 2};

static int setup(void **state)
{
    uint64_t attempts;
    if (fix_setup(state) != 0)
        return -1;
    assert_int_equal(budgets_read(SPAN("acme day 1000000 -\n"), &budgets), 0);
    fix->budgets = &budgets;
    (void)fix_chat("acme", NULL);
    work = (struct work){.store = fix, .models = {.model = models, .n = 2, .task = &code, .ntasks = 1}};
    memset(&task, 0, sizeof(task));
    task.w = &work;
    task.claim = fix_claim(1);
    task.privacy.who = WHO_ALL;
    task.step = 1;
    task.agent.attempts = FAULT_TRIES_MAX; /* where one does not answer, the other one is asked */
    snprintf(task.turn, sizeof(task.turn), "0123456789abcdef");
    fix_ok(bstore_step(fix, &task.claim, 1, SPAN("model"), &attempts));
    arena_init(&task.step_arena, WORK_STEP_BYTES);
    questions = 0;
    left = failed = false;
    taped = (struct used){.tokens = 0};
    told = (struct loop_event){.n = 0};
    return 0;
}

static int teardown(void **state)
{
    think_end(&task);
    arena_free(&task.step_arena);
    return fix_teardown(state);
}

static void ask(bool leaves)
{
    unsigned before = questions;
    left = leaves;
    task.tried = 0;
    memset(work.down, 0, sizeof(work.down));
    think_begin(&task);
    assert_int_equal(questions, before + 1);
}

static void is_answered(unsigned status, const char *type)
{
    head = (struct http_head){.status = status, .nfields = 1, .field = {{SPAN("Content-Type"), span_str(type)}}};
    hears(hears_arg, WIRE_HEAD, SPAN_NONE);
}

static uint64_t spent(void)
{
    struct budgets_stand b;
    fix_ok(bstore_budgets(fix, SPAN("acme"), &b));
    assert_int_equal(b.n, 1);
    assert_int_equal(b.row[0].spent.tokens, task.wasted.tokens); /* and so has the turn, and its recording */
    assert_int_equal(taped.tokens, task.wasted.tokens);
    return b.row[0].spent.tokens;
}

/* --- what it costs ------------------------------------------------------------------------------------ */

static void a_question_that_has_left_costs_what_was_asked(void **state)
{
    ask(false);
    think_stop(&task); /* nobody heard it */
    assert_int_equal(spent(), 0);
    ask(true);
    think_stop(&task);
    uint64_t one = spent();
    assert_int_equal(one, meter_guess(asked_bytes));
    assert_true(one > 0);
    ask(true); /* nothing came of it */
    hears(hears_arg, WIRE_FAILED, SPAN_NONE);
    assert_int_equal(questions, 4); /* the other model is asked then, and is cancelled */
    assert_int_equal(spent(), one + meter_guess(asked_bytes));
    think_stop(&task);
    assert_int_equal(spent(), one + 2 * meter_guess(asked_bytes));
    one = spent();
    ask(true); /* what was refused has no price */
    is_answered(529, "application/json");
    hears(hears_arg, WIRE_DATA, SPAN("{\"type\":\"error\"}"));
    hears(hears_arg, WIRE_END, SPAN_NONE);
    assert_int_equal(spent(), one);
    think_end(&task);
    ask(true); /* what was answered in another form has, as far as it came */
    is_answered(200, "application/json");
    hears(hears_arg, WIRE_DATA, SPAN("{\"content\":\"so be it\"}"));
    think_stop(&task);
    assert_int_equal(spent(), one + meter_guess(asked_bytes) + meter_guess(22));
}

/* More calls than a turn may have, or more text than is kept: nothing of it is planned. */
static void an_answer_that_ends_its_turn_costs_what_it_costs(void **state)
{
    static const char *const begins[] = {
        "event: message_start\ndata: "
        "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":"
        "\"assistant\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":100,\"output_tokens\":1}}}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
        "\"text\",\"text\":\"\"}}\n\n"};
    static const char *const ends[] = {
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{"
        "\"output_tokens\":20}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"};
    static char words[1000], piece[1200];
    struct bstore_usage u;
    memset(words, 'x', sizeof(words) - 1);
    snprintf(piece, sizeof(piece),
             "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
             "\"text_delta\",\"text\":\"%s\"}}\n\n",
             words);
    ask(true);
    is_answered(200, "text/event-stream");
    for (size_t i = 0; i < 2; i++)
        hears(hears_arg, WIRE_DATA, span_str(begins[i]));
    for (size_t bytes = 0; bytes <= BSTORE_BODY_MAX; bytes += sizeof(words) - 1)
        hears(hears_arg, WIRE_DATA, span_str(piece));
    for (size_t i = 0; i < 3; i++)
        hears(hears_arg, WIRE_DATA, span_str(ends[i]));
    assert_true(told.heard == HEARD_ANSWER && told.n > TURN_CALLS_MAX);
    assert_int_equal(told.used.tokens, 120);
    assert_int_equal(told.used.cost_micro, 120);
    assert_int_equal(spent(), 120);
    fix_ok(bstore_usage(fix, SPAN("acme"), &(struct bstore_usage_ask){.to = BSTORE_DAY_MAX}, &fix_arena, &u));
    assert_true(u.n == 1 && u.row[0].times == 1 && u.row[0].asked.input == 100 && u.row[0].asked.output == 20);
    assert_false(failed);
}

/* --- and where that is not counted -------------------------------------------------------------------- */

static enum bstore_result no_room(struct bstore *s, const struct claim *c, const struct used *used,
                                  const struct bstore_asked *asked)
{
    return BS_FAIL;
}

static void what_is_not_counted_is_not_asked_past(void **state)
{
    const struct bstore_ops *ops = fix->ops;
    struct bstore_ops full = *ops;
    full.spent = no_room;
    fix->ops = &full;
    ask(true);
    hears(hears_arg, WIRE_FAILED, SPAN_NONE);
    assert_true(failed && questions == 1); /* the turn is given back */
    think_end(&task);
    failed = false;
    fix->budgets = NULL; /* nobody misses it in a budget */
    ask(true);
    hears(hears_arg, WIRE_FAILED, SPAN_NONE);
    assert_true(!failed && questions == 3);
    fix->ops = ops;
}

/* What comes after a question, and is none, may take its time. */
static void what_is_not_asked_any_more_keeps_nobody_waiting(void **state)
{
    uint64_t attempts;
    (void)fix_chat("acme", NULL);
    struct claim other = fix_claim(2);
    const struct used all = {.tokens = 999000};
    fix_ok(bstore_step(fix, &other, 1, SPAN("model"), &attempts));
    task.found.live = SPAN("first"); /* and no other one is asked */
    ask(true);
    assert_int_equal(bstore_ask(fix, &other, 1, SPAN("model"), &all), BS_FULL);
    think_stop(&task);
    fix_ok(bstore_ask(fix, &other, 1, SPAN("model"), &all));
    fix_ok(bstore_ask(fix, &other, 1, SPAN("model"), NULL));
    ask(true);
    is_answered(400, "application/json");
    assert_int_equal(bstore_ask(fix, &other, 1, SPAN("model"), &all), BS_FULL);
    hears(hears_arg, WIRE_END, SPAN_NONE);
    assert_int_equal(told.heard, HEARD_NO_ANSWER);
    fix_ok(bstore_ask(fix, &other, 1, SPAN("model"), &all));
    fix_ok(bstore_ask(fix, &other, 1, SPAN("model"), NULL));
    task.found.live = SPAN_NONE;
    ask(true);
    task.tried = UINT64_MAX; /* another one was there when it was asked, and is not now */
    is_answered(500, "application/json");
    hears(hears_arg, WIRE_END, SPAN_NONE);
    assert_int_equal(told.heard, HEARD_NO_ANSWER);
    fix_ok(bstore_ask(fix, &other, 1, SPAN("model"), &all));
}

static void who_waits_looks_later_each_time(void **state)
{
    static const uint64_t after[] = {500, 1000, 2000, 4000, 4000};
    uint64_t attempts;
    (void)fix_chat("acme", NULL);
    struct claim other = fix_claim(2);
    fix_ok(bstore_step(fix, &other, 1, SPAN("model"), &attempts));
    fix_ok(bstore_ask(fix, &other, 1, SPAN("model"), &(struct used){.tokens = 1000000}));
    think_begin(&task);
    for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
        assert_int_equal(looks_ms, after[i]);
        looks_ms = 0;
        looks(looks_arg);
    }
    assert_int_equal(questions, 0);
    fix_ok(bstore_finish(fix, &other, END_CANCELLED, SPAN_NONE));
    looks(looks_arg);
    assert_int_equal(questions, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_question_that_has_left_costs_what_was_asked), T(an_answer_that_ends_its_turn_costs_what_it_costs),
        T(what_is_not_counted_is_not_asked_past), T(what_is_not_asked_any_more_keeps_nobody_waiting),
        T(who_waits_looks_later_each_time)};
    return FIX_MAIN(tests);
}
