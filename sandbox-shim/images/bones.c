/* The places of a sandbox's own mounts in the root of an image: folders and files that are there, and that no link
 * leads to. bubblewrap follows links where it mounts, and a link of an image's could lead to what is outside. */
#include "sandbox-shim/images/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_beneath.h"

enum { FILE_NEW = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };

static const struct bone {
    const char *name; /* its folder comes before it */
    bool file, kept;  /* kept: what is there in its place is no folder of an image that is known here */
} bones[] = {
    {"proc", false, false},
    {"dev", false, false},
    {"tmp", false, false},
    {"run", false, false},
    {"home", false, false},
    {"workspace", false, false},
    {"countersign", false, false},
    {"etc", false, true},
    {"var", false, true},
    {"var/tmp", false, false},
    {"etc/passwd", true, false},
    {"etc/group", true, false},
    {"etc/hosts", true, false},

    {"etc/resolv.conf", true, false},
    {"etc/nsswitch.conf", true, false},
};

static int put_bone(const struct place *p, const struct bone *b, struct err *e)
{
    struct stat st;

    if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (b->file ? S_ISREG(st.st_mode) : S_ISDIR(st.st_mode))
            return 0;
        if (b->kept)
            return err_set(e, "its /%s is no folder", b->name);
        if (layer_remove(p->dir, p->name) != 0)
            return err_errno(e, "its /%s cannot be replaced", b->name);
    }
    int fd = b->file ? openat(p->dir, p->name, FILE_NEW, 0644) : mkdirat(p->dir, p->name, 0755);
    if (fd < 0)
        return err_errno(e, "its /%s cannot be made", b->name);
    if (b->file)
        close(fd);
    return 0;
}

int bones_put(int root, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; i < sizeof(bones) / sizeof(bones[0]) && rc == 0; i++) {
        struct place p;
        rc = place_find(root, bones[i].name, false, &p);
        if (rc != 0)
            (void)err_errno(e, "its /%s cannot be made", bones[i].name);
        else
            rc = put_bone(&p, &bones[i], e);
        place_close(&p);
    }
    return rc;
}
