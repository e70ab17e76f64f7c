/* Commands in sandboxes that the warden runs: /api/v1/sandboxes/NAME/exec and attach, answered as long as one runs
 * (follow.c), and what such an answer is given, /api/v1/streams/ID/input and resize; NAME/commands and signal. */
#include <signal.h>
#include <stdio.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "policy/scope.h"
#include "proxy/msgs.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/api/steps.h"
#include "web-approval/streams/follow.h"
#include "web-approval/route.h"

enum {
    MIB = 1024 * 1024,
    WHY_MAX = 512,
    /* when nothing else is asked for */
    EXEC_S = 300,
    EXEC_MAX_S = 86400,
    OUTPUT_MIB = 16,
    OUTPUT_MAX_MIB = 1024,
    ROWS = 24,
    COLUMNS = 80,
    SIGNAL_LAST = 64,
    WORDS_MAX = 4096, /* bytes of a command's that are listed; the warden says less */
};

/* --- a command ------------------------------------------------------------------- */

/* What is asked for. */
struct asked {
    const struct json *argv, *env;
    struct span dir, lane; /* lane: its own; empty: its sandbox's */
    uint64_t timeout_s, output;
    enum talk_input input;
    uint64_t size[2]; /* rows and columns of a terminal */
    bool detached, undo;
    uint64_t step; /* undo: what it is called */
};

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

/* Rows and columns of a terminal. -1, answered. */
static int size_take(struct exchange *x, const struct member m[2], uint64_t size[2])
{
    return api_number(x, &m[0], &size[0], 1, UINT16_MAX) != 0 || api_number(x, &m[1], &size[1], 1, UINT16_MAX) != 0
               ? -1
               : 0;
}

/* From the members input, tty, rows and columns. -1, answered. */
static int input_take(struct exchange *x, const struct member m[4], struct asked *a)
{
    bool input = m[0].value && m[0].value->truth, tty = m[1].value && m[1].value->truth;

    if (tty ? m[0].value && !input : m[2].value || m[3].value) {
        reply_problem(x, 400, "Bad request",
                      tty ? "a terminal (`tty`) is an `input`, too" : "`rows` and `columns` are those of a `tty`");
        return -1;
    }
    a->input = tty ? TALK_TERMINAL : input ? TALK_PIPE : TALK_NO_INPUT;
    if (tty) {
        a->size[0] = ROWS;
        a->size[1] = COLUMNS;
        a->output = (uint64_t)OUTPUT_MAX_MIB * MIB; /* whoever works there is not to lose sight of it */
    }
    return size_take(x, &m[2], a->size);
}

/* It lives on without whoever asked, to whom it is not to say or read anything. -1, answered. */
static int detached_take(struct exchange *x, const struct json *detach, const struct member *timeout,
                         const struct member *output, struct asked *a)
{
    a->detached = detach && detach->truth;
    if (!a->detached)
        return 0;
    if (a->input != TALK_NO_INPUT || output->value) {
        reply_problem(x, 400, "Bad request",
                      "a detached command has no `input`, no `tty` and no bound of its `output`");
        return -1;
    }
    if (!timeout->value)
        a->timeout_s = EXEC_MAX_S;
    return 0;
}

/* Which scopes of the policy are opened to it alone. What asks for none would be as if none had been named. -1,
 * answered. */
static int lane_take(struct exchange *x, const struct json *lane, struct asked *a)
{
    const struct policy *p = x->desk->policy;

    if (!lane)
        return 0;
    a->lane = lane->text;
    if (x->place == PLACE_DOCK)
        reply_problem(x, 400, "Bad request", "a `lane` of its own is the operator's to give");
    else if (!box_name_ok(a->lane))
        reply_problem(x, 400, "Bad request", "a lane's name is 1 to %d of a-z 0-9 . _ -", BOX_NAME_MAX);
    else if (!p || !policy_scope_asks(p, SPAN("lane"), a->lane))
        reply_problem(x, 409, "No such lane",
                      "no scope of the policy asks for the label lane with %.*s, and a lane is the scopes that do: "
                      "`scopes: { %.*s: { labels: { lane: [%.*s] } } }` and rules with `scope: %.*s` open one",
                      SPAN_FMT(a->lane), SPAN_FMT(a->lane), SPAN_FMT(a->lane), SPAN_FMT(a->lane));
    else
        return 0;
    return -1;
}

static int asked_take(struct exchange *x, struct asked *a)
{
    struct member f[] = {{"argv", JSON_ARRAY, true, NULL},      {"env", JSON_ARRAY, false, NULL},
                         {"dir", JSON_STRING, false, NULL},     {"timeout", JSON_NUMBER, false, NULL},
                         {"output", JSON_NUMBER, false, NULL},  {"input", JSON_BOOL, false, NULL},
                         {"tty", JSON_BOOL, false, NULL},       {"rows", JSON_NUMBER, false, NULL},
                         {"columns", JSON_NUMBER, false, NULL}, {"detach", JSON_BOOL, false, NULL},
                         {"undo", JSON_BOOL, false, NULL},      {"lane", JSON_STRING, false, NULL}};
    size_t words = 0;

    *a = (struct asked){.timeout_s = EXEC_S, .output = (uint64_t)OUTPUT_MIB * MIB};
    if (body_members(x, f, sizeof(f) / sizeof(f[0])) != 0 ||
        api_number(x, &f[3], &a->timeout_s, 1, EXEC_MAX_S) != 0 || input_take(x, &f[5], a) != 0 ||
        api_number(x, &f[4], &a->output, 0, (uint64_t)OUTPUT_MAX_MIB * MIB) != 0 ||
        words_take(x, f[0].value, &words) != 0 || words_take(x, f[1].value, &words) != 0 ||
        detached_take(x, f[9].value, &f[3], &f[4], a) != 0 || lane_take(x, f[11].value, a) != 0)
        return -1;
    a->undo = f[10].value && f[10].value->truth;
    if (a->undo && x->place == PLACE_DOCK) {
        reply_problem(x, 400, "Bad request", "`undo` is the operator's");
        return -1;
    }
    a->argv = f[0].value;
    a->env = f[1].value;
    a->dir = f[2].value ? f[2].value->text : SPAN_NONE;
    return 0;
}

static void put_words(struct dynbuf *b, const struct json *list)
{
    for (const struct json *w = list ? list->child : NULL; w; w = w->next)
        msg_put_span(b, w->text);
}

static void put_asked(struct dynbuf *b, struct span sandbox, const struct asked *a)
{
    msg_put_span(b, sandbox);
    msg_put_u64(b, a->timeout_s * 1000);
    msg_put_u64(b, a->output);
    msg_put_u8(b, (uint8_t)a->input);
    msg_put_u16(b, (uint16_t)a->size[0]);
    msg_put_u16(b, (uint16_t)a->size[1]);
    msg_put_u8(b, a->detached);
    msg_put_u16(b, (uint16_t)a->argv->count);
    msg_put_u16(b, (uint16_t)(a->env ? a->env->count : 0));
    put_words(b, a->argv);
    put_words(b, a->env);
    msg_put_span(b, a->dir);
    if (a->lane.n > 0)
        msg_put_span(b, a->lane);
}

int api_started_name(struct exchange *x)
{
    if (box_name_ok(x->arg))
        return 0;
    reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
    return -1;
}

/* A message to the warden about a command that is to be followed, which what it says from now on is answered with.
 * NULL: answered; and nothing has begun, who is refused may ask again. */
static struct dynbuf *stream_ask(struct exchange *x, uint16_t type)
{
    struct desk *d = x->desk;

    if (api_started_name(x) != 0 || !share_is_free(x, SHARE_FOLLOW))
        return NULL;
    struct dynbuf *b = d->warden ? chan_begin(d->warden, type, ++d->last_id) : NULL;
    if (!b)
        reply_problem(x, 503, "Not possible now", "the warden does not run at the moment");
    return b;
}

/* What stream_ask began is said; step 0: it is none. -1, answered. */
static int stream_answer(struct exchange *x, uint64_t step)
{
    if (chan_commit(x->desk->warden) != 0) {
        reply_problem(x, 503, "Not possible now", "the warden does not take more");
        return -1;
    }
    x->follow = x->desk->last_id; /* before a note, which takes the next */
    x->status = 200;
    x->type = "text/event-stream";
    x->stream = true;
    (void)dynbuf_addf(&x->out, "event: hello\ndata: {\"stream\":%llu,\"input\":%d", (unsigned long long)x->follow,
                      x->input ? TALK_IN_WINDOW : 0);
    if (x->woke)
        (void)dynbuf_addf(&x->out, ",\"restored\":%llu", (unsigned long long)x->woke);
    if (step)
        (void)dynbuf_addf(&x->out, ",\"step\":%llu", (unsigned long long)step);
    (void)dynbuf_addf(&x->out, "}\n\n");
    return 0;
}

static void detached(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    uint64_t generation = msg_get_u64(&m);
    struct api_command is = {generation, msg_get_u32(&m)};
    struct span why = msg_get_span(&m, WHY_MAX);
    const struct asked *a = x->step;
    struct jsonw w;

    if (msg_end(&m) != 0 || is.number == 0) {
        reply_problem(x, 503, "Not started", "%.*s",
                      SPAN_FMT(m.bad ? SPAN("the warden did not answer: the command may run") : why));
        return;
    }
    api_exec_note(x, a->argv, a->step);
    reply_json(x, 201, &w);
    jsonw_object(&w);
    api_command_put(&w, &is);
    if (x->woke)
        jsonw_kv_u64(&w, "restored", x->woke);
    if (a->step)
        jsonw_kv_u64(&w, "step", a->step);
    jsonw_end_object(&w);
}

static void exec_detached(struct exchange *x, struct asked *a)
{
    struct dynbuf *b = api_started_name(x) == 0 ? ask_begin(x, ASK_WARDEN, M_SB_EXEC, M_SB_DETACHED, detached) : NULL;

    if (!b)
        return;
    put_asked(b, x->arg, a);
    ask_send(x);
}

static void exec_go(struct exchange *x, struct asked *a)
{
    struct dynbuf *b;

    if (a->detached) {
        exec_detached(x, a);
        return;
    }
    if (!(b = stream_ask(x, M_SB_EXEC)))
        return;
    put_asked(b, x->arg, a);
    x->input = a->input != TALK_NO_INPUT;
    x->terminal = a->input == TALK_TERMINAL;
    if (stream_answer(x, a->step) == 0)
        api_exec_note(x, a->argv, a->step);
}

static void kept(struct exchange *x, struct frame *f)
{
    struct asked *a = x->step;

    if (api_step_kept(x, f, &a->step) == 0)
        exec_go(x, a);
}

void api_started_exec(struct exchange *x)
{
    struct asked *a = arena_alloc(&x->arena, sizeof(*a));

    if (!a) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    if (asked_take(x, a) != 0)
        return;
    x->step = a;
    if (a->undo)
        api_step_keep(x, a->argv, kept);
    else
        exec_go(x, a);
}

/* --- those there are -------------------------------------------------------------- */

void api_command_put(struct jsonw *w, const struct api_command *is)
{
    char text[48];

    (void)snprintf(text, sizeof(text), "%llu.%u", (unsigned long long)is->generation, (unsigned)is->number);
    jsonw_kv(w, "command", span_str(text));
}

int api_command_read(struct exchange *x, struct span text, struct api_command *is)
{
    struct span first, rest;
    uint64_t number = 0;

    if (span_cut(text, '.', &first, &rest) && span_u64(first, INT64_MAX, &is->generation) == 0 &&
        span_u64(rest, UINT32_MAX, &number) == 0 && number != 0) {
        is->number = (uint32_t)number;
        return 0;
    }
    reply_problem(
        x, 400, "Bad request",
        "`command` is what a command is called: the generation that its sandbox was started as, and a number, "
        "as \"3.7\"");
    return -1;
}

/* What an operator did with one, for the audit. signo: which signal it was sent, or 0. */
static void note_command(struct exchange *x, const char *kind, const struct api_command *is, uint64_t signo)
{
    struct dynbuf b;
    struct jsonw w;

    dynbuf_init(&b, 1024);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "operator", span_str(x->operator));
    jsonw_kv(&w, "sandbox", x->arg);
    jsonw_kv_u64(&w, "generation", is->generation);
    jsonw_kv_u64(&w, "number", is->number);
    if (signo != 0)
        jsonw_kv_u64(&w, "signal", signo);
    jsonw_end_object(&w);
    if (dynbuf_ok(&b))
        ask_note(x->desk, kind, dynbuf_span(&b));
    dynbuf_free(&b);
}

const char *api_end_word(unsigned how)
{
    static const char *const ends[] = {[SB_LOST] = "lost",
                                       [SB_EXITED] = "exited",
                                       [SB_SIGNALLED] = "signalled",
                                       [SB_NOT_STARTED] = "not-started",
                                       [SB_TIMED_OUT] = "timed-out"};
    return ends[how <= SB_TIMED_OUT ? how : SB_LOST];
}

static void put_command(struct jsonw *w, struct msg_in *m, uint64_t generation)
{
    const struct api_command is = {generation, msg_get_u32(m)};
    struct span word, words;

    jsonw_object(w);
    api_command_put(w, &is);
    jsonw_kv_u64(w, "age_ms", msg_get_u64(m));
    jsonw_kv_bool(w, "detached", msg_get_bool(m));
    jsonw_kv_bool(w, "followed", msg_get_bool(m));
    bool runs = msg_get_bool(m);
    unsigned how = msg_get_u8(m), code = msg_get_u8(m);
    bool more = msg_get_bool(m);
    jsonw_kv(w, "state", span_str(runs ? "running" : api_end_word(how)));
    if (!runs)
        jsonw_kv_u64(w, how == SB_SIGNALLED ? "signal" : "status", code);
    jsonw_kv_array(w, "argv");
    for (words = msg_get_span(m, WORDS_MAX); words.n > 0;) {
        (void)span_cut(words, '\0', &word, &words); /* each has one behind it */
        jsonw_string(w, word);
    }
    jsonw_end_array(w);
    jsonw_kv_bool(w, "cut", more);
    jsonw_end_object(w);
}

static void listed(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool there = msg_get_bool(&m);
    uint64_t generation = msg_get_u64(&m);
    unsigned n = msg_get_u16(&m);
    struct jsonw w;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "commands");
    for (unsigned i = 0; i < n && !m.bad; i++)
        put_command(&w, &m, generation);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now", "the warden did not say what runs; try again in a moment");
    else if (!there)
        reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
}

void api_started_commands(struct exchange *x)
{
    struct dynbuf *b =
        api_started_name(x) == 0 ? ask_begin(x, ASK_WARDEN, M_SB_COMMANDS, M_SB_COMMANDS_ARE, listed) : NULL;

    if (!b)
        return;
    msg_put_span(b, x->arg);
    ask_send(x);
}

void api_started_attach(struct exchange *x)
{
    struct member m[] = {{"command", JSON_STRING, true, NULL}};
    struct api_command is;
    struct dynbuf *b;

    if (body_members(x, m, 1) != 0 || api_command_read(x, m[0].value->text, &is) != 0 ||
        !(b = stream_ask(x, M_SB_ATTACH)))
        return;
    api_command_ask(b, x->arg, &is);
    if (stream_answer(x, 0) == 0)
        note_command(x, "sandbox-attach", &is, 0);
}

/* One that is to get a signal. */
struct signal_asked {
    struct api_command is;
    uint64_t signo;
};

void api_command_ask(struct dynbuf *b, struct span sandbox, const struct api_command *is)
{
    msg_put_span(b, sandbox);
    msg_put_u64(b, is->generation);
    msg_put_u32(b, is->number);
}

void api_command_none(struct exchange *x, unsigned found)
{
    reply_problem(x, 404, "No such command", "%s",
                  found == SB_FOUND_NOWHERE ? "no sandbox of this name runs"
                  : found == SB_FOUND_OTHER ? "this command is of another start of the sandbox, which has ended"
                                            : "no such command is there, or any more");
}

static void signalled(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    unsigned what = msg_get_u8(&m);
    const struct signal_asked *s = x->step;

    if (msg_end(&m) != 0 || what > SB_FOUND_NOWHERE)
        reply_problem(x, 503, "Not possible now", "the warden did not answer: the command may have been told");
    else if (what == SB_FOUND_PAUSED)
        reply_problem(x, 409, "It is paused",
                      "the sandbox is paused: `countersign sandbox resume %.*s` lets it go on", SPAN_FMT(x->arg));
    else if (what == SB_FOUND_ENDED)
        reply_problem(x, 409, "It has ended", "this command has ended");
    else if (what != SB_FOUND)
        api_command_none(x, what);
    else {
        note_command(x, "sandbox-signal", &s->is, s->signo);
        reply_empty(x, 204);
    }
}

void api_started_signal(struct exchange *x)
{
    struct member m[] = {{"command", JSON_STRING, true, NULL}, {"signal", JSON_NUMBER, false, NULL}};
    struct signal_asked *s = arena_alloc(&x->arena, sizeof(*s));
    struct dynbuf *b;

    if (!s) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    s->signo = SIGTERM;
    if (body_members(x, m, 2) != 0 || api_command_read(x, m[0].value->text, &s->is) != 0 ||
        api_number(x, &m[1], &s->signo, 1, SIGNAL_LAST) != 0 || api_started_name(x) != 0 ||
        !(b = ask_begin(x, ASK_WARDEN, M_SB_SIGNAL, M_SB_SIGNALLED, signalled)))
        return;
    x->step = s;
    api_command_ask(b, x->arg, &s->is);
    msg_put_u8(b, (uint8_t)s->signo);
    ask_send(x);
}

/* --- what it is given -------------------------------------------------------------- */

/* The stream of x->arg, whose command runs. NULL: answered. */
static struct follow *stream_find(struct exchange *x)
{
    struct follow *f = x->desk->following;
    uint64_t id;
    bool number = span_u64(x->arg, UINT64_MAX, &id) == 0 && id != 0;

    while (f && (!number || f->id != id))
        f = f->next;
    if (!f)
        reply_problem(x, 404, "No such stream", "no command is followed by this number");
    return f;
}

/* As much as it may be told of at once; the events say when there is room for more. */
void api_started_input(struct exchange *x)
{
    struct desk *d = x->desk;
    struct follow *f = stream_find(x);

    if (!f)
        return;
    if (!f->input || (f->terminal && x->body.n == 0)) {
        reply_problem(x, 409, "No input", "%s",
                      f->input ? "the end of a terminal's input is a key, ^D"
                               : "this command has no input, or it was ended");
        return;
    }
    if (x->body.n > TALK_IN_WINDOW - f->unfed) {
        reply_problem(x, 409, "Too much",
                      "%u bytes of its input wait, and %d may; an event `fed` says how many were taken",
                      (unsigned)f->unfed, TALK_IN_WINDOW);
        return;
    }
    struct dynbuf *b = d->warden ? chan_begin(d->warden, M_SB_INPUT, f->id) : NULL;
    if (b)
        (void)dynbuf_add(b, x->body);
    if (!b || chan_commit(d->warden) != 0) {
        reply_problem(x, 503, "Not possible now", "the warden does not run at the moment, or does not take more");
        return;
    }
    f->unfed += (uint32_t)x->body.n;
    f->input = x->body.n > 0; /* none is the end of it */
    reply_empty(x, 204);
}

void api_started_tell(struct exchange *x)
{
    struct member m[] = {{"signal", JSON_NUMBER, true, NULL}};
    const struct follow *f = stream_find(x);
    uint64_t signo;

    if (!f || body_members(x, m, 1) != 0 || api_number(x, &m[0], &signo, 1, SIGNAL_LAST) != 0)
        return;
    struct dynbuf *b = x->desk->warden ? chan_begin(x->desk->warden, M_SB_TELL, f->id) : NULL;
    if (b)
        msg_put_u8(b, (uint8_t)signo);
    if (!b || chan_commit(x->desk->warden) != 0)
        reply_problem(x, 503, "Not possible now", "the warden does not run at the moment, or does not take more");
    else
        reply_empty(x, 204);
}

void api_started_resize(struct exchange *x)
{
    struct member m[] = {{"rows", JSON_NUMBER, true, NULL}, {"columns", JSON_NUMBER, true, NULL}};
    const struct follow *f = stream_find(x);
    uint64_t size[2];

    if (!f || body_members(x, m, 2) != 0 || size_take(x, m, size) != 0)
        return;
    struct dynbuf *b = f->terminal && x->desk->warden ? chan_begin(x->desk->warden, M_SB_RESIZE, f->id) : NULL;
    if (b) {
        msg_put_u16(b, (uint16_t)size[0]);
        msg_put_u16(b, (uint16_t)size[1]);
    }
    if (!f->terminal)
        reply_problem(x, 409, "No terminal", "this command has no terminal");
    else if (!b || chan_commit(x->desk->warden) != 0)
        reply_problem(x, 503, "Not possible now", "the warden does not run at the moment, or does not take more");
    else
        reply_empty(x, 204);
}
