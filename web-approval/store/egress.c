/* How much egress a started sandbox may have, and how much it has used. */
#include "web-approval/store/store_in.h"

static const char counted[] =
    "SELECT s.egress_requests, s.egress_bytes, coalesce(e.requests, 0), coalesce(e.bytes, 0) FROM sandbox AS s "
    "LEFT JOIN egress AS e ON e.whose = 0 AND e.name = s.name AND e.epoch = s.egress_epoch WHERE s.name = :name";

static int take(void *ctx, struct row *r)
{
    struct egress_row *o = ctx;

    o->requests_most = row_number(r);
    o->bytes_most = row_number(r);
    o->requests = row_number(r);
    o->bytes = row_number(r);
    return 1;
}

int desk_store_egress(struct desk_store *s, struct span sandbox, struct arena *a, struct egress_row *o, struct err *e)
{
    sqlite3_stmt *q;

    *o = (struct egress_row){0};
    if (store_query(s, counted, &q, e) != 0)
        return -1;
    store_bind(q, ":name", sandbox);
    return store_walk(s, q, a, take, o, e);
}
