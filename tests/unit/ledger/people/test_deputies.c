/* Who decides in whose place, for a while, and counts once with them; and who is asked as well after a time. */
#include "proxy/ledger/store/people/people.h"
#include "proxy/ledger/store/tell/told.h"
#include "tests/unit/ledger/ledger_fix.h"

enum { HOUR = 3600 * 1000 };

static void add(const char *name, const char *uid)
{
    const struct store_operator o = {
        .what = OPERATOR_ADD, .by = SPAN("uid 0"), .name = span_str(name), .uid = span_str(uid)};
    const char *why = NULL;
    assert_int_equal(store_operator_put(fix, &o, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_null(why);
}

static void change(enum operator_act what, const char *name)
{
    const struct store_operator o = {
        .what = what, .by = SPAN("uid 0"), .name = span_str(name), .groups = SPAN("desk")};
    const char *why = NULL;
    assert_int_equal(store_operator_put(fix, &o, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_null(why);
}

static const char *deputy_by(bool machine, const char *by, const char *instead_of, const char *is, uint64_t ms)
{
    const struct store_deputy d = {span_str(by), span_str(instead_of), span_str(is), ms, machine};
    const char *why = NULL;
    assert_int_equal(store_deputy_put(fix, &d, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    return why;
}

static const char *deputy(const char *by, const char *instead_of, const char *is, uint64_t ms)
{
    return deputy_by(false, by, instead_of, is, ms);
}

static void sandbox(const char *name, const char *owner)
{
    const struct wire_sandbox b = {.name = span_str(name),
                                   .session = span_str(name),
                                   .owner = span_str(owner),
                                   .tenant = SPAN("default"),
                                   .kind = SPAN("token")};
    const char *why = NULL;
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_null(why);
}

static enum decided say_as(const struct id *id, const char *by, const char *instead_of, uint32_t uses)
{
    const struct store_decision d = {.what = DECIDE_APPROVE,
                                     .by = span_str(by),
                                     .instead_of = span_str(instead_of),
                                     .channel = SPAN("page"),
                                     .how = SPAN("password"),
                                     .grant = {uses, uses ? 1000 : 0}};
    enum decided r;
    uint8_t state;
    assert_int_equal(store_decide(fix, id, &d, &r, &state), 0);
    assert_int_equal(store_commit(fix), 0);
    return r;
}

static enum decided say(const struct id *id, const char *by, const char *instead_of)
{
    return say_as(id, by, instead_of, 0);
}

static void tick(void)
{
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
}

static struct id held(const char *name, const char *owner, uint8_t quorum, bool step_up)
{
    static unsigned n = 10;
    sandbox(name, owner);
    fix_people = (struct wire_people){.quorum = quorum, .step_up = step_up};
    n++;
    return fix_hold(name, n, n, SPAN_NONE).ticket;
}

static void people(void)
{
    add("alice", "uid 1000");
    add("bob", "");
    add("carol", "");
}

static void one_is_named_by_oneself_alone(void **state)
{
    people();
    assert_non_null(deputy("bob", "alice", "bob", HOUR)); /* nobody makes themselves one */
    assert_non_null(deputy("uid 0", "alice", "bob", HOUR));
    assert_non_null(deputy("alice", "alice", "alice", HOUR));
    assert_non_null(deputy("alice", "alice", "dave", HOUR));
    assert_non_null(deputy("uid 1000", "uid 1000", "bob", HOUR)); /* no person's name */
    assert_non_null(deputy("alice", "alice", "bob", 59 * 1000));
    assert_non_null(deputy("alice", "alice", "bob", STORE_DEPUTY_MOST + 1));
    assert_non_null(deputy("", "alice", "bob", HOUR));
    assert_int_equal(fix_count("SELECT count(*) FROM deputy"), 0);
    assert_null(deputy("alice", "alice", "bob", HOUR));
    assert_null(deputy("alice", "alice", "carol", HOUR)); /* in place of bob */
    assert_int_equal(fix_count("SELECT count(*) FROM deputy WHERE deputy='carol'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM deputy"), 1);
    assert_non_null(deputy("bob", "alice", "", 0)); /* whose business it is not */
    assert_null(deputy("carol", "alice", "", 0));
    assert_non_null(deputy("alice", "alice", "", 0)); /* there is none */
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='deputy' AND json LIKE '%\"act\":\"ended\"%'"),
                     2);
}

static void one_decides_in_that_place_and_it_is_written_down(void **state)
{
    people();
    struct id t = held("s1", "uid 7", 1, false);
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_NO_DEPUTY);
    assert_null(deputy("alice", "alice", "bob", HOUR));
    assert_int_equal(say(&t, "alice", "bob"), DECIDED_NO_DEPUTY); /* the other way it is none */
    assert_int_equal(say(&t, "carol", "alice"), DECIDED_NO_DEPUTY);
    assert_int_equal(say_as(&t, "bob", "alice", 2), DECIDED_NO_GRANT); /* which would outlast it */
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_DONE);
    assert_true(fix_claim(&t, 5, NULL));
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='ticket-decided' AND json LIKE "
                               "'%\"by\":\"bob\"%\"for\":\"alice\"%'"),
                     1);
    assert_int_equal(fix_count("SELECT count(*) FROM vote WHERE operator='bob' AND instead_of='alice'"), 1);
}

/* By whatever name, in whatever order they say it. */
static void two_who_stand_for_one_another_are_one(void **state)
{
    static const struct {
        const char *by[3], *for_[3];
    } rows[] = {{{"alice", "bob", "carol"}, {"", "alice", ""}},
                {{"bob", "alice", "carol"}, {"alice", "", ""}},
                {{"alice", "bob", "carol"}, {"", "", ""}}, /* bob in his own name */
                {{"bob", "alice", "carol"}, {"", "", ""}}};
    people();
    assert_null(deputy("alice", "alice", "bob", HOUR));
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[16];
        snprintf(name, sizeof(name), "s%u", i);
        struct id t = held(name, "uid 7", 2, false);
        if (say(&t, rows[i].by[0], rows[i].for_[0]) != DECIDED_AGREED ||
            say(&t, rows[i].by[1], rows[i].for_[1]) != DECIDED_TWICE || fix_claim(&t, 50 + i, NULL) ||
            say(&t, rows[i].by[2], rows[i].for_[2]) != DECIDED_DONE)
            fail_msg("row %u", i);
    }
}

/* A deputy of two says it once; what was said in a place stays said in it when the deputy is none any more. */
static void one_person_says_it_once_for_whomever(void **state)
{
    people();
    add("dave", "");
    assert_null(deputy("alice", "alice", "bob", HOUR));
    assert_null(deputy("carol", "carol", "bob", HOUR));
    struct id t = held("s1", "uid 7", 2, false);
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_AGREED);
    assert_int_equal(say(&t, "bob", "carol"), DECIDED_TWICE);
    assert_int_equal(say(&t, "bob", ""), DECIDED_TWICE);
    assert_int_equal(say(&t, "carol", ""), DECIDED_TWICE); /* bob is her deputy as well */
    fix_time(HOUR);
    tick();
    assert_int_equal(fix_count("SELECT count(*) FROM deputy"), 0);
    fix_people.quorum = 3;
    struct id u = held("s2", "uid 7", 3, false);
    assert_int_equal(say(&u, "bob", ""), DECIDED_AGREED);
    assert_int_equal(say(&u, "alice", ""), DECIDED_AGREED); /* two again */
    assert_null(deputy("alice", "alice", "bob", HOUR));     /* and one, before it is over */
    assert_int_equal(say(&u, "carol", ""), DECIDED_AGREED);
    assert_int_equal(say(&u, "dave", ""), DECIDED_DONE);
}

static void nobody_approves_their_own_by_way_of_another(void **state)
{
    static const struct {
        const char *owner, *by, *for_;
        enum decided then;
    } rows[] = {{"alice", "bob", "alice", DECIDED_SELF}, {"uid 1000", "bob", "alice", DECIDED_SELF},
                {"alice", "bob", "", DECIDED_SELF},      {"uid 1000", "bob", "", DECIDED_SELF},
                {"bob", "bob", "alice", DECIDED_SELF},   {"bob", "alice", "", DECIDED_SELF},
                {"alice", "carol", "bob", DECIDED_SELF}, {"uid 1000", "carol", "bob", DECIDED_SELF},
                {"alice", "carol", "", DECIDED_DONE},    {"uid 7", "carol", "bob", DECIDED_DONE},
                {"uid 7", "bob", "alice", DECIDED_DONE}};
    people();
    assert_null(deputy("alice", "alice", "bob", HOUR));
    assert_null(deputy("bob", "bob", "carol", HOUR)); /* in his place is in that of whose place he is in */
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[16];
        snprintf(name, sizeof(name), "s%u", i);
        struct id t = held(name, rows[i].owner, 1, false);
        if (say(&t, rows[i].by, rows[i].for_) != rows[i].then)
            fail_msg("row %u", i);
    }
}

static void it_ends_by_time_by_word_and_with_either(void **state)
{
    people();
    assert_null(deputy("alice", "alice", "bob", HOUR));
    struct id t = held("s1", "uid 7", 2, false);
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_AGREED);
    assert_null(deputy("alice", "alice", "", 0)); /* taken back: so is what was said */
    assert_int_equal(fix_count("SELECT count(*) FROM vote"), 0);
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_NO_DEPUTY);
    assert_null(deputy("alice", "alice", "bob", HOUR));
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_AGREED);
    change(OPERATOR_GROUPS, "alice"); /* who may not be who has to agree any more */
    assert_int_equal(fix_count("SELECT count(*) FROM vote"), 0);
    change(OPERATOR_REMOVE, "alice");
    assert_int_equal(fix_count("SELECT count(*) FROM deputy"), 0);
    add("alice", "");
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_NO_DEPUTY); /* another of that name has none */
    assert_null(deputy("alice", "alice", "bob", HOUR));
    change(OPERATOR_REMOVE, "bob");
    add("bob", "");
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_NO_DEPUTY);
    assert_null(deputy("alice", "alice", "bob", 60 * 1000));
    fix_time(60 * 1000); /* also before the next second has passed */
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_NO_DEPUTY);
}

static void what_was_approved_for_who_is_gone_does_not_leave(void **state)
{
    people();
    assert_null(deputy("alice", "alice", "bob", HOUR));
    struct id t = held("s1", "uid 7", 1, false);
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_DONE);
    change(OPERATOR_REMOVE, "alice");
    uint8_t now;
    assert_false(fix_claim(&t, 5, &now));
    assert_int_equal(now, TICKET_CANCELLED);
}

/* Its owner has a name of their own once they are among the people. */
static void whose_the_machine_is_ends_it_by_whatever_name(void **state)
{
    people();
    add("dave", "");
    assert_null(deputy("bob", "bob", "carol", HOUR));
    assert_non_null(deputy_by(false, "alice", "bob", "", 0)); /* on the page */
    assert_non_null(deputy_by(true, "alice", "bob", "dave", HOUR));
    assert_int_equal(fix_count("SELECT count(*) FROM deputy WHERE deputy='carol'"), 1);
    assert_null(deputy_by(true, "alice", "bob", "", 0));
    assert_int_equal(fix_count("SELECT count(*) FROM deputy"), 0);
}

/* Who could name a deputy from a session that was left open could else approve with a passkey of their own. */
static void what_wants_a_passkey_is_approved_in_ones_own_name(void **state)
{
    people();
    assert_null(deputy("alice", "alice", "bob", HOUR));
    struct id t = held("s1", "uid 7", 1, true);
    struct store_decision d = {.what = DECIDE_APPROVE,
                               .by = SPAN("bob"),
                               .instead_of = SPAN("alice"),
                               .channel = SPAN("page"),
                               .how = SPAN("passkey"),
                               .passkey = SPAN("signed")};
    enum decided r;
    uint8_t now;
    struct row of;
    char text[ID_TEXT + 1];
    id_text(&t, text);
    assert_int_equal(row_find(fix, span_of(text, ID_TEXT), &of), 1);
    assert_int_equal(people_facts(fix, &of, &d.facts), 0);
    assert_int_equal(store_decide(fix, &t, &d, &r, &now), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(r, DECIDED_OWN_KEY);
    assert_false(fix_claim(&t, 5, NULL));
    d.what = DECIDE_DENY; /* which needs none */
    assert_int_equal(store_decide(fix, &t, &d, &r, &now), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(r, DECIDED_DONE);
}

/* Whoever was in, while another had the password, may have named one. */
static void a_new_password_ends_the_deputy(void **state)
{
    people();
    assert_null(deputy("alice", "alice", "bob", HOUR));
    assert_null(deputy("bob", "bob", "carol", HOUR));
    struct id t = held("s1", "uid 7", 2, false);
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_AGREED);
    change(OPERATOR_PASSWORD, "alice");
    assert_int_equal(fix_count("SELECT count(*) FROM vote"), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM deputy WHERE instead_of='alice'"), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM deputy"), 1); /* that of another is their business */
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_NO_DEPUTY);
    change(OPERATOR_PASSWORD, "carol");
    assert_int_equal(fix_count("SELECT count(*) FROM deputy"), 1);
}

/* The clock that can be set makes nobody a deputy for longer. */
static void a_clock_that_jumps_lengthens_nothing(void **state)
{
    people();
    assert_null(deputy("alice", "alice", "bob", HOUR));
    fix_wall -= 24ull * HOUR;
    fix_boot += HOUR;
    store_clock(fix, fix_wall, fix_boot);
    struct id t = held("s1", "uid 7", 1, false);
    assert_int_equal(say(&t, "bob", "alice"), DECIDED_NO_DEPUTY);
    tick();
    assert_int_equal(fix_count("SELECT count(*) FROM deputy"), 0);
    assert_null(deputy("alice", "alice", "bob", HOUR));
    fix_reopen();
    fix_boot = 5000; /* another kernel: what is left is what was left */
    fix_config.kernel_boot = SPAN("another");
    fix_reopen();
    assert_int_equal(fix_count("SELECT until_boot_ms FROM deputy"), 5000 + HOUR);
}

/* ---- escalation ---- */

static struct id escalating(uint64_t first, uint64_t second)
{
    sandbox("e1", "uid 7");
    fix_people = (struct wire_people){
        .quorum = 1, .escalate = {.n = 2, .step = {{first, SPAN("leads")}, {second, SPAN("board")}}}};
    return fix_hold("e1", 1, 1, SPAN_NONE).ticket;
}

static int64_t asked(void)
{
    return fix_count("SELECT count(*) FROM escalation WHERE since_ms<>0");
}

static void others_are_asked_when_their_time_has_come(void **state)
{
    struct id t = escalating(1000, 5000);
    tick();
    assert_int_equal(asked(), 0);
    fix_time(999);
    tick();
    assert_int_equal(asked(), 0);
    fix_time(1);
    tick();
    assert_int_equal(asked(), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM escalation WHERE entry='leads' AND since_ms<>0"), 1);
    tick();
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='ticket-escalated'"), 1); /* once */
    fix_time(4000);
    tick();
    assert_int_equal(asked(), 2);
    enum decided r;
    uint8_t now;
    assert_int_equal(fix_say(&t, DECIDE_APPROVE, "uid 0", "", UNSEEN, &r, &now), 0);
    assert_int_equal(r, DECIDED_DONE);
}

static void what_is_decided_escalates_to_nobody(void **state)
{
    struct id t = escalating(1000, 5000);
    enum decided r;
    uint8_t now;
    assert_int_equal(fix_say(&t, DECIDE_DENY, "uid 0", "", UNSEEN, &r, &now), 0);
    assert_int_equal(store_commit(fix), 0);
    fix_time(6000);
    tick();
    assert_int_equal(asked(), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM escalation"), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='ticket-escalated'"), 0);
}

static void a_restart_keeps_the_time_and_a_clock_that_jumps_makes_none(void **state)
{
    (void)escalating(10 * 1000, 60 * 1000);
    fix_time(4000);
    fix_reopen();
    fix_wall += 9 * 60 * 1000; /* set forward: before the ticket is over, and past both steps */
    store_clock(fix, fix_wall, fix_boot);
    tick();
    assert_int_equal(asked(), 0);
    fix_wall -= 3600 * 1000; /* and back */
    fix_boot += 6000;
    store_clock(fix, fix_wall, fix_boot);
    tick();
    assert_int_equal(asked(), 1);
    fix_wall += 51 * 60 * 1000; /* as it was */
    fix_reopen();
    fix_config.kernel_boot = SPAN("another");
    fix_boot = 100;
    fix_reopen();
    tick();
    assert_int_equal(asked(), 1);
    assert_int_equal(fix_count("SELECT due_boot_ms FROM escalation WHERE entry='board'"), 100 + 56 * 1000); /* of the
        10 s that are over, those before the last record: later, and never earlier */
}

/* What passed while the machine was off is not known but by the clock that can be wrong: it makes a step later alone.
 */
static void a_clock_that_is_fast_at_boot_makes_no_step_due(void **state)
{
    (void)escalating(60 * 1000, 120 * 1000);
    fix_time(20 * 1000);
    add("alice", ""); /* the last that is known */
    fix_wall += 9 * 60 * 1000;
    fix_boot = 100;
    fix_config.kernel_boot = SPAN("another");
    fix_reopen();
    tick();
    assert_int_equal(asked(), 0);
    assert_int_equal(fix_count("SELECT due_boot_ms FROM escalation WHERE entry='leads'"), 100 + 40 * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(one_is_named_by_oneself_alone),
        FRESH(one_decides_in_that_place_and_it_is_written_down),
        FRESH(two_who_stand_for_one_another_are_one),
        FRESH(one_person_says_it_once_for_whomever),
        FRESH(nobody_approves_their_own_by_way_of_another),
        FRESH(it_ends_by_time_by_word_and_with_either),
        FRESH(what_was_approved_for_who_is_gone_does_not_leave),
        FRESH(whose_the_machine_is_ends_it_by_whatever_name),
        FRESH(a_clock_that_is_fast_at_boot_makes_no_step_due),
        FRESH(what_wants_a_passkey_is_approved_in_ones_own_name),
        FRESH(a_new_password_ends_the_deputy),
        FRESH(a_clock_that_jumps_lengthens_nothing),
        FRESH(others_are_asked_when_their_time_has_come),
        FRESH(what_is_decided_escalates_to_nobody),
        FRESH(a_restart_keeps_the_time_and_a_clock_that_jumps_makes_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
