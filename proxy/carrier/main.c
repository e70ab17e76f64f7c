/* countersign-carrier: its start-up, as a checklist. */
#include <fcntl.h>
#include <unistd.h>

#include "common/log.h"
#include "common/role.h"
#include "proxy/carrier/carrier.h"

enum { ROOTS_MAX = 8 * 1024 * 1024, PATH_LEN = 4096, OWN_LEN = 8192 };

struct start {
    struct carrier *carrier;
    struct dynbuf pairs; /* key and value, each with its length, until there is a carrier */
    char roots[PATH_LEN];
};

static void config(void *arg, struct span key, struct span value)
{
    struct start *s = arg;
    if (span_eq(key, SPAN("roots")) && value.n > 0 && value.n < PATH_LEN) {
        memcpy(s->roots, value.p, value.n);
        s->roots[value.n] = '\0';
    }
    msg_put_span(&s->pairs, key);
    msg_put_span(&s->pairs, value);
}

static void peer(void *arg, unsigned role, uint64_t instance, struct span info, int fd)
{
    struct start *s = arg;
    carrier_peer(s->carrier, role, instance, fd);
}

/* The system's trust, whole, before there is no way to a file any more. */
static void read_roots(const char *path, struct dynbuf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;
    uint8_t *to;
    while (fd >= 0 && (to = dynbuf_room(out, 64 * 1024)) != NULL && (n = read(fd, to, 64 * 1024)) > 0)
        dynbuf_grew(out, (size_t)n);
    if (fd >= 0)
        close(fd);
    if (n != 0 || !dynbuf_ok(out)) {
        log_warn(
            "no system roots could be read from %s: only upstreams with a CA of their own can be reached over TLS; "
            "install ca-certificates",
            path);
        dynbuf_free(out);
    }
}

static void configure(struct start *s)
{
    struct msg_in m = msg_in(dynbuf_span(&s->pairs));
    while (m.rest.n > 0 && !m.bad) {
        struct span key = msg_get_span(&m, PATH_LEN), value = msg_get_span(&m, OWN_LEN);
        if (m.bad || carrier_config(s->carrier, key, value) != 0)
            log_die("bad setting %.*s", SPAN_FMT(key));
    }
    dynbuf_free(&s->pairs);
}

int main(void)
{
    static struct start s = {.roots = "/etc/ssl/certs/ca-certificates.crt"};
    static const struct role_ops ops = {.peer = peer, .config = config};
    static const struct wall wall = {.calls = WALL_CONNECT | WALL_MEMFD, .tcp_connect = true};
    struct dynbuf roots;
    struct loop *loop = loop_new();
    if (loop == NULL)
        return 1;
    dynbuf_init(&s.pairs, 256 * 1024);
    dynbuf_init(&roots, ROOTS_MAX);
    struct role *r = role_start("carrier", loop, &ops, &s);
    read_roots(s.roots, &roots);
    s.carrier = carrier_new(loop, dynbuf_span(&roots));
    if (s.carrier == NULL)
        log_die("no memory for the carrier");
    dynbuf_free(&roots);
    configure(&s);
    struct err e = {""};
    if (upstreams_warm(&s.carrier->upstreams, &e) != 0)
        log_die("the system's roots cannot be used: %s", e.text);
    if (names_own_interfaces(&s.carrier->names) != 0)
        log_die("the addresses of this machine cannot be listed");
    role_confine(r, &wall);
    role_ready(r);
    return loop_run(loop) == 0 ? 0 : 1;
}
