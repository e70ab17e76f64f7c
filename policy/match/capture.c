#include "policy/match/capture.h"

#include "common/text/visible.h"
#include "policy/image/glob.h"

enum { FILLED_MAX = 64 * 1024 };

static bool is_name_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_word_byte(uint8_t c)
{
    return is_name_byte(c) || (c >= 'A' && c <= 'Z');
}

bool capture_segment(struct span segment, struct span *name)
{
    if (segment.n < 3 || segment.n > CAPTURE_NAME_MAX + 2 || segment.p[0] != '{' || segment.p[segment.n - 1] != '}')
        return false;
    *name = span_of(segment.p + 1, segment.n - 2);
    for (size_t i = 0; i < name->n; i++)
        if (!is_name_byte(name->p[i]))
            return false;
    return true;
}

bool capture_next(struct span text, size_t from, size_t *at, struct span *name)
{
    for (size_t i = from; i < text.n; i++) {
        size_t end = i + 1;
        if (text.p[i] != '{')
            continue;
        while (end < text.n && is_word_byte(text.p[end]))
            end++;
        if (end == text.n || text.p[end] != '}' || end == i + 1)
            continue;
        *at = i;
        *name = span_of(text.p + i + 1, end - i - 1);
        return true;
    }
    return false;
}

/* The segment that begins at `from`, which is no further than the end. */
static struct span segment_from(struct span s, size_t from)
{
    struct span rest = span_of(s.p + from, s.n - from);
    return span_first(rest, span_index(rest, '/'));
}

static size_t segments_after(struct span s, size_t from)
{
    size_t n = 0;
    for (size_t i = from; i < s.n; i++)
        n += s.p[i] == '/';
    return n;
}

enum capture_found capture_find(struct span path, struct span name, struct capture_place *at)
{
    bool deep = false;
    size_t index = 0;
    for (size_t i = 0; i <= path.n && path.n; index++) {
        struct span segment = segment_from(path, i), is;
        size_t end = i + segment.n;
        if (capture_segment(segment, &is) && span_eq(is, name)) {
            struct span rest = span_from(path, end);
            *at = (struct capture_place){deep ? segments_after(path, end) : index, deep};
            return deep && span_find(rest, SPAN("**")) < rest.n ? CAPTURE_UNSURE : CAPTURE_FOUND;
        }
        deep |= span_eq(segment, SPAN("**"));
        i = end + 1;
    }
    return CAPTURE_ABSENT;
}

/* Empty: there is none. */
static struct span segment_at(struct span path, struct capture_place at)
{
    size_t all = segments_after(path, 0) + 1, i = 0;
    if (at.n >= all)
        return SPAN_NONE;
    for (size_t skip = at.from_end ? all - 1 - at.n : at.n; skip > 0; skip--)
        i += segment_from(path, i).n + 1;
    return segment_from(path, i);
}

static void add_safe(struct dynbuf *b, struct span s)
{
    char escape[VISIBLE_ESCAPE_MAX];
    for (size_t i = 0, shown = 0; i < s.n;) {
        size_t n = 1;
        enum visible_kind kind = visible_char(span_from(s, i), &n, escape);
        bool as_it_is = kind == VISIBLE_ASCII || kind == VISIBLE_OTHER;
        struct span one = as_it_is ? span_of(s.p + i, n) : SPAN("?");
        if (shown + one.n > CAPTURE_SHOWN_MAX)
            return;
        (void)dynbuf_add(b, one);
        shown += one.n;
        i += n;
    }
}

/* Which of the rule's paths fits, as it is written or in the other ways that some servers read one? Counted on past
 * them when it is the path without the slash at its end, which goes first: behind that slash a "*" fits nothing. */
static uint32_t path_that_fits(const struct policy *p, const struct img_match *m, struct span path, struct span bare)
{
    static const struct {
        bool bare, fold;
    } way[] = {{true, false}, {false, false}, {true, true}, {false, true}};
    for (unsigned how = 0; how < 4; how++)
        for (uint32_t i = 0; i < m->paths.n; i++) {
            const struct img_glob *at = img_at(p, IMG_GLOB, m->paths.first + i);
            struct glob g = {img_span(p, at->text), at->head, at->tail, at->literal, at->deep, at->after};
            if (glob_match(&g, way[how].bare ? bare : path, '/', way[how].fold))
                return way[how].bare ? i + m->paths.n : i;
        }
    return 0;
}

struct span capture_fill(const struct policy *p, const struct img_rule *r, struct span path, struct span text,
                         struct arena *a)
{
    const struct img_match *m = img_at(p, IMG_MATCH, r->match.first);
    size_t at, done = 0;
    struct span name, out;
    struct dynbuf b;
    if (m->written.n == 0 || !capture_next(text, 0, &at, &name))
        return text;
    struct span bare = path.n > 1 && path.p[path.n - 1] == '/' ? span_first(path, path.n - 1) : path;
    uint32_t which = path_that_fits(p, m, path, bare);
    struct span is = which < m->paths.n ? path : bare;
    struct span written = img_text(p, m->written, which % m->paths.n);
    dynbuf_init(&b, FILLED_MAX);
    for (; capture_next(text, done, &at, &name); done = at + name.n + 2) {
        struct capture_place place;
        bool found = capture_find(written, name, &place) == CAPTURE_FOUND;
        struct span value = found ? segment_at(is, place) : SPAN_NONE;
        (void)dynbuf_add(&b, span_of(text.p + done, at - done));
        if (value.n)
            add_safe(&b, value);
        else
            (void)dynbuf_add(&b, span_of(text.p + at, name.n + 2));
    }
    (void)dynbuf_add(&b, span_of(text.p + done, text.n - done));
    out = arena_keep(a, &b);
    return out.n ? out : text;
}
