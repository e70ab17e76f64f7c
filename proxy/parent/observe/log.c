/* The log's level and whom it follows, as configured or as an operator set it for a while. */
#include "proxy/parent/observe/observe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/json/json.h"
#include "common/msg.h"
#include "proxy/parent/parent.h"

enum { FOR_MAX_S = 30 * 86400, JSON_MAX = 4096 };

/* The numbers of the exchanges that are followed: of a sandbox, all that its front of now makes. */
static struct log_setting setting(const struct parent *p)
{
    const struct observe *o = &p->observe;
    struct log_setting s = {.level = o->level};
    uint64_t exchange = parent_exchange(p, span_str(o->follow));
    if (exchange != 0)
        return (struct log_setting){o->level, exchange, exchange + 1};
    for (const struct child *c = p->children; c != NULL && o->follow[0] != '\0' && s.upto == 0; c = c->next)
        if (c->role == ROLE_FRONT && !c->leaving && strcmp(c->info, o->follow) == 0) { /* the newest is first */
            s.from = c->instance << XID_FRONT_SHIFT;
            s.upto = (c->instance + 1) << XID_FRONT_SHIFT;
        }
    return s;
}

static void tell(const struct log_setting *s, struct child *c)
{
    struct dynbuf *b = c->chan ? chan_begin(c->chan, M_LOG, 0) : NULL;
    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)s->level);
    msg_put_u64(b, s->from);
    msg_put_u64(b, s->upto);
    (void)chan_commit(c->chan);
}

static void tell_all(struct parent *p)
{
    struct log_setting s = setting(p);
    log_set(&s);
    for (struct child *c = p->children; c != NULL; c = c->next)
        tell(&s, c);
    parent_record_tell(p, &s, NULL);
}

void parent_log_tell(struct parent *p, struct child *c)
{
    struct log_setting s = setting(p);
    if (c->role == ROLE_FRONT && strcmp(c->info, p->observe.follow) == 0)
        tell_all(p);
    else
        tell(&s, c);
    if (c->role == ROLE_JUDGE)
        parent_record_tell(p, &s, c);
}

void parent_log_configured(struct parent *p)
{
    struct observe *o = &p->observe;
    o->level = p->config->log_level;
    snprintf(o->follow, sizeof(o->follow), "%s", p->config->log_trace);
    o->until_ms = 0;
    parent_record_end(p);
    if (o->back != NULL)
        timer_clear(o->back);
    tell_all(p);
}

static void time_is_over(void *arg)
{
    log_info("the log is again as the configuration says");
    parent_log_configured(arg);
}

static int change(struct parent *p, enum log_level level, bool follow, struct span whom, bool record, uint64_t for_ms,
                  struct err *e)
{
    struct observe *o = &p->observe;
    if (level > LOG_ERROR || for_ms > FOR_MAX_S * UINT64_C(1000))
        return err_set(e, "a level is error, warn, info or debug, and a time at most 30 days");
    if (follow && whom.n > 0 && parent_exchange(p, whom) == 0 && !config_sandbox_ok(whom))
        return err_set(e, "whom to follow is a sandbox's name, or the id of an exchange of this run of the gateway");
    if (record && (!follow || whom.n == 0))
        return err_set(e, "what is to be recorded is a sandbox or an exchange that is followed");
    if (o->back == NULL && (o->back = timer_new(p->loop, time_is_over, p)) == NULL)
        return err_set(e, "out of memory");
    if (level != LOG_NONE)
        o->level = level;
    if (follow)
        parent_record_end(p);
    if (record && parent_record_begin(p, e) != 0)
        return -1;
    if (follow)
        snprintf(o->follow, sizeof(o->follow), "%.*s", SPAN_FMT(whom));
    o->until_ms = for_ms > 0 ? loop_now(p->loop) + for_ms : 0;
    if (for_ms > 0)
        timer_set(o->back, for_ms);
    else
        timer_clear(o->back);
    tell_all(p);
    return 0;
}

static void put(const struct parent *p, struct dynbuf *json)
{
    const struct observe *o = &p->observe;
    char where[JSON_MAX / 8]; /* JSON may make six bytes of one */
    ssize_t to = readlink("/proc/self/fd/2", where, sizeof(where));
    struct jsonw w;
    jsonw_begin(&w, json);
    jsonw_object(&w);
    jsonw_kv(&w, "level", span_str(log_level_name(o->level)));
    jsonw_kv(&w, "trace", span_str(o->follow));
    jsonw_kv(&w, "to", to > 0 ? span_of(where, (size_t)to) : SPAN_NONE);
    jsonw_kv_u64(&w, "pid", (uint64_t)getpid());
    if (o->records)
        jsonw_kv(&w, "recording", span_str(RECORDING_NAME));
    if (o->until_ms != 0)
        jsonw_kv_u64(&w, "until_ms", loop_wall(p->loop) + (o->until_ms - loop_now(p->loop)));
    jsonw_end_object(&w);
}

void parent_log_set(struct parent *p, struct child *desk, struct frame *f)
{
    struct err e = {{0}};
    struct dynbuf json, *b;
    struct msg_in m = msg_in(f->payload);
    bool changes = msg_get_bool(&m);
    enum log_level level = (enum log_level)msg_get_u8(&m);
    bool follow = msg_get_bool(&m);
    struct span whom = msg_get_span(&m, OBSERVE_FOLLOW - 1);
    bool record = msg_get_bool(&m);
    uint64_t for_ms = msg_get_u64(&m);
    int bad = msg_end(&m) != 0 ? err_set(&e, "what the log is to do cannot be read") : 0;
    if (bad == 0 && changes)
        bad = change(p, level, follow, whom, record, for_ms, &e);
    dynbuf_init(&json, JSON_MAX);
    if (bad == 0)
        put(p, &json);
    if ((b = chan_begin(desk->chan, M_LOG_SET, f->id)) != NULL) {
        msg_put_u8(b, bad == 0);
        msg_put_span(b, bad ? span_str(e.text) : dynbuf_span(&json));
        (void)chan_commit(desk->chan);
    }
    dynbuf_free(&json);
}
