/* Questions to other roles, and the row of ways an exchange is answered. */
#ifndef WEB_APPROVAL_ASK_H
#define WEB_APPROVAL_ASK_H

#include "web-approval/desk.h"

/* Begin a question; add its fields with msg_put_*, then ask_send. `want` is the type of the answer; anything
 * else, or none within DESK_ASK_MS (of a reload DESK_RELOAD_MS), calls fn with NULL. NULL: not possible now; the
 * exchange is answered 503. */
struct dynbuf *ask_begin(struct exchange *x, enum ask_whom whom, uint16_t type, uint16_t want, ask_fn *fn) MUSTCHECK;
/* What was begun last may take so long. */
void ask_longer(struct exchange *x, uint64_t ms);
/* Send what was begun last. On failure fn is called with NULL. */
void ask_send(struct exchange *x);
/* An answer came. False: nobody asked (the frame is for somebody else). */
bool ask_answer(struct desk *d, enum ask_whom whom, struct frame *f);
/* Questions whose time is over, or all to a role that is gone, fail. */
void ask_expire(struct desk *d, uint64_t now);
void ask_gone(struct desk *d, enum ask_whom whom);
/* An operator's act, for the audit: json must be an object. Nothing is waited for. */
void ask_note(struct desk *d, const char *kind, struct span json);
/* The same, saying only who. */
void ask_note_operator(struct exchange *x, const char *kind);

/* Begin a JSON answer. */
void reply_json(struct exchange *x, unsigned status, struct jsonw *w);
/* Nothing to say. */
void reply_empty(struct exchange *x, unsigned status);
/* A refusal: problem+json (RFC 9457) or, on a page, a page. */
void reply_problem(struct exchange *x, unsigned status, const char *title, const char *fmt, ...) PRINTF(4, 5);
/* That page (page/page.c). */
void page_problem(struct exchange *x, unsigned status, const char *title, const char *detail);
/* 503 with the reason. */
void reply_unable(struct exchange *x, const struct err *e);
bool exchange_is_api(const struct exchange *x);

/* Is it an answer yet: hand it to the client. Set by server.c; tests set their own. */
extern void (*exchange_answered)(struct exchange *x);

/* A member that a JSON body may have. */
struct member {
    const char *name;
    enum json_type type; /* JSON_BAD: any */
    bool required;
    const struct json *value; /* out */
};
/* The body as an object with exactly these members and no others; answers 400 and gives -1 otherwise. An
 * empty body counts as {} */
int body_members(struct exchange *x, struct member *m, size_t n) MUSTCHECK;
/* A form's field (application/x-www-form-urlencoded) decoded, in the arena; -1 if there twice or not decodable. */
int form_field(struct exchange *x, const char *name, struct span *out) MUSTCHECK;
/* A query parameter, the same way. Empty when absent. */
int query_field(struct exchange *x, const char *name, struct span *out) MUSTCHECK;
/* A reason in an operator's words: UTF-8, at most REASON_MAX bytes, control and format characters become
 * spaces. NULL p on failure (answered 400). */
enum { REASON_MAX = 500 };
int reason_clean(struct exchange *x, struct span in, struct span *out) MUSTCHECK;

#endif
