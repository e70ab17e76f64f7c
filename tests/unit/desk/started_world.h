/* The desk as it answers for sandboxes that are started by API: the test says what the warden and the ledger do. The
 * store has the sandboxes box (started, of generation 4), ci (of a token), old (ended), and abox (started) of the
 * tenant acme, whose key one opens it. */
#ifndef TESTS_STARTED_WORLD_H
#define TESTS_STARTED_WORLD_H

#include "tests/kit.h"

#include "common/msg.h"
#include "proxy/msgs.h"
#include "sandbox-shim/checkpoint/form.h"
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/api/api.h"

#define UNKNOWN "\1\0\0\0\0\0\0\0\0" /* M_SB_IMAGE: a digest of the machine's files, which is not known */

#define A_DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum { WAIT_TOO = DESK_DOCK_ASKS };

extern struct dynbuf sent, noted; /* the last message, but for notes; the last note */
extern unsigned sent_type, noted_n;
extern uint64_t sent_id;
extern struct dynbuf all_noted; /* all notes of this request */
extern struct dynbuf
    all_sent; /* all messages of this request but notes: of each its type, as a byte, and its payload */
extern struct desk desk;
extern struct exchange x;
extern struct ask waits;              /* of another exchange, while the next one is run */
extern struct ask wait_too[WAIT_TOO]; /* and of others */

/* Of its store. */
const char *world_db(void);
/* For cmocka. */
int group_setup(void **state);
int group_teardown(void **state);
/* A request on the control socket, METHOD /path; its status, 0: another role is asked. */
unsigned control(const char *line, const char *body);
/* The same of a caller of the dock: of a key of this tenant, or (box not "") of what opens this sandbox alone. */
unsigned docked(const char *tenant, const char *box, const char *line, const char *body);
/* The same of the broker, for a turn of this tenant, with this lane (empty: none). */
unsigned brokered(const char *tenant, const char *with, const char *line, const char *body);
/* What is of x is freed. */
void end(void);
/* The answer has it. */
bool says(const char *needle);
/* Who was asked answers. */
void answer(enum ask_whom whom, uint16_t type, struct span payload);
/* The ledger has a row of a sandbox of this name that is started, of generation 1. */
void row_of(struct span name);
/* What the ledger has of this one cannot be read for a while. */
void row_is_gone(struct span name);
void row_is_back(struct span name);
/* What the sandbox box may reach, as the ledger has it. */
/* What the dock was told of `box` when it was started; "": nothing, it is not the dock's. */
void box_has_note(const char *note);
void row_reaches(const char *reach);
/* The warden is asked which checkpoint that is, and says what with its files may be reached. */
void looked(const char *reach);
/* A checkpoint is made, or one was asked for. */
void head_said(const char *reach);
/* M_SB_LISTED of a sandbox that is called box. */
struct dynbuf list_of_one(enum pause_way way);

#endif
