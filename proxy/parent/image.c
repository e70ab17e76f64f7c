/* The policy: compiled in a short-lived child, kept as one sealed image that
 * every process which needs it maps. The parent itself parses no YAML of a policy. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/msg.h"
#include "common/net/tls.h"
#include "policy/test/own_tests.h"
#include "policy/explain.h"
#include "policy/load/disk.h"
#include "policy/policy.h"
#include "proxy/parent/parent.h"

enum {
    COMPILE_SECONDS = 30,
    TLS_FILES_MAX = 256 * 1024,
    TRUST_FILES_MAX = 8 * 1024 * 1024,
    PROBLEMS_MAX = 1000,
    PATH_SHOWN = 80
};

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

/* What the carrier will make of the roots and the revocation lists, which come into force with the policy or not at
 * all. Roots that are not there are no error: it does without, as when it starts. */
static int trust_check(const struct config *c, struct err *e)
{
    struct dynbuf roots, crl;
    struct err why = {{0}};
    int bad = -1;
    dynbuf_init(&roots, TRUST_FILES_MAX);
    dynbuf_init(&crl, TRUST_FILES_MAX);
    if (c->crl[0] && (file_read(c->crl, &crl) != 0 || crl.n == 0)) {
        err_set(e, "crl: %s is empty, or cannot be read", c->crl);
        goto out;
    }
    if (file_read(c->roots, &roots) == 0 && roots.n > 0) {
        const struct tls_trust t = {.roots_pem = dynbuf_span(&roots), .crl_pem = dynbuf_span(&crl)};
        struct tls_client *made = tls_client_new(&t, &why);
        if (made == NULL) {
            err_set(e, "the roots in %s%s%s cannot be used: %s", c->roots, c->crl[0] ? " or the lists in " : "",
                    c->crl, why.text);
            goto out;
        }
        tls_client_free(&made);
    }
    bad = 0;
out:
    dynbuf_free(&roots);
    dynbuf_free(&crl);
    return bad;
}

/* A policy that fails its own tests is not what its author meant. */
static int run_tests(const struct policy_place *from, struct span image, struct err *e)
{
    struct tests_ran ran;
    struct policy *p = policy_open(image, e);
    int bad = p == NULL || policy_tests_run(p, from->paths, from->n, &ran, e) != 0 ? -1 : 0;
    if (bad == 0 && ran.files > 0)
        log_info("the policy's own tests passed: %zu cases in %zu files", ran.cases, ran.files);
    policy_close(p);
    return bad;
}

struct job {
    const struct config *c;
    const char *stored; /* a version to compile again; NULL: the files that the configuration names */
    int image, bundle, report;
};

static int write_out(int fd, const struct dynbuf *b, struct err *e)
{
    for (size_t off = 0; off < b->n;) {
        ssize_t n = write(fd, b->p + off, b->n - off);
        if (n <= 0)
            return err_errno(e, "cannot write the policy image");
        off += (size_t)n;
    }
    return 0;
}

/* All that went into the image, for those that are kept. That it cannot be kept is no reason to go without it. */
static void put_bundle(struct stored *s, struct span image, int fd)
{
    struct err e = {{0}};
    struct dynbuf b;
    struct policy *p = policy_open(image, &e);
    dynbuf_init(&b, STORED_BYTES_MAX + STORED_MANIFEST_MAX);
    if (p != NULL) {
        hex_text(policy_digest(p), s->hex);
        s->name = span_index(policy_name(p), '\n') < policy_name(p).n ? SPAN_NONE : policy_name(p);
        s->rules = policy_rules(p);
        s->stored_ms = (uint64_t)time(NULL) * 1000;
    }
    if (p != NULL && stored_finish(s, &e) == 0)
        stored_put(s, &b);
    if (b.n == 0 || !dynbuf_ok(&b) || write_out(fd, &b, &e) != 0) {
        log_error("this version of the policy cannot be kept: %s", e.text);
        if (ftruncate(fd, 0) != 0)
            _exit(2);
    }
    dynbuf_free(&b);
    policy_close(p);
}

/* The first problem with its code, and how many more there are: a log line, and an answer to `reload`. */
static void say_problems(const struct policy_problems *all, const char *path, struct err *e)
{
    const struct policy_problem *first = NULL;
    char more[PATH_SHOWN + 64] = "", where[PATH_SHOWN * 2];
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        first = first || all->v[i].severity != 'E' ? first : &all->v[i];
        n += all->v[i].severity == 'E';
    }
    if (first == NULL)
        return;
    if (n > 1)
        (void)snprintf(more, sizeof(more), "; %zu more: countersign policy check %.*s", n - 1, PATH_SHOWN, path);
    (void)snprintf(where, sizeof(where), "%.*s", (int)sizeof(where) - 1, first->where);
    (void)err_set(e, "%s: %.*s (%s)%s", where, (int)(sizeof(e->text) - strlen(where) - strlen(more) - 16),
                  first->text, first->code, more);
}

static int compile_files(const struct job *j, struct dynbuf *image, struct err *e)
{
    struct policy_problems problems = {calloc(PROBLEMS_MAX, sizeof(*problems.v)), 0, 0};
    struct stored s;
    const struct config *c = j->c;
    const char *paths[CONFIG_POLICIES];
    for (size_t i = 0; i < c->npolicy; i++)
        paths[i] = c->policy[i];
    problems.max = problems.v ? PROBLEMS_MAX : 0;
    if (stored_begin(&s, e) != 0) {
        free(problems.v);
        return -1;
    }
    const struct policy_place from = {.paths = paths,
                                      .n = c->npolicy,
                                      .floors = c->floors[0] ? c->floors : NULL,
                                      .packs = c->packs_dir,
                                      .signers = c->signers[0] ? c->signers : NULL,
                                      .now_ms = (uint64_t)time(NULL) * 1000,
                                      .input = stored_add,
                                      .input_arg = &s};
    int bad = policy_load_from_disk(&from, image, &problems, e);
    if (bad)
        say_problems(&problems, paths[0], e);
    free(problems.v);
    if (bad == 0)
        bad = run_tests(&from, dynbuf_span(image), e);
    if (bad == 0)
        put_bundle(&s, dynbuf_span(image), j->bundle);
    stored_free(&s);
    return bad;
}

static int compile_stored(const struct job *j, struct dynbuf *image, struct err *e)
{
    char dir[VERSIONS_PATH];
    if (versions_dir(j->c->state_dir, dir, e) != 0)
        return -1;
    return stored_compile(dir, j->stored, j->c->signers[0] != 0, (uint64_t)time(NULL) * 1000, image, e);
}

/* In the child: write the image, or the words to report, and leave. */
static void compile(const struct job *j)
{
    struct dynbuf image;
    struct err e = {{0}};
    alarm(COMPILE_SECONDS);
    dynbuf_init(&image, POLICY_IMAGE_MAX);
    int bad = tls_check(j->c, &e);
    if (bad == 0 && j->stored == NULL)
        bad = trust_check(j->c, &e);
    if (bad == 0)
        bad = j->stored ? compile_stored(j, &image, &e) : compile_files(j, &image, &e);
    if (bad == 0)
        bad = write_out(j->image, &image, &e);
    if (bad && write(j->report, e.text, strlen(e.text)) < 0)
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
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return err_set(e, "compiling the policy and running its tests took more than %d s", COMPILE_SECONDS);
    return n ? -1 : err_set(e, "the policy compiler died; is the policy sane?");
}

/* Open it as a role would: an image nobody can open must not replace one that works. */
static int accept_image(struct compiled *c, struct err *e)
{
    struct policy *image = NULL;
    struct span map = SPAN_NONE;
    int bad = -1;
    if (memfd_seal(c->image) != 0 || memfd_map(c->image, POLICY_IMAGE_MAX, &map) != 0) {
        err_errno(e, "cannot seal the policy image");
        goto out;
    }
    if ((image = policy_open(map, e)) == NULL)
        goto out;
    if (policy_digest(image).n != DIGEST_BYTES) {
        err_set(e, "the policy image has no digest");
        goto out;
    }
    memcpy(c->digest.b, policy_digest(image).p, DIGEST_BYTES);
    bad = 0;
out:
    policy_close(image);
    memfd_unmap(&map);
    return bad;
}

int parent_compile(const struct config *conf, const char *stored, struct compiled *out, struct err *e)
{
    int fds[2] = {-1, -1}, bad = -1;
    *out = (struct compiled){.image = memfd_create("countersign-policy", MFD_CLOEXEC | MFD_ALLOW_SEALING),
                             .bundle = memfd_create("countersign-texts", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (out->image < 0 || out->bundle < 0 || pipe2(fds, O_CLOEXEC) != 0) {
        err_errno(e, "cannot compile the policy");
        goto out;
    }
    int pid = fork();
    if (pid == 0) {
        const struct job j = {conf, stored, out->image, out->bundle, fds[1]};
        signal(SIGCHLD, SIG_DFL);
        compile(&j);
    }
    close(fds[1]);
    fds[1] = -1;
    if (pid < 0)
        err_errno(e, "cannot start the policy compiler");
    else
        bad = await(pid, fds[0], e) != 0 || memfd_seal(out->bundle) != 0 || accept_image(out, e) != 0 ? -1 : 0;
out:
    if (fds[0] >= 0)
        close(fds[0]);
    if (fds[1] >= 0)
        close(fds[1]);
    if (bad)
        parent_drop(out);
    return bad;
}

void parent_drop(struct compiled *c)
{
    if (c->image >= 0)
        close(c->image);
    if (c->bundle >= 0)
        close(c->bundle);
    *c = (struct compiled){.image = -1, .bundle = -1};
}

void parent_take(struct parent *p, struct compiled *c)
{
    struct compiled old = p->policy;
    p->policy = *c;
    p->in_force_ms = loop_wall(p->loop);
    *c = (struct compiled){.image = -1, .bundle = -1};
    parent_drop(&old);
}

void parent_send_image(struct parent *p, struct child *c)
{
    bool wants = c->role == ROLE_JUDGE || c->role == ROLE_KEEPER || c->role == ROLE_DESK;
    if (!wants || c->chan == NULL || p->policy.image < 0)
        return;
    if (c->role == ROLE_KEEPER)
        parent_send_sources(p, c);
    struct dynbuf *b = chan_begin(c->chan, M_IMAGE, 0);
    if (b == NULL)
        return;
    msg_put_digest(b, &p->policy.digest);
    (void)chan_commit_fd(c->chan, p->policy.image);
}
