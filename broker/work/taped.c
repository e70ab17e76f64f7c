#include "broker/work/taped.h"

#include <stdlib.h>

#include "broker/replay/tape.h"
#include "common/net/loop.h"

enum { ROWS_SOON = BSTORE_PART_MAX - TAPE_LINE_MAX }; /* so that one more line has room */

struct taped {
    struct dynbuf rows;
    uint64_t t;           /* of the last line: a clock that is set back does not turn it back */
    enum turn_end wanted; /* by the machine, at the last line */
    char model[TAPE_NAME_MAX];
    size_t model_n;
};

struct taped *taped_new(void)
{
    struct taped *k = calloc(1, sizeof(*k));
    if (k != NULL)
        dynbuf_init(&k->rows, BSTORE_PART_MAX);
    return k;
}

void taped_free(struct taped **k)
{
    if (*k != NULL)
        dynbuf_free(&(*k)->rows);
    free(*k);
    *k = NULL;
}

static void put(struct task *t, struct tape_row *row, const struct loop_actions *did)
{
    struct taped *k = t->taped;
    struct span tool[TURN_CALLS_MAX];
    struct dynbuf b;
    uint64_t now = loop_wall(t->w->loop), begun = t->found.started_ms;
    dynbuf_init(&b, TAPE_DID_MAX);
    if (now > begun && now - begun > k->t)
        k->t = now - begun;
    for (size_t i = 0; i < t->calls; i++)
        tool[i] = t->call[i].call.tool;
    row->t = k->t;
    row->tool = tool;
    row->same = t->agent.same;
    row->model = span_of(k->model, k->model_n);
    if (did != NULL)
        tape_did(&b, did);
    row->did = dynbuf_span(&b);
    k->wanted = t->agent.wanted;
    tape_put(&k->rows, row);
    dynbuf_free(&b);
    if (k->rows.n > ROWS_SOON)
        taped_flush(t);
}

void taped_begin(struct task *t, const struct loop_found *found, const struct loop_actions *did)
{
    struct tape_row row = {.kind = TAPE_BEGIN, .found = *found};
    if (t->taped != NULL)
        put(t, &row, did);
}

void taped_heard(struct task *t, const struct loop_event *e, const struct loop_actions *did)
{
    struct tape_row row = {.kind = TAPE_HEARD, .e = *e};
    bool again = e->heard == HEARD_TICK || e->heard == HEARD_CANCEL; /* each second, mostly for nothing */
    if (t->taped != NULL && (!again || did->n > 0 || t->agent.wanted != t->taped->wanted))
        put(t, &row, did);
}

void taped_spent(struct task *t, const struct used *used)
{
    struct tape_row row = {.kind = TAPE_SPENT, .used = *used};
    if (t->taped != NULL)
        put(t, &row, NULL);
}

void taped_model(struct task *t, struct span name)
{
    struct taped *k = t->taped;
    if (k == NULL)
        return;
    name = span_first(name, TAPE_NAME_MAX);
    memcpy(k->model, name.p, name.n);
    k->model_n = name.n;
}

struct span taped_rows(const struct task *t)
{
    return t->taped != NULL ? dynbuf_span(&t->taped->rows) : SPAN_NONE;
}

void taped_kept(struct task *t)
{
    if (t->taped != NULL)
        dynbuf_reset(&t->taped->rows);
}

void taped_flush(struct task *t)
{
    struct span rows = taped_rows(t);
    if (rows.n > 0 && !t->fenced && bstore_record(t->w->store, &t->claim, rows) == BS_OK)
        taped_kept(t);
}
