/* A model that is asked about a held request: what it is told, and what its answer is taken for. Pure. */
#ifndef PROXY_FETCHER_JOB_MODEL_H
#define PROXY_FETCHER_JOB_MODEL_H

#include "proxy/fetcher/job/job.h"
#include "proxy/words.h"

struct arena;
/* The body of the question that f is: settings "api" (MODEL_ANTHROPIC, MODEL_CHAT), "model", "fence" (random), and
 * perhaps "instructions"; its input is what it is about. It is added to out, JSON that the model must answer with one
 * call of one tool. What a sandbox wrote stands between lines with the fence, which it cannot know. -1 with words. */
#define MODEL_ANTHROPIC SPAN("anthropic")
#define MODEL_CHAT      SPAN("chat")
int model_question(const struct wire_fetch *f, struct arena *a, struct dynbuf *out, struct err *e) MUSTCHECK;
/* An answer of status 200: its one call of the tool, exactly with a decision and a reason; anything else is
 * GATE_FAILED and says why in e. *reason: at most VERDICT_WORDS_MAX bytes on one line, cut and made so, with the
 * model's name before it; of one that has the setting "secret" in it nothing is left, for it is looked for before it
 * is cut. Lives in a. */
enum gate_said model_answer(const struct wire_fetch *f, struct span json, struct arena *a, struct span *reason,
                            struct err *e) MUSTCHECK;

#endif
