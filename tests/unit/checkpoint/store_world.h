/* A store of checkpoints, a workspace and one that is filled, for tests of both; a thread stands in for who is at
 * the workspace. Included by one file of a program. */
#ifndef TESTS_UNIT_CHECKPOINT_STORE_WORLD_H
#define TESTS_UNIT_CHECKPOINT_STORE_WORLD_H

#include "tests/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.h"
#include "sandbox-shim/checkpoint/pack.h"
#include "sandbox-shim/checkpoint/store.h"
#include "tests/unit/checkpoint/at_work.h"

/* In memory where that can be had: what is asked here is not how long a disk takes. */
static char top[sizeof("/dev/shm/test_store.XXXXXX")] = "/dev/shm/test_store.XXXXXX";
static enum store_end how;
static struct store store = {.how = &how};
static struct err err;
static char id[FORM_ID + 1];
static struct form_head told;
static struct dynbuf said;
static uint64_t disk, listed;                            /* bytes of the list of a step */
static const char *box = "box", *reach = "", *goes = ""; /* goes: what goes before one is saved */

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

/* What lies in it goes, and (whole) it itself; a shell for it costs more than most that is asked here. */
static bool clears_whole;

static int clear_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return at->level == 0 && !clears_whole ? 0 : remove(path);
}

static int clear(const char *folder, bool whole)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/%s", top, folder);
    clears_whole = whole;
    return nftw(path, clear_one, 8, FTW_DEPTH | FTW_PHYS) == 0
               ? 0
               : in("chmod -R u+rwx ./%s", folder) || nftw(path, clear_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int begin(void **state)
{
    static const char *const folders[] = {"store", "work", "back"};
    char name[64];
    (void)snprintf(top, sizeof(top), "%s/test_store.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(top))
        return -1;
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof(name), "%s/%s", top, folders[i]);
        if (mkdir(name, 0755) != 0)
            return -1;
    }
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
    return clear("", true);
}

static int with(const char *folder, struct span bytes, const struct order *o)
{
    int fd[2], rc;
    char name[64];
    pthread_t thread;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    (void)snprintf(name, sizeof(name), "%s/%s", top, folder);
    struct at at = {fd[1], open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), bytes};
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pthread_create(&thread, NULL, begin_work, &at), 0);
    how = STORE_FAILED;
    dynbuf_free(&said);
    dynbuf_init(&said, 4096);
    rc =
        o->what == ORDER_SAVE ? store_save(&store, o, fd[0], &said, &err) : store_load(&store, o, fd[0], &said, &err);
    close(fd[0]);
    assert_int_equal(pthread_join(thread, NULL), 0);
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
                            .sandbox = span_str(box),
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
    assert_int_equal(clear("back", false), 0);
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
