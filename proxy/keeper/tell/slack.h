/* What Slack sends back when somebody presses a button: is it Slack that says so, and what? The desk takes it in and
 * has it looked at here, for it holds no secret. https://docs.slack.dev/authentication/verifying-requests-from-slack
 */
#ifndef PROXY_KEEPER_TELL_SLACK_H
#define PROXY_KEEPER_TELL_SLACK_H

#include "common/arena.h"
#include "common/err.h"
#include "common/id.h"
#include "proxy/words.h"

enum {
    SLACK_SKEW_S = 300,   /* so old, or so far ahead, may it be */
    SLACK_SEEN_MAX = 256, /* taken in that time; of more none is, for one might be taken twice */
    SLACK_URL_MAX = 512,
    SLACK_KEY_MIN = 16, /* bytes of the signing secret, as it is written */
    SLACK_KEY_MAX = 128
};

/* By which it is known that one comes again. */
struct slack_mark {
    uint64_t stamp; /* 0: free */
    struct digest mac;
};
/* Those that were taken; all zero at first. One that is too old to be taken again has no place. */
struct slack_seen {
    struct slack_mark row[SLACK_SEEN_MAX];
};

/* Is `signature` ("v0=" and the HMAC-SHA-256 in hexadecimal digits over v0:STAMP:BODY) made with key, at a time that
 * is near now_s? -1 with words that hold nothing of it. */
int slack_signed(struct span key, struct span stamp, struct span signature, struct span body, uint64_t now_s,
                 struct slack_mark *out, struct err *e) MUSTCHECK;
/* Remember one that was signed. -1 with words: SLACK_REFUSED in *why, it is there already; SLACK_NOT_NOW, there is no
 * place for it. */
int slack_once(struct slack_seen *seen, const struct slack_mark *mark, uint64_t now_s, enum slack_said *why,
               struct err *e) MUSTCHECK;

struct slack_press {
    bool deny;          /* else it is none of ours, or only opens a page */
    struct span who;    /* TEAM/USER */
    struct span ticket; /* its id, as text */
    struct span answer; /* URL for words about it; of whom it is, is looked at by who uses it */
};
/* A body that was taken: a form of one field, payload, which is JSON. All spans in the arena. -1 with words: it is
 * something else, or no memory. */
int slack_read(struct span body, struct arena *a, struct slack_press *out, struct err *e) MUSTCHECK;

/* Words about it: {"text": ...}, in place of the message for all to see, or beside it for who pressed alone. */
struct dynbuf;
void slack_answer(struct span words, bool replace, struct dynbuf *out);

/* May words go to this URL? Slack's own, or where the messages to it go (notify). */
bool slack_answer_ok(struct span url, struct span notify);

#endif
