#include "web-approval/rooms/rooms.h"

void room_begin(struct exchange *x, const char *kind, const char *title, const char *words)
{
    page_begin(x, 200, kind, title);
    (void)dynbuf_addf(&x->out, "<div class=\"title\">\n<h1>%s</h1>\n<p class=\"hint\">%s</p>\n</div>\n", title,
                      words);
}

void room_section(struct exchange *x, const char *id, const char *title)
{
    (void)dynbuf_addf(&x->out, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", id, id, title);
}

void room_section_end(struct exchange *x)
{
    PUT(x, "</section>\n");
}

void room_table(struct exchange *x, const char *label, const char *const *heads, size_t n)
{
    (void)dynbuf_addf(
        &x->out,
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n<table class=\"list\">\n"
        "<thead><tr>",
        label);
    for (size_t i = 0; i < n; i++)
        (void)dynbuf_addf(&x->out, "<th scope=\"col\">%s</th>", heads[i]);
    PUT(x, "</tr></thead>\n<tbody>\n");
}

void room_table_end(struct exchange *x)
{
    PUT(x, "</tbody>\n</table>\n</div>\n");
}

void room_cell(struct exchange *x, const char *head)
{
    PUT(x, "<td>");
    if (head)
        (void)dynbuf_addf(&x->out, "<span class=\"label narrow\">%s </span>", head);
}

void room_cell_text(struct exchange *x, const char *head, struct span text)
{
    room_cell(x, head);
    show_cut(&x->out, text, ROOM_TEXT);
    PUT(x, "</td>");
}

void room_empty(struct exchange *x, const char *what, const char *then)
{
    (void)dynbuf_addf(&x->out, "<div class=\"empty\"><p>%s</p><p class=\"hint\">%s</p></div>\n", what, then);
}

void room_state(struct exchange *x, bool good, const char *word)
{
    (void)dynbuf_addf(&x->out, "<span class=\"state %s\"><span aria-hidden=\"true\">%s</span> %s</span>",
                      good ? "good" : "bad", good ? "&#10003;" : "&#10007;", word);
}
