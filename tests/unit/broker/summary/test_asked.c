/* A summary that is asked for, and no answer that is one: others are asked, for less, and at last the turn goes on
 * without. The way to the models is the test's. */
#include "broker/work/summary/summary.h"
#include "broker/work/wire.h"
#include "common/http/http.h"
#include "tests/unit/broker/summary/talk.h"

enum { WIDE = 200000, NARROW = 8000, LARGE = 5500, LESS = 3900 };

/* The last question, and how many there were. */
static wire_fn *hears;
static void *hears_arg;
static char body[64 * 1024];
static size_t body_n;
static unsigned sent;
static struct http_head head;

struct wire *wire_begin(struct work *w, const struct wire_ask *ask, wire_fn *fn, void *arg, const char **why)
{
    static int some;
    hears = fn;
    hears_arg = arg;
    sent++;
    body_n = ask->body.n;
    (void)snprintf(body, sizeof(body), "%.*s", SPAN_FMT(ask->body));
    return (struct wire *)&some;
}

void wire_free(struct wire **w)
{
    *w = NULL;
}

bool wire_left(const struct wire *w)
{
    return true;
}

const struct http_head *wire_head(const struct wire *w)
{
    return &head;
}

const char *wire_why(const struct wire *w)
{
    return "it broke";
}

void seen_chat(struct task *t, const struct seen_chat *k)
{
}

#define MODEL(is, window)                                                                                            \
    {                                                                                                                \
        .target = {.name = SPAN(is),                                                                                 \
                   .protocol = MODEL_ANTHROPIC,                                                                      \
                   .origin = {SPAN("p"), SPAN(is "-1"), SPAN("https://one.test/v1")}},                               \
        .context = (window), .output = 1000, .price = {                                                              \
            .input = 1000000,                                                                                        \
            .output = 1000000                                                                                        \
        }                                                                                                            \
    }
static const struct route_model models[] = {MODEL("small", NARROW), MODEL("other", NARROW), MODEL("wide", WIDE)};
static const uint8_t ids[] = {0, 1, 2, 0, 2};
enum { SMALL, OTHER, BIG };

static struct route_task tasks[] = {{.name = SPAN("code")}, {.name = SPAN("summary")}};

/* The models of code, of summary: n from that place of ids. */
static void table(size_t code, size_t ncode, size_t sum, size_t nsum)
{
    tasks[0].model = ids + code;
    tasks[0].n = ncode;
    tasks[1].model = ids + sum;
    tasks[1].n = nsum;
    work.models = (struct route_table){.model = models, .n = 3, .task = tasks, .ntasks = 2};
}

static int setup(void **state)
{
    questions = sent = 0;
    if (fix_setup(state) != 0)
        return -1;
    work = (struct work){.store = fix};
    table(SMALL, 1, SMALL, 2);
    return 0;
}

static struct span says_long(size_t n)
{
    static char text[2][8192];
    static unsigned which;
    char *to = text[which++ % 2], words[LARGE + 1];
    memset(words, 'a', n);
    words[n] = '\0';
    snprintf(to, sizeof(text[0]), "{\"of\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"%s\"}]}", words);
    return span_str(to);
}

#define EVENT(type, data) "event: " type "\ndata: " data "\n\n"

/* A text, and why it ends. */
static void answers(const char *text, const char *stop)
{
    char all[2048];
    snprintf(all, sizeof(all),
             EVENT("message_start", "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\","
                                    "\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_"
                                    "tokens\":100,\"output_tokens\":1}}}")
                 EVENT("content_block_start", "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{"
                                              "\"type\":\"text\",\"text\":\"\"}}")
                     EVENT("content_block_delta", "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
                                                  "\"text_delta\",\"text\":\"%s\"}}")
                         EVENT("content_block_stop", "{\"type\":\"content_block_stop\",\"index\":0}")
                             EVENT("message_delta", "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\"},"
                                                    "\"usage\":{\"output_tokens\":20}}")
                                 EVENT("message_stop", "{\"type\":\"message_stop\"}"),
             text, stop);
    head =
        (struct http_head){.status = 200, .nfields = 1, .field = {{SPAN("Content-Type"), SPAN("text/event-stream")}}};
    hears(hears_arg, WIRE_HEAD, SPAN_NONE);
    hears(hears_arg, WIRE_DATA, span_str(all));
}

static void refuses(unsigned status)
{
    head = (struct http_head){
        .status = status, .nfields = 1, .field = {{SPAN("Content-Type"), SPAN("application/json")}}};
    hears(hears_arg, WIRE_HEAD, SPAN_NONE);
    hears(hears_arg, WIRE_END, SPAN_NONE);
}

static void is_asked(const struct task *t, unsigned nth, const char *model, bool summary)
{
    assert_int_equal(sent, nth);
    assert_int_equal(t->agent.state, LOOP_THINKING);
    assert_non_null(strstr(body, model));
    assert_int_equal(t->agent.summary, summary);
    assert_int_equal(strstr(body, "\"tools\"") == NULL, summary);
}

/* One that was cut at its end is nobody's last word: it said how long it may be, another model is asked, and where
 * none is left, what there was to be asked has room as it is. What all of that has cost is in the turn's budget. */
static void a_summary_that_is_none_ends_no_turn(void **state)
{
    struct bstore_chatted c = has_said(says_long(LARGE), says_long(LESS));
    struct task *t = takes_it();
    is_asked(t, 1, "small-1", true);
    assert_non_null(strstr(body, "in 500 words at most"));
    answers("so far", "max_tokens");
    is_asked(t, 2, "other-1", true);
    assert_int_equal(fix_row("acme", &c.turn)->used.tokens, 120);
    answers(" ", "end_turn");
    is_asked(t, 3, "small-1", false);
    assert_int_equal(t->agent.attempts, 2);
    assert_int_equal(fix_row("acme", &c.turn)->used.tokens, 240);
    answers("the fourth", "end_turn");
    assert_int_equal(t->agent.used.tokens, 360);
    assert_int_equal(fix_row("acme", &c.turn)->used.tokens, 360);
    assert_int_equal(fix_events("acme", &c.conversation, "summary.done"), 0);
    assert_int_equal(t->step, 1);
    leaves_it(t);
}

/* It is asked for again where there is no room at all; and what has none then ends. */
static void what_has_no_room_without_one_ends(void **state)
{
    struct bstore_chatted c = has_said(says_long(LARGE), says_long(LARGE));
    struct task *t = takes_it();
    is_asked(t, 1, "small-1", true);
    answers("so far", "max_tokens");
    is_asked(t, 2, "other-1", true);
    refuses(401);
    assert_int_equal(sent, 2);
    assert_int_equal(t->agent.state, LOOP_ENDING);
    asked(t, asked_arg, 204, SPAN_NONE);
    later(later_arg);
    assert_int_equal(fix_row("acme", &c.turn)->end, END_MODEL);
    assert_true(span_starts(fix_row("acme", &c.turn)->why, SPAN("older messages are not summarised: other: ")));
}

/* Its provider counts otherwise than we do. */
static void a_summary_that_is_too_long_is_made_of_less(void **state)
{
    size_t before;
    (void)has_said(says_long(LARGE), says_long(LESS));
    struct task *t = takes_it();
    for (unsigned i = 1; i <= 3; i++) {
        is_asked(t, i, "small-1", true);
        before = body_n;
        refuses(413);
        assert_true(i == 3 || body_n < before);
    }
    is_asked(t, 4, "other-1", true); /* no less is worth one */
    refuses(413);
    is_asked(t, 5, "small-1", false);
    leaves_it(t);
}

/* A larger model has room; where there is none, it is cut for the one that had not. */
static void what_is_too_long_for_one_a_larger_one_is_asked(void **state)
{
    const struct prompt code = {.n = 0}, sum = {.task = SUMMARY_TASK};
    (void)has_said(SAYS("user", "the first"), SAYS("user", "the third"));
    table(3, 2, SMALL, 3);
    struct task *t = takes_it();
    is_asked(t, 1, "small-1", false);
    refuses(413);
    is_asked(t, 2, "wide-1", false);
    assert_int_equal(t->narrow, 0);
    refuses(413);
    is_asked(t, 3, "small-1", true);
    assert_int_equal(t->summing.upto, 1);
    leaves_it(t);
    t = takes_it();
    is_asked(t, 4, "small-1", false);
    work.down[BIG] = UINT64_MAX;
    refuses(413);
    is_asked(t, 5, "small-1", true);
    assert_int_equal(think_window(t, &code), NARROW);
    assert_int_equal(think_window(t, &sum), WIDE);
    leaves_it(t);
}

static void fails_twice(unsigned nth)
{
    answers("so far", "max_tokens");
    assert_int_equal(sent, nth);
    answers(" ", "end_turn");
}

/* That a summary was looked for and not had is no try of the model that is asked then. */
static void a_model_is_asked_again_though_no_summary_was_to_be_had(void **state)
{
    struct bstore_chatted c = has_said(SAYS("user", "the first"), SAYS("user", "the third"));
    struct task *t = takes_it();
    is_asked(t, 1, "small-1", false);
    refuses(413);
    is_asked(t, 2, "small-1", true);
    fails_twice(3);
    is_asked(t, 4, "small-1", false);
    assert_int_equal(t->agent.attempts, FAULT_TRIES_MAX);
    refuses(503);
    assert_int_equal(t->agent.state, LOOP_STOPPED);
    later(later_arg);
    assert_true(span_eq(fix_row("acme", &c.turn)->state, SPAN("queued")));
}

/* What has room without one is asked when the step may be begun once more only, and no summary before it. */
static void no_summary_is_the_last_attempt(void **state)
{
    (void)has_said(says_long(LARGE), says_long(LESS));
    struct task *t = takes_it();
    leaves_it(t);
    fix_exec("UPDATE step SET attempts=6 WHERE state='open'");
    t = takes_it();
    is_asked(t, 2, "small-1", true);
    fails_twice(3);
    is_asked(t, 4, "small-1", false);
    assert_int_equal(t->agent.attempts, LOOP_ATTEMPTS_MAX);
    leaves_it(t);
    fix_exec("UPDATE step SET attempts=7 WHERE state='open'");
    t = takes_it();
    is_asked(t, 5, "small-1", false);
    leaves_it(t);
}

/* Of the next step it is asked for again, of this one it is not. */
static void a_summary_that_failed_is_asked_for_in_the_next_step(void **state)
{
    (void)has_said(says_long(LARGE), says_long(LESS));
    struct task *t = takes_it();
    is_asked(t, 1, "small-1", true);
    t->unsummed = t->step;
    assert_false(summary_due(t));
    t->step++;
    assert_true(summary_due(t));
    t->step--;
    leaves_it(t);
}

/* What has no room any more when it is asked, and no summary either: it ends, and is not begun again and again. */
static void what_grows_behind_a_summary_that_failed_ends(void **state)
{
    (void)has_said(says_long(LARGE), says_long(LARGE));
    struct task *t = takes_it();
    is_asked(t, 1, "small-1", true);
    think_end(t);
    t->agent.summary = false;
    t->unsummed = t->step;
    think_begin(t);
    assert_int_equal(sent, 1);
    assert_int_equal(t->agent.state, LOOP_ENDING);
    leaves_it(t);
}

/* Of the turn's, which what was asked for nothing is in. */
static void no_question_is_asked_past_a_budget(void **state)
{
    (void)has_said(says_long(LARGE), says_long(LESS));
    struct task *t = takes_it();
    is_asked(t, 1, "small-1", true);
    t->agent.budget.tokens = 240;
    fails_twice(2);
    assert_int_equal(sent, 2);
    assert_int_equal(t->agent.state, LOOP_ENDING);
    leaves_it(t);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(a_summary_that_is_none_ends_no_turn),
                                       T(what_has_no_room_without_one_ends),
                                       T(a_summary_that_is_too_long_is_made_of_less),
                                       T(what_is_too_long_for_one_a_larger_one_is_asked),
                                       T(a_model_is_asked_again_though_no_summary_was_to_be_had),
                                       T(no_summary_is_the_last_attempt),
                                       T(a_summary_that_failed_is_asked_for_in_the_next_step),
                                       T(what_grows_behind_a_summary_that_failed_ends),
                                       T(no_question_is_asked_past_a_budget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
