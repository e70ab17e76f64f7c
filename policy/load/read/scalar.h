/* Single values: what a plain word means, and small grammars. Pure. */
#ifndef POLICY_LOAD_READ_SCALAR_H
#define POLICY_LOAD_READ_SCALAR_H

#include "common/span.h"

/* What YAML 1.1 or 1.2 would take a plain word for other than text ("a boolean"), or NULL. */
const char *scalar_surprise(struct span s);
/* Each gives NULL and *v, or why not, as the end of a sentence that begins with the key. */
const char *scalar_bool(struct span s, bool plain, uint64_t *v);
const char *scalar_time(struct span s, uint64_t *ms);
const char *scalar_size(struct span s, uint64_t *bytes);
/* 15 or 0.075 to millionths, digit by digit: nothing is rounded. At most `most` of them. */
const char *scalar_money(struct span s, uint64_t most, uint64_t *millionths);
const char *scalar_rate(struct span s, uint64_t *count, uint64_t *ms); /* 20/1d */

bool scalar_is_name(struct span s);   /* letters, digits, . _ - ; 1 to 64 */
bool scalar_is_word(struct span s);   /* an HTTP token */
bool scalar_is_method(struct span s); /* upper-case */
/* Each NULL, or why not, as the end of a sentence that begins with the value. */
const char *scalar_host(struct span s, bool wildcards);
const char *scalar_path(struct span s); /* "/a/x/" and wildcards */
const char *scalar_glob(struct span s, uint8_t sep);
const char *scalar_pointer(struct span s); /* RFC 6901, of something in the body */
const char *scalar_ip(struct span s);
const char *scalar_cidr(struct span s);
/* "sha256/" and base64, as curl and browsers write pins. */
enum { SCALAR_PIN_BYTES = 32 };
const char *scalar_pin(struct span s, uint8_t raw[SCALAR_PIN_BYTES]);

#endif
