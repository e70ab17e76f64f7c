/* Byte classes of HTTP, one table lookup each. Inside this room only. */
#ifndef COMMON_HTTP_CHARS_H
#define COMMON_HTTP_CHARS_H

#include "common/span.h"

enum {
    CH_TOKEN = 1,       /* tchar, RFC 9110 section 5.6.2 */
    CH_VALUE = 2,       /* field value: HTAB, SP, VCHAR */
    CH_OBS = 4,         /* obs-text, 0x80 to 0xff */
    CH_TARGET = 8,      /* in a request target; A27 decides, [ and ] are let in */
    CH_UNRESERVED = 16, /* RFC 3986 section 2.3 */
    /* What libraries that follow WHATWG URL do not escape in a path, and in a query; the canonical form does. */
    CH_RAW_PATH = 32,
    CH_RAW_QUERY = 64 /* with those of a path */
};

extern const uint8_t http_chars[256];

static inline bool http_char_is(uint8_t c, unsigned mask)
{
    return (http_chars[c] & mask) != 0;
}

/* Length of the longest prefix whose bytes are all in one of the classes of mask. */
size_t http_run(struct span s, unsigned mask);
/* As http_run for CH_VALUE | more, eight bytes at a time. */
size_t http_value_run(struct span s, unsigned more);
/* 0 to 15, or -1. */
/* ASCII case of name is ignored, and any sign in it counts as '-': CGI and its heirs make '_' of each. lower: letters
 * in lower case, digits and '-'. */
bool http_name_is(struct span name, struct span lower);

#endif
