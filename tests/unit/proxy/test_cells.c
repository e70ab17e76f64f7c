/* Commands with walls of their own as the parent keeps them: so many of one sandbox, none beside one that stands
 * still without a cgroup, and fronts that take no sandbox's place. */
#include "tests/kit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/msg.h"
#include "proxy/parent/parent.h"
#include "proxy/parent/programs/cells.h"
#include "proxy/parent/programs/stores.h"

enum { FIRST_PID = 1000000000, BOX_PID = 7, BOX = 3 };
static struct parent parent;
static struct child warden, fronts[2 * CELLS_MAX];
static struct config config = {.state_dir = "/state", .sandboxes_max = 2};
static struct dynbuf said;
static char why[400], limits[128];
static unsigned started, spawned, handed;
static void (*knocked)(void *arg, unsigned ready);

/* --- what is around it ------------------------------------------------------------ */

struct child *parent_child(struct parent *p, enum role_id role, uint64_t instance)
{
    assert_int_equal(role, ROLE_WARDEN);
    return &warden;
}

struct child *parent_child_new(struct parent *p, enum role_id role, const char *info)
{
    struct child *c = &fronts[spawned];
    *c = (struct child){.role = role, .parent = p, .chan = (struct chan *)c, .next = p->children};
    (void)snprintf(c->info, sizeof(c->info), "%s", info);
    p->children = c;
    return c;
}

void parent_child_free(struct parent *p, struct child **c)
{
    fail();
}

int parent_spawn(struct parent *p, struct child *c)
{
    spawned++;
    return 0;
}

int parent_execute_in(struct parent *p, int dir, const char *name, int fd, char *const envp[],
                      const struct cgroup *into)
{
    assert_string_equal(name, "start-cell");
    for (char *const *e = envp; *e; e++)
        if (strncmp(*e, "COUNTERSIGN_CELL=", 17) == 0)
            (void)snprintf(limits, sizeof(limits), "%s", *e + 17);
    return FIRST_PID + (int)started++;
}

int parent_first_open(int pid)
{
    assert_int_equal(pid, BOX_PID);
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

struct listener *parent_listener_add(struct parent *p, int fd, unsigned kind, enum role_id role, const char *name)
{
    struct listener *l = &p->listeners[p->nlisteners++ % LISTENERS_MAX];
    *l = (struct listener){.fd = fd, .kind = kind, .role = role, .parent = p};
    (void)snprintf(l->name, sizeof(l->name), "%s", name);
    return l;
}

bool config_sandbox_ok(struct span name)
{
    return name.n > 0;
}

int listen_unix(const char *path, unsigned mode)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int chan_send(struct chan *c, uint16_t type, uint64_t id, struct span payload)
{
    return 0;
}

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    dynbuf_reset(&said);
    return &said;
}

int chan_commit(struct chan *c)
{
    struct msg_in m = msg_in(dynbuf_span(&said));
    struct span words = msg_get_span(&m, sizeof(why) - 1);
    (void)snprintf(why, sizeof(why), "%.*s", SPAN_FMT(words));
    return 0;
}

int chan_commit_fd(struct chan *c, int fd)
{
    handed++;
    return 0;
}

int frame_take_fd(struct frame *f, unsigned i)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

struct watch *watch_new(struct loop *l, int fd, unsigned what, void (*fn)(void *arg, unsigned ready), void *arg)
{
    knocked = fn;
    return (struct watch *)&knocked;
}

void watch_set(struct watch *w, unsigned what)
{
}

void watch_free(struct watch **w)
{
    *w = NULL;
}

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    return (struct timer *)&knocked;
}

void timer_set(struct timer *t, uint64_t ms)
{
}

uint64_t loop_now(const struct loop *l)
{
    return 0;
}

int __wrap_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo)
{
    return 0;
}

/* --- */

static int begin(void **state)
{
    parent = (struct parent){.config = &config,
                             .boxes = {[BOX] = {.pid = BOX_PID, .id = 1, .name = "box", .cgroup = {.n = 1}},
                                       [BOX + 1] = {.pid = BOX_PID, .id = 2, .name = "other"}}};
    warden.chan = (struct chan *)&warden;
    dynbuf_init(&said, 4096);
    started = spawned = handed = 0;
    return 0;
}

static int end(void **state)
{
    parent_cells_end(&parent, 0);
    dynbuf_free(&said);
    return 0;
}

/* Was it started? */
static bool asks(uint64_t id, uint64_t box)
{
    struct dynbuf b;
    unsigned before = started;
    dynbuf_init(&b, 256);
    msg_put_u64(&b, box);
    msg_put_span(&b, SPAN("web"));
    msg_put_u64(&b, 7);
    msg_put_u32(&b, (uint32_t)id);
    msg_put_u64(&b, 256);
    msg_put_u64(&b, 100);
    msg_put_u64(&b, 4096);
    why[0] = '\0';
    parent_cell_start(&parent, &(struct frame){.type = M_CELL, .id = id, .payload = dynbuf_span(&b), .nfds = 1});
    dynbuf_free(&b);
    assert_true((started > before) != (why[0] != '\0'));
    return started > before;
}

static void so_many_of_one_sandbox(void **state)
{
    uint64_t id = 1;
    for (; id <= CELLS_EACH; id++)
        assert_true(asks(id, 1));
    assert_false(asks(id, 1));
    assert_true(strstr(why, "as many") != NULL);
    assert_true(asks(id + 1, 2)); /* another one's are its own */
    parent_cell_end(&parent, &(struct frame){.type = M_CELL_END, .id = 1});
    assert_false(asks(id + 2, 1)); /* it was told to end, and has not */
    assert_true(parent_cell_died(&parent, FIRST_PID));
    assert_true(asks(id + 3, 1));
}

/* Of what it may keep in memory, each has its part where nothing counts that together. */
static void its_part_is_said(void **state)
{
    assert_true(asks(1, 1));
    assert_string_equal(limits, "256 100 4096 1");
    assert_true(asks(2, 2));
    assert_string_equal(limits, "256 100 4096 16");
}

static void none_begins_in_one_that_stands_still_by_signals(void **state)
{
    parent.boxes[BOX].way = PAUSE_SIGNALS;
    assert_false(asks(1, 1));
    parent.boxes[BOX].way = PAUSE_CGROUP_2; /* which it begins frozen in */
    assert_true(asks(2, 1));
}

/* Until it has died, whatever the sandbox's number is by then. */
static void one_that_ends_is_left_until_it_has(void **state)
{
    const struct running_box *b = &parent.boxes[BOX];
    assert_false(parent_cells_left(&parent, b));
    assert_true(asks(1, 1));
    assert_true(parent_cells_left(&parent, b) && !parent_cells_left(&parent, b + 1));
    parent_cells_end(&parent, 0);
    parent.boxes[BOX].id = UINT64_MAX;
    assert_true(parent_cells_left(&parent, b));
    assert_true(parent_cell_died(&parent, FIRST_PID));
    assert_false(parent_cells_left(&parent, b));
}

/* Was its connection given to a front? */
static bool comes_in(const char *sandbox)
{
    struct dynbuf b;
    unsigned before = handed;
    dynbuf_init(&b, 256);
    msg_put_u8(&b, WAY_SOCKS);
    msg_put_u16(&b, 443);
    msg_put_span(&b, span_str(sandbox));
    msg_put_span(&b, SPAN_NONE);
    msg_put_span(&b, SPAN_NONE);
    parent_handover(&parent, &(struct frame){.payload = dynbuf_span(&b), .nfds = 1});
    dynbuf_free(&b);
    return handed > before;
}

static bool knocks(struct listener *l)
{
    unsigned before = handed;
    knocked(l, 1);
    return handed > before;
}

static void its_commands_take_no_sandbox_s_place(void **state)
{
    for (uint64_t id = 1; id <= CELLS_EACH; id++) {
        assert_true(asks(id, 1));
        assert_true(knocks(&parent.listeners[id - 1]));
    }
    assert_true(spawned == CELLS_EACH && comes_in("neighbour") && comes_in("another"));
    assert_false(comes_in("one-too-many"));
    assert_true(comes_in("neighbour") && knocks(&parent.listeners[0])); /* who has one */
    assert_int_equal(spawned, CELLS_EACH + 2);
}

/* Those that leave are counted, so that commands in a hurry have no more. */
static void fronts_of_commands_are_bounded(void **state)
{
    for (uint64_t id = 1; id <= CELLS_MAX + 1; id++) {
        assert_true(asks(id, 1));
        assert_true(knocks(&parent.listeners[id - 1]) == (id <= CELLS_MAX));
        parent_cell_end(&parent, &(struct frame){.type = M_CELL_END, .id = id});
        assert_true(parent_cell_died(&parent, FIRST_PID + (int)id - 1));
    }
    assert_true(comes_in("neighbour"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(so_many_of_one_sandbox, begin, end),
        cmocka_unit_test_setup_teardown(its_part_is_said, begin, end),
        cmocka_unit_test_setup_teardown(none_begins_in_one_that_stands_still_by_signals, begin, end),
        cmocka_unit_test_setup_teardown(one_that_ends_is_left_until_it_has, begin, end),
        cmocka_unit_test_setup_teardown(its_commands_take_no_sandbox_s_place, begin, end),
        cmocka_unit_test_setup_teardown(fronts_of_commands_are_bounded, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
