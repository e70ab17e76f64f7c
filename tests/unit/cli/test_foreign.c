/* What a sandbox names, says and lists, at the person's end: a terminal is not told anything by it, and a list that
 * has no end is not read without end. The test plays the gateway. */
#include "tests/kit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/verb.h"
#include "cli/verbs/started/files.h"
#include "cli/verbs/started/follow.h"
#include "sandbox-shim/inside/shim_tree.h"

static char top[] = "/tmp/test_foreign.XXXXXX", sock[64];
static char seen[16 * 1024]; /* what was printed */
static size_t nseen;

/* Options of a command line: none. */
const char *cli_value(const struct cli_call *c, const char *name)
{
    return NULL;
}

bool cli_flag(const struct cli_call *c, const char *name)
{
    return false;
}

static int begin(void **state)
{
    memcpy(top + strlen(top) - 6, "XXXXXX", 6);
    if (!mkdtemp(top))
        return -1;
    (void)snprintf(sock, sizeof(sock), "%s/control.sock", top);
    return 0;
}

static int finish(void **state)
{
    char line[128];
    (void)snprintf(line, sizeof(line), "rm -rf %s", top);
    return system(line);
}

/* A gateway that answers so many calls with this, whatever they are, and ends. */
static pid_t gateway(unsigned calls, const char *type, const char *answer)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char text[4096];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", sock);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    pid_t pid = fork();
    if (pid != 0) {
        close(fd);
        return pid;
    }
    int n = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s", type,
                     strlen(answer), answer);
    for (; calls > 0; calls--) {
        char head[4096];
        int c = accept(fd, NULL, NULL);
        if (c < 0 || recv(c, head, sizeof(head), 0) <= 0 || send(c, text, (size_t)n, MSG_NOSIGNAL) != n)
            _exit(1);
        (void)shutdown(c, SHUT_WR);
        while (recv(c, head, sizeof(head), 0) > 0)
            ;
        close(c);
    }
    _exit(0);
}

static void gateway_end(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* What is printed on `fd` meanwhile goes to a terminal, and from there to `seen`. */
static int master, before;

static void watch(int fd)
{
    master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    (void)fflush(NULL);
    before = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    assert_true(slave >= 0 && before >= 0 && dup2(slave, fd) == fd);
    close(slave);
    assert_int_equal(fcntl(master, F_SETFL, O_NONBLOCK), 0);
}

static void watched(int fd)
{
    ssize_t n;
    (void)fflush(NULL);
    nseen = 0;
    while ((n = read(master, seen + nseen, sizeof(seen) - 1 - nseen)) > 0)
        nseen += (size_t)n;
    seen[nseen] = '\0';
    assert_int_equal(dup2(before, fd), fd);
    close(before);
    close(master);
}

static bool has(const char *words)
{
    return span_find(span_of(seen, nseen), span_str(words)) < nseen;
}

static void a_name_in_a_tree_is_shown_and_not_obeyed(void **state)
{
    static const char name[] = "\033[2J";
    const struct remote to = {.name = "box", .path = "."};
    struct gateway_call g = {0};
    int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char from[64];
    for (int i = 0; i <= TREE_DEPTH_MAX + 1; i++) {
        assert_int_equal(mkdirat(dir, i == 0 ? "from" : name, 0700), 0);
        int next = openat(dir, i == 0 ? "from" : name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(dir);
        dir = next;
    }
    close(dir);
    (void)snprintf(from, sizeof(from), "%s/from", top);
    (void)snprintf(g.sock, sizeof(g.sock), "%s", sock);
    pid_t pid = gateway(1, "application/json", "{}");
    watch(STDERR_FILENO);
    int rc = tree_up(&g, from, &to);
    watched(STDERR_FILENO);
    gateway_end(pid);
    assert_int_equal(rc, CLI_RUNTIME);
    assert_true(has("cannot read "));
    assert_true(has("/\\u{1b}[2J/"));
    assert_false(has("\033"));
}

/* Nobody reads one there, and a name or a file in it may be meant for the terminal. */
static void a_tar_stream_is_nothing_for_a_terminal(void **state)
{
    const struct remote from = {.name = "box", .path = "."};
    struct gateway_call g = {0};
    (void)snprintf(g.sock, sizeof(g.sock), "%s", sock);
    pid_t pid = gateway(1, "application/x-tar", "\033[2J");
    watch(STDOUT_FILENO);
    int rc = tree_down(&g, &from, NULL, NULL);
    watched(STDOUT_FILENO);
    gateway_end(pid);
    assert_int_equal(rc, CLI_USAGE);
    assert_int_equal(nseen, 0);
}

static void why_a_command_ended_is_shown_and_not_obeyed(void **state)
{
    struct follow f = {.sock = sock, .json = true};
    pid_t pid = gateway(1, "text/event-stream",
                        "event: exit\ndata: {\"how\":\"lost\",\"why\":\"a\302\233b\342\200\256c\"}\n\n");
    watch(STDOUT_FILENO);
    int rc = follow_run(&f, "/api/v1/sandboxes/box/exec", SPAN("{}"));
    watched(STDOUT_FILENO);
    gateway_end(pid);
    assert_int_equal(rc, EXIT_LOST);
    assert_true(has("{\"event\":\"exit\",\"data\":{\"how\":\"lost\",\"why\":\"a\\u009bb\\u202ec\"}}"));
}

static void why_the_gateway_refuses_is_shown_and_not_obeyed(void **state)
{
    struct err e;
    (void)api_explain(409, SPAN("{\"detail\":\"a\\u009bb\\u202ec\\nd\\u001be\\u00e9\"}"), &e);
    assert_string_equal(e.text, "a\\u{9b}b\\u{202e}c\\nd\\u{1b}e\303\251");
}

/* Each page is as the first: what is behind it cannot be asked for. */
static void a_list_that_repeats_itself_is_left(void **state)
{
    static char word[] = "box:.";
    char *words[] = {word};
    const struct cli_call c = {.word = words, .nwords = 1, .state_dir = top, .json = true};
    pid_t pid = gateway(8, "application/json",
                        "{\"entries\":[{\"name\":\"a\",\"kind\":\"file\",\"mode\":\"0644\",\"size\":1,\"mtime\":1}],"
                        "\"more\":true}");
    watch(STDERR_FILENO);
    int rc = sandbox_ls(&c);
    watched(STDERR_FILENO);
    gateway_end(pid);
    assert_int_equal(rc, CLI_RUNTIME);
    assert_true(has("listed before"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_name_in_a_tree_is_shown_and_not_obeyed, begin, finish),
        cmocka_unit_test_setup_teardown(a_tar_stream_is_nothing_for_a_terminal, begin, finish),
        cmocka_unit_test_setup_teardown(why_a_command_ended_is_shown_and_not_obeyed, begin, finish),
        cmocka_unit_test_setup_teardown(why_the_gateway_refuses_is_shown_and_not_obeyed, begin, finish),
        cmocka_unit_test_setup_teardown(a_list_that_repeats_itself_is_left, begin, finish),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
