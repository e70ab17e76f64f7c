/* A-labels (RFC 5890 section 2.3.2.1), the ASCII form in which names of other scripts travel. Pure and without
 * tables of a library: names written by people are converted by the policy's loader with libidn2; what arrives on the
 * wire is only checked here. Accepts one label of LDH bytes in any case, without dots. Bootstring: RFC 3492. */
#ifndef COMMON_TEXT_IDNA_H
#define COMMON_TEXT_IDNA_H

#include "common/dynbuf.h"

/* Does it begin with "xn--"? */
bool idna_is_alabel(struct span label);
/* Is it one that IDNA2008 can have made: decodes, to at least one character that is not ASCII, none of them a
 * compatibility form, a symbol or invisible, and encodes back to the same bytes? Narrower than RFC 5892 in that
 * joiners are refused wherever they stand; wider in that only its large ranges are known here. */
bool idna_alabel_ok(struct span label);
/* A host, of labels with dots between them, spelled for a person: of each good A-label the characters that it stands
 * for, those that are not ASCII as \u{430}; all else as it is. */
void idna_spell(struct dynbuf *out, struct span host);

#endif
