#include "proxy/ledger/heard.h"

#include <fcntl.h>

void heard_init(struct heard *h)
{
    outbox_init(&h->box[0]);
    outbox_init(&h->box[1]);
}

void heard_free(struct heard *h)
{
    outbox_free(&h->box[0]);
    outbox_free(&h->box[1]);
}

void heard_news(struct heard *h)
{
    h->news = true;
}

int heard_keeps(struct heard *h, uint16_t type, uint64_t id, struct span payload, int fd)
{
    if (!h->asked && !h->news)
        return 0;
    int own = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd >= 0 && own < 0)
        return -1;
    return outbox_put(&h->box[h->asked ? 1 - h->at : h->at], TO_DESK, type, id, payload, own, NULL) == 0 ? 1 : -1;
}

bool heard_asks(struct heard *h)
{
    if (h->asked)
        return false;
    h->asked = h->news && h->box[h->at].n > 0;
    h->news = false;
    h->number += h->asked;
    return h->asked;
}

int heard_answer(struct heard *h, uint64_t number, outbox_send_fn *send, void *arg)
{
    if (number == 0 || number > h->number)
        return -1;
    if (!h->asked || number < h->number)
        return 0; /* released meanwhile */
    h->asked = false;
    outbox_flush(&h->box[h->at], true, send, arg);
    h->at = 1 - h->at;
    if (!h->news)
        outbox_flush(&h->box[h->at], true, send, arg); /* they only waited for their turn */
    return 0;
}

void heard_release(struct heard *h, outbox_send_fn *send, void *arg)
{
    h->asked = h->news = false;
    outbox_flush(&h->box[h->at], true, send, arg);
    outbox_flush(&h->box[1 - h->at], true, send, arg);
}
