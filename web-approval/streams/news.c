#include "web-approval/streams/news.h"

#include <sys/resource.h>

#include "common/log.h"
#include "web-approval/events.h"

enum { EVENT_MAX = 4096, OTHER_FILES = 256 };

static void due(void *arg)
{
    news_tell(arg);
}

int news_init(struct news *n, struct loop *l, news_fn *tell, void *arg)
{
    *n = (struct news){.tell = tell, .arg = arg, .timer = timer_new(l, due, n)};
    dynbuf_init(&n->told, NEWS_BYTES);
    return n->timer ? 0 : -1;
}

void news_free(struct news *n)
{
    timer_free(&n->timer);
    dynbuf_free(&n->told);
}

void news_add(struct news *n, uint64_t seq, struct span kind, struct span subject)
{
    struct dynbuf text;

    dynbuf_init(&text, EVENT_MAX);
    events_write(&text, seq, kind, subject);
    if (n->told.n + text.n > NEWS_BYTES)
        news_tell(n);
    if (n->told.n == 0)
        timer_set(n->timer, NEWS_MS);
    if (dynbuf_ok(&text) && dynbuf_add(&n->told, dynbuf_span(&text)) != 0)
        log_warn("no memory for what the page is to be told");
    dynbuf_free(&text);
}

void news_tell(struct news *n)
{
    timer_clear(n->timer);
    if (n->told.n > 0)
        n->tell(n->arg, dynbuf_span(&n->told));
    dynbuf_free(&n->told);
}

size_t news_streams(size_t wanted, size_t others)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted + others + OTHER_FILES)
        return wanted;
    return files.rlim_cur / 2;
}
