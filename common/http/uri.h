/* Names in HTTP and their canonical forms: field classes (RFC 9110 section 7.6.1
 * and the house list), authorities, hosts, paths and queries (RFC 3986). */
#ifndef COMMON_HTTP_URI_H
#define COMMON_HTTP_URI_H

#include "common/http/http.h"

/* In all five, case aside, any sign counts as `-`: some servers read X_Forwarded_For and X.Forwarded.For as
 * X-Forwarded-For. */
bool http_name_same(struct span a, struct span b);
bool http_name_begins(struct span name, struct span lower); /* lower: letters in lower case, digits and '-' */
bool http_is_hop_by_hop(const struct http_head *h, struct span name); /* static list and what Connection names */
bool http_is_framing(struct span name);                               /* Content-Length, Transfer-Encoding, Host */
bool http_is_forwarding(struct span name); /* Via, Forwarded, X-Forwarded-*, X-Original-URL and their like */
bool http_is_token(struct span s);         /* RFC 9110 section 5.6.2 */

/* host or host:port, as in Host and CONNECT. *port is 0 when none was named.
 * -1: no host, userinfo, a port of 0, with a leading zero or above 65535. */
int http_split_authority(struct span authority, struct span *host, uint16_t *port) MUSTCHECK;
/* A host name of letters, digits and '-', inside a label also '_'; or a bracketed IPv6 literal (in the form of RFC
 * 5952), or a dotted quad; lower-cased into dst (HTTP_HOST_MAX + 1 bytes, NUL-terminated), one trailing dot removed.
 * -1: anything else, among them every exotic spelling of an address (a name whose last label is numeric, a zone, an
 * IPv4 address as an IPv6 one) and what only looks like an A-label (common/text/idna.h). */
int http_canonical_host(struct span host, char *dst, size_t *n) MUSTCHECK;
/* RFC 3986: percent-encoded unreserved characters decoded, hex upper-cased; a raw '|' or '^',
 * which libraries that follow WHATWG URL leave, escaped; nothing else changed. It grows to three
 * times its length at most. -1 on encoded control bytes, %2F, %5C, dot segments (also before a
 * `;`), a leading "//", bytes that may not stand in a target, encoded bytes that are not UTF-8,
 * and a broken escape. keep_slash: let %2F pass as it is; it still counts as a separator when
 * dot segments are looked for. On -1 out may hold a part. */
int http_canonical_path(struct span path, bool keep_slash, struct dynbuf *out) MUSTCHECK;
/* As above for a query, where a raw brace, backslash or '`' is escaped as well, and only %00, a
 * broken escape and bytes that may not stand in a target are refused. */
int http_canonical_query(struct span query, struct dynbuf *out) MUSTCHECK;

#endif
