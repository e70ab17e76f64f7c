/* E40: random lives of tickets against a small model of what they may be. The seed is fixed. */
#include "tests/unit/ledger/ledger_fix.h"

enum { SEQUENCES = 2000, STEPS = 14, REQUESTS = 3 };

struct model {
    enum ticket_state state;
    struct id id;
    uint64_t ends, xid;
    unsigned approvals, sends;
    bool kept;
};
static struct model model[REQUESTS];
static uint64_t xid, seed = 88172645463325252ull;
static unsigned sandbox; /* a fresh session for each sequence */
static char name[32];

static unsigned pick(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % n);
}

static bool live(const struct model *m)
{
    return m->state == TICKET_PENDING || m->state == TICKET_APPROVED || m->state == TICKET_EXECUTING;
}

static void time_passes(void)
{
    for (int i = 0; i < REQUESTS; i++)
        if ((model[i].state == TICKET_PENDING || model[i].state == TICKET_APPROVED) && fix_wall >= model[i].ends)
            model[i].state = TICKET_EXPIRED;
}

static void send(unsigned i)
{
    struct model *m = &model[i];
    struct wire_ticket_state st = fix_hold(name, i, i, SPAN_NONE);
    bool denied = m->state == TICKET_DENIED && m->ends > fix_wall;
    bool answered = m->state == TICKET_DONE && m->kept;
    if (live(m) || denied || answered) {
        assert_true(st.joined && id_eq(&st.ticket, &m->id));
        assert_int_equal(st.state, m->state);
        assert_int_equal(st.has_answer, answered);
        m->kept = false;
        return;
    }
    assert_int_equal(st.state, TICKET_PENDING);
    assert_false(st.joined);
    *m = (struct model){.state = TICKET_PENDING, .id = st.ticket, .ends = fix_wall + STORE_EXPIRES_MS};
}

static void decide(struct model *m, enum decide what)
{
    static const enum ticket_state to[] = {TICKET_NONE, TICKET_APPROVED, TICKET_DENIED, TICKET_CANCELLED};
    enum decided want = DECIDED_NOT_PENDING;
    if (m->state == TICKET_NONE)
        return;
    if (m->state == TICKET_EXPIRED)
        want = DECIDED_EXPIRED;
    if (m->state == TICKET_PENDING || (m->state == TICKET_APPROVED && what != DECIDE_APPROVE))
        want = DECIDED_DONE;
    assert_int_equal(fix_decide(&m->id, what, NULL), want);
    if (want == DECIDED_DONE) {
        m->state = to[what];
        m->approvals += what == DECIDE_APPROVE;
    }
}

static void claim(struct model *m)
{
    if (m->state == TICKET_NONE)
        return;
    bool ok = fix_claim(&m->id, ++xid, NULL);
    assert_int_equal(ok, m->state == TICKET_APPROVED);
    if (ok) {
        m->state = TICKET_EXECUTING;
        m->xid = xid;
        m->sends++;
    }
    assert_true(m->sends <= m->approvals && m->sends <= 1);
}

static void outcome(struct model *m, enum outcome o, bool delivered)
{
    static const enum ticket_state to[] = {TICKET_UNKNOWN, TICKET_FAILED, TICKET_DONE};
    if (m->state != TICKET_EXECUTING)
        return;
    fix_outcome(&m->id, m->xid, o, delivered, SPAN("kept"));
    m->state = to[o];
    m->kept = o == OUTCOME_ANSWERED && !delivered;
}

static void crash(bool judge_only)
{
    if (judge_only) {
        assert_int_equal(store_judge_came(fix), 0);
        assert_int_equal(store_commit(fix), 0);
    } else {
        fix_reopen();
    }
    for (int i = 0; i < REQUESTS; i++)
        if (model[i].state == TICKET_EXECUTING)
            model[i].state = TICKET_UNKNOWN;
}

static void step(void)
{
    unsigned i = pick(REQUESTS);
    struct model *m = &model[i];
    switch (pick(24)) {
    case 0 ... 6: send(i); break;
    case 7 ... 11: decide(m, DECIDE_APPROVE); break;
    case 12: decide(m, DECIDE_DENY); break;
    case 13: decide(m, DECIDE_CANCEL); break;
    case 14 ... 17: claim(m); break;
    case 18: outcome(m, OUTCOME_ANSWERED, true); break;
    case 19: outcome(m, OUTCOME_ANSWERED, false); break;
    case 20: outcome(m, (enum outcome)pick(2), false); break;
    case 21:
        fix_time((uint64_t[]){1000, 60000, STORE_EXPIRES_MS}[pick(3)]);
        time_passes();
        if (model[0].kept || model[1].kept || model[2].kept) /* kept for ten minutes: let the model forget it too */
            for (int k = 0; k < REQUESTS; k++)
                if (model[k].kept) {
                    fix_time(STORE_ANSWER_MS);
                    model[k].kept = false;
                    time_passes();
                }
        break;
    case 22: crash(true); break;
    default: crash(pick(8) != 0); break;
    }
}

static void e40_no_sequence_sends_more_than_was_approved(void **state)
{
    uint64_t length;
    for (sandbox = 0; sandbox < SEQUENCES; sandbox++) {
        snprintf(name, sizeof(name), "s%u", sandbox);
        memset(model, 0, sizeof(model));
        for (int k = 0; k < STEPS; k++)
            step();
        for (int k = 0; k < REQUESTS; k++) /* leave nothing for the caps of the next */
            if (model[k].state == TICKET_PENDING || model[k].state == TICKET_APPROVED)
                decide(&model[k], DECIDE_CANCEL);
        crash(true);
    }
    length = fix_chain();
    assert_true(length > SEQUENCES);
    assert_int_equal(fix_count("SELECT count(*) FROM effect"),
                     fix_count("SELECT count(*) FROM ticket WHERE xid IS NOT NULL"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(e40_no_sequence_sends_more_than_was_approved),
    };
    if (access("/dev/shm", W_OK) == 0)
        fix_base = "/dev/shm";
    return cmocka_run_group_tests_name("ticket_model", tests, NULL, NULL);
}
