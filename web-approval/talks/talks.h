/* Conversations on the page. What is asked goes to the broker's serving process as HTTP, over a stream of its own
 * that the desk sends there with the tenant and the operator's name (M_BROKER_TALK). What comes back is parsed as
 * JSON, bounded, and is foreign: page/show.h is the only way from it into HTML.
 *
 *   asking.c      the questions: how many at once, how long they may take (in the program: it needs the loop)
 *   page_talks.c  the list · page_talk.c one conversation, and the forms · page_said.c what was said in it
 *   page_files.c  what is in its workspace, and one file of it */
#ifndef WEB_APPROVAL_TALKS_TALKS_H
#define WEB_APPROVAL_TALKS_TALKS_H

#include "web-approval/glance/glance.h"
#include "web-approval/page/page.h"

struct chan;

/* Whose conversations are here: operators have no tenants, so those of the gateway's own, and no other's. */
#define TALKS_TENANT "default"

enum {
    TALKS_ASKS = 32,      /* questions at once */
    TALKS_ASKS_EACH = 8,  /* of one operator */
    TALKS_WAITS = 16,     /* pages that wait for news: each holds a client of the server (server.h) */
    TALKS_WAITS_EACH = 4, /* of one operator */
    TALKS_MS = 8 * 1000,
    TALKS_WAIT_MS = 25 * 1000,
    TALKS_MESSAGE_MAX = 6000, /* characters of what is said here: form-encoded they fit into a request */
    TALKS_NAME = ID_TEXT + 2,
    TALKS_HERE = 20, /* of what waits in it, at once */
};

/* status 0: nothing came; body: of the answer, in x's arena. */
typedef void talks_fn(struct exchange *x, unsigned status, struct span body);
struct talks_ask {
    const char *method;
    struct span target;
    struct span json, once; /* the body and its Idempotency-Key; p NULL: none */
    bool news;              /* it is a stream: fn is called with its first event, or when there was none for long */
};
/* Ask for x's operator; fn is called later, never before this has returned. False: it cannot be asked now, and *why
 * says so in words. Set by asking.c, when there is a broker; tests set their own. */
extern bool (*talks_asks)(struct exchange *x, const struct talks_ask *q, talks_fn *fn, const char **why);
/* The same; what cannot be asked is answered, 503. */
void talks_begin(struct exchange *x, const struct talks_ask *q, talks_fn *fn);
/* Was it answered with `want`? Else x is answered with a page that says why not. */
bool talks_came(struct exchange *x, unsigned status, unsigned want, struct span body) MUSTCHECK;

/* Time has passed. Set as talks_asks is; NULL: nothing is asked. */
extern void (*talks_due)(struct desk *d, uint64_t now_ms);
/* asking.c: the channel to the broker's serving process; NULL: it has gone. */
void talks_peer(struct desk *d, struct chan *c);

/* --- what is shown of one --- */
struct talk {
    struct glance_walk walk; /* of what waits: first, for x->step is both */
    struct ticket here[TALKS_HERE];
    const struct ticket *first[TALKS_HERE];
    size_t waiting; /* of all; unread: the store could not be, and why */
    bool unread;
    struct err why;
    const char *id;         /* as x->arg had it, checked */
    const struct json *now; /* as GET /conversations/ID of the broker has it */
    char box[TALKS_NAME + 1];
    bool part;                        /* without its files: they are not asked for each time */
    bool started, idle, listed, more; /* its sandbox; whether its files could be listed, and all */
    struct span files;                /* what the sandbox said of them */
};
/* What was said, what is being said, and what waits to be. */
void talk_said(struct exchange *x, const struct talk *t);
/* By its id: the name of its sandbox, and whether that is there and is its own. */
int talk_sandbox(struct exchange *x, struct talk *t, struct err *e) MUSTCHECK;
/* A section of its files; and the question for them: x->transfer is set when they are asked for. */
void talk_files(struct exchange *x, const struct talk *t);
void talk_files_ask(struct exchange *x, struct talk *t, void (*done)(struct exchange *x));
/* A text, cut after max bytes with words; all: how long it was, 0: as long as it is. */
void talk_text(struct exchange *x, struct span text, uint64_t all, size_t max);

/* Nothing but blanks and line ends. */
static inline bool talk_is_blank(struct span s)
{
    while (s.n > 0 && (s.p[0] == ' ' || (s.p[0] >= '\t' && s.p[0] <= '\r')))
        s = span_from(s, 1);
    return s.n == 0;
}

void page_talks(struct exchange *x);
void page_talk(struct exchange *x);
void page_talk_say(struct exchange *x);
void page_talk_cancel(struct exchange *x);
void page_talk_news(struct exchange *x);
void page_talk_file(struct exchange *x);

#endif
