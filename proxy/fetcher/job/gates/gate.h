/* Gates that a server answers: it is sent a held request, and says what it thinks of it. */
#ifndef PROXY_FETCHER_JOB_GATE_H
#define PROXY_FETCHER_JOB_GATE_H

#include "proxy/fetcher/job/http.h"

/* FETCH_GATE_HOOK: one POST, signed by the keeper; status 200 and what verdict_read takes, or it has said nothing. */
void gate_webhook(const struct job *j, struct http *h) __attribute__((noreturn));
/* FETCH_GATE_MODEL: one question to a model, in the words of model.h. */
void gate_model(const struct job *j, struct http *h) __attribute__((noreturn));

#endif
