/* What a switch of the policy leaves behind: a version that is kept, records in the audit, a notice on the page. */
#include <stdio.h>
#include <string.h>

#include "common/json/json.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/msg.h"
#include "proxy/parent/parent.h"

enum { NOTES_MAX = 64 * 1024, NOTE_MAX = 4096, NOTE_KIND = 32 };

void parent_say_notes(struct parent *p, struct child *ledger)
{
    struct msg_in m = msg_in(dynbuf_span(&p->notes));
    if (ledger == NULL || ledger->chan == NULL || !ledger->ready)
        return;
    while (m.rest.n > 0 && !m.bad) {
        struct span left = m.rest, kind = msg_get_span(&m, NOTE_KIND), json = msg_get_span(&m, NOTE_MAX);
        struct dynbuf *b = m.bad ? NULL : chan_begin(ledger->chan, M_NOTE, 0);
        if (b != NULL) {
            msg_put_span(b, kind);
            msg_put_span(b, json);
        }
        if (!m.bad && (b == NULL || chan_commit(ledger->chan) != 0)) { /* it goes to the next ledger */
            memmove(p->notes.p, left.p, left.n);
            p->notes.n = left.n;
            return;
        }
    }
    dynbuf_free(&p->notes);
}

void parent_note(struct parent *p, const char *kind, struct dynbuf *json)
{
    if (!dynbuf_ok(json) || p->notes.n + json->n + 2 * NOTE_KIND > NOTES_MAX) {
        log_error("what was noted (%s) is not in the audit: too much waits for the ledger", kind);
    } else {
        msg_put_span(&p->notes, span_str(kind));
        msg_put_span(&p->notes, dynbuf_span(json));
    }
    parent_say_notes(p, parent_child(p, ROLE_LEDGER, 0));
}

static void begin(struct dynbuf *b, struct jsonw *w, const char *how, struct span who)
{
    dynbuf_init(b, NOTE_MAX);
    jsonw_begin(w, b);
    jsonw_object(w);
    jsonw_kv(w, "how", span_str(how));
    if (who.n)
        jsonw_kv(w, "by", who);
}

void parent_say_notice(struct parent *p, struct child *desk)
{
    struct dynbuf *b = desk && desk->chan ? chan_begin(desk->chan, M_POLICY_NOTICE, 0) : NULL;
    if (b == NULL)
        return;
    msg_put_span(b, span_str(p->pin.hex));
    msg_put_span(b, span_str(p->pin.by));
    msg_put_u64(b, p->pin.since_ms);
    msg_put_span(b, span_str(p->refused_change.how));
    msg_put_span(b, span_str(p->refused_change.by));
    msg_put_u64(b, p->refused_change.when_ms);
    msg_put_span(b, span_str(p->refused_change.why));
    (void)chan_commit(desk->chan);
}

/* Kept before it is said to be in force, so that what is in force is always among them. */
static void keep(struct parent *p, const char *hex)
{
    const char *state = p->config->state_dir;
    struct span bundle;
    struct err e = {{0}};
    if (memfd_map(p->policy.bundle, STORED_BYTES_MAX + STORED_MANIFEST_MAX, &bundle) == 0) {
        if (versions_keep(state, bundle, &e) != 0)
            log_error("this version of the policy is not kept: %s", e.text);
        memfd_unmap(&bundle);
    }
    versions_in_force(state, hex);
    versions_sweep(state, hex, p->pin.hex);
}

void parent_switched(struct parent *p, const char *how, struct span who)
{
    char hex[STORED_HEX + 1];
    struct dynbuf b;
    struct jsonw w;
    hex_text(span_of(p->policy.digest.b, DIGEST_BYTES), hex);
    bool start = strcmp(how, "start") == 0, same = strcmp(hex, p->from) == 0;
    p->refused_change.how[0] = '\0';
    keep(p, hex);
    if (!same || start || strcmp(how, "reload") != 0) {
        begin(&b, &w, how, who);
        jsonw_kv(&w, "policy", span_str(hex));
        if (p->from[0] && !same)
            jsonw_kv(&w, "from", span_str(p->from));
        if (p->pin.hex[0])
            jsonw_kv(&w, "pinned_by", span_str(p->pin.by));
        jsonw_end_object(&w);
        parent_note(p, "policy", &b);
        dynbuf_free(&b);
    }
    snprintf(p->from, sizeof(p->from), "%s", hex);
    parent_say_notice(p, parent_child(p, ROLE_DESK, 0));
}

void parent_refused(struct parent *p, const char *how, struct span who, const char *why)
{
    struct dynbuf b;
    struct jsonw w;
    begin(&b, &w, how, who);
    jsonw_kv(&w, "why", span_str(why));
    jsonw_end_object(&w);
    parent_note(p, "policy-refused", &b);
    dynbuf_free(&b);
    snprintf(p->refused_change.how, sizeof(p->refused_change.how), "%s", how);
    snprintf(p->refused_change.by, sizeof(p->refused_change.by), "%.*s", SPAN_FMT(who));
    snprintf(p->refused_change.why, sizeof(p->refused_change.why), "%s", why);
    p->refused_change.when_ms = loop_wall(p->loop);
    parent_say_notice(p, parent_child(p, ROLE_DESK, 0));
}
