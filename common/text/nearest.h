/* Which name may have been meant. */
#ifndef COMMON_TEXT_NEAREST_H
#define COMMON_TEXT_NEAREST_H

#include "common/span.h"

/* Of names, which end with NULL, the one most like the word: one that begins with it, or it with that, or
 * with at most two letters wrong, missing, too many or exchanged, fewer in a short word. NULL: none is like it. */
const char *nearest_name(struct span word, const char *const *names);

#endif
