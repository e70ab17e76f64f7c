/* The page's parts. All text of foreign origin goes through show.h; what is
 * written with dynbuf_add is our own. */
#ifndef WEB_APPROVAL_PAGE_PAGE_H
#define WEB_APPROVAL_PAGE_PAGE_H

#include "web-approval/api/api.h"
#include "web-approval/page/show.h"
#include "web-approval/reading/reading.h"
#include "web-approval/viewer/viewed.h"

enum {
    PAGE_BODY_INLINE = 64 * 1024,  /* of a body, shown on the ticket's own page */
    PAGE_BODY_WHOLE = 1024 * 1024, /* shown on the page of the whole body */
    PAGE_RECENT = 20,
    PAGE_WAITING = 200,
    PAGE_OF_EACH = 40,            /* of what waits, of one sandbox */
    PAGE_BESIDE = 8,              /* of those that wait beside a request, so many are compared with it */
    PAGE_BESIDE_BODY = 64 * 1024, /* whose bodies are no longer */
};

/* A ticket with its body, taken apart. */
struct view {
    struct ticket t;
    struct span bytes; /* of the body, at most PAGE_BODY_WHOLE; in the arena */
    struct span all;   /* of a longer one, all of it, as long as the exchange; or empty */
    bool there;        /* the body is to be had, or there is none */
    struct asked asked;
    struct reading r;
    bool looked; /* at its pictures: what cannot be shown blocks it from then on (pictures/) */
    struct viewed seen[READING_PICTURES];
    struct span list[READING_PICTURES]; /* of a package that was opened (viewer/packed.h); or empty */
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
/* ":8443", where the scheme does not say it. */
void page_port(struct exchange *x, const struct ticket *t);
/* What it would do in at most max bytes: the pack's sentence, or without one the method and the place. */
void page_summary(struct exchange *x, const struct ticket *t, size_t max);
/* Why it is held other than by a rule's own word; NULL: it is by that. */
const char *page_unusual(const struct ticket *t);
/* Who or what decided it: a person, or what did so without one. */
void page_decider(struct exchange *x, const struct ticket *t, size_t max);
/* Are the words of the decision the sandbox's client's? They say what they are wherever they are shown. */
bool page_decider_untrusted(const struct ticket *t);
#define PAGE_UNTRUSTED " <small>untrusted: written by whoever asks</small>"
/* How long it still waits; the script counts it down. attributes: our own, each followed by a space. */
void page_expires(struct exchange *x, const struct ticket *t, const char *attributes);
/* <dt>label</dt><dd> ... </dd> */
void page_row(struct exchange *x, const char *label, struct span value);

/* page_list.c: a row of what waits. */
void page_card(struct exchange *x, const struct ticket *t);

/* page_asker.c: whether a client waits for its decision, and so what a yes does. Nothing of what cannot leave any
 * more. */
void page_asker(struct exchange *x, const struct ticket *t);
void page_asker_word(struct exchange *x, const struct ticket *t); /* in two words */
bool page_may_leave(const struct ticket *t);

/* Ticket page: page_request.c */
void page_request(struct exchange *x, const struct view *v);
/* The bytes of a body as far as they are in memory or in the descriptor: at most max, in the arena. */
struct span page_body_bytes(struct exchange *x, const struct body *b, size_t max);
void page_body_text(struct exchange *x, struct span bytes);
/* The body of M_BODY_IS (f NULL: none came) into the view; it outlives the message. Is it to be had, or is there
 * none? */
bool page_take_body(struct exchange *x, struct frame *f, struct view *v);
/* Ticket page: page_reading.c. What is apt to deceive, first of all; the values of the body. */
void page_read(struct exchange *x, struct view *v, struct arena *a);
void page_flags(struct exchange *x, const struct reading *r);
void page_values(struct exchange *x, const struct reading *r);
/* Ticket page: page_beside.c. Find the last of its shape that was approved, and those that wait beside it, with their
 * bodies; then show, at once or when the ledger has answered. v: with its bytes, not yet taken apart. */
void page_beside_find(struct exchange *x, struct view *v, void (*show)(struct exchange *x, struct view *v));
void page_beside(struct exchange *x, const struct view *v);
/* Of one shape: the same steps, but for those that have digits in both. */
bool page_path_like(struct span a, struct span b);
/* Ticket page: page_decide.c. */
void page_decision(struct exchange *x, const struct view *v);
void page_decision_whole(struct exchange *x, const struct view *v);
bool page_is_cut(const struct ticket *t);
/* Is a form one that this page showed, of x->arg and what was shown, not too fast and not too old? Else answered. */
bool page_mark_good(struct exchange *x, const char *purpose, struct span shown, struct span mark);
/* page_decide.c: has a yes the reason that its rule wants, and is it this operator's to say? Else answered. */
bool page_may_approve(struct exchange *x, const struct ticket *t, struct span reason, struct span instead_of);
/* What the ledger made of a decision: back to the ticket, or why not. */
void page_decided(struct exchange *x, struct frame *f);
/* The field for the name that is typed before a yes to what is grave; nothing for other requests. */
void page_name_field(struct exchange *x, const struct view *v, const char *id);
/* page_ticket.c: the policy in force lets its credential go there. */
bool page_released(struct exchange *x, const struct ticket *t);

#endif
