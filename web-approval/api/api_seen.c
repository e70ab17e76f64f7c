/* What is seen of sandboxes that the warden runs: /api/v1/sandboxes/metrics, what each of them uses, and
 * /api/v1/sandboxes/NAME/log, the last that a detached command said. */
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "proxy/wire.h"
#include "sandbox-shim/warden/ring.h"
#include "web-approval/api/api.h"
#include "web-approval/api/steps.h"
#include "web-approval/dock.h"
#include "web-approval/route.h"

/* --- what they use ----------------------------------------------------------------- */

static void put_known(struct jsonw *w, const char *key, uint64_t v)
{
    if (v != UINT64_MAX)
        jsonw_kv_u64(w, key, v);
}

static void put_usage(struct jsonw *w, struct span usage)
{
    struct msg_in m = msg_in(usage);
    struct wire_usage u;

    if (wire_get_usage(&m, &u) != 0 || msg_end(&m) != 0)
        return;
    jsonw_kv(w, "measured_by", u.version ? SPAN("cgroup") : SPAN("each process (approximate)"));
    put_known(w, "memory_used", u.memory);
    put_known(w, "memory_peak", u.peak);
    put_known(w, "disk_used", u.disk);
    put_known(w, "pids_used", u.pids);
    put_known(w, "cpu_us", u.cpu_us);
}

static void metered(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct started s;
    struct jsonw w;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_u64(&w, "time_ms", x->wall_ms);
    jsonw_kv_array(&w, "sandboxes");
    while (m.rest.n > 0 && !m.bad) {
        api_started_get(&m, &s);
        struct span usage = msg_get_span(&m, WIRE_USAGE);
        if (m.bad)
            break;
        int own = x->place == PLACE_DOCK ? dock_owns(x, s.box.name, NULL) : 1;
        if (own < 0)
            return;
        if (own == 0)
            continue;
        jsonw_object(&w);
        api_started_put(&w, &s);
        api_egress_put(x, &w, &s.box);
        put_usage(&w, usage);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (!f || m.bad)
        reply_problem(x, 503, "Not possible now",
                      "the warden did not say what the sandboxes use; try again in a moment");
}

void api_started_metrics(struct exchange *x)
{
    if (ask_begin(x, ASK_WARDEN, M_SB_METER, M_SB_METER, metered))
        ask_send(x);
}

/* --- what a command said ------------------------------------------------------------- */

/* -1: no memory. */
static int put_output(struct exchange *x, struct jsonw *w, const char *key, uint64_t cut, struct span bytes)
{
    char *text = arena_alloc(&x->arena, 4 * (bytes.n / 3 + 1) + 1);

    if (!text)
        return -1;
    jsonw_kv_object(w, key);
    jsonw_kv_u64(w, "cut", cut);
    jsonw_kv(w, "data", span_of(text, base64_encode(bytes, text)));
    jsonw_end_object(w);
    return 0;
}

static void log_came(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    unsigned found = msg_get_u8(&m);
    bool there = found == SB_FOUND, runs = msg_get_bool(&m);
    unsigned how = msg_get_u8(&m), code = msg_get_u8(&m);
    struct span bytes[2] = {SPAN_NONE, SPAN_NONE};
    uint64_t cut[2] = {0, 0};
    struct jsonw w;

    for (int i = 0; i < 2 && there; i++) {
        cut[i] = msg_get_u64(&m);
        bytes[i] = msg_get_span(&m, RING_MAX);
    }
    if (msg_end(&m) != 0) {
        reply_problem(x, 503, "Not possible now", "the warden did not say it; try again in a moment");
        return;
    }
    if (!there) {
        api_command_none(x, found);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    api_command_put(&w, x->step);
    jsonw_kv(&w, "state", span_str(runs ? "running" : api_end_word(how)));
    if (!runs)
        jsonw_kv_u64(&w, how == SB_SIGNALLED ? "signal" : "status", code);
    int rc = put_output(x, &w, "stdout", cut[0], bytes[0]) | put_output(x, &w, "stderr", cut[1], bytes[1]);
    jsonw_end_object(&w);
    if (rc != 0)
        reply_problem(x, 503, "Not possible now", "no memory");
}

void api_started_log(struct exchange *x)
{
    struct api_command *is = arena_alloc(&x->arena, sizeof(*is));
    struct span given;
    struct dynbuf *b;

    if (!is) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    if (query_field(x, "command", &given) != 0 || api_command_read(x, given, is) != 0)
        return;
    if (api_started_name(x) != 0 || !(b = ask_begin(x, ASK_WARDEN, M_SB_LOG, M_SB_LOG, log_came)))
        return;
    x->step = is;
    api_command_ask(b, x->arg, is);
    ask_send(x);
}
