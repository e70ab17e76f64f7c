/* A store elsewhere for tests of it: a folder stands in for it, and looks, whenever it is asked, whether somebody
 * waits for who asks. Included by one file of a program. */
#ifndef TESTS_UNIT_CHECKPOINT_AWAY_WORLD_H
#define TESTS_UNIT_CHECKPOINT_AWAY_WORLD_H

#include "tests/unit/checkpoint/store_world.h"

#include <dirent.h>

#include "sandbox-shim/checkpoint/away/away.h"
#include "tests/unit/checkpoint/away_locks.h"

static struct away away;
static bool is_away;         /* whatever it is asked, it cannot be */
static void (*during)(void); /* what happens once behind a put or a get of a list, before that is answered */
static char asked[512];      /* what the last list was to begin with */
static int drops_left;
static int gets;                 /* how many objects were read */
static int puts_left, killed_at; /* killed_at: before a put its process ends, or (odd) behind it; 0: never */

static void object(const char *key, char path[512])
{
    (void)snprintf(path, 512, "%s/there/%s", top, key);
    for (char *c = path + strlen(top) + 7; *c; c++)
        if (*c == '/')
            *c = '+';
}

static void happens(void)
{
    void (*what)(void) = during;
    during = NULL;
    nobody_waits();
    if (what != NULL)
        what();
}

static int put(void *arg, const char *key, struct span bytes, struct err *e)
{
    char path[512];
    object(key, path);
    if (is_away || puts_left-- <= 0)
        return err_set(e, "the store takes nothing");
    if (killed_at == 2)
        (void)raise(SIGKILL);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && file_write_fd(fd, bytes) == 0);
    if (killed_at == 3)
        (void)raise(SIGKILL);
    killed_at -= killed_at > 0 ? 2 : 0;
    close(fd);
    if (during != NULL && strstr(key, ".pack") == NULL && strstr(key, "/ck-") != NULL)
        happens();
    nobody_waits();
    return 0;
}

static int get(void *arg, const char *key, struct dynbuf *b, struct err *e)
{
    char path[512];
    object(key, path);
    nobody_waits();
    if (is_away)
        return err_set(e, "the store gives nothing");
    int fd = open(path, O_RDONLY);
    gets++;
    if (fd < 0)
        return 1;
    int rc = file_read_fd(fd, b);
    close(fd);
    if (during != NULL && strstr(key, ".pack") == NULL && strstr(key, "/ck-") != NULL)
        happens();
    return rc == 0 ? 0 : err_set(e, "too long");
}

static int drop(void *arg, const char *key, struct err *e)
{
    char path[512];
    nobody_waits();
    object(key, path);
    return is_away || drops_left-- <= 0 ? err_set(e, "the store keeps it") : unlink(path);
}

static int is_object(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

static int objects(struct dirent ***all)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/there", top);
    int n = scandir(path, all, is_object, alphasort);
    assert_true(n >= 0);
    return n;
}

static bool only_the_key_is_there(void)
{
    struct dirent **all;
    int n = objects(&all);
    bool is = n == 1 && strstr(all[0]->d_name, "+key.0-1") != NULL;
    while (n-- > 0)
        free(all[n]);
    free(all);
    return is;
}

static int list(void *arg, const char *begins, away_name_fn *fn, void *ctx, struct err *e)
{
    struct dirent **all;
    int rc = 0;
    if (is_away)
        return err_set(e, "the store says nothing");
    nobody_waits();
    (void)snprintf(asked, sizeof(asked), "%s", begins);
    int n = objects(&all);
    for (int i = 0; i < n; i++) {
        for (char *c = all[i]->d_name; *c; c++)
            *c = *c == '+' ? '/' : *c;
        if (rc == 0 && strncmp(all[i]->d_name, begins, strlen(begins)) == 0 && fn(ctx, all[i]->d_name) < 0)
            rc = err_set(e, "too many");
        free(all[i]);
    }
    free(all);
    return rc;
}

static struct away_carrier carrier = {NULL, put, get, drop, list, "here"};

static int tidy(void)
{
    return store_tidy(&store, &err);
}

/* So that a small file has several parts. */
enum { PART = 65536 };

static int away_begin(void)
{
    int rc = away_open(&away, store.dir, store.most, &carrier, &err);
    away.part = PART;
    return rc;
}

static int opened(void **state)
{
    int rc = begin(state);
    puts_left = drops_left = 1000;
    killed_at = 0;
    carrier.place = "here";
    is_away = false;
    during = NULL;
    store.away = &away;
    return rc == 0 && in("mkdir there") == 0 ? away_begin() : -1;
}

static int closed(void **state)
{
    away_close(&away);
    store.away = NULL;
    return finish(state);
}

static int lose(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return at->level == 0 || strcmp(path + at->base, "store-key") == 0 ? 0 : remove(path);
}

/* All that lay here is gone, but the key of all. */
static void lost(void)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/store", top);
    assert_int_equal(nftw(path, lose, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void a_workspace(void)
{
    IN("cd work && mkdir d && head -c 150000 /dev/urandom > big && echo a needle that is found > d/small && ln -s d "
       "l");
}

static int forget(const char *which)
{
    const struct order o = {.what = ORDER_FORGET, .tenant = SPAN("default"), .which = span_str(which)};
    dynbuf_free(&said);
    dynbuf_init(&said, 4096);
    return store_remove(&store, &o, &said, &err);
}

#endif
