/* Patterns over names made of segments: "*" inside a segment is any run of its
 * bytes, a segment "**" is any number of segments, none included. Anchored at
 * both ends. Time is at most the product of the lengths; nothing is allocated. */
#ifndef POLICY_IMAGE_GLOB_H
#define POLICY_IMAGE_GLOB_H

#include "common/span.h"

enum { GLOB_CAPTURES = 4 };

struct glob {
    struct span text;
    uint32_t head, tail, literal, deep, after; /* as in img_glob */
};

/* Work out head, tail and literal of a pattern. */
struct glob glob_of(struct span text, uint8_t sep);
/* fold: ASCII case is ignored. */
bool glob_match(const struct glob *g, struct span s, uint8_t sep, bool fold);
/* Certainly every name that fits pattern b fits a? A "*" of b stands for itself, which no pattern but a "*" fits. */
bool glob_covers(struct span a, struct span b, uint8_t sep);
/* What the wildcard segments of a matching s stand for, first to last; a pattern with at most one
 * "**". Wildcards inside a segment capture the segment. Returns how many, at most GLOB_CAPTURES. */
size_t glob_capture(struct span pattern, struct span s, uint8_t sep, struct span out[GLOB_CAPTURES]);
/* One run without separators. */
bool glob_segment(struct span pattern, struct span s, bool fold);

#endif
