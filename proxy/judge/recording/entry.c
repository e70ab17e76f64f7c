#include "proxy/judge/recording/entry.h"

void entry_put(struct dynbuf *b, const struct entry *e)
{
    msg_put_u8(b, (uint8_t)e->kind);
    msg_put_u64(b, e->now);
    msg_put_u64(b, e->wall);
    msg_put_u64(b, e->clock);
    msg_put_u8(b, (uint8_t)e->role);
    msg_put_u64(b, e->instance);
    msg_put_u64(b, e->id);
    msg_put_u16(b, e->type);
    msg_put_span(b, e->payload);
    msg_put_u8(b, e->has_body);
    msg_put_span(b, e->body);
}

int entry_get(struct msg_in *m, struct entry *e)
{
    uint8_t kind = msg_get_u8(m);
    *e = (struct entry){.kind = (enum entry_kind)kind, .now = msg_get_u64(m)};
    e->wall = msg_get_u64(m);
    e->clock = msg_get_u64(m);
    e->role = (enum role_id)msg_get_u8(m);
    e->instance = msg_get_u64(m);
    e->id = msg_get_u64(m);
    e->type = msg_get_u16(m);
    e->payload = msg_get_span(m, UINT32_MAX);
    e->has_body = msg_get_bool(m);
    e->body = msg_get_span(m, UINT32_MAX);
    return m->bad || kind < ENTRY_START || kind > ENTRY_TICK || e->role >= ROLE_COUNT ? -1 : 0;
}
