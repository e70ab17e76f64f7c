/* Files of the sandbox: the desk's routes, whose refusals are told as they are. */
#include <stdio.h>

#include "broker/work/tools.h"
#include "broker/work/work.h"

enum {
    READ_MOST = 256 * 1024,             /* of a file that is changed */
    READ_PIECE = WORK_RESULT_MAX - 512, /* of one that is read, at once */
    LIST_MOST = 200,
    TARGET_MAX = 16 * 1024
};

static struct span path_of(const struct json *args)
{
    return json_text(args, SPAN("path"));
}

static void cut_off(struct task *t, uint64_t ord, unsigned status)
{
    /* 503: it may have been done, and nobody said so. */
    task_done(t, ord, status == 503 ? CALL_UNKNOWN : CALL_ERROR, SPAN_NONE);
}

static void refused(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    if (status == 404 && span_find(body, SPAN("No such sandbox")) < body.n)
        t->box_up = false; /* it has ended: the next call starts another */
    if (status == 503)
        cut_off(t, ord, status);
    else
        task_done(t, ord, CALL_ERROR, desk_words(t, status, body));
}

static void had(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    if (status == 200)
        task_done(t, ord, CALL_DONE, body);
    else
        refused(t, ord, status, body);
}

static void did(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    if (status == 204 || status == 200 || status == 201)
        task_done(t, ord, CALL_DONE, SPAN("done"));
    else
        refused(t, ord, status, body);
}

static struct span content_target(struct task *t, struct span path)
{
    return desk_box(t, "/files?most=262144", path);
}

/* --- a file is read: whole where it is short, else a piece of it, which says how much there is -------------------
 */

static const struct json *args_of(struct task *t, uint64_t ord)
{
    return json_parse(t->call[ord].call.args, &t->step_arena);
}

/* 0 where it is not said; -1: it is no number. */
static int offset_of(const struct json *args, uint64_t *offset)
{
    *offset = 0;
    if (json_get(args, SPAN("offset")) == NULL)
        return 0;
    return json_u64(args, SPAN("offset"), offset) == 0 && *offset <= INT64_MAX ? 0 : -1;
}

static void had_piece(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    uint64_t from = 0, size = t->call[ord].size;
    struct dynbuf b;
    if (status != 200) {
        refused(t, ord, status, body);
        return;
    }
    (void)!offset_of(args_of(t, ord), &from);
    struct span piece = from + body.n < size ? whole_chars(body) : body;
    uint64_t to = from + piece.n;
    dynbuf_init(&b, WORK_RESULT_MAX);
    (void)dynbuf_add(&b, piece);
    if (to < size)
        (void)dynbuf_addf(&b, "\n[bytes %llu to %llu of %llu in all: `offset` %llu reads on]",
                          (unsigned long long)from, (unsigned long long)to, (unsigned long long)size,
                          (unsigned long long)to);
    else
        (void)dynbuf_addf(&b, "\n[bytes %llu to %llu, where the file ends]", (unsigned long long)from,
                          (unsigned long long)to);
    task_done(t, ord, CALL_DONE, arena_keep(&t->step_arena, &b));
}

static void sized(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    char rest[64];
    uint64_t from = 0, *size = &t->call[ord].size;
    if (status != 200 || json_u64(json_parse(body, &t->step_arena), SPAN("size"), size) != 0) {
        refused(t, ord, status == 200 ? 503 : status, body);
        return;
    }
    (void)!offset_of(args_of(t, ord), &from);
    (void)snprintf(rest, sizeof(rest), "/files?offset=%llu&length=%d", (unsigned long long)from, READ_PIECE);
    if (from > 0 && from >= *size)
        task_done(
            t, ord, CALL_DONE,
            arena_printf(&t->step_arena, "[the file ends before: it has %llu bytes]", (unsigned long long)*size));
    else
        desk_ask(t, "GET", desk_box(t, rest, path_of(args_of(t, ord))), SPAN_NONE, had_piece, ord);
}

static void ask_size(struct task *t, uint64_t ord)
{
    desk_ask(t, "GET", desk_box(t, "/files/stat", path_of(args_of(t, ord))), SPAN_NONE, sized, ord);
}

static void had_whole(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    if (status == 413)
        ask_size(t, ord);
    else
        had(t, ord, status, body);
}

void run_read(struct task *t, uint64_t ord, const struct json *args)
{
    char rest[64];
    uint64_t offset;
    (void)snprintf(rest, sizeof(rest), "/files?most=%d", READ_PIECE);
    if (offset_of(args, &offset) != 0)
        task_done(t, ord, CALL_ERROR, SPAN("offset is a whole number, of bytes"));
    else if (offset > 0)
        ask_size(t, ord);
    else
        desk_ask(t, "GET", desk_box(t, rest, path_of(args)), SPAN_NONE, had_whole, ord);
}

void run_list(struct task *t, uint64_t ord, const struct json *args)
{
    struct dynbuf b;
    dynbuf_init(&b, TARGET_MAX);
    (void)dynbuf_addf(&b, "/files/list?limit=%d&after=", LIST_MOST);
    dynbuf_add_percent(&b, json_text(args, SPAN("after")), "-._");
    (void)dynbuf_add(&b, SPAN("\0"));
    struct span rest = arena_keep(&t->step_arena, &b);
    if (rest.p == NULL)
        task_done(t, ord, CALL_ERROR, SPAN("after is a name in that folder"));
    else
        desk_ask(t, "GET", desk_box(t, (const char *)rest.p, path_of(args)), SPAN_NONE, had, ord);
}

void run_remove(struct task *t, uint64_t ord, const struct json *args)
{
    desk_ask(t, "DELETE", desk_box(t, "/files?recursive=true", path_of(args)), SPAN_NONE, did, ord);
}

/* --- a file is written --------------------------------------------------------------------- */

static void put(struct task *t, uint64_t ord)
{
    const struct json *args = args_of(t, ord);
    desk_put(t, desk_box(t, "/files", path_of(args)), json_text(args, SPAN("content")), did, ord);
}

static void made(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    if (status == 503)
        cut_off(t, ord, status);
    else
        put(t, ord); /* a folder that is there already is refused, and that is as well */
}

void run_write(struct task *t, uint64_t ord, const struct json *args)
{
    struct span path = path_of(args);
    size_t slash = path.n;
    while (slash > 0 && path.p[slash - 1] != '/')
        slash--;
    if (json_text(args, SPAN("content")).n > TOOL_CONTENT_MAX)
        task_done(t, ord, CALL_ERROR, SPAN("the content is longer than 512 KiB: write it in parts, with a command"));
    else if (slash > 1)
        desk_ask(t, "POST", desk_box(t, "/files/mkdir?parents=true", span_first(path, slash - 1)), SPAN_NONE, made,
                 ord);
    else
        put(t, ord);
}

/* --- a text in it is replaced ----------------------------------------------------------------- */

static size_t occurs(struct span text, struct span what, size_t *at)
{
    size_t n = 0, from = 0, k;
    *at = 0;
    while (what.n > 0 && n < 2 && (k = span_find(span_from(text, from), what)) < text.n - from) {
        if (n++ == 0)
            *at = from + k;
        from += k + 1;
        if (from >= text.n)
            break;
    }
    return n;
}

static void edited(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    const struct json *args = args_of(t, ord);
    struct span old = json_text(args, SPAN("old")), new = json_text(args, SPAN("new"));
    struct dynbuf b;
    size_t at;
    if (status != 200) {
        refused(t, ord, status, body);
        return;
    }
    size_t n = occurs(body, old, &at);
    if (n != 1 || body.n >= READ_MOST) {
        task_done(t, ord, CALL_ERROR,
                  body.n >= READ_MOST ? SPAN("the file is longer than can be changed so: use a command")
                  : n == 0            ? SPAN("the old text does not stand in the file")
                                      : SPAN("the old text stands in the file more than once: say more of it"));
        return;
    }
    dynbuf_init(&b, TOOL_CONTENT_MAX + READ_MOST);
    (void)dynbuf_add(&b, span_first(body, at));
    (void)dynbuf_add(&b, new);
    (void)dynbuf_add(&b, span_from(body, at + old.n));
    struct span whole = arena_keep(&t->step_arena, &b);
    if (whole.p == NULL)
        task_done(t, ord, CALL_ERROR, SPAN("the new text is too long"));
    else
        desk_put(t, desk_box(t, "/files", path_of(args)), whole, did, ord);
}

void run_edit(struct task *t, uint64_t ord, const struct json *args)
{
    desk_ask(t, "GET", content_target(t, path_of(args)), SPAN_NONE, edited, ord);
}

/* What an edit changes is to be seen: the new text is there and the old one is not, or the other way round. */
static void looked(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    const struct json *args = args_of(t, ord);
    size_t at;
    bool old = occurs(body, json_text(args, SPAN("old")), &at) > 0;
    bool new = occurs(body, json_text(args, SPAN("new")), &at) > 0;
    enum known known = status != 200 ? KNOWN_NOTHING
                       : new && !old ? KNOWN_ANSWERED
                       : old && !new ? KNOWN_NOT_SENT
                                     : KNOWN_NOTHING;
    if (known == KNOWN_ANSWERED)
        t->call[ord].result = SPAN("done");
    task_tell(t, (struct loop_event){.heard = HEARD_LOOKED, .ord = ord, .known = known, .end = CALL_DONE});
}

void edit_look(struct task *t, uint64_t ord)
{
    desk_ask(t, "GET", content_target(t, path_of(args_of(t, ord))), SPAN_NONE, looked, ord);
}
