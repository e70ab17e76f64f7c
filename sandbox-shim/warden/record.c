#include "sandbox-shim/warden/record.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/runs/wire_run.h"
#include "sandbox-shim/warden/cell/cell.h"

/* Everybody's in a sandbox (sandbox-shim/plan/plan.c). */
#define BOX_USER "1000"

struct record {
    uint64_t number;     /* of the question; 0: answered */
    uint64_t desk;       /* who is to be told of a detached command; 0: nobody */
    uint64_t timeout_ms; /* from its order on */
    struct id id;        /* as the ledger calls it */
    struct dynbuf order; /* until it is answered */
    struct digest_ctx *sum[2];
    uint64_t bytes[2];
};

void record_free(struct run *r)
{
    struct record *k = r->record;
    struct digest none;

    if (k == NULL)
        return;
    dynbuf_free(&k->order);
    for (int i = 0; i < 2; i++)
        if (k->sum[i] != NULL)
            digest_end(k->sum[i], &none);
    free(k);
    r->record = NULL;
}

bool record_waits(const struct run *r)
{
    return r->record != NULL && r->record->number != 0;
}

/* --- it is asked for ----------------------------------------------------------------- */

static void put_begin(struct dynbuf *m, const struct run *r, const struct run_order *o)
{
    const struct box *b = r->box;
    struct wire_run is = {.sandbox = span_str(b->name),
                          .image = span_str(b->image),
                          .packages = span_str(b->digest),
                          .lane = span_str(r->lane[0] != '\0' ? r->lane : b->lane),
                          .generation = b->generation,
                          .born = b->born,
                          .number = r->id,
                          .dir = span_first(o->command.dir, TALK_PATH_MAX),
                          .user = SPAN(BOX_USER),
                          .input = (uint8_t)o->command.input,
                          .detached = o->detached,
                          .timeout_ms = o->timeout_ms};

    wire_words_of(&is.argv, o->command.arg, o->command.nargs, 0);
    wire_words_of(&is.env, o->command.variable, o->command.nvariables, '=');
    wire_put_run(m, &is);
}

const char *record_begin(struct run *r, const struct run_order *o, const struct dynbuf *order, uint64_t desk)
{
    struct warden *w = r->box->warden;
    struct record *k = w->ledger != NULL ? calloc(1, sizeof(*k)) : NULL;
    struct dynbuf *m;

    if (w->ledger == NULL)
        return "the ledger does not run at the moment, and what it has not written down is not run";
    if (k == NULL)
        return "there is no memory for it";
    r->record = k;
    *k = (struct record){.number = ++w->last_record,
                         .desk = desk,
                         .timeout_ms = o->timeout_ms,
                         .sum = {digest_begin(), digest_begin()}};
    dynbuf_init(&k->order, RECORD_WAITING_MAX);
    if (dynbuf_add(&k->order, dynbuf_span(order)) != 0)
        return "there is no memory for it";
    if ((m = chan_begin(w->ledger, M_RUN_BEGIN, k->number)) != NULL)
        put_begin(m, r, o);
    if (m == NULL || chan_commit(w->ledger) != 0)
        return "the ledger does not take more; try again in a moment";
    timer_set(r->timer, RECORD_MS);
    return NULL;
}

int record_say(struct run *r, const struct dynbuf *frame)
{
    if (record_waits(r))
        return dynbuf_add(&r->record->order, dynbuf_span(frame));
    run_say(r, frame);
    return 0;
}

void record_refuse(struct run *r, const char *why)
{
    const struct talk nothing = {.why = span_str(why)};

    if (r->record->desk != 0)
        warden_tell_detached(r->box->warden, r->record->desk, 0, 0, why);
    run_tell_exit(r, SB_NOT_STARTED, &nothing);
    run_free(r);
}

/* --- it is there ------------------------------------------------------------------------ */

static void tell_end(struct warden *w, const struct id *id, const struct wire_run_end *e)
{
    struct dynbuf *m = w->ledger != NULL ? chan_begin(w->ledger, M_RUN_END, 0) : NULL;

    if (m == NULL) /* the next ledger hears which have no end yet, and this is not among them */
        return;
    msg_put_id(m, id);
    wire_put_run_end(m, e);
    (void)chan_commit(w->ledger);
}

/* What nobody waits for any more: it was written down, and never ordered. */
static void tell_never(struct warden *w, const struct id *id, const char *why)
{
    struct wire_run_end e = {.how = SB_NOT_STARTED, .why = span_str(why)};

    for (int i = 0; i < 2; i++)
        digest_of(SPAN_NONE, &e.out[i].digest);
    tell_end(w, id, &e);
}

static void ordered(struct run *r, const struct id *id)
{
    struct record *k = r->record;
    struct box *b = r->box;
    struct dynbuf order = k->order;

    k->id = *id;
    k->number = 0;
    dynbuf_init(&k->order, 1);
    timer_set(r->timer, k->timeout_ms);
    if (k->desk != 0)
        warden_tell_detached(b->warden, k->desk, b->born, r->id, NULL);
    run_say(r, &order); /* which may end the sandbox, and with it r */
    dynbuf_free(&order);
}

static struct run *asked_by(const struct warden *w, uint64_t number)
{
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        for (struct run *r = b->runs; r != NULL; r = r->next)
            if (r->record != NULL && r->record->number == number)
                return r;
    return NULL;
}

int record_answered(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    bool ok = msg_get_bool(&m);
    struct id id;

    msg_get_id(&m, &id);
    if (msg_end(&m) != 0 || f->id == 0)
        return -1;
    struct run *r = asked_by(w, f->id);
    const char *why = r == NULL                   ? "nobody waited for it any more"
                      : !ok                       ? "the ledger did not write it down, and what it has not is not run"
                      : r->box->state != BOX_RUNS ? "the sandbox was paused, or ended, before it was ordered"
                                                  : NULL;
    if (why == NULL && r->lane[0] != '\0')
        why = cell_begin(r);
    if (ok && why != NULL)
        tell_never(w, &id, why);
    if (r != NULL && why != NULL)
        record_refuse(r, why);
    else if (why == NULL)
        ordered(r, &id);
    return 0;
}

void record_said(struct run *r, unsigned which, struct span bytes)
{
    if (r->record == NULL || bytes.n == 0)
        return;
    digest_add(r->record->sum[which], bytes);
    r->record->bytes[which] += bytes.n;
}

void record_end(struct run *r, enum sb_end how, const struct talk *t)
{
    struct record *k = r->record;
    struct wire_run_end e = {.how = (uint8_t)how,
                             .code = (uint8_t)t->code,
                             .user_us = t->user_us,
                             .system_us = t->system_us,
                             .memory_kib = t->memory_kib,
                             .cut = r->kept != NULL ? 0 : r->cut,
                             .why = t->why};

    if (k == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        e.out[i].bytes = k->bytes[i];
        digest_end(k->sum[i], &e.out[i].digest);
        k->sum[i] = NULL;
    }
    if (k->number == 0)
        tell_end(r->box->warden, &k->id, &e);
    record_free(r); /* of a detached command more than this is kept */
}

void record_ledger_gone(struct warden *w)
{
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        for (struct run *r = b->runs, *next; r != NULL; r = next) {
            next = r->next;
            if (record_waits(r))
                record_refuse(r, "the ledger ended before it had written it down");
        }
}

void record_desk_gone(struct warden *w)
{
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        for (struct run *r = b->runs; r != NULL; r = r->next)
            if (r->record != NULL)
                r->record->desk = 0;
}

static size_t put_ids(struct dynbuf *m, const struct warden *w)
{
    size_t n = 0;

    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        for (const struct run *r = b->runs; r != NULL; r = r->next) {
            if (r->record == NULL || r->record->number != 0)
                continue;
            n++;
            if (m != NULL)
                msg_put_id(m, &r->record->id);
        }
    return n;
}

void record_put_open(struct dynbuf *m, const struct warden *w)
{
    msg_put_u32(m, (uint32_t)put_ids(NULL, w));
    (void)put_ids(m, w);
}
