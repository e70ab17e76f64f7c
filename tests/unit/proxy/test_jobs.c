/* Programs that the parent starts for roles: each kind for its role alone, so many, and each ended by who had it. */
#include "tests/kit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/msg.h"
#include "proxy/parent/parent.h"

enum { FIRST_PID = 1000000000, FETCHES = 40, VIEWS = 6 };
static struct parent parent;
static struct child fetcher = {.role = ROLE_FETCHER}, desk = {.role = ROLE_DESK};
static const char *started_name;
static char started_uid[64];
static int started, killed;
static unsigned refused;
static uint64_t refused_id;

int parent_execute(struct parent *p, const char *name, int fd, char *const envp[], const struct cgroup *into)
{
    started_name = name;
    (void)snprintf(started_uid, sizeof(started_uid), "%s", envp[0] ? envp[0] : "");
    return FIRST_PID + started++;
}

int chan_send(struct chan *c, uint16_t type, uint64_t id, struct span payload)
{
    assert_int_equal(type, M_JOB_NONE);
    refused++;
    refused_id = id;
    return 0;
}

int frame_take_fd(struct frame *f, unsigned i)
{
    return i < f->nfds ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
}

int __wrap_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo)
{
    killed = -pid;
    return 0;
}

int __wrap_setpgid(pid_t pid, pid_t group);
int __wrap_setpgid(pid_t pid, pid_t group)
{
    return 0;
}

/* --- what is asked ---------------------------------------------------------- */

/* Was it started? */
static bool ask(struct child *of, uint64_t id, unsigned kind)
{
    int before = started;
    uint8_t k = (uint8_t)kind;
    struct frame f = {.type = M_JOB, .id = id, .payload = span_of(&k, 1), .nfds = 1};

    refused = 0;
    parent_job_start(&parent, of, &f);
    assert_true(started > before ? refused == 0 : refused == 1 && refused_id == id);
    return started > before;
}

static void end(struct child *of, uint64_t id)
{
    struct frame f = {.type = M_JOB_END, .id = id};

    killed = 0;
    parent_job_end(&parent, of, &f);
}

static int setup(void **state)
{
    memset(&parent, 0, sizeof(parent));
    parent.uid_base = 62000;
    started = killed = 0;
    return 0;
}

/* --- tests ------------------------------------------------------------------ */

static void each_kind_for_its_role(void **state)
{
    static const char *const names[JOB_KINDS] = {
        [JOB_PROGRAM] = "fetch-program", [JOB_HTTP] = "fetch-http", [JOB_VIEW] = "view-picture",
        [JOB_GATE] = "fetch-program",    [JOB_ASK] = "fetch-http",  [JOB_TELL] = "fetch-http"};

    for (unsigned kind = 0; kind <= JOB_KINDS; kind++) {
        bool known = kind > JOB_NONE && kind < JOB_KINDS, view = kind == JOB_VIEW;
        assert_int_equal(ask(&fetcher, kind, kind), known && !view);
        assert_int_equal(ask(&desk, kind, kind), view);
        if (known && names[kind])
            assert_string_equal(started_name, names[kind]);
    }
    parent.stopping = true;
    assert_false(ask(&desk, 9, JOB_VIEW));
}

/* A user of its own, which is none of a role's, of checkpoints' or of a sandbox's. */
static void a_user_of_its_own(void **state)
{
    char want[64];

    (void)snprintf(want, sizeof(want), "COUNTERSIGN_UID=%d", 62000 + 60 + JOB_VIEW);
    assert_true(ask(&desk, 1, JOB_VIEW));
    assert_string_equal(started_uid, want);
    (void)snprintf(want, sizeof(want), "COUNTERSIGN_UID=%d",
                   62000 + 60 + JOB_GATE); /* not that of those with secrets */
    assert_true(JOB_GATE != JOB_PROGRAM && ask(&fetcher, 2, JOB_GATE));
    assert_string_equal(started_uid, want);
    (void)snprintf(want, sizeof(want), "COUNTERSIGN_UID=%d", 62000 + 60 + JOB_TELL);
    assert_true(JOB_TELL != JOB_HTTP && ask(&fetcher, 3, JOB_TELL));
    assert_string_equal(started_uid, want);
    assert_true(60 + JOB_KINDS <= STORE_USER && 60 > ROLE_COUNT);
}

/* Who has all that it may have takes nothing from another. */
static void so_many_of_each(void **state)
{
    uint64_t n = 0;

    while (n < 100 && ask(&desk, n, JOB_VIEW))
        n++;
    assert_int_equal(n, VIEWS);
    for (n = 0; n < 100 && ask(&fetcher, n, n % 2 ? JOB_HTTP : JOB_PROGRAM);)
        n++;
    assert_int_equal(n, FETCHES);
    assert_true(parent_job_died(&parent, FIRST_PID));
    assert_false(parent_job_died(&parent, FIRST_PID));
    assert_false(ask(&fetcher, n, JOB_HTTP));
    assert_true(ask(&desk, 50, JOB_VIEW));
}

/* The numbers of two roles may be the same. */
static void ended_by_whose_it_is(void **state)
{
    assert_true(ask(&fetcher, 7, JOB_HTTP) && ask(&desk, 7, JOB_VIEW));
    end(&desk, 7);
    assert_int_equal(killed, FIRST_PID + 1);
    end(&fetcher, 7);
    assert_int_equal(killed, FIRST_PID);
    killed = 0;
    parent_jobs_end(&parent, ROLE_DESK); /* it died: what is the fetcher's goes on */
    assert_int_equal(killed, FIRST_PID + 1);
    assert_true(parent_job_died(&parent, FIRST_PID + 1));
    killed = 0;
    parent_jobs_end(&parent, ROLE_DESK);
    assert_int_equal(killed, 0);
    parent_jobs_end(&parent, ROLE_NONE);
    assert_int_equal(killed, FIRST_PID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_kind_for_its_role, setup),
        cmocka_unit_test_setup(a_user_of_its_own, setup),
        cmocka_unit_test_setup(so_many_of_each, setup),
        cmocka_unit_test_setup(ended_by_whose_it_is, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
