/* common/role_wall: what a confined role can no longer do, and that what its group names still works. Each probe is
 * a child that is confined, tries one thing, and is judged by how it ended: killed (seccomp), refused (Landlock), or
 * fine. With sanitizers compiled in there is no seccomp, and those probes are skipped loudly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "common/net/tls.h"
#include "common/role/wall.h"
#include "common/crypto/secret.h"

enum end { FINE = 0, REFUSED, BROKEN, KILLED };

static char dir[] = "/tmp/role-wall-XXXXXX"; /* may be written */
static char other[] = "/tmp/role-else-XXXXXX";
static int listener = -1;
static struct sockaddr_in listening;

static enum end run(const struct wall *w, enum end (*probe)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct err e;
        int abi;
        setenv("TZ", "UTC0", 1);
        tzset();
        if (wall_no_privileges(&e) != 0 || wall_landlock(w, &abi, &e) != 0) {
            fprintf(stderr, "cannot be confined: %s\n", e.text);
            _exit(BROKEN);
        }
#ifndef COUNTERSIGN_DEV
        if (wall_seccomp(w, &e) != 0) {
            fprintf(stderr, "cannot be confined: %s\n", e.text);
            _exit(BROKEN);
        }
#endif
        _exit(probe());
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGSYS ? KILLED : BROKEN;
    return (enum end)WEXITSTATUS(status);
}

static enum end verdict(bool ok)
{
    return ok ? FINE : errno == EACCES || errno == EPERM || errno == EXDEV ? REFUSED : BROKEN;
}

static enum end open_passwd(void)
{
    return verdict(open("/etc/passwd", O_RDONLY) >= 0);
}

static enum end in_dir(const char *d, int flags)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/file", d);
    return verdict(open(path, flags, 0600) >= 0);
}

static enum end write_inside(void)
{
    return in_dir(dir, O_RDWR | O_CREAT);
}

static enum end write_elsewhere(void)
{
    return in_dir(other, O_RDWR | O_CREAT);
}

static enum end read_inside(void)
{
    return in_dir(dir, O_RDONLY);
}

static enum end link_inside(void)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/link", dir);
    return verdict(symlinkat("/etc/passwd", AT_FDCWD, path) == 0);
}

static enum end link_elsewhere(void)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/link", other);
    return verdict(symlinkat("/etc/passwd", AT_FDCWD, path) == 0);
}

static enum end through_link(void)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/link", dir);
    return verdict(open(path, O_WRONLY) >= 0);
}

static enum end openat2_elsewhere(void)
{
    const uint64_t how[3] = {O_WRONLY};
    return verdict(syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", how, sizeof(how)) >= 0);
}

static enum end device_inside(void)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/fifo", dir);
    return verdict(mkfifoat(AT_FDCWD, path, 0600) == 0);
}

static enum end chmod_elsewhere(void)
{
    return verdict(chmod(other, 0755) == 0);
}

static enum end fchmodat2_inside(void)
{
    return verdict(syscall(452, AT_FDCWD, dir, 0700, AT_SYMLINK_NOFOLLOW) == 0 || errno == ENOSYS);
}

static enum end tcp_socket(void)
{
    return verdict(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
}

static enum end tcp_connect(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? BROKEN : verdict(connect(fd, (struct sockaddr *)&listening, sizeof(listening)) == 0);
}

static enum end udp_socket(void)
{
    return verdict(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0);
}

static enum end unix_socket(void)
{
    return verdict(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
}

static enum end pair(void)
{
    int sv[2];
    return verdict(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
}

static enum end wait_for_none(void)
{
    int status;
    return verdict(waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD);
}

static enum end datagram_pair(void)
{
    int sv[2];
    return verdict(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sv) == 0);
}

static enum end mptcp_socket(void)
{
    return verdict(socket(AF_INET, SOCK_STREAM, 262) >= 0);
}

static enum end raw_socket(void)
{
    return verdict(socket(AF_INET, SOCK_RAW, 1) >= 0);
}

static enum end netlink_socket(void)
{
    return verdict(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
}

static enum end exec_true(void)
{
    char name[] = "true", *argv[] = {name, NULL}, *envp[] = {NULL};
    execve("/bin/true", argv, envp);
    return verdict(false);
}

static enum end fork_child(void)
{
    return verdict(fork() >= 0);
}

static enum end kill_parent(void)
{
    return verdict(kill(getppid(), 0) == 0);
}

static enum end ptrace_parent(void)
{
    return verdict(syscall(SYS_ptrace, 16, getppid(), 0, 0) == 0);
}

static enum end map_code(void)
{
    return verdict(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
}

static enum end make_code(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? BROKEN : verdict(mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0);
}

static enum end memfd(void)
{
    int fd = (int)syscall(SYS_memfd_create, "body", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, 8192) != 0 || pwrite(fd, "x", 1, 0) != 1 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        return verdict(false);
    return verdict(mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
}

static enum end accept_one(void)
{
    return verdict(listen_accept(listener) >= 0 || errno == EAGAIN);
}

static enum end unix_listen(void)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/sock", dir);
    return verdict(listen_unix(path, 0600) >= 0);
}

static enum end io_uring(void)
{
    return verdict(syscall(SYS_io_uring_setup, 1, NULL) >= 0);
}

static enum end old_abi(void)
{
#if defined(__x86_64__) && !defined(COUNTERSIGN_DEV)
    long rc; /* getpid by the 32-bit gate: numbers mean something else there */
    __asm__ volatile("int $0x80" : "=a"(rc) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return verdict(rc > 0);
#else
    raise(SIGSYS);
    return FINE;
#endif
}

static enum end database_habits(void)
{
    char a[64], b[64];
    struct stat st;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    snprintf(a, sizeof(a), "%s/db", dir);
    snprintf(b, sizeof(b), "%s/db2", dir);
    int fd = open(a, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || pwrite(fd, "x", 1, 0) != 1 || fsync(fd) != 0 || fdatasync(fd) != 0 || ftruncate(fd, 4096) != 0 ||
        fcntl(fd, F_SETLK, &lock) != 0 || stat(a, &st) != 0 || access(a, R_OK) != 0)
        return verdict(false);
    if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED || usleep(1) != 0)
        return verdict(false);
    return verdict(rename(a, b) == 0 && unlink(b) == 0);
}

static enum end last_words;
static void on_conn(void *arg, struct conn *c, enum conn_event ev)
{
    if (ev == CONN_DATA)
        last_words = span_eq(conn_input(c), SPAN("hello")) ? FINE : BROKEN;
    loop_stop(arg);
}

static struct loop *base_loop;
static struct conn *base_conn;
static struct conn *base_peer;

static void ignore(void *arg, struct conn *c, enum conn_event ev)
{
    (void)arg, (void)c, (void)ev;
}

static void tick(void *arg)
{
    *(bool *)arg = true;
}

/* What every role does all day: the loop, timers, logging, chance, TLS keys, locked memory. */
static enum end daily_work(void)
{
    struct err e;
    bool ticked = false;
    uint8_t chance[32];
    last_words = BROKEN;
    struct timer *t = timer_new(base_loop, tick, &ticked);
    timer_set(t, 1);
    if (conn_write(base_peer, SPAN("hello")) != 0 || loop_run(base_loop) != 0 || last_words != FINE)
        return BROKEN;
    struct tls_server *s = tls_server_new(&e);
    struct tls_key *k = tls_key_new();
    struct secret *secret = secret_new(SPAN("shibboleth"));
    if (s == NULL || k == NULL || secret == NULL || RAND_bytes(chance, sizeof(chance)) != 1)
        return BROKEN;
    secret_free(&secret);
    void *big = malloc(64 * 1024 * 1024);
    if (big == NULL)
        return BROKEN;
    free(big);
    log_info("a line");
    return isatty(STDERR_FILENO) >= 0 ? FINE : BROKEN;
}

static enum end abort_here(void)
{
    abort();
}

static int killed_or(enum end e)
{
#ifdef COUNTERSIGN_DEV
    (void)e;
    return -1;
#else
    return e;
#endif
}

struct row {
    const char *what;
    enum end (*probe)(void);
    enum end end;
};

/* In a sanitizer build only what Landlock refuses can be told; a row that expects a kill proves nothing there. */
static void check(const char *who, const struct wall *w, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].end == KILLED && killed_or(KILLED) < 0)
            continue;
        enum end got = run(w, rows[i].probe);
        if (got != rows[i].end)
            fail_msg("%s: %s ended %d, not %d", who, rows[i].what, got, rows[i].end);
    }
}

#define ROW(f, e)                                                                                                    \
    {                                                                                                                \
#f, f, e                                                                                                     \
    }
#define CHECK(who, w, rows) check(who, &(w), rows, sizeof(rows) / sizeof(*(rows)))

/* C32, D23 and promise 9: nobody starts programs, looks into others, or makes code. */
static const struct row nobody[] = {
    ROW(exec_true, KILLED), ROW(fork_child, KILLED), ROW(kill_parent, KILLED),  ROW(ptrace_parent, KILLED),
    ROW(map_code, KILLED),  ROW(make_code, KILLED),  ROW(raw_socket, KILLED),   ROW(netlink_socket, KILLED),
    ROW(io_uring, KILLED),  ROW(old_abi, KILLED),    ROW(mptcp_socket, KILLED), ROW(daily_work, FINE),
};

static void test_base(void **state)
{
    static const struct wall w = {.calls = WALL_BASE};
    static const struct row rows[] = {
        ROW(open_passwd, KILLED), ROW(write_inside, KILLED), ROW(tcp_socket, KILLED), ROW(udp_socket, KILLED),
        ROW(unix_socket, KILLED), ROW(memfd, KILLED),        ROW(accept_one, KILLED), ROW(unix_listen, KILLED),
    };
    CHECK("base", w, nobody);
    CHECK("base", w, rows);
}

static void test_front(void **state)
{
    static const struct wall w = {.calls = WALL_MEMFD | WALL_ACCEPT};
    static const struct row rows[] = {
        ROW(open_passwd, KILLED), ROW(write_inside, KILLED), ROW(tcp_socket, KILLED), ROW(udp_socket, KILLED),
        ROW(unix_socket, KILLED), ROW(memfd, FINE),          ROW(accept_one, FINE),   ROW(pair, KILLED),
    };
    CHECK("front", w, nobody);
    CHECK("front", w, rows);
}

static void test_lobby(void **state)
{
    static const struct wall w = {.calls = WALL_ACCEPT | WALL_PAIR};
    static const struct row rows[] = {
        ROW(open_passwd, KILLED), ROW(tcp_socket, KILLED), ROW(unix_socket, KILLED),   ROW(memfd, KILLED),
        ROW(accept_one, FINE),    ROW(pair, FINE),         ROW(datagram_pair, KILLED),
    };
    CHECK("lobby", w, nobody);
    CHECK("lobby", w, rows);
}

/* A broker whose database is behind a Unix socket: that, and no other family. */
static void test_unix(void **state)
{
    static const struct wall w = {.calls = WALL_UNIX};
    static const struct row rows[] = {
        ROW(open_passwd, KILLED), ROW(tcp_socket, KILLED), ROW(unix_socket, FINE),
        ROW(memfd, KILLED),       ROW(pair, KILLED),
    };
    CHECK("a broker with a database", w, rows);
}

static void test_wait(void **state)
{
    static const struct wall w = {.calls = WALL_WAIT};
    static const struct row rows[] = {
        ROW(open_passwd, KILLED), ROW(tcp_socket, KILLED), ROW(unix_socket, KILLED),
        ROW(memfd, KILLED),       ROW(pair, KILLED),       ROW(wait_for_none, FINE),
    };
    CHECK("a job that waits for a program", w, nobody);
    CHECK("a job that waits for a program", w, rows);
}

static void test_connect(void **state)
{
    static const struct wall w = {.calls = WALL_MEMFD | WALL_CONNECT, .tcp_connect = true};
    static const struct wall shut = {.calls = WALL_CONNECT};
    static const struct row rows[] = {
        ROW(open_passwd, KILLED), ROW(write_inside, KILLED), ROW(tcp_connect, FINE),
        ROW(udp_socket, KILLED),  ROW(unix_socket, KILLED),
    };
    static const struct row refused[] = {ROW(tcp_connect, REFUSED)};
    const uint16_t here = ntohs(listening.sin_port), ports[] = {(uint16_t)(here ^ 1), here};
    const struct wall some = {.calls = WALL_CONNECT, .ports = ports, .nports = 2},
                      others = {.calls = WALL_CONNECT, .ports = ports, .nports = 1};
    CHECK("carrier", w, nobody);
    CHECK("carrier", w, rows);
    CHECK("connect without the right to", shut, refused);
    CHECK("a relay, to a port of its places", some, rows);
    CHECK("a relay, to another port", others, refused);
}

static void test_dns(void **state)
{
    static const struct wall w = {.calls = WALL_DNS};
    static const struct row rows[] = {
        ROW(udp_socket, FINE),    ROW(tcp_connect, REFUSED), ROW(write_inside, KILLED),
        ROW(unix_socket, KILLED), ROW(memfd, KILLED),
    };
    CHECK("resolver", w, nobody);
    CHECK("resolver", w, rows);
#ifndef COUNTERSIGN_DEV
    static const struct row files[] = {ROW(open_passwd, REFUSED)};
    CHECK("resolver", w, files);
#endif
}

/* What unpacks an image, and what puts files back into a workspace. */
static void test_links(void **state)
{
    static const char *dirs[] = {dir, NULL};
    static const struct wall w = {.calls = WALL_FILES | WALL_LINKS, .rw_dirs = dirs};
    static const struct row rows[] = {
        ROW(write_inside, FINE),    ROW(link_inside, FINE),        ROW(link_elsewhere, REFUSED),
        ROW(through_link, REFUSED), ROW(write_elsewhere, REFUSED), ROW(openat2_elsewhere, REFUSED),
        ROW(device_inside, KILLED), ROW(chmod_elsewhere, KILLED),  ROW(fchmodat2_inside, KILLED),
        ROW(tcp_socket, KILLED),    ROW(unix_socket, KILLED),
    };
    static const struct wall none = {.calls = WALL_FILES, .rw_dirs = dirs};
    static const struct row not [] = {ROW(link_inside, KILLED), ROW(openat2_elsewhere, KILLED)};
    static const struct wall modes = {.calls = WALL_FILES | WALL_LINKS | WALL_MODES, .rw_dirs = dirs};
    static const struct row may[] = {ROW(chmod_elsewhere, FINE), ROW(fchmodat2_inside, FINE)};
    CHECK("unpack-image", w, nobody);
    CHECK("unpack-image", w, rows);
    CHECK("without links", none, not );
    CHECK("workspace", modes, may);
}

static void test_files(void **state)
{
    static const char *dirs[] = {dir, NULL};
    static const struct wall w = {.calls = WALL_FILES, .rw_dirs = dirs};
    static const struct row rows[] = {
        ROW(write_inside, FINE), ROW(write_elsewhere, REFUSED), ROW(database_habits, FINE),
        ROW(tcp_socket, KILLED), ROW(udp_socket, KILLED),       ROW(unix_socket, KILLED),
    };
    CHECK("ledger", w, nobody);
    CHECK("ledger", w, rows);
}

static void test_read_files(void **state)
{
    static const char *paths[] = {dir, "/does/not/exist", NULL};
    static const struct wall w = {.calls = WALL_READ_FILES, .ro_paths = paths};
    static const struct row rows[] = {
        ROW(write_inside, REFUSED), /* not killed: SQLite asks, hears no, and reads */
        ROW(read_inside, FINE),
        ROW(tcp_socket, KILLED),
        ROW(unix_socket, KILLED),
    };
    assert_int_equal(write_inside(), FINE); /* unconfined: the file to read */
    CHECK("reader", w, nobody);
    CHECK("reader", w, rows);
#ifndef COUNTERSIGN_DEV
    static const struct row files[] = {ROW(open_passwd, REFUSED)};
    CHECK("reader", w, files);
#endif
}

static void test_unix_listen(void **state)
{
    static const char *dirs[] = {dir, NULL};
    static const struct wall w = {.calls = WALL_UNIX_LISTEN, .rw_dirs = dirs};
    static const struct row rows[] = {
        ROW(unix_listen, FINE),
        ROW(tcp_socket, KILLED),
        ROW(open_passwd, KILLED),
        ROW(accept_one, FINE),
    };
    CHECK("unix listener", w, nobody);
    CHECK("unix listener", w, rows);
}

/* A crash must look like one: abort ends with SIGABRT, not with a wall's kill. */
static void test_abort(void **state)
{
    static const struct wall w = {.calls = WALL_BASE};
    assert_int_equal(run(&w, abort_here), BROKEN);
}

static int set_up(void **state)
{
    int fd[2];
    log_init("test", LOG_ERROR);
    socklen_t n = sizeof(listening);
    if (mkdtemp(dir) == NULL || mkdtemp(other) == NULL || (listener = listen_tcp("127.0.0.1:0")) < 0 ||
        getsockname(listener, (struct sockaddr *)&listening, &n) != 0)
        return -1;
    base_loop = loop_new();
    if (base_loop == NULL || socketpair(AF_UNIX, SOCK_STREAM, 0, fd) != 0)
        return -1;
    base_conn = conn_new(base_loop, fd[0], 4096, on_conn, base_loop);
    base_peer = conn_new(base_loop, fd[1], 4096, ignore, NULL);
    log_error("the C library has looked at what it needs");
    return base_conn != NULL && base_peer != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    char path[64];
    const char *const names[] = {"file", "sock", "db", "db2"};
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    rmdir(other);
    close(listener);
    conn_free(&base_conn);
    conn_free(&base_peer);
    loop_free(&base_loop);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base),       cmocka_unit_test(test_front),       cmocka_unit_test(test_lobby),
        cmocka_unit_test(test_unix),       cmocka_unit_test(test_wait),        cmocka_unit_test(test_connect),
        cmocka_unit_test(test_dns),        cmocka_unit_test(test_links),       cmocka_unit_test(test_files),
        cmocka_unit_test(test_read_files), cmocka_unit_test(test_unix_listen), cmocka_unit_test(test_abort),
    };
#ifdef COUNTERSIGN_DEV
    fprintf(stderr, "SKIPPED: everything seccomp refuses (sanitizer build); run this test in the plain build\n");
#endif
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
