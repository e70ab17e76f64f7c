/* Forms: pairs of a query or a body, and forms with files. */
#include "web-approval/reading/parts.h"

#include "common/id.h"
#include "common/text/multipart.h"
#include "common/text/visible.h"

enum { PARTS_MAX = 500, TRIES = 100 };

static struct span decoded(struct reading *r, struct span s)
{
    uint8_t *out = arena_alloc(r->arena, s.n + 1);
    size_t n = 0;

    for (size_t i = 0; out && i < s.n; i++) {
        int v = s.p[i] == '%' ? hex_number(span_from(s, i + 1), 2) : -1;
        out[n++] = v >= 0 ? (uint8_t)v : s.p[i] == '+' ? ' ' : s.p[i];
        i += v >= 0 ? 2 : 0;
    }
    return span_of(out, n);
}

/* Names that were there already, by their hash: as many as there may be, twice over. */
struct names {
    struct span *slot;
    size_t size; /* a power of two */
};

static struct names names_for(struct reading *r, size_t n)
{
    struct names seen = {.size = 16};

    while (seen.size < 2 * n)
        seen.size *= 2;
    seen.slot = arena_alloc(r->arena, seen.size * sizeof *seen.slot);
    return seen;
}

/* A name of a list, "tag[]", may stand as often as it likes. */
static void once(struct reading *r, struct names *seen, struct span name, struct span value)
{
    size_t at = name_hash(name), tries = 0;

    if (span_ends(name, SPAN("[]")))
        return;
    for (; seen->slot && tries < TRIES; at++, tries++) {
        struct span *slot = &seen->slot[at & (seen->size - 1)];
        if (slot->p == NULL) {
            *slot = name.p ? name : SPAN("");
            return;
        }
        if (span_eq(*slot, name)) {
            flag_add(r, "A name stands more than once: servers differ in which value counts", name, value);
            return;
        }
    }
    flag_add(r, "More names than are compared: one may stand more than once", name, SPAN_NONE);
}

void form_read(struct reading *r, struct span s, bool body)
{
    struct span pair, name, value;
    size_t pairs = 1;

    for (size_t i = 0; i < s.n; i++)
        pairs += s.p[i] == '&';
    struct names seen = names_for(r, pairs);
    for (bool more = s.n > 0; more;) {
        more = span_cut(s, '&', &pair, &s);
        (void)span_cut(pair, '=', &name, &value);
        name = decoded(r, name);
        value = decoded(r, value);
        if (pair.n == 0)
            continue;
        once(r, &seen, name, value);
        text_look(r, name, name);
        if (body)
            value_add(r, name, value, VALUE_TEXT);
        else
            value_look(r, name, value, VALUE_TEXT);
    }
    if (body)
        r->kind = "a form";
}

/* --- with files ----------------------------------------------------------- */

/* A parameter of a field's value, without its quotes; p NULL: it is not there. *n: how often it is. */
static struct span parameter(struct span field, struct span want, size_t *n)
{
    struct span rest = span_from(field, span_index(field, ';')), found = SPAN_NONE;

    *n = 0;

    while (rest.n) {
        rest = span_trim(span_from(rest, 1));
        size_t equals = 0;
        while (equals < rest.n && rest.p[equals] != '=' && rest.p[equals] != ';')
            equals++;
        bool quoted = equals + 1 < rest.n && rest.p[equals] == '=' && rest.p[equals + 1] == '"';
        struct span name = span_trim(span_first(rest, equals));
        struct span value = span_from(rest, equals + 1 + quoted);
        size_t end = 0;
        while (end < value.n && value.p[end] != (quoted ? '"' : ';'))
            end += quoted && value.p[end] == '\\' && end + 1 < value.n ? 2 : 1;
        bool has = equals < rest.n && rest.p[equals] == '=';
        if (has && span_ieq(name, want) && (*n)++ == 0)
            found = end && value.p ? span_first(value, end) : SPAN("");
        rest = has ? span_from(value, end) : span_from(rest, equals);
        rest = span_from(rest, span_index(rest, ';'));
    }
    return found;
}

struct part {
    struct span name, file, other, type, content;
    bool good;
};

/* False: servers differ in what it is called. */
static bool disposition(struct part *p, struct span value)
{
    size_t n, again;
    bool once = !p->name.p; /* and it is the only field of its kind */

    p->name = parameter(value, SPAN("name"), &n);
    (void)parameter(value, SPAN("name*"), &again);
    once &= n == 1 && again == 0;
    p->file = parameter(value, SPAN("filename"), &n);
    p->other = parameter(value, SPAN("filename*"), &again);
    return once && n <= 1 && again <= 1;
}

/* False: it is not understood, or in two ways: then nobody knows what a server makes of it. */
static bool head_line(struct part *p, struct span line)
{
    static const char *const plain[] = {"7bit", "8bit", "binary"};
    struct span field, value;
    bool is_plain = false;

    if (line.n == 0 || line.p[0] == ' ' || line.p[0] == '\t' || span_index(line, '\r') < line.n ||
        !span_cut(line, ':', &field, &value))
        return false;
    if (span_ieq(field, SPAN("content-disposition")))
        return disposition(p, value);
    if (span_ieq(field, SPAN("content-type")))
        p->type = span_trim(value);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        is_plain |= span_ieq(span_trim(value), span_str(plain[i]));
    return is_plain || !span_ieq(field, SPAN("content-transfer-encoding"));
}

static struct part part_of(struct span s)
{
    struct part p = {.good = false};
    size_t end = span_find(s, SPAN("\r\n\r\n"));
    struct span head = span_first(s, end), line;
    bool good = end < s.n;

    p.content = span_from(s, end + 4);
    for (bool more = good; more && good;) {
        more = span_cut(head, '\n', &line, &head);
        if (more && (line.n == 0 || line.p[line.n - 1] != '\r')) /* to some the head ends there */
            good = false;
        else
            good = head_line(&p, span_first(line, line.n - more));
    }
    p.good = good && p.name.p != NULL;
    return p;
}

/* "utf-8'en'%e2%82%ac": the name that it means. */
static struct span other_name(struct reading *r, const struct part *p)
{
    struct span charset, rest;
    uint8_t *out = arena_alloc(r->arena, p->other.n + 1);
    size_t n = 0;

    (void)span_cut(p->other, '\'', &charset, &rest);
    rest = span_from(rest, span_index(rest, '\'') + 1);
    if (!span_ieq(charset, SPAN("utf-8")) && !span_ieq(charset, SPAN("us-ascii")))
        flag_add(r, "A file name is in another charset than it is shown in", p->name, p->other);
    for (size_t i = 0; out && i < rest.n; i++) {
        int v = rest.p[i] == '%' ? hex_number(span_from(rest, i + 1), 2) : -1;
        out[n++] = v >= 0 ? (uint8_t)v : rest.p[i];
        i += v >= 0 ? 2 : 0;
    }
    return span_of(out, n);
}

static void file_name_look(struct reading *r, const struct part *p, struct span file)
{
    text_look(r, p->name, file);
    if (span_find(file, SPAN("..")) < file.n || span_index(file, '/') < file.n || span_index(file, '\\') < file.n)
        flag_add(r, "A file name that leads to another folder", p->name, file);
}

static void file_look(struct reading *r, const struct part *p)
{
    struct span other = p->other.p ? other_name(r, p) : SPAN_NONE, file = p->file.p ? p->file : other;
    const char *is = bytes_are(p->content);
    bool picture = picture_said(p->type);

    if (p->file.p && p->other.p)
        flag_add(r, "A file with two names: servers differ in which one counts", p->file, p->other);
    file_name_look(r, p, file);
    if (p->file.p && p->other.p)
        file_name_look(r, p, other);
    if (picture && (is ? !span_starts(span_str(is), SPAN("a picture"))
                       : visible_is_text(p->content) && !span_starts(p->type, SPAN("image/svg"))))
        flag_block(r, "A file is not what its type says, a picture", p->name, is ? span_str(is) : p->type);
    struct span words = arena_printf(r->arena, "a file of %zu bytes: ", p->content.n);
    value_add(r, p->name, words.p ? arena_join(r->arena, words, file) : file, VALUE_WORD);
}

static void part_picture(struct reading *r, const struct part *p)
{
    struct span type = span_trim(span_first(p->type, span_index(p->type, ';')));

    if (picture_said(type) || picture_begins(p->content))
        picture_add(r, p->name, type, p->content);
}

void multipart_pictures(struct reading *r, struct span type, bool form)
{
    enum multipart_next next = MULTIPART_BAD;
    struct multipart_type t;
    size_t parts = 0;
    struct span s;

    if (multipart_type(type, &t) == 0) {
        struct multipart m = {.boundary = t.boundary, .rest = body_all(r)};
        while ((next = multipart_next(&m, &s)) == MULTIPART_PART && parts++ < PARTS_MAX) {
            struct part p = part_of(s);
            if (form && !p.good) {
                next = MULTIPART_BAD;
                break;
            }
            part_picture(r, &p);
        }
    }
    if (next != MULTIPART_END)
        flag_block(r, "The body cannot be taken apart as its type says", SPAN("Content-Type"), type);
}

void multipart_read(struct reading *r, struct span type)
{
    struct names seen = names_for(r, PARTS_MAX);
    struct multipart_type t;
    struct span s;
    size_t files = 0, parts = 0;
    enum multipart_next next = MULTIPART_BAD;

    if (multipart_type(type, &t) == 0) {
        struct multipart m = {.boundary = t.boundary, .rest = r->text};
        while ((next = multipart_next(&m, &s)) == MULTIPART_PART && parts++ < PARTS_MAX) {
            struct part p = part_of(s);
            if (!p.good) {
                next = MULTIPART_BAD;
                break;
            }
            bool file = p.file.p || p.other.p;
            files += file;
            r->files |= file;
            if (!file || !span_ends(p.name, SPAN("[]")))
                once(r, &seen, p.name, file ? p.file : p.content);
            text_look(r, p.name, p.name);
            part_picture(r, &p);
            if (file)
                file_look(r, &p);
            else
                value_add(r, p.name, p.content, VALUE_TEXT);
            if (file && files > 1)
                flag_add(r, "A second file in one form", p.name, p.file.p ? p.file : p.other);
        }
    }
    r->kind = "a form with files";
    if (next != MULTIPART_END)
        flag_block(r, "The body cannot be taken apart as its type says", SPAN("Content-Type"), type);
}
