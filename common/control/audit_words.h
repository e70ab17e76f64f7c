/* An audit record in words, for people. The record is what the ledger wrote; texts in it come from agents and
 * upstreams and must be printed with print_text. */
#ifndef COMMON_CONTROL_AUDIT_WORDS_H
#define COMMON_CONTROL_AUDIT_WORDS_H

#include "common/json/json.h"

/* Does it tell what happened, or only how (a sandbox that comes or goes, the marks before and while a write is sent)?
 */
bool audit_is_news(const struct json *record);
/* What happened: "push held: ticket ny5v9j8y3k", "denied: no rule allows it". Never empty. */
void audit_words(const struct json *record, struct dynbuf *out);
/* Why, of what was refused or not sent: "by rule no-push (p.yaml:7)", "no rule allows it". Its code, when that has no
 * better words. Never its cause, which may tell what a rule asks for: who asked may read this. */
void audit_why(const struct json *record, struct dynbuf *out);
/* To what: "POST api.example.com/v1/things", at most 100 bytes, or nothing. */
void audit_target(const struct json *record, struct dynbuf *out);

#endif
