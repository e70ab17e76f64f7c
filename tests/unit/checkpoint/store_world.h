/* A store of checkpoints, a workspace and one that is filled, for tests of both; a process stands in for who is at
 * the workspace. Included by one file of a program. */
#ifndef TESTS_UNIT_CHECKPOINT_STORE_WORLD_H
#define TESTS_UNIT_CHECKPOINT_STORE_WORLD_H

#include "tests/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.h"
#include "sandbox-shim/checkpoint/pack.h"
#include "sandbox-shim/checkpoint/store.h"
#include "sandbox-shim/checkpoint/stream.h"
#include "sandbox-shim/inside/shim_beneath.h"
#include "sandbox-shim/inside/shim_tree.h"

static char top[] = "/tmp/test_store.XXXXXX";
static enum store_end how;
static struct store store = {.how = &how};
static struct err err;
static char id[FORM_ID + 1];
static struct form_head told;
static struct dynbuf said;
static uint64_t disk, listed;              /* bytes of the list of a step */
static const char *reach = "", *goes = ""; /* goes: what goes before one is saved */

static int in(const char *format, ...)
{
    char command[2048], line[4096];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(command, sizeof(command), format, ap);
    va_end(ap);
    (void)snprintf(line, sizeof(line), "cd %s && { %s; }", top, command);
    return system(line);
}
#define IN(...) assert_int_equal(in(__VA_ARGS__), 0)

static int begin(void **state)
{
    char name[64];
    memcpy(top + strlen(top) - 6, "XXXXXX", 6);
    if (!mkdtemp(top) || in("mkdir store work back") != 0)
        return -1;
    (void)snprintf(name, sizeof(name), "%s/store", top);
    store.dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    store.most = 1 << 30;
    disk = 1 << 28;
    return store.dir < 0 ? -1 : 0;
}

static int finish(void **state)
{
    dynbuf_free(&said);
    close(store.dir);
    return in("chmod -R u+rwx . && rm -rf %s", top);
}

/* --- who is at the workspace ---------------------------------------------------------- */

static int out(void *arg, const uint8_t *p, size_t n)
{
    return stream_put(arg, p, n);
}

static void at_work(int fd, int folder)
{
    static struct stream s;
    static struct pack k;
    static struct unpack u;
    static uint8_t piece[STREAM_PIECE];
    struct stream_end e = {.code = 0}, other;
    enum stream_what what;
    uint64_t most;
    size_t n;
    s.fd = fd;
    if (stream_asked(fd, &what, &most) != 0)
        _exit(1);
    if (what == STREAM_PACK) {
        k.put = out;
        k.arg = &s;
        k.most = most;
        e.code = pack_folder(&k, folder) == 0 ? 0 : (unsigned)errno;
        e.left_out = k.left_out;
    } else {
        unpack_begin(&u, folder, true);
        u.exact = true;
        int got, rc = what == STREAM_REPLACE ? beneath_clear(folder) : 0;
        while (rc == 0 && (got = stream_get(fd, piece, &n, &other)) == 1)
            rc = unpack_take(&u, piece, n);
        if (rc == 0)
            rc = unpack_end(&u);
        e.code = rc == 0 ? 0 : (unsigned)errno;
    }
    _exit(stream_end_put(&s, &e) == 0 ? 0 : 1);
}

/* bytes: what it says instead, whatever is asked, and ends. */
static int with(const char *folder, struct span bytes, const struct order *o)
{
    int fd[2], rc;
    char name[64];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    (void)snprintf(name, sizeof(name), "%s/%s", top, folder);
    pid_t pid = fork();
    if (pid == 0) {
        int dir = open(name, O_RDONLY | O_DIRECTORY);
        close(fd[0]);
        (void)signal(SIGPIPE, SIG_IGN);
        if (bytes.p == NULL)
            at_work(fd[1], dir);
        (void)!file_write_fd(fd[1], bytes);
        (void)shutdown(fd[1], SHUT_WR);
        while (read(fd[1], name, sizeof(name)) > 0)
            ;
        _exit(0);
    }
    close(fd[1]);
    how = STORE_FAILED;
    dynbuf_free(&said);
    dynbuf_init(&said, 4096);
    rc =
        o->what == ORDER_SAVE ? store_save(&store, o, fd[0], &said, &err) : store_load(&store, o, fd[0], &said, &err);
    close(fd[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    struct msg_in m = msg_in(dynbuf_span(&said));
    if (rc == 0) {
        assert_int_equal(form_get_head(&m, &told), 0);
        if (o->what == ORDER_SAVE && span_eq(o->name, FORM_OF_UNDO))
            listed = msg_get_u64(&m);
        assert_int_equal(msg_end(&m), 0);
    }
    return rc;
}

static int save_of(const char *owner, const char *name, struct span bytes)
{
    const struct order o = {.what = ORDER_SAVE,
                            .tenant = SPAN("default"),
                            .owner = span_str(owner),
                            .name = span_str(name),
                            .which = span_str(goes),
                            .sandbox = SPAN("box"),
                            .reach = span_str(reach),
                            .generation = 7,
                            .disk = disk};
    int rc = with("work", bytes, &o);
    if (rc == 0)
        (void)snprintf(id, sizeof(id), "%.*s", SPAN_FMT(told.id));
    return rc;
}

static int save(const char *name)
{
    return save_of("root", name, SPAN_NONE);
}

static int load(const char *which)
{
    const struct order o = {.what = ORDER_LOAD, .tenant = SPAN("default"), .which = span_str(which)};
    char back[64];
    (void)snprintf(back, sizeof(back), "%s/back", top);
    if (rmdir(back) != 0 || mkdir(back, 0755) != 0)
        (void)in("chmod -R u+rwx back; rm -rf back; mkdir back");
    return with("back", SPAN_NONE, &o);
}

static int gone(const char *which)
{
    const struct order o = {.what = ORDER_REMOVE, .tenant = SPAN("default"), .which = span_str(which)};
    dynbuf_free(&said);
    dynbuf_init(&said, 4096);
    how = STORE_FAILED;
    return store_remove(&store, &o, &said, &err);
}

static void refused(int rc, const char *words)
{
    assert_int_equal(rc, -1);
    if (span_find(span_str(err.text), span_str(words)) == strlen(err.text))
        fail_msg("%s, not %s", err.text, words);
}

static void alike(void)
{
    IN("diff -r --no-dereference work back && cd work && find . ! -name . -printf '%%p %%m %%Ts %%l\\n' | sort > "
       "../a && cd "
       "../back && find . ! -name . -printf '%%p %%m %%Ts %%l\\n' | sort > ../b && cmp ../a ../b");
}

#endif
