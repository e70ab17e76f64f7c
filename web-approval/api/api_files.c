/* Files of sandboxes that the warden runs: /api/v1/sandboxes/NAME/files and what is below it. What is done there, the
 * sandbox's own first process does, as its user (sandbox-shim/inside/shim_files.c); what that says is taken apart
 * here, and nothing of it is trusted. */
#include <errno.h>
#include <stdio.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/text/utf8.h"
#include "proxy/msgs.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/api/api.h"
#include "web-approval/ask.h"
#include "web-approval/route.h"
#include "web-approval/streams/transfer.h"

enum { TIMEOUT_S = 3600, SHORT_S = 60, PAGE_S = 5, TIMEOUT_MAX_S = 86400, ENTRY_NAME_MAX = 255, NUMBER_MAX = 32 };
enum { NOTE_MAX = 64 * 1024 }; /* two paths of TALK_PATH_MAX, each byte escaped, and both in base64 */
#define MOST     (UINT64_C(1) << 30)
#define MOST_MAX (UINT64_C(1) << 50)

/* --- how it ended ---------------------------------------------------------------- */

static const struct failure {
    int code; /* an errno */
    unsigned status;
    const char *title, *why;
} failures[] = {
    {ENOENT, 404, "Not there", "there is no such file or folder"},
    {ENOTDIR, 409, "No folder", "it is not a folder, or a part of the path is none"},
    {EISDIR, 409, "A folder", "it is a folder"},
    {EEXIST, 409, "It is there", "there is one of that name"},
    {ENOTEMPTY, 409, "Not empty", "the folder is not empty; `recursive=true` removes what is in it as well"},
    {EAGAIN, 409, "It changes", "it is changed all the time by somebody else"},
    {EXDEV, 403, "Outside", "the path leads out of the workspace"},
    {ELOOP, 403, "Outside", "its links lead in a circle, or to what is no file"},
    {EACCES, 403, "Not permitted", "the sandbox's user may not do that"},
    {EPERM, 403, "Not permitted", "the sandbox's user may not do that"},
    {EROFS, 403, "Not permitted", "it cannot be written there"},
    {EBUSY, 400, "Bad request", "the path ends in no name, or in one that is in use"},
    {EINVAL, 400, "Bad request", "it is neither a file nor a folder, or would be moved into itself"},
    {ENAMETOOLONG, 400, "Bad request", "a name is too long, or folders lie too deep in each other"},
    {EFBIG, 413, "Too large", "it is larger than `most`"},
    {EBADMSG, 422, "No tar stream", "the tar stream cannot be unpacked"},
    {ENOSPC, 507, "Full", "the sandbox's disk is full"},
    {EDQUOT, 507, "Full", "the sandbox's disk is full"},
    {EUSERS, 507, "Too many", "more folders lie in it than can be watched, or as many are watched as may be"},
};

/* True: it was done. Else x is answered. */
static bool went_well(struct exchange *x, const struct transfer_end *e)
{
    const struct failure *f = failures;
    char number[NUMBER_MAX];

    if (e->how == SB_EXITED && e->code == 0)
        return true;
    if (e->how != SB_EXITED) {
        reply_problem(x, e->how == SB_LOST ? 404 : 503, e->how == SB_LOST ? "No such sandbox" : "Not done", "%.*s",
                      SPAN_FMT(e->how == SB_TIMED_OUT   ? SPAN("its time was over")
                               : e->how == SB_SIGNALLED ? SPAN("it was killed in the sandbox")
                                                        : e->why));
        return false;
    }
    while (f < failures + sizeof(failures) / sizeof(failures[0]) && f->code != (int)e->code)
        f++;
    if (f == failures + sizeof(failures) / sizeof(failures[0])) {
        (void)snprintf(number, sizeof(number), "error %u in the sandbox", e->code);
        reply_problem(x, 503, "Not done", "%s%s%.*s", number, e->words.n ? ": " : "", SPAN_FMT(e->words));
    } else {
        reply_problem(x, f->status, f->title, "%s%s%.*s", f->why, e->words.n ? ": " : "", SPAN_FMT(e->words));
    }
    return false;
}

static void done_empty(struct exchange *x, const struct transfer_end *e)
{
    if (went_well(x, e))
        reply_empty(x, 204);
}

/* Its output would have begun the answer: there was none. */
static void done_nothing(struct exchange *x, const struct transfer_end *e)
{
    if (!went_well(x, e))
        return;
    x->status = 200;
    x->type = x->transfer->gives;
}

/* --- entries ---------------------------------------------------------------------- */

void api_entry_get(struct msg_in *m, struct api_entry *e)
{
    e->mode = msg_get_u16(m);
    e->size = msg_get_u64(m);
    e->mtime = (int64_t)msg_get_u64(m);
    e->name = msg_get_span(m, ENTRY_NAME_MAX);
    e->target = msg_get_span(m, TALK_PATH_MAX + 1);
}

/* A name may be any bytes; what is not UTF-8 is said as it is a second time. */
static void put_bytes(struct jsonw *w, const char *key, const char *raw, struct span s)
{
    char text[4 * (TALK_PATH_MAX / 3 + 2)];

    jsonw_kv(w, key, s);
    if (utf8_run(s) != s.n && s.n <= TALK_PATH_MAX)
        jsonw_kv(w, raw, span_of(text, base64_encode(s, text)));
}

static void put_entry(struct jsonw *w, const struct api_entry *e, bool named)
{
    char mode[NUMBER_MAX], mtime[NUMBER_MAX];

    (void)snprintf(mode, sizeof(mode), "%04o", e->mode & 07777);
    (void)snprintf(mtime, sizeof(mtime), "%lld", (long long)e->mtime);
    jsonw_object(w);
    if (named)
        put_bytes(w, "name", "name_base64", e->name);
    jsonw_kv(w, "kind",
             e->kind == 'f'   ? SPAN("file")
             : e->kind == 'd' ? SPAN("folder")
             : e->kind == 'l' ? SPAN("link")
                              : SPAN("other"));
    jsonw_kv(w, "mode", span_str(mode));
    jsonw_kv_u64(w, "size", e->size);
    jsonw_kv_raw(w, "mtime", span_str(mtime));
    if (e->kind == 'l')
        put_bytes(w, "target", "target_base64", e->target);
    jsonw_end_object(w);
}

static void not_understood(struct exchange *x)
{
    reply_problem(x, 503, "Not done", "what the sandbox said cannot be read");
}

static void done_stat(struct exchange *x, const struct transfer_end *t)
{
    struct msg_in m = msg_in(t->said);
    struct api_entry e;
    struct jsonw w;

    if (!went_well(x, t))
        return;
    e.kind = msg_get_u8(&m);
    api_entry_get(&m, &e);
    reply_json(x, 200, &w);
    put_entry(&w, &e, false);
    if (msg_end(&m) != 0)
        not_understood(x);
}

static void done_list(struct exchange *x, const struct transfer_end *t)
{
    struct msg_in m = msg_in(t->said);
    struct api_entry e;
    struct jsonw w;
    unsigned n = 0;

    if (!went_well(x, t))
        return;
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "entries");
    while ((e.kind = msg_get_u8(&m)) != 0 && !m.bad && n++ < TALK_LIST_MAX) {
        api_entry_get(&m, &e);
        put_entry(&w, &e, true);
    }
    bool more = msg_get_bool(&m);
    jsonw_end_array(&w);
    jsonw_kv_bool(&w, "more", more);
    jsonw_end_object(&w);
    if (msg_end(&m) != 0)
        not_understood(x);
}

/* --- what is asked ------------------------------------------------------------------ */

/* A number of the query; absent: as it is. -1, answered. */
static int number(struct exchange *x, const char *name, uint64_t *to, uint64_t least, uint64_t most)
{
    struct span text;

    if (query_field(x, name, &text) != 0)
        return -1;
    if (text.n == 0 || (span_u64(text, most, to) == 0 && *to >= least))
        return 0;
    reply_problem(x, 400, "Bad request", "`%s` is a whole number from %llu to %llu", name, (unsigned long long)least,
                  (unsigned long long)most);
    return -1;
}

static int truth(struct exchange *x, const char *name, bool *to)
{
    struct span text;

    if (query_field(x, name, &text) != 0)
        return -1;
    *to = span_eq(text, SPAN("true"));
    if (text.n == 0 || *to || span_eq(text, SPAN("false")))
        return 0;
    reply_problem(x, 400, "Bad request", "`%s` is true or false", name);
    return -1;
}

/* Octal, as chmod has it. */
static int mode(struct exchange *x, uint16_t *to)
{
    struct span text;
    unsigned v = 0;
    bool ok = true;

    if (query_field(x, "mode", &text) != 0)
        return -1;
    for (size_t i = 0; i < text.n; i++) {
        ok &= i < 4 && text.p[i] >= '0' && text.p[i] <= '7';
        v = v << 3 | (unsigned)(text.p[i] & 7);
    }
    *to = text.n > 0 ? (uint16_t)v : TALK_MODE_NONE;
    if (ok && (text.n == 0 || v <= 0777))
        return 0;
    reply_problem(x, 400, "Bad request", "`mode` is an octal number from 0 to 0777");
    return -1;
}

static int path(struct exchange *x, const char *name, struct span *to)
{
    if (query_field(x, name, to) != 0)
        return -1;
    if (to->n > 0 && to->n <= TALK_PATH_MAX && span_index(*to, '\0') == to->n)
        return 0;
    reply_problem(x, 400, "Bad request", "`%s` is a path of at most %d bytes, without NUL", name, TALK_PATH_MAX);
    return -1;
}

struct asked {
    enum talk_file what;
    uint16_t mode;
    bool whole;
    uint64_t from, most;
    struct span path, other;
    bool page; /* the page asks: it waits for no long, and what its address says of that is not looked at */
};

/* What reads or changes content is an operator's act: which, to the byte. */
static void note(struct exchange *x, const char *what, const struct asked *a)
{
    struct dynbuf b;
    struct jsonw w;

    dynbuf_init(&b, NOTE_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "operator", span_str(x->operator));
    jsonw_kv(&w, "sandbox", x->arg);
    jsonw_kv(&w, "what", span_str(what));
    put_bytes(&w, "path", "path_base64", a->path);
    if (a->what == TALK_FILE_MOVE)
        put_bytes(&w, "to", "to_base64", a->other);
    jsonw_end_object(&w);
    if (dynbuf_ok(&b))
        ask_note(x->desk, "sandbox-files", dynbuf_span(&b));
    else
        log_error("the audit misses an operator's act (sandbox-files): no memory");
    dynbuf_free(&b);
}

static void ask(struct exchange *x, const struct transfer_of *of, const char *what, const struct asked *a)
{
    struct desk *d = x->desk;
    uint64_t timeout_s = a->page ? PAGE_S : of->share == SHARE_SHORT ? SHORT_S : TIMEOUT_S;

    if ((!a->page && number(x, "timeout", &timeout_s, 1, TIMEOUT_MAX_S) != 0) || !share_is_free(x, of->share))
        return;
    struct dynbuf *b = d->warden && box_name_ok(x->arg) ? chan_begin(d->warden, M_SB_FILES, ++d->last_id) : NULL;
    if (!b) {
        reply_problem(x, box_name_ok(x->arg) ? 503 : 404, "Not possible now", "%s",
                      box_name_ok(x->arg) ? "the warden does not run at the moment" : "there is no such sandbox");
        return;
    }
    msg_put_span(b, x->arg);
    msg_put_u64(b, timeout_s * 1000);
    msg_put_u8(b, (uint8_t)a->what);
    msg_put_u16(b, a->mode);
    msg_put_u8(b, a->whole);
    msg_put_u64(b, a->from);
    msg_put_u64(b, a->most);
    msg_put_span(b, a->path);
    msg_put_span(b, a->other);
    if (chan_commit(d->warden) != 0) {
        reply_problem(x, 503, "Not possible now", "the warden does not take more");
        return;
    }
    x->follow = d->last_id; /* before the note, which takes the next */
    x->transfer = of;
    if (a->what != TALK_FILE_LIST && a->what != TALK_FILE_STAT)
        note(x, what, a);
}

void api_files_read(struct exchange *x)
{
    static const struct transfer_of of = {.gives = "application/octet-stream", .done = done_nothing};
    struct asked a = {.what = TALK_FILE_READ, .mode = TALK_MODE_NONE, .most = MOST};
    struct span length;

    if (path(x, "path", &a.path) != 0 || query_field(x, "length", &length) != 0 ||
        number(x, "offset", &a.from, 0, INT64_MAX) != 0 || number(x, "most", &a.most, 0, MOST_MAX) != 0 ||
        number(x, "length", &a.most, 0, MOST_MAX) != 0)
        return;
    a.whole = length.n == 0;
    ask(x, &of, "read", &a);
}

void api_files_write(struct exchange *x)
{
    static const struct transfer_of of = {.takes = true, .all = true, .done = done_empty};
    struct asked a = {.what = TALK_FILE_WRITE};

    if (path(x, "path", &a.path) == 0 && mode(x, &a.mode) == 0)
        ask(x, &of, "write", &a);
}

void api_files_list(struct exchange *x)
{
    static const struct transfer_of of = {.share = SHARE_SHORT, .done = done_list};
    struct asked a = {.what = TALK_FILE_LIST, .mode = TALK_MODE_NONE, .most = TALK_LIST_MAX};

    if (path(x, "path", &a.path) != 0 || query_field(x, "after", &a.other) != 0 ||
        number(x, "limit", &a.most, 1, TALK_LIST_MAX) != 0)
        return;
    if (a.other.n > TALK_PATH_MAX || span_index(a.other, '\0') != a.other.n)
        reply_problem(x, 400, "Bad request", "`after` is a name");
    else
        ask(x, &of, "list", &a);
}

void api_files_stat(struct exchange *x)
{
    static const struct transfer_of of = {.share = SHARE_SHORT, .done = done_stat};
    struct asked a = {.what = TALK_FILE_STAT, .mode = TALK_MODE_NONE};

    if (path(x, "path", &a.path) == 0)
        ask(x, &of, "stat", &a);
}

void api_files_remove(struct exchange *x)
{
    static const struct transfer_of of = {.done = done_empty};
    struct asked a = {.what = TALK_FILE_REMOVE, .mode = TALK_MODE_NONE};

    if (path(x, "path", &a.path) == 0 && truth(x, "recursive", &a.whole) == 0)
        ask(x, &of, "remove", &a);
}

void api_files_mkdir(struct exchange *x)
{
    static const struct transfer_of of = {.share = SHARE_SHORT, .done = done_empty};
    struct asked a = {.what = TALK_FILE_MKDIR};

    if (path(x, "path", &a.path) == 0 && mode(x, &a.mode) == 0 && truth(x, "parents", &a.whole) == 0)
        ask(x, &of, "mkdir", &a);
}

void api_files_move(struct exchange *x)
{
    static const struct transfer_of of = {.share = SHARE_SHORT, .done = done_empty};
    struct asked a = {.what = TALK_FILE_MOVE, .mode = TALK_MODE_NONE};

    if (path(x, "path", &a.path) == 0 && path(x, "to", &a.other) == 0 && truth(x, "replace", &a.whole) == 0)
        ask(x, &of, "move", &a);
}

void api_files_pack(struct exchange *x)
{
    static const struct transfer_of of = {.gives = "application/x-tar", .done = done_nothing};
    struct asked a = {.what = TALK_FILE_PACK, .mode = TALK_MODE_NONE, .most = MOST};

    if (path(x, "path", &a.path) == 0 && number(x, "most", &a.most, 0, MOST_MAX) == 0)
        ask(x, &of, "pack", &a);
}

void api_files_unpack(struct exchange *x)
{
    static const struct transfer_of of = {.takes = true, .done = done_empty};
    struct asked a = {.what = TALK_FILE_UNPACK, .mode = TALK_MODE_NONE};

    if (path(x, "path", &a.path) == 0)
        ask(x, &of, "unpack", &a);
}

void api_files_watch(struct exchange *x)
{
    static const struct transfer_of of = {.gives = "application/octet-stream", .rests = true, .done = done_nothing};
    struct asked a = {.what = TALK_FILE_WATCH, .mode = TALK_MODE_NONE, .most = MOST_MAX};

    if (path(x, "path", &a.path) == 0 && truth(x, "recursive", &a.whole) == 0)
        ask(x, &of, "watch", &a);
}

void api_files_page(struct exchange *x, struct span box, bool list, struct span path, uint64_t most,
                    const struct transfer_of *of)
{
    const struct asked a = {.what = list ? TALK_FILE_LIST : TALK_FILE_READ,
                            .mode = TALK_MODE_NONE,
                            .most = most,
                            .path = path,
                            .page = true};

    x->arg = box;
    ask(x, of, "read", &a);
}
