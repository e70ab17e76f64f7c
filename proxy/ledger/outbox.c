#include "proxy/ledger/outbox.h"

#include <unistd.h>

void outbox_init(struct outbox *o)
{
    o->n = 0;
    dynbuf_init(&o->bytes, OUTBOX_BYTES);
}

static void forget(struct outbox *o)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->entry[i].fd >= 0)
            close(o->entry[i].fd);
    o->n = 0;
    if (o->bytes.cap > OUTBOX_FULL || o->bytes.failed)
        dynbuf_free(&o->bytes);
    else
        dynbuf_reset(&o->bytes);
}

void outbox_free(struct outbox *o)
{
    forget(o);
    dynbuf_free(&o->bytes);
}

int outbox_put(struct outbox *o, enum outbox_to to, uint16_t type, uint64_t id, struct span ok, int fd,
               const struct span *fail)
{
    size_t nfail = fail ? fail->n : 0;
    bool room =
        o->n < 2 * OUTBOX_REPLIES && ok.n <= o->bytes.max - o->bytes.n && nfail <= o->bytes.max - o->bytes.n - ok.n;
    uint8_t *at = room ? dynbuf_room(&o->bytes, ok.n + nfail + 1) : NULL;
    if (at == NULL) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    struct outbox_entry *e = &o->entry[o->n++];
    *e = (struct outbox_entry){.to = to,
                               .type = type,
                               .id = id,
                               .ok = o->bytes.n,
                               .nok = ok.n,
                               .fail = o->bytes.n + ok.n,
                               .nfail = nfail,
                               .has_fail = fail != NULL,
                               .fd = fd};
    if (ok.n)
        memcpy(at, ok.p, ok.n);
    if (nfail)
        memcpy(at + ok.n, fail->p, nfail);
    dynbuf_grew(&o->bytes, ok.n + nfail);
    return 0;
}

bool outbox_full(const struct outbox *o)
{
    return o->n >= OUTBOX_REPLIES || o->bytes.n >= OUTBOX_FULL;
}

void outbox_flush(struct outbox *o, bool committed, outbox_send_fn *send, void *arg)
{
    for (size_t i = 0; i < o->n; i++) {
        const struct outbox_entry *e = &o->entry[i];
        if (committed)
            send(arg, e->to, e->type, e->id, span_of(o->bytes.p + e->ok, e->nok), e->fd);
        else if (e->has_fail)
            send(arg, e->to, e->type, e->id, span_of(o->bytes.p + e->fail, e->nfail), -1);
    }
    forget(o);
}
