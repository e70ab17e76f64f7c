/* A sandbox that the parent lets stand still: by its cgroup if that freezes, else by signals, and never said to be
 * before it is. */
#include "tests/kit.h"

#include <string.h>

#include "common/msg.h"
#include "common/role/family.h"
#include "proxy/parent/parent.h"
#include "proxy/parent/programs/cells.h"

enum { PID = 1000000000, CLEAN = 1, NOT_YET = 0, UNSEEN = -1 };
static struct parent parent;
static struct child warden;
static struct dynbuf said;
static unsigned nsaid;
static uint64_t said_id;
static unsigned freezer; /* version; 0: none */
static bool frozen, stopped;
static bool cells;   /* one of its commands has walls of its own */
static int looks[8]; /* what each says; the last one goes on */
static unsigned nlooks, looked;
static bool armed;
static void (*again)(void *arg);

/* --- what is around it ------------------------------------------------------------ */

struct child *parent_child(struct parent *p, enum role_id role, uint64_t instance)
{
    assert_int_equal(role, ROLE_WARDEN);
    return &warden;
}

bool parent_cells_left(const struct parent *p, const struct running_box *b)
{
    assert_true(p == &parent && b == &parent.boxes[3]);
    return cells;
}

int cgroup_freeze(const struct cgroup *c, bool on)
{
    if (freezer == 0)
        return -1;
    frozen = on;
    return 0;
}

unsigned cgroup_freezer(const struct cgroup *c)
{
    return freezer;
}

static int next_look(void)
{
    return looks[looked + 1 < nlooks ? looked++ : looked];
}

int cgroup_frozen(const struct cgroup *c)
{
    assert_true(frozen);
    return next_look();
}

int family_stop(pid_t from)
{
    assert_int_equal(from, PID);
    stopped = true;
    return next_look();
}

int family_continue(pid_t from)
{
    assert_int_equal(from, PID);
    stopped = false;
    return 0;
}

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    assert_int_equal(type, M_BOX_PAUSED);
    said_id = id;
    nsaid++;
    dynbuf_reset(&said);
    return &said;
}

int chan_commit(struct chan *c)
{
    return 0;
}

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    again = fn;
    return (struct timer *)&again;
}

void timer_set(struct timer *t, uint64_t ms)
{
    armed = true;
}

/* --- */

static int begin(void **state)
{
    parent = (struct parent){.boxes = {[3] = {.pid = PID, .id = 7}, [4] = {.id = 8}}};
    warden.chan = (struct chan *)&warden;
    dynbuf_init(&said, 4096);
    nsaid = freezer = looked = 0;
    frozen = stopped = armed = cells = false;
    return 0;
}

static int end(void **state)
{
    dynbuf_free(&said);
    return 0;
}

static void ask(uint64_t id, struct span payload)
{
    parent_box_pause(&parent, &(struct frame){.type = M_BOX_PAUSE, .id = id, .payload = payload});
}

static void look_again(void)
{
    assert_true(armed);
    armed = false;
    again(&parent);
}

static void says(enum pause_way way, bool why)
{
    struct msg_in m = msg_in(dynbuf_span(&said));
    assert_true(nsaid == 1 && said_id == 7);
    nsaid = 0;
    assert_int_equal(msg_get_u8(&m), way);
    assert_true((msg_get_span(&m, 400).n > 0) == why);
    assert_int_equal(msg_end(&m), 0);
}

static void a_cgroup_that_freezes_does_it(void **state)
{
    for (freezer = 1; freezer <= 2; freezer++) {
        looks[0] = NOT_YET;
        looks[1] = CLEAN;
        nlooks = 2;
        looked = 0;
        ask(7, SPAN("\1"));
        assert_true(frozen && nsaid == 0);
        look_again();
        says(freezer == 1 ? PAUSE_CGROUP_1 : PAUSE_CGROUP_2, false);
        assert_false(armed || stopped);
        ask(7, SPAN("\0"));
        says(PAUSE_NONE, false);
        assert_false(frozen);
    }
}

static void signals_do_it_where_nothing_freezes(void **state)
{
    static const int seen[] = {NOT_YET, NOT_YET, CLEAN};
    memcpy(looks, seen, sizeof(seen));
    nlooks = sizeof(seen) / sizeof(seen[0]);
    ask(7, SPAN("\1"));
    for (unsigned i = 1; i < nlooks; i++) {
        assert_int_equal(nsaid, 0);
        look_again();
    }
    says(PAUSE_SIGNALS, false);
    assert_true(stopped && !armed);
    ask(7, SPAN("\0"));
    says(PAUSE_NONE, false);
    assert_false(stopped);
}

/* All of it goes on. */
static void what_does_not_stop_is_not_paused(void **state)
{
    static const int cases[] = {NOT_YET, UNSEEN};
    for (freezer = 0; freezer < 2; freezer++)
        for (size_t i = 0; i < 2; i++) {
            looks[0] = cases[i];
            nlooks = 1;
            looked = 0;
            ask(7, SPAN("\1"));
            for (int n = 0; n < 1000 && nsaid == 0; n++)
                look_again();
            says(PAUSE_NONE, true);
            assert_false(frozen || stopped || armed);
        }
}

/* It comes from the parent, and not from the sandbox's first process: it would not be stopped with it. */
static void signals_do_not_do_it_for_walls_of_their_own(void **state)
{
    looks[0] = CLEAN;
    nlooks = 1;
    cells = true;
    ask(7, SPAN("\1"));
    says(PAUSE_NONE, true);
    assert_false(stopped || armed);
    freezer = 2;
    ask(7, SPAN("\1"));
    says(PAUSE_CGROUP_2, false);
    assert_true(frozen);
}

static void what_is_not_there_is_not_paused(void **state)
{
    looks[0] = CLEAN;
    nlooks = 1;
    ask(8, SPAN("\1")); /* it has ended, but for its cgroup */
    ask(9, SPAN("\1"));
    ask(0, SPAN("\1"));
    ask(7, SPAN("\2"));
    ask(7, SPAN(""));
    assert_true(nsaid == 0 && !stopped && !armed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cgroup_that_freezes_does_it, begin, end),
        cmocka_unit_test_setup_teardown(signals_do_it_where_nothing_freezes, begin, end),
        cmocka_unit_test_setup_teardown(what_does_not_stop_is_not_paused, begin, end),
        cmocka_unit_test_setup_teardown(signals_do_not_do_it_for_walls_of_their_own, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_there_is_not_paused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
