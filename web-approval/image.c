#include "web-approval/image.h"

#include <unistd.h>

#include "common/log.h"
#include "common/memfd.h"
#include "policy/policy.h"
#include "web-approval/glance/glance.h"

enum { IMAGE_MAX = 64 * 1024 * 1024 };

int image_take(struct desk *d, int fd)
{
    struct span image;
    struct err e;
    int rc = memfd_map(fd, IMAGE_MAX, &image);

    if (fd >= 0)
        close(fd);
    if (rc != 0) {
        log_error("the policy image cannot be mapped, or is not a memfd with all its seals");
        return -1;
    }
    struct policy *fresh = policy_open(image, &e);
    if (!fresh) {
        log_error("the policy image is not one: %s", e.text);
        memfd_unmap(&image);
        return -1;
    }
    if (d->policy) {
        policy_close(d->policy);
        memfd_unmap(&d->image);
    }
    glance_forget(d);
    d->policy = fresh;
    d->image = image;
    return 0;
}

int image_credential(const struct desk *d, struct span name)
{
    struct credential c;

    for (size_t i = 0; d->policy && i < policy_credentials(d->policy); i++)
        if (policy_credential(d->policy, i, &c) && span_eq(c.name, name))
            return (int)i;
    return -1;
}
