/* What is asked, by a curl command line or a record, and the answer in words or as JSON. */
#ifndef CLI_POLICY_EXPLAIN_EXPLAIN_H
#define CLI_POLICY_EXPLAIN_EXPLAIN_H

#include "cli/policy/loaded.h"
#include "policy/test/asked.h"

/* A curl command line; one JSON record of the audit. */
int asked_curl(struct asked *q, struct span line, struct err *e) MUSTCHECK;
int asked_record(struct asked *q, struct span text, struct err *e) MUSTCHECK;
/* The words of a shell's command line; *variable: a $NAME is in it, left as it is. Returns how many, or -1. */
int shell_words(struct span line, struct arena *a, struct span *out, size_t max, bool *variable,
                struct err *e) MUSTCHECK;

/* Indented, on stdout. */
void explain_print_span(uint64_t ms);
void explain_print(const struct loaded *l, struct asked *q, const char *indent);
void explain_json(const struct loaded *l, struct asked *q, struct dynbuf *out);

/* The limits of its decision in words. */
void explain_limits_print(const struct policy *p, struct asked *q, const char *indent);
struct jsonw;
void explain_limits_json(const struct policy *p, struct asked *q, struct jsonw *w);

#endif
