/* A conversation that is longer than a model's window goes on with its newest messages, whole, and with what another
 * model has made of those before them: which these are, and how they are told. What a message has is quoted line by
 * line, so that nothing in it looks like a word of ours. */
#ifndef BROKER_MODELS_SHORTEN_H
#define BROKER_MODELS_SHORTEN_H

#include "broker/models/message.h"
#include "common/arena.h"
#include "common/dynbuf.h"

enum { SHORTEN_LEAST = 4096 }; /* bytes: with less than that nothing is told */

/* So many of the first messages are older than the newest ones, which have at most `keep` bytes together, or are the
 * fewest that stand alone; no call is cut from its result. 0: none is, or all have room. */
size_t shorten_cut(const struct message *m, const size_t *bytes, size_t n, size_t keep);
/* Tell of as many of the first messages (person: each of a person) as have room in `most` bytes (SHORTEN_LEAST at
 * least), at least of one with its results; long texts of it are cut, and say so. Returns how many: no call is cut
 * from its result. */
size_t shorten_tell(struct dynbuf *b, const struct message *m, const bool *person, size_t n, size_t most);
/* Each line of a text behind "> ". */
void shorten_quote(struct dynbuf *b, struct span text);
/* Of a text of more than `most` bytes only its beginning and its end, with what is left out said between them;
 * quoted, but for that. */
void shorten_quote_ends(struct dynbuf *b, struct span text, size_t most);
/* The same, as it is. p NULL: no memory. */
struct span shorten_ends(struct arena *a, struct span text, size_t most) MUSTCHECK;

#endif
