/* What the API's files share, and what the pages use of them. */
#ifndef WEB_APPROVAL_API_API_H
#define WEB_APPROVAL_API_API_H

#include "common/msg.h"
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/ask.h"

/* The ticket of x->arg: 0, or -1 (answered 404 or 503). */
int api_ticket_find(struct exchange *x, struct ticket *t) MUSTCHECK;
/* Ask the ledger for the ticket's body; fn gets M_BODY_IS. */
void api_body_ask(struct exchange *x, const struct id *id, ask_fn *fn);
/* Read that answer. -1: it is not to be had (no longer kept, or no answer). *fd: -1, or the bytes (owned). */
struct body {
    uint64_t size;
    struct span bytes; /* those in the message */
    int fd;
};
int api_body_read(struct frame *f, struct body *b) MUSTCHECK;

enum choice { DECIDE_NONE = 0, DECIDE_APPROVE, DECIDE_DENY };
/* Ask the ledger to decide; fn gets M_DECIDED. */
void api_decide(struct exchange *x, const struct id *id, enum choice what, struct span reason,
                const struct digest *shown, const char *channel, ask_fn *fn);
/* The same, for so many more of the same shape and so long; uses 0: it alone. */
struct grant_ask {
    uint32_t uses;
    uint64_t for_ms;
};
void api_decide_more(struct exchange *x, const struct id *id, enum choice what, struct span reason,
                     const struct digest *shown, struct grant_ask more, const char *channel, ask_fn *fn);
/* Read M_DECIDED: 200 and *state, or the status to answer with and *why. */
unsigned api_decided(struct frame *f, const char **state, const char **why);

/* May this operator approve it (approvers: of the policy of now; people/may.c)? instead_of: in whose place, as they
 * say it; empty: in their own name, or else of the first whose deputy they are and who may. x->instead_of is which.
 */
bool api_may_approve(struct exchange *x, const struct ticket *t, struct span instead_of);

struct freeze {
    bool on;
    struct span by, reason;
    uint64_t since_ms;
};
/* Are writes frozen, by whom, why and since when. */
int freeze_read(struct exchange *x, struct freeze *f, struct err *e) MUSTCHECK;
/* Ask the ledger to freeze writes, or to lift that; fn gets M_FREEZE. Was it done? Else answered. */
void api_freeze_ask(struct exchange *x, bool on, struct span reason, ask_fn *fn);
bool api_freeze_done(struct exchange *x, struct frame *f) MUSTCHECK;

/* The newest of what ran in a sandbox before the record ?before=, with what it sent; a page. */
void api_runs_of(struct exchange *x, struct span sandbox);
/* A lease of this credential for that sandbox, until then. */
void api_lease_for(struct exchange *x, struct span credential, struct span sandbox, uint64_t expires_ms);
/* The run whose id begins with x->arg. -1, answered. */
int api_run_find(struct exchange *x, struct run_row *r) MUSTCHECK;

enum { STARTED_LIFE_MAX_S = 7 * 86400 };

/* The facts of a ticket as an object; full: with fields, facts and everything else. */
void api_ticket_json(struct jsonw *w, const struct ticket *t, bool full);
/* A whole number within bounds, where the member is there. -1, answered. */
struct member;
int api_number(struct exchange *x, const struct member *f, uint64_t *to, uint64_t least, uint64_t most) MUSTCHECK;
/* A whole number of the query; out stays as it is where there is none. -1, answered. */
int api_query_number(struct exchange *x, const char *name, uint64_t max, uint64_t *out) MUSTCHECK;
/* One that the warden has started, as M_SB_LISTED has it. */
struct started {
    struct wire_box box;
    uint64_t generation, age_ms, left_ms, idle_ms; /* idle: since a command ran in it */
    unsigned version, commands, way;               /* enum pause_way */
    struct span not_idle;                          /* why it could not be put aside; empty: that was not tried */
};
void api_started_get(struct msg_in *m, struct started *s);
/* An entry of a folder in a sandbox; kind: f, d, l or another letter. */
struct api_entry {
    unsigned kind, mode;
    uint64_t size;
    int64_t mtime;
    struct span name, target;
};
/* All of it but its kind, which is read before it. */
void api_entry_get(struct msg_in *m, struct api_entry *e);
/* For a page: list the folder of this path in that sandbox, or read the file, at most so many entries or bytes, as
 * `of` is: its `done` gets them. x->transfer is set, or x is answered. */
struct transfer_of;
void api_files_page(struct exchange *x, struct span box, bool list, struct span path, uint64_t most,
                    const struct transfer_of *of);
/* What it is made of, in its row of the ledger. */
struct wire_sandbox;
void api_started_label(struct wire_sandbox *s, const struct wire_box *b);
/* Its members; of one that may not run any more. */
void api_box_put(struct jsonw *w, const struct wire_box *b, uint64_t generation, unsigned version);
void api_started_put(struct jsonw *w, const struct started *s);
/* The word for enum sb_end. */
const char *api_end_word(unsigned how);
/* Tell the ledger that what it gave this generation does not run. */
void api_started_over(struct desk *d, struct span name, uint64_t generation);
/* It runs, or may come up yet, and nobody would know: it is to end, and nothing is waited for. */
void api_started_not_wanted(struct desk *d, struct span name);
/* By what one stands still, in words. */
const char *api_paused_by(unsigned way);
/* x->arg may be the name of one. -1, answered. */
int api_started_name(struct exchange *x) MUSTCHECK;
/* A command of a sandbox, as "3.7": numbers begin anew with each start of a name. */
struct api_command {
    uint64_t generation; /* that the sandbox was started as */
    uint32_t number;
};
/* -1: it is none, and that is answered. */
int api_command_read(struct exchange *x, struct span text, struct api_command *is) MUSTCHECK;
void api_command_put(struct jsonw *w, const struct api_command *is);
/* box_command of a message to the warden (proxy/msgs_box.h). */
void api_command_ask(struct dynbuf *b, struct span sandbox, const struct api_command *is);
/* Answer that there is none; found: enum sb_found. */
void api_command_none(struct exchange *x, unsigned found);
/* What an operator did with a started sandbox, for the audit; command: its words, or NULL. */
void api_started_note(struct exchange *x, const char *kind, struct span sandbox, const struct json *command);
/* That a command began in one; step: which one it is, or 0. */
void api_exec_note(struct exchange *x, const struct json *command, uint64_t step);
/* What the warden says of a command in a started sandbox, by the number it was told: bytes (borrowed) of its output
 * `which`, 1 or 2; or, 0, its last event. -1: it cannot be read. */
int api_started_heard(struct frame *f, unsigned *which, struct span *bytes, struct dynbuf *event) MUSTCHECK;
/* Output as an event. */
void api_started_output(struct dynbuf *event, unsigned which, struct span bytes);
/* The last event of one whose warden has gone. */
void api_started_lost(struct dynbuf *event);
/* So many bytes have left; nobody follows it any more. */
void api_started_taken(struct desk *d, uint64_t follow, uint32_t bytes);
void api_started_unfollow(struct desk *d, uint64_t follow);
/* A token to be put down (proxy/ledger/store/tokens/schema_5.sql): a key, or, of a sandbox, what it is opened with;
 * fn gets M_SANDBOX_DONE. */
struct token_asked {
    struct span sandbox, name, tenant, note;
    struct digest hash;
};
void api_token_put(struct exchange *x, const struct token_asked *t, ask_fn *fn);
/* A digest in hexadecimal. -1, answered. */
int api_access_take(struct exchange *x, const struct json *given, struct digest *hash) MUSTCHECK;
/* Names the policy gives credentials, and whether one is there. */
bool api_secret_present(const struct desk *d, struct span name);

#endif
