/* Files beneath a folder that somebody else changes at the same time: no name leads out of it, neither by `..` or a
 * symbolic link, nor by one that is put there in between (openat2). All give -1 with errno. */
#ifndef SANDBOX_SHIM_INSIDE_BENEATH_H
#define SANDBOX_SHIM_INSIDE_BENEATH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* A name in a folder that is open. */
struct place {
    int dir;                 /* O_PATH; -1: none */
    char name[NAME_MAX + 1]; /* one component, not `.` or `..` */
};

/* As openat2. links: symbolic links that stay beneath are followed; else none is, nowhere. EXDEV: it leads out. */
int beneath_open(int root, const char *path, int flags, mode_t mode, bool links);
/* The folder that path is in, and its name there, which need not exist. EBUSY: it is root itself, or ends in `.` or
 * `..`. place_close is right in any case. */
int place_find(int root, const char *path, bool links, struct place *p);
void place_close(struct place *p);
/* An empty file in the place's folder, which has no name: gone, unless place_put gives it one. For writing. */
int place_make(const struct place *p);
/* Give it the place's name, instead of what has it (not of a folder). */
int place_put(const struct place *p, int fd);
/* Remove what has the name; whole: of a folder all that is in it, else it must be empty. */
int place_remove(const struct place *p, bool whole);
/* Remove all that is in a folder, which stays, whatever depth and modes it has below. */
int beneath_clear(int dir);
/* A folder at path and those above it, as far as they are not there. */
int beneath_mkdirs(int root, const char *path, mode_t mode, bool links);

#endif
