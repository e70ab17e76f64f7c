#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox-shim/inside/diff/shim_diff.h"

enum { WORDS_MAX = 64, ENV_MAX = 48 };

static const char *environment[ENV_MAX + 1];
static char protocol[64];

/* Whom to trust and by what way stands in the sandbox's own variables; nothing else of them is git's to read. */
static bool is_of_way(const char *v)
{
    static const char *const names[] = {
        "http_proxy=", "https_proxy=",   "HTTP_PROXY=",     "HTTPS_PROXY=",    "no_proxy=",  "NO_PROXY=",
        "PATH=",       "SSL_CERT_FILE=", "GIT_SSL_CAINFO=", "CURL_CA_BUNDLE=", "ALL_PROXY=", "all_proxy="};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(v, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

void git_begin(const char *scheme)
{
    static const char *const own[] = {"HOME=/nonexistent",
                                      "LC_ALL=C",
                                      "GIT_DIR=/workspace/repository",
                                      "GIT_CONFIG_NOSYSTEM=1",
                                      "GIT_CONFIG_SYSTEM=/dev/null",
                                      "GIT_CONFIG_GLOBAL=/dev/null",
                                      "GIT_ATTR_NOSYSTEM=1",
                                      "GIT_TERMINAL_PROMPT=0",
                                      "GIT_ASKPASS=/bin/false",
                                      "GIT_NO_REPLACE_OBJECTS=1",
                                      "GIT_NO_LAZY_FETCH=1",
                                      "GIT_OPTIONAL_LOCKS=0",
                                      "GIT_PROTOCOL_FROM_USER=0",
                                      "GIT_PAGER=cat",
                                      protocol};
    extern char **environ;
    size_t n = 0;

    snprintf(protocol, sizeof(protocol), "GIT_ALLOW_PROTOCOL=%s", scheme);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        environment[n++] = own[i];
    for (char **v = environ; *v && n < ENV_MAX; v++)
        if (is_of_way(*v))
            environment[n++] = *v;
    environment[n] = NULL;
}

/* What the repository itself could say is said before it. */
static void __attribute__((noreturn)) become(const char *const *words)
{
    static const char *const first[] = {"git",
                                        "--no-pager",
                                        "--no-replace-objects",
                                        "-c",
                                        "core.attributesFile=/dev/null",
                                        "-c",
                                        "core.hooksPath=/dev/null",
                                        "-c",
                                        "core.fsmonitor=false",
                                        "-c",
                                        "core.quotePath=false",
                                        "-c",
                                        "submodule.recurse=false",
                                        "-c",
                                        "fetch.recurseSubmodules=false",
                                        "-c",
                                        "gc.auto=0",
                                        "-c",
                                        "maintenance.auto=false",
                                        "-c",
                                        "pack.threads=1",
                                        "-c",
                                        "http.followRedirects=false",
                                        "-c",
                                        "credential.helper=",
                                        "-c",
                                        "transfer.bundleURI=false"};
    const char *argv[WORDS_MAX + 1];
    size_t n = 0;

    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
        argv[n++] = first[i];
    while (*words && n < WORDS_MAX)
        argv[n++] = *words++;
    argv[n] = NULL;
    if (*words == NULL)
        execvpe("git", (char *const *)argv, (char *const *)environment);
    _exit(errno == ENOENT ? 127 : 126);
}

/* git, or the program that is the first word. */
static pid_t start(bool git, int in, int out, int err, const char *const *words)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (none < 0 || dup2(in < 0 ? none : in, STDIN_FILENO) < 0 || dup2(out < 0 ? none : out, STDOUT_FILENO) < 0 ||
        dup2(err < 0 ? none : err, STDERR_FILENO) < 0)
        _exit(126);
    if (git)
        become(words);
    execvpe(words[0], (char *const *)words, (char *const *)environment);
    _exit(errno == ENOENT ? 127 : 126);
}

int program_over(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* All of it, or so much as there is room for; the rest is not read. False: no memory. */
static bool take(int fd, struct git_said *out, size_t max)
{
    size_t room = 0;
    ssize_t n = 1;

    while (n > 0 || (n < 0 && errno == EINTR)) {
        if (room - out->n < 2) {
            room = room ? 2 * room : 16 * 1024;
            char *more = realloc(out->p, room);
            if (more == NULL)
                return false;
            out->p = more;
        }
        n = read(fd, out->p + out->n, room - out->n - 1);
        out->n += n > 0 ? (size_t)n : 0;
        if (out->n > max) {
            out->n = max;
            out->cut = true;
            break;
        }
    }
    out->p[out->n] = '\0';
    return n >= 0;
}

pid_t program_open(int *says, int input, const char *const *words)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = start(false, input, p[1], -1, words);
    close(p[1]);
    if (pid < 0)
        close(p[0]);
    *says = p[0];
    return pid;
}

static int run(struct git_said *out, size_t max, int input, bool git, bool complaint, const char *const *words)
{
    int p[2], status = -1;

    *out = (struct git_said){0};
    if (pipe2(p, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = start(git, input, complaint ? -1 : p[1], complaint ? p[1] : -1, words);
    close(p[1]);
    bool good = pid > 0 && take(p[0], out, max);
    close(p[0]);
    if (pid > 0)
        status = program_over(pid);
    if (!good)
        said_free(out);
    return !good ? -1 : out->cut && !complaint ? 0 : status;
}

int git_say(struct git_said *out, size_t max, int input, const char *const *words)
{
    return run(out, max, input, true, false, words);
}

int program_say(struct git_said *out, size_t max, int input, const char *const *words)
{
    return run(out, max, input, false, false, words);
}

int git_do(char *err, size_t n, int input, const char *const *words)
{
    struct git_said said;
    int status = run(&said, 64 * 1024, input, true, true, words);

    snprintf(err, n, "%s", said.p ? said.p : "");
    said_free(&said);
    return status;
}

void said_free(struct git_said *s)
{
    free(s->p);
    *s = (struct git_said){0};
}

bool git_line(char *to, size_t room, int input, const char *const *words)
{
    struct git_said s;
    bool good = git_say(&s, room - 1, input, words) == 0 && s.n > 0;

    snprintf(to, room, "%s", good ? s.p : "");
    to[strcspn(to, "\n")] = '\0';
    said_free(&s);
    return good && to[0] != '\0';
}

const char *git_repository(const char *format, char empty_blob[DIFF_LINE_MAX], char empty_tree[DIFF_LINE_MAX])
{
    char object_format[64], complaint[4096];
    snprintf(object_format, sizeof(object_format), "--object-format=%s", format);
    const char *const init[] = {"init", "--quiet", "--bare", "--template=", object_format, DIFF_GIT_DIR, NULL};
    const char *const blob[] = {"hash-object", "-w", "--stdin", "-t", "blob", NULL};
    const char *const tree[] = {"hash-object", "-w", "--stdin", "-t", "tree", NULL};
    int status = git_do(complaint, sizeof(complaint), -1, init);

    if (status == 127)
        return "no-git";
    return status == 0 && git_line(empty_blob, DIFF_LINE_MAX, -1, blob) &&
                   git_line(empty_tree, DIFF_LINE_MAX, -1, tree)
               ? NULL
               : "failed";
}
