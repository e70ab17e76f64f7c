/* Whose yes a ticket needs: of several people, not of its owner, with a passkey; and the people themselves. */
#include "tests/unit/ledger/ledger_fix.h"

static const char *put(enum operator_act what, const char *name, const char *uid, const char *groups)
{
    const struct store_operator o = {.what = what,
                                     .by = SPAN("uid 0"),
                                     .name = span_str(name),
                                     .uid = span_str(uid),
                                     .groups = span_str(groups),
                                     .password = what == OPERATOR_PASSWORD ? SPAN("$y$x") : SPAN_NONE};
    const char *why = NULL;
    assert_int_equal(store_operator_put(fix, &o, &why), 0);
    assert_int_equal(store_commit(fix), 0);
    return why;
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

static enum decided say(const struct id *id, const char *by, const char *passkey, const struct digest *facts)
{
    static const struct digest none;
    const struct store_decision d = {.what = DECIDE_APPROVE,
                                     .by = span_str(by),
                                     .channel = SPAN("page"),
                                     .how = SPAN("password"),
                                     .passkey = span_str(passkey),
                                     .facts = facts ? *facts : none};
    enum decided r;
    uint8_t state;
    assert_int_equal(store_decide(fix, id, &d, &r, &state), 0);
    assert_int_equal(store_commit(fix), 0);
    return r;
}

static void people_are_named_in_order(void **state)
{
    assert_null(put(OPERATOR_ADD, "alice", "uid 1000", "desk leads"));
    assert_non_null(put(OPERATOR_ADD, "alice", "", ""));         /* there is one */
    assert_non_null(put(OPERATOR_ADD, "al", "uid 1000", ""));    /* that user is alice */
    assert_non_null(put(OPERATOR_ADD, "uid 5", "", ""));         /* a user's name is no person's */
    assert_non_null(put(OPERATOR_ADD, "bob", "", "leads desk")); /* not in order */
    assert_non_null(put(OPERATOR_ADD, "bob", "", "desk desk"));  /* twice */
    assert_non_null(put(OPERATOR_ADD, "bob", "", "desk "));
    assert_non_null(put(OPERATOR_GROUPS, "bob", "", "desk")); /* nobody */
    assert_null(put(OPERATOR_GROUPS, "alice", "", ""));
    assert_int_equal(fix_count("SELECT count(*) FROM operator WHERE groups=''"), 1);
    int64_t before = fix_count("SELECT generation FROM operator");
    assert_null(put(OPERATOR_PASSWORD, "alice", "", ""));
    assert_true(fix_count("SELECT generation FROM operator") > before); /* whoever is signed in is out */
    assert_null(put(OPERATOR_REMOVE, "alice", "", ""));
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='operator'"), 4);
}

static void several_must_agree_and_each_counts_once(void **state)
{
    sandbox("s1", "uid 7");
    put(OPERATOR_ADD, "alice", "", "");
    put(OPERATOR_ADD, "bob", "", "");
    fix_people = (struct wire_people){.quorum = 2};
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN_NONE);
    assert_int_equal(say(&st.ticket, "uid 0", "", NULL), DECIDED_NOT_A_PERSON);
    assert_int_equal(say(&st.ticket, "alice", "", NULL), DECIDED_AGREED);
    assert_int_equal(say(&st.ticket, "alice", "", NULL), DECIDED_TWICE);
    assert_false(fix_claim(&st.ticket, 5, NULL));
    put(OPERATOR_REMOVE, "alice", "", ""); /* whoever is gone does not count */
    assert_int_equal(say(&st.ticket, "bob", "", NULL), DECIDED_AGREED);
    put(OPERATOR_ADD, "carol", "", "");
    assert_int_equal(say(&st.ticket, "carol", "", NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 6, NULL));
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='ticket-agreed'"), 2);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='ticket-decided' AND "
                               "json LIKE '%\"how\":\"password\"%\"agreed\":[\"bob\",\"carol\"]%'"),
                     1);
}

static void a_grant_goes_with_no_request_that_needs_several(void **state)
{
    sandbox("s1", "uid 7");
    put(OPERATOR_ADD, "alice", "", "");
    fix_people = (struct wire_people){.quorum = 2};
    fix_shape = (struct wire_shape){.digest = fix_digest(3), .json = SPAN("{}"), .uses = 5, .within_ms = 60000};
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN_NONE);
    const struct store_grant more = {2, 1000};
    static const struct digest none;
    enum decided r;
    uint8_t now;
    assert_int_equal(fix_say(&st.ticket, DECIDE_APPROVE, "alice", "", &none, &more, &r, &now), 0);
    assert_int_equal(r, DECIDED_NO_GRANT);
}

static void nobody_approves_their_own(void **state)
{
    static const struct {
        uint8_t self;
        const char *owner, *by;
        enum decided then;
    } rows[] = {
        {WIRE_SELF_NO, "uid 1000", "uid 1000", DECIDED_SELF},
        {WIRE_SELF_NO, "uid 1000", "alice", DECIDED_SELF}, /* who is that user */
        {WIRE_SELF_NO, "alice", "alice", DECIDED_SELF},
        {WIRE_SELF_NO, "alice", "bob", DECIDED_DONE},
        {WIRE_SELF_NO, "uid 1000", "uid 0", DECIDED_DONE},
        {WIRE_SELF_OF_MACHINE, "uid 1001", "uid 1001", DECIDED_DONE}, /* one machine, one user */
        {WIRE_SELF_OF_MACHINE, "uid 1000", "alice", DECIDED_SELF},
        {WIRE_SELF_YES, "uid 1000", "alice", DECIDED_DONE},
    };
    put(OPERATOR_ADD, "alice", "uid 1000", "");
    put(OPERATOR_ADD, "bob", "", "");
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[16];
        snprintf(name, sizeof(name), "s%u", i);
        sandbox(name, rows[i].owner);
        fix_people = (struct wire_people){.quorum = 1, .self = rows[i].self};
        struct wire_ticket_state st = fix_hold(name, 10 + i, 10 + i, SPAN_NONE);
        if (say(&st.ticket, rows[i].by, "", NULL) != rows[i].then)
            fail_msg("row %u", i);
        bool may = fix_claim(&st.ticket, 100 + i, NULL);
        assert_int_equal(may, rows[i].then == DECIDED_DONE);
    }
}

/* Also when it is no more. */
static void whose_sandbox_it_was_is_in_the_ticket(void **state)
{
    put(OPERATOR_ADD, "alice", "", "");
    put(OPERATOR_ADD, "bob", "", "");
    sandbox("s1", "alice");
    fix_people = (struct wire_people){.quorum = 1};
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN_NONE);
    assert_int_equal(fix_sql("DELETE FROM sandbox WHERE name='s1'"), SQLITE_OK);
    assert_int_equal(say(&st.ticket, "alice", "", NULL), DECIDED_SELF);
    assert_int_equal(say(&st.ticket, "bob", "", NULL), DECIDED_DONE);
}

static void what_somebody_gave_ends_with_them(void **state)
{
    sandbox("s1", "uid 7");
    put(OPERATOR_ADD, "alice", "", "");
    put(OPERATOR_ADD, "bob", "", "");
    fix_shape = (struct wire_shape){.digest = fix_digest(3), .json = SPAN("{}"), .uses = 5, .within_ms = 60000};
    static const char *const names[] = {"alice", "bob"};
    struct wire_ticket_state st[2];
    const struct store_grant more = {2, 1000};
    static const struct digest none;
    for (unsigned i = 0; i < 2; i++) {
        enum decided r;
        uint8_t now;
        st[i] = fix_hold("s1", 1 + i, 1 + i, SPAN_NONE);
        assert_int_equal(fix_say(&st[i].ticket, DECIDE_APPROVE, names[i], "", &none, &more, &r, &now), 0);
        assert_int_equal(r, DECIDED_DONE);
    }
    put(OPERATOR_GROUPS, "alice", "", "desk"); /* which takes back nothing that was given */
    assert_int_equal(fix_count("SELECT count(*) FROM grants WHERE state='live'"), 2);
    put(OPERATOR_REMOVE, "alice", "", "");
    assert_int_equal(fix_count("SELECT count(*) FROM grants WHERE state='ended' AND granted_by='alice'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM grants WHERE state='live' AND granted_by='bob'"), 1);
    assert_false(fix_claim(&st[0].ticket, 5, NULL));
    assert_true(fix_claim(&st[1].ticket, 6, NULL));
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='cancelled'"), 1);
}

static void who_is_of_other_groups_says_it_again(void **state)
{
    sandbox("s1", "uid 7");
    put(OPERATOR_ADD, "alice", "", "leads");
    put(OPERATOR_ADD, "bob", "", "leads");
    fix_people = (struct wire_people){.quorum = 2};
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN_NONE);
    assert_int_equal(say(&st.ticket, "alice", "", NULL), DECIDED_AGREED);
    put(OPERATOR_GROUPS, "alice", "", "desk");
    assert_int_equal(say(&st.ticket, "bob", "", NULL), DECIDED_AGREED);
}

static void what_was_shown_is_what_is_held(void **state)
{
    struct digest other = fix_digest(77);
    sandbox("s1", "uid 7");
    put(OPERATOR_ADD, "alice", "", "");
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN_NONE);
    assert_int_equal(say(&st.ticket, "alice", "", &other), DECIDED_OTHER_DIGEST);
    fix_people = (struct wire_people){.quorum = 1, .step_up = true};
    st = fix_hold("s1", 2, 2, SPAN_NONE);
    assert_int_equal(say(&st.ticket, "alice", "", NULL), DECIDED_NO_PASSKEY);
    assert_int_equal(say(&st.ticket, "alice", "signed", NULL), DECIDED_NO_PASSKEY); /* over what? */
    assert_int_equal(say(&st.ticket, "uid 0", "signed", NULL), DECIDED_NOT_A_PERSON);
    assert_false(fix_claim(&st.ticket, 9, NULL));
}

static enum looked look(const struct id *id, const char *by, bool on, bool over, const char *whose)
{
    const struct store_look l = {.on = on, .over = over, .by = span_str(by), .channel = SPAN("page")};
    enum looked r;
    struct span who;
    assert_int_equal(store_look(fix, id, &l, &r, &who), 0);
    assert_true(span_eq(who, span_str(whose)));
    assert_int_equal(store_commit(fix), 0);
    return r;
}

static int64_t records(const char *kind)
{
    char sql[96];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM audit WHERE kind='%s'", kind);
    return fix_count(sql);
}

static void one_looks_at_it_for_a_while(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN_NONE), other = fix_hold("s1", 2, 2, SPAN_NONE);
    struct id none = st.ticket;
    none.b[0] ^= 1;
    assert_int_equal(look(&none, "alice", true, true, ""), LOOKED_NO_TICKET);
    assert_int_equal(look(&st.ticket, "", true, true, ""), LOOKED_NOT_PENDING); /* nobody is nobody */
    assert_int_equal(look(&st.ticket, "alice", false, true, ""), LOOKED_NOBODY);
    assert_int_equal(look(&st.ticket, "alice", true, false, ""), LOOKED_DONE);
    assert_int_equal(look(&st.ticket, "alice", true, false, "alice"), LOOKED_DONE); /* at once again: not written */
    assert_int_equal(records("ticket-claimed"), 1);
    assert_int_equal(look(&st.ticket, "bob", true, false, "alice"), LOOKED_OTHER);
    assert_int_equal(look(&st.ticket, "bob", false, true, "alice"), LOOKED_OTHER); /* taken back by their own alone */
    assert_int_equal(look(&st.ticket, "bob", true, true, "alice"), LOOKED_DONE);
    assert_int_equal(look(&st.ticket, "alice", true, false, "bob"), LOOKED_OTHER);
    assert_int_equal(look(&other.ticket, "alice", true, false, ""), LOOKED_DONE);
    fix_time(STORE_LOOKING_AGAIN_MS);
    assert_int_equal(look(&st.ticket, "bob", true, false, "bob"), LOOKED_DONE);
    assert_int_equal(records("ticket-claimed"), 4); /* a while longer */
    fix_time(STORE_LOOKING_MS - 1);
    assert_int_equal(look(&st.ticket, "alice", true, false, "bob"), LOOKED_OTHER);
    fix_time(1);
    assert_int_equal(look(&st.ticket, "alice", true, false, ""), LOOKED_DONE); /* nobody has to take it */
    assert_int_equal(fix_count("SELECT count(*) FROM looking"), 1);            /* what is over is not kept */
    assert_int_equal(look(&st.ticket, "alice", false, false, "alice"), LOOKED_DONE);
    assert_int_equal(records("ticket-unclaimed"), 1);
    assert_int_equal(look(&st.ticket, "alice", true, false, ""), LOOKED_DONE);
    fix_wall -= 3600000; /* a clock that goes back lengthens none */
    fix_time(0);
    assert_int_equal(look(&st.ticket, "bob", true, false, ""), LOOKED_DONE);
}

static void a_claim_keeps_nobody_from_deciding(void **state)
{
    enum { OPEN = 2 };
    static const enum decide what[OPEN] = {DECIDE_APPROVE, DECIDE_DENY};
    for (unsigned i = 0; i < OPEN; i++) {
        struct wire_ticket_state st = fix_hold("s1", 10 + i, 10 + i, SPAN_NONE);
        assert_int_equal(look(&st.ticket, "alice", true, false, ""), LOOKED_DONE);
        assert_int_equal(fix_decide(&st.ticket, what[i], NULL), DECIDED_DONE); /* by somebody else */
        assert_int_equal(look(&st.ticket, "alice", true, true, ""), LOOKED_NOT_PENDING);
        assert_int_equal(look(&st.ticket, "alice", false, false, ""), LOOKED_NOT_PENDING);
    }
    struct wire_ticket_state late = fix_hold("s1", 20, 20, SPAN_NONE);
    fix_time(STORE_EXPIRES_MS);
    assert_int_equal(look(&late.ticket, "alice", true, false, ""), LOOKED_NOT_PENDING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(people_are_named_in_order),
        FRESH(several_must_agree_and_each_counts_once),
        FRESH(one_looks_at_it_for_a_while),
        FRESH(a_claim_keeps_nobody_from_deciding),
        FRESH(a_grant_goes_with_no_request_that_needs_several),
        FRESH(nobody_approves_their_own),
        FRESH(whose_sandbox_it_was_is_in_the_ticket),
        FRESH(what_somebody_gave_ends_with_them),
        FRESH(who_is_of_other_groups_says_it_again),
        FRESH(what_was_shown_is_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
