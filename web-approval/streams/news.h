/* What the streams of events are told: what happens within a moment goes to each of them at once, so that a flood of
 * events is not as many writes for all who look at the page. */
#ifndef WEB_APPROVAL_NEWS_H
#define WEB_APPROVAL_NEWS_H

#include "common/dynbuf.h"
#include "common/net/loop.h"

enum { NEWS_MS = 20, NEWS_BYTES = 16 * 1024 };

/* Events as web-approval/events.h writes them, one after the other. */
typedef void news_fn(void *arg, struct span text);

struct news {
    struct timer *timer;
    struct dynbuf told;
    news_fn *tell;
    void *arg;
};

/* -1: no memory. */
int news_init(struct news *n, struct loop *l, news_fn *tell, void *arg) MUSTCHECK;
void news_free(struct news *n);
void news_add(struct news *n, uint64_t seq, struct span kind, struct span subject);
/* Now: what is read anew behind it has it already. */
void news_tell(struct news *n);
/* As many streams as wanted, or half of the descriptors where there are too few beside those of so many others. */
size_t news_streams(size_t wanted, size_t others);

#endif
