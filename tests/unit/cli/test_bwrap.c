/* Nothing of a sandbox that just begins outlives who started it. Bubblewrap is stood in for by this very program,
 * which stands still where the real one cannot be ended any more (sandbox-shim/plan/beside.h). Attack G24. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox-shim/plan/bwrap.h"

enum { PATIENCE_MS = 300000 };

/* --- who stands in for bubblewrap --------------------------------------------- */

/* Its first process says so, and how the shim was to say that it runs, where bubblewrap reports; its second one waits
 * for ever, and nothing binds its life to anybody's. */
static int stand_in(char **argv)
{
    const char *reports = NULL, *wait = "none";
    char line[32];

    for (char **a = argv + 1; *a; a++) {
        if (strcmp(*a, "--json-status-fd") == 0)
            reports = a[1];
        if (strcmp(*a, "--wait") == 0)
            wait = a[1];
    }
    if (!reports)
        return 2;
    pid_t second = fork();
    if (second == 0) {
        for (;;)
            pause();
    }
    int n = snprintf(line, sizeof(line), "%d %s\n", (int)getpid(), wait);
    if (second < 0 || write((int)strtol(reports, NULL, 10), line, (size_t)n) != n)
        return 2;
    for (;;)
        pause();
}

/* --- the tests ---------------------------------------------------------------- */

struct begun {
    pid_t starter, first; /* who started it, and its first process */
    int reports;          /* ends when nobody of it is left */
    bool waits;           /* the shim was told to say that it runs */
};

static struct begun begin(char **cmd)
{
    struct begun b = {0};
    int reports[2], talk[2];
    char line[32] = "";
    size_t n = 0;

    assert_int_equal(pipe2(reports, O_CLOEXEC), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk), 0);
    b.starter = fork();
    assert_true(b.starter >= 0);
    if (b.starter == 0) {
        struct plan p = {.cmd = cmd, .args_fd = STDIN_FILENO};
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
            _exit(1);
        pid_t becomes = fork();
        if (becomes == 0)
            bwrap_become(&(struct bwrap){"/proc/self/exe", "test", reports[1], talk[1], false}, &p);
        close(reports[1]);
        for (;;)
            pause();
    }
    close(reports[1]);
    close(talk[0]);
    close(talk[1]);
    b.reports = reports[0];
    while (memchr(line, '\n', n) == NULL) {
        assert_true(n < sizeof(line) - 1);
        ssize_t got = read(b.reports, line + n, sizeof(line) - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
    }
    b.first = (pid_t)strtol(line, NULL, 10);
    b.waits = strstr(line, "none") == NULL;
    return b;
}

static void nobody_is_left(struct begun *b)
{
    struct pollfd end = {.fd = b->reports, .events = POLLIN};
    char byte;

    assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
    assert_int_equal(read(b->reports, &byte, 1), 0);
    close(b->reports);
    (void)kill(b->starter, SIGKILL);
    assert_int_equal(waitpid(b->starter, NULL, 0), b->starter);
}

static char of_run_word[] = "true";
static char *of_run[] = {of_run_word, NULL};

static void nobody_outlives_who_started_it(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct begun b = begin(i == 0 ? NULL : of_run);
        assert_true(b.waits);
        assert_int_equal(kill(b.starter, SIGKILL), 0);
        nobody_is_left(&b);
    }
}

static void nobody_outlives_its_first_process(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct begun b = begin(i == 0 ? NULL : of_run);
        assert_int_equal(kill(b.first, SIGKILL), 0);
        nobody_is_left(&b);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_outlives_who_started_it),
        cmocka_unit_test(nobody_outlives_its_first_process),
    };

    if (argc > 1 && strcmp(argv[0], "bwrap") == 0)
        return stand_in(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
