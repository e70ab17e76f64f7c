/* UTF-8 exactly as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF. */
#ifndef COMMON_TEXT_UTF8_H
#define COMMON_TEXT_UTF8_H

#include "common/span.h"

/* Bytes of the character that s begins with (1 to 4), or 0 if it begins with none. */
size_t utf8_char(struct span s);
/* Length of the longest prefix that is whole characters; s.n when all of it is. */
size_t utf8_run(struct span s);
/* The code point of the character that s begins with, of n bytes as utf8_char says. */
uint32_t utf8_code(struct span s, size_t n);
/* The bytes of a character (no surrogate, at most U+10FFFF); how many they are. */
size_t utf8_put(uint32_t c, uint8_t to[4]);

#endif
