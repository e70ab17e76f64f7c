#include "sandbox-shim/images/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "sandbox-shim/inside/shim_beneath.h"

enum { HEX = 2 * DIGEST_BYTES, NAMES_MAX = 10000, FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
#define STAGE ".new"
#define GONE  ".gone"

/* --- names --------------------------------------------------------------------------------- */

/* All at once. */
static int name_write(int names, struct span name, const struct digest *d, struct err *e)
{
    char path[IMAGE_NAME_MAX + 1], text[IMAGE_DIGEST_TEXT + 2];
    int rc = -1;

    (void)snprintf(path, sizeof(path), "%.*s", SPAN_FMT(name));
    image_digest_text(d, text);
    memcpy(text + IMAGE_DIGEST_TEXT, "\n", 2);
    int fd = openat(names, STAGE, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && file_write_fd(fd, span_of(text, IMAGE_DIGEST_TEXT + 1)) == 0 && fsync(fd) == 0 &&
        renameat(names, STAGE, names, path) == 0 && fsync(names) == 0)
        rc = 0;
    if (rc != 0)
        (void)err_errno(e, "the name %s cannot be written", path);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Their number, sorted, or -1 in words; the list is the caller's to free in either case. */
static int names_list(const struct image_store *s, char (**list)[IMAGE_NAME_MAX + 1], struct err *e)
{
    int fd = openat(s->names, ".", FOLDER), n = 0;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    *list = d ? calloc(NAMES_MAX, sizeof(**list)) : NULL;
    if (!*list) {
        if (d)
            closedir(d);
        else if (fd >= 0)
            close(fd);
        return err_errno(e, "the names of images cannot be read");
    }
    while (n >= 0 && (entry = readdir(d)) != NULL)
        if (image_name_ok(span_str(entry->d_name))) {
            if (n < NAMES_MAX)
                memcpy((*list)[n], entry->d_name, strlen(entry->d_name) + 1);
            n = n < NAMES_MAX ? n + 1 : -1; /* of a name that is not seen its image might be removed */
        }
    closedir(d);
    if (n < 0)
        return err_set(e, "there are more than %d images: remove some", NAMES_MAX);
    qsort(*list, (size_t)n, sizeof(**list), by_name);
    return n;
}

/* Has any name but `but` (NULL: any at all) this digest? -1 in words. */
static int is_named(const struct image_store *s, const struct digest *d, const char *but, struct err *e)
{
    char(*list)[IMAGE_NAME_MAX + 1];
    int n = names_list(s, &list, e), found = n < 0 ? -1 : 0;
    struct digest one;

    for (int i = 0; i < n && found == 0; i++)
        if (!but || strcmp(list[i], but) != 0) {
            int rc = image_name_read(s->names, span_str(list[i]), &one, NULL, e);
            found = rc < 0 ? -1 : rc == 1 && memcmp(one.b, d->b, DIGEST_BYTES) == 0;
        }
    free(list);
    return found;
}

/* --- for its owner ----------------------------------------------------------------------------- */

static int remove_whole(const struct image_store *s, const char *name)
{
    struct place p;
    int rc = place_find(s->dir, name, false, &p);

    if (rc == 0)
        rc = place_remove(&p, true);
    place_close(&p);
    return rc;
}

static int folder_make(int at, const char *path, struct err *e)
{
    int fd = mkdirat(at, path, 0700) == 0 || errno == EEXIST ? openat(at, path, FOLDER) : -1;

    return fd >= 0 ? fd : err_errno(e, "%s cannot be opened or made", path);
}

int images_open(struct image_store *s, const char *state_dir, bool locked, struct err *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/images", state_dir);

    s->names = s->lock = -1;
    s->dir = n > 0 && (size_t)n < sizeof(path) ? folder_make(AT_FDCWD, path, e) : -1;
    if (s->dir < 0 || (s->names = folder_make(s->dir, "names", e)) < 0)
        return -1;
    if (!locked)
        return 0;
    s->lock = openat(s->dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->lock < 0)
        return err_errno(e, "%s/lock cannot be opened", path);
    if (flock(s->lock, LOCK_EX | LOCK_NB) != 0)
        return err_set(e, "another import or removal of an image runs; try again when it has ended");
    images_discard(s);
    if (remove_whole(s, GONE) != 0 && errno != ENOENT)
        return err_errno(e, "what is left of an image that was removed cannot be removed");
    return 0;
}

void images_close(struct image_store *s)
{
    int *fds[] = {&s->dir, &s->names, &s->lock};

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

void images_discard(struct image_store *s)
{
    (void)!remove_whole(s, STAGE);
}

int images_stage(struct image_store *s, struct err *e)
{
    if (mkdirat(s->dir, STAGE, 0700) != 0)
        return err_errno(e, "there is no place to unpack it");
    int fd = openat(s->dir, STAGE, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 ? fd : err_errno(e, "there is no place to unpack it");
}

/* One that no name has, and no sandbox. 0 also when one has it. */
static int remove_unused(struct image_store *s, const struct digest *d, struct err *e)
{
    char hex[HEX + 1];
    int rc = is_named(s, d, NULL, e);

    if (rc != 0)
        return rc < 0 ? -1 : 0;
    hex_text(span_of(d->b, DIGEST_BYTES), hex);
    int fd = openat(s->dir, hex, FOLDER);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        (renameat(s->dir, hex, s->dir, GONE) != 0 || remove_whole(s, GONE) != 0))
        rc = err_errno(e, "image %s cannot be removed", hex);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* What had a name once, and was used when it lost it. */
static int sweep(struct image_store *s, struct err *e)
{
    int fd = openat(s->dir, ".", FOLDER), rc = 0;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    struct digest one;

    if (!d) {
        if (fd >= 0)
            close(fd);
        return err_errno(e, "the folder of images cannot be read");
    }
    while (rc == 0 && (entry = readdir(d)) != NULL)
        if (image_hex(span_str(entry->d_name), &one) == 0)
            rc = remove_unused(s, &one, e);
    closedir(d);
    return rc;
}

int images_commit(struct image_store *s, const struct digest *d, struct span name, bool *known, struct err *e)
{
    char hex[HEX + 1];
    struct stat st;

    hex_text(span_of(d->b, DIGEST_BYTES), hex);
    *known = fstatat(s->dir, hex, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (*known)
        images_discard(s);
    else if (syncfs(s->dir) != 0 || renameat(s->dir, STAGE, s->dir, hex) != 0 || fsync(s->dir) != 0)
        return err_errno(e, "it cannot be put where images are");
    if (name_write(s->names, name, d, e) != 0)
        return -1;
    (void)!sweep(s, NULL); /* it is there; what cannot be removed now, the next one tries again */
    return 0;
}

int images_remove(struct image_store *s, struct span name, struct err *e)
{
    char path[IMAGE_NAME_MAX + 1], hex[HEX + 1];
    struct digest d;

    (void)snprintf(path, sizeof(path), "%.*s", SPAN_FMT(name));
    int there = image_name_read(s->names, name, &d, NULL, e);
    if (there == 0)
        return err_set(e, "there is no image of this name");
    if (there < 0) /* a damaged name keeps nothing */
        return unlinkat(s->names, path, 0) == 0 ? 0 : err_errno(e, "the name cannot be removed");
    int others = is_named(s, &d, path, e);
    if (others < 0)
        return -1;
    hex_text(span_of(d.b, DIGEST_BYTES), hex);
    int fd = openat(s->dir, hex, FOLDER), rc = 0;
    if (others == 0 && fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0)
        rc = err_set(e, "a sandbox uses it: `countersign sandbox started` says which");
    else if (unlinkat(s->names, path, 0) != 0 || fsync(s->names) != 0)
        rc = err_errno(e, "the name cannot be removed");
    if (fd >= 0)
        close(fd);
    return rc == 0 ? sweep(s, e) : -1;
}

static int say_of(const struct image_store *s, const struct digest *d, struct dynbuf *says)
{
    char path[HEX + sizeof("/image.json")], hex[HEX + 1];

    hex_text(span_of(d->b, DIGEST_BYTES), hex);
    (void)snprintf(path, sizeof(path), "%s/image.json", hex);
    int fd = openat(s->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd >= 0 ? file_read_fd(fd, says) : -1;
    if (fd >= 0)
        close(fd);
    return rc;
}

int images_each(struct image_store *s, images_fn *fn, void *ctx, struct err *e)
{
    char(*list)[IMAGE_NAME_MAX + 1];
    int n = names_list(s, &list, e), rc = n < 0 ? -1 : 0;

    for (int i = 0; i < n && rc == 0; i++) {
        struct dynbuf says;
        struct digest d;
        int64_t since = 0;
        dynbuf_init(&says, IMAGE_SAYS_MAX);
        int there = image_name_read(s->names, span_str(list[i]), &d, &since, e);
        if (there < 0)
            rc = -1;
        else if (there == 1 && say_of(s, &d, &says) != 0)
            rc = err_set(e, "image %s is damaged: import it anew", list[i]);
        else if (there == 1)
            rc = fn(ctx, span_str(list[i]), &d, since, dynbuf_span(&says));
        dynbuf_free(&says);
    }
    free(list);
    return rc;
}
