/* Which model answers: by what is to be done, how long it is, what it costs, who is there, and who may see it. A
 * function of a table and a question; conf/models.yaml is read into the table by table.h. */
#ifndef BROKER_MODELS_ROUTE_ROUTE_H
#define BROKER_MODELS_ROUTE_ROUTE_H

#include "broker/models/route/meter.h"

enum { ROUTE_MODELS_MAX = 64, ROUTE_TASKS_MAX = 32 };

struct route_model {
    struct model_target target;
    uint64_t context; /* tokens, question and answer together */
    uint64_t output;  /* tokens of an answer, at most */
    struct model_price price;
    struct span lease; /* the credential of which the broker shows a lease; empty: it shows nothing */
};

struct route_task {
    struct span name; /* "code", "summary" ... */
    const uint8_t *model;
    size_t n;      /* of the table, the preferred one first */
    bool by_price; /* rather the cheapest, and by their order only where the price is the same */
};

struct route_table {
    const struct route_model *model;
    size_t n; /* at most ROUTE_MODELS_MAX */
    const struct route_task *task;
    size_t ntasks;
};

struct route_ask {
    struct span task;
    const struct model_privacy *privacy;
    uint64_t input, output; /* tokens: about how many go there, how many may come back */
    bool roomy;             /* only one that has an eighth of its window left for its answer, or all that it may be */
    uint64_t limit, spent;  /* millionths; limit UINT64_MAX: none */
    uint64_t tried;         /* a bit for each model that this step is not to ask again */
    const uint64_t *down;   /* for each model until when (ms) it is not to be asked; NULL: all are there */
    uint64_t now_ms;
};

enum route_why {
    ROUTE_NO_TASK = 0, /* the table has no such task, or no model for it */
    ROUTE_FOUND,
    ROUTE_PRIVATE, /* the conversation is private, and none of its models is among those of the task */
    ROUTE_TOO_LONG,
    ROUTE_DEAR, /* the budget does not allow any of them */
    ROUTE_TRIED,
    ROUTE_DOWN /* until until_ms */
};

struct route_found {
    enum route_why why; /* of ROUTE_FOUND: all the rest; else why the last one that could be asked was not */
    size_t model;
    uint64_t max_tokens; /* of its answer */
    uint64_t most;       /* millionths that it may come to */
    uint64_t input;      /* tokens of the question, as asked for */
    bool other;          /* were it to fail, there is another */
    uint64_t until_ms;
};

struct route_found route_pick(const struct route_table *t, const struct route_ask *ask);
/* The largest window of those of the task that may see the conversation; 0: there is none. */
uint64_t route_window(const struct route_table *t, const struct route_ask *ask);
/* For a person, a whole sentence. */
const char *route_words(enum route_why why);

#endif
