/* A package on its ticket's page: what it says it is, and each of its files. */
#include "web-approval/pictures/pictures.h"
#include "web-approval/viewer/packed.h"

enum { OPEN_FILES = 40, NAME_SHOWN = 300, WORD_SHOWN = 120 };

static void row(struct exchange *x, const struct packed_file *f)
{
    const char *mark = f->type == PACKED_FILE || f->type == PACKED_FOLDER ? package_mark(f->name) : "link";
    struct dynbuf *out = &x->out;

    PUT(x, "<tr><td class=\"mono\">");
    show_cut(out, f->name, NAME_SHOWN);
    if (f->type == PACKED_FOLDER)
        PUT(x, "/");
    if (f->target.n) {
        PUT(x, " &#8594; ");
        show_cut(out, f->target, NAME_SHOWN);
    }
    PUT(x, "</td><td>");
    if (f->type == PACKED_FILE)
        show_size(out, f->size);
    PUT(x, "</td><td>");
    if (f->type == PACKED_OTHER)
        PUT(x, "<b>neither file nor folder</b>");
    else if (mark)
        (void)dynbuf_addf(out, "<b>%s</b>", mark);
    if (f->type == PACKED_FILE && (f->mode & 0111))
        show_own(out, mark ? ", a program" : "a program");
    PUT(x, "</td></tr>\n");
}

/* marked: those with a mark, else the others. How many there were. */
static size_t rows(struct exchange *x, struct packed p, bool marked, size_t from, size_t to)
{
    struct packed_file f;
    size_t n = 0;

    while (packed_next(&p, &f) == 1) {
        bool plain = (f.type == PACKED_FILE || f.type == PACKED_FOLDER) && package_mark(f.name) == NULL;
        if (plain == marked)
            continue;
        if (n >= from && n < to)
            row(x, &f);
        n++;
    }
    return n;
}

#define TABLE "<table class=\"files\"><thead><tr><th>File</th><th>Size</th><th>Look at</th></tr></thead><tbody>\n"

static void table(struct exchange *x, const struct packed *p)
{
    PUT(x, TABLE);
    size_t marked = rows(x, *p, true, 0, SIZE_MAX), open = marked < OPEN_FILES ? OPEN_FILES - marked : 0;
    size_t others = rows(x, *p, false, 0, open);
    PUT(x, "</tbody></table>\n");
    if (others <= open)
        return;
    PUT(x, "<details><summary>");
    show_count(&x->out, others - open, "more file");
    PUT(x, "</summary>\n" TABLE);
    (void)rows(x, *p, false, open, SIZE_MAX);
    PUT(x, "</tbody></table>\n</details>\n");
}

void page_package(struct exchange *x, const struct view *v, size_t i)
{
    const struct viewed *s = &v->seen[i];
    const struct json *in;
    enum json_fault why;
    struct packed p, all;
    struct packed_file f;
    uint64_t bytes = 0;

    if (s->end != VIEW_SHOWN || packed_open(v->list[i], &p) != 0)
        return;
    for (all = p; packed_next(&all, &f) == 1;)
        bytes += f.size;
    in = p.manifest.n ? json_parse_or(p.manifest, &x->arena, &why) : NULL;
    PUT(x,
        "<section class=\"package\" aria-label=\"The package\">\n<p class=\"label\">The package says that it is <b>");
    show_cut(&x->out, in ? json_text(in, SPAN("name")) : SPAN("nothing"), WORD_SHOWN);
    PUT(x, "</b> ");
    show_cut(&x->out, in ? json_text(in, SPAN("version")) : SPAN_NONE, WORD_SHOWN);
    PUT(x, ", and has ");
    show_count(&x->out, s->width, "file");
    PUT(x, " of ");
    show_size(&x->out, bytes);
    PUT(x, "</p>\n");
    table(x, &p);
    PUT(x, "</section>\n");
}
