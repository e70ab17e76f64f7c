/* Who may do what on the page: the Host check, sign-in links, sessions, and the
 * marks that bind a form to what its page showed. Pure: time is passed in
 * (milliseconds of a steady clock), randomness comes from id_new. */
#ifndef WEB_APPROVAL_GUARD_H
#define WEB_APPROVAL_GUARD_H

#include "common/http/http.h"
#include "common/id.h"

enum {
    GUARD_LINKS = 32,
    GUARD_SESSIONS = 32,
    GUARD_OPERATOR = 48,
    GUARD_LINK_MS = 10 * 60 * 1000,
    GUARD_INVITE_MS = 24 * 60 * 60 * 1000, /* a person's first link, which they are sent */
    GUARD_SESSION_MS = 12 * 60 * 60 * 1000,
    GUARD_IDLE_MS = 60 * 60 * 1000, /* a person who does nothing for so long is signed out */
    GUARD_ARM_MS = 500,             /* a form comes back no sooner than this: nobody reads faster, a trick does */
    GUARD_MARK_TEXT = 80,
    GUARD_COOKIE_TEXT = 2 * ID_TEXT,
    GUARD_SEED_TEXT = ID_TEXT + 1 + GUARD_MARK_TEXT,
    GUARD_SEED_MS = 5 * 60 * 1000,
    GUARD_SEEDS_USED = 64,
    GUARD_BROWSER_DAYS = 180,
    GUARD_FLOW_MS = 10 * 60 * 1000, /* between leaving for a provider and coming back from it */
    GUARD_FLOW_PROOF = 2 * DIGEST_BYTES,
};

/* How somebody signed in. */
enum guard_how { HOW_NONE = 0, HOW_LINK, HOW_PASSWORD, HOW_PASSKEY, HOW_OIDC };
const char *guard_how_name(enum guard_how how);

struct session {
    struct digest cookie; /* SHA-256 of the cookie's text; all zero: a free slot */
    struct digest key;    /* for the marks of its forms */
    uint64_t until_ms;
    char operator[GUARD_OPERATOR]; /* "uid 0", or a person's name */
    enum guard_how how;
    uint64_t since_ms, seen_ms; /* signed in; did something last */
    uint64_t generation;        /* of the person, then; 0 of a user of this machine */
    char code[ID_TEXT + 1];     /* with which they may add a passkey; empty: none */
};

struct guard {
    struct span host; /* of the page's own URL */
    uint16_t port;
    bool secure; /* https: the cookie is for nothing else */
    struct {
        struct digest token;
        uint64_t until_ms; /* 0: free */
        char operator[GUARD_OPERATOR];
    } link[GUARD_LINKS];
    struct session session[GUARD_SESSIONS];
    struct session nobody; /* whose key is under seeds and browsers */
    struct digest used[GUARD_SEEDS_USED];
    size_t nused; /* ever */
};

/* url: "http://localhost:8088" or "https://approve.example", borrowed for good. -1: neither, or http:// and not a
 * name of this machine's loopback (without TLS the page is served nowhere else), or there is no randomness. */
int guard_init(struct guard *g, struct span url) MUSTCHECK;
/* Was this request sent to the page under its own name? Of http:// localhost, 127.0.0.1 and [::1] are one name. */
bool guard_host_ok(const struct guard *g, const struct http_head *h);
/* For requests that change something: Origin must be there and ours, Sec-Fetch-Site, if sent, "same-origin". */
bool guard_origin_ok(const struct guard *g, const struct http_head *h);

/* A link that opens once: its token into text (ID_TEXT + 1). The oldest makes room. */
int guard_link_new(struct guard *g, const char *operator, uint64_t now, char text[ID_TEXT + 1]) MUSTCHECK;
/* The same, good for so long. */
int guard_link_for(struct guard *g, const char *operator, uint64_t now, uint64_t ms,
                   char text[ID_TEXT + 1]) MUSTCHECK;
/* Use it up: whose it is. */
bool guard_link_use(struct guard *g, struct span token, uint64_t now, char operator[GUARD_OPERATOR]);
/* Whose link it is, if it opens; else NULL. Nothing is used up. */
const char *guard_link_of(const struct guard *g, struct span token, uint64_t now);
/* Use it up: a new session and its cookie's text, or NULL (unknown, used or too old). */
const struct session *guard_sign_in(struct guard *g, struct span token, uint64_t now,
                                    char cookie[GUARD_COOKIE_TEXT + 1]) MUSTCHECK;
/* A session of somebody who has shown in another way who they are. */
const struct session *guard_session_new(struct guard *g, const char *operator, enum guard_how how, uint64_t now,
                                        char cookie[GUARD_COOKIE_TEXT + 1]) MUSTCHECK;
/* Of a person: as they are then. */
void guard_session_person(struct guard *g, const struct session *s, uint64_t generation);
/* With this the keeper lets them add a passkey; empty: none. */
void guard_session_code(struct guard *g, const struct session *s, struct span code);
/* They did something just now. */
void guard_session_used(struct guard *g, const struct session *s, uint64_t now);
/* Nobody of this name is signed in any more, and no link of theirs opens. */
void guard_forget(struct guard *g, const char *operator);
/* __Host-: a browser takes it from https alone, for this very host. */
const char *guard_cookie_name(const struct guard *g);
/* The session named by the request's cookie, or NULL. */
const struct session *guard_session(const struct guard *g, const struct http_head *h, uint64_t now);
/* What a sign-in page is for, so that nobody else's can be sent: good for GUARD_SEED_MS and for one sign-in. Nothing
 * is kept of one before that, so that whoever asks for pages without end takes nobody's. */
int guard_seed(const struct guard *g, uint64_t now, char text[GUARD_SEED_TEXT + 1]) MUSTCHECK;
bool guard_seed_good(const struct guard *g, struct span seed, uint64_t now) MUSTCHECK;
/* It is good, and is not from now on. */
bool guard_seed_use(struct guard *g, struct span seed, uint64_t now) MUSTCHECK;
/* A browser in which this person has signed in says so by a cookie: wrong passwords from elsewhere do not slow it
 * down. It opens nothing. */
const char *guard_browser_name(const struct guard *g);
int guard_browser_new(const struct guard *g, struct span person, char text[GUARD_SEED_TEXT + 1]) MUSTCHECK;
/* Which browser of this person's the request comes from, or none. Borrowed. */
struct span guard_browser(const struct guard *g, const struct http_head *h, struct span person);

/* A sign-in that goes by way of a provider. All of it follows from a cookie that this browser alone has (__Host-,
 * which no other host and no other port can set; SameSite=Lax, for it comes back from another site), by a key that
 * never leaves: what came back in another browser, or was begun in another, fits nothing. */
struct guard_flow {
    char text[GUARD_SEED_TEXT + 1]; /* of the cookie */
    bool known;                     /* somebody has signed in so in this browser before */
    char state[GUARD_FLOW_PROOF + 1], nonce[GUARD_FLOW_PROOF + 1], verifier[GUARD_FLOW_PROOF + 1];
};
const char *guard_flow_name(const struct guard *g);
/* One begins, in the browser of h. Nothing is kept of it. */
int guard_flow_new(const struct guard *g, const struct http_head *h, uint64_t now, struct guard_flow *out) MUSTCHECK;
/* The one of this browser, begun within GUARD_FLOW_MS, and with which nobody has signed in yet. */
bool guard_flow_of(const struct guard *g, const struct http_head *h, uint64_t now, struct guard_flow *out) MUSTCHECK;
/* It is good, and is not from now on; known: the cookie in its place, by which the browser is known for
 * GUARD_BROWSER_DAYS. That opens nothing. */
bool guard_flow_use(struct guard *g, const struct guard_flow *f, uint64_t now,
                    char known[GUARD_SEED_TEXT + 1]) MUSTCHECK;
void guard_sign_out(struct guard *g, const struct session *s);

/* The mark of a form: says when it was shown, and is worth nothing in another session, for another purpose,
 * ticket or digest. */
void guard_mark(const struct session *s, const char *purpose, struct span subject, struct span shown, uint64_t now,
                char out[GUARD_MARK_TEXT + 1]);
enum guard_mark { GUARD_FORGED = 0, GUARD_TOO_FAST, GUARD_STALE, GUARD_FINE };
enum guard_mark guard_mark_check(const struct session *s, const char *purpose, struct span subject, struct span shown,
                                 uint64_t now, struct span mark);

#endif
