#include "sandbox-shim/start/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PLACE = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* The next line of *at, without its end; NULL: there is none. */
static char *line_of(char **at)
{
    char *line = *at, *end = line ? strchr(line, '\n') : NULL;

    if (!end)
        return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

static int places_make(const char *places, struct err *e)
{
    return (mkdir(places, 0755) == 0 || errno == EEXIST) &&
                   mount("places", places, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,mode=755") == 0
               ? 0
               : err_errno(e, "there is no place for its mounts");
}

/* As an image: a place of its own in mounts of its own, at which who it will be sees what it could not reach. */
static int place_make(const char *places, size_t i, char to[PATH_MAX])
{
    int n = places ? snprintf(to, PATH_MAX, "%s/%zu", places, i) : -1;

    return n > 0 && n < PATH_MAX && mkdir(to, 0755) == 0 ? 0 : -1;
}

/* What lies at that path itself, with no link on the way. */
static int folder_open(struct plan_dir *d, const char *path, const char *place, struct err *e)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    char from[32];

    d->fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    if (d->fd < 0)
        return err_errno(e, "its mount %s cannot be had: %s", d->path, path);
    if (!place)
        return 0;
    (void)snprintf(from, sizeof(from), "/proc/self/fd/%d", d->fd);
    int rc = mount(from, place, NULL, MS_BIND | MS_REC, NULL);
    close(d->fd);
    d->fd = rc == 0 ? open(place, PLACE) : -1; /* what lies on it now */
    return d->fd >= 0 ? 0 : err_errno(e, "its mount %s cannot be shown to it", d->path);
}

static int kept_open(struct plan_dir *d, char *rest, const char *place, struct err *e)
{
    const char *user = getenv("COUNTERSIGN_UID");
    char *file = strchr(rest, ' ');
    uint64_t size, uid;

    if (!file || !place || !user || span_u64(span_str(user), UINT32_MAX, &uid) != 0 ||
        span_u64(span_of(rest, (size_t)(file - rest)), UINT64_C(1) << 50, &size) != 0)
        return err_set(e, "its mounts cannot be understood");
    if (kept_mount(file + 1, size, (unsigned)uid, place, e) != 0)
        return -1;
    d->fd = open(place, PLACE);
    return d->fd >= 0 ? 0 : err_errno(e, "its mount %s cannot be shown to it", d->path);
}

/* "r PLACE DIRECTORY", which is read; "w PLACE DIRECTORY"; "k PLACE SIZE FILE", a file system. */
static int mount_open(struct plan *p, char *line, const char *places, struct err *e)
{
    char *at = line[0] && line[1] == ' ' ? line + 2 : NULL, *rest = at ? strchr(at, ' ') : NULL, place[PATH_MAX];

    if (!rest || !strchr("rwk", line[0]) || p->nread == PLAN_READ_MAX)
        return err_set(e, "its mounts cannot be understood");
    *rest++ = '\0';
    if (places && place_make(places, p->nread, place) != 0)
        return err_errno(e, "there is no place for its mount %s", at);
    struct plan_dir *d = &p->read[p->nread++];
    (void)snprintf(d->path, sizeof(d->path), "%s", at);
    d->writes = line[0] != 'r';
    return line[0] == 'k' ? kept_open(d, rest, places ? place : NULL, e)
                          : folder_open(d, rest, places ? place : NULL, e);
}

int mounts_open(struct plan *p, struct err *e)
{
    char *mounts = getenv("COUNTERSIGN_MOUNTS"), *devices = getenv("COUNTERSIGN_DEVICES"), *line;
    const char *places = getenv("COUNTERSIGN_PLACES"); /* of who will be another user */
    int rc = mounts && places ? places_make(places, e) : 0;

    while (rc == 0 && (line = line_of(&mounts)))
        rc = mount_open(p, line, places, e);
    while (rc == 0 && p->ndevices < PLAN_DEVICES_MAX && (line = line_of(&devices)))
        if (!(p->device[p->ndevices++] = strdup(line))) /* the environment does not stay */
            rc = err_set(e, "there is no memory for its devices");
    return rc;
}
