/* countersign-carrier: its start-up, as a checklist. */
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include "common/role/role.h"
#include "proxy/carrier/carrier.h"

enum { ROOTS_MAX = 8 * 1024 * 1024, PATH_LEN = 4096, OWN_LEN = 8192 };

struct start {
    struct carrier *carrier;
    struct dynbuf pairs; /* key and value, each with its length, until there is a carrier */
    char roots[PATH_LEN], crl[PATH_LEN];
};

static void config(void *arg, struct span key, struct span value)
{
    struct start *s = arg;
    char *path = span_eq(key, SPAN("roots")) ? s->roots : span_eq(key, SPAN("crl")) ? s->crl : NULL;
    if (path != NULL && value.n > 0 && value.n < PATH_LEN) {
        memcpy(path, value.p, value.n);
        path[value.n] = '\0';
    }
    msg_put_span(&s->pairs, key);
    msg_put_span(&s->pairs, value);
}

static void peer(void *arg, unsigned role, uint64_t instance, struct span info, int fd)
{
    struct start *s = arg;
    carrier_peer(s->carrier, role, instance, fd);
}

/* M_TRUST: the operator has other roots or lists. What was verified with the old ones is not used again; a carrier
 * that cannot take the new ones ends, and the next one begins with them or not at all. */
static void frame(void *arg, struct frame *f)
{
    struct start *s = arg;
    struct dynbuf roots, crl;
    struct err e = {"a file cannot be read"};
    if (f->type != M_TRUST)
        return;
    struct msg_in m = msg_in(f->payload);
    bool has_roots = msg_get_bool(&m), has_crl = msg_get_bool(&m);
    int fd = has_roots ? frame_take_fd(f, 0) : -1, list = has_crl ? frame_take_fd(f, has_roots) : -1;
    dynbuf_init(&roots, ROOTS_MAX);
    dynbuf_init(&crl, ROOTS_MAX);
    if (msg_end(&m) != 0 || (has_roots && (file_read_fd(fd, &roots) != 0 || roots.n == 0)) ||
        (has_crl && (file_read_fd(list, &crl) != 0 || crl.n == 0)) ||
        upstreams_system(&s->carrier->upstreams, dynbuf_span(&roots), dynbuf_span(&crl), &e) != 0)
        log_die("the new roots or revocation lists cannot be used: %s", e.text);
    pool_clear(&s->carrier->pool);
    dynbuf_free(&roots);
    dynbuf_free(&crl);
    if (fd >= 0)
        close(fd);
    if (list >= 0)
        close(list);
}

/* All of them, before there is no way to a file any more. */
static void read_trust(const struct start *s, struct dynbuf *roots, struct dynbuf *crl)
{
    dynbuf_init(roots, ROOTS_MAX);
    dynbuf_init(crl, ROOTS_MAX);
    if (file_read(s->roots, roots) != 0) {
        log_warn(
            "no system roots could be read from %s: only upstreams with a CA of their own can be reached over TLS; "
            "install ca-certificates",
            s->roots);
        dynbuf_free(roots);
        dynbuf_init(roots, ROOTS_MAX);
    }
    if (s->crl[0] != '\0' && (file_read(s->crl, crl) != 0 || crl->n == 0))
        log_die(
            "the revocation lists in %s (crl: in countersign.yaml) cannot be read: certificates would go unchecked",
            s->crl);
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
    static const struct role_ops ops = {.peer = peer, .config = config, .frame = frame};
    static const struct wall wall = {.calls = WALL_CONNECT | WALL_MEMFD, .tcp_connect = true};
    struct dynbuf roots, crl;
    struct loop *loop = loop_new();
    if (loop == NULL)
        return 1;
    dynbuf_init(&s.pairs, 256 * 1024);
    struct role *r = role_start("carrier", loop, &ops, &s);
    read_trust(&s, &roots, &crl);
    s.carrier = carrier_new(loop, dynbuf_span(&roots), dynbuf_span(&crl));
    if (s.carrier == NULL)
        log_die("no memory for the carrier");
    dynbuf_free(&roots);
    dynbuf_free(&crl);
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
