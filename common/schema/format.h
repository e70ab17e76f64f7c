/* Formats that can be asserted. Only texts have one. */
#ifndef COMMON_SCHEMA_FORMAT_H
#define COMMON_SCHEMA_FORMAT_H

#include "common/span.h"

enum format {
    FORMAT_NONE = 0,
    FORMAT_DATE_TIME, /* RFC 3339 */
    FORMAT_DATE,
    FORMAT_TIME,
    FORMAT_EMAIL, /* RFC 5321, without comments and folding: local@domain, "local"@domain, local@[address] */
    FORMAT_URI,   /* RFC 3986, with a scheme */
    FORMAT_UUID,
    FORMAT_IPV4,
    FORMAT_IPV6 /* without a zone */
};
#define FORMAT_NAMES "date-time, date, time, email, uri, uuid, ipv4, ipv6"

/* FORMAT_NONE: none of these. */
enum format format_of(struct span name);
bool format_fits(enum format f, struct span text);

#endif
