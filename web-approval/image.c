#include "web-approval/image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "policy/policy.h"

enum { IMAGE_MAX = 64 * 1024 * 1024 };

/* Sealed against every change: what is checked now stays so. */
static bool is_sealed(int fd)
{
    const int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & all) == all;
}

void image_take(struct desk *d, int fd)
{
    struct stat st;
    struct err e;
    void *p = MAP_FAILED;

    if (fd >= 0 && is_sealed(fd) && fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size <= IMAGE_MAX)
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (p == MAP_FAILED) {
        log_warn("the policy image cannot be mapped; the page says nothing of credentials");
        return;
    }
    struct span image = span_of(p, (size_t)st.st_size);
    struct policy *fresh = policy_open(image, &e);
    if (!fresh) {
        log_warn("the policy image is not one: %s", e.text);
        (void)munmap(p, image.n);
        return;
    }
    if (d->policy) {
        policy_close(d->policy);
        (void)munmap((void *)(uintptr_t)d->image.p, d->image.n);
    }
    d->policy = fresh;
    d->image = image;
}

int image_credential(const struct desk *d, struct span name)
{
    struct credential c;

    for (size_t i = 0; d->policy && i < policy_credentials(d->policy); i++)
        if (policy_credential(d->policy, i, &c) && span_eq(c.name, name))
            return (int)i;
    return -1;
}
