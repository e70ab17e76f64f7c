/* countersign-fetcher: its start-up, as a checklist. */
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/role/role.h"
#include "proxy/fetcher/fetcher.h"
#include "proxy/msgs.h"

static void config(void *arg, struct span key, struct span value)
{
    struct fetcher *f = arg;
    bool roots = span_eq(key, SPAN("roots")), crl = span_eq(key, SPAN("crl"));
    if ((roots || crl) && fetcher_trust(f, roots ? value : span_str(f->roots), crl ? value : span_str(f->crl)) != 0)
        log_die("the path of the %s is too long", roots ? "roots" : "revocation lists");
}

static void peer(void *arg, unsigned role, uint64_t instance, struct span info, int fd)
{
    if (role == ROLE_KEEPER)
        fetcher_keeper(arg, fd);
    else if (role == ROLE_RESOLVER)
        fetcher_resolver(arg, fd);
    else
        close(fd);
}

/* Without the new lists, sources would be trusted that upstreams are not. */
static void trust(struct fetcher *f, struct span payload)
{
    struct msg_in m = msg_in(payload);
    struct span roots = msg_get_span(&m, sizeof(f->roots)), crl = msg_get_span(&m, sizeof(f->crl));
    if (msg_end(&m) != 0 || fetcher_trust(f, roots, crl) != 0)
        log_die("the new roots or revocation lists cannot be used");
}

static void frame(void *arg, struct frame *f)
{
    if (f->type == M_JOB_NONE)
        fetcher_no_job(arg, f->id);
    else if (f->type == M_TRUST_FILES)
        trust(arg, f->payload);
    else
        log_error("message %u of the parent is not understood", f->type);
}

int main(void)
{
    static struct fetcher f;
    static const struct role_ops ops = {.frame = frame, .peer = peer, .config = config};
    static const struct wall wall = {.calls = WALL_PAIR};
    f.loop = loop_new();
    if (f.loop == NULL)
        return 1;
    struct role *r = role_start("fetcher", f.loop, &ops, &f);
    f.parent = role_parent(r);
    role_confine(r, &wall);
    role_ready(r);
    return loop_run(f.loop) == 0 ? 0 : 1;
}
