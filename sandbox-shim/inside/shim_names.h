/* Names inside a captured sandbox (RFC 1035): every host has the address 198.18.0.1, any other type has nothing. What
 * is asked never leaves. The same answers as the gateway's own (proxy/resolver/answer.h), in libc only. */
#ifndef SANDBOX_SHIM_INSIDE_NAMES_H
#define SANDBOX_SHIM_INSIDE_NAMES_H

#include <stddef.h>
#include <stdint.h>

enum { NAMES_ASK_MAX = 4096, NAMES_ANSWER_MAX = 300 };

/* Its length; 0 for silence. */
size_t names_answer(const uint8_t *query, size_t n, uint8_t out[NAMES_ANSWER_MAX]);

#endif
