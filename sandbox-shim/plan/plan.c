/* The sandbox, mount by mount. Everything starts from nothing (an empty tmpfs, an
 * empty environment, an empty network); each line adds one thing, and why. */
#include "sandbox-shim/plan/plan.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "sandbox-shim/env.h"
#include "sandbox-shim/plan/filter.h"
#include "sandbox-shim/plan/place.h"

/* Of memory, each of /tmp, /var/tmp, /dev/shm, /home and /run. */
enum { TMPFS_MIB = 2048, MIB = 1024 * 1024, CA_MAX = 64 * 1024 };

static const char passwd[] = "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
                             "agent:x:1000:1000:agent:" INSIDE_HOME ":/bin/sh\n"
                             "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
static const char group[] = "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n";
static const char hosts[] = "127.0.0.1 localhost\n::1 localhost\n";
#define NSSWITCH(hosts)                                                                                              \
    "passwd: files\ngroup: files\nshadow: files\nhosts: " hosts "\nnetworks: files\nprotocols: files\n"              \
    "services: files\n"
static const char nsswitch[] = NSSWITCH("files"), nsswitch_captured[] = NSSWITCH("files dns");
static const char resolv[] = "# No name server can be reached from here: the proxy resolves names.\n";
static const char resolv_captured[] =
    "# Every name has an address of the sandbox's own: the gateway resolves names.\n"
    "nameserver 127.0.0.1\n";

const char *plan_name(const struct plan_dir *d)
{
    return strrchr(d->path, '/') + 1;
}

/* One word, or more up to the first NULL. */
static void put(struct plan *p, const char *word, ...)
{
    va_list ap;

    va_start(ap, word);
    for (; word; word = va_arg(ap, const char *))
        (void)dynbuf_add(&p->args, span_of(word, strlen(word) + 1));
    va_end(ap);
}

/* Bubblewrap shall inherit this descriptor; its number in words. */
static const char *pass(struct plan *p, int fd, char text[16])
{
    (void)snprintf(text, 16, "%d", fd);
    p->fds[p->nfds++] = fd;
    return text;
}

/* A file with the bytes of this one, 0644. In an image it lies over one that is there. */
static void put_copy(struct plan *p, const char *dest, int fd)
{
    char number[16];

    put(p, "--perms", "0644", p->image > 0 ? "--ro-bind-data" : "--file", pass(p, fd, number), dest, NULL);
}

static int put_file(struct plan *p, const char *dest, struct span bytes)
{
    int fd = p->nfds < PLAN_FDS_MAX ? memfd_create("file", MFD_CLOEXEC) : -1;

    if (fd < 0)
        return -1;
    put_copy(p, dest, fd);
    return write(fd, bytes.p, bytes.n) == (ssize_t)bytes.n && lseek(fd, 0, SEEK_SET) == 0 ? 0 : -1;
}

static bool has_way_out(const struct plan *p)
{
    return p->listener || p->lane.listener > 0;
}

/* /bin and its like are links into /usr on a merged system, else directories. */
static void put_roots(struct plan *p)
{
    static const char *const roots[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", NULL};
    char target[PATH_MAX];
    struct stat st;

    if (p->image > 0) {
        put(p, "--ro-bind-fd", pass(p, p->image, target), "/", NULL);
        return;
    }
    put(p, "--ro-bind", "/usr", "/usr", NULL);
    for (const char *const *r = roots; *r; r++) {
        ssize_t n = readlink(*r, target, sizeof(target) - 1);
        if (n > 0) {
            target[n] = '\0';
            put(p, "--symlink", target, *r, NULL);
        } else if (stat(*r, &st) == 0 && S_ISDIR(st.st_mode)) {
            put(p, "--ro-bind", *r, *r, NULL);
        }
    }
}

/* Of /etc only what tools need to start, named one by one: in the rest lie host
 * keys, password hashes, and tokens in profiles and tool configurations. */
static void show_etc(struct plan *p)
{
    static const char *const shown[] = {
        "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",   "/etc/localtime",
        "/etc/timezone",     "/etc/mime.types",  "/etc/protocols",  "/etc/services",       "/etc/ssl/openssl.cnf",
        "/etc/fonts",        "/etc/magic",       "/etc/terminfo",   "/etc/debian_version", NULL};
    struct dirent *d;
    DIR *etc;

    for (const char *const *s = shown; *s; s++)
        put(p, "--ro-bind-try", *s, *s, NULL);
    /* Java's own configuration is split between /usr and /etc/java-17-openjdk. */
    etc = opendir("/etc");
    while (etc && (d = readdir(etc))) {
        char path[PATH_MAX];
        size_t n = strlen(d->d_name);
        if (strncmp(d->d_name, "java-", 5) != 0 || n < 8 || strcmp(d->d_name + n - 8, "-openjdk") != 0)
            continue;
        (void)snprintf(path, sizeof(path), "/etc/%s", d->d_name);
        put(p, "--ro-bind-try", path, path, NULL);
    }
    if (etc)
        (void)closedir(etc);
}

static int put_etc(struct plan *p)
{
    if (p->image == 0)
        show_etc(p);
    return put_file(p, "/etc/passwd", span_str(passwd)) || put_file(p, "/etc/group", span_str(group)) ||
                   put_file(p, "/etc/hosts", span_str(hosts)) ||
                   put_file(p, "/etc/nsswitch.conf", span_str(p->captured ? nsswitch_captured : nsswitch)) ||
                   put_file(p, "/etc/resolv.conf", span_str(p->captured ? resolv_captured : resolv)) ||
                   (p->npmrc.n > 0 && put_file(p, INSIDE_NPMRC, dynbuf_span(&p->npmrc)))
               ? -1
               : 0;
}

/* Each certificate of a PEM file as an element of a JSON list: the base64 between its lines. */
static void add_certificates(struct dynbuf *out, struct span pem)
{
    struct span line;
    bool inside = false, first = true;

    while (span_cut(pem, '\n', &line, &pem) || line.n > 0) {
        if (span_starts(line, SPAN("-----"))) {
            inside = span_starts(line, SPAN("-----BEGIN CERTIFICATE-----"));
            (void)dynbuf_add(out, inside && !first ? SPAN("\",\"") : inside ? SPAN("\"") : SPAN_NONE);
            first &= !inside;
        } else if (inside) {
            (void)dynbuf_add(out, span_trim(line));
        }
    }
    (void)dynbuf_add(out, first ? SPAN_NONE : SPAN("\""));
}

static int read_ca(const struct plan *p, struct dynbuf *ca)
{
    if (p->lane.listener == 0)
        return file_read(p->ca, ca);
    return file_read_fd(p->lane.ca, ca) == 0 && lseek(p->lane.ca, 0, SEEK_SET) == 0 ? 0 : -1;
}

/* Chromium trusts neither the system's bundle nor a variable, but a policy of its machine. Debian's wrapper reads all
 * that is in /etc/chromium.d, and ends where nothing is; its own sandbox needs namespaces, which cannot be made here.
 */
static int put_chromium(struct plan *p)
{
    struct dynbuf ca, policy;
    int rc = put_file(p, "/etc/chromium.d/countersign",
                      SPAN("export CHROMIUM_FLAGS=\"$CHROMIUM_FLAGS --no-sandbox --no-default-browser-check\"\n"));

    dynbuf_init(&ca, CA_MAX);
    dynbuf_init(&policy, 2 * CA_MAX);
    if (rc == 0 && has_way_out(p) && read_ca(p, &ca) == 0) {
        (void)dynbuf_add(&policy, SPAN("{\"QuicAllowed\":false,\"CACertificates\":["));
        add_certificates(&policy, dynbuf_span(&ca));
        (void)dynbuf_add(&policy, SPAN("]}\n"));
        rc = !dynbuf_ok(&policy) ||
             put_file(p, "/etc/chromium/policies/managed/countersign.json", dynbuf_span(&policy)) != 0;
    }
    dynbuf_free(&ca);
    dynbuf_free(&policy);
    return rc ? -1 : 0;
}

/* The socket is the shim's alone: nothing in there has a path to it. */
static void put_lane(struct plan *p)
{
    char number[16];

    (void)pass(p, p->lane.listener, number);
    put_copy(p, INSIDE_CA, p->lane.ca);
    put_copy(p, INSIDE_BUNDLE, p->lane.bundle);
    put_copy(p, INSIDE_TRUSTSTORE, p->lane.truststore);
    if (p->image > 0)
        return;
    put(p, "--symlink", INSIDE_BUNDLE, "/etc/ssl/certs/ca-certificates.crt", NULL);
    put(p, "--symlink", "certs/ca-certificates.crt", "/etc/ssl/cert.pem", NULL);
    put(p, "--symlink", INSIDE_TRUSTSTORE, "/etc/ssl/certs/java/cacerts", NULL);
    put(p, "--symlink", INSIDE_BUNDLE, "/etc/pki/tls/certs/ca-bundle.crt", NULL);
}

/* Whom to trust also lies where tools look that read no variable; but not in an image, whose own files stay. */
static void put_way_out(struct plan *p)
{
    put(p, "--ro-bind", p->listener, INSIDE_SOCKET, NULL);
    put(p, "--ro-bind", p->ca, INSIDE_CA, NULL);
    put(p, "--ro-bind", p->bundle, INSIDE_BUNDLE, NULL);
    put(p, "--ro-bind", p->truststore, INSIDE_TRUSTSTORE, NULL);
    if (p->image > 0)
        return;
    put(p, "--ro-bind", p->bundle, "/etc/ssl/certs/ca-certificates.crt", NULL);
    put(p, "--symlink", "certs/ca-certificates.crt", "/etc/ssl/cert.pem", NULL);
    put(p, "--ro-bind", p->truststore, "/etc/ssl/certs/java/cacerts", NULL);
    put(p, "--symlink", "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", NULL);
}

/* The shim, and what the gateway gave: the way out, and whom to trust. */
static void put_gateway(struct plan *p)
{
    char number[16];

    put(p, p->image > 0 ? "--tmpfs" : "--dir", "/countersign", NULL);
    put(p, "--ro-bind-fd", pass(p, p->shim, number), INSIDE_SHIM, NULL);
    if (p->listener)
        put_way_out(p);
    else if (p->lane.listener > 0)
        put_lane(p);
    if (p->image > 0) /* memory as well, and without a size */
        put(p, "--remount-ro", "/countersign", NULL);
}

static bool has_mnt(const struct plan *p)
{
    for (size_t i = 0; i < p->nread; i++)
        if (strncmp(p->read[i].path, INSIDE_MNT "/", sizeof(INSIDE_MNT)) == 0)
            return true;
    return false;
}

static void put_writable(struct plan *p)
{
    static const char *const fresh[] = {"/tmp", "/var/tmp", "/dev/shm", "/run", "/home", NULL};
    char number[16], bytes[32], inside[PATH_MAX + sizeof(INSIDE_WORKSPACES)];
    uint64_t most = (uint64_t)TMPFS_MIB * MIB, size = p->limits.memory ? p->limits.memory : most;

    if (p->scratch)
        most = p->scratch;
    (void)snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)(size < most ? size : most));
    for (const char *const *f = fresh; *f; f++) {
        bool shared = strcmp(*f, "/run") != 0 && strcmp(*f, "/home") != 0;
        put(p, "--perms", shared ? "1777" : "0755", "--size", bytes, "--tmpfs", *f, NULL);
    }
    put(p, "--remount-ro", "/dev", NULL); /* memory as well, and without a size */
    if (p->image == 0)
        put(p, "--symlink", "../run", "/var/run", NULL);
    if (p->home.path[0])
        put(p, "--bind-fd", pass(p, p->home.fd, number), INSIDE_HOME, NULL);
    else
        put(p, "--dir", INSIDE_HOME, NULL);
    if (p->image > 0 && has_mnt(p)) /* in an image, no place for them can be made */
        put(p, "--perms", "0755", "--size", "65536", "--tmpfs", INSIDE_MNT, NULL);
    for (size_t i = 0; i < p->nread; i++)
        put(p, p->read[i].writes ? "--bind-fd" : "--ro-bind-fd", pass(p, p->read[i].fd, number), p->read[i].path,
            NULL);
    if (p->image > 0 && has_mnt(p))
        put(p, "--remount-ro", INSIDE_MNT, NULL);
    if (p->nwork == 0) {
        (void)snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)p->disk);
        put(p, "--perms", "0755", "--size", bytes, "--tmpfs", INSIDE_WORKSPACE, NULL);
    }
    for (size_t i = 0; i < p->nwork; i++) {
        (void)snprintf(inside, sizeof(inside), INSIDE_WORKSPACES "%s", plan_name(&p->work[i]));
        put(p, "--bind-fd", pass(p, p->work[i].fd, number), i == 0 ? INSIDE_WORKSPACE : inside, NULL);
    }
    put(p, "--chdir", INSIDE_WORKSPACE, NULL);
}

static int put_variable(void *ctx, const char *name, const char *value)
{
    put(ctx, "--setenv", name, value, NULL);
    return 0;
}

static void put_assignment(struct plan *p, const char *assignment)
{
    const char *eq = strchr(assignment, '=');

    (void)dynbuf_add(&p->args, span_of("--setenv", sizeof("--setenv")));
    (void)dynbuf_add(&p->args, span_of(assignment, (size_t)(eq - assignment)));
    (void)dynbuf_add_byte(&p->args, 0);
    put(p, eq + 1, NULL);
}

/* Each with its NUL; who gave them has looked at them. */
static void put_assignments(struct plan *p, struct span all)
{
    while (all.n > 0) {
        const char *one = (const char *)all.p;
        if (strchr(one, '='))
            put_assignment(p, one);
        all = span_from(all, strlen(one) + 1);
    }
}

const char *const plan_variables[] = {"HOME",  INSIDE_HOME, "USER",    "agent", "LOGNAME",
                                      "agent", "SHELL",     "/bin/sh", NULL};

static int put_environment(struct plan *p, char *const *environ, struct err *e)
{
    struct span way = p->lane.listener > 0 ? SPAN("http://" INSIDE_LANE) : SPAN("http://" INSIDE_PROXY);
    struct env_values v = {way, INSIDE_BUNDLE, INSIDE_CA, INSIDE_TRUSTSTORE, !p->variables};
    char name[64];

    put(p, "--clearenv", NULL);
    for (; *environ; environ++) {
        const char *eq = strchr(*environ, '=');
        size_t n = eq ? (size_t)(eq - *environ) : 0;
        if (n == 0 || n >= sizeof(name))
            continue;
        memcpy(name, *environ, n);
        name[n] = '\0';
        if (env_may_pass(name, eq + 1))
            put(p, "--setenv", name, eq + 1, NULL);
    }
    put(p, "--setenv", "PATH", INSIDE_PATH, NULL);
    put_assignments(p, dynbuf_span(&p->variables_of_image));
    for (const char *const *own = plan_variables; *own; own += 2)
        put(p, "--setenv", own[0], own[1], NULL);
    if (p->cmd) /* else the shim is told */
        put(p, "--setenv", "COUNTERSIGN_SANDBOX", p->name, NULL);
    if (p->leases.n > 0) /* before the caller's own, which take their place */
        (void)dynbuf_add(&p->args, dynbuf_span(&p->leases));
    if (p->npmrc.n > 0)
        put(p, "--setenv", "npm_config_globalconfig", INSIDE_NPMRC, NULL);
    for (size_t i = 0; i < p->nsetenv; i++) /* env_may_set has looked at them */
        put_assignment(p, p->setenv[i]);
    return has_way_out(p) ? env_each(&v, put_variable, p, e) : 0;
}

const char *const plan_hidden[] = {"/proc/kcore",       "/proc/keys",       "/proc/key-users",   "/proc/kallsyms",
                                   "/proc/kpagecount",  "/proc/kpageflags", "/proc/kpagecgroup", "/proc/slabinfo",
                                   "/proc/vmallocinfo", "/proc/timer_list", "/proc/sched_debug", NULL};

/* When root calls, the kernel takes the sandbox's user for root where only the
 * owner of a file is asked: sysctls (core_pattern!) could be written, and memory
 * maps of the kernel read. So nothing in /proc can be written, and those are hidden. */
static void put_proc(struct plan *p)
{
    put(p, "--proc", "/proc", "--dev", "/dev", NULL);
    for (size_t i = 0; i < p->ndevices; i++)
        put(p, "--dev-bind", p->device[i], p->device[i], NULL);
    for (const char *const *h = plan_hidden; *h; h++)
        if (access(*h, F_OK) == 0)
            put(p, "--ro-bind", "/dev/null", *h, NULL);
    put(p, "--remount-ro", "/proc", NULL);
}

static void put_namespaces(struct plan *p)
{
    put(p, "--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
        "--unshare-cgroup-try", NULL);
    /* The same user inside whoever calls, without a capability, also when root calls. */
    put(p, "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--hostname", "sandbox", NULL);
    /* No controlling terminal of the caller's; nothing survives the caller or the command. */
    put(p, "--new-session", "--die-with-parent", "--as-pid-1", NULL);
}

int plan_open_shim(struct plan *p, struct err *e)
{
    char path[PATH_MAX];

    if (place_program("countersign-shim", path, e) != 0)
        return -1;
    p->shim = open(path, O_PATH | O_CLOEXEC);
    return p->shim < 0 ? err_errno(e, "cannot open %s", path) : 0;
}

int plan_build(struct plan *p, char *const *environ, struct err *e)
{
    char number[16];
    int filter;

    dynbuf_init(&p->args, PLAN_ARGS_MAX);
    p->args_fd = -1;
    if (p->shim == 0 && plan_open_shim(p, e) != 0)
        return -1;
    put_namespaces(p);
    put_roots(p);
    if (put_etc(p) != 0 || (p->image == 0 && put_chromium(p) != 0))
        return err_errno(e, "the sandbox's /etc cannot be made");
    put_proc(p);
    put_gateway(p);
    if (p->nwork == 0 && p->disk == 0)
        return err_set(e, "a sandbox needs a workspace"); /* bubblewrap takes a size of 0 for no limit */
    put_writable(p);
    if (put_environment(p, environ, e) != 0)
        return -1;
    filter = filter_open(e);
    if (filter < 0)
        return -1;
    put(p, "--seccomp", pass(p, filter, number), NULL);
    put(p, "--remount-ro", "/", NULL); /* last: what is not a mount of its own cannot be written */
    if (!dynbuf_ok(&p->args))
        return err_set(e, "the sandbox's arguments are too long");
    p->args_fd = memfd_create("arguments", MFD_CLOEXEC);
    if (p->args_fd < 0 || write(p->args_fd, p->args.p, p->args.n) != (ssize_t)p->args.n ||
        lseek(p->args_fd, 0, SEEK_SET) != 0)
        return err_errno(e, "the sandbox's arguments cannot be written");
    pass(p, p->args_fd, number);
    return 0;
}

void plan_free(struct plan *p)
{
    for (size_t i = 0; i < p->nfds; i++)
        close(p->fds[i]);
    p->nfds = 0;
    dynbuf_wipe(&p->leases);
    dynbuf_wipe(&p->npmrc);
    dynbuf_free(&p->variables_of_image);
    dynbuf_free(&p->args);
}
