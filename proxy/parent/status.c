/* What `countersign status` shows: what runs, what is in force, and whether the files still say the same. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/json/json.h"
#include "common/memfd.h"
#include "common/msg.h"
#include "proxy/duty/duty.h"
#include "proxy/parent/parent.h"

enum { STATUS_MAX = 256 * 1024, STATUS_FILES = 64, COMPARED_MAX = 64 * 1024 * 1024 };

static void put_pin(const struct pin *pin, struct jsonw *w)
{
    if (pin->hex[0] == '\0')
        return;
    jsonw_kv_object(w, "pinned");
    jsonw_kv(w, "digest", span_str(pin->hex));
    jsonw_kv(w, "by", span_str(pin->by));
    jsonw_kv_u64(w, "since_ms", pin->since_ms);
    jsonw_end_object(w);
}

/* "same" as when it was read; "changed"; or why it cannot be read now. */
static void put_file(struct jsonw *w, const char *kind, struct span name, const struct digest *was)
{
    char path[CONFIG_PATH], real[PATH_MAX];
    struct arena a;
    struct span text;
    struct digest now;
    struct err e;

    arena_init(&a, COMPARED_MAX + 4096);
    snprintf(path, sizeof(path), "%.*s", SPAN_FMT(name));
    jsonw_object(w);
    jsonw_kv(w, "kind", span_str(kind));
    jsonw_kv(w, "name", name);
    if (realpath(path, real) != NULL)
        jsonw_kv(w, "path", span_str(real));
    if (policy_read_file(path, COMPARED_MAX, &a, &text, &e) != 0) {
        jsonw_kv(w, "state", SPAN("unreadable"));
        jsonw_kv(w, "why", span_str(e.text));
    } else {
        digest_of(text, &now);
        jsonw_kv(w, "state", memcmp(now.b, was->b, DIGEST_BYTES) == 0 ? SPAN("same") : SPAN("changed"));
    }
    jsonw_end_object(w);
    arena_free(&a);
}

/* Those of the operator; packs and time zones are the installation's. */
static bool is_compared(uint8_t kind)
{
    return kind == POLICY_INPUT_FILE || kind == POLICY_INPUT_FLOORS || kind == POLICY_REF_CA ||
           kind == POLICY_REF_INCLUDE;
}

static void put_files(const struct parent *p, const struct stored *s, struct jsonw *w)
{
    size_t n = 0;

    jsonw_kv_array(w, "files");
    if (p->args.config != NULL)
        put_file(w, "configuration", span_str(p->args.config), &p->config->text);
    for (size_t i = 0; i < s->n && n < STATUS_FILES; i++)
        if (is_compared(s->v[i].kind)) {
            put_file(w, stored_kind(s->v[i].kind), s->v[i].name, &s->v[i].sha256);
            n++;
        }
    jsonw_end_array(w);
}

/* The texts that were read last. A version that is pinned was made of none: then those it is kept with, which may
 * differ from an equal version's in what has no meaning. */
static void put_policy(const struct parent *p, struct jsonw *w)
{
    char hex[STORED_HEX + 1], dir[VERSIONS_PATH];
    struct stored s = {.n = 0};
    struct span bundle = SPAN_NONE;
    int bad = memfd_map(p->policy.bundle, STORED_BYTES_MAX + STORED_MANIFEST_MAX, &bundle);

    hex_text(span_of(p->policy.digest.b, DIGEST_BYTES), hex);
    if (bad == 0)
        bad = stored_get(bundle, &s, NULL);
    else if (versions_dir(p->config->state_dir, dir, NULL) == 0)
        bad = stored_open(dir, hex, &s, NULL);
    jsonw_kv(w, "policy", span_str(hex));
    jsonw_kv_u64(w, "in_force_ms", p->in_force_ms);
    if (bad == 0) {
        jsonw_kv(w, "policy_name", span_first(s.name, 200));
        jsonw_kv_u64(w, "rules", s.rules);
    }
    put_files(p, &s, w);
    put_pin(&p->pin, w);
    stored_free(&s);
    memfd_unmap(&bundle);
}

static void put_listeners(const struct parent *p, struct jsonw *w)
{
    static const char *const whose[] = {[IDENTITY_SANDBOX] = "sandbox",
                                        [IDENTITY_TOKEN] = "token",
                                        [IDENTITY_SOURCE] = "source",
                                        [IDENTITY_CERTIFICATE] = "certificate"};
    char url[CONFIG_PATH];

    jsonw_kv_array(w, "listeners");
    for (size_t i = 0; i < p->nlisteners; i++) {
        const struct listener *l = &p->listeners[i];
        if (l->fd < 0 || l->conf == NULL)
            continue;
        parent_listener_url(l, url, sizeof(url));
        jsonw_object(w);
        jsonw_kv(w, "name", span_str(l->conf->name));
        jsonw_kv(w, "way", span_str(parent_listener_way(l)));
        jsonw_kv(w, "url", span_str(url));
        jsonw_kv(w, "identity", span_str(whose[l->conf->identity]));
        if (l->conf->identity == IDENTITY_SANDBOX)
            jsonw_kv(w, "sandbox", span_str(l->conf->sandbox));
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void put_roles(const struct parent *p, struct jsonw *w)
{
    jsonw_kv_array(w, "roles");
    for (const struct child *o = p->children; o != NULL; o = o->next) {
        jsonw_object(w);
        jsonw_kv(w, "role", span_str(role_name(o->role)));
        if (o->role == ROLE_BROKER)
            jsonw_kv(w, "does", span_str(duty_words(duty_of(o->instance))));
        jsonw_kv_u64(w, "pid", (uint64_t)o->pid);
        jsonw_kv_bool(w, "ready", o->ready);
        jsonw_kv_u64(w, "fails", o->fails);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_kv_array(w, "refused");
    for (size_t i = 0; i < p->refused.n; i++) {
        jsonw_object(w);
        jsonw_kv(w, "listener", span_str(p->refused.row[i].listener));
        jsonw_kv(w, "code", span_str(p->refused.row[i].code));
        jsonw_kv_u64(w, "count", p->refused.row[i].count);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void put_boxes(const struct parent *p, struct jsonw *w)
{
    uint64_t started = 0, paused = 0, waiting = 0;

    for (size_t i = 0; i < BOXES_MAX; i++)
        if (p->boxes[i].pid > 0) {
            bool waits = p->boxes[i].name[0] == '\0';
            waiting += waits;
            started += !waits;
            paused += p->boxes[i].way != PAUSE_NONE && p->boxes[i].looks == 0;
        }
    jsonw_kv_object(w, "sandboxes");
    jsonw_kv_u64(w, "started", started);
    jsonw_kv_u64(w, "paused", paused);
    jsonw_kv_u64(w, "waiting", waiting);
    jsonw_end_object(w);
}

void parent_status(struct parent *p, struct child *c, struct frame *f)
{
    struct dynbuf *b, json;
    struct jsonw w;

    dynbuf_init(&json, STATUS_MAX);
    jsonw_begin(&w, &json);
    jsonw_object(&w);
    jsonw_kv(&w, "version", SPAN(PACKAGE_VERSION));
    jsonw_kv(&w, "mode", p->config->shadow ? SPAN("shadow") : SPAN("enforce"));
    jsonw_kv_u64(&w, "time_ms", loop_wall(p->loop));
    jsonw_kv_u64(&w, "started_ms", p->started_ms);
    jsonw_kv(&w, "state_dir", span_str(p->config->state_dir));
    put_policy(p, &w);
    if (p->needs_restart[0] != '\0')
        jsonw_kv(&w, "needs_restart", span_str(p->needs_restart));
    put_listeners(p, &w);
    put_roles(p, &w);
    put_boxes(p, &w);
    jsonw_end_object(&w);
    if (dynbuf_ok(&json) && (b = chan_begin(c->chan, M_STATUS, f->id)) != NULL) {
        msg_put_span(b, dynbuf_span(&json));
        (void)chan_commit(c->chan);
    }
    dynbuf_free(&json);
}
