/* Sandboxes that the warden runs: /api/v1/sandboxes/start, started, NAME/exec and NAME/destroy. Which they are and of
 * which generation, the ledger knows; what runs, the warden. */
#include <stdio.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "proxy/wire_ticket.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/api/api.h"
#include "web-approval/route.h"

enum {
    MIB = 1024 * 1024,
    WHY_MAX = 512,
    SESSION_MAX = 256,
    COMMAND_SAID = 1024,  /* bytes of a command in the audit */
    NOTE_MAX = 16 * 1024, /* each of them escaped, and each word empty but for one; the ledger takes no more */
    /* when nothing else is asked for */
    MEMORY_MIB = 1024,
    PIDS = 256,
    CPU_PERCENT = 100,
    DISK_MIB = 512,
    FILES = 4096,
    LIFE_S = 3600,
    LIFE_MAX_S = 7 * 86400,
    EXEC_S = 300,
    EXEC_MAX_S = 86400,
    OUTPUT_MIB = 16,
    OUTPUT_MAX_MIB = 1024,
};

/* One that is being started. */
struct starting {
    char name[BOX_NAME_MAX + 1];
    struct span session;
    struct wire_box box;
    uint64_t cpu_percent, timeout_s, generation;
    bool strict;
};

static const char *held_by(unsigned version)
{
    return version == 0 ? "each process for itself (rlimits)" : version == 1 ? "cgroup v1" : "cgroup v2";
}

static void note(struct exchange *x, const char *kind, struct span sandbox, const struct json *command)
{
    struct dynbuf b;
    struct jsonw w;
    size_t said = 0, cut = 0;

    dynbuf_init(&b, NOTE_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "operator", span_str(x->operator));
    jsonw_kv(&w, "sandbox", sandbox);
    if (command)
        jsonw_kv_array(&w, "command");
    for (const struct json *a = command ? command->child : NULL; a; a = a->next) {
        struct span s = span_first(a->text, a->text.n < COMMAND_SAID - said ? a->text.n : COMMAND_SAID - said);
        if (said < COMMAND_SAID)
            jsonw_string(&w, s);
        said += s.n;
        cut += a->text.n - s.n;
    }
    if (command)
        jsonw_end_array(&w);
    if (cut > 0)
        jsonw_kv_u64(&w, "cut", cut);
    jsonw_end_object(&w);
    if (dynbuf_ok(&b))
        ask_note(x->desk, kind, dynbuf_span(&b));
    else
        log_error("the audit misses an operator's act (%s): no memory", kind);
    dynbuf_free(&b);
}

/* --- which there are ---------------------------------------------------------- */

struct started {
    struct wire_box box;
    uint64_t generation, age_ms, left_ms;
    unsigned version, commands;
};

static void get_started(struct msg_in *m, struct started *s)
{
    (void)!wire_get_box(m, &s->box, false);
    s->generation = msg_get_u64(m);
    s->age_ms = msg_get_u64(m);
    s->left_ms = msg_get_u64(m);
    s->version = msg_get_u8(m);
    s->commands = msg_get_u16(m);
}

static void put_box(struct jsonw *w, const struct wire_box *b, uint64_t generation, unsigned version)
{
    jsonw_kv(w, "name", b->name);
    jsonw_kv_u64(w, "generation", generation);
    jsonw_kv(w, "limits", version ? SPAN("strict") : SPAN("approximate"));
    jsonw_kv(w, "held_by", span_str(held_by(version)));
    jsonw_kv_u64(w, "memory", b->memory);
    jsonw_kv_u64(w, "pids", b->pids);
    jsonw_kv_u64(w, "disk", b->disk);
    jsonw_kv_u64(w, "files", b->files);
}

static void listed(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    unsigned n = msg_get_u16(&m);
    struct started s;
    struct jsonw w;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "started");
    for (unsigned i = 0; i < n && !m.bad; i++) {
        get_started(&m, &s);
        jsonw_object(&w);
        put_box(&w, &s.box, s.generation, s.version);
        jsonw_kv_u64(&w, "age_ms", s.age_ms);
        jsonw_kv_u64(&w, "left_ms", s.left_ms);
        jsonw_kv_u64(&w, "commands", s.commands);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now",
                      "the warden did not say which sandboxes run; try again in a moment");
}

void api_started(struct exchange *x)
{
    if (ask_begin(x, ASK_WARDEN, M_SB_LIST, M_SB_LISTED, listed))
        ask_send(x);
}

/* --- a start -------------------------------------------------------------------- */

/* It may come up yet, and nobody would know. */
static void not_wanted(struct desk *d, struct span name)
{
    struct dynbuf *b = d->warden ? chan_begin(d->warden, M_SB_DESTROY, ++d->last_id) : NULL;

    if (!b)
        return;
    msg_put_span(b, name);
    (void)chan_commit(d->warden);
}

/* What the ledger gave a generation does not run. */
static void not_begun(struct desk *d, struct span name, uint64_t generation)
{
    struct dynbuf *b = d->ledger ? chan_begin(d->ledger, M_SANDBOX_ENDED, ++d->last_id) : NULL;

    if (!b)
        return;
    msg_put_span(b, name);
    msg_put_u64(b, generation);
    (void)chan_commit(d->ledger);
}

static void started(struct exchange *x, struct frame *f)
{
    const struct starting *s = x->step;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);
    unsigned version = msg_get_u8(&m);
    struct jsonw w;

    if (msg_end(&m) != 0) {
        why = SPAN("the warden did not answer");
        not_wanted(x->desk, span_str(s->name));
    }
    if (m.bad || !ok) {
        not_begun(x->desk, span_str(s->name), s->generation);
        reply_problem(x, 503, "Not started", "the sandbox was not started: %.*s", SPAN_FMT(why));
        return;
    }
    note(x, "sandbox-start", span_str(s->name), NULL);
    reply_json(x, 201, &w);
    jsonw_object(&w);
    put_box(&w, &s->box, s->generation, version);
    jsonw_kv_u64(&w, "timeout", s->timeout_s);
    jsonw_end_object(&w);
}

static void put_done(struct exchange *x, struct frame *f)
{
    struct starting *s = x->step;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);
    struct sandbox_row row;
    struct err e;
    struct dynbuf *b;

    if (msg_end(&m) != 0 || !ok) {
        reply_problem(x, 503, "Not written", "the ledger did not take the sandbox: %.*s", SPAN_FMT(why));
        return;
    }
    if (desk_store_sandbox(x->desk->store, span_str(s->name), &x->arena, &row, &e) != 1) {
        reply_problem(x, 503, "Not written", "the ledger's row of the sandbox cannot be read");
        return;
    }
    s->generation = row.generation;
    if (!(b = ask_begin(x, ASK_WARDEN, M_SB_START, M_SB_STARTED, started)))
        return;
    wire_put_box(b, &s->box);
    msg_put_u64(b, s->generation);
    msg_put_u64(b, s->cpu_percent);
    msg_put_u64(b, s->timeout_s * 1000);
    msg_put_u8(b, s->strict);
    ask_send(x);
}

/* A running one keeps its generation: it is asked for before another one begins. */
static void none_runs(struct exchange *x, struct frame *f)
{
    struct starting *s = x->step;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    unsigned n = msg_get_u16(&m);
    bool runs = false;
    struct started one;
    struct dynbuf *b;

    for (unsigned i = 0; i < n && !m.bad; i++) {
        get_started(&m, &one);
        runs |= span_eq(one.box.name, s->box.name);
    }
    if (msg_end(&m) != 0) {
        reply_problem(x, 503, "Not possible now", "the warden does not answer; try again in a moment");
        return;
    }
    if (runs) {
        reply_problem(x, 409, "It runs", "a sandbox of this name runs: `countersign sandbox destroy %s` ends it",
                      s->name);
        return;
    }
    const struct wire_sandbox put = {.name = s->box.name,
                                     .session = s->session,
                                     .kind = SPAN("started"),
                                     .owner = span_str(x->operator),
                                     .tenant = SPAN("default"),
                                     .generation = 1};
    if (!(b = ask_begin(x, ASK_LEDGER, M_SANDBOX_PUT, M_SANDBOX_DONE, put_done)))
        return;
    wire_put_sandbox(b, &put);
    ask_send(x);
}

/* A whole number within bounds; -1, answered. */
static int number(struct exchange *x, const struct member *f, uint64_t *to, uint64_t least, uint64_t most)
{
    if (!f->value || (span_u64(f->value->text, most, to) == 0 && *to >= least))
        return 0;
    reply_problem(x, 400, "Bad request", "`%s` is a whole number from %llu to %llu", f->name,
                  (unsigned long long)least, (unsigned long long)most);
    return -1;
}

static int name_take(struct exchange *x, const struct json *given, char out[BOX_NAME_MAX + 1])
{
    char text[ID_TEXT + 1];
    struct sandbox_row old;
    struct err e;
    struct id id;

    if (given && !box_name_ok(given->text)) {
        reply_problem(x, 400, "Bad request",
                      "a sandbox's name has 1 to %d of a-z 0-9 - . _ and begins with a letter or digit",
                      BOX_NAME_MAX);
        return -1;
    }
    if (!given && id_new(&id) != 0) {
        reply_problem(x, 503, "Not possible now", "the system has no randomness to give");
        return -1;
    }
    if (given)
        (void)snprintf(out, BOX_NAME_MAX + 1, "%.*s", SPAN_FMT(given->text));
    else {
        id_text(&id, text);
        (void)snprintf(out, BOX_NAME_MAX + 1, "sb-%.10s", text);
    }
    int rc = desk_store_sandbox(x->desk->store, span_str(out), &x->arena, &old, &e);
    if (rc < 0)
        reply_unable(x, &e);
    else if (rc == 1 && !span_eq(old.kind, SPAN("started")) && !span_eq(old.kind, SPAN("ended")))
        reply_problem(x, 409, "Name taken",
                      "a sandbox of this name exists that was not started here; choose another");
    return x->status != 0 ? -1 : 0;
}

/* Root's are held, or nothing starts; an ordinary user's as well as they can be, which the answer says. */
static int limits_take(struct exchange *x, const struct json *given, bool *strict)
{
    *strict = given ? span_eq(given->text, SPAN("strict")) : x->desk->owner_uid == 0;
    if (!given || *strict || span_eq(given->text, SPAN("approximate")))
        return 0;
    reply_problem(x, 400, "Bad request", "`limits` is strict or approximate");
    return -1;
}

/* From the first question to the last one of another start is waited for: one of the name has no row yet that says
 * so, and the warden lists it when it runs. */
static bool starts_already(const struct desk *d, struct span name)
{
    for (size_t i = 0; i < DESK_ASKS; i++) {
        const struct ask *a = &d->asks[i];
        if (a->id == 0 || (a->fn != none_runs && a->fn != put_done && a->fn != started))
            continue;
        const struct starting *s = a->x->step;
        if (span_eq(span_str(s->name), name))
            return true;
    }
    return false;
}

void api_started_start(struct exchange *x)
{
    struct member f[] = {{"name", JSON_STRING, false, NULL},   {"session", JSON_STRING, false, NULL},
                         {"limits", JSON_STRING, false, NULL}, {"memory", JSON_NUMBER, false, NULL},
                         {"pids", JSON_NUMBER, false, NULL},   {"cpu_percent", JSON_NUMBER, false, NULL},
                         {"disk", JSON_NUMBER, false, NULL},   {"files", JSON_NUMBER, false, NULL},
                         {"timeout", JSON_NUMBER, false, NULL}};
    struct starting *s = arena_alloc(&x->arena, sizeof(*s));

    if (body_members(x, f, sizeof(f) / sizeof(f[0])) != 0)
        return;
    if (!s) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    x->step = s;
    s->box = (struct wire_box){SPAN_NONE, (uint64_t)MEMORY_MIB * MIB, PIDS, (uint64_t)DISK_MIB * MIB, FILES};
    s->cpu_percent = CPU_PERCENT;
    s->timeout_s = LIFE_S;
    if (limits_take(x, f[2].value, &s->strict) != 0 ||
        number(x, &f[3], &s->box.memory, (uint64_t)BOX_MEMORY_MIN_MIB * MIB, UINT64_C(1) << 50) != 0 ||
        number(x, &f[4], &s->box.pids, BOX_PIDS_MIN, 4194304) != 0 ||
        number(x, &f[5], &s->cpu_percent, 1, 102400) != 0 ||
        number(x, &f[6], &s->box.disk, (uint64_t)BOX_DISK_MIN_MIB * MIB, UINT64_C(1) << 50) != 0 ||
        number(x, &f[7], &s->box.files, BOX_FILES_MIN, 65536) != 0 ||
        number(x, &f[8], &s->timeout_s, 1, LIFE_MAX_S) != 0 || name_take(x, f[0].value, s->name) != 0)
        return;
    s->box.name = span_str(s->name);
    s->session = f[1].value && f[1].value->text.n ? f[1].value->text : s->box.name;
    if (s->session.n > SESSION_MAX) {
        reply_problem(x, 400, "Bad request", "a session's name has at most %d bytes", SESSION_MAX);
        return;
    }
    if (starts_already(x->desk, s->box.name))
        reply_problem(x, 409, "It starts", "a sandbox of this name is being started");
    else if (ask_begin(x, ASK_WARDEN, M_SB_LIST, M_SB_LISTED, none_runs))
        ask_send(x);
}

/* --- a command ------------------------------------------------------------------- */

/* -1, answered: not texts, or too many. */
static int words_take(struct exchange *x, const struct json *list, size_t *n)
{
    for (const struct json *w = list ? list->child : NULL; w; w = w->next)
        if (w->type != JSON_STRING || ++*n > TALK_WORDS_MAX - 2) {
            reply_problem(x, 400, "Bad request", "`argv` and `env` are lists of texts, at most %d together",
                          TALK_WORDS_MAX - 2);
            return -1;
        }
    return 0;
}

static void put_words(struct dynbuf *b, const struct json *list)
{
    for (const struct json *w = list ? list->child : NULL; w; w = w->next)
        msg_put_span(b, w->text);
}

void api_started_exec(struct exchange *x)
{
    struct member f[] = {{"argv", JSON_ARRAY, true, NULL},
                         {"env", JSON_ARRAY, false, NULL},
                         {"dir", JSON_STRING, false, NULL},
                         {"timeout", JSON_NUMBER, false, NULL},
                         {"output", JSON_NUMBER, false, NULL}};
    uint64_t timeout_s = EXEC_S, output = (uint64_t)OUTPUT_MIB * MIB;
    size_t words = 0;
    struct desk *d = x->desk;

    if (body_members(x, f, sizeof(f) / sizeof(f[0])) != 0 || number(x, &f[3], &timeout_s, 1, EXEC_MAX_S) != 0 ||
        number(x, &f[4], &output, 0, (uint64_t)OUTPUT_MAX_MIB * MIB) != 0 || words_take(x, f[0].value, &words) != 0 ||
        words_take(x, f[1].value, &words) != 0)
        return;
    if (d->follows >= DESK_FOLLOWS) { /* before anything runs: who is refused may ask again */
        reply_problem(x, 503, "Too many",
                      "%d commands are followed, as many as may be at once; try again in a moment", DESK_FOLLOWS);
        return;
    }
    struct dynbuf *b = d->warden && box_name_ok(x->arg) ? chan_begin(d->warden, M_SB_EXEC, ++d->last_id) : NULL;
    if (!b) {
        reply_problem(x, box_name_ok(x->arg) ? 503 : 404, "Not possible now", "%s",
                      box_name_ok(x->arg) ? "the warden does not run at the moment" : "there is no such sandbox");
        return;
    }
    msg_put_span(b, x->arg);
    msg_put_u64(b, timeout_s * 1000);
    msg_put_u64(b, output);
    msg_put_u16(b, (uint16_t)f[0].value->count);
    msg_put_u16(b, (uint16_t)(f[1].value ? f[1].value->count : 0));
    put_words(b, f[0].value);
    put_words(b, f[1].value);
    msg_put_span(b, f[2].value ? f[2].value->text : SPAN_NONE);
    if (chan_commit(d->warden) != 0) {
        reply_problem(x, 503, "Not possible now", "the warden does not take more");
        return;
    }
    x->follow = d->last_id; /* before the note, which takes the next */
    note(x, "sandbox-exec", x->arg, f[0].value);
    x->status = 200;
    x->type = "text/event-stream";
    x->stream = true;
    (void)dynbuf_add(&x->out, SPAN("event: hello\ndata: {}\n\n"));
}

static void put_exit(struct dynbuf *event, struct msg_in *m)
{
    static const char *const ends[] = {[SB_LOST] = "lost",
                                       [SB_EXITED] = "exited",
                                       [SB_SIGNALLED] = "signalled",
                                       [SB_NOT_STARTED] = "not-started",
                                       [SB_TIMED_OUT] = "timed-out"};
    static const char *const numbers[] = {"said", "cut", "user_us", "system_us", "memory_kib"};
    unsigned how = msg_get_u8(m);
    struct jsonw w;

    (void)dynbuf_add(event, SPAN("event: exit\ndata: "));
    jsonw_begin(&w, event);
    jsonw_object(&w);
    jsonw_kv(&w, "how", span_str(ends[how <= SB_TIMED_OUT ? how : SB_LOST]));
    jsonw_kv_u64(&w, how == SB_SIGNALLED ? "signal" : "status", msg_get_u8(m));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        jsonw_kv_u64(&w, numbers[i], msg_get_u64(m));
    jsonw_kv(&w, "why", msg_get_span(m, WHY_MAX));
    jsonw_end_object(&w);
    (void)dynbuf_add(event, SPAN("\n\n"));
}

int api_started_heard(struct frame *f, unsigned *which, struct span *bytes, struct dynbuf *event)
{
    struct msg_in m = msg_in(f->payload);

    if (f->type == M_SB_EXIT) {
        *which = 0;
        put_exit(event, &m);
        return msg_end(&m) == 0 && dynbuf_ok(event) ? 0 : -1;
    }
    *which = msg_get_u8(&m);
    *bytes = m.rest;
    return m.bad || *which < 1 || *which > 2 || m.rest.n == 0 ? -1 : 0;
}

void api_started_output(struct dynbuf *event, unsigned which, struct span bytes)
{
    (void)dynbuf_addf(event, "event: %s\ndata: ", which == 1 ? "stdout" : "stderr");
    uint8_t *room = dynbuf_room(event, 4 * (bytes.n / 3 + 1) + 1);
    if (room)
        dynbuf_grew(event, base64_encode(bytes, (char *)room));
    (void)dynbuf_add(event, SPAN("\n\n"));
}

void api_started_lost(struct dynbuf *event)
{
    (void)dynbuf_add(event, SPAN("event: exit\ndata: {\"how\":\"lost\",\"why\":\"the warden ended\"}\n\n"));
}

void api_started_taken(struct desk *d, uint64_t follow, uint32_t bytes)
{
    struct dynbuf *b = d->warden ? chan_begin(d->warden, M_SB_TAKEN, follow) : NULL;

    if (!b)
        return;
    msg_put_u32(b, bytes);
    (void)chan_commit(d->warden);
}

void api_started_unfollow(struct desk *d, uint64_t follow)
{
    if (d->warden && chan_begin(d->warden, M_SB_KILL, follow))
        (void)chan_commit(d->warden);
}

/* --- an end ---------------------------------------------------------------------- */

/* One that is being ended. */
struct ending {
    uint64_t generation; /* by the ledger; 0: it knows of none that runs */
    bool there;
};

static void ended(struct exchange *x)
{
    const struct ending *e = x->step;

    if (!e->there) {
        reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
        return;
    }
    note(x, "sandbox-destroy", x->arg, NULL);
    reply_empty(x, 204);
}

static void end_written(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);

    if (msg_end(&m) == 0 && ok)
        ended(x);
    else
        reply_problem(
            x, 503, "Not written",
            "the sandbox does not run any more, but its leases may live: the ledger did not write it down%s%.*s; "
            "ask again",
            why.n ? ": " : "", SPAN_FMT(why));
}

/* The warden has told the ledger as well, on a way of its own: here it is waited for. */
static void destroyed(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct ending *e = x->step;
    struct dynbuf *b;

    e->there = msg_get_bool(&m);
    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now",
                      "the warden did not say that nothing of the sandbox is left; ask again in a moment");
    else if (e->generation == 0)
        ended(x);
    else if ((b = ask_begin(x, ASK_LEDGER, M_SANDBOX_ENDED, M_SANDBOX_DONE, end_written))) {
        msg_put_span(b, x->arg);
        msg_put_u64(b, e->generation);
        ask_send(x);
    }
}

void api_started_destroy(struct exchange *x)
{
    struct ending *e = arena_alloc(&x->arena, sizeof(*e));
    struct sandbox_row row;
    struct err err;
    struct dynbuf *b;

    if (!box_name_ok(x->arg)) {
        reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
        return;
    }
    if (!e) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    x->step = e;
    if (desk_store_sandbox(x->desk->store, x->arg, &x->arena, &row, &err) == 1 && span_eq(row.kind, SPAN("started")))
        e->generation = row.generation;
    if ((b = ask_begin(x, ASK_WARDEN, M_SB_DESTROY, M_SB_DESTROYED, destroyed))) {
        msg_put_span(b, x->arg);
        ask_send(x);
    }
}
