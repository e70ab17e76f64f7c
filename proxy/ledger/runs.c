/* What the warden says: which sandboxes and commands run, and what became of them. */
#include <stdlib.h>

#include "common/log.h"
#include "proxy/ledger/ledger.h"
#include "proxy/ledger/store/runs/runs.h"

enum { NAME_MOST = 256, NOTE_MOST = 64 * 1024, RUNNING_MOST = 1024, OPEN_MOST = 16 * 1024 };

static void answer(struct ledger *l, uint64_t id, bool ok, const struct id *run)
{
    struct dynbuf no;
    struct id none = {{0}};
    dynbuf_init(&no, 64);
    msg_put_u8(&no, false);
    msg_put_id(&no, &none);
    struct span fail = dynbuf_span(&no);
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, ok);
    msg_put_id(b, ok ? run : &none);
    ledger_reply(l, TO_WARDEN, M_RUN_BEGUN, id, -1, &fail);
    dynbuf_free(&no);
}

static int begin(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_run r;
    struct id run;
    int bad = wire_get_run(&m, &r) != 0 || msg_end(&m) != 0 ? -1 : 0;
    answer(l, f->id, bad == 0 && !l->lost && store_run_begin(l->store, &r, &run) == 0, &run);
    return bad;
}

static int end(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_run_end e;
    struct id run;
    l->patient = true; /* who waits for the command hears of its end from the warden */
    msg_get_id(&m, &run);
    int bad = wire_get_run_end(&m, &e) != 0 || msg_end(&m) != 0 ? -1 : 0;
    if (bad == 0 && !l->lost && store_run_end(l->store, &run, &e) != 0)
        log_debug("the end of a command waits for the store");
    return bad;
}

static int life(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span kind = msg_get_span(&m, NAME_MOST), sandbox = msg_get_span(&m, NAME_MOST);
    uint64_t generation = msg_get_u64(&m);
    struct span json = msg_get_span(&m, NOTE_MOST);
    if (msg_end(&m) != 0)
        return -1;
    l->patient = true;
    if (!l->lost && store_run_life(l->store, kind, sandbox, generation, json) != 0)
        log_debug("what became of a sandbox waits for the store");
    return 0;
}

/* Commands first: those of a sandbox that is over are not known of either. */
static int what_runs(struct ledger *l, const struct store_running *box, size_t nboxes, const struct id *run,
                     size_t nruns)
{
    if (l->lost || store_runs_unknown(l->store, run, nruns, RUNS_UNHEARD) != 0)
        return -1;
    return store_sandboxes_run(l->store, box, nboxes);
}

static int running(struct ledger *l, struct frame *f)
{
    static struct store_running box[RUNNING_MOST];
    struct msg_in m = msg_in(f->payload);
    size_t nboxes = msg_get_u16(&m), nruns;
    if (nboxes > RUNNING_MOST)
        return -1;
    for (size_t i = 0; i < nboxes; i++) {
        box[i].name = msg_get_span(&m, NAME_MOST);
        box[i].generation = msg_get_u64(&m);
    }
    if ((nruns = msg_get_u32(&m)) > OPEN_MOST || m.rest.n != nruns * ID_BYTES)
        return -1;
    struct id *run = calloc(nruns + 1, sizeof(*run));
    for (size_t i = 0; run != NULL && i < nruns; i++)
        msg_get_id(&m, &run[i]);
    if (run == NULL || what_runs(l, box, nboxes, run, nruns) != 0)
        log_error("which sandboxes and commands have ended is not written down: the store cannot be written to");
    free(run);
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, true);
    msg_put_span(b, SPAN_NONE);
    if (chan_send(l->peer[ROLE_WARDEN], M_SANDBOX_DONE, f->id, dynbuf_span(b)) != 0)
        log_debug("the warden has just gone; the next one says what runs");
    return 0;
}

bool ledger_is_of_runs(uint16_t type)
{
    return type == M_RUN_BEGIN || type == M_RUN_END || type == M_RUN_LIFE || type == M_SANDBOX_RUN;
}

int ledger_runs(struct ledger *l, struct frame *f)
{
    switch (f->type) {
    case M_RUN_BEGIN: return begin(l, f);
    case M_RUN_END: return end(l, f);
    case M_RUN_LIFE: return life(l, f);
    case M_SANDBOX_RUN: return running(l, f);
    default: return -1;
    }
}
