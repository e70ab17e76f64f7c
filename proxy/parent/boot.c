/* What must be there before the first role runs: folders, sockets, files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/id.h"
#include "common/log.h"
#include "common/msg.h"
#include "proxy/parent/parent.h"
#include "proxy/parent/truststore.h"

enum { UID_BASE = 62000, UID_SPAN = CONFIG_UIDS };
_Static_assert((int)UID_SPAN == (int)BOX_USERS + (int)BOXES_MAX, "as many as are given");

/* Root's roles get a user of their own each, if this namespace has such users. */
static int uid_base(struct parent *p, struct err *e)
{
    unsigned long inside, outside, count, base = p->config->uid_base ? (unsigned long)p->config->uid_base : UID_BASE;
    FILE *f = geteuid() == 0 ? fopen("/proc/self/uid_map", "re") : NULL;
    if (f == NULL)
        return 0;
    while (fscanf(f, "%lu %lu %lu", &inside, &outside, &count) == 3)
        if (inside <= base && base + UID_SPAN <= inside + count)
            p->uid_base = (int)base;
    fclose(f);
    if (p->uid_base == 0 && p->config->uid_base)
        return err_set(e, "uid_base: this namespace does not have the user ids %lu to %lu (/proc/self/uid_map)", base,
                       base + UID_SPAN - 1);
    if (p->uid_base == 0)
        log_warn("no user ids to separate the roles by in this namespace; see THREATS.md");
    return 0;
}

/* Each gateway on this machine, as far as it has the same /run, holds a lock on the bytes that its user ids number. A
 * user of both is no way from one into the other, but the kernel counts what it has open for both together. */
static void uids_claim(int base)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = base, .l_len = UID_SPAN};
    int fd = base ? open("/run/countersign.uids", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &range) == 0)
        return; /* held as long as we live; or there is nobody to be asked */
    log_info("another gateway on this machine gives user ids from %d to %d as well; uid_base: in countersign.yaml "
             "gives each its own",
             base, base + UID_SPAN - 1);
    close(fd);
}

/* What lies in it would be read by nobody. */
static int was_anothers(const char *state, const char *sub, int uid, struct err *e)
{
    char path[CONFIG_PATH + 32];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", state, sub);
    if (uid < 0 || lstat(path, &st) != 0 || st.st_uid == 0 || st.st_uid == (uid_t)uid)
        return 0;
    return err_set(e,
                   "%s is of user %u and has to be of %d: another uid_base (countersign.yaml) was in force; say that "
                   "one again, or give the folder and all in it to the new user: chown -R %d:%d %s",
                   path, (unsigned)st.st_uid, uid, uid, uid, path);
}

static int make_dir(const char *base, const char *sub, unsigned mode, int uid, int gid, struct err *e)
{
    char path[CONFIG_PATH + 32];
    struct stat st;
    snprintf(path, sizeof(path), "%s%s%s", base, *sub ? "/" : "", sub);
    if (mkdir(path, mode) != 0 && errno != EEXIST)
        return err_errno(e, "cannot make %s", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        if (fd >= 0)
            close(fd);
        return err_errno(e, "cannot use %s (it must be a folder, not a link)", path);
    }
    int bad = fchmod(fd, mode) != 0 || (uid >= 0 && fchown(fd, (uid_t)uid, (gid_t)gid) != 0);
    close(fd);
    return bad ? err_errno(e, "cannot set the owner and mode of %s", path) : 0;
}

/* mkdir -p for the state directory's parents. */
static void make_parents(const char *path)
{
    char copy[CONFIG_PATH];
    snprintf(copy, sizeof(copy), "%s", path);
    for (char *at = copy + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        if (mkdir(copy, 0755) != 0 && errno != EEXIST)
            return; /* make_dir says it */
        *at = '/';
    }
}

static int folders(struct parent *p, struct err *e)
{
    const char *state = p->config->state_dir;
    int base = p->uid_base;
    int keeper = base ? base + ROLE_KEEPER : -1, ledger = base ? base + ROLE_LEDGER : -1;
    int store = base ? base + STORE_USER : -1, broker = base ? base + ROLE_BROKER : -1;
    char path[CONFIG_PATH + 32];
    struct stat st;
    snprintf(path, sizeof(path), "%s/keeper", state);
    p->new_state = lstat(path, &st) != 0 && errno == ENOENT;
    make_parents(state);
    if (was_anothers(state, "keeper", keeper, e) != 0 || was_anothers(state, "store", ledger, e) != 0 ||
        was_anothers(state, "checkpoints", store, e) != 0 || was_anothers(state, "broker", broker, e) != 0 ||
        make_dir(state, "", base ? 0711 : 0700, -1, -1, e) != 0 ||
        make_dir(state, "keeper", 0700, keeper, keeper, e) != 0 ||
        make_dir(state, "store", 0750, ledger, ledger, e) != 0 ||
        (p->config->broker.models[0] != '\0' && make_dir(state, "broker", 0700, broker, broker, e) != 0) ||
        make_dir(state, "checkpoints", 0700, store, store, e) != 0 || make_dir(state, "run", 0700, -1, -1, e) != 0)
        return -1;
    p->keeper_dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return p->keeper_dir < 0 ? err_errno(e, "cannot open %s", path) : 0;
}

/* Two daemons on one state directory would be two writers of one store. */
static int only_one(struct parent *p, struct err *e)
{
    char path[CONFIG_PATH + 32];
    snprintf(path, sizeof(path), "%s/lock", p->config->state_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, "cannot open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return err_set(e, "a countersign runs on %s already; end it first, or choose another --state-dir",
                       p->config->state_dir);
    }
    p->locked = true; /* as long as we live */
    return 0;
}

/* Sockets that nobody serves lead nowhere: those of an earlier life at the start, our own at the end; and sandboxes
 * that nobody looks after. Only the holder of the lock may say so. */
void parent_sweep(struct parent *p)
{
    static const char *const own[] = {"control.sock", "keeper.sock", "broker.sock"};
    const char *state = p->config->state_dir;
    char path[CONFIG_PATH + 300];
    struct dirent *d;
    if (!p->locked)
        return;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", state, own[i]);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/run", state);
    DIR *dir = opendir(path);
    while (dir != NULL && (d = readdir(dir)) != NULL)
        if (strncmp(d->d_name, "sb-", 3) == 0 || strncmp(d->d_name, "cell-", 5) == 0) {
            snprintf(path, sizeof(path), "%s/run/%s", state, d->d_name);
            unlink(path);
        }
    if (dir != NULL)
        closedir(dir);
    parent_boxes_sweep(p);
}

int parent_prepare(struct parent *p, struct err *e)
{
    struct id boot;
    ssize_t n = readlink("/proc/self/exe", p->exe_dir, sizeof(p->exe_dir) - 1);
    char *slash = n > 0 ? strrchr(p->exe_dir, '/') : NULL;
    if (slash == NULL || id_new(&boot) != 0)
        return err_set(e, "cannot tell where the program lies (/proc must be there), or no random numbers");
    *slash = '\0';
    hex_text(span_of(boot.b, ID_BYTES), p->boot);
    if (uid_base(p, e) != 0 || folders(p, e) != 0 || only_one(p, e) != 0)
        return -1;
    uids_claim(p->uid_base);
    parent_sweep(p);
    return parent_bind(p, e);
}

static int replace_file(const char *dir, const char *name, struct span a, struct span b)
{
    char path[CONFIG_PATH + 32], tmp[CONFIG_PATH + 40];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    snprintf(tmp, sizeof(tmp), "%s.new", path);
    unlink(tmp);
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return -1;
    int bad = write(fd, a.p, a.n) != (ssize_t)a.n || (b.n && write(fd, b.p, b.n) != (ssize_t)b.n) || fchmod(fd, 0644);
    close(fd);
    return bad || rename(tmp, path) != 0 ? -1 : 0;
}

/* ca.crt, and bundle.crt: the system's roots and our CA in one file, because a variable that
 * points at a bundle replaces the system's roots (docs: a CA alone breaks what is not intercepted).
 * The same once more for Java, which reads neither. */
int parent_write_public(struct parent *p, struct span ca_pem)
{
    struct dynbuf roots, java;
    int bad = -1;
    dynbuf_init(&roots, 4 * 1024 * 1024);
    dynbuf_init(&java, 8 * 1024 * 1024);
    if (file_read(p->config->roots, &roots) != 0) {
        log_warn("no system roots can be read from %s: %s; install ca-certificates", p->config->roots,
                 strerror(errno));
        dynbuf_free(&roots); /* none rather than some */
    }
    if (roots.n && roots.p[roots.n - 1] != '\n') /* two PEM lines glued together would lose both certificates */
        (void)dynbuf_add_byte(&roots, '\n');
    if (replace_file(p->config->state_dir, "ca.crt", ca_pem, SPAN_NONE) == 0 &&
        replace_file(p->config->state_dir, "bundle.crt", dynbuf_span(&roots), ca_pem) == 0 &&
        truststore_make(dynbuf_span(&roots), ca_pem, &java) == 0 &&
        replace_file(p->config->state_dir, "truststore.p12", dynbuf_span(&java), SPAN_NONE) == 0)
        bad = 0;
    dynbuf_free(&roots);
    dynbuf_free(&java);
    return bad;
}
