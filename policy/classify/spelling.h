/* The spellings of a name or a value that some server takes for the same. What restricts (a floor, a deny, a hold,
 * the except: of an allow, a bound) is tried on all of them, what lets through on what is written. Those of a path
 * are in classify/readings.c, those of a parameter's name in params.h. Pure. */
#ifndef POLICY_CLASSIFY_SPELLING_H
#define POLICY_CLASSIFY_SPELLING_H

#include "common/arena.h"
#include "policy/image/image.h"

/* Is this header field's name that one, or one that a server behind us may take for it? Case is ignored, and what is
 * no letter and no digit is one and the same: CGI and its heirs make '_' of it. */
bool spelling_of_name(struct span name, struct span want);

/* The next character of a text for one that ignores case: some above ASCII are a letter of it to him, as the long s
 * (Unicode's case folding), the sign for kelvin, and the i without a dot and the I with one (their other case). */
uint8_t spelling_letter(struct span s, size_t *at);

/* Other spellings of one value: escapes decoded once and twice more, a '+' that is no blank, blanks trimmed and runs
 * of them made one, the letters above, whole numbers without sign, zeros, point and exponent. */
enum { SPELLINGS_MAX = 12 };
struct spellings {
    struct span v[SPELLINGS_MAX];
    size_t n;
    bool failed; /* no memory: nobody knows */
};
/* value: as it is compared; raw: as it came, when a '+' in it was taken for a blank, else empty. */
void spellings_of(struct span value, struct span raw, struct arena *a, struct spellings *out);

/* Does one of the patterns fit this value in any case, or a literal one of them in another spelling of its own? */
bool spelling_fits(const struct policy *p, struct img_range globs, struct span value, struct arena *a);
/* Of two literals. Without memory they are. */
bool spelling_same(struct span value, struct span want, struct arena *a);

/* "%xx" decoded, and with `plus` a '+' to a blank; what is no escape stays. s itself when there is nothing to decode.
 * -1: no memory. */
int spelling_decode(struct span s, bool plus, struct arena *a, struct span *out) MUSTCHECK;

#endif
