/* Checkpoints, as the warden has them made: only of what stands still, only one at a time of a sandbox; and one that
 * is started from a checkpoint is nobody's before all of its files are in it. */
#include "tests/unit/warden/warden_world.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "sandbox-shim/checkpoint/order.h"

#define ID "ck-10000000000000000000000000"

static int keeper = -1;
static bool stays_here;        /* what one is started from */
static char goes[FORM_ID + 1]; /* what goes before one is kept */

/* Who keeps them is asked for and told this; the task's number. */
static uint64_t asked(unsigned with, uint64_t box, enum order_what what)
{
    struct dynbuf payload;
    struct frame f;
    struct order o;
    uint64_t id = heard(PARENT, M_CHECKPOINT);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u8(&m), with);
    assert_int_equal(msg_get_u64(&m), box);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(got.nfds, with == STORE_ALONE ? 1 : 2);
    int user = with == STORE_ALONE ? -1 : frame_take_fd(&got, 1);
    keeper = frame_take_fd(&got, 0);
    if (user >= 0)
        close(user);
    dynbuf_init(&payload, CHAN_PAYLOAD_MAX);
    assert_int_equal(chan_read_one(keeper, &f, &payload), 0);
    assert_int_equal(f.type, M_CHECKPOINT_ORDER);
    assert_int_equal(f.id, id);
    assert_int_equal(f.nfds, with == STORE_ALONE ? 0 : 1);
    if (f.nfds == 1)
        close(f.fd[0]);
    assert_int_equal(order_get(f.payload, &o), 0);
    assert_int_equal(o.what, what);
    assert_true(span_eq(o.tenant, SPAN("default")));
    if (what == ORDER_SAVE)
        (void)snprintf(goes, sizeof(goes), "%.*s", SPAN_FMT(o.which));
    if (what == ORDER_SAVE)
        assert_true(span_eq(o.sandbox, SPAN("box")) && span_eq(o.owner, SPAN("root")) && o.generation == 7 &&
                    o.disk > 0 && span_eq(o.reach, SPAN("+n api.test\n")));
    else if (what == ORDER_LOAD)
        assert_true(span_eq(o.which, SPAN(ID)));
    dynbuf_free(&payload);
    return id;
}

static void keeper_says(uint64_t id, enum store_end how, const char *why)
{
    struct dynbuf b = fresh();
    msg_put_u8(&b, (uint8_t)how);
    msg_put_span(&b, span_str(why));
    msg_put_span(&b, SPAN("told"));
    assert_int_equal(chan_write_one(keeper, M_CHECKPOINT_DONE, id, dynbuf_span(&b)), 0);
    dynbuf_free(&b);
    close(keeper);
    assert_int_equal(heard(PARENT, M_CHECKPOINT_END), id);
}

static void ask_snapshot(uint64_t desk, const char *name)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    msg_put_span(&b, SPAN("default"));
    msg_put_span(&b, SPAN("root"));
    msg_put_span(&b, SPAN("built"));
    msg_put_span(&b, SPAN("+n api.test\n"));
    say(DESK, M_SB_SNAPSHOT, desk, &b);
}

static void desk_hears(uint64_t desk, enum store_end how, const char *why)
{
    assert_int_equal(heard(DESK, M_SB_CHECKPOINT), desk);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u8(&m), how);
    struct span said = msg_get_span(&m, 400), rest = msg_get_span(&m, 400);
    assert_int_equal(msg_end(&m), 0);
    assert_true(*why ? span_find(said, span_str(why)) < said.n : said.n == 0);
    assert_true(how != STORE_DONE || span_eq(rest, SPAN("told")));
}

static void pause_for(uint64_t id, bool moment)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, SPAN("box"));
    msg_put_u8(&b, moment);
    say(DESK, M_SB_PAUSE, 20, &b);
    assert_int_equal(heard(PARENT, M_BOX_PAUSE), id);
    b = fresh();
    msg_put_u8(&b, PAUSE_CGROUP_1);
    msg_put_span(&b, SPAN(""));
    say(PARENT, M_BOX_PAUSED, id, &b);
    assert_int_equal(heard(DESK, M_SB_PAUSED), 20);
    (void)heard(LEDGER, M_RUN_LIFE);
}

static void pause_it(uint64_t id)
{
    pause_for(id, true);
}

/* How many are due to be put aside, and in how many ms it is asked again. */
static void idle_is(unsigned n, uint64_t next)
{
    say(DESK, M_SB_IDLE, 40, NULL);
    assert_int_equal(heard(DESK, M_SB_IDLE), 40);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u64(&m), next);
    assert_int_equal(msg_get_u16(&m), n);
}

/* While its files are read for somebody it is not due, and nobody says when that is over: it is looked at again. */
static void one_that_is_due_is_so_after_a_snapshot(void **state)
{
    int fd;
    idle_ms = 1;
    uint64_t id = runs("box", 60000, &fd);
    idle_ms = 0;
    pause_for(id, false);
    assert_int_equal(poll(NULL, 0, 2), 0);
    idle_is(1, 0);
    ask_snapshot(3, "box");
    uint64_t task = asked(STORE_READS, id, ORDER_SAVE);
    idle_is(0, 1000);
    keeper_says(task, STORE_DONE, "");
    desk_hears(3, STORE_DONE, "");
    idle_is(1, 0);
    destroy("box");
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    idle_is(0, 0);
    close(fd);
}

static void only_what_stands_still_is_kept(void **state)
{
    int fd;
    uint64_t id = runs("box", 60000, &fd);
    ask_snapshot(1, "nobody");
    desk_hears(1, STORE_REFUSED, "no sandbox of this name runs");
    ask_snapshot(2, "box");
    desk_hears(2, STORE_REFUSED, "not paused");
    pause_it(id);
    ask_snapshot(3, "box");
    uint64_t task = asked(STORE_READS, id, ORDER_SAVE);
    ask_snapshot(4, "box");
    desk_hears(4, STORE_REFUSED, "already");
    struct dynbuf b = fresh();
    msg_put_span(&b, SPAN("box"));
    msg_put_u64(&b, 8);
    say(DESK, M_SB_RESUME, 5, &b);
    assert_int_equal(heard(DESK, M_SB_PAUSED), 5);
    assert_true(span_find(got.payload, SPAN("being read")) < got.payload.n);
    keeper_says(task, STORE_DONE, "");
    desk_hears(3, STORE_DONE, "");
    ask_snapshot(6, "box");
    task = asked(STORE_READS, id, ORDER_SAVE);
    close(keeper); /* who keeps them dies */
    assert_int_equal(heard(PARENT, M_CHECKPOINT_END), task);
    desk_hears(6, STORE_FAILED, "ended before");
    ask_snapshot(7, "box");
    task = asked(STORE_READS, id, ORDER_SAVE);
    close(keeper); /* nobody has the other end, and why comes behind that */
    b = fresh();
    msg_put_span(&b, SPAN("there are too many"));
    say(PARENT, M_CHECKPOINT_NONE, task, &b);
    assert_int_equal(heard(PARENT, M_CHECKPOINT_END), task);
    desk_hears(7, STORE_FAILED, "too many");
    ask_snapshot(8, "box");
    task = asked(STORE_READS, id, ORDER_SAVE);
    destroy("box"); /* and with it what is done for it */
    assert_int_equal(heard(PARENT, M_CHECKPOINT_END), task);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    desk_hears(8, STORE_FAILED, "destroyed");
    close(keeper);
    close(fd);
}

/* --- steps ------------------------------------------------------------------------------ */

static void ask_layer(uint64_t desk)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, SPAN("box"));
    msg_put_span(&b, SPAN("default"));
    msg_put_span(&b, SPAN("root"));
    msg_put_span(&b, SPAN("+n api.test\n"));
    msg_put_span(&b, SPAN("make\0"));
    say(DESK, M_SB_LAYER, desk, &b);
}

static void ask_undo(uint64_t desk, uint32_t step)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, SPAN("box"));
    msg_put_u32(&b, step);
    say(DESK, M_SB_UNDO, desk, &b);
}

static uint64_t listed; /* bytes of the list of one's files */

/* Its head says so many bytes. */
static void kept_as(uint64_t task, const char *which, uint64_t bytes)
{
    struct dynbuf b = fresh(), head = fresh();
    const struct form_head h = {.id = span_str(which),
                                .tenant = SPAN("default"),
                                .owner = SPAN("root"),
                                .name = FORM_OF_UNDO,
                                .sandbox = SPAN("box"),
                                .generation = 7,
                                .bytes = bytes,
                                .added = bytes};
    form_put_head(&head, &h);
    msg_put_u64(&head, listed);
    msg_put_u8(&b, STORE_DONE);
    msg_put_span(&b, SPAN_NONE);
    msg_put_span(&b, dynbuf_span(&head));
    assert_int_equal(chan_write_one(keeper, M_CHECKPOINT_DONE, task, dynbuf_span(&b)), 0);
    dynbuf_free(&b);
    dynbuf_free(&head);
    close(keeper);
}

static void step_is(uint64_t desk, uint32_t step)
{
    assert_int_equal(heard(DESK, M_SB_CHECKPOINT), desk);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u8(&m), STORE_DONE);
    assert_int_equal(msg_get_span(&m, 400).n, 0);
    struct msg_in rest = msg_in(msg_get_span(&m, 4096));
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(msg_get_u32(&rest), step);
}

/* While files are kept or put back nothing begins; what cannot be undone any more is removed. */
static void steps_are_kept_and_undone(void **state)
{
    static const char *const ids[] = {"ck-10000000000000000000000000", "ck-20000000000000000000000000"};
    int fd;
    uint64_t id = runs("box", 60000, &fd), task;
    for (unsigned i = 0; i < 2; i++) {
        ask_layer(1 + i);
        task = asked(STORE_READS, id, ORDER_SAVE);
        ask_layer(8);
        desk_hears(8, STORE_REFUSED, "ask again");
        ask_exec(9, "box", 1000, 1000, TALK_NO_INPUT, false);
        assert_int_equal(heard(DESK, M_SB_EXIT), 9);
        kept_as(task, ids[i], 1000);
        assert_int_equal(heard(PARENT, M_CHECKPOINT_END), task);
        step_is(1 + i, 1 + i);
    }
    ask_undo(3, 7);
    desk_hears(3, STORE_MISSING, "no such step");
    ask_undo(4, 1);
    uint64_t load = heard(PARENT, M_CHECKPOINT);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u8(&m), STORE_WRITES);
    close(frame_take_fd(&got, 1));
    keeper = frame_take_fd(&got, 0);
    keeper_says(load, STORE_DONE, "");
    assert_int_equal(heard(LEDGER, M_RUN_LIFE), id);
    for (unsigned i = 0; i < 2; i++) { /* the one, then the other */
        task = asked(STORE_ALONE, 0, ORDER_FORGET);
        if (i == 0)
            assert_int_equal(heard(DESK, M_SB_CHECKPOINT), 4);
        keeper_says(task, STORE_DONE, "");
    }
    ask_undo(5, 0);
    desk_hears(5, STORE_MISSING, "no such step");
    destroy("box");
    (void)asked(STORE_ALONE, 0, ORDER_SWEEP);
    close(keeper);
    close(fd);
}

static void a_step_that_is_being_kept_goes_with_its_sandbox(void **state)
{
    int fd;
    uint64_t id = runs("box", 60000, &fd);
    ask_layer(1);
    uint64_t task = asked(STORE_READS, id, ORDER_SAVE);
    destroy("box");
    assert_int_equal(heard(PARENT, M_CHECKPOINT_END), task);
    desk_hears(1, STORE_FAILED, "destroyed");
    close(keeper);
    (void)asked(STORE_ALONE, 0, ORDER_SWEEP);
    close(keeper);
    close(fd);
}

static void one_is_kept(uint64_t box, uint32_t step, const char *which)
{
    ask_layer(step);
    uint64_t task = asked(STORE_READS, box, ORDER_SAVE);
    kept_as(task, which, 1000);
    assert_int_equal(heard(PARENT, M_CHECKPOINT_END), task);
}

/* G20: its owner has as much as may be kept. Its own steps go, the first one first, and no other checkpoint. */
static void the_first_one_goes_where_there_is_no_room(void **state)
{
    int fd;
    uint64_t id = runs("box", 60000, &fd);
    one_is_kept(id, 1, ID);
    step_is(1, 1);
    ask_layer(2);
    uint64_t task = asked(STORE_READS, id, ORDER_SAVE);
    assert_string_equal(goes, "");
    keeper_says(task, STORE_FULL, "there is no room");
    task = asked(STORE_READS, id, ORDER_SAVE);
    assert_string_equal(goes, ID);
    ask_undo(3, 1);
    desk_hears(3, STORE_REFUSED, "ask again");
    keeper_says(task, STORE_FULL, "there is no room");
    desk_hears(2, STORE_FULL, "there is no room");
    ask_undo(4, 1);
    desk_hears(4, STORE_MISSING, "no such step");
    destroy("box");
    (void)asked(STORE_ALONE, 0, ORDER_SWEEP);
    close(keeper);
    close(fd);
}

/* G20: names of files are on the disk as well, and those of two steps do not fit. */
static void lists_of_files_count(void **state)
{
    int fd;
    uint64_t id = runs("box", 60000, &fd);
    listed = 40 << 20;
    one_is_kept(id, 1, ID);
    step_is(1, 1);
    one_is_kept(id, 2, "ck-20000000000000000000000000");
    uint64_t task = asked(STORE_ALONE, 0, ORDER_FORGET);
    listed = 0;
    step_is(2, 2);
    keeper_says(task, STORE_DONE, "");
    destroy("box");
    (void)asked(STORE_ALONE, 0, ORDER_SWEEP);
    close(keeper);
    close(fd);
}

/* As M_SB_START of the world is: asked for here with a checkpoint before it. */
static uint64_t start_from(uint64_t desk, int *fd)
{
    const struct wire_box box = {.name = SPAN("box"), .memory = 1 << 30, .pids = 64, .disk = 1 << 20, .files = 256};
    struct dynbuf b = fresh();
    msg_put_span(&b, SPAN("default"));
    msg_put_span(&b, SPAN(ID));
    msg_put_u8(&b, stays_here);
    wire_put_box(&b, &box);
    msg_put_u64(&b, 7);
    msg_put_u64(&b, 100);
    msg_put_u64(&b, 60000);
    msg_put_u8(&b, false);
    msg_put_u8(&b, false);
    say(DESK, M_SB_START_FROM, desk, &b);
    uint64_t id = heard(PARENT, M_BOX);
    *fd = frame_take_fd(&got, 0);
    assert_int_equal(fcntl(*fd, F_SETFL, 0), 0);
    parent_says_started(id, 1);
    struct dynbuf payload;
    struct frame f;
    dynbuf_init(&payload, CHAN_PAYLOAD_MAX);
    assert_int_equal(chan_read_one(*fd, &f, &payload), 0);
    assert_int_equal(f.type, M_BOX_ORDER);
    dynbuf_free(&payload);
    hello(*fd);
    is_named(*fd, "box");
    return id;
}

static void started(uint64_t desk, bool ok, const char *why)
{
    assert_int_equal(heard(DESK, M_SB_STARTED), desk);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_bool(&m), ok);
    struct span said = msg_get_span(&m, 400);
    assert_true(*why ? span_find(said, span_str(why)) < said.n : said.n == 0);
}

static void one_that_is_filled_is_nobodys_before(void **state)
{
    int fd;
    uint64_t id = start_from(1, &fd), task = asked(STORE_WRITES, id, ORDER_LOAD);
    execute(2, "box", 1000, 1000);
    exit_heard(2, SB_NOT_STARTED, 0);
    ask_snapshot(3, "box");
    desk_hears(3, STORE_REFUSED, "not paused");
    say(DESK, M_SB_LIST, 4, NULL);
    assert_int_equal(heard(DESK, M_SB_LISTED), 4);
    assert_true(span_eq(got.payload, SPAN("\0\0")));
    keeper_says(task, STORE_DONE, "");
    started(1, true, "");
    (void)heard(LEDGER, M_RUN_LIFE);
    execute(5, "box", 1000, 1000);
    unsigned type;
    uint32_t run;
    struct dynbuf b = told(fd, &type, &run);
    assert_int_equal(type, TALK_RUN);
    dynbuf_free(&b);
    close(fd);
}

static void one_that_cannot_be_filled_ends(void **state)
{
    int fd;
    uint64_t id = start_from(1, &fd), task = asked(STORE_WRITES, id, ORDER_LOAD);
    keeper_says(task, STORE_FAILED, "a piece of \"a\nb\" is damaged");
    started(1, false, "a piece of \"a\nb\" is damaged");
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    end_heard("box"); /* in words of our own, whatever its files are called */
    assert_true(span_find(got.payload, SPAN("a piece of")) == got.payload.n);
    close(fd);
}

static void its_end_is_the_end_of_its_filling(void **state)
{
    int fd;
    uint64_t id = start_from(1, &fd), task = asked(STORE_WRITES, id, ORDER_LOAD);
    close(fd); /* its first process */
    assert_int_equal(heard(PARENT, M_CHECKPOINT_END), task);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    started(1, false, "could not be set up");
    close(keeper);
}

static int begin_tidy(void **state)
{
    world_tidies = true;
    int rc = begin_known(state);
    world_tidies = false;
    return rc;
}

/* Nobody asks for it, nor waits: at the start, and when something was removed, also while it is done. */
static void what_was_removed_goes_elsewhere_by_itself(void **state)
{
    uint64_t task = asked(STORE_ALONE, 0, ORDER_TIDY);
    int tidies = keeper;
    struct dynbuf b = fresh();
    msg_put_u8(&b, ORDER_REMOVE);
    msg_put_span(&b, SPAN("default"));
    msg_put_span(&b, SPAN(ID));
    say(DESK, M_SB_CHECKPOINTS, 1, &b);
    uint64_t removes = asked(STORE_ALONE, 0, ORDER_REMOVE);
    keeper_says(removes, STORE_DONE, "");
    desk_hears(1, STORE_DONE, "");
    keeper = tidies;
    keeper_says(task, STORE_DONE, "");
    task = asked(STORE_ALONE, 0, ORDER_TIDY);
    keeper_says(task, STORE_FAILED, "not all"); /* it is done again, later, and nobody hears of it */
}

static void ask_checkpoints(uint64_t desk, enum order_what what, const char *tenant)
{
    struct dynbuf b = fresh();
    msg_put_u8(&b, (uint8_t)what);
    msg_put_span(&b, span_str(tenant));
    msg_put_span(&b, what == ORDER_LIST ? SPAN_NONE : SPAN(ID));
    say(DESK, M_SB_CHECKPOINTS, desk, &b);
}

/* However many wait for a slow checkpoint store: what needs none is begun. */
static void who_needs_no_store_has_a_place(void **state)
{
    static const char *const tenants[] = {"default", "acme", "globex"};
    static const enum order_what asks[] = {ORDER_LIST, ORDER_LOOK, ORDER_REMOVE};
    int keepers[9], n = 0, fd;
    uint64_t desk = 1, last = 0;
    (void)asked(STORE_ALONE, 0, ORDER_TIDY);
    keepers[n++] = keeper;
    for (size_t k = 0; k < 3; k++)
        for (int i = 0; i < 5; i++, desk++) {
            ask_checkpoints(desk, asks[i % 3], tenants[k]);
            if (i == 4 || k == 2) {
                desk_hears(desk, STORE_FAILED, "ask again in a moment");
                continue;
            }
            last = heard(PARENT, M_CHECKPOINT);
            keepers[n++] = frame_take_fd(&got, 0);
        }
    assert_int_equal(n, 9);
    ask_checkpoints(desk++, ORDER_FORGET, "default");
    keeper_says(asked(STORE_ALONE, 0, ORDER_FORGET), STORE_DONE, "");
    desk_hears(desk - 1, STORE_DONE, "");
    stays_here = true; /* as a fork, and what an idle one is restored from */
    uint64_t id = start_from(desk, &fd), load = asked(STORE_WRITES, id, ORDER_LOAD);
    stays_here = false;
    keeper_says(load, STORE_DONE, "");
    started(desk++, true, "");
    keeper = keepers[8];
    keeper_says(last, STORE_DONE, "");
    desk_hears(9, STORE_DONE, "");
    ask_checkpoints(desk, ORDER_LIST, "globex");
    (void)heard(PARENT, M_CHECKPOINT);
    keepers[8] = frame_take_fd(&got, 0);
    while (n-- > 0)
        close(keepers[n]);
    close(fd);
}

/* Those that were kept before sandboxes were narrowed are read on. */
static void a_head_of_before_is_read(void **state)
{
    struct form_head h = {
        .id = SPAN("ck-10000000000000000000000000"), .tenant = SPAN("default"), .sandbox = SPAN("box"), .added = 7};
    struct dynbuf b;
    dynbuf_init(&b, 4096);
    form_put_head(&b, &h);
    assert_int_equal(form_get_kept(dynbuf_span(&b), &h), 0);
    assert_int_equal(form_get_kept(span_first(dynbuf_span(&b), b.n - 4), &h), 0);
    assert_true(h.added == 7 && h.reach.n == 0);
    assert_int_equal(form_get_kept(span_first(dynbuf_span(&b), b.n - 3), &h), -1);
    (void)dynbuf_add(&b, SPAN("x"));
    assert_int_equal(form_get_kept(dynbuf_span(&b), &h), -1);
    dynbuf_free(&b);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_known, finish)
    const struct CMUnitTest tests[] = {
        TEST(only_what_stands_still_is_kept),
        cmocka_unit_test_setup_teardown(what_was_removed_goes_elsewhere_by_itself, begin_tidy, finish),
        TEST(one_that_is_filled_is_nobodys_before),
        cmocka_unit_test_setup_teardown(who_needs_no_store_has_a_place, begin_tidy, finish),
        TEST(one_that_is_due_is_so_after_a_snapshot),
        TEST(one_that_is_filled_is_nobodys_before),
        TEST(steps_are_kept_and_undone),
        TEST(the_first_one_goes_where_there_is_no_room),
        TEST(lists_of_files_count),
        TEST(a_step_that_is_being_kept_goes_with_its_sandbox),
        TEST(one_that_cannot_be_filled_ends),
        TEST(its_end_is_the_end_of_its_filling),
        cmocka_unit_test(a_head_of_before_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
