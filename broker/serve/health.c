/* Whether anybody runs turns: what is said of it to who asks, in the log, and to the desk. A process that runs turns
 * and has none takes one that waits within a second (broker/work/work.c). So where turns wait longer than that and
 * not one is run, nobody is there who would. */
#include "broker/serve/health.h"

#include <stdio.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/time/clock.h"
#include "proxy/msgs.h"

bool health_nobody(const struct bstore_waiting *w)
{
    return w->turns > 0 && w->running == 0;
}

bool health_words(const struct bstore_waiting *w, uint64_t workers, char text[HEALTH_WORDS])
{
    char since[UTC_TEXT];
    text[0] = '\0';
    if (!health_nobody(w))
        return false;
    bool known = utc_text(w->since_ms, false, since);
    (void)snprintf(text, HEALTH_WORDS, "no process runs turns: %llu wait%s since %s; %s",
                   (unsigned long long)w->turns, w->turns == 1 ? "s" : ", the first", known ? since : "long ago",
                   workers > 0 ? "those of this gateway take none: its log says why (`countersign status`)"
                               : "this gateway has none (`broker: only:`): start one of which the broker does turn, "
                                 "with the same store");
    return true;
}

/* --- who asks: a key is not told how much of others' waits ------------------------------------- */

void health_tell(struct call *x)
{
    char words[HEALTH_WORDS];
    struct bstore_waiting w;
    struct jsonw j;
    enum bstore_result r = bstore_waiting(call_store(x), SERVE_LATE_MS, &w);
    if (r != BS_OK && x->own) {
        reply_no(x, 503, "the store cannot be used: %s", bstore_why(call_store(x)));
        return;
    }
    if (r != BS_OK) {
        talk_unable(x, r);
        return;
    }
    bool nobody = health_words(&w, x->serve->workers, words);
    reply_json(x, 200, &j);
    jsonw_object(&j);
    jsonw_kv_bool(&j, "ok", !nobody);
    jsonw_kv(&j, "does", SPAN("stream"));
    if (nobody)
        jsonw_kv(&j, "problem", x->own ? span_str(words) : SPAN("no process runs turns"));
    if (x->own) {
        jsonw_kv_u64(&j, "workers", x->serve->workers);
        jsonw_kv_object(&j, "turns");
        jsonw_kv_u64(&j, "running", w.running);
        jsonw_kv_u64(&j, "waiting", w.turns);
        if (w.turns > 0)
            jsonw_kv_u64(&j, "since_ms", w.since_ms);
        jsonw_end_object(&j);
    }
    jsonw_end_object(&j);
    call_answer(x);
}

/* --- who is told ------------------------------------------------------------------------------- */

/* The desk has it for the page, `countersign status` and the metrics; one that is new is told with the next look. */
static void tell_desk(struct serve *s, const struct bstore_waiting *w)
{
    struct dynbuf *b = s->desk != NULL ? chan_begin(s->desk, M_BROKER_WAITS, 0) : NULL;
    if (b == NULL)
        return;
    msg_put_u64(b, w->turns);
    msg_put_u64(b, w->since_ms);
    (void)chan_commit(s->desk);
}

/* One look is none: a database that was away, or workers that all began anew, are over by the next. */
void health_look(struct serve *s, struct bstore *store)
{
    static const struct bstore_waiting none = {.turns = 0};
    char words[HEALTH_WORDS];
    struct bstore_waiting w;
    if (bstore_waiting(store, SERVE_LATE_MS, &w) != BS_OK) { /* nobody knows; who asks for anything is told why */
        s->idle_looks = 0;
        if (s->says_idle)
            tell_desk(s, &none);
        s->says_idle = false;
        return;
    }
    s->idle_looks = health_words(&w, s->workers, words) ? s->idle_looks + 1 : 0;
    bool said = s->says_idle;
    s->says_idle = s->idle_looks >= SERVE_LATE_LOOKS;
    if (s->says_idle && !said)
        log_warn("%s", words);
    else if (!s->says_idle && said)
        log_info("turns are run again");
    if (s->says_idle || said)
        tell_desk(s, s->says_idle ? &w : &none);
}
