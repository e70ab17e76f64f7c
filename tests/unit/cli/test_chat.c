/* What approves a request in countersign chat: a line that was typed at the question, on a terminal, and nothing
 * else. */
#include "cli/verbs/chat.c" /* first: cmocka has a macro of a name in it */

#include <stdlib.h>
#include <sys/ioctl.h>

#include "tests/kit.h"

enum { NOTHING = 0, SHOWN = 1, APPROVED = 2, DENIED = 4, SAID_MAX = 16 * 1024, WAIT_MS = 60 * 1000 };
#define QUESTION "--- approve it? [y/N]\033[0m "

static unsigned done;
static int show_ends = CLI_OK;

/* --- instead of the rest of the program --------------------------------------------------------- */

static int shows(const struct cli_call *c)
{
    done |= SHOWN;
    printf("POST /ok\n");
    return show_ends;
}

static int approves(const struct cli_call *c)
{
    done |= APPROVED;
    return CLI_OK;
}

static int denies(const struct cli_call *c)
{
    done |= DENIED;
    return CLI_OK;
}

const struct cli_verb *cli_find(int argc, char **argv, int *used)
{
    static const struct cli_verb verbs[] = {
        {.name = "show", .fn = shows}, {.name = "approve", .fn = approves}, {.name = "deny", .fn = denies}};
    for (size_t i = 0; argc == 2 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return &verbs[i];
    return NULL;
}

const char *cli_value(const struct cli_call *c, const char *name)
{
    return NULL;
}

bool cli_flag(const struct cli_call *c, const char *name)
{
    return false;
}

int api_call(const char *sock, const char *method, const char *path, struct span body, unsigned *status,
             struct dynbuf *answer, struct err *e)
{
    dynbuf_init(answer, 0);
    return -1; /* it waits on */
}

int api_stream(const char *sock, const char *path, const char *last_id, api_event_fn *fn, void *ctx, struct err *e)
{
    return -1;
}

int api_explain(unsigned status, struct span answer, struct err *e)
{
    return -1;
}

int api_running(const char *sock, struct err *e)
{
    return 0;
}

int verb_begin(struct gateway_call *g, const struct cli_call *c)
{
    return CLI_OK;
}

void verb_end(struct gateway_call *g)
{
}

int verb_fail(int code, const char *fmt, ...)
{
    return code;
}

void print_text(struct span s)
{
}

void print_json_line(struct span s)
{
}

struct span member_text(const struct json *j, const char *key)
{
    return SPAN_NONE;
}

uint64_t member_u64(const struct json *j, const char *key)
{
    return 0;
}

const char *time_text(uint64_t ms, char out[32])
{
    return "-";
}

/* --- a person at a terminal ---------------------------------------------------------------------- */

/* A process of its own, whose terminal this is: it asks, and ends with what was done. */
static void asks(const char *terminal)
{
    static char id[] = "00000000000000000000000000";
    static const struct cli_call call;
    struct chat c = {.c = &call, .conversation = "x"};
    int fd, turns = memfd_create("turns", MFD_CLOEXEC);
    if (setsid() < 0 || (fd = open(terminal, O_RDWR)) < 0 || turns < 0 || dup2(fd, 0) < 0 || dup2(fd, 1) < 0)
        _exit(99);
    c.turns = turns;
    ask_person(&c, id);
    _exit((int)done);
}

/* What was typed ahead, and then, at the question; NULL: the terminal hangs up there. What was done. */
static unsigned typed(const char *ahead, const char *then)
{
    static char said[SAID_MAX];
    size_t n = 0;
    int status = 0, master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    char terminal[64];
    assert_int_equal(ptsname_r(master, terminal, sizeof(terminal)), 0);
    int held = open(terminal, O_RDWR | O_NOCTTY | O_CLOEXEC); /* what is typed ahead is kept for who opens it */
    assert_true(held >= 0);
    assert_int_equal(write(master, ahead, strlen(ahead)), strlen(ahead));
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(master); /* or it would never be hung up */
        (void)alarm(WAIT_MS / 1000);
        asks(terminal);
    }
    close(held);
    struct pollfd p = {.fd = master, .events = POLLIN};
    bool answered = false;
    while (poll(&p, 1, WAIT_MS) == 1) {
        ssize_t got = n < sizeof(said) - 1 ? read(master, said + n, sizeof(said) - 1 - n) : -1;
        if (got <= 0) /* it has ended */
            break;
        n += (size_t)got;
        said[n] = '\0';
        if (answered || strstr(said, QUESTION) == NULL)
            continue;
        answered = true;
        if (then == NULL)
            break;
        assert_int_equal(write(master, then, strlen(then)), strlen(then));
    }
    close(master);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        return NOTHING; /* it was hung up */
    return (unsigned)WEXITSTATUS(status);
}

static void only_a_yes_at_the_question_approves(void **state)
{
    assert_int_equal(typed("", "y\n"), SHOWN | APPROVED);
    assert_int_equal(typed("", "yes\n"), SHOWN | APPROVED);
    assert_int_equal(typed("", "yes, why not\n"), SHOWN | DENIED);
    assert_int_equal(typed("", "Y\n"), SHOWN | DENIED);
    assert_int_equal(typed("", "y y\n"), SHOWN | DENIED);
    assert_int_equal(typed("", "\n"), SHOWN | DENIED);
    assert_int_equal(typed("y\nyes\n", "n\n"), SHOWN | DENIED);
    assert_int_equal(typed("y", "n\n"), SHOWN | DENIED);
    assert_int_equal(typed("n\n", "y\n"), SHOWN | APPROVED);
    assert_int_equal(typed("y\n", NULL) & APPROVED, NOTHING);
}

static void what_was_not_shown_is_not_asked(void **state)
{
    show_ends = CLI_RUNTIME;
    assert_int_equal(typed("y\n", "y\n"), SHOWN);
    show_ends = CLI_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_a_yes_at_the_question_approves),
                                       cmocka_unit_test(what_was_not_shown_is_not_asked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
