#include "sandbox-shim/checkpoint/order.h"

void order_put(struct dynbuf *b, const struct order *o)
{
    msg_put_u8(b, (uint8_t)o->what);
    msg_put_span(b, o->tenant);
    msg_put_span(b, o->owner);
    msg_put_span(b, o->name);
    msg_put_span(b, o->which);
    msg_put_span(b, o->sandbox);
    msg_put_span(b, o->reach);
    msg_put_u64(b, o->generation);
    msg_put_u64(b, o->disk);
}

int order_get(struct span payload, struct order *o)
{
    struct msg_in m = msg_in(payload);

    o->what = (enum order_what)msg_get_u8(&m);
    o->tenant = msg_get_span(&m, FORM_OWNER_MAX);
    o->owner = msg_get_span(&m, FORM_OWNER_MAX);
    o->name = msg_get_span(&m, FORM_NAME_MAX);
    o->which = msg_get_span(&m, FORM_NAME_MAX);
    o->sandbox = msg_get_span(&m, FORM_NAME_MAX);
    o->reach = msg_get_span(&m, FORM_REACH_MAX);
    o->generation = msg_get_u64(&m);
    o->disk = msg_get_u64(&m);
    return msg_end(&m) == 0 && o->what > ORDER_NONE && o->what < ORDERS && o->tenant.n > 0 && form_is_called(o->name)
               ? 0
               : -1;
}
