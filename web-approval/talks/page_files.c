/* What is in a conversation's workspace, and one file of it: named and written by whatever runs there. */
#include "web-approval/talks/talks.h"

#include "common/text/utf8.h"
#include "proxy/msgs.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "web-approval/rooms/rooms.h"
#include "web-approval/streams/transfer.h"

enum { LISTED = 60, NAME_MAX_BYTES = 255, NAME_SHOWN = 120, FILE_SHOWN = 64 * 1024, PATH_SHOWN = 300 };

struct files {
    struct talk *talk;
    void (*done)(struct exchange *x);
};

/* --- the list --------------------------------------------------------------------------------- */

static void listed(struct exchange *x, const struct transfer_end *e)
{
    struct files *f = x->holds;

    f->talk->listed = e->how == SB_EXITED && e->code == 0;
    f->talk->files = e->said.n ? arena_copy(&x->arena, e->said) : SPAN_NONE;
    x->holds = NULL;
    f->done(x);
}

void talk_files_ask(struct exchange *x, struct talk *t, void (*done)(struct exchange *x))
{
    static const struct transfer_of of = {.share = SHARE_SHORT, .done = listed};
    struct files *f = arena_alloc(&x->arena, sizeof *f);

    if (!f)
        return;
    *f = (struct files){t, done};
    x->holds = f;
    api_files_page(x, span_str(t->box), true, SPAN("."), LISTED, &of);
}

static void entry(struct exchange *x, const struct talk *t, const struct api_entry *e)
{
    bool file = e->kind == 'f', folder = e->kind == 'd';

    PUT(x, "<tr><td>");
    if (file) {
        PUT(x, "<a class=\"mono\" href=\"/conversations/");
        show_own(&x->out, t->id);
        PUT(x, "/file?path=");
        show_encoded(&x->out, e->name);
        PUT(x, "\">");
    } else {
        PUT(x, "<span class=\"mono\">");
    }
    show_cut(&x->out, e->name, NAME_SHOWN);
    (void)dynbuf_addf(&x->out, "%s</td>", file ? "</a>" : folder ? "/</span>" : "</span>");
    room_cell(x, NULL);
    if (file)
        show_size(&x->out, e->size);
    else
        show_own(&x->out, folder ? "folder" : e->kind == 'l' ? "link" : "other");
    PUT(x, "</td></tr>\n");
}

static void table(struct exchange *x, const struct talk *t)
{
    static const char *const heads[] = {"Name", "Size"};
    struct msg_in m = msg_in(t->files);
    struct api_entry e;
    size_t n = 0, before = x->out.n;

    room_table(x, "Files of the sandbox", heads, sizeof heads / sizeof heads[0]);
    while ((e.kind = msg_get_u8(&m)) != 0 && !m.bad && n < LISTED) {
        api_entry_get(&m, &e);
        if (m.bad)
            break;
        entry(x, t, &e);
        n++;
    }
    bool more = msg_get_bool(&m);
    room_table_end(x);
    if (msg_end(&m) != 0) {
        x->out.n = before;
        PUT(x, "<p class=\"hint\">What the sandbox said of its files cannot be read.</p>\n");
    } else if (n == 0) {
        x->out.n = before;
        PUT(x, "<p class=\"hint\">There is nothing in it.</p>\n");
    } else if (more) {
        PUT(x, "<p class=\"hint\">And more than these.</p>\n");
    }
}

void talk_files(struct exchange *x, const struct talk *t)
{
    PUT(x,
        "<section id=\"files\" aria-labelledby=\"workspace\">\n<h2 id=\"workspace\">The files of its sandbox</h2>\n");
    if (t->listed)
        table(x, t);
    else if (t->started)
        PUT(x, "<p class=\"hint\">They cannot be listed at the moment: the sandbox does not answer, or stands "
               "still.</p>\n");
    else if (t->idle)
        PUT(x, "<p class=\"hint\">Its sandbox is idle: its files are kept, and are there again with its next "
               "command.</p>\n");
    else
        PUT(x, "<p class=\"hint\">It has no sandbox at the moment: one is started when a tool first needs it.</p>\n");
    PUT(x, "<p><a class=\"quiet\" href=\"/sandboxes?name=");
    show_own(&x->out, t->box);
    PUT(x, "\">The sandbox itself</a></p>\n</section>\n");
}

/* --- one file ---------------------------------------------------------------------------------- */

struct file {
    const char *id;
    struct span path;
};

static void file_head(struct exchange *x, const struct file *f)
{
    page_begin(x, 200, "talk-file", "A file of a sandbox");
    PUT(x, "<p class=\"back\"><a href=\"/conversations/");
    show_own(&x->out, f->id);
    PUT(x, "\">The conversation</a></p>\n<div class=\"title\">\n<h1>A file of a sandbox</h1>\n<p class=\"mono\">");
    show_cut(&x->out, f->path, PATH_SHOWN);
    PUT(x, "</p>\n<p class=\"hint\">As it is now in the sandbox, which may change it at any time. What is in it was "
           "written "
           "there, and is not to be trusted.</p>\n</div>\n");
}

static void had(struct exchange *x, const struct transfer_end *e)
{
    const struct file *f = x->holds;
    struct span text = span_first(e->said, FILE_SHOWN);

    x->holds = NULL;
    if (e->how != SB_EXITED || e->code != 0) {
        page_problem(x, e->how == SB_LOST ? 404 : 503, "Not shown",
                     "There is no such file any more, or it cannot be read at the moment.");
        return;
    }
    file_head(x, f);
    PUT(x, "<section class=\"content\" aria-label=\"Content\">\n");
    if (text.n == 0)
        PUT(x, "<p class=\"hint\">It is empty.</p>\n");
    else if (utf8_run(text) + 4 > text.n) /* the last character may be cut */
        talk_text(x, span_first(text, utf8_run(text)), e->said.n, FILE_SHOWN);
    else
        PUT(x, "<p class=\"hint\">It is no text.</p>\n");
    if (e->said.n > FILE_SHOWN)
        PUT(x, "<p class=\"hint\">It goes on: <code>countersign sandbox cp</code> fetches all of it.</p>\n");
    PUT(x, "</section>\n");
    page_end(x);
}

/* Is it a conversation of those that may be seen? Its sandbox is looked at after that alone. */
static void allowed(struct exchange *x, unsigned status, struct span body)
{
    static const struct transfer_of of = {.share = SHARE_SHORT, .done = had};
    struct file *f = x->step;
    struct talk t = {.id = f->id};
    struct err e;

    if (!talks_came(x, status, 200, body))
        return;
    if (talk_sandbox(x, &t, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    if (!t.started) {
        page_problem(x, 404, "Not there", "Its sandbox does not run at the moment.");
        return;
    }
    x->holds = f;
    api_files_page(x, arena_copy(&x->arena, span_str(t.box)), false, f->path, FILE_SHOWN + 1, &of);
}

void page_talk_file(struct exchange *x)
{
    struct talks_ask q = {.method = "GET"};
    struct file *f = arena_alloc(&x->arena, sizeof *f);
    struct span path, id = x->arg;
    struct id known;

    if (query_field(x, "path", &path) != 0)
        return;
    if (!f || id_parse(id, &known) != 0 || path.n == 0 || path.n > TALK_PATH_MAX || span_index(path, '\0') < path.n) {
        page_problem(x, 404, "Not there", "There is no such conversation, or no such file.");
        return;
    }
    *f = (struct file){.id = (const char *)arena_printf(&x->arena, "%.*s", SPAN_FMT(id)).p, .path = path};
    x->step = f;
    q.target = arena_printf(&x->arena, "/conversations/%.*s/turns", SPAN_FMT(id));
    if (f->id && q.target.p)
        talks_begin(x, &q, allowed);
    else
        page_problem(x, 503, "Not possible now", "There is no memory for this page.");
}
