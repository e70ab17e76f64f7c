/* countersign-fetch-program: run a program that the policy names and answer with what it printed. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/role/role.h"
#include "proxy/fetcher/job/job.h"
#include "proxy/fetcher/job/own_net.h"
#include "proxy/fetcher/job/program.h"
#include "proxy/fetcher/job/gates/verdict.h"

enum { JSON_MEMORY = 8 * 1024 * 1024 };

/* All of it; -1: more than it may print. */
static int read_all(int fd, struct dynbuf *b)
{
    ssize_t n = 1;
    while (n > 0) {
        uint8_t *room = dynbuf_room(b, 4096);
        if (room == NULL)
            return -1;
        do
            n = read(fd, room, 4096);
        while (n < 0 && errno == EINTR);
        if (n > 0)
            dynbuf_grew(b, (size_t)n);
    }
    return n == 0 ? 0 : -1;
}

/* It says what it thinks of a request. */
static void gate(const struct job *j, struct span printed, struct arena *a) __attribute__((noreturn));
static void gate(const struct job *j, struct span printed, struct arena *a)
{
    struct err e = {{0}};
    struct span reason;
    enum gate_said said = verdict_read(printed, a, &reason, &e);
    if (said == GATE_FAILED)
        job_failed(j, "%s", e.text);
    verdict_done(j, said, reason);
}

int main(void)
{
    static struct job j;
    static const struct wall wall = {.calls = WALL_WAIT};
    struct err e = {{0}};
    struct dynbuf printed;
    struct arena a;
    struct span value;
    uint64_t lifetime;
    int pid = -1, out = -1, relay = -1, status = 0;
    role_job_start("fetch-program");
    job_read(&j);
    if (j.ask.nhosts > 0 && own_net_relay(&j, &relay, &e) != 0)
        job_failed(&j, "%s", e.text);
    if (program_start(&j.ask, relay, &pid, &out, &e) != 0)
        job_failed(&j, "%s", e.text);
    if (relay >= 0)
        close(relay);
    role_confine_alone(&wall); /* what is parsed from here on is what the program printed */
    dynbuf_init(&printed, PROGRAM_OUT_MAX);
    arena_init(&a, JSON_MEMORY);
    if (read_all(out, &printed) != 0)
        job_failed(&j, "the program printed more than %d KiB, or it cannot be read", PROGRAM_OUT_MAX / 1024);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            job_failed(&j, "how the program ended cannot be seen");
    if (WIFSIGNALED(status))
        job_failed(&j, "the program was ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        job_failed(
            &j,
            "the program ended with status %d; run it by hand to see why (what it says is not shown, for it may "
            "be the secret)",
            WEXITSTATUS(status));
    if (j.ask.kind == FETCH_GATE)
        gate(&j, dynbuf_span(&printed), &a);
    if (program_value(&j.ask, dynbuf_span(&printed), &a, &value, &lifetime, &e) != 0)
        job_failed(&j, "%s", e.text);
    job_done(&j, value, lifetime, SPAN_NONE);
}
