/* The desk's reading of what is told outside the page. */
#include "web-approval/store/told.h"

#include "web-approval/store/store_in.h"

static const char sums[] =
    "SELECT coalesce(sum(state = 'due'), 0), coalesce(sum(state = 'told'), 0), coalesce(sum(state = 'given-up'), 0), "
    "coalesce(max(CASE WHEN state = 'told' THEN ended_ms END), 0), "
    "coalesce(max(CASE WHEN state = 'given-up' THEN ended_ms END), 0), "
    "coalesce((SELECT words FROM tell AS u WHERE u.target = :target AND u.words <> '' "
    "ORDER BY CASE WHEN u.ended_ms THEN u.ended_ms ELSE u.at_ms END DESC LIMIT 1), ''), "
    "coalesce((SELECT at_ms FROM tell AS u WHERE u.target = :target AND u.event = 'test' "
    "ORDER BY at_ms DESC, id LIMIT 1), 0), "
    "coalesce((SELECT tries FROM tell AS u WHERE u.target = :target AND u.event = 'test' "
    "ORDER BY at_ms DESC, id LIMIT 1), 0), "
    "coalesce((SELECT state FROM tell AS u WHERE u.target = :target AND u.event = 'test' "
    "ORDER BY at_ms DESC, id LIMIT 1), '') FROM tell WHERE target = :target";

static int take(void *ctx, struct row *r)
{
    struct told_row *t = ctx;

    t->waiting = row_number(r);
    t->told = row_number(r);
    t->given_up = row_number(r);
    t->told_ms = row_number(r);
    t->given_up_ms = row_number(r);
    t->words = row_text(r);
    t->test_ms = row_number(r);
    t->test_tries = row_number(r);
    t->test_state = row_text(r);
    return 1;
}

int desk_store_told(struct desk_store *s, struct span target, struct arena *a, struct told_row *r, struct err *e)
{
    sqlite3_stmt *q;

    *r = (struct told_row){.waiting = 0};
    if (store_query(s, sums, &q, e) != 0)
        return -1;
    store_bind(q, ":target", target);
    return store_walk(s, q, a, take, r, e);
}
