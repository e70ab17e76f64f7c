/* A directory that outlives its sandboxes and cannot grow beyond its size: a file system in a file. It is mounted in
 * the mounts of this process alone, by a loop device that goes with its last mount, so that whatever is killed leaves
 * neither. On disk its files are of one user, whatever user a sandbox runs as: each sees them as its own (an
 * id-mapped mount). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox-shim/start/mounts.h"

enum { ON_DISK = 1000 /* whose its files are there, and inside */, TRIES = 64, NAME_ROOM = 64 };

/* --- the file ------------------------------------------------------------------------- */

static void become_mkfs(const char *file)
{
    static char name[] = "mkfs.ext4", quiet[] = "-q", force[] = "-F", spare[] = "-m", none[] = "0", more[] = "-E",
                owner[] = "root_owner=1000:1000,lazy_itable_init=1,lazy_journal_init=1";
    char *const envp[] = {NULL};
    char path[PATH_MAX];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)snprintf(path, sizeof(path), "%s", file);
    char *const argv[] = {name, quiet, force, spare, none, more, owner, path, NULL};
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        (void)dup2(null, fd);
    (void)execve("/sbin/mkfs.ext4", argv, envp);
    (void)execve("/usr/sbin/mkfs.ext4", argv, envp);
    _exit(127);
}

static int ended_well(pid_t pid)
{
    int status = -1;

    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* It has its name when it is whole. */
static int file_make(const char *file, uint64_t size, struct err *e)
{
    char fresh[PATH_MAX];
    int n = snprintf(fresh, sizeof(fresh), "%s.new", file);
    int fd = n > 0 && (size_t)n < sizeof(fresh)
                 ? open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)
                 : -1;
    int rc = fd >= 0 ? ftruncate(fd, (off_t)size) : -1;

    if (fd >= 0)
        close(fd);
    if (rc != 0)
        return err_errno(e, "its mount cannot be made: %s", file);
    pid_t pid = fork();
    if (pid == 0)
        become_mkfs(fresh);
    if (ended_well(pid) != 0)
        return err_set(e, "its mount cannot be made: mkfs.ext4 (of e2fsprogs) did not make %s", fresh);
    return rename(fresh, file) == 0 ? 0 : err_errno(e, "its mount cannot be made: %s", file);
}

/* --- its device ------------------------------------------------------------------------- */

static bool is_of(int device, const struct stat *file)
{
    struct loop_info64 info;

    return ioctl(device, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == file->st_ino &&
           (info.lo_flags & LO_FLAGS_AUTOCLEAR) != 0;
}

/* The one that has this file already: two would not know of each other what they write. */
static int device_find(const char *file, const struct stat *st)
{
    char path[NAME_ROOM + 300], backing[PATH_MAX];
    struct dirent *d;
    DIR *block = opendir("/sys/block");
    int found = -1;

    while (block && found < 0 && (d = readdir(block))) {
        if (strncmp(d->d_name, "loop", 4) != 0)
            continue;
        (void)snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", d->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, backing, sizeof(backing) - 1) : -1;
        if (fd >= 0)
            close(fd);
        backing[n > 0 ? n - 1 : 0] = '\0';
        if (strcmp(backing, file) != 0)
            continue;
        (void)snprintf(path, sizeof(path), "/dev/%s", d->d_name);
        found = open(path, O_RDWR | O_CLOEXEC);
        if (found >= 0 && !is_of(found, st)) {
            close(found);
            found = -1;
        }
    }
    if (block)
        (void)closedir(block);
    return found;
}

/* A free one may be somebody else's by the time it is asked for. */
static int device_make(int fd)
{
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), device = -1;
    struct loop_config config = {.fd = (uint32_t)fd, .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
    char path[NAME_ROOM];

    for (int i = 0; control >= 0 && device < 0 && i < TRIES; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        (void)snprintf(path, sizeof(path), "/dev/loop%d", number);
        device = number >= 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
        if (device < 0 || ioctl(device, LOOP_CONFIGURE, &config) == 0)
            break;
        bool busy = errno == EBUSY;
        close(device);
        device = -1;
        if (!busy)
            break;
    }
    if (control >= 0)
        close(control);
    return device;
}

static int device_of(const char *file)
{
    int fd = open(file, O_RDWR | O_NOFOLLOW | O_CLOEXEC), device = -1;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        device = device_find(file, &st);
        if (device < 0)
            device = device_make(fd);
    }
    if (fd >= 0)
        close(fd);
    return device;
}

/* --- whose its files are ------------------------------------------------------------------ */

static int map_write(pid_t pid, const char *which, unsigned user)
{
    char path[NAME_ROOM], text[NAME_ROOM];
    int n = snprintf(text, sizeof(text), "%d %u 1\n", ON_DISK, user);

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, which);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int rc = fd >= 0 && write(fd, text, (size_t)n) == n ? 0 : -1;
    if (fd >= 0)
        close(fd);
    return rc;
}

/* A user namespace that says so, open; nobody lives in it. */
static int map_open(unsigned user)
{
    char path[NAME_ROOM], byte;
    int up[2], ns = -1;

    if (pipe2(up, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWUSER) != 0 || write(up[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    close(up[1]);
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
    if (pid > 0 && read(up[0], &byte, 1) == 1 && map_write(pid, "uid_map", user) == 0 &&
        map_write(pid, "gid_map", user) == 0)
        ns = open(path, O_RDONLY | O_CLOEXEC);
    close(up[0]);
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)ended_well(pid);
    }
    return ns;
}

/* What is mounted there, once more over itself, with its files this user's. */
static int map_mount(const char *place, unsigned user)
{
    int ns = map_open(user);
    int tree = ns >= 0 ? (int)syscall(SYS_open_tree, AT_FDCWD, place, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) : -1;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)(ns >= 0 ? ns : 0)};
    int rc = tree >= 0 && syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0 &&
                     syscall(SYS_move_mount, tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) == 0
                 ? 0
                 : -1;

    if (tree >= 0)
        close(tree);
    if (ns >= 0)
        close(ns);
    return rc;
}

/* --- */

static int mount_it(const char *file, unsigned user, const char *place, struct err *e)
{
    char path[NAME_ROOM];
    int device = device_of(file);

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", device);
    int rc = device >= 0 ? mount(path, place, "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME, "errors=remount-ro") : -1;
    if (rc != 0)
        rc = err_errno(e, "its mount cannot be had: %s", file);
    else if ((rc = map_mount(place, user)) != 0)
        rc = err_errno(e, "its mount cannot be made its user's: %s", file);
    if (device >= 0)
        close(device);
    return rc;
}

int kept_mount(const char *file, uint64_t size, unsigned user, const char *place, struct err *e)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(file, '/');

    (void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - file) : 0, file);
    /* until it is mounted: nobody else makes it, or takes a device for it */
    int lock = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = lock >= 0 && flock(lock, LOCK_EX) == 0 ? 0 : err_errno(e, "its mount cannot be had: %s", folder);
    if (rc == 0 && access(file, F_OK) != 0)
        rc = file_make(file, size, e);
    if (rc == 0)
        rc = mount_it(file, user, place, e);
    if (lock >= 0)
        close(lock);
    return rc;
}
