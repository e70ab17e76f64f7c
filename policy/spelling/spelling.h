/* The spellings of a name or a value that some server takes for the same. What restricts (a floor, a deny, a hold,
 * the except: of an allow, a bound) is tried on all of them, what lets through on what is written. Those of a path
 * are in readings.c, those of a parameter's name in params.h. Pure. */
#ifndef POLICY_SPELLING_SPELLING_H
#define POLICY_SPELLING_SPELLING_H

#include "common/arena.h"
#include "common/id.h"
#include "policy/image/image.h"

/* Is this header field's name that one, or one that a server behind us may take for it? Case is ignored, and what is
 * no letter and no digit is one and the same: CGI and its heirs make '_' of it. */
bool spelling_of_name(struct span name, struct span want);

/* The value of a field, and how many there are of it; one in another spelling counts twice: not everybody reads it.
 */
struct span spelling_field(const struct request *r, struct span name, size_t *count);
/* In any case. */
static inline bool spelling_ends(struct span s, struct span end)
{
    return s.n >= end.n && span_ieq(span_from(s, s.n - end.n), end);
}

/* Other spellings of one value: escapes decoded once and twice more, a '+' that is no blank, blanks trimmed and runs
 * of them made one, characters that are one of ASCII to some (letters.h), whole numbers without sign, zeros, point,
 * exponent and '_', of another base, and the one that a text begins with. */
enum { SPELLINGS_MAX = 20 };
struct spellings {
    struct span v[SPELLINGS_MAX];
    size_t n;
    bool failed; /* no memory: nobody knows */
};
/* value: as it is compared; raw: as it came, when a '+' in it was taken for a blank, else empty. */
void spellings_of(struct span value, struct span raw, struct arena *a, struct spellings *out);

/* A word for yes or no that parsers of truth values know: true, 1, yes, on, y, t, and their opposites. */
enum truth { TRUTH_NONE = 0, TRUTH_NO, TRUTH_YES };
enum truth spelling_truth(struct span s);
/* Does a pattern ask for a truth value? To what asks for nothing else every value fits but a word for the opposite:
 * servers differ in what else is true, down to any text or none at all. */
enum truth spelling_boolean(struct span want);

/* Blanks trimmed and made one, and characters above ASCII as letters.h has them. s itself when it is so. -1: no
 * memory.
 */
int spelling_tidy(struct span s, struct arena *a, struct span *out) MUSTCHECK;

/* Does one of the patterns fit this value in any case, or a literal one of them in another spelling of its own, or as
 * another word for yes or no? */
bool spelling_fits(const struct policy *p, struct img_range globs, struct span value, struct arena *a);
/* Of two literals. Without memory they are. */
bool spelling_same(struct span value, struct span want, struct arena *a);

/* The byte that an escape here stands for; -1: there is none. at: less than s.n. */
static inline int spelling_escape(struct span s, size_t at)
{
    int hi = s.n - at > 2 && s.p[at] == '%' ? hex_digit(s.p[at + 1]) : -1;
    int lo = hi < 0 ? -1 : hex_digit(s.p[at + 2]);
    return lo < 0 ? -1 : hi * 16 + lo;
}
/* "%xx" decoded, and with `plus` a '+' to a blank; what is no escape stays. s itself when there is nothing to decode.
 * -1: no memory. */
int spelling_decode(struct span s, bool plus, struct arena *a, struct span *out) MUSTCHECK;

#endif
