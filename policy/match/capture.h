/* {name} in the path of a rule: a segment that matches like "*", and what it stood for in the rule's words. Pure. */
#ifndef POLICY_MATCH_CAPTURE_H
#define POLICY_MATCH_CAPTURE_H

#include "policy/image/image.h"

enum { CAPTURE_NAME_MAX = 64, CAPTURE_SHOWN_MAX = 100, CAPTURES_SAID_MAX = 8 };

/* Is this segment a name in braces? */
bool capture_segment(struct span segment, struct span *name);
/* The first {word} of a text at or after `from`: *at is its brace, *name the word, of letters, digits and '_'. */
bool capture_next(struct span text, size_t from, size_t *at, struct span *name);

/* Which segment of whatever fits this path is {name}? With a "**" before it, it is counted from the end. */
struct capture_place {
    size_t n;
    bool from_end;
};
enum capture_found { CAPTURE_ABSENT = 0, CAPTURE_UNSURE, CAPTURE_FOUND }; /* UNSURE: between two "**" */
enum capture_found capture_find(struct span path, struct span name, struct capture_place *at);

/* The rule's words for a request of this path: each {name} replaced by what stands there, at most CAPTURE_SHOWN_MAX
 * bytes of it, safe to show. What stands nowhere stays "{name}". In the arena; text itself when nothing is replaced.
 */
struct span capture_fill(const struct policy *p, const struct img_rule *r, struct span path, struct span text,
                         struct arena *a);

#endif
