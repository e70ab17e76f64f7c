/* People: what is done with them, and what they said of a ticket. */
#ifndef WEB_APPROVAL_PEOPLE_PEOPLE_H
#define WEB_APPROVAL_PEOPLE_PEOPLE_H

#include "web-approval/page/page.h"
#include "web-approval/store/people.h"

/* The digest of what is shown of a ticket, as the ledger makes it, too (wire_facts_digest). */
void people_facts(const struct ticket *t, struct digest *out);

/* Whose yes it needs: so many people, not its owner, with a passkey; and who agreed so far. Rows of a list. */
void people_needed(struct exchange *x, const struct ticket *t);
/* Who decided, how they had signed in, and the digest of what they were shown. Rows of a list. */
void people_decided(struct exchange *x, const struct ticket *t);

/* may.c: in whose name may this operator approve it? In their own; as the deputy of these. */
enum { PEOPLE_STEPS = 4, PEOPLE_PLACES = 8 };
struct people_may {
    bool own;
    size_t n;
    struct {
        struct span instead_of;
        uint64_t until_ms;
    } place[PEOPLE_PLACES];
};
void people_may(struct exchange *x, const struct ticket *t, struct people_may *m);
/* Who is asked as well, since when or from when on: rows of a list; in a word, for a row; "escalate" of an object. */
void people_asked(struct exchange *x, const struct ticket *t);
void people_escalated_word(struct exchange *x, const struct ticket *t);
void people_asked_json(struct exchange *x, const struct ticket *t, struct jsonw *w);
/* The field of a form for a yes that says in whose place it is; nothing where it is in one's own name. */
void people_place(struct exchange *x, const struct ticket *t);

/* deputies.c: of "Who am I", what its forms send, and /api/v1/deputies. */
void deputies_section(struct exchange *x);
void page_me_deputy(struct exchange *x);
void api_deputies(struct exchange *x);
void api_deputy_name(struct exchange *x);
void api_deputy_end(struct exchange *x);

/* Who is looking at a pending ticket, and the form to say that of oneself; in two words, for a row. */
void people_looking(struct exchange *x, const struct ticket *t);
void people_looking_word(struct exchange *x, const struct ticket *t);
void page_claim(struct exchange *x);
void api_claim(struct exchange *x);
void api_unclaim(struct exchange *x);

/* A person signs in: a session, its cookie, and to where they wanted. False: answered. */
bool people_sign_in(struct exchange *x, const char *name, enum guard_how how);
void people_cookie(struct exchange *x, const char *cookie);
/* Of the browser, for guard_flow: as long as one takes, or as long as it is known. */
void people_flow_cookie(struct exchange *x, const char *cookie, bool known);
/* An act on a person, for the ledger; fn gets M_SANDBOX_DONE. */
struct person_act {
    uint8_t what; /* ACT_*, as enum operator_act of proxy/ledger/store/ops.h */
    struct span name, uid, groups, password;
};
enum { ACT_ADD = 1, ACT_GROUPS, ACT_PASSWORD, ACT_REMOVE };
void people_act(struct exchange *x, const struct person_act *a, ask_fn *fn);
/* Of its answer. False: answered. */
bool people_acted(struct exchange *x, struct frame *f);

void api_operators(struct exchange *x);
void api_operator_add(struct exchange *x);
void api_operator_groups(struct exchange *x);
void api_operator_link(struct exchange *x);
void api_operator_remove(struct exchange *x);
void api_whoami(struct exchange *x);
void page_me(struct exchange *x);
void page_me_password(struct exchange *x);

#endif
