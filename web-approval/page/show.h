/* Foreign bytes into HTML. Every function that takes a span of the request may be
 * given anything at all: the outcome is text, never markup, and what would not be
 * seen is. Errors stick in the buffer (dynbuf_ok). */
#ifndef WEB_APPROVAL_PAGE_SHOW_H
#define WEB_APPROVAL_PAGE_SHOW_H

#include "common/text/visible.h"

/* One line: newlines are escaped as well. Also right inside a quoted attribute. */
void show_text(struct dynbuf *out, struct span s);
/* The same, cut after max bytes with a mark that says how much is missing. */
void show_cut(struct dynbuf *out, struct span s, size_t max);
/* Our own text: no visible escapes needed, but HTML all the same. */
void show_own(struct dynbuf *out, const char *s);
/* For a field that is sent back as it is: only what HTML needs is escaped, and nothing is made visible. */
void show_field(struct dynbuf *out, struct span s);
/* A value within a query, as %xx where it is not plain. */
void show_encoded(struct dynbuf *out, struct span s);
/* Lines stay lines. Four and more empty lines, and more than 32 spaces in a row, become a mark that
 * counts them, so that nothing is pushed out of sight. A CR is marked, but before LF: there
 * it is an end of a line as others are. */
void show_body(struct dynbuf *out, struct span s);
/* How many lines end with CR LF; *bare: and with LF alone. */
size_t show_crlf(struct span s, size_t *bare);
/* Offset, 16 bytes in hexadecimal, the same as ASCII. */
void show_hex(struct dynbuf *out, struct span s);
/* s with %xx decoded, for reading. False: decoding changes nothing. */
bool show_decode(struct dynbuf *out, struct span s);
/* JSON text spread over lines, nothing else changed: each token stays exactly as it came. s must be valid JSON. */
void show_spread_json(struct dynbuf *out, struct span s);
/* "1 byte", "812 bytes", "1.4 MiB (1 468 006 bytes)" */
void show_size(struct dynbuf *out, uint64_t n);
/* <time datetime="...">2026-01-02 03:04:05 UTC</time> */
void show_time(struct dynbuf *out, uint64_t unix_ms);
/* "12 s", "4 min", "3 h", "2 days" */
void show_span_of_time(struct dynbuf *out, uint64_t ms);
/* The same of what runs out: of hours the minutes, too. */
void show_time_left(struct dynbuf *out, uint64_t ms);
/* The host; an internationalised name (xn--) gets a warning beside it. */
void show_host(struct dynbuf *out, struct span host);
/* Number, and the noun with its s. */
void show_count(struct dynbuf *out, uint64_t n, const char *noun);

#endif
