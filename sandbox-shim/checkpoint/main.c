/* countersign-checkpoint: one thing that is done with checkpoints, for the warden, by a process of its own; of the
 * disk it has the folder of checkpoints alone. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/net/chan.h"
#include "common/role/role.h"
#include "proxy/msgs.h"
#include "sandbox-shim/checkpoint/away/carrier.h"
#include "sandbox-shim/checkpoint/store.h"

enum { PATH_ROOM = 2048 };

static int run(const struct store *s, const struct order *o, int stream, struct dynbuf *out, struct err *e)
{
    bool streams = o->what == ORDER_SAVE || o->what == ORDER_LOAD;

    if (streams != (stream >= 0))
        return err_set(e, "the warden's order cannot be understood");
    switch (o->what) {
    case ORDER_SAVE: return store_save(s, o, stream, out, e);
    case ORDER_LOAD: return store_load(s, o, stream, out, e);
    case ORDER_IDLE:
    case ORDER_LIST: return store_list(s, o, out, e);
    case ORDER_LOOK:
    case ORDER_LOOK_STEP: return store_look(s, o, out, e);
    case ORDER_SWEEP: return store_sweep(s, o, e);
    case ORDER_TIDY: return store_tidy(s, e);
    default: return store_remove(s, o, out, e);
    }
}

static bool answer(uint64_t id, int rc, enum store_end how, const struct dynbuf *out, const struct err *e)
{
    struct dynbuf m;

    dynbuf_init(&m, CHAN_PAYLOAD_MAX);
    msg_put_u8(&m, (uint8_t)(rc == 0 ? STORE_DONE : how));
    msg_put_span(&m, rc == 0 ? SPAN_NONE : span_str(e->text));
    msg_put_span(&m, rc == 0 ? dynbuf_span(out) : SPAN_NONE);
    bool heard = role_job_answer(M_CHECKPOINT_DONE, id, &m);
    dynbuf_free(&m);
    return heard;
}

int main(void)
{
    static char path[PATH_ROOM];
    const char *given = getenv("COUNTERSIGN_CHECKPOINTS"), *most = getenv("COUNTERSIGN_CHECKPOINTS_MOST");
    const char *dirs[] = {path, NULL};
    const struct wall wall = {.calls = WALL_FILES | carrier_calls(), .rw_dirs = dirs};
    const struct away_carrier *carrier = carrier_prepare();
    struct away away;
    enum store_end how = STORE_FAILED;
    struct store s = {.dir = -1, .how = &how};
    struct dynbuf payload, out;
    struct err e = {""};
    struct order o;
    struct frame f;

    (void)snprintf(path, sizeof(path), "%s", given ? given : "");
    bool ok = most != NULL && span_u64(span_str(most), UINT64_MAX, &s.most) == 0;
    role_job_start("checkpoint");
    s.dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!ok || s.dir < 0)
        log_die("the folder of checkpoints cannot be opened; countersignd starts this program");
    carrier_confine();
    role_confine_alone(&wall);
    dynbuf_init(&out, CHAN_PAYLOAD_MAX - 1024);
    role_job_order(&f, &payload);
    if (f.type != M_CHECKPOINT_ORDER || f.nfds > 1 || order_get(f.payload, &o) != 0)
        log_die("the warden's order cannot be understood; is this the same version of countersignd?");
    int rc = carrier != NULL ? away_open(&away, s.dir, s.most, carrier, &e) : 0;
    s.away = carrier != NULL ? &away : NULL;
    if (rc == 0)
        rc = run(&s, &o, f.nfds == 1 ? f.fd[0] : -1, &out, &e);
    bool heard = answer(f.id, rc, how, &out, &e);
    if (carrier != NULL)
        away_close(&away);
    dynbuf_free(&out);
    dynbuf_free(&payload);
    return heard ? 0 : 1;
}
