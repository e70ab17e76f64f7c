/* Whether anybody runs turns (health.c). */
#ifndef BROKER_SERVE_HEALTH_H
#define BROKER_SERVE_HEALTH_H

#include "broker/serve/serve.h"

enum { HEALTH_WORDS = 320 };

/* Turns wait, and nobody runs one. */
bool health_nobody(const struct bstore_waiting *w);
/* In words, if it is so; workers: so many run turns at this gateway. */
bool health_words(const struct bstore_waiting *w, uint64_t workers, char text[HEALTH_WORDS]) MUSTCHECK;
/* As often as the heart beats: is it so, and still? The log is told once, the desk each time. */
void health_look(struct serve *s, struct bstore *store);

#endif
