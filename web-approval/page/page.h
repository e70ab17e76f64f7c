/* The page's parts. All text of foreign origin goes through show.h; what is
 * written with dynbuf_add is our own. */
#ifndef WEB_APPROVAL_PAGE_PAGE_H
#define WEB_APPROVAL_PAGE_PAGE_H

#include "web-approval/api/api.h"
#include "web-approval/page/show.h"

enum {
    PAGE_BODY_INLINE = 64 * 1024,  /* of a body, shown on the ticket's own page */
    PAGE_BODY_WHOLE = 1024 * 1024, /* shown on the page of the whole body */
    PAGE_RECENT = 20,
    PAGE_WAITING = 200,
};

#define PUT(x, lit) ((void)dynbuf_add(&(x)->out, SPAN(lit)))

/* kind: for the script; "list", "ticket" or "". title: our own words. */
void page_begin(struct exchange *x, unsigned status, const char *kind, const char *title);
void page_end(struct exchange *x);
void page_see(struct exchange *x, const char *path); /* 303 */

/* page_notices.c: what every page says of this moment: frozen, shadow, learning, which policy. */
void page_notices(struct exchange *x, const char *kind);
bool page_frozen(struct exchange *x, struct freeze *f);

/* An effect or a state as a shape and a word; unknown words are shown as they are. */
void page_badge(struct dynbuf *out, struct span effect);
void page_state(struct dynbuf *out, struct span state);
/* What it would do in at most max bytes: the pack's sentence, or without one the method and the place. */
void page_summary(struct exchange *x, const struct ticket *t, size_t max);
/* Why it is held other than by a rule's own word; NULL: it is by that. */
const char *page_unusual(const struct ticket *t);
/* Who or what decided it: a person, or what did so without one. */
void page_decider(struct exchange *x, const struct ticket *t, size_t max);
/* How long it still waits; the script counts it down. attributes: our own, each followed by a space. */
void page_expires(struct exchange *x, const struct ticket *t, const char *attributes);
/* <dt>label</dt><dd> ... </dd> */
void page_row(struct exchange *x, const char *label, struct span value);

/* Ticket page: page_request.c */
void page_request(struct exchange *x, const struct ticket *t, const struct body *b);
/* The bytes of a body as far as they are in memory or in the descriptor: at most max, in the arena. */
struct span page_body_bytes(struct exchange *x, const struct body *b, size_t max);
void page_body_text(struct exchange *x, struct span bytes);
/* Ticket page: page_decide.c. body: it could be shown. */
void page_decision(struct exchange *x, const struct ticket *t, bool body);
void page_decision_whole(struct exchange *x, const struct ticket *t);
bool page_is_cut(const struct ticket *t);
/* page_ticket.c: the policy in force lets its credential go there. */
bool page_released(struct exchange *x, const struct ticket *t);

#endif
