/* Contents of files: envd's /files, as streams both ways, no faster than either side takes them. */
#include "proxy/dock/ask.h"
#include "proxy/errand/errand.h"
#include "proxy/dock/parse/form.h"
#include "proxy/dock/paths.h"
#include "proxy/dock/routes.h"

enum { WINDOW = 64 * 1024 };

/* --- health ----------------------------------------------------------------------- */

static void alive(struct call *x, unsigned status, struct span body)
{
    const struct json *all = status == 200 ? json_get(json_parse(body, &x->arena), SPAN("started")) : NULL;

    if (!all)
        reply_desk(x, status, body);
    else if (all->child && span_eq(json_text(all->child, SPAN("state")), SPAN("running")))
        reply_empty(x, 204);
    else
        reply_no(x, 502, "the sandbox does not run");
}

void files_health(struct call *x)
{
    ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, alive);
}

/* --- a stream of the desk's -------------------------------------------------------- */

static struct errand *stream_ask(struct call *x, const char *method, struct span target, bool upload, errand_fn *fn)
{
    const struct errand_ask ask = {
        .token = &x->token, .box = x->arg, .method = method, .target = target, .upload = upload, .whole = upload};

    x->errand = target.p ? errand_new(&x->dock->errands, &ask, fn, x) : NULL;
    if (!x->errand)
        reply_no(x, 503, "the gateway cannot be asked at the moment; try again");
    return x->errand;
}

static void refused(struct call *x, const struct errand *e, enum errand_event ev)
{
    if (ev != ERRAND_NONE)
        reply_desk(x, e->status, arena_copy(&x->arena, e->data));
    else if (e->status == 401)
        reply_no(x, 502, "the sandbox does not run, or this token does not open it");
    else
        reply_no(x, e->status, "%s", e->why);
}

/* --- read ---------------------------------------------------------------------------- */

static void read_drained(struct call *x)
{
    if (x->errand)
        errand_pause(x->errand, false);
}

static void read_heard(void *arg, struct errand *e, enum errand_event ev)
{
    struct call *x = arg;

    if (e->opened)
        call_holder(x, e->tenant);
    switch (ev) {
    case ERRAND_HEAD:
        if (e->status == 200)
            (void)!call_stream(x, 200, "application/octet-stream");
        else
            e->whole = true; /* words, to be handed on */
        break;
    case ERRAND_DATA:
        if (!x->streams)
            refused(x, e, ev);
        else if (call_piece(x, e->data) == 0 && !call_reads(x))
            errand_pause(e, true);
        break;
    case ERRAND_END: call_stream_end(x, true); break;
    case ERRAND_NONE:
        if (x->streams)
            call_stream_end(x, false); /* cut off, so that nobody takes it for all of it */
        else
            refused(x, e, ev);
        break;
    default: break;
    }
}

void files_read(struct call *x)
{
    struct span given, path;

    if (call_query(x, "path", &given) != 0)
        reply_no(x, 400, "the query has `path` twice, or it cannot be decoded");
    else if (path_take(x, given, &path) == 0) {
        x->drained = read_drained;
        (void)stream_ask(x, "GET", ask_path(x, ask_box(x, x->arg, "/files"), "path", path), false, read_heard);
    }
}

/* --- write --------------------------------------------------------------------------- */

struct writing {
    bool is_form, waits; /* for the desk, before more can be read */
    bool sent;           /* all of the file that is written */
    struct form form;
    struct span given, path; /* of the query; of the file that is written */
    unsigned files;
    struct dynbuf told; /* of those that are written */
    struct jsonw w;
};

static void go_on(struct call *x);

static void write_gone(struct call *x)
{
    struct writing *w = x->step;

    dynbuf_free(&w->told);
}

/* All is written. */
static void write_over(struct call *x)
{
    struct writing *w = x->step;
    struct jsonw out;

    jsonw_end_array(&w->w);
    if (!dynbuf_ok(&w->told)) {
        reply_no(x, 503, "no memory for the answer; all files were written");
        return;
    }
    reply_json(x, 200, &out);
    (void)dynbuf_add(&x->out, dynbuf_span(&w->told));
    call_answer(x);
}

static void write_heard(void *arg, struct errand *e, enum errand_event ev)
{
    struct call *x = arg;
    struct writing *w = x->step;

    if (e->opened)
        call_holder(x, e->tenant);
    if (ev == ERRAND_ROOM) {
        go_on(x);
        return;
    }
    if (ev == ERRAND_NONE || e->status != 204) { /* also in the middle of it */
        refused(x, e, ev);
        return;
    }
    errand_free(&x->errand);
    if (!w->sent) { /* there is nobody who could take the rest */
        reply_no(x, 502, "the file is said to be written, and not all of it was sent");
        return;
    }
    jsonw_object(&w->w);
    jsonw_kv(&w->w, "name", path_name(w->path));
    jsonw_kv(&w->w, "type", SPAN("file"));
    jsonw_kv(&w->w, "path", w->path);
    jsonw_end_object(&w->w);
    w->waits = false;
    if (w->is_form)
        go_on(x);
    else
        write_over(x);
}

static void write_begin(struct call *x)
{
    struct writing *w = x->step;

    w->waits = w->sent = false;
    if (stream_ask(x, "PUT", ask_path(x, ask_box(x, x->arg, "/files"), "path", w->path), true, write_heard))
        go_on(x);
}

static void folder_made(struct call *x, unsigned status, struct span body)
{
    if (status == 204)
        write_begin(x);
    else
        reply_desk(x, status, body);
}

/* The next file. False: it cannot be begun at once. */
static void file_begin(struct call *x, struct span given)
{
    struct writing *w = x->step;

    if (w->files++ > 0 && w->given.n > 0) {
        reply_no(x, 400, "`path` names one file, and the body has more");
        return;
    }
    if (path_take(x, given, &w->path) != 0)
        return;
    w->waits = true;
    struct span folder = path_folder(w->path);
    if (folder.n == 0) {
        write_begin(x);
        return;
    }
    struct span target = ask_path(x, ask_box(x, x->arg, "/files/mkdir"), "path", folder);
    if (target.p)
        target = ask_path(x, target, "parents", SPAN("true"));
    ask_desk(x, "POST", target, SPAN_NONE, folder_made);
}

/* A quote and a line end stand escaped in a form, and what was an escape before does not: such a name could be two.
 */
static bool name_is_plain(struct span s)
{
    return span_find(s, SPAN("%22")) == s.n && span_find(s, SPAN("%0D")) == s.n && span_find(s, SPAN("%0A")) == s.n &&
           span_index(s, '\\') == s.n;
}

/* What was read of it is dropped first: the next may be read before this returns. */
static void part_begin(struct call *x, const struct form_step *s, size_t used)
{
    const struct writing *w = x->step;
    struct span name = w->given.n ? w->given : arena_copy(&x->arena, s->file);
    bool file = span_eq(s->name, SPAN("file"));

    dynbuf_drop(&x->body, used);
    if (!file || name.n == 0)
        reply_no(x, 400, "each part of the form is a `file` with its path as the file's name");
    else if (w->given.n == 0 && !name_is_plain(name))
        reply_no(x, 400, "a path with a quote, a backslash or a line end is sent as `path`, one file at a time");
    else
        file_begin(x, name);
}

/* One step of a form. False: it is answered, or waits. */
static bool form_go(struct call *x, bool over)
{
    struct writing *w = x->step;
    struct form_step s;
    size_t used;

    enum form_got got = form_step(&w->form, dynbuf_span(&x->body), &s, &used);
    switch (got) {
    case FORM_PART: part_begin(x, &s, used); return false; /* x may be gone; who begins it comes back */
    case FORM_DATA:
        if (s.data.n > 0 && errand_write(x->errand, s.data) != 0) {
            reply_no(x, 503, "the gateway does not take more");
            return false;
        }
        break;
    case FORM_PART_END:
        w->sent = true;
        w->waits = errand_write_end(x->errand) == 0; /* else it is heard of */
        break;
    case FORM_END:
        if (over && used == x->body.n) {
            write_over(x);
            return false;
        }
        break;
    case FORM_MORE:
        if (over)
            reply_no(x, 400, "the form is cut short");
        return false;
    default: reply_no(x, 400, "the body is no form, or one that could be read in two ways"); return false;
    }
    dynbuf_drop(&x->body, used);
    return used > 0 || got != FORM_END;
}

static bool octets_go(struct call *x, bool over)
{
    struct writing *w = x->step;

    if (x->body.n > 0 && errand_write(x->errand, dynbuf_span(&x->body)) != 0) {
        reply_no(x, 503, "the gateway does not take more");
        return false;
    }
    bool more = x->body.n > 0 && !over;
    dynbuf_reset(&x->body);
    if (over) {
        w->sent = true;
        w->waits = errand_write_end(x->errand) == 0;
    }
    return more;
}

static void go_on(struct call *x)
{
    struct writing *w = x->step;
    bool over = false, more = true;

    call_patience(x, DOCK_REQUEST_MS);
    while (more) {
        if (w->waits || (x->errand && !errand_room(x->errand))) { /* it is not the caller who is waited for */
            call_patience(x, 0);
            return;
        }
        if (call_body(x, WINDOW, &x->body, &over) != 0) {
            reply_no(x, 400, "the request's body is malformed");
            return;
        }
        x->takes = over ? NULL : go_on;
        more = w->is_form ? form_go(x, over) : octets_go(x, over);
    }
}

void files_write(struct call *x)
{
    struct writing *w = arena_alloc(&x->arena, sizeof(*w));
    struct span type = call_field(x, SPAN("content-type")), coding = call_field(x, SPAN("content-encoding"));

    if (!w) {
        reply_no(x, 503, "no memory");
        return;
    }
    dynbuf_init(&w->told, DOCK_ANSWER_MAX);
    jsonw_begin(&w->w, &w->told);
    jsonw_array(&w->w);
    x->step = w;
    x->gone = write_gone;
    x->takes = go_on;
    w->is_form = !span_ieq(type, SPAN("application/octet-stream"));
    if (call_query(x, "path", &w->given) != 0 || coding.n > 0)
        reply_no(x, 400, "the query has `path` twice, or the body is encoded, which is not read here");
    else if (w->is_form && form_begin(&w->form, type) != 0)
        reply_no(x, 400, "send files as multipart/form-data, or one as application/octet-stream with its `path`");
    else if (w->is_form)
        go_on(x);
    else
        file_begin(x, w->given);
}
