/* countersign-resolver: its start-up, as a checklist. */
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/role/role.h"
#include "proxy/msgs.h"
#include "proxy/resolver/name_server.h"
#include "proxy/resolver/resolver.h"
#include "proxy/words.h"

struct start {
    struct resolver *resolver;
    struct name_server *names;
    struct loop *loop;
    bool servers; /* of the configuration: they may listen on any port */
};

enum { SERVERS_LEN = 512 };

static void config(void *arg, struct span key, struct span value)
{
    struct start *s = arg;
    if (span_eq(key, SPAN("own")) && resolver_own(s->resolver, value) != 0)
        log_die("the list of our own listeners cannot be understood");
    if (span_eq(key, SPAN("dns")) && value.n > 0) {
        struct err e = {""};
        char list[SERVERS_LEN];
        if (value.n >= sizeof(list))
            log_die("the list of name servers is too long");
        memcpy(list, value.p, value.n);
        list[value.n] = '\0';
        if (dns_servers(s->resolver->dns, list, &e) != 0)
            log_die("%s", e.text);
        s->servers = true;
    }
}

static void peer(void *arg, unsigned role, uint64_t instance, struct span info, int fd)
{
    struct start *s = arg;
    if (role == ROLE_CARRIER || role == ROLE_FETCHER)
        resolver_peer(s->resolver, role == ROLE_FETCHER, fd);
    else
        close(fd);
}

/* The only one there is: a listener for captured questions, datagrams and streams. */
static void frame(void *arg, struct frame *f)
{
    struct start *s = arg;
    struct msg_in m = msg_in(f->payload);
    unsigned kind = msg_get_u8(&m);
    struct span name = msg_get_span(&m, 255);
    if (f->type != M_LISTEN || msg_end(&m) != 0 || kind != LISTEN_DNS || f->nfds != 2) {
        log_error("message %u of the parent is not understood", f->type);
        return;
    }
    int udp = frame_take_fd(f, 0), tcp = frame_take_fd(f, 1);
    if (name_server_listen(s->names, udp, tcp) != 0)
        log_error("listener %.*s cannot be served: no memory, or there are too many", SPAN_FMT(name));
}

int main(void)
{
    static struct start s;
    static const struct role_ops ops = {.frame = frame, .peer = peer, .config = config};
    /* Where resolv.conf really lives on machines that replace it as networks come and go. */
    static const char *const read[] = {"/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf",
                                       "/run/connman", NULL};
    struct wall wall = {.calls = WALL_DNS | WALL_ACCEPT, .ro_paths = read};
    struct err e = {""};
    /* What c-ares would take from the environment is not the operator's configuration. */
    unsetenv("LOCALDOMAIN");
    unsetenv("RES_OPTIONS");
    unsetenv("HOSTALIASES");
    unsetenv("CARES_HOSTS");
    s.loop = loop_new();
    if (s.loop == NULL)
        return 1;
    s.resolver = resolver_new(s.loop, NULL, &e);
    if (s.resolver == NULL)
        log_die("%s", e.text);
    s.names = name_server_new(s.loop);
    if (s.names == NULL)
        return 1;
    struct role *r = role_start("resolver", s.loop, &ops, &s);
    wall.tcp_connect = s.servers; /* an answer too long for a datagram; else Landlock names port 53 */
    role_confine(r, &wall);
    role_ready(r);
    return loop_run(s.loop) == 0 ? 0 : 1;
}
