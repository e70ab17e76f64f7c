/* Who meets whom, while others end: a role that is as good as gone is left alone, and met when it is started anew. */
#include "tests/kit.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/msg.h"
#include "proxy/parent/parent.h"

struct chan {
    struct dynbuf out;
    bool lost;
    unsigned met; /* so many peers */
};
static struct parent parent;
static struct child judge, carrier, resolver;
static struct chan channels[3];
static void (*heal)(void *arg);

/* --- what is around it ------------------------------------------------------------ */

struct child *parent_child(struct parent *p, enum role_id role, uint64_t instance)
{
    return role == ROLE_JUDGE ? &judge : role == ROLE_RESOLVER ? &resolver : &carrier;
}

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    assert_int_equal(type, M_PEER);
    dynbuf_reset(&c->out);
    return &c->out;
}

int chan_commit_fd(struct chan *c, int fd)
{
    assert_true(fcntl(fd, F_GETFD) >= 0);
    assert_false(c->lost); /* else there is a warning in the log */
    c->met++;
    return 0;
}

bool chan_is_lost(const struct chan *c)
{
    return c->lost;
}

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    heal = fn;
    return (struct timer *)&parent;
}

void timer_set(struct timer *t, uint64_t ms)
{
}

/* --- the plays --------------------------------------------------------------------- */

static int begin(void **state)
{
    struct child *all[] = {&judge, &carrier, &resolver};
    enum role_id roles[] = {ROLE_JUDGE, ROLE_CARRIER, ROLE_RESOLVER};
    memset(&parent, 0, sizeof(parent));
    for (unsigned i = 0; i < 3; i++) {
        dynbuf_init(&channels[i].out, 4096);
        channels[i].lost = false;
        channels[i].met = 0;
        *all[i] = (struct child){
            .role = roles[i], .pid = 100 + (int)i, .chan = &channels[i], .parent = &parent, .next = parent.children};
        parent.children = all[i];
    }
    return 0;
}

static int end(void **state)
{
    for (unsigned i = 0; i < 3; i++)
        dynbuf_free(&channels[i].out);
    return 0;
}

static void meets(unsigned of_judge, unsigned of_carrier, unsigned of_resolver)
{
    assert_int_equal(channels[0].met, of_judge);
    assert_int_equal(channels[1].met, of_carrier);
    assert_int_equal(channels[2].met, of_resolver);
}

static void test_each_of_a_pair_meets_the_other(void **state)
{
    unsigned fds = open_fds();
    parent_link_all(&parent, &carrier); /* judge and resolver are no pair */
    meets(1, 2, 1);
    assert_true(carrier.link[ROLE_JUDGE] == judge.link[ROLE_CARRIER] && judge.link[ROLE_CARRIER] != 0);
    assert_int_equal(open_fds(), fds);
}

static void test_one_that_ends_meanwhile_meets_nobody(void **state)
{
    channels[2].lost = true; /* it has ended, and neither is that said yet nor is it reaped */
    parent_link_all(&parent, &carrier);
    meets(1, 1, 0);
    assert_int_equal(carrier.link[ROLE_RESOLVER], 0);

    resolver.chan = NULL; /* said */
    judge.leaving = true;
    parent_link_all(&parent, &carrier);
    meets(1, 1, 0);

    resolver.chan = &channels[2]; /* and started anew */
    channels[2].lost = false;
    parent_link_all(&parent, &resolver);
    meets(1, 2, 1);
}

static void broke(struct child *c, enum role_id other, uint64_t link)
{
    struct dynbuf b;
    dynbuf_init(&b, 64);
    msg_put_u8(&b, (uint8_t)other);
    msg_put_u64(&b, 0);
    msg_put_u64(&b, link);
    parent_link_lost(&parent, c, &(struct frame){.payload = dynbuf_span(&b)});
    dynbuf_free(&b);
}

static void test_a_channel_that_broke_is_made_anew_between_two_that_live(void **state)
{
    parent_link_all(&parent, &carrier);
    broke(&carrier, ROLE_RESOLVER, carrier.link[ROLE_RESOLVER]);
    heal(&parent);
    meets(1, 3, 2);

    channels[2].lost = true;
    broke(&carrier, ROLE_RESOLVER, carrier.link[ROLE_RESOLVER]);
    heal(&parent);
    channels[2].lost = false;
    channels[1].lost = true;
    broke(&carrier, ROLE_RESOLVER, carrier.link[ROLE_RESOLVER]);
    heal(&parent);
    meets(1, 3, 2);

    channels[1].lost = false;
    broke(&carrier, ROLE_RESOLVER, carrier.link[ROLE_RESOLVER] - 1); /* one that was replaced long ago */
    heal(&parent);
    meets(1, 3, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_of_a_pair_meets_the_other, begin, end),
        cmocka_unit_test_setup_teardown(test_one_that_ends_meanwhile_meets_nobody, begin, end),
        cmocka_unit_test_setup_teardown(test_a_channel_that_broke_is_made_anew_between_two_that_live, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
