/* Who may do what on the page: the Host check, sign-in links, sessions, and the
 * marks that bind a form to what its page showed. Pure: time is passed in
 * (milliseconds of a steady clock), randomness comes from id_new. */
#ifndef WEB_APPROVAL_GUARD_H
#define WEB_APPROVAL_GUARD_H

#include "common/http/http.h"
#include "common/id.h"

enum {
    GUARD_LINKS = 8,
    GUARD_SESSIONS = 32,
    GUARD_OPERATOR = 48,
    GUARD_LINK_MS = 10 * 60 * 1000,
    GUARD_SESSION_MS = 12 * 60 * 60 * 1000,
    GUARD_ARM_MS = 500, /* a form comes back no sooner than this: nobody reads faster, a trick does */
    GUARD_MARK_TEXT = 80,
    GUARD_COOKIE_TEXT = 2 * ID_TEXT,
};

struct session {
    struct digest cookie; /* SHA-256 of the cookie's text; all zero: a free slot */
    struct digest key;    /* for the marks of its forms */
    uint64_t until_ms;
    char operator[GUARD_OPERATOR]; /* "uid 0" */
};

struct guard {
    struct span host; /* of the page's own URL */
    uint16_t port;
    struct {
        struct digest token;
        uint64_t until_ms; /* 0: free */
        char operator[GUARD_OPERATOR];
    } link[GUARD_LINKS];
    struct session session[GUARD_SESSIONS];
};

/* url: "http://localhost:8088", borrowed for good. -1: not http://, or not a name of this machine's loopback
 * (without TLS the page is served nowhere else). */
int guard_init(struct guard *g, struct span url) MUSTCHECK;
/* Was this request sent to the page under its own name? localhost, 127.0.0.1 and [::1] are one name. */
bool guard_host_ok(const struct guard *g, const struct http_head *h);
/* For requests that change something: Origin must be there and ours, Sec-Fetch-Site, if sent, "same-origin". */
bool guard_origin_ok(const struct guard *g, const struct http_head *h);

/* A link that opens once: its token into text (ID_TEXT + 1). The oldest makes room. */
int guard_link_new(struct guard *g, const char *operator, uint64_t now, char text[ID_TEXT + 1]) MUSTCHECK;
/* Use it up: a new session and its cookie's text, or NULL (unknown, used or too old). */
const struct session *guard_sign_in(struct guard *g, struct span token, uint64_t now,
                                    char cookie[GUARD_COOKIE_TEXT + 1]) MUSTCHECK;
/* The session named by the request's cookie, or NULL. */
const struct session *guard_session(const struct guard *g, const struct http_head *h, uint64_t now);
void guard_sign_out(struct guard *g, const struct session *s);

/* The mark of a form: says when it was shown, and is worth nothing in another session, for another purpose,
 * ticket or digest. */
void guard_mark(const struct session *s, const char *purpose, struct span subject, struct span shown, uint64_t now,
                char out[GUARD_MARK_TEXT + 1]);
enum guard_mark { GUARD_FORGED = 0, GUARD_TOO_FAST, GUARD_STALE, GUARD_FINE };
enum guard_mark guard_mark_check(const struct session *s, const char *purpose, struct span subject, struct span shown,
                                 uint64_t now, struct span mark);

#endif
