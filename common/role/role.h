/* Starting and confining a role: each main() reads as this checklist.
 *
 *   struct role *r = role_start("carrier", loop, &ops, arg);   descriptor 3 is the parent
 *   ... open what must be opened ...
 *   role_confine(r, &wall);                                    drops everything else, for good
 *   role_ready(r);                                             parent may send traffic
 *   loop_run(loop)
 */
#ifndef COMMON_ROLE_ROLE_H
#define COMMON_ROLE_ROLE_H

#include "common/net/chan.h"
#include "common/net/loop.h"

struct role;

/* Which system calls a role keeps after confinement, as groups (wall.c holds the one list of each). */
enum {
    WALL_BASE = 0,             /* memory, time, epoll, read/write/recvmsg/sendmsg on open descriptors, exit */
    WALL_MEMFD = 1u << 0,      /* memfd_create, ftruncate, fcntl seals, mmap of them */
    WALL_ACCEPT = 1u << 1,     /* accept4 on listeners handed over */
    WALL_CONNECT = 1u << 2,    /* socket(AF_INET*, SOCK_STREAM), connect */
    WALL_DNS = 1u << 3,        /* the same for datagrams, and reading resolv.conf and hosts */
    WALL_FILES = 1u << 4,      /* open, rename, unlink, fsync, locks: below the folders Landlock names */
    WALL_READ_FILES = 1u << 5, /* open for reading only */
    WALL_UNIX_LISTEN = 1u << 6,
    WALL_PAIR = 1u << 7,   /* socketpair(AF_UNIX, SOCK_STREAM) */
    WALL_WAIT = 1u << 8,   /* how a child of its own ended */
    WALL_LINKS = 1u << 9,  /* beside WALL_FILES: openat2, and symbolic links may be made below the same folders */
    WALL_MODES = 1u << 11, /* chmod: of whatever its user owns and can reach by its path */
    WALL_UNIX =
        1u << 10, /* socket(AF_UNIX, SOCK_STREAM), connect: to whatever socket its user may open by its path */
};

/* Frames that role.c itself reads and writes; proxy/msgs.h has the whole list, with these numbers. */
enum {
    ROLE_MSG_CONFIG = 1,
    ROLE_MSG_READY = 2,
    ROLE_MSG_PEER = 3,
    ROLE_MSG_STOP = 4,
    ROLE_MSG_SYNC = 7,
    ROLE_MSG_LOST = 8,
    ROLE_MSG_LOG = 9,
    ROLE_MSG_TRACE = 16
};

struct wall {
    unsigned calls;              /* WALL_* */
    const char *const *rw_dirs;  /* Landlock: below these read and write; NULL-terminated, may be NULL */
    const char *const *ro_paths; /* Landlock: these may be read, and what lies below them; missing ones stay shut */
    bool tcp_connect;            /* Landlock ABI 4: may connect TCP to any port; */
    const uint16_t *ports;       /* otherwise to these alone */
    size_t nports;
};

struct role_ops {
    /* A frame from the parent that role.c does not handle itself. */
    void (*frame)(void *arg, struct frame *f);
    /* A channel to a peer role was handed over (peer: enum role_id of proxy/msgs.h; instance: 0, or a front's number;
     * info: for a front its sandbox's name). Replaces an earlier one of the same peer and instance: the peer was
     * restarted, or the channel broke, and what was asked of the old one is lost. Ownership of fd passes; when a
     * channel made of it ends, the parent is told and may hand over another one. */
    void (*peer)(void *arg, unsigned peer, uint64_t instance, struct span info, int fd);
    /* The role's settings, as key and value; called for each pair before role_start returns. Descriptors
     * that come with them are fetched with role_config_fd. */
    void (*config)(void *arg, struct span key, struct span value);
    /* The parent is gone or says stop: end now. Default when NULL: exit(0). */
    void (*stop)(void *arg);
};

/* Set up logging (`boot` and `log_form` of the settings are for it), close what was inherited, ignore SIGPIPE,
 * PR_SET_PDEATHSIG, non-dumpable, RLIMIT_CORE 0, attach to descriptor 3, read M_CONFIG from it (blocking; wrong
 * MSG_VERSION: exit). Exits on failure. The environment can be read until role_confine wipes it. */
struct role *role_start(const char *name, struct loop *l, const struct role_ops *ops, void *arg) MUSTCHECK;
/* Descriptor i that came with the configuration, or -1. Stays open; the role owns it. */
int role_config_fd(const struct role *r, unsigned i);
/* The channel to the parent. */
struct chan *role_parent(struct role *r);
/* no_new_privs, uid and gid (from $COUNTERSIGN_UID when the parent is root), capabilities dropped, Landlock, seccomp
 * (default: kill). Exits if any part cannot be had; with sanitizers compiled in seccomp is left out and said so once.
 */
void role_confine(struct role *r, const struct wall *w);
/* The same, as the user who started it, for a program that is no role and has read its files. */
void role_confine_alone(const struct wall *w);
void role_ready(struct role *r);

/* For a program that is no role but is started for one, with a channel as descriptor 3, and ends with its one answer:
 * logging, a process group of its own, the user it is given, and the rest of what role_start does. Exits on failure.
 * role_confine_alone comes after it. */
void role_job_start(const char *name);
/* Its one order, which *payload keeps the bytes of; the caller owns the descriptors. Exits when there is none: as an
 * error, or with a plain line where whoever started it has ended, for which nobody is to blame. */
void role_job_order(struct frame *f, struct dynbuf *payload);
/* Its one answer to the order with this id. True if it was taken; else it is said in the log, as an error only while
 * somebody is still there to hear it. */
bool role_job_answer(uint16_t type, uint64_t id, const struct dynbuf *payload) MUSTCHECK;

#endif
