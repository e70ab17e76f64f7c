/* Messages to people outside the page, for the ledger. The keeper alone says where one of this name is and what signs
 * for it, by the configuration that it has from the parent: who writes the messages cannot have them sent to a place
 * of its choice, and who carries them out never has the key that signs. */
#ifndef PROXY_KEEPER_TELL_TELL_H
#define PROXY_KEEPER_TELL_TELL_H

#include "proxy/fetcher/wire_fetch.h"
#include "proxy/keeper/keeper.h"
#include "proxy/tell/wire_tell.h"

/* Numbers of questions to the fetcher that are about a message, the keeper's own. */
#define TELL_FETCH (UINT64_C(1) << 61)
enum { TELL_KEY_MIN = 24, TELL_KEY_MAX = 64 /* bytes of a key, as Standard Webhooks has it */ };

/* M_TELL_PLACE of the parent. */
void keeper_tell_place(struct keeper *k, struct frame *f);
/* M_TELL of the ledger. */
void keeper_tell(struct keeper *k, struct frame *f);
/* M_FETCHED of a question with TELL_FETCH. */
void keeper_tell_fetched(struct keeper *k, struct frame *f);
/* Nobody answers what was asked so far. */
void keeper_tells_lost(struct keeper *k);
/* Who asked has gone. */
void keeper_tells_forget(void);

/* Who is told by this name, or NULL: with this digest of what the configuration says of it, or by whatever (NULL). */
const struct wire_tell_place *keeper_tell_place_of(struct span name, const struct digest *of);
/* Have the fetcher go to this URL as the configuration says of p. -1 with words that hold nothing of it. */
int keeper_tell_to(struct wire_fetch *ask, const struct wire_tell_place *p, struct span url, struct err *e) MUSTCHECK;
void keeper_tell_put(struct wire_fetch *ask, const char *key, struct span value);

/* button.c: what comes back from Slack, by way of the desk (slack.h). Its words go to where Slack said, once: neither
 * the desk nor the fetcher chooses that. M_SLACK and M_SLACK_ANSWER of the desk; M_FETCHED of a question with
 * SLACK_FETCH; nobody answers those any more. */
#define SLACK_FETCH (UINT64_C(1) << 59)
void keeper_slack(struct keeper *k, struct frame *f);
void keeper_slack_answer(struct keeper *k, struct frame *f);
void keeper_slack_fetched(struct keeper *k, struct frame *f);
void keeper_slack_lost(void);

/* sign.c: "v1,BASE64" of the HMAC-SHA-256 over ID.SECONDS.BODY, by a secret written whsec_BASE64; appended. -1 with
 * words: it is not written so, its key is too short or too long, or no memory. */
int tell_sign(struct span secret, struct span id, uint64_t seconds, struct span body, struct dynbuf *out,
              struct err *e) MUSTCHECK;

#endif
