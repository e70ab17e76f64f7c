/* Patterns of schemas: ECMAScript's regular expressions with the flag u, found anywhere in a text unless ^ and $ say
 * where, in a time linear in the text: all ways to match are followed at once, a code point at a time.
 *
 * Taken: characters and their escapes, . and classes with \d \D \s \S \w \W, groups (whose names may stand twice),
 * alternatives, * + ? {n,m} also lazy, ^ $ \b \B. Refused: looking ahead and behind, references to groups (no linear
 * time), \p{...} (no tables of Unicode here), and what is no pattern with the flag u. */
#ifndef COMMON_SCHEMA_PATTERN_H
#define COMMON_SCHEMA_PATTERN_H

#include "common/arena.h"

enum {
    PATTERN_TEXT_MAX = 1024, /* bytes of one */
    PATTERN_SIZE_MAX = 4096, /* instructions of one, with what {n,m} repeats */
    PATTERN_RANGES_MAX = 1024,
    PATTERN_DEPTH_MAX = 32 /* groups in groups */
};

struct pattern;

/* In the arena; NULL with *why, our own words, which begin a sentence's end: "it looks ahead or behind, ...". */
const struct pattern *pattern_compile(struct span text, struct arena *a, const char **why) MUSTCHECK;
/* Its instructions: a search takes at most so many steps for each code point. */
size_t pattern_size(const struct pattern *p);

/* Room for searches with patterns of at most `size` instructions; from an arena, which frees it. */
struct pattern_room;
struct pattern_room *pattern_room_new(struct arena *a, size_t size) MUSTCHECK;

/* text: UTF-8. 1 found, 0 not, -1 when *steps were used up. *steps are what is left. */
int pattern_find(const struct pattern *p, struct span text, struct pattern_room *room, uint64_t *steps) MUSTCHECK;

#endif
