/* What went wrong with a request to a model, and what is done next: again, with another model, or no further. */
#ifndef BROKER_MODELS_FAULT_H
#define BROKER_MODELS_FAULT_H

#include "common/json/json.h"

enum {
    FAULT_BODY_MAX = 256 * 1024,       /* bytes of an error's body that are read */
    FAULT_TRIES_MAX = 3,               /* requests to one model for one step */
    FAULT_ALL_TRIES_MAX = 8,           /* requests for one step */
    FAULT_WAIT_MAX_MS = 5 * 60 * 1000, /* the longest wait that is sat out */
    FAULT_SOON_MS = 10 * 1000          /* a longer one is not sat out where another model could answer */
};

enum fault_kind {
    FAULT_NONE = 0,
    FAULT_REQUEST,    /* it would be refused again */
    FAULT_WINDOW,     /* more than the model's context holds: a shorter one may pass */
    FAULT_REFUSED,    /* the key, a permission, or the gateway */
    FAULT_GONE,       /* no such model there */
    FAULT_QUOTA,      /* nothing is left to spend there */
    FAULT_RATE,       /* too many */
    FAULT_OVERLOADED, /* it has too much to do */
    FAULT_SERVER,     /* it failed */
    FAULT_UNREACHED,  /* there was no answer */
    FAULT_CUT,        /* the answer ended before its end */
    FAULT_BROKEN,     /* the answer was not understood */
    FAULT_TOO_LARGE   /* the answer was past a bound of ours */
};
/* Is the model away for whoever asks? What one tenant may not, or has no more of, another one may have. */
bool fault_of_all(enum fault_kind kind);
/* "request", "window", ...; "" for FAULT_NONE */
const char *fault_name(enum fault_kind k);

enum fault_said { SAID_NOTHING = 0, SAID_AGAIN, SAID_FINAL }; /* x-should-retry, which providers' own clients obey */

struct fault {
    enum fault_kind kind;
    enum fault_said said;
    unsigned status;  /* of HTTP; 0: it came in a stream, or without an answer */
    bool waits;       /* it was said how long to wait */
    uint64_t wait_ms; /* so long */
    char code[64];    /* what the provider calls it, or "" */
    char words[256];  /* its words or ours: UTF-8 of whoever wrote them, never for a terminal as they are */
};

/* Of our own. */
void fault_set(struct fault *f, enum fault_kind k, const char *words);
/* Of an answer with a status that is not 200, or whose type is no event stream. Fields that are not there are empty.
 */
struct fault_answer {
    unsigned status;
    struct span body, retry_after, retry_after_ms, should_retry;
};
void fault_of_answer(struct fault *f, const struct fault_answer *a, uint64_t now_ms);
/* Of an error as it stands in a body or in a stream: an object with type, code and message, or a text. */
void fault_of_error(struct fault *f, const struct json *error);
/* retry-after (RFC 9110 section 10.2.3): whole seconds, or a date; retry-after-ms goes before it. False: neither
 * says. */
bool fault_wait(struct span retry_after, struct span retry_after_ms, uint64_t now_ms, uint64_t *wait_ms);

/* Where a step stands that has failed. */
struct fault_place {
    unsigned tries, all_tries; /* of this model, of the step; this one is counted */
    bool shown;                /* something of the answer was given to a reader */
    bool other;                /* there is another model that may be asked */
    uint32_t dice;             /* any number: spreads those who wait alike */
};
enum fault_step { STEP_STOP = 0, STEP_AGAIN, STEP_OTHER };
struct fault_next {
    enum fault_step step;
    uint64_t wait_ms; /* before it; of STEP_STOP: when it may be worth another try, or 0 */
    bool supersedes;  /* what was shown is void: the reader is told so before the next attempt */
};
/* Another model is asked only while nothing was shown: two models are never spliced. */
struct fault_next fault_next(const struct fault *f, const struct fault_place *p);

#endif
