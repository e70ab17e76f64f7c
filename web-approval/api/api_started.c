/* Sandboxes that the warden runs: /api/v1/sandboxes/start. Which they are and of which generation, the ledger knows;
 * what runs, the warden (api_listed.c). Their end: api_ended.c. */
#include <stdio.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "proxy/wire_ticket.h"
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/api/api.h"
#include "web-approval/broker/broker.h"
#include "web-approval/dock.h"
#include "web-approval/api/steps.h"
#include "web-approval/route.h"

enum {
    MIB = 1024 * 1024,
    WHY_MAX = 512,
    SESSION_MAX = 256,
    COMMAND_SAID = 1024,  /* bytes of a command in the audit */
    NOTE_MAX = 16 * 1024, /* each of them escaped, and each word empty but for one; the ledger takes no more */
    LIFE_S = 3600,
};

static void note(struct exchange *x, const char *kind, struct span sandbox, const struct json *command, uint64_t step)
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
    if (step > 0)
        jsonw_kv_u64(&w, "step", step);
    jsonw_end_object(&w);
    if (dynbuf_ok(&b))
        ask_note(x->desk, kind, dynbuf_span(&b));
    else
        log_error("the audit misses an operator's act (%s): no memory", kind);
    dynbuf_free(&b);
}

void api_started_note(struct exchange *x, const char *kind, struct span sandbox, const struct json *command)
{
    note(x, kind, sandbox, command, 0);
}

void api_exec_note(struct exchange *x, const struct json *command, uint64_t step)
{
    note(x, "sandbox-exec", x->arg, command, step);
}

/* --- a start -------------------------------------------------------------------- */

void api_started_not_wanted(struct desk *d, struct span name)
{
    struct dynbuf *b = d->warden ? chan_begin(d->warden, M_SB_DESTROY, ++d->last_id) : NULL;

    if (!b)
        return;
    msg_put_span(b, name);
    (void)chan_commit(d->warden);
}

/* What the ledger gave a generation does not run. */
void api_started_over(struct desk *d, struct span name, uint64_t generation)
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

    if (s->borrows && !s->wakes)
        api_checkpoint_forget(x->desk, s->tenant, s->found);
    if (msg_end(&m) != 0) {
        why = SPAN("the warden did not answer");
        api_started_not_wanted(x->desk, span_str(s->name));
    }
    if (m.bad || !ok) {
        api_started_over(x->desk, span_str(s->name), s->generation);
        bool none = span_eq(why, SPAN(ORDER_NO_SUCH));
        reply_problem(x, none ? 404 : 503, none ? "No such checkpoint" : "Not started",
                      "the sandbox was not started: %.*s", SPAN_FMT(why));
        return;
    }
    api_reach_note(x, s);
    if (s->from.n > 0)
        api_checkpoint_note(x, "sandbox-restore", span_str(s->name), s->from);
    if (s->then) {
        s->then(x);
        return;
    }
    reply_json(x, 201, &w);
    jsonw_object(&w);
    api_box_put(&w, &s->box, s->generation, version);
    api_egress_put(x, &w, &s->box);
    jsonw_kv_u64(&w, "timeout", s->timeout_s);
    if (s->from.n > 0)
        jsonw_kv(&w, "from", s->from);
    jsonw_end_object(&w);
}

static void ask_warden(struct exchange *x)
{
    struct starting *s = x->step;
    struct dynbuf *b;

    if (!(b = ask_begin(x, ASK_WARDEN, s->from.n > 0 ? M_SB_START_FROM : M_SB_START, M_SB_STARTED, started)))
        return;
    if (s->from.n > 0) {
        ask_longer(x, CHECKPOINT_MS);
        msg_put_span(b, s->tenant);
        msg_put_span(b, s->found);
        msg_put_u8(b, s->borrows || s->of_step || s->wakes);
    }
    wire_put_box(b, &s->box);
    msg_put_u64(b, s->generation);
    msg_put_u64(b, s->cpu_percent);
    msg_put_u64(b, s->timeout_s * 1000);
    msg_put_u8(b, s->strict);
    msg_put_u8(b, s->bound);
    s->asked = true;
    ask_send(x);
}

/* Nobody could open it: then it is not started. */
static void access_put(struct exchange *x, struct frame *f)
{
    const struct starting *s = x->step;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);

    if (msg_end(&m) == 0 && ok) {
        ask_warden(x);
        return;
    }
    api_started_over(x->desk, span_str(s->name), s->generation);
    reply_problem(x, 503, "Not written", "the ledger did not take what the sandbox is opened with: %.*s",
                  SPAN_FMT(why));
}

static void put_done(struct exchange *x, struct frame *f)
{
    struct starting *s = x->step;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);
    struct sandbox_row row;
    struct err e;

    if (msg_end(&m) != 0 || !ok) {
        reply_problem(x, 503, "Not written", "the ledger did not take the sandbox: %.*s", SPAN_FMT(why));
        return;
    }
    if (desk_store_sandbox(x->desk->store, span_str(s->name), &x->arena, &row, &e) != 1) {
        reply_problem(x, 503, "Not written", "the ledger's row of the sandbox cannot be read");
        return;
    }
    s->generation = row.generation;
    const struct token_asked t = {s->box.name, span_str(x->caller.key), span_str(x->caller.tenant), s->note,
                                  s->access};
    if (x->place == PLACE_DOCK && !x->caller.broker && !s->wakes)
        api_token_put(x, &t, access_put);
    else
        ask_warden(x);
}

/* Those that were let through and do not run yet: the warden lists a sandbox when it is up. */
static int starts_of(const struct exchange *x)
{
    int n = 0;

    for (size_t i = 0; i < DESK_ASKS; i++) {
        const struct ask *a = &x->desk->asks[i];
        n += a->id != 0 && (a->fn == put_done || a->fn == access_put || a->fn == started) &&
             a->x->place == PLACE_DOCK && span_eq(span_str(a->x->caller.tenant), span_str(x->caller.tenant));
    }
    return n;
}

/* A running one keeps its generation: it is asked for before another one begins. */
static void none_runs(struct exchange *x, struct frame *f)
{
    struct starting *s = x->step;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    unsigned n = msg_get_u16(&m);
    bool runs = false;
    int own = 0, of_tenant = x->place == PLACE_DOCK ? starts_of(x) : 0;
    struct started one;
    struct dynbuf *b;

    for (unsigned i = 0; i < n && !m.bad && own >= 0; i++) {
        api_started_get(&m, &one);
        runs |= span_eq(one.box.name, s->box.name);
        own = x->place == PLACE_DOCK ? dock_owns(x, one.box.name, NULL) : 0;
        of_tenant += own;
    }
    if (own < 0)
        return;
    if (of_tenant >= DOCK_TENANT_BOXES) {
        reply_problem(x, 429, "Too many", "%d sandboxes of this tenant run, as many as may at once; end one",
                      of_tenant);
        return;
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
    struct wire_sandbox put = {.name = s->box.name,
                               .session = s->session,
                               .kind = SPAN("started"),
                               .owner = s->owner.n ? s->owner : span_str(x->operator),
                               .tenant = s->tenant,
                               .egress = {s->box.egress_requests, s->box.egress_bytes},
                               .reach = s->reach,
                               .egress_epoch = s->wakes, /* as before, and what was used is used */
                               .generation = 1};
    api_started_label(&put, &s->box);
    if (!(b = ask_begin(x, ASK_LEDGER, s->wakes ? M_SANDBOX_WAKE : M_SANDBOX_PUT, M_SANDBOX_DONE, put_done)))
        return;
    wire_put_sandbox(b, &put);
    ask_send(x);
}

/* What its files are. Whatever the name means later, this is what is started. */
static void image_found(struct exchange *x, struct frame *f)
{
    struct starting *s = x->step;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool there = msg_get_bool(&m);
    struct span digest = msg_get_span(&m, BOX_DIGEST_MAX), why = msg_get_span(&m, WHY_MAX);

    if (msg_end(&m) != 0 || (digest.n > 0 && !box_digest_ok(digest)))
        reply_problem(x, 503, "Not possible now", "the warden does not answer; try again in a moment");
    else if (!there && why.n > 0)
        reply_problem(x, 503, "Not possible now", "its image cannot be found: %.*s", SPAN_FMT(why));
    else if ((!there || (s->image[0] && digest.n == 0)) && s->wakes)
        reply_problem(x, 503, "Not restored",
                      "the sandbox is idle still: its image %s is not there any more, and `countersign image import "
                      "DIR %s` makes one that it is restored with",
                      s->image, s->image);
    else if (!there || (s->image[0] && digest.n == 0))
        reply_problem(x, 404, "No such image", "there is no image %s: `countersign image import DIR %s` makes one",
                      s->image, s->image);
    else if (s->wanted.n > 0 && !span_eq(s->wanted, digest))
        reply_problem(x, 409, "Another image", "its image is %s, which is not any more what it was: %.*s, not %.*s",
                      s->image[0] ? s->image : "the machine's own files",
                      SPAN_FMT(digest.n ? digest : SPAN("unknown")), SPAN_FMT(s->wanted));
    if (x->status != 0)
        return;
    s->another = s->wakes && s->image[0] && !span_eq(digest, span_str(s->digest));
    (void)snprintf(s->digest, sizeof(s->digest), "%.*s", SPAN_FMT(digest));
    s->box.image = span_str(s->image);
    s->box.digest = span_str(s->digest);
    if (ask_begin(x, ASK_WARDEN, M_SB_LIST, M_SB_LISTED, none_runs))
        ask_send(x);
}

/* Of what is another tenant's no more is said than that its name is taken. */
static bool is_own(const struct exchange *x, const struct sandbox_row *r)
{
    return x->place != PLACE_DOCK || span_eq(r->tenant, span_str(x->caller.tenant));
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
    if (given && broker_name_free(x, given->text) != 0)
        return -1;
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
    else if (rc == 1 && span_eq(old.kind, SPAN("idle")) && is_own(x, &old))
        reply_problem(x, 409, "It is idle",
                      "a sandbox of this name is idle: `countersign sandbox resume %s` restores it, and `destroy` "
                      "ends it",
                      out);
    else if (rc == 1 && !span_eq(old.kind, SPAN("started")) && !span_eq(old.kind, SPAN("ended")) &&
             !span_eq(old.kind, SPAN("idle")))
        reply_problem(x, 409, "Name taken",
                      "a sandbox of this name exists that was not started here; choose another");
    else if (rc == 1 && x->place == PLACE_DOCK && !span_eq(old.tenant, span_str(x->caller.tenant)))
        reply_problem(x, 409, "Name taken", "this name is taken; choose another"); /* and with it its session */
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

static void lane_put(struct starting *s, struct span lane)
{
    (void)snprintf(s->lane, sizeof(s->lane), "%.*s", SPAN_FMT(lane));
    s->box.lane = span_str(s->lane);
}

/* What a start may say. */
enum start_says {
    SAYS_NAME = 0,
    SAYS_SESSION,
    SAYS_LIMITS,
    SAYS_MEMORY,
    SAYS_PIDS,
    SAYS_CPU,
    SAYS_DISK,
    SAYS_FILES,
    SAYS_EGRESS,
    SAYS_TIMEOUT,
    SAYS_IDLE,
    SAYS_FROM,
    SAYS_IMAGE,
    SAYS_LANE,
    SAYS_MOUNTS,
    SAYS_ACCESS,
    SAYS_NOTE,
    SAYS_NETWORK,
    SAYS_REACH,
    STARTS_SAY
};

/* What the dock alone says, and has to, the name too, which none of its callers chooses; and nothing that is an
 * operator's to say: whose session it has, how large it is. -1, answered. */
static int dock_take(struct exchange *x, const struct member f[STARTS_SAY], struct starting *s)
{
    const struct json *access = f[SAYS_ACCESS].value, *note = f[SAYS_NOTE].value;
    bool dock = x->place == PLACE_DOCK, its = true;

    if (x->caller.broker) {
        for (size_t i = 0; i < STARTS_SAY; i++)
            its &= i == SAYS_NAME || i == SAYS_TIMEOUT || i == SAYS_FROM || f[i].value == NULL;
        return broker_take(x, its ? f[SAYS_NAME].value : NULL, s);
    }
    const struct json *network = f[SAYS_NETWORK].value;
    s->note = note ? note->text : SPAN_NONE;
    for (size_t i = 0; i < STARTS_SAY; i++)
        its &= i == SAYS_NAME || i == SAYS_TIMEOUT || i == SAYS_FROM || i >= SAYS_ACCESS || f[i].value == NULL;
    if (dock ? !its || f[SAYS_NAME].value == NULL || json_parse(s->note, &x->arena) == NULL
             : access != NULL || note != NULL || network != NULL || f[SAYS_REACH].value != NULL) {
        reply_problem(
            x, 400, "Bad request",
            "`access`, `note`, `network` and `reach` are the dock's to say, with a `name`, and of the rest but "
            "`timeout` and `from`");
        return -1;
    }
    if (dock && api_reach_take(x, s, f[SAYS_REACH].value) != 0)
        return -1;
    if (dock && network && !network->truth)
        s->reach = REACH_NOTHING; /* nor has what begins with its files */
    if (dock && !span_eq(s->reach, REACH_NOTHING))
        lane_put(s, dock_lane(x->desk, &x->caller));
    return dock ? api_access_take(x, access, &s->access) : 0;
}

bool api_starts_already(const struct desk *d, struct span name)
{
    for (size_t i = 0; i < DESK_ASKS; i++) {
        const struct ask *a = &d->asks[i];
        if (a->id == 0 || (a->fn != api_checkpoint_looked && a->fn != image_found && a->fn != none_runs &&
                           a->fn != put_done && a->fn != access_put && a->fn != started))
            continue;
        const struct starting *s = a->x->step;
        if (span_eq(span_str(s->name), name))
            return true;
    }
    return false;
}

static int image_take(struct exchange *x, const struct json *given)
{
    struct starting *s = x->step;

    if (!given || span_eq(given->text, SPAN("host")))
        return 0;
    if (!box_name_ok(given->text)) {
        reply_problem(x, 400, "Bad request",
                      "an image's name has 1 to %d of a-z 0-9 - . _ and begins with a letter or digit", BOX_NAME_MAX);
        return -1;
    }
    (void)snprintf(s->image, sizeof(s->image), "%.*s", SPAN_FMT(given->text));
    return 0;
}

int api_lane_take(struct exchange *x, struct starting *s, const struct member *lane)
{
    if (!lane->value)
        return 0;
    if (x->place == PLACE_DOCK || !box_name_ok(lane->value->text)) {
        reply_problem(x, 400, "Bad request",
                      x->place == PLACE_DOCK
                          ? "a lane is not the dock's to say"
                          : "a lane's name has 1 to %d of a-z 0-9 - . _ and begins with a letter or digit",
                      BOX_NAME_MAX);
        return -1;
    }
    lane_put(s, lane->value->text);
    return 0;
}

void api_start_go(struct exchange *x)
{
    const struct starting *s = x->step;
    struct dynbuf *b;

    if (api_starts_already(x->desk, s->box.name))
        reply_problem(x, 409, "It starts", "a sandbox of this name is being started");
    else if (s->from.n > 0 && s->found.n == 0)
        api_checkpoint_look(x);
    else if (s->borrows && ask_begin(x, ASK_WARDEN, M_SB_LIST, M_SB_LISTED, none_runs)) /* of the same image */
        ask_send(x);
    else if (!s->borrows && (b = ask_begin(x, ASK_WARDEN, M_SB_IMAGE, M_SB_IMAGE, image_found))) {
        msg_put_span(b, span_str(s->image));
        if (s->wakes && s->image[0])
            msg_put_span(b, span_str(s->digest)); /* the one it had, as long as that is there */
        ask_send(x);
    }
}

/* 0: never. */
static int idle_take(struct exchange *x, struct starting *s, const struct member *idle)
{
    uint64_t seconds = 0;

    if (!idle->value)
        return 0;
    if (api_number(x, idle, &seconds, 0, BOX_IDLE_MAX_MS / 1000) != 0)
        return -1;
    s->box.idle_ms = seconds * 1000;
    return 0;
}

void api_start_begin(const struct desk *d, struct starting *s)
{
    *s = (struct starting){.box = {.memory = (uint64_t)BOX_MEMORY_MIB * MIB,
                                   .pids = BOX_PIDS,
                                   .disk = (uint64_t)BOX_DISK_MIB * MIB,
                                   .files = BOX_FILES,
                                   .idle_ms = d->idle_ms,
                                   .egress_requests = d->egress_requests,
                                   .egress_bytes = d->egress_bytes},
                           .cpu_percent = BOX_CPU_PERCENT,
                           .timeout_s = LIFE_S};
}

int api_start_take(struct exchange *x, struct starting *s, const struct member *name, const struct member *session,
                   const struct member *limits, const struct member *timeout)
{
    if (limits_take(x, limits->value, &s->strict) != 0 ||
        api_number(x, timeout, &s->timeout_s, 1, STARTED_LIFE_MAX_S) != 0 || name_take(x, name->value, s->name) != 0)
        return -1;
    s->tenant = api_tenant(x);
    s->box.name = span_str(s->name);
    s->session = session->value && session->value->text.n ? session->value->text : s->box.name;
    if (s->session.n <= SESSION_MAX)
        return 0;
    reply_problem(x, 400, "Bad request", "a session's name has at most %d bytes", SESSION_MAX);
    return -1;
}

void api_started_start(struct exchange *x)
{
    struct member f[STARTS_SAY] = {
        [SAYS_NAME] = {"name", JSON_STRING, false, NULL},     [SAYS_SESSION] = {"session", JSON_STRING, false, NULL},
        [SAYS_LIMITS] = {"limits", JSON_STRING, false, NULL}, [SAYS_MEMORY] = {"memory", JSON_NUMBER, false, NULL},
        [SAYS_PIDS] = {"pids", JSON_NUMBER, false, NULL},     [SAYS_CPU] = {"cpu_percent", JSON_NUMBER, false, NULL},
        [SAYS_DISK] = {"disk", JSON_NUMBER, false, NULL},     [SAYS_FILES] = {"files", JSON_NUMBER, false, NULL},
        [SAYS_EGRESS] = {"egress", JSON_OBJECT, false, NULL}, [SAYS_TIMEOUT] = {"timeout", JSON_NUMBER, false, NULL},
        [SAYS_IDLE] = {"idle", JSON_NUMBER, false, NULL},     [SAYS_FROM] = {"from", JSON_STRING, false, NULL},
        [SAYS_IMAGE] = {"image", JSON_STRING, false, NULL},   [SAYS_LANE] = {"lane", JSON_STRING, false, NULL},
        [SAYS_MOUNTS] = {"mounts", JSON_ARRAY, false, NULL},  [SAYS_ACCESS] = {"access", JSON_STRING, false, NULL},
        [SAYS_NOTE] = {"note", JSON_STRING, false, NULL},     [SAYS_NETWORK] = {"network", JSON_BOOL, false, NULL},
        [SAYS_REACH] = {"reach", JSON_OBJECT, false, NULL}};
    struct starting *s = arena_alloc(&x->arena, sizeof(*s));

    if (body_members(x, f, sizeof(f) / sizeof(f[0])) != 0)
        return;
    if (!s) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    x->step = s;
    api_start_begin(x->desk, s);
    if (api_number(x, &f[SAYS_MEMORY], &s->box.memory, (uint64_t)BOX_MEMORY_MIN_MIB * MIB, UINT64_C(1) << 50) != 0 ||
        api_number(x, &f[SAYS_PIDS], &s->box.pids, BOX_PIDS_MIN, 4194304) != 0 ||
        api_number(x, &f[SAYS_CPU], &s->cpu_percent, 1, 102400) != 0 ||
        api_number(x, &f[SAYS_DISK], &s->box.disk, (uint64_t)BOX_DISK_MIN_MIB * MIB, UINT64_C(1) << 50) != 0 ||
        api_number(x, &f[SAYS_FILES], &s->box.files, BOX_FILES_MIN, 65536) != 0 ||
        api_egress_take(x, s, f[SAYS_EGRESS].value) != 0 || idle_take(x, s, &f[SAYS_IDLE]) != 0 ||
        api_checkpoint_named(x, f[SAYS_FROM].value, &s->from) != 0 ||
        (s->from.n > 0 && api_checkpoint_place(x) != 0) || dock_take(x, f, s) != 0 ||
        api_start_take(x, s, &f[SAYS_NAME], &f[SAYS_SESSION], &f[SAYS_LIMITS], &f[SAYS_TIMEOUT]) != 0 ||
        api_lane_take(x, s, &f[SAYS_LANE]) != 0 || api_mounts_take(x, s, &f[SAYS_MOUNTS]) != 0)
        return;
    if (image_take(x, f[SAYS_IMAGE].value) == 0)
        api_start_go(x);
}
