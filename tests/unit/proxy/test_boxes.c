/* Sandboxes as the parent keeps them, over the end of the warden that asked for them. */
#include "tests/kit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/msg.h"
#include "proxy/extras/kept.h"
#include "proxy/parent/parent.h"
#include "proxy/parent/programs/cells.h"
#include "proxy/parent/programs/stores.h"

enum { FIRST_PID = 1000000000 };
static struct parent parent;
static struct child warden;
static struct dynbuf said;
static unsigned said_type[8], nsaid;
static uint64_t said_id[8];
static char leaf[8][CGROUP_PATH];
static int started, killed[8];
static unsigned nkilled;
static char noted[256]; /* for the audit */
static const char *called = "box";
static bool busy;      /* the cgroups cannot be removed yet */
static bool no_cgroup; /* can be made */
static uid_t user;
static int held_fd;
static const char *image_said;
static char lane_said[64], trust_said[64],
    owned[64]; /* of the last one that was started; whose its listener was made */
static char mounts_said[128], devices_said[128];
static uid_t owner;
static bool no_listener, no_owner; /* can be had */
static unsigned closed;
static void (*resting)(void *arg);

/* --- what is around it ------------------------------------------------------------ */

struct child *parent_child(struct parent *p, enum role_id role, uint64_t instance)
{
    assert_int_equal(role, ROLE_WARDEN);
    return &warden;
}

int parent_execute(struct parent *p, const char *name, int fd, char *const envp[], const struct cgroup *into)
{
    assert_string_equal(name, "start-sandbox");
    image_said = NULL;
    lane_said[0] = trust_said[0] = mounts_said[0] = devices_said[0] = '\0';
    for (char *const *e = envp; *e; e++) {
        if (strncmp(*e, "COUNTERSIGN_IMAGE=", 18) == 0)
            image_said = *e;
        if (strncmp(*e, "COUNTERSIGN_LANE=", 17) == 0)
            (void)snprintf(lane_said, sizeof(lane_said), "%s", *e + 17);
        if (strncmp(*e, "COUNTERSIGN_TRUST=", 18) == 0)
            (void)snprintf(trust_said, sizeof(trust_said), "%s", *e + 18);
        if (strncmp(*e, "COUNTERSIGN_MOUNTS=", 19) == 0)
            (void)snprintf(mounts_said, sizeof(mounts_said), "%s", *e + 19);
        if (strncmp(*e, "COUNTERSIGN_DEVICES=", 20) == 0)
            (void)snprintf(devices_said, sizeof(devices_said), "%s", *e + 20);
    }
    if (image_said)
        assert_string_equal(image_said, "COUNTERSIGN_IMAGE=/state/images/it");
    return FIRST_PID + started++;
}

const char *parent_image_hold(struct parent *p, struct span digest, int *held, char *path, size_t room)
{
    *held = 0;
    if (digest.n == 0)
        return NULL;
    if (!span_eq(digest, SPAN("it")))
        return "it is not there";
    held_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *held = held_fd + 1;
    (void)snprintf(path, room, "/state/images/it");
    return NULL;
}

void parent_stores_end(struct parent *p, uint64_t box)
{
}

void parent_cells_end(struct parent *p, uint64_t box)
{
}

static bool cells; /* one of its commands with walls of its own has not ended yet */

bool parent_cells_left(const struct parent *p, const struct running_box *b)
{
    return cells;
}

int parent_sandbox_bind(struct parent *p, const char *name, const char *path, unsigned kind,
                        const struct config_listener *conf, struct err *e)
{
    assert_true(kind == LISTEN_STEPS && conf == NULL);
    if (no_listener)
        return err_set(e, "it has one");
    struct listener *l = &p->listeners[p->nlisteners++];
    *l = (struct listener){.fd = 3, .role = ROLE_FRONT};
    (void)snprintf(l->name, sizeof(l->name), "%s", name);
    return 0;
}

void parent_sandbox_close(struct parent *p, struct span name)
{
    closed++;
    for (size_t i = 0; i < p->nlisteners; i++)
        if (span_eq(span_str(p->listeners[i].name), name))
            p->listeners[i].fd = -1;
}

int __wrap_chown(const char *path, uid_t uid, gid_t gid);
int __wrap_chown(const char *path, uid_t uid, gid_t gid)
{
    assert_int_equal(uid, gid);
    (void)snprintf(owned, sizeof(owned), "%s", path);
    owner = uid;
    return no_owner ? -1 : 0;
}

void parent_note(struct parent *p, const char *kind, struct dynbuf *json)
{
    assert_true(dynbuf_ok(json));
    (void)snprintf(noted, sizeof(noted), "%.*s", SPAN_FMT(dynbuf_span(json)));
}

bool cgroup_make(struct cgroup *c, const char *proc, const char *name, const struct cgroup_amounts *a)
{
    (void)snprintf(leaf[started], CGROUP_PATH, "%s", name);
    c->n = !no_cgroup;
    return !no_cgroup;
}

bool cgroup_try_end(struct cgroup *c)
{
    return !busy;
}

void cgroup_end(struct cgroup *c)
{
}

void cgroup_sweep(const char *proc, const char *prefix)
{
}

unsigned cgroup_version(const struct cgroup *c)
{
    return 1;
}

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    assert_true(nsaid < 8);
    said_type[nsaid] = type;
    said_id[nsaid++] = id;
    dynbuf_reset(&said);
    return &said;
}

int chan_commit(struct chan *c)
{
    return 0;
}

int frame_take_fd(struct frame *f, unsigned i)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    resting = fn;
    return (struct timer *)&resting;
}

void timer_set(struct timer *t, uint64_t ms)
{
}

int __wrap_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo)
{
    assert_int_equal(signo, SIGKILL);
    if (nkilled < 8)
        killed[nkilled++] = pid;
    return 0;
}

uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return user;
}

int __wrap_setpgid(pid_t pid, pid_t group);
int __wrap_setpgid(pid_t pid, pid_t group)
{
    return 0;
}

/* --- */

static struct span extras_asked; /* of the next one */

static void ask_for_all(uint64_t id, bool strict, struct span digest, bool lane)
{
    struct dynbuf b;
    dynbuf_init(&b, 1024);
    msg_put_span(&b, span_str(called));
    for (int i = 0; i < 4; i++)
        msg_put_u64(&b, 100); /* generation, memory, processes, percent */
    msg_put_u8(&b, strict);
    msg_put_span(&b, digest);
    msg_put_u8(&b, lane);
    msg_put_span(&b, extras_asked);
    parent_box_start(&parent, &(struct frame){.type = M_BOX, .id = id, .payload = dynbuf_span(&b), .nfds = 1});
    dynbuf_free(&b);
}

static void ask_for_with(uint64_t id, bool strict, struct span digest)
{
    ask_for_all(id, strict, digest, false);
}

static void ask_for(uint64_t id)
{
    ask_for_with(id, true, SPAN_NONE);
}

static void a_warden_is_told_of_its_own_sandboxes_alone(void **state)
{
    static struct config config = {.state_dir = "/state"};
    parent = (struct parent){.config = &config, .boot = "boot"};
    warden.chan = (struct chan *)&warden;
    dynbuf_init(&said, 4096);
    busy = true;
    ask_for(1);
    assert_true(nsaid == 1 && said_type[0] == M_BOX_STARTED && said_id[0] == 1);
    parent_boxes_end(&parent, "the warden ended");
    assert_true(nkilled == 1 && killed[0] == -FIRST_PID);
    assert_true(parent_box_died(&parent, FIRST_PID)); /* and its cgroup is there still */
    nsaid = nkilled = 0;
    ask_for(1); /* the next warden counts from 1 again */
    assert_true(nsaid == 1 && said_type[0] == M_BOX_STARTED && said_id[0] == 1);
    assert_string_not_equal(leaf[0], leaf[1]);
    busy = false;
    cells = true;
    nsaid = 0;
    resting(&parent);
    assert_true(parent.boxes[0].id != 0 && nsaid == 0); /* who is its user still is nobody else's */
    cells = false;
    resting(&parent); /* what is left of the first one ends */
    assert_int_equal(parent.boxes[0].id, 0);
    for (unsigned i = 0; i < nsaid; i++)
        assert_false(said_type[i] == M_BOX_GONE && said_id[i] == 1);
    parent_box_end(&parent, &(struct frame){.type = M_BOX_END, .id = 1});
    assert_true(nkilled == 1 && killed[0] == -(FIRST_PID + 1));
    nsaid = 0;
    assert_true(parent_box_died(&parent, FIRST_PID + 1));
    assert_true(nsaid == 1 && said_type[0] == M_BOX_GONE && said_id[0] == 1);
    dynbuf_free(&said);
}

/* With the warden ends one that waits, which is nobody's loss; and one that was given away, which is. */
static void one_that_waits_is_written_down_when_it_is_somebody_s(void **state)
{
    static struct config config = {.state_dir = "/state"};
    struct dynbuf b;
    dynbuf_init(&said, 4096);
    for (int given = 0; given < 2; given++) {
        parent = (struct parent){.config = &config, .boot = "boot"};
        started = 0;
        nsaid = nkilled = 0;
        noted[0] = '\0';
        called = "";
        ask_for(1);
        called = "box";
        assert_true(nsaid == 1 && said_type[0] == M_BOX_STARTED);
        dynbuf_init(&b, 128);
        msg_put_span(&b, SPAN("mine"));
        msg_put_u64(&b, 9);
        parent_box_claimed(&parent,
                           &(struct frame){.type = M_BOX_CLAIMED, .id = given ? 1 : 2, .payload = dynbuf_span(&b)});
        dynbuf_free(&b);
        parent_boxes_end(&parent, "the warden ended");
        assert_int_equal(nkilled, 1);
        assert_string_equal(noted,
                            given ? "{\"sandbox\":\"mine\",\"generation\":9,\"why\":\"the warden ended\"}" : "");
    }
    dynbuf_free(&said);
}

/* Its process may end before its warden does and hear of that: who is left writes it down, once. */
static void what_a_warden_did_not_order_is_written_down(void **state)
{
    static struct config config = {.state_dir = "/state"};
    dynbuf_init(&said, 4096);
    for (int ordered = 0; ordered < 2; ordered++) {
        parent = (struct parent){.config = &config, .boot = "boot"};
        started = 0;
        nsaid = nkilled = 0;
        noted[0] = '\0';
        ask_for(1);
        assert_true(parent_box_died(&parent, FIRST_PID));
        assert_true(nsaid == 2 && said_type[1] == M_BOX_GONE && said_id[1] == 1);
        ask_for(2);
        assert_true(parent_box_died(&parent, FIRST_PID + 1)); /* and the first one is not told again */
        assert_true(nsaid == 4 && said_id[3] == 2);
        parent_box_end(&parent, &(struct frame){.type = M_BOX_END, .id = 2});
        assert_int_equal(parent.boxes[1].id, 0);
        assert_int_equal(parent.boxes[0].id, 1);
        if (ordered)
            parent_box_end(&parent, &(struct frame){.type = M_BOX_END, .id = 1});
        parent_boxes_end(&parent, "the warden ended");
        assert_string_equal(noted,
                            ordered ? "" : "{\"sandbox\":\"box\",\"generation\":100,\"why\":\"the warden ended\"}");
        assert_int_equal(parent.boxes[0].id, 0);
        noted[0] = '\0';
        parent_boxes_end(&parent, "the gateway ended");
        assert_string_equal(noted, "");
    }
    dynbuf_free(&said);
}

/* Without a cgroup processes are counted for their user: who is root everywhere is not counted at all. */
static void what_nothing_holds_does_not_start(void **state)
{
    static struct config config = {.state_dir = "/state"};
    static const struct {
        uid_t user;
        int uid_base;
        bool strict, starts;
    } cases[] = {{0, 0, false, false}, {0, 62000, false, true}, {1000, 0, false, true}, {0, 62000, true, false}};
    dynbuf_init(&said, 4096);
    no_cgroup = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parent = (struct parent){.config = &config, .boot = "boot", .uid_base = cases[i].uid_base};
        user = cases[i].user;
        nsaid = 0;
        ask_for_with(1, cases[i].strict, SPAN_NONE);
        assert_int_equal(nsaid, 1);
        assert_int_equal(said_type[0], cases[i].starts ? M_BOX_STARTED : M_BOX_NONE);
    }
    no_cgroup = false;
    dynbuf_free(&said);
}

/* Nobody can remove it meanwhile: also not between its end and that of its last process. */
static void an_image_is_held_as_long_as_its_sandbox_is_there(void **state)
{
    static struct config config = {.state_dir = "/state"};
    parent = (struct parent){.config = &config, .boot = "boot", .uid_base = 62000};
    dynbuf_init(&said, 4096);
    nsaid = 0;
    started = 0;
    ask_for_with(1, true, SPAN("gone"));
    assert_true(nsaid == 1 && said_type[0] == M_BOX_NONE && started == 0);
    ask_for_with(1, true, SPAN("it"));
    assert_true(nsaid == 2 && said_type[1] == M_BOX_STARTED && image_said != NULL);
    busy = true;
    parent_box_end(&parent, &(struct frame){.type = M_BOX_END, .id = 1});
    assert_true(parent_box_died(&parent, FIRST_PID));
    assert_int_not_equal(fcntl(held_fd, F_GETFD), -1);
    busy = false;
    resting(&parent);
    assert_int_equal(fcntl(held_fd, F_GETFD), -1);
    no_cgroup = true;
    ask_for_with(2, true, SPAN("it")); /* held, and then not started */
    assert_int_equal(fcntl(held_fd, F_GETFD), -1);
    no_cgroup = false;
    ask_for(3);
    assert_null(image_said);
    dynbuf_free(&said);
}

static unsigned open_lanes(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < parent.nlisteners; i++)
        n += parent.listeners[i].fd >= 0 && parent.listeners[i].lane;
    return n;
}

/* Attack G25: nobody else's user gets to it, and the next sandbox of the name has another one. */
static void a_lane_is_its_sandbox_s_own_and_ends_with_it(void **state)
{
    static struct config config = {.state_dir = "/state"};
    parent = (struct parent){.config = &config, .boot = "boot", .uid_base = 62000};
    dynbuf_init(&said, 4096);
    nsaid = nkilled = closed = 0;
    started = 0;
    ask_for(1);
    assert_true(lane_said[0] == '\0' && trust_said[0] == '\0' && open_lanes() == 0 && owner == 0);
    ask_for_all(2, true, SPAN_NONE, true);
    assert_string_equal(lane_said, "/state/run/sb-box.sock");
    assert_string_equal(trust_said, "/state");
    assert_string_equal(owned, lane_said);
    assert_int_equal(owner, 62000 + BOX_USERS + 1);
    assert_int_equal(open_lanes(), 1);
    busy = true;
    parent_box_end(&parent, &(struct frame){.type = M_BOX_END, .id = 2}); /* at once, whenever it is gone */
    assert_true(open_lanes() == 0 && closed == 1);
    ask_for_all(3, true, SPAN_NONE, true);
    assert_int_equal(open_lanes(), 1);
    assert_true(parent_box_died(&parent, FIRST_PID + 1));
    assert_true(open_lanes() == 1 && closed == 1); /* which is the next one's */
    assert_true(parent_box_died(&parent, FIRST_PID + 2));
    assert_true(open_lanes() == 0 && closed == 2);
    ask_for_all(4, true, SPAN_NONE, true);
    parent_boxes_end(&parent, "the warden ended");
    assert_true(open_lanes() == 0 && closed == 3);
    parent.uid_base = 0; /* everybody is the gateway's own user */
    owned[0] = '\0';
    user = 1000;
    ask_for_all(5, true, SPAN_NONE, true);
    assert_true(open_lanes() == 1 && owned[0] == '\0');
    busy = false;
    user = 0;
    dynbuf_free(&said);
}

static void without_its_lane_it_does_not_start(void **state)
{
    static struct config config = {.state_dir = "/state"};
    dynbuf_init(&said, 4096);
    for (int i = 0; i < 3; i++) {
        parent = (struct parent){.config = &config, .boot = "boot", .uid_base = 62000};
        for (; i == 2 && parent.nlisteners < LANES_MAX; parent.nlisteners++)
            parent.listeners[parent.nlisteners] = (struct listener){.fd = 3, .lane = true, .name = "other"};
        unsigned before = open_lanes();
        no_listener = i == 0;
        no_owner = i == 1;
        nsaid = closed = 0;
        started = 0;
        ask_for_all(1, true, SPAN_NONE, true);
        assert_true(nsaid == 1 && said_type[0] == M_BOX_NONE && started == 0 && open_lanes() == before);
        assert_int_equal(closed, i == 1);
        parent_boxes_end(&parent, "the warden ended"); /* and nobody else's is taken for its own */
        assert_int_equal(closed, i == 1);
    }
    no_listener = no_owner = false;
    dynbuf_free(&said);
}

static unsigned asked_with(uint64_t id, const struct wire_extras *x)
{
    struct dynbuf b;
    dynbuf_init(&b, EXTRAS_BYTES_MAX);
    wire_put_extras(&b, x);
    extras_asked = dynbuf_span(&b);
    nsaid = 0;
    ask_for(id);
    extras_asked = SPAN_NONE;
    dynbuf_free(&b);
    assert_int_equal(nsaid, 1);
    return said_type[0];
}

/* Whoever asks and however it ends, a device is one sandbox's as long as anything of that is left. */
static void a_device_is_one_sandbox_s_until_nothing_of_it_is_left(void **state)
{
    static struct config config = {.state_dir = "/state",
                                   .pool = {{.name = "gpu",
                                             .node = {"/dev/null", "/dev/zero", "/dev/full"},
                                             .nnodes = 3,
                                             .with = {"/dev/random"},
                                             .nwith = 1,
                                             .most = 2,
                                             .whose = {.tenant = {"acme", "beta"}, .n = 2}}},
                                   .npools = 1};
    struct wire_extras one = {.tenant = SPAN("acme"), .device = {{SPAN("gpu"), 1}}, .ndevices = 1}, other = one,
                       two = one;
    other.tenant = SPAN("beta");
    two.device[0].count = 2;
    parent = (struct parent){.config = &config, .boot = "boot", .uid_base = 62000};
    dynbuf_init(&said, 4096);
    started = 0;
    busy = true;
    assert_int_equal(asked_with(1, &one), M_BOX_STARTED);
    assert_string_equal(devices_said, "/dev/null\n/dev/random\n");
    assert_int_equal(asked_with(2, &two), M_BOX_NONE); /* more than that tenant may have */
    assert_int_equal(asked_with(3, &one), M_BOX_STARTED);
    assert_string_equal(devices_said, "/dev/zero\n/dev/random\n");
    assert_int_equal(asked_with(4, &one), M_BOX_NONE);
    other.device[0].count = 2;
    assert_int_equal(asked_with(5, &other), M_BOX_NONE); /* one is free */
    other.device[0].count = 1;
    assert_int_equal(asked_with(6, &other), M_BOX_STARTED);
    assert_string_equal(devices_said, "/dev/full\n/dev/random\n");
    assert_true(parent_box_died(&parent, FIRST_PID)); /* and its cgroup is there still */
    assert_int_equal(asked_with(7, &one), M_BOX_NONE);
    parent_boxes_end(&parent, "the warden ended");
    assert_int_equal(asked_with(1, &one), M_BOX_NONE);
    busy = false;
    resting(&parent);
    assert_int_equal(asked_with(1, &two), M_BOX_NONE); /* the other one of that tenant runs */
    assert_int_equal(asked_with(1, &one), M_BOX_STARTED);
    assert_string_equal(devices_said, "/dev/null\n/dev/random\n");
    assert_true(
        parent_box_died(&parent, FIRST_PID + started - 1)); /* and whoever is to write that down has not yet */
    assert_int_equal(asked_with(8, &one), M_BOX_STARTED);
    one.tenant = SPAN("gamma");
    assert_int_equal(asked_with(9, &one), M_BOX_NONE);
    snprintf(config.pool[0].node[0], CONFIG_NODE, "/proc/self/status");
    one.tenant = SPAN("beta");
    assert_int_equal(asked_with(9, &one), M_BOX_NONE);
    dynbuf_free(&said);
}

static void a_directory_is_its_tenants(void **state)
{
    static struct config config = {
        .state_dir = "/state",
        .mount = {{.name = "rules", .path = "/srv/r", .whose = {.tenant = {"acme"}, .n = 1}}},
        .nmounts = 1};
    struct wire_extras x = {.tenant = SPAN("acme"), .mount = {{SPAN("rules"), SPAN("/mnt/r")}}, .nmounts = 1};
    parent = (struct parent){.config = &config, .boot = "boot", .uid_base = 62000};
    dynbuf_init(&said, 4096);
    started = 0;
    assert_int_equal(asked_with(1, &x), M_BOX_STARTED);
    assert_string_equal(mounts_said, "r /mnt/r /srv/r\n");
    static const char *const bad[] = {"/mnt",         "/mnt/",          "/mnt/../etc",        "/mnt/a//b",
                                      "/etc/x",       "/mnt/a b",       "/mnt/a\nr /mnt/b /", "mnt/a",
                                      "/home/agent/", "/home/agent/..", "/workspace/x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        x.mount[0].at = span_str(bad[i]);
        assert_int_equal(asked_with(2, &x), M_BOX_NONE);
    }
    x.mount[0].at = SPAN("/home/agent/.cache/r");
    assert_int_equal(asked_with(2, &x), M_BOX_STARTED);
    x.tenant = SPAN("acm");
    assert_int_equal(asked_with(3, &x), M_BOX_NONE);
    x = (struct wire_extras){.tenant = SPAN("acme"), .mount = {{SPAN("other"), SPAN("/mnt/r")}}, .nmounts = 1};
    assert_int_equal(asked_with(3, &x), M_BOX_NONE);
    dynbuf_free(&said);
}

/* One tenant's directories are so many, and stand in nobody's way. */
static void a_neighbour_s_directories_are_no_matter(void **state)
{
    char dir[] = "/tmp/cs-kept-XXXXXX", key[KEPT_KEY_MAX + 1], line[64];
    struct err e;
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i <= KEPT_OF_TENANT; i++) {
        (void)snprintf(key, sizeof(key), "work@acme@%032x", (unsigned)i);
        int fd = kept_hold(dir, key, &e);
        assert_int_equal(fd >= 0, i < KEPT_OF_TENANT);
        if (fd >= 0)
            close(fd);
    }
    int fd = kept_hold(dir, "work@globex", &e);
    assert_true(fd >= 0);
    close(fd);
    (void)snprintf(line, sizeof(line), "rm -rf %s", dir);
    assert_int_equal(system(line), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_warden_is_told_of_its_own_sandboxes_alone),
        cmocka_unit_test(one_that_waits_is_written_down_when_it_is_somebody_s),
        cmocka_unit_test(what_a_warden_did_not_order_is_written_down),
        cmocka_unit_test(what_nothing_holds_does_not_start),
        cmocka_unit_test(an_image_is_held_as_long_as_its_sandbox_is_there),
        cmocka_unit_test(a_lane_is_its_sandbox_s_own_and_ends_with_it),
        cmocka_unit_test(without_its_lane_it_does_not_start),
        cmocka_unit_test(a_device_is_one_sandbox_s_until_nothing_of_it_is_left),
        cmocka_unit_test(a_directory_is_its_tenants),
        cmocka_unit_test(a_neighbour_s_directories_are_no_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
