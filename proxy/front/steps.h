/* What is done with a client, a file each; client.h includes it. After any function here that may refuse, finish or
 * free, the client may be gone: return without touching it. */
#ifndef PROXY_FRONT_STEPS_H
#define PROXY_FRONT_STEPS_H

#include "common/handshake/socks5.h"
#include "proxy/front/client.h"

/* The rows of this role, run by walk.c. NEXT: the connection is in another state, whose row is next; FAIL: e is the
 * refusal; DONE: the client may be gone. */
enum walk_next step_accept(struct client *c, struct http_err *e);    /* ways.c */
enum walk_next step_intercept(struct client *c, struct http_err *e); /* connect.c */
enum walk_next step_parse(struct client *c, struct http_err *e);     /* request.c */
/* connect.c */
enum walk_next front_connect(struct client *c, const struct http_head *h, struct http_err *e) MUSTCHECK;
void front_leaf(struct client *c, struct frame *f);
bool front_same_identity(const struct client *c, const struct http_head *h, struct http_err *e) MUSTCHECK;
/* body.c */
void front_body_wanted(struct client *c, struct frame *f);
void front_body_credit(struct client *c, struct frame *f);
void front_body_go_on(struct client *c);
void front_body_slow(struct client *c);
void front_body_free(struct exchange *x);
/* answer.c */
void front_reply(struct client *c, struct span payload);
void front_answer(struct client *c, struct frame *f);
void front_answer_body(struct client *c, struct span data);
void front_answer_end(struct client *c, struct frame *f);
void front_drained(struct client *c);
void front_owe(struct client *c, size_t n); /* so much was taken from the carrier */
/* stranger.c: another protocol, of which something has come. NEXT: it is none that is known; DONE: it was told. */
enum walk_next front_stranger(struct client *c, struct span in) MUSTCHECK;
/* refuse.c: a refusal the front makes itself, then the end of the connection; a cut if an answer has begun. */
void front_refuse(struct client *c, unsigned status, const char *code, const char *why);
/* The same to who speaks TLS and is not answered in it yet; description: RFC 8446 section 6. */
enum { ALERT_ACCESS_DENIED = 49, ALERT_DECODE_ERROR = 50, ALERT_INTERNAL = 80, ALERT_NO_NAME = 112 };
void front_refuse_tls(struct client *c, uint8_t description, const char *code);
void front_alert(struct client *c, uint8_t description); /* that is not noted */
/* The same to who waits for the answer to a SOCKS request. */
void front_refuse_socks(struct client *c, enum socks5_reply why, const char *code);
/* audit.c: what was refused here is seen: in the audit, by way of the judge, and in the parent's counters. */
void front_note(struct client *c, const char *code);
void front_note_stranger(struct front *f, const char *code, uint16_t port);
void front_count(struct front *f, const char *code);

#endif
