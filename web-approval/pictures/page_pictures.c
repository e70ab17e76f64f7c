/* Pictures on a ticket's page: each with what it is, or why it is not there. */
#include "web-approval/pictures/pictures.h"

enum { NAME_SHOWN = 120, SMALL = 3 /* shown at less than one in so many, small writing is lost */ };

static const char *why_not(const struct viewed *s)
{
    static const char *const words[VIEW_ENDS] = {
        [VIEW_FAILED] = "A picture that cannot be shown: what opens it ended without a word",
        [VIEW_KIND] = "A picture of a kind that is not drawn here: PNG, JPEG, GIF and WebP are",
        [VIEW_LARGE] = "A picture that is too large to be shown",
        [VIEW_DAMAGED] = "A picture that is damaged: programs differ in what they show of it",
        [VIEW_MOVES] = "Pictures that follow each other in one: no more than the first is ever shown",
        [VIEW_BUSY] = "A picture that is not shown now, for too many are being opened: load this page again",
    };
    return s->frames > 1 ? words[VIEW_MOVES] : words[s->end];
}

static bool is_shown(const struct view *v, size_t i)
{
    return v->seen[i].end == VIEW_SHOWN;
}

/* "image/jpg" is what some call the other. */
static bool is_of_type(const struct picture *p, const struct viewed *s)
{
    struct span said = span_from(p->type, sizeof("image/") - 1);

    return p->type.n == 0 || !span_ieq(span_first(p->type, 6), SPAN("image/")) ||
           span_ieq(said, span_str(viewed_format(s))) || (s->format == VIEW_JPEG && span_ieq(said, SPAN("jpg"))) ||
           (s->format == VIEW_PNG && span_ieq(said, SPAN("apng")));
}

void pictures_flag(struct exchange *x, struct view *v)
{
    struct reading *r = &v->r;

    for (size_t i = 0; i < r->npictures; i++) {
        const struct picture *p = &r->picture[i];
        const struct viewed *s = &v->seen[i];
        if (p->package) {
            packages_flag(x, v, i);
            continue;
        }
        if (!is_shown(v, i) || s->frames > 1)
            reading_block(r, why_not(s), p->name, p->type);
        if (!is_shown(v, i))
            continue;
        if (!is_of_type(p, s))
            reading_flag(r, "A picture of another format than its type says", p->name, span_str(viewed_format(s)));
        if (s->behind)
            reading_flag(r, "Behind the picture more bytes follow, which are not shown", p->name,
                         arena_printf(&x->arena, "%llu", (unsigned long long)s->behind));
        if (s->clear)
            reading_flag(r, "Parts of the picture can be seen through: on another ground it looks otherwise", p->name,
                         SPAN_NONE);
        if ((uint64_t)s->w * SMALL < s->width)
            reading_flag(r, "The picture is shown much smaller than it is: small writing in it may be lost", p->name,
                         arena_printf(&x->arena, "%u of %u pixels across", s->w, s->width));
    }
}

/* "PNG, 640 × 480 pixels" */
static void kind(struct dynbuf *out, const struct viewed *s)
{
    show_own(out, viewed_format(s));
    if (s->width && s->height)
        (void)dynbuf_addf(out, ", %u &#215; %u pixels", s->width, s->height);
}

static void shown(struct exchange *x, const struct view *v, size_t i)
{
    const struct viewed *s = &v->seen[i];
    struct dynbuf *out = &x->out;

    PUT(x, "<a href=\"/tickets/");
    show_text(out, v->t.id);
    (void)dynbuf_addf(out, "/picture?n=%zu\"><img src=\"/tickets/", i); /* alone, it can be enlarged */
    show_text(out, v->t.id);
    (void)dynbuf_addf(out, "/picture?n=%zu\" width=\"%u\" height=\"%u\" alt=\"Picture %zu of this request: ", i, s->w,
                      s->h, i + 1);
    kind(out, s);
    PUT(x, "\"></a>\n");
}

static void caption(struct exchange *x, const struct picture *p, const struct viewed *s, bool is_there)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<figcaption>");
    if (p->name.n) {
        PUT(x, "<b class=\"mono\">");
        show_cut(out, p->name, NAME_SHOWN);
        PUT(x, "</b> ");
    }
    PUT(x, "<span>");
    kind(out, s);
    PUT(x, ", ");
    show_size(out, p->bytes.n);
    PUT(x, "</span>");
    if (is_there && s->w < s->width)
        (void)dynbuf_addf(out, " <span>shown at %u &#215; %u</span>", s->w, s->h);
    if (s->frames > 1)
        (void)dynbuf_addf(out, " <span>the first of %u%s</span>", s->frames,
                          s->frames == VIEW_FRAMES_MAX ? " or more" : "");
    PUT(x, "</figcaption>\n");
}

void page_pictures(struct exchange *x, const struct view *v)
{
    for (size_t i = 0; v->looked && i < v->r.npictures; i++) {
        const struct viewed *s = &v->seen[i];
        if (v->r.picture[i].package) {
            page_package(x, v, i);
            continue;
        }
        (void)dynbuf_addf(&x->out, "<figure class=\"picture%s\">\n", is_shown(v, i) ? "" : " none");
        if (is_shown(v, i)) {
            shown(x, v, i);
        } else {
            PUT(x, "<p class=\"note\">");
            show_own(&x->out, why_not(s));
            PUT(x, ".</p>\n");
        }
        caption(x, &v->r.picture[i], s, is_shown(v, i));
        PUT(x, "</figure>\n");
    }
}

void pictures_give(struct exchange *x, struct view *v)
{
    if (x->file < 0) {
        page_problem(x, 404, "Not shown", "There is no such picture in this request, or it cannot be shown now.");
        return;
    }
    x->status = 200;
    x->type = "image/png";
    x->inert = true;
}
