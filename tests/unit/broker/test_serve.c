/* Callers of the broker: what is asked is taken as it was meant or refused in words, streams have no gap and do not
 * outlive their keys, and nobody keeps the others out. The desk here is ours, and the clock and the pulse of streams
 * are set. */
#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/errand/broker_key.h"
#include "proxy/msgs.h"
#include "tests/unit/broker/store_fix.h"

static uint64_t clock_ms;
static struct timer *pulses;
static unsigned pulses_set;

static uint64_t the_clock(const struct loop *l)
{
    (void)l;
    return clock_ms;
}

/* The pulse comes when the test has it come. */
static void set_timer(struct timer *t, uint64_t ms)
{
    if (t == pulses)
        pulses_set++;
    else
        timer_set(t, ms);
}

#define loop_now  the_clock
#define timer_set set_timer
#include "broker/serve/door.c"
#include "broker/serve/watch.c"
#undef loop_now
#undef timer_set

enum { WAIT_MS = 60 * 1000, HEARD_MAX = 4 * 1024 * 1024 };

/* Who asks: at the other end of a connection. */
struct asker {
    int fd;
    struct watch *watch;
    struct dynbuf heard;
    bool ended;
    const char *wants;
};

static struct loop *loop;
static struct serve serve;
static struct door door, own_door;
static struct chan *desk;
static bool desk_is_silent;
static uint64_t waits_said;    /* turns that nobody runs, as the desk was told last */
static struct digest known[2]; /* keys, of acme and of other */
static struct timer *impatience;
static const struct asker *waiting;

/* --- the desk --------------------------------------------------------------------------------------- */

static void on_who(void *arg, struct chan *c, struct frame *f)
{
    static const char *const tenants[] = {"acme", "other"};
    struct msg_in m = msg_in(f->payload);
    struct digest key;
    size_t i = 0;
    if (f->type == M_BROKER_WAITS) {
        waits_said = msg_get_u64(&m);
        (void)msg_get_u64(&m);
        assert_int_equal(msg_end(&m), 0);
        return;
    }
    msg_get_digest(&m, &key);
    assert_int_equal(msg_end(&m), 0);
    if (desk_is_silent)
        return;
    while (i < 2 && memcmp(key.b, known[i].b, DIGEST_BYTES) != 0)
        i++;
    struct dynbuf *b = chan_begin(c, M_BROKER_WHO, f->id);
    assert_non_null(b);
    msg_put_u8(b, i < 2 ? DOCK_OPEN : DOCK_UNKNOWN);
    msg_put_span(b, i < 2 ? SPAN("reader") : SPAN_NONE);
    msg_put_span(b, i < 2 ? span_str(tenants[i]) : SPAN_NONE);
    msg_put_span(b, i < 2 ? SPAN("{\"scopes\":[\"chat\",\"read\"]}") : SPAN_NONE);
    assert_int_equal(chan_commit(c), 0);
}

static void on_answer(void *arg, struct chan *c, struct frame *f)
{
    serve_frame(&serve, f);
}

static void no_end(void *arg, struct chan *c)
{
    fail_msg("a channel ended");
}

/* --- who asks --------------------------------------------------------------------------------------- */

static void too_long(void *arg)
{
    fail_msg("what was waited for did not come");
}

static bool heard(const struct asker *a, const char *text)
{
    return span_find(dynbuf_span(&a->heard), span_str(text)) < a->heard.n;
}

static void on_ready(void *arg, unsigned ready)
{
    struct asker *a = arg;
    char part[64 * 1024];
    ssize_t n = read(a->fd, part, sizeof(part));
    if (n > 0)
        assert_int_equal(dynbuf_add(&a->heard, span_of(part, (size_t)n)), 0);
    else if (n == 0 || errno != EAGAIN) {
        a->ended = true;
        watch_set(a->watch, 0);
    }
    if (a == waiting && (a->ended || (a->wants != NULL && heard(a, a->wants))))
        loop_stop(loop);
}

/* Until it has heard this; NULL: until it is left. */
static void until(struct asker *a, const char *text)
{
    a->wants = text;
    if (text != NULL ? heard(a, text) : a->ended)
        return;
    waiting = a;
    timer_set(impatience, WAIT_MS);
    assert_int_equal(loop_run(loop), 0);
    waiting = NULL;
    timer_clear(impatience);
    if (text != NULL && !heard(a, text))
        fail_msg("not heard: %s", text);
}

static struct asker *asker_at(int fd)
{
    struct asker *a = calloc(1, sizeof(*a));
    assert_non_null(a);
    a->fd = fd;
    dynbuf_init(&a->heard, HEARD_MAX);
    assert_non_null(a->watch = watch_new(loop, a->fd, WATCH_READ, on_ready, a));
    return a;
}

static struct asker *knocks(struct door *at)
{
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    caller_new(at, fd[1]);
    return asker_at(fd[0]);
}

static void leaves(struct asker *a)
{
    watch_free(&a->watch);
    close(a->fd);
    dynbuf_free(&a->heard);
    free(a);
}

static void asks(struct asker *a, const char *key, const char *what, const char *body)
{
    char text[4096];
    int n = snprintf(text, sizeof(text),
                     "%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %zu\r\n\r\n%s", what, key,
                     strlen(body), body);
    assert_true(n > 0 && (size_t)n < sizeof(text));
    dynbuf_reset(&a->heard);
    assert_int_equal(write(a->fd, text, (size_t)n), n);
}

static struct asker *opens(struct asker *a, const char *key, const struct id *conversation)
{
    char id[ID_TEXT + 1], what[64];
    id_text(conversation, id);
    snprintf(what, sizeof(what), "GET /stream/%s", id);
    asks(a, key, what, "");
    until(a, "retry: 1000");
    return a;
}

static struct asker *reads(const char *key, const struct id *conversation)
{
    return opens(knocks(&door), key, conversation);
}

static int setup(void **state)
{
    static const struct chan_ops asked = {on_who, no_end}, answered = {on_answer, no_end};
    int fd[2];
    if (fix_setup(NULL) != 0 || (loop = loop_new()) == NULL ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) != 0)
        return -1;
    clock_ms = 1000000;
    desk_is_silent = false;
    pulses_set = 0;
    pulses = NULL;
    serve = (struct serve){.loop = loop, .store = fix, .owner = (unsigned)getuid()};
    door = (struct door){.serve = &serve, .fd = -1};
    own_door = (struct door){.serve = &serve, .fd = -1, .own = true};
    if (fix_postgres) /* what a handler waits with is its own */
        serve.store = fix_open();
    for (size_t i = 0; fix_postgres && i < SERVE_LANES - 1; i++)
        serve.more[i] = fix_open();
    if (serve_begin(&serve) != 0)
        return -1;
    pulses = serve.pulse;
    desk = chan_new(loop, fd[0], &asked, NULL);
    serve_desk(&serve, chan_new(loop, fd[1], &answered, NULL));
    impatience = timer_new(loop, too_long, NULL);
    broker_key_digest(SPAN("csb_acme"), &known[0]);
    broker_key_digest(SPAN("csb_other"), &known[1]);
    return desk != NULL && serve.desk != NULL && impatience != NULL ? 0 : -1;
}

static void turned(void *arg)
{
    loop_stop(loop);
}

static int teardown(void **state)
{
    struct timer *turn = timer_new(loop, turned, NULL);
    while (serve.callers != NULL)
        caller_drop(serve.callers, false);
    for (int i = 0; i < 8 || lanes_busy(&serve); i++) { /* what is still to be let go of is, in turns of the loop */
        timer_set(turn, 0);
        (void)!loop_run(loop);
    }
    timer_free(&turn);
    lanes_end(&serve);
    if (serve.store != fix)
        bstore_close(&serve.store);
    for (size_t i = 0; i < SERVE_LANES - 1; i++)
        bstore_close(&serve.more[i]);
    chan_free(&desk);
    chan_free(&serve.desk);
    timer_free(&serve.pulse);
    timer_free(&serve.heart);
    timer_free(&impatience);
    loop_free(&loop);
    return fix_teardown(NULL);
}

/* --- what is asked is taken as it was meant, or refused ------------------------------------------------ */

static void refused_chat(const char *body, const char *words)
{
    struct asker *a = knocks(&own_door);
    asks(a, "", "POST /chat", body);
    until(a, "}");
    if (!heard(a, "HTTP/1.1 400 ") || !heard(a, words))
        fail_msg("%s: %.*s", body, SPAN_FMT(dynbuf_span(&a->heard)));
    leaves(a);
}

static void a_misspelt_member_is_named_and_nothing_is_begun(void **state)
{
    struct bstore_conversations all;
    const struct id none = {{0}};
    refused_chat("{\"message\":\"x\",\"budget\":{\"step\":3}}", "budget.step");
    refused_chat("{\"message\":\"x\",\"budget\":{\"steps\":3,\"Tokens\":3}}", "budget.Tokens");
    refused_chat("{\"message\":\"x\",\"budget\":[]}", "`budget` is an object");
    refused_chat("{\"message\":\"x\",\"budgets\":{\"steps\":3}}", "budgets");
    refused_chat("{\"message\":\"x\",\"conversation_id\":7}", "`conversation_id`");
    refused_chat("{\"message\":\"x\",\"conversation_id\":null}", "`conversation_id`");
    refused_chat("{\"message\":\"x\",\"conversation_id\":{\"id\":\"y\"}}", "`conversation_id`");
    refused_chat("{\"message\":7}", "`message`, a text");
    fix_ok(bstore_conversations(fix, SPAN("default"), &none, &fix_arena, &all));
    assert_int_equal(all.n, 0);
    struct asker *a = knocks(&own_door);
    asks(a, "", "POST /chat", "{\"message\":\"x\",\"conversation_id\":\"\"}");
    until(a, "}");
    assert_true(heard(a, "HTTP/1.1 404 "));
    asks(a, "", "POST /chat",
         "{\"message\":\"x\",\"budget\":{\"steps\":3,\"tokens\":1,\"cost_micro\":1,\"wall_ms\":1,\"same_calls\":1}}");
    until(a, "}");
    assert_true(heard(a, "HTTP/1.1 202 "));
    leaves(a);
}

#include "tests/unit/broker/brought/brought.h"
#include "tests/unit/broker/meter/told.h"

/* --- recordings --------------------------------------------------------------------------------------- */

static void recording(struct door *at, const char *key, const struct id *turn, const char *query, const char *wants)
{
    char id[ID_TEXT + 1], what[96];
    struct asker *a = knocks(at);
    id_text(turn, id);
    snprintf(what, sizeof(what), "GET /turns/%s/recording%s", id, query);
    asks(a, key, what, "");
    until(a, wants);
    leaves(a);
}

/* Whose a recording is, a key says, and no word in what is asked; the operator says it so. */
static void a_recording_is_its_tenants(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    recording(&door, "csb_acme", &t.turn, "", "HTTP/1.1 409 ");
    struct claim c = fix_claim(1);
    fix_ok(bstore_record(fix, &c, SPAN("{\"heard\":\"line\"}\n")));
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    recording(&door, "csb_acme", &t.turn, "", "\"end\":\"completed\"");
    recording(&door, "csb_acme", &t.turn, "?tenant=other", "{\"heard\":\"line\"}\n");
    recording(&door, "csb_other", &t.turn, "", "HTTP/1.1 404 ");
    recording(&door, "csb_other", &t.turn, "?tenant=acme", "HTTP/1.1 404 ");
    recording(&own_door, "", &t.turn, "", "HTTP/1.1 404 ");
    recording(&own_door, "", &t.turn, "?tenant=acme", "{\"heard\":\"line\"}\n");
}

static void live(struct door *at, const char *key, const struct id *turn, const char *body, const char *wants)
{
    char id[ID_TEXT + 1], what[96];
    struct asker *a = knocks(at);
    id_text(turn, id);
    snprintf(what, sizeof(what), "POST /turns/%s/live?tenant=acme", id);
    asks(a, key, what, body);
    until(a, wants);
    leaves(a);
}

/* No key begins one, and a model that is not in the table is asked by nobody. */
static void a_live_replay_is_the_operators(void **state)
{
    static const struct span models[] = {{(const uint8_t *)"one", 3}, {(const uint8_t *)"two", 3}};
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct claim c = fix_claim(1);
    serve.model = models;
    serve.models = 2;
    live(&own_door, "", &t.turn, "{\"model\":\"two\"}", "it has not ended");
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    live(&door, "csb_acme", &t.turn, "{\"model\":\"two\"}", "HTTP/1.1 403 ");
    live(&own_door, "", &t.turn, "{\"model\":\"three\"}", "`three` is none");
    live(&own_door, "", &t.turn, "{\"model\":\"\"}", "HTTP/1.1 400 ");
    live(&own_door, "", &t.turn, "{\"model\":\"two\",\"key\":7}", "`key` is a text");
    live(&own_door, "", &t.turn, "{\"model\":\"two\",\"cost\":3}", "`cost` is no member");
    live(&own_door, "", &t.turn, "{\"model\":\"two\",\"cost_micro\":0}", "`cost_micro` is a whole number");
    live(&own_door, "", &t.turn, "{\"model\":\"two\",\"wall_ms\":604800001}", "`wall_ms` is a whole number");
    live(&own_door, "", &c.worker, "{\"model\":\"two\"}", "HTTP/1.1 404 ");
    live(&own_door, "", &t.turn, "{\"model\":\"two\",\"key\":\"k\"}", "HTTP/1.1 202 ");
    live(&own_door, "", &t.turn, "{\"model\":\"one\",\"key\":\"k\"}", "came with another request before");
    c = fix_claim(1);
    assert_true(span_eq(fix_load(&c).live, SPAN("two")));
    t = fix_chat("acme", NULL);
    c = fix_claim(2);
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    live(&own_door, "", &t.turn, "{\"model\":\"two\",\"key\":\"k\"}", "came with another request before");
}

#include "tests/unit/broker/brought/closed.h"

/* --- streams ------------------------------------------------------------------------------------------ */

/* So many events of the turn of this claim, each of so many bytes. */
static void happens(const struct claim *c, size_t n, size_t bytes)
{
    static char text[BSTORE_EVENT_MAX];
    struct bstore_event e;
    uint64_t seq;
    memset(text, 'x', sizeof(text));
    text[0] = text[bytes - 1] = '"';
    e = (struct bstore_event){SPAN("tool.output"), span_of(text, bytes)};
    for (size_t i = 0; i < n; i++)
        fix_ok(bstore_log(fix, c, &e, 1, &seq));
    text[bytes - 1] = 'x';
}

/* The numbers of what it heard follow each other, from 1 to last. */
static void whole(const struct asker *a, uint64_t last)
{
    struct span rest = dynbuf_span(&a->heard);
    uint64_t seq = 0, is;
    for (;;) {
        size_t at = span_find(rest, SPAN("id: 1."));
        if (at >= rest.n)
            break;
        rest = span_from(rest, at + 6);
        assert_int_equal(span_u64(span_first(rest, span_index(rest, '\n')), UINT32_MAX, &is), 0);
        assert_int_equal(is, ++seq);
    }
    assert_int_equal(seq, last);
}

/* From what was there to what comes: more than one page, more than the reader takes at once, written while it reads,
 * and without that the store hints at it (what is written through the same connection is not hinted at). */
static void a_stream_has_no_gap_where_it_takes_over(void **state)
{
    enum { BEFORE = BSTORE_READ_MAX + 50, LARGE = 60, AFTER = 3 };
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct claim c = fix_claim(1);
    happens(&c, BEFORE, 10);
    happens(&c, LARGE, BSTORE_EVENT_MAX / 2); /* it stands in the way of the rest, until it is read */
    struct asker *a = reads("csb_acme", &t.conversation);
    happens(&c, AFTER, 10);
    until(a, "id: 1.367\n"); /* turn.queued, BEFORE, LARGE: the rest is read as it is taken */
    happens(&c, AFTER, 10);
    heart(&serve);
    until(a, "id: 1.373\n");
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    heart(&serve);
    until(a, NULL); /* no turn is left */
    whole(a, 1 + BEFORE + LARGE + 2 * AFTER + 1);
    assert_true(heard(a, "event: turn.done") && heard(a, "\r\n0\r\n\r\n"));
    leaves(a);
}

static void a_stream_opened_does_not_put_off_what_others_wait_for(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct asker *first = reads("csb_acme", &t.conversation), *second = reads("csb_acme", &t.conversation);
    assert_int_equal(pulses_set, 1);
    leaves(first);
    leaves(second);
}

/* The heart beats after so long; the desk is heard. */
static void passes(uint64_t ms, struct asker *hears)
{
    clock_ms += ms;
    dynbuf_reset(&hears->heard);
    heart(&serve);
    until(hears, "event: heartbeat");
}

static void a_stream_ends_with_its_key(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL), u = fix_chat("other", NULL);
    struct asker *a = reads("csb_acme", &t.conversation), *b = reads("csb_other", &u.conversation);
    passes(SERVE_WHO_MS, a);
    passes(SERVE_WHO_MS, b);
    assert_false(a->ended || b->ended);
    memset(&known[0], 0, sizeof(known[0])); /* it is taken back */
    passes(SERVE_WHO_MS, b);
    until(a, NULL);
    assert_false(heard(a, "\r\n0\r\n\r\n")); /* and that is no end of its turns */
    for (unsigned i = 0; i < 2 * SERVE_UNSURE_MS / SERVE_WHO_MS; i++)
        passes(SERVE_WHO_MS, b);
    assert_false(b->ended);
    leaves(a);
    leaves(b);
}

/* Of both kinds: a desk that is not there, and one that does not answer. */
static void nobody_sure(bool there)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct asker *a = reads("csb_acme", &t.conversation), *mine;
    struct chan *link = serve.desk;
    char id[ID_TEXT + 1], what[64];
    mine = knocks(&own_door);
    id_text(&t.conversation, id);
    snprintf(what, sizeof(what), "GET /stream/%s", id);
    desk_is_silent = there;
    if (!there)
        serve_desk(&serve, NULL);
    passes(SERVE_UNSURE_MS - 1, a);
    assert_false(a->ended);
    clock_ms++;
    heart(&serve);
    until(a, NULL);
    desk_is_silent = false;
    serve_desk(&serve, link);
    leaves(a);
    a = reads("csb_acme", &t.conversation); /* it comes back, when the desk has */
    leaves(a);
    leaves(mine);
}

static void a_stream_does_not_go_on_when_nobody_is_sure_of_its_key(void **state)
{
    nobody_sure(false);
    nobody_sure(true);
}

/* --- who keeps a place -------------------------------------------------------------------------------- */

static void whoever_is_refused_keeps_no_place(void **state)
{
    static const char *const what[] = {"GET /conversations", "GET /nothing", "PUT /chat"};
    for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
        struct asker *a = knocks(&door);
        asks(a, "csb_nobody", what[i], "");
        until(a, NULL);
        assert_true(heard(a, "Connection: close"));
        assert_int_equal(serve.ncallers, 0);
        leaves(a);
    }
    struct asker *a = knocks(&door); /* who is known keeps it */
    asks(a, "csb_acme", "GET /conversations", "");
    until(a, "\"more\"");
    assert_false(a->ended);
    assert_int_equal(serve.ncallers, 1);
    leaves(a);
}

/* All places of the one kind: callers that say nothing, or idle ones of acme. */
static void crowd(struct asker **of, size_t n, const char *tenant)
{
    for (size_t i = 0; i < n; i++) {
        of[i] = knocks(&door);
        snprintf(serve.callers->tenant, sizeof(serve.callers->tenant), "%s", tenant);
    }
}

static void a_neighbour_is_served(const struct id *conversation, struct asker *stream)
{
    struct asker *a = knocks(&door);
    asks(a, "csb_other", "GET /conversations", "");
    until(a, "\"more\"");
    assert_true(heard(a, "HTTP/1.1 200 "));
    leaves(a);
    passes(1, stream);
    assert_false(stream->ended);
}

static void a_crowd_keeps_no_neighbour_out(void **state)
{
    static struct asker *all[SERVE_CLIENTS];
    struct rlimit files;
    struct bstore_chatted u = fix_chat("other", NULL);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    struct asker *stream = reads("csb_other", &u.conversation);
    crowd(all, SERVE_CLIENTS - 1, "");
    assert_int_equal(serve.ncallers, SERVE_CLIENTS);
    a_neighbour_is_served(&u.conversation, stream);
    until(all[0], NULL); /* the oldest of the most */
    for (size_t i = 0; i < SERVE_CLIENTS - 1; i++)
        leaves(all[i]);
    while (serve.callers->next != NULL) /* the stream is the oldest */
        caller_drop(serve.callers, false);
    crowd(all, SERVE_TENANT_CLIENTS, "acme");
    struct asker *more = knocks(&door);
    asks(more, "csb_acme", "GET /conversations", "");
    until(more, NULL);
    assert_true(heard(more, "HTTP/1.1 429 "));
    a_neighbour_is_served(&u.conversation, stream);
    leaves(more);
    for (size_t i = 0; i < SERVE_TENANT_CLIENTS; i++)
        leaves(all[i]);
    leaves(stream);
}

#include "tests/unit/broker/health/health.h"
#include "tests/unit/broker/health/turns.h"

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(a_misspelt_member_is_named_and_nothing_is_begun),
                                       T(whom_the_desk_brings_is_of_that_tenant_and_says_things_in_their_name),
                                       T(on_the_page_who_began_a_conversation_speaks_in_it_alone),
                                       T(what_the_desk_did_not_say_whole_is_nobody),
                                       T(whom_the_desk_brings_needs_no_key_while_a_stream_is_open),
                                       T(what_was_said_last_is_shown),
                                       T(a_refusal_says_whose_budget_it_is),
                                       T(budgets_are_told_once_and_so_many_in_one_answer),
                                       T(a_recording_is_its_tenants),
                                       T(a_live_replay_is_the_operators),
                                       T(a_private_conversation_is_one_from_its_begin),
                                       T(a_private_turn_is_replayed_by_its_own_models_alone),
                                       T(a_stream_has_no_gap_where_it_takes_over),
                                       T(a_stream_opened_does_not_put_off_what_others_wait_for),
                                       T(a_stream_ends_with_its_key),
                                       T(a_stream_does_not_go_on_when_nobody_is_sure_of_its_key),
                                       T(it_is_said_that_nobody_runs_turns),
                                       T(whoever_is_refused_keeps_no_place),
                                       T(a_crowd_keeps_no_neighbour_out),
                                       T(what_one_asks_in_a_row_is_not_what_another_waits_for)};
    return FIX_MAIN(tests);
}
