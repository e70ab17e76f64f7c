/* The policy: compiled in a short-lived child, kept as one sealed image that
 * every process which needs it maps. The parent itself parses no YAML of a policy. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/msg.h"
#include "common/net/tls.h"
#include "policy/load/disk.h"
#include "policy/policy.h"
#include "proxy/parent/parent.h"

enum { COMPILE_SECONDS = 30, TLS_FILES_MAX = 256 * 1024 };

static int read_pem(const char *path, struct dynbuf *b, struct err *e)
{
    dynbuf_reset(b);
    return file_read(path, b) == 0
               ? 0
               : err_errno(e, "cannot read %s (a PEM file, at most %d bytes)", path, TLS_FILES_MAX);
}

/* What the lobby will make of the files of tls:, while somebody is there to be told. The keys end with this child. */
static int tls_check(const struct config *c, struct err *e)
{
    struct dynbuf pem[3];
    int bad = 0;
    for (int i = 0; i < 3; i++)
        dynbuf_init(&pem[i], TLS_FILES_MAX);
    for (size_t i = 0; i < c->nlisteners && bad == 0; i++) {
        const struct config_listener *l = &c->listener[i];
        struct err why = {{0}};
        if (l->certificate[0] == '\0')
            continue;
        dynbuf_reset(&pem[2]);
        if (read_pem(l->certificate, &pem[0], e) != 0 || read_pem(l->key, &pem[1], e) != 0 ||
            (l->clients[0] && read_pem(l->clients, &pem[2], e) != 0))
            return -1;
        struct tls_server *s = NULL;
        if (l->clients[0] && pem[2].n == 0)
            err_set(&why, "%s is empty", l->clients);
        else
            s = tls_server_own(dynbuf_span(&pem[0]), dynbuf_span(&pem[1]), dynbuf_span(&pem[2]), &why);
        if (s == NULL)
            bad = err_set(e, "listener %s: tls: %s", l->name, why.text);
        tls_server_free(&s);
    }
    return bad;
}

/* In the child: write the image to fd, or the words to report, and leave. */
static void compile(const struct config *c, int fd, int report)
{
    struct dynbuf image;
    struct err e = {{0}};
    alarm(COMPILE_SECONDS);
    const char *paths[CONFIG_POLICIES];
    for (size_t i = 0; i < c->npolicy; i++)
        paths[i] = c->policy[i];
    dynbuf_init(&image, POLICY_IMAGE_MAX);
    int bad = tls_check(c, &e) != 0 ? -1
                                    : policy_load_from_disk(paths, c->npolicy, c->floors[0] ? c->floors : NULL,
                                                            c->packs_dir, &image, NULL, &e);
    for (size_t off = 0; !bad && off < image.n;) {
        ssize_t n = write(fd, image.p + off, image.n - off);
        if (n <= 0)
            bad = err_errno(&e, "cannot write the policy image");
        else
            off += (size_t)n;
    }
    if (bad && write(report, e.text, strlen(e.text)) < 0)
        _exit(2);
    _exit(bad ? 1 : 0);
}

static int await(int pid, int report, struct err *e)
{
    size_t n = 0;
    ssize_t got;
    int status = 0;
    while (n < sizeof(e->text) - 1 && (got = read(report, e->text + n, sizeof(e->text) - 1 - n)) > 0)
        n += (size_t)got;
    e->text[n] = '\0';
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_errno(e, "cannot tell how the policy compiler ended");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return n ? -1 : err_set(e, "the policy compiler died; is the policy sane?");
}

/* Open it as a role would: an image nobody can open must not replace one that works. */
static int accept_image(struct parent *p, int fd, struct err *e)
{
    struct policy *image = NULL;
    struct span map = SPAN_NONE;
    int bad = -1;
    if (memfd_seal(fd) != 0 || memfd_map(fd, POLICY_IMAGE_MAX, &map) != 0) {
        err_errno(e, "cannot seal the policy image");
        goto out;
    }
    if ((image = policy_open(map, e)) == NULL)
        goto out;
    if (policy_digest(image).n != DIGEST_BYTES) {
        err_set(e, "the policy image has no digest");
        goto out;
    }
    memcpy(p->image_digest.b, policy_digest(image).p, DIGEST_BYTES);
    bad = 0;
out:
    policy_close(image);
    memfd_unmap(&map);
    return bad;
}

int parent_compile(struct parent *p, struct err *e)
{
    int fds[2] = {-1, -1}, bad = -1;
    int fd = memfd_create("countersign-policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || pipe2(fds, O_CLOEXEC) != 0) {
        err_errno(e, "cannot compile the policy");
        goto out;
    }
    int pid = fork();
    if (pid == 0) {
        signal(SIGCHLD, SIG_DFL);
        compile(p->config, fd, fds[1]);
    }
    close(fds[1]);
    fds[1] = -1;
    if (pid < 0)
        err_errno(e, "cannot start the policy compiler");
    if (pid < 0 || await(pid, fds[0], e) != 0 || accept_image(p, fd, e) != 0)
        goto out;
    if (p->image_fd >= 0)
        close(p->image_fd);
    p->image_fd = fd;
    fd = -1;
    bad = 0;
out:
    if (fd >= 0)
        close(fd);
    if (fds[0] >= 0)
        close(fds[0]);
    if (fds[1] >= 0)
        close(fds[1]);
    return bad;
}

/* The keeper's file sources: opened here, read only there. */
static void send_sources(struct parent *p, struct child *keeper)
{
    struct span map;
    struct credential cred;
    if (memfd_map(p->image_fd, POLICY_IMAGE_MAX, &map) != 0)
        return;
    struct policy *image = policy_open(map, NULL);
    for (size_t i = 0; image != NULL && policy_credential(image, i, &cred); i++) {
        char path[4096];
        if (cred.source != SOURCE_FILE || cred.source_arg.n >= sizeof(path))
            continue;
        snprintf(path, sizeof(path), "%.*s", SPAN_FMT(cred.source_arg));
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0) {
            log_warn("credential %.*s: cannot open %s: %m", SPAN_FMT(cred.name), path);
            continue;
        }
        struct dynbuf *b = chan_begin(keeper->chan, M_SOURCE, 0);
        if (b != NULL) {
            msg_put_span(b, cred.name);
            (void)chan_commit_fd(keeper->chan, fd);
        }
        close(fd);
    }
    policy_close(image);
    memfd_unmap(&map);
}

void parent_send_image(struct parent *p, struct child *c)
{
    bool wants = c->role == ROLE_JUDGE || c->role == ROLE_KEEPER || c->role == ROLE_LEDGER || c->role == ROLE_DESK;
    if (!wants || c->chan == NULL || p->image_fd < 0)
        return;
    struct dynbuf *b = chan_begin(c->chan, M_IMAGE, 0);
    if (b == NULL)
        return;
    msg_put_digest(b, &p->image_digest);
    (void)chan_commit_fd(c->chan, p->image_fd);
    if (c->role == ROLE_KEEPER)
        send_sources(p, c);
}
