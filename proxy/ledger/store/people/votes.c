/* Whose yes a ticket needs: of how many, not of whom it serves, with a passkey. */
#include "proxy/ledger/store/gates/gates.h"
#include "proxy/ledger/store/people/people.h"

enum { QUORUM_MOST = 8, OWNER_MOST = 128 };

struct terms {
    uint64_t quorum, self;
    bool step_up;
    struct span owner;
};

int people_set(struct store *s, struct span ticket, const struct wire_people *p)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_PEOPLE_SET);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    db_int(q, 2, p->quorum ? p->quorum : 1);
    db_int(q, 3, p->self);
    db_int(q, 4, p->step_up);
    db_int(q, 5, p->diff);
    return db_run(&s->db, q) == 0 ? escalate_set(s, ticket, &p->escalate) : -1;
}

static int terms_of(struct store *s, const struct row *r, struct terms *t)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_PEOPLE_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->id);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW)
        *t = (struct terms){db_col_int(q, 0), db_col_int(q, 1), db_col_int(q, 2) != 0, store_copy(s, db_col(q, 3))};
    sqlite3_reset(q);
    return got == DB_ROW && t->quorum >= 1 && t->quorum <= QUORUM_MOST
               ? 0
               : db_doom(&s->db, "a ticket in the store is damaged");
}

int people_facts(struct store *s, const struct row *r, struct digest *out)
{
    struct wire_facts f = {.ticket = r->id,
                           .digest = r->digest,
                           .effect = r->record.effect,
                           .op = r->record.op,
                           .resource = r->record.resource,
                           .credential = r->credential,
                           .sandbox = r->sandbox,
                           .method = r->record.method,
                           .host = r->host,
                           .port = r->port};
    sqlite3_stmt *q = db_stmt(&s->db, SQL_PEOPLE_FACTS);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->id);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW) {
        f.summary = db_col(q, 0);
        f.facts_json = db_col(q, 1);
        f.agent_reason = db_col(q, 2);
        f.scheme = db_col(q, 3);
        f.path = db_col(q, 4);
        f.query = db_col(q, 5);
        wire_facts_digest(&f, out);
    }
    sqlite3_reset(q);
    return got == DB_ROW ? 0 : -1;
}

/* 1 there is such a person, 0 not, -1; *uid: the user of this machine they are too. */
static int person(struct store *s, struct span name, struct span *uid)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_OPERATOR_GET);
    *uid = SPAN_NONE;
    if (q == NULL)
        return -1;
    db_text(q, 1, name);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW)
        *uid = store_copy(s, db_col(q, 0));
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW;
}

/* By name, and by the user of this machine whose it is. */
static bool is_own(const struct terms *t, struct span by, struct span uid)
{
    return t->owner.n > 0 && (span_eq(by, t->owner) || span_eq(uid, t->owner));
}

static int voted(struct store *s, struct span ticket, struct span by)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_VOTE_OF);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    db_text(q, 2, by);
    int n = db_step(&s->db, q) == DB_ROW ? (int)db_col_int(q, 0) : -1;
    sqlite3_reset(q);
    return n;
}

/* Does it belong to them, or to whom they are one with? */
static int is_theirs(struct store *s, const struct terms *t, struct span by, struct span uid)
{
    return is_own(t, by, uid) ? 1 : deputy_owns(s, by, t->owner);
}

/* Or does it to whom they stand in for, or to whom that one is one with? */
static int is_of_the_place(struct store *s, const struct terms *t, struct span instead_of)
{
    struct span uid;
    int known = instead_of.n ? person(s, instead_of, &uid) : 0;
    return known <= 0 ? known : is_theirs(s, t, instead_of, uid);
}

/* They have not agreed yet, nor has anybody with whom they are one. 1, 0, -1. */
static int is_another(struct store *s, const struct row *r, const struct store_decision *d)
{
    int before = voted(s, r->id, d->by), now = before == 0 ? deputies_agreed(s, r->id, NULL) : 0;
    int then = before == 0 && now >= 0 ? deputies_agreed(s, r->id, d) : 0;
    return before < 0 || now < 0 || then < 0 ? -1 : before == 0 && then > now;
}

static int refuse(enum decided *result, enum decided why)
{
    *result = why;
    return 0;
}

int vote_may(struct store *s, const struct row *r, const struct store_decision *d, enum decided *result)
{
    static const struct digest none;
    struct terms t;
    struct span uid;
    struct digest facts;
    if (memcmp(&d->facts, &none, sizeof(none)) != 0) {
        if (people_facts(s, r, &facts) != 0)
            return -1;
        if (memcmp(&facts, &d->facts, sizeof(facts)) != 0)
            return refuse(result, DECIDED_OTHER_DIGEST);
    }
    int stands_in = d->instead_of.n ? deputy_is(s, d->by, d->instead_of) : 1;
    if (stands_in != 1)
        return stands_in < 0 ? -1 : refuse(result, DECIDED_NO_DEPUTY);
    if (d->what != DECIDE_APPROVE)
        return 1;
    int asked = gates_open(s, r->id);
    if (asked != 0)
        return asked < 0 ? -1 : refuse(result, DECIDED_GATES);
    int known = terms_of(s, r, &t) != 0 ? -1 : person(s, d->by, &uid);
    int own = known < 0 ? -1 : is_theirs(s, &t, d->by, uid);
    int of_place = own == 0 ? is_of_the_place(s, &t, d->instead_of) : 0;
    if (own < 0 || of_place < 0)
        return -1;
    bool machine = known == 0 && span_starts(d->by, SPAN("uid "));
    if ((own || of_place) && t.self != WIRE_SELF_YES && !(t.self == WIRE_SELF_OF_MACHINE && machine))
        return refuse(result, DECIDED_SELF);
    if (t.step_up && d->instead_of.n) /* one's own passkey is of no use to who names a deputy with one's session */
        return refuse(result, DECIDED_OWN_KEY);
    if ((t.quorum > 1 || t.step_up) && known == 0)
        return refuse(result, DECIDED_NOT_A_PERSON);
    if (t.step_up && (d->passkey.n == 0 || memcmp(&d->facts, &none, sizeof(none)) == 0))
        return refuse(result, DECIDED_NO_PASSKEY);
    if ((t.quorum > 1 || t.step_up || d->instead_of.n) && d->grant.uses)
        return refuse(result, DECIDED_NO_GRANT); /* one would outlast the deputy */
    int another = is_another(s, r, d);
    return another != 0 ? another : refuse(result, DECIDED_TWICE);
}

static int put(struct store *s, const struct row *r, const struct store_decision *d)
{
    static const char *const states[] = {"", "approved", "denied", "cancelled"};
    static const struct digest none;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_VOTE_PUT);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->id);
    db_text(q, 2, d->by);
    db_text(q, 3, span_str(states[d->what]));
    db_text(q, 4, d->channel);
    db_text(q, 5, d->how);
    db_text(q, 6, d->reason);
    if (memcmp(&d->facts, &none, sizeof(none)) != 0)
        db_blob(q, 7, span_of(d->facts.b, DIGEST_BYTES));
    if (d->passkey.n)
        db_blob(q, 8, d->passkey);
    db_int(q, 9, s->wall);
    db_text(q, 10, d->instead_of);
    return db_run(&s->db, q);
}

/* One of several: the ticket goes on waiting, and the page is told. */
static int agreed(struct store *s, const struct row *r, const struct store_decision *d, uint64_t n, uint64_t of)
{
    struct audit a;
    struct wire_ticket_state st;
    char hex[2 * DIGEST_BYTES + 1];
    audit_begin(&a, s, "ticket-agreed", NULL, NULL, r->id);
    jsonw_kv(&a.w, "by", d->by);
    if (d->instead_of.n)
        jsonw_kv(&a.w, "for", d->instead_of);
    jsonw_kv(&a.w, "channel", d->channel);
    jsonw_kv(&a.w, "how", d->how);
    jsonw_kv(&a.w, "reason", d->reason);
    hex_text(span_of(d->facts.b, DIGEST_BYTES), hex);
    jsonw_kv(&a.w, "shown", span_str(hex));
    jsonw_kv_u64(&a.w, "agreed", n);
    jsonw_kv_u64(&a.w, "quorum", of);
    if (audit_end(&a) != 0)
        return -1;
    row_state(r, &st);
    if (s->c.changed != NULL)
        s->c.changed(s->c.arg, CHANGE_ASKER, s->now.seq, &st, NULL);
    return 0;
}

int vote_put(struct store *s, const struct row *r, const struct store_decision *d)
{
    struct terms t;
    if (put(s, r, d) != 0)
        return -1;
    if (d->what != DECIDE_APPROVE)
        return 1;
    int n = terms_of(s, r, &t) == 0 ? deputies_agreed(s, r->id, NULL) : -1;
    if (n < 0 || (uint64_t)n >= t.quorum)
        return n < 0 ? -1 : 1;
    return agreed(s, r, d, (uint64_t)n, t.quorum);
}

void votes_json(struct store *s, const struct row *r, struct jsonw *w)
{
    struct terms t;
    sqlite3_stmt *q;
    if (terms_of(s, r, &t) != 0 || t.quorum < 2 || (q = db_stmt(&s->db, SQL_VOTES)) == NULL)
        return;
    jsonw_kv_array(w, "agreed");
    db_text(q, 1, r->id);
    db_int(q, 2, QUORUM_MOST);
    while (db_step(&s->db, q) == DB_ROW)
        jsonw_string(w, db_col(q, 0));
    sqlite3_reset(q);
    jsonw_end_array(w);
}

int votes_proof(struct store *s, const struct row *r, struct dynbuf *out)
{
    struct terms t;
    struct digest facts;
    struct dynbuf each;
    sqlite3_stmt *q = NULL;
    uint8_t n = 0;
    if (terms_of(s, r, &t) != 0)
        return -1;
    if (!t.step_up)
        return 0;
    if (people_facts(s, r, &facts) != 0 || (q = db_stmt(&s->db, SQL_VOTES)) == NULL)
        return -1;
    dynbuf_init(&each, out->max);
    db_text(q, 1, r->id);
    db_int(q, 2, QUORUM_MOST);
    while (db_step(&s->db, q) == DB_ROW) {
        msg_put_span(&each, db_col(q, 0));
        msg_put_span(&each, db_col(q, 2));
        n++;
    }
    sqlite3_reset(q);
    msg_put_u8(out, (uint8_t)t.quorum);
    msg_put_u8(out, n);
    msg_put_digest(out, &facts);
    (void)dynbuf_add(out, dynbuf_span(&each));
    bool ok = dynbuf_ok(&each) && dynbuf_ok(out);
    dynbuf_free(&each);
    return ok ? 0 : db_doom(&s->db, "what passkeys signed cannot be read");
}
