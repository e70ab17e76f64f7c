#include "proxy/judge/tickets/client.h"

#include "proxy/judge/post.h"

static void say(struct judge *j, const struct id *ticket, bool waits, uint64_t ms, uint64_t xid)
{
    struct dynbuf *b = post_begin(j, ROLE_LEDGER, 0, M_TICKET_CLIENT, xid);
    msg_put_id(b, ticket);
    msg_put_u8(b, waits);
    msg_put_u64(b, ms);
    post_send(j, "who waits for a ticket could not be given to the ledger");
}

static bool somebody_waits(struct judge *j, const struct id *ticket)
{
    for (size_t i = 0; i < XID_BUCKETS; i++)
        for (struct exchange *x = j->by_xid[i]; x != NULL; x = x->next_xid)
            if (x->waits && id_eq(&x->ticket.ticket, ticket))
                return true;
    return false;
}

void ticket_client_waits(struct exchange *x, uint64_t ms)
{
    if (x->waits)
        return;
    x->waits = true;
    say(x->judge, &x->ticket.ticket, true, ms, x->xid);
}

void ticket_client_over(struct exchange *x)
{
    /* Who never waited, for no time was given, was there when the ticket was opened. */
    if (!x->waits && x->ticket.state != TICKET_PENDING)
        return;
    x->waits = false;
    bool open = x->ticket.state == TICKET_PENDING || x->ticket.state == TICKET_APPROVED;
    if (open && x->judge->ledger && !somebody_waits(x->judge, &x->ticket.ticket))
        say(x->judge, &x->ticket.ticket, false, 0, x->xid);
}

void ticket_client_missed(struct judge *j, const struct wire_ticket_state *t)
{
    if (t->state == TICKET_PENDING && !somebody_waits(j, &t->ticket))
        say(j, &t->ticket, false, 0, 0);
}
