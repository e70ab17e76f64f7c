/* Showing bytes that somebody hostile chose: what may stand as it is, and the
 * visible escape of everything else (control and format characters, direction
 * overrides, zero-width and combining marks, odd spaces, tags, private use, what
 * is not UTF-8). Used wherever foreign text meets a person: page and terminal. */
#ifndef COMMON_TEXT_VISIBLE_H
#define COMMON_TEXT_VISIBLE_H

#include "common/dynbuf.h"

enum { VISIBLE_ESCAPE_MAX = 16 };

enum visible_kind {
    VISIBLE_ESCAPED = 0, /* would hide, reorder, overprint or is nothing: show the escape */
    VISIBLE_ASCII,       /* 0x20 to 0x7e */
    VISIBLE_OTHER,       /* printable, but not ASCII: may look like another letter */
    VISIBLE_NEWLINE,     /* LF; the escape is there too */
};

/* The character at the start of s (s.n > 0): its kind, its length in *n, and
 * what to show for it when it is escaped: \n \t \r, \u{202e}, or \x{ff} for a byte
 * that is not UTF-8. `escape` is NUL-terminated. */
enum visible_kind visible_char(struct span s, size_t *n, char escape[VISIBLE_ESCAPE_MAX]);

/* Append s as text for a terminal: escapes in place of what is not shown as it is.
 * lines: LF stays LF. */
void visible_text(struct dynbuf *out, struct span s, bool lines);

/* How many characters of s are escaped (LF aside), and how many are not ASCII. */
struct visible_count {
    size_t escaped, other, lines;
};
struct visible_count visible_count(struct span s);

/* Is it text: UTF-8 with few control characters? One cut in two at its end is no reason to call it bytes. */
bool visible_is_text(struct span s);

#endif
