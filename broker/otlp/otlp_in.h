/* Shared by the files of this room. */
#ifndef BROKER_OTLP_OTLP_IN_H
#define BROKER_OTLP_OTLP_IN_H

#include "broker/otlp/names.h"
#include "broker/otlp/otlp.h"
#include "common/json/json.h"

#define OTLP_SELF SPAN("countersign")

/* As much of a name that somebody else chose as is written, with what would hide or reorder shown as what it is. */
struct span otlp_shown(struct span s, char text[OTLP_TEXT_MAX + 1]);
/* Attributes; a text that is empty is none. */
void otlp_put_text(struct jsonw *w, enum otlp_name name, struct span s);
void otlp_put_true(struct jsonw *w, enum otlp_name name);
void otlp_put_time(struct jsonw *w, const char *key, uint64_t ms);
/* A request's body, open at its values, and closed behind them. */
void otlp_begin(struct jsonw *w, const struct otlp_who *who, const char *all, const char *each, const char *values);
void otlp_end(struct jsonw *w);

#endif
