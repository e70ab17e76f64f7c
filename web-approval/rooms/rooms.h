/* What the rooms share: their head, and tables that become rows on a narrow screen. */
#ifndef WEB_APPROVAL_ROOMS_ROOMS_H
#define WEB_APPROVAL_ROOMS_ROOMS_H

#include "policy/decision.h"
#include "web-approval/page/page.h"

enum { ROOM_NAME = 80, ROOM_TEXT = 300 };

/* kind: which of the rooms; words: our own, what one finds here. */
void room_begin(struct exchange *x, const char *kind, const char *title, const char *words);
void room_section(struct exchange *x, const char *id, const char *title);
void room_section_end(struct exchange *x);
/* label: of the table. heads: our own; the first column names the row. */
void room_table(struct exchange *x, const char *label, const char *const *heads, size_t n);
void room_table_end(struct exchange *x);
/* Begin a cell; on a narrow screen its head stands in it. NULL: it needs none. End it with PUT "</td>". */
void room_cell(struct exchange *x, const char *head);
void room_cell_text(struct exchange *x, const char *head, struct span text);
/* An empty state: what it means, and what to do (our own HTML). */
void room_empty(struct exchange *x, const char *what, const char *then);
/* A table of leases; sandbox: of it alone, or empty. */
int room_leases(struct exchange *x, struct span sandbox, size_t max, struct err *e) MUSTCHECK;
/* "good" or "bad": a word with a shape and a colour. */
void room_state(struct exchange *x, bool good, const char *word);

/* A request as it is pasted: "POST https://host/path", fields, an empty line, the body. Pure; spans point into text,
 * or into the arena where a canonical form differs. NULL, or why it cannot be read. */
struct pasted {
    struct request request;
    struct http_field field[64];
    char host[256];
};
const char *pasted_read(struct span text, struct arena *a, struct pasted *out) MUSTCHECK;

#endif
