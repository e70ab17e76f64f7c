/* Characters above ASCII that some server takes for one of ASCII: by width and font (Unicode's NFKC, which user
 * names, identifiers and "best fit" code pages go through), by accent and case (collations of databases), as a digit
 * of another script (\d and int() of several languages), or because their bytes are more than they need. Pure. */
#ifndef POLICY_SPELLING_LETTERS_H
#define POLICY_SPELLING_LETTERS_H

#include "common/span.h"

/* The next character of a text for one that ignores case, and all of the above: of ASCII, a letter in lower case. 0
 * for what is nothing to such a server (accents that stand by themselves, joiners, a soft hyphen) and for a NUL. What
 * is no character of ASCII to anybody comes byte by byte, 0x80 and more. *at: where it begins, then where the next
 * does. */
uint8_t letter_next(struct span s, size_t *at);
/* Are these one name to it? */
bool letters_same(struct span a, struct span b);

#endif
