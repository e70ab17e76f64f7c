/* The files and systemd credentials that are sources of the policy's credentials: opened here, read only by the
 * keeper. They come before the policy that they are of, and are used with it only: what cannot be opened now has no
 * value by that policy, whatever a file of an earlier one held. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memfd.h"
#include "common/msg.h"
#include "policy/policy.h"
#include "proxy/parent/parent.h"

/* A file below $CREDENTIALS_DIRECTORY, or one that is named as it is. */
static int source_path(enum source_kind kind, struct span where, char *path, size_t cap)
{
    const char *dir = kind == SOURCE_SYSTEMD ? getenv("CREDENTIALS_DIRECTORY") : "";
    int n = dir != NULL ? snprintf(path, cap, "%s%s%.*s", dir, *dir ? "/" : "", SPAN_FMT(where)) : -1;
    return n > 0 && (size_t)n < cap ? 0 : -1;
}

int parent_open_secret(enum source_kind kind, struct span where, struct err *e)
{
    char path[4096];
    if (source_path(kind, where, path, sizeof(path)) != 0)
        return err_set(e, "systemd gave the gateway no credentials");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd >= 0 ? fd : err_errno(e, "cannot open %s", path);
}

static void send_source(struct parent *p, struct child *keeper, struct span credential, enum source_kind kind,
                        struct span where)
{
    struct err e = {{0}};
    if (kind != SOURCE_FILE && kind != SOURCE_SYSTEMD)
        return;
    int fd = parent_open_secret(kind, where, &e);
    if (fd < 0) {
        log_warn("credential %.*s: %s", SPAN_FMT(credential), e.text);
        return;
    }
    struct dynbuf *b = chan_begin(keeper->chan, M_SOURCE, 0);
    if (b != NULL) {
        msg_put_digest(b, &p->policy.digest);
        msg_put_u8(b, (uint8_t)kind);
        msg_put_span(b, where);
        (void)chan_commit_fd(keeper->chan, fd);
    }
    close(fd);
}

void parent_send_sources(struct parent *p, struct child *keeper)
{
    struct span map;
    struct credential cred;
    struct setting s;
    if (memfd_map(p->policy.image, POLICY_IMAGE_MAX, &map) != 0)
        return;
    struct policy *image = policy_open(map, NULL);
    for (size_t i = 0; image != NULL && policy_credential(image, i, &cred); i++) {
        send_source(p, keeper, cred.name, cred.source, cred.source_arg);
        for (size_t k = 0; policy_setting(image, &cred, k, &s); k++)
            send_source(p, keeper, cred.name, s.from, s.value);
    }
    policy_close(image);
    memfd_unmap(&map);
}
