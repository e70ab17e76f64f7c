#include "policy/pattern.h"

#include "policy/image/glob.h"

bool policy_pattern_fits(struct span pattern, struct span s, uint8_t sep)
{
    struct glob g = glob_of(pattern, sep);
    return glob_match(&g, s, sep, false);
}
