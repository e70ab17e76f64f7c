/* A policy from disk: reads the files, floors, packs and CA files and compiles
 * them. The only part of policy/load that touches files; for the daemon's
 * loader child and the verbs. Nothing is followed: a symbolic link, a device, a
 * directory, a file over its limit or one that anybody may write is refused. */
#ifndef POLICY_LOAD_DISK_H
#define POLICY_LOAD_DISK_H

#include "common/arena.h"
#include "policy/load/load.h"

/* What to read. paths: the policy's files, one policy together. floors, packs: NULL for none and for the default
 * search (the installed packs, then ./conf/packs). CA files and includes are relative to the folder of the file that
 * names them. signers: a file of keys (NULL: none); with it every
 * file that is read is signed by one of them, but for the installed packs. now_ms: Unix time. saw (may be NULL): told
 * of every file of the policy that was read, once, with its content; time zones are the system's and not among them.
 * texts (may be NULL): what each of paths would have, in place of reading it, where it is not empty: for a verb that
 * asks what a file would do before there is one. Nobody signed such a text: never for what is to be in force.
 */
typedef void policy_saw_fn(void *arg, const char *path, struct span text);
/* input (may be NULL): told of every text that goes into the image, by the name it was asked for. These alone, given
 * to policy_load again, make the same image. The text is gone when policy_load_from_disk returns; one file by two
 * names is one span. The values below 16 are those of enum policy_ref; POLICY_REF_SIGNED: all of them are signed, by
 * a key in the file of this name. roots_strict (may be NULL): as tls_roots_strict (common/net/tls.h), for a verb that
 * warns of what a CA file lacks; this room has no X.509. */
enum policy_input { POLICY_INPUT_FILE = 16, POLICY_INPUT_FLOORS };
typedef void policy_input_fn(void *arg, enum policy_input kind, struct span name, struct span text);
struct policy_place {
    const char *const *paths;
    const struct span *texts;
    size_t n;
    const char *floors, *packs, *signers;
    uint64_t now_ms;
    policy_saw_fn *saw;
    void *saw_arg;
    policy_input_fn *input;
    void *input_arg;
    int (*roots_strict)(struct span roots_pem, struct err *e);
};

/* out is born with POLICY_IMAGE_MAX by the caller. 0, or -1 with *e as policy_load. */
int policy_load_from_disk(const struct policy_place *from, struct dynbuf *out, struct policy_problems *problems,
                          struct err *e) MUSTCHECK;
/* The whole of a regular file of at most max bytes, in the arena. */
int policy_read_file(const char *path, size_t max, struct arena *a, struct span *out, struct err *e) MUSTCHECK;

#endif
