/* A pattern as it is run: instructions, whose jumps are relative, so that a piece can be moved and repeated. */
#ifndef COMMON_SCHEMA_PATTERN_IN_H
#define COMMON_SCHEMA_PATTERN_IN_H

#include "common/schema/pattern.h"

enum pattern_op {
    OP_BAD = 0,
    OP_CHAR,  /* the code point x */
    OP_ANY,   /* any but the ends of lines */
    OP_CLASS, /* one in the y ranges from x on; negated: in none */
    OP_FORK,  /* on at x and at y, from here */
    OP_JUMP,  /* on at x, from here */
    OP_BEGIN, /* nothing is before */
    OP_END,   /* nothing follows */
    OP_WORD,  /* a word begins or ends here; negated: not */
    OP_FOUND
};

struct instruction {
    enum pattern_op op;
    bool negated;
    int32_t x, y;
};

struct range {
    uint32_t lo, hi;
};

enum { CODE_POINT_MAX = 0x10ffff };

struct pattern {
    const struct instruction *code;
    const struct range *range;
    size_t n, nranges;
};

/* --- while its text is read --- */

enum { PATTERN_ENDS = CODE_POINT_MAX + 1 };

struct pattern_text {
    struct span in;
    size_t at;
    const char *why; /* the first thing that is wrong */
    unsigned depth;
    size_t n, nranges;
    struct instruction code[PATTERN_SIZE_MAX];
    struct range range[PATTERN_RANGES_MAX];
};

/* False, for `return pattern_refuse(...)`. */
bool pattern_refuse(struct pattern_text *t, const char *why);
/* The code point at hand, or PATTERN_ENDS; pattern_next goes on behind it. */
uint32_t pattern_peek(const struct pattern_text *t);
uint32_t pattern_next(struct pattern_text *t);
/* Is it this one (ASCII)? Then go on behind it. */
bool pattern_take(struct pattern_text *t, uint8_t c);
bool pattern_is_name(uint32_t c);
/* What stands behind [ or \, as one instruction. False: refused. */
bool pattern_class(struct pattern_text *t, struct instruction *i) MUSTCHECK;
bool pattern_escape(struct pattern_text *t, struct instruction *i) MUSTCHECK;

#endif
