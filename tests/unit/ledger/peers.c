#include "tests/unit/ledger/peers.h"

#include <sys/socket.h>

struct ledger l;
struct chan *judge, *desk, *keeper;
struct got got[256];
size_t ngot;
unsigned heard;
bool deaf;
static size_t wanted, passed;

static void on_frame(void *arg, struct chan *c, struct frame *f)
{
    if (c == judge && f->type == M_HEARD) {
        heard += !deaf;
        if (!deaf)
            assert_int_equal(chan_send(judge, M_HEARD, f->id, SPAN_NONE), 0);
        return;
    }
    struct got *g = &got[ngot++ % 256];
    g->heard = heard;
    g->type = f->type;
    g->id = f->id;
    g->n = f->payload.n < sizeof(g->payload) ? f->payload.n : sizeof(g->payload);
    if (g->n)
        memcpy(g->payload, f->payload.p, g->n);
    g->fd = f->nfds ? frame_take_fd(f, 0) : -1;
    if (ngot >= wanted)
        loop_stop(l.loop);
}

static void on_gone(void *arg, struct chan *c)
{
    if (c != judge || !deaf)
        fail_msg("the ledger closed a channel");
    chan_free(&judge);
}

struct chan *connect_as(unsigned role)
{
    static const struct chan_ops ops = {on_frame, on_gone};
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    ledger_peer(&l, role, fd[0]);
    return chan_new(l.loop, fd[1], &ops, NULL);
}

static void too_late(void *arg)
{
    fail_msg("%zu of %zu messages came", ngot, wanted);
}

void await(size_t n)
{
    struct timer *t = timer_new(l.loop, too_late, NULL);
    wanted = n;
    timer_set(t, 300000);
    if (ngot < wanted)
        assert_int_equal(loop_run(l.loop), 0);
    timer_free(&t);
    assert_int_equal(ngot, n);
}

const struct got *until(uint16_t type)
{
    struct timer *t = timer_new(l.loop, too_late, NULL);
    const struct got *g = NULL;
    timer_set(t, 300000);
    while (g == NULL) {
        wanted = passed + 1;
        if (passed == ngot)
            assert_int_equal(loop_run(l.loop), 0);
        g = &got[passed++ % 256];
        g = g->type == type ? g : NULL;
    }
    timer_free(&t);
    return g;
}

const struct got *find(uint16_t type)
{
    for (size_t i = ngot; i-- > 0;)
        if (got[i].type == type)
            return &got[i];
    fail_msg("no message %u came", type);
    return NULL;
}

int peers_setup(void **state)
{
    assert_int_equal(fix_setup(state), 0);
    store_close(&fix);
    memset(&l, 0, sizeof(l));
    ngot = heard = 0;
    passed = 0;
    deaf = false;
    l.loop = loop_new();
    l.signer = signer_new();
    fix_config.changed = ledger_tell;
    fix_config.arg = &l;
    assert_int_equal(ledger_start(&l), 0);
    l.store = store_open(&fix_config, fix_wall, fix_boot, &fix_err);
    assert_non_null(l.store);
    store_data_key(l.store, secret_new(secret_bytes(fix_key)));
    judge = connect_as(ROLE_JUDGE);
    await(2);
    assert_int_equal(got[0].type, M_FREEZE);
    assert_int_equal(got[0].payload[0], 0);
    assert_int_equal(got[1].type, M_STORE);
    assert_int_equal(got[1].payload[0], 1);
    desk = connect_as(ROLE_DESK);
    await(3);
    assert_int_equal(got[2].type, M_AUDIT_KEY);
    ngot = 0;
    return 0;
}

int peers_teardown(void **state)
{
    chan_free(&judge);
    chan_free(&desk);
    chan_free(&keeper);
    ledger_stop(&l);
    loop_free(&l.loop);
    return fix_teardown(state);
}
