/* What a command in a sandbox says, as events of an answer that stays open (follow.c). */
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/api/api.h"
#include "web-approval/streams/follow.h"

enum { WHY_MAX = 512 };

static void put_exit(struct dynbuf *event, struct msg_in *m)
{
    static const char *const numbers[] = {"said", "cut", "user_us", "system_us", "memory_kib"};
    unsigned how = msg_get_u8(m);
    struct jsonw w;

    (void)dynbuf_add(event, SPAN("event: exit\ndata: "));
    jsonw_begin(&w, event);
    jsonw_object(&w);
    jsonw_kv(&w, "how", span_str(api_end_word(how)));
    jsonw_kv_u64(&w, how == SB_SIGNALLED ? "signal" : "status", msg_get_u8(m));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        jsonw_kv_u64(&w, numbers[i], msg_get_u64(m));
    jsonw_kv(&w, "why", msg_get_span(m, WHY_MAX));
    jsonw_end_object(&w);
    (void)dynbuf_add(event, SPAN("\n\n"));
}

int api_started_heard(struct frame *f, unsigned *which, struct span *bytes, struct dynbuf *event)
{
    struct msg_in m = msg_in(f->payload);

    if (f->type == M_SB_EXIT) {
        *which = 0;
        put_exit(event, &m);
        return msg_end(&m) == 0 && dynbuf_ok(event) ? 0 : -1;
    }
    *which = msg_get_u8(&m);
    *bytes = m.rest;
    return m.bad || *which < 1 || *which > 2 || m.rest.n == 0 ? -1 : 0;
}

void api_started_output(struct dynbuf *event, unsigned which, struct span bytes)
{
    (void)dynbuf_addf(event, "event: %s\ndata: ", which == 1 ? "stdout" : "stderr");
    uint8_t *room = dynbuf_room(event, 4 * (bytes.n / 3 + 1) + 1);
    if (room)
        dynbuf_grew(event, base64_encode(bytes, (char *)room));
    (void)dynbuf_add(event, SPAN("\n\n"));
}

void api_started_lost(struct dynbuf *event)
{
    (void)dynbuf_add(event, SPAN("event: exit\ndata: {\"how\":\"lost\",\"why\":\"the warden ended\"}\n\n"));
}

void api_started_taken(struct desk *d, uint64_t follow, uint32_t bytes)
{
    struct dynbuf *b = d->warden ? chan_begin(d->warden, M_SB_TAKEN, follow) : NULL;

    if (!b)
        return;
    msg_put_u32(b, bytes);
    (void)chan_commit(d->warden);
}

void api_started_unfollow(struct desk *d, uint64_t follow)
{
    if (d->warden && chan_begin(d->warden, M_SB_KILL, follow))
        (void)chan_commit(d->warden);
}
