/* What a job of FETCH_TELL does: send one message, and say what became of it. */
#ifndef PROXY_FETCHER_JOB_TELL_H
#define PROXY_FETCHER_JOB_TELL_H

#include "proxy/fetcher/job/http.h"

/* Answers: a value that begins with "never: " is of one that must not be told again; no value: it may be. */
void tell(const struct job *j, struct http *h) __attribute__((noreturn));

/* Without TLS; of FETCH_TELL alone, and then every address must be loopback. */
bool tell_is_clear(const struct wire_fetch *f);
/* What a status means: told with any of 200 to 299, never again with 410 (gone), later with the others, redirections
 * among them. */
enum tell_says { TELL_SAYS_LATER = 0, TELL_SAYS_TOLD, TELL_SAYS_NEVER };
enum tell_says tell_status(unsigned status);
/* Pure, for tests: the mail as it is sent, with its header; out is initialised here. No byte of what it is made of
 * begins a line of the header. -1: too long, or no memory. */
int tell_mail(const struct wire_fetch *f, uint64_t now_ms, struct dynbuf *out) MUSTCHECK;

#endif
