/* Make a running process try one system call, and say what became of it: how
 * tests/walls/walls.py proves on the installed build what each role cannot do.
 *
 *   probe PID open PATH | create PATH | tcp | udp | unix | exec PATH | fork | kill PID | ptrace PID | mmap-exec
 *
 * Prints "killed", "refused ERRNO" or "done". Needs to be root (the roles are not
 * dumpable); exit 0 when the call was tried. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct call {
    const char *name;
    long number;
    long arg[6];
    int text; /* which argument is the address of the given text; -1: none */
};

static const struct call calls[] = {
    {"open", SYS_openat, {AT_FDCWD, 0, O_RDONLY | O_CLOEXEC}, 1},
    {"create", SYS_openat, {AT_FDCWD, 0, O_WRONLY | O_CREAT | O_CLOEXEC, 0600}, 1},
    {"tcp", SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0}, -1},
    {"udp", SYS_socket, {AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0}, -1},
    {"unix", SYS_socket, {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0}, -1},
    {"exec", SYS_execve, {0, 0, 0}, 0},
    {"fork", SYS_fork, {0}, -1},
    {"kill", SYS_kill, {0, 0}, -2},
    {"ptrace", SYS_ptrace, {PTRACE_ATTACH, 0}, -3},
    {"mmap-exec", SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}, -1},
};

static int fail(const char *what)
{
    fprintf(stderr, "probe: %s: %s\n", what, strerror(errno));
    return 2;
}

static int report(int pid, struct user_regs_struct *saved)
{
    struct user_regs_struct regs;
    int status;
    if (waitpid(pid, &status, __WALL) != pid)
        return fail("wait");
    if (WIFSIGNALED(status)) {
        puts(WTERMSIG(status) == SIGSYS ? "killed" : "died");
        return 0;
    }
    if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8) || ptrace(PTRACE_GETREGS, pid, 0, &regs) != 0) {
        puts("done");
        return 0;
    }
    long rc = (long)regs.rax;
    if (rc < 0 && rc > -4096)
        printf("refused %s\n", strerrorname_np((int)-rc));
    else
        puts("done");
    if (ptrace(PTRACE_SETREGS, pid, 0, saved) != 0 || ptrace(PTRACE_DETACH, pid, 0, 0) != 0)
        return fail("detach");
    return 0;
}

/* Stop it where it waits in a system call: the instruction before is `syscall`, and serves ours. Caught on its way,
 * it is let go on for a moment. */
static int stop_waiting(int pid, struct user_regs_struct *saved)
{
    const struct timespec moment = {.tv_nsec = 5 * 1000 * 1000};
    unsigned char insn[2];
    int status;
    if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC) != 0)
        return -1;
    for (int i = 0; i < 400; i++) {
        if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) != 0 || waitpid(pid, &status, __WALL) != pid)
            return -1;
        if (!WIFSTOPPED(status)) {
            errno = ESRCH;
            return -1;
        }
        struct iovec here = {insn, 2}, there = {0};
        if (status >> 16 == PTRACE_EVENT_STOP && ptrace(PTRACE_GETREGS, pid, 0, saved) == 0) {
            there = (struct iovec){(void *)(saved->rip - 2), 2};
            bool waits = saved->orig_rax == SYS_epoll_wait || saved->orig_rax == SYS_recvmsg;
            if (waits && process_vm_readv(pid, &here, 1, &there, 1, 0) == 2 && insn[0] == 0x0f && insn[1] == 0x05)
                return 0;
        }
        int signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
        if (ptrace(PTRACE_CONT, pid, 0, signal) != 0)
            return -1;
        nanosleep(&moment, NULL);
    }
    errno = ETIMEDOUT;
    return -1;
}

static int probe(int pid, const struct call *c, const char *text)
{
    struct user_regs_struct saved, regs;
    if (stop_waiting(pid, &saved) != 0)
        return fail("it cannot be stopped where it waits");
    regs = saved;
    long arg[6];
    memcpy(arg, c->arg, sizeof(arg));
    if (c->text >= 0) {
        unsigned long at = (regs.rsp - 8192) & ~7ul;
        struct iovec from = {(void *)text, strlen(text) + 1}, to = {(void *)at, strlen(text) + 1};
        if (process_vm_writev(pid, &from, 1, &to, 1, 0) != (ssize_t)from.iov_len)
            return fail("no room for the text");
        arg[c->text] = (long)at;
    } else if (c->text < -1) {
        arg[-2 - c->text] = atol(text);
    }
    regs.rip -= 2;
    regs.rax = (unsigned long)c->number;
    regs.orig_rax = (unsigned long)-1;
    regs.rdi = (unsigned long)arg[0];
    regs.rsi = (unsigned long)arg[1];
    regs.rdx = (unsigned long)arg[2];
    regs.r10 = (unsigned long)arg[3];
    regs.r8 = (unsigned long)arg[4];
    regs.r9 = (unsigned long)arg[5];
    if (ptrace(PTRACE_SETREGS, pid, 0, &regs) != 0 || ptrace(PTRACE_SINGLESTEP, pid, 0, 0) != 0)
        return fail("step");
    return report(pid, &saved);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc >= 3 && i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(calls[i].name, argv[2]) == 0)
            return probe(atoi(argv[1]), &calls[i], argc > 3 ? argv[3] : "");
    fputs("usage: probe PID open|create|tcp|udp|unix|exec|fork|kill|ptrace|mmap-exec [ARG]\n", stderr);
    return 2;
}
