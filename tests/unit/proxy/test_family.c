/* All that came from a process stands still, whatever it is at, and goes on; nobody else does. */
#include "tests/kit.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/role/family.h"

enum { SPINS, ORPHAN, THREAD, VFORKED, CHAIN, STRANGER, COUNTS, PATIENCE_MS = 20000 };
static atomic_ulong *count; /* of those that run */
static pid_t family, stranger;

/* What is not seen of /proc, by its path, and why; NULL: all of it is. */
static const char *hidden;
static int hidden_why;
static int shown_at;  /* the look at which it is there; 0: at none */
static int unread_at; /* the look at which nothing is */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);

static bool is_hidden(const char *path)
{
    if (hidden == NULL || fnmatch(hidden, path, FNM_PATHNAME) != 0)
        return false;
    errno = hidden_why;
    return true;
}

int __wrap_open(const char *path, int flags, ...)
{
    return is_hidden(path) ? -1 : __real_open(path, flags, 0);
}

DIR *__wrap_opendir(const char *path)
{
    if (unread_at > 0 && strcmp(path, "/proc") == 0 && --unread_at == 0) {
        errno = EMFILE;
        return NULL;
    }
    if (shown_at > 0 && strcmp(path, "/proc") == 0 && --shown_at == 0)
        hidden = NULL;
    return is_hidden(path) ? NULL : __real_opendir(path);
}

static void moment(void)
{
    static const struct timespec t = {.tv_nsec = 5 * 1000 * 1000};
    (void)nanosleep(&t, NULL);
}

static void *spin(void *at)
{
    atomic_ulong *n = at;
    for (;;) {
        atomic_fetch_add(n, 1);
        (void)sched_yield();
    }
    return NULL;
}

static void __attribute__((noreturn)) spins(int which)
{
    (void)spin(&count[which]);
    _exit(1);
}

/* Whose first thread has ended. */
static void __attribute__((noreturn)) be_thread(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, spin, &count[THREAD]) != 0)
        _exit(1);
    pthread_exit(NULL);
}

/* Who waits in the kernel until the other one, which never does, executes something or ends. */
static void __attribute__((noreturn)) be_vforked(void)
{
    if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0)
        spins(VFORKED);
    _exit(1);
}

/* One after the other, each the child of one that ends. */
static void __attribute__((noreturn)) be_chain(void)
{
    for (;;) {
        atomic_fetch_add(&count[CHAIN], 1);
        if (fork() != 0)
            _exit(0);
    }
}

/* A group of its own, so that it is killed as a whole. */
static void __attribute__((noreturn)) be_family(bool chain)
{
    (void)signal(SIGCHLD, SIG_IGN);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || setpgid(0, 0) != 0)
        _exit(1);
    if (chain && fork() == 0)
        be_chain();
    if (fork() == 0)
        spins(SPINS);
    if (fork() == 0) {
        if (fork() == 0)
            spins(ORPHAN);
        _exit(0);
    }
    if (fork() == 0)
        be_thread();
    if (fork() == 0)
        be_vforked();
    for (;;)
        (void)pause();
}

static void counts_grow(int first, int upto)
{
    for (int i = first; i < upto; i++) {
        unsigned long was = atomic_load(&count[i]);
        for (int n = 0; atomic_load(&count[i]) == was; n++) {
            if (n > PATIENCE_MS / 5)
                fail_msg("%d does not run", i);
            moment();
        }
    }
}

static void family_begin(bool chain)
{
    for (int i = 0; i < STRANGER; i++)
        atomic_store(&count[i], 0);
    family = fork();
    assert_true(family >= 0);
    if (family == 0)
        be_family(chain);
}

static int family_end(void **state)
{
    if (family > 0) {
        (void)kill(-family, SIGKILL);
        (void)kill(family, SIGKILL); /* it had no group yet */
        (void)waitpid(family, NULL, 0);
    }
    family = 0;
    return 0;
}

static int begin(void **state)
{
    count = mmap(NULL, COUNTS * sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count == MAP_FAILED || (stranger = fork()) < 0)
        return -1;
    if (stranger == 0)
        spins(STRANGER);
    return 0;
}

static int end(void **state)
{
    (void)kill(stranger, SIGKILL);
    (void)waitpid(stranger, NULL, 0);
    return munmap(count, COUNTS * sizeof(*count));
}

/* False: not in so many rounds. */
static bool stop_all(int rounds)
{
    int clean = 0;
    for (int n = 0; clean < 2 && n < rounds; n++) {
        int rc = family_stop(family);
        assert_true(rc >= 0);
        clean = rc == 1 ? clean + 1 : 0;
        if (rc == 0)
            moment();
    }
    return clean == 2;
}

/* While somebody else goes on. */
static void stands(int upto)
{
    unsigned long was[COUNTS];
    for (int i = 0; i < upto; i++)
        was[i] = atomic_load(&count[i]);
    for (int n = 0; n < 20; n++) {
        counts_grow(STRANGER, COUNTS);
        for (int i = 0; i < upto; i++)
            assert_int_equal(atomic_load(&count[i]), was[i]);
    }
}

static void all_of_it_stands_still_and_goes_on(void **state)
{
    family_begin(false);
    counts_grow(0, CHAIN);
    for (int round = 0; round < 3; round++) {
        assert_true(stop_all(PATIENCE_MS / 5));
        stands(CHAIN);
        assert_int_equal(family_continue(family), 0);
        counts_grow(0, CHAIN);
    }
}

/* Who is always another one by the time it is looked at may not be caught, and then nobody says that it stands. */
static void who_is_not_caught_is_not_said_to_stand(void **state)
{
    family_begin(true);
    counts_grow(0, STRANGER);
    for (int round = 0; round < 5; round++)
        if (stop_all(40))
            stands(STRANGER);
}

/* Nobody is said to stand who cannot be looked at: no descriptor is left, or no memory. */
static void who_is_not_seen_is_not_said_to_stand(void **state)
{
    char other[64];
    const char *const paths[] = {"/proc/*/stat", "/proc/*/task", "/proc/*/task/*/stat", other};
    static const int whys[] = {EMFILE, ENFILE, ENOMEM};
    (void)snprintf(other, sizeof(other), "/proc/%d/stat", (int)stranger);
    family_begin(false);
    counts_grow(0, CHAIN);
    assert_true(stop_all(PATIENCE_MS / 5));
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        for (size_t k = 0; k < sizeof(whys) / sizeof(whys[0]); k++) {
            hidden = paths[i];
            hidden_why = whys[k];
            int rc = family_stop(family);
            hidden = NULL;
            assert_true(rc <= 0);
        }
    assert_true(stop_all(PATIENCE_MS / 5));
}

/* Whom one that stands by now had started meanwhile. */
static void who_is_there_at_the_second_look_alone_runs(void **state)
{
    char path[96], child[64] = "";
    family_begin(false);
    counts_grow(0, CHAIN);
    assert_true(stop_all(PATIENCE_MS / 5));
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)family, (int)family);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%20s", child), 1);
    fclose(f);
    (void)snprintf(path, sizeof(path), "/proc/%s/stat", child);
    hidden = path;
    hidden_why = EACCES;
    shown_at = 2;
    int rc = family_stop(family);
    hidden = NULL;
    shown_at = 0;
    assert_int_equal(rc, 0);
    do { /* all stood, and the look after it could not be made */
        unread_at = 2;
        assert_int_not_equal(family_stop(family), 1);
    } while (unread_at > 0);
    assert_true(stop_all(PATIENCE_MS / 5));
}

/* More time than before, and at least a thread of each that there is. */
static void what_it_uses_is_seen(void **state)
{
    struct family_usage u[2], was;
    pid_t from[2];
    family_begin(false);
    counts_grow(0, CHAIN);
    from[0] = family;
    from[1] = stranger;
    family_usage(from, 2, u);
    was = u[0];
    assert_true(u[1].memory == UINT64_MAX && u[1].pids == UINT64_MAX && u[1].cpu_us == UINT64_MAX);
    assert_true(was.pids >= CHAIN && was.pids < 100 && was.memory > 0 && was.memory != UINT64_MAX);
    for (int n = 0; u[0].cpu_us == was.cpu_us; n++) {
        assert_true(n < PATIENCE_MS / 5);
        moment();
        family_usage(from, 2, u);
    }
    assert_true(u[0].cpu_us > was.cpu_us && u[0].cpu_us != UINT64_MAX);
}

static void who_has_none_is_said(void **state)
{
    assert_int_equal(family_stop(stranger), -1);
    assert_int_equal(family_continue(stranger), -1);
    assert_int_equal(family_stop(0), -1);
    counts_grow(STRANGER, COUNTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_none_is_said),
        cmocka_unit_test_teardown(all_of_it_stands_still_and_goes_on, family_end),
        cmocka_unit_test_teardown(who_is_not_seen_is_not_said_to_stand, family_end),
        cmocka_unit_test_teardown(who_is_there_at_the_second_look_alone_runs, family_end),
        cmocka_unit_test_teardown(what_it_uses_is_seen, family_end),
        cmocka_unit_test_teardown(who_is_not_caught_is_not_said_to_stand, family_end),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
