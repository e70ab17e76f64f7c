/* What is too long is cut where a character ends, and says so: a model that takes a part for the whole writes the
 * part back. */
#include "broker/work/tools.h"

enum { SAID_MAX = 64, NOTE_MAX = 160 };

struct span whole_chars(struct span s)
{
    for (size_t back = 1; back <= 3 && back <= s.n; back++) {
        uint8_t c = s.p[s.n - back];
        size_t needs = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        if ((c & 0xc0) != 0x80)
            return needs > back ? span_first(s, s.n - back) : s;
    }
    return s;
}

/* Its last line, with the line's begin, where it is a note in brackets of what is missing; else nothing. */
static struct span note_of(struct span text)
{
    size_t at = text.n;
    while (at > 0 && text.n - at < NOTE_MAX && text.p[at - 1] != '\n')
        at--;
    bool note = at > 0 && text.p[at - 1] == '\n' && at < text.n && text.p[at] == '[' && text.p[text.n - 1] == ']';
    return note ? span_from(text, at - 1) : SPAN_NONE;
}

struct span result_cut(struct arena *a, struct span text, size_t most)
{
    struct dynbuf b;
    if (text.n <= most)
        return text;
    struct span note = note_of(text);
    size_t room = most > note.n + SAID_MAX ? most - note.n - SAID_MAX : 0;
    struct span shown = whole_chars(span_first(text, room));
    dynbuf_init(&b, most + SAID_MAX + NOTE_MAX);
    (void)dynbuf_add(&b, shown);
    (void)dynbuf_addf(&b, "\n[%zu of %zu bytes shown]", shown.n, text.n - note.n);
    (void)dynbuf_add(&b, note);
    return arena_keep(a, &b);
}
