/* The parts of a form with files (multipart/form-data, RFC 7578): its fields and files, by name. A part's head has to
 * be one that no server reads in another way, or nothing of the body is understood. */
#include "policy/body/multipart.h"

#include "common/text/multipart.h"
#include "common/text/utf8.h"
#include "policy/body/parsers.h"
#include "policy/spelling/letters.h"

/* ---- the head of a part ---- */

/* What no server ends a text at, unescapes or takes for an encoded word (RFC 2047). */
static bool is_clear(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < ' ' || s.p[i] == 0x7f || s.p[i] == '"' || s.p[i] == '\\' || s.p[i] == ';')
            return false;
    return span_find(s, SPAN("=?")) == s.n && utf8_run(s) == s.n;
}

/* Letters, digits and these. */
static bool is_word(struct span s, struct span others)
{
    return s.n > 0 && span_is_of(s, others);
}

/* "; name=word" or "; name=\"text\"" in front of *s, which is what follows it then. */
static bool take_parameter(struct span *s, struct span name, struct span others, struct span *out)
{
    if (s->n == 0 || s->p[0] != ';')
        return false;
    *s = span_trim(span_from(*s, 1));
    if (!span_starts(*s, name))
        return false;
    *s = span_from(*s, name.n);
    bool quoted = s->n > 0 && s->p[0] == '"';
    *s = span_from(*s, quoted);
    size_t end = span_index(*s, quoted ? '"' : ';');
    *out = span_first(*s, end);
    bool good = quoted ? end < s->n && is_clear(*out) : is_word(*out, others);
    *s = span_from(*s, end + quoted);
    return good;
}

/* filename*= of clients that write both: it has to say the same. */
static bool says_again(struct span said, struct span file, struct arena *a)
{
    const struct span charset = SPAN("utf-8''");
    struct span is;
    return span_ieq(span_first(said, charset.n), charset) &&
           spelling_decode(span_from(said, charset.n), false, a, &is) == 0 && span_eq(is, file);
}

/* form-data with a name, then a file name: who searches for name= or filename= finds no other one before. */
static bool read_disposition(struct span s, struct span *name, struct multipart_part *out, struct arena *a)
{
    const struct span word = SPAN("form-data"), plain = SPAN("-._"), coded = SPAN("-._'%~!#$&+^`|");
    struct span again;
    if (!span_starts(s, word))
        return false;
    s = span_from(s, word.n);
    if (!take_parameter(&s, SPAN("name="), plain, name) || span_index(*name, '=') < name->n)
        return false;
    if (s.n > 0 && !take_parameter(&s, SPAN("filename="), plain, &out->file))
        return false;
    if (s.n > 0 && (!take_parameter(&s, SPAN("filename*="), coded, &again) || !says_again(again, out->file, a)))
        return false;
    return s.n == 0;
}

/* Parts within a part are not looked into, and others may. */
static bool read_type(struct span s, struct multipart_part *out, struct arena *a)
{
    struct span type = body_media_type(s);
    uint8_t *small = type.n ? arena_alloc(a, type.n) : NULL;
    if (small == NULL)
        return false;
    for (size_t i = 0; i < type.n; i++)
        small[i] = type.p[i] >= 'A' && type.p[i] <= 'Z' ? type.p[i] | 0x20 : type.p[i];
    out->type = span_of(small, type.n);
    return !span_starts(out->type, SPAN("multipart/")) && !span_starts(out->type, SPAN("message/"));
}

/* One that changes nothing. */
static bool is_no_coding(struct span s)
{
    return span_ieq(s, SPAN("binary")) || span_ieq(s, SPAN("8bit")) || span_ieq(s, SPAN("7bit"));
}

static bool is_length(struct span s, struct span content)
{
    uint64_t n;
    return span_u64(s, UINT64_MAX, &n) == 0 && n == content.n;
}

/* "Name: value" on one line; name p NULL: it is none. */
static struct span take_field(struct span *head, struct span *value)
{
    size_t end = span_find(*head, SPAN("\r\n"));
    struct span line = span_first(*head, end), name;
    *head = span_from(*head, end + 2);
    for (size_t i = 0; i < line.n; i++)
        if (line.p[i] < ' ')
            return SPAN_NONE;
    if (!span_cut(line, ':', &name, value))
        return SPAN_NONE;
    *value = span_trim(*value);
    return name;
}

/* Each of these fields at most once, and no other one. */
static bool read_head(struct span head, struct span content, struct span *name, struct multipart_part *out,
                      struct arena *a)
{
    enum { DISPOSITION = 0, TYPE, CODING, LENGTH, FIELDS };
    static const struct span names[FIELDS] = {SPAN("Content-Disposition"), SPAN("Content-Type"),
                                              SPAN("Content-Transfer-Encoding"), SPAN("Content-Length")};
    bool seen[FIELDS] = {false}, good = true;
    while (head.n > 0 && good) {
        struct span value = SPAN_NONE, field = take_field(&head, &value);
        size_t k = 0;
        while (k < FIELDS && !span_ieq(field, names[k]))
            k++;
        if (k == FIELDS || seen[k])
            return false;
        seen[k] = true;
        good = k == DISPOSITION ? read_disposition(value, name, out, a)
               : k == TYPE      ? read_type(value, out, a)
               : k == CODING    ? is_no_coding(value)
                                : is_length(value, content);
    }
    return good && seen[DISPOSITION];
}

/* ---- all of them ---- */

static enum ambiguity_cause read_part(struct multipart_form *f, struct span text, struct arena *a)
{
    struct multipart_part *parts = arena_more(a, f->part, f->n, &f->parts_max, sizeof(*parts));
    struct param *params = arena_more(a, f->param, f->n, &f->params_max, sizeof(*params));
    size_t end = span_find(span_first(text, MULTIPART_HEAD_MAX), SPAN("\r\n\r\n"));
    if (parts == NULL || params == NULL)
        return AMBIGUITY_BODY_LARGE;
    f->part = parts;
    f->param = params;
    struct multipart_part *one = &parts[f->n];
    struct span name = SPAN_NONE, content = span_from(text, end + 4);
    *one = (struct multipart_part){.content = content};
    if (end >= MULTIPART_HEAD_MAX || end == text.n || !read_head(span_first(text, end), content, &name, one, a))
        return AMBIGUITY_MULTIPART;
    one->is = one->file.p                                                     ? MULTIPART_FILE
              : one->type.p == NULL || span_eq(one->type, SPAN("text/plain")) ? MULTIPART_FIELD
                                                                              : MULTIPART_OTHER;
    params[f->n++] = (struct param){.name = name, .value = one->file.p ? SPAN_NONE : content};
    return AMBIGUITY_NONE;
}

/* One that no server cuts short at a character, and no other charset. */
static bool is_plain_type(const struct multipart_type *t)
{
    return is_word(t->boundary, SPAN("-._")) &&
           (t->nothers == 0 || (t->nothers == 1 && span_ieq(t->other[0], SPAN("charset=utf-8"))));
}

enum ambiguity_cause body_multipart_look(struct body_view *v, struct span body, struct arena *a)
{
    struct multipart_form *f = arena_alloc(a, sizeof(*f));
    enum ambiguity_cause why;
    enum multipart_next next;
    struct multipart_type type;
    struct span part;
    if (f == NULL)
        return AMBIGUITY_BODY_LARGE;
    if (multipart_type(v->content_type, &type) != 0 || !is_plain_type(&type))
        return AMBIGUITY_MULTIPART;
    struct multipart m = {.boundary = type.boundary, .rest = body};
    while ((next = multipart_next(&m, &part)) == MULTIPART_PART) {
        why = f->n < MULTIPART_PARTS_MAX ? read_part(f, part, a) : AMBIGUITY_BODY_LARGE;
        if (why != AMBIGUITY_NONE)
            return why;
    }
    if (next != MULTIPART_END || params_of_parts(&f->names, f->param, f->n, a) != 0)
        return AMBIGUITY_MULTIPART;
    v->multipart = f;
    return AMBIGUITY_NONE;
}

/* ---- conditions ---- */

static const char *const words[] = {"field ", "file ", "content_type "};
enum about { ABOUT_FIELD = 0, ABOUT_FILE, ABOUT_TYPE };

static enum about about_of(struct span key, struct span *name)
{
    enum about about = span_starts(key, span_str(words[ABOUT_TYPE]))   ? ABOUT_TYPE
                       : span_starts(key, span_str(words[ABOUT_FILE])) ? ABOUT_FILE
                                                                       : ABOUT_FIELD;
    *name = span_from(key, span_str(words[about]).n);
    return about;
}

const char *body_multipart_asks(struct span key, struct span *name)
{
    static const char *const keys[] = {"field", "file", "content_type"};
    return keys[about_of(key, name)];
}

/* A name that some server may take for this one, or a part that it may take for a field where a file is asked about:
 * nobody knows. */
static bool in_doubt(const struct multipart_form *f, enum about about, struct span name)
{
    uint32_t at = IMG_NONE;
    for (const struct param *one; (one = params_next(&f->names, params_key(name), &at)) != NULL;) {
        const struct multipart_part *part = &f->part[one - f->names.v];
        bool other = (about == ABOUT_FIELD && part->is != MULTIPART_FIELD) ||
                     (about == ABOUT_FILE && part->is != MULTIPART_FILE);
        if (other || !span_eq(one->name, name))
            return true;
    }
    return false;
}

/* A file name that is not cut at what parts folders, drives and streams, decoded, or shortened at its end. */
static bool is_plain_file(struct span s)
{
    for (size_t i = 0; i < s.n;) {
        uint8_t c = letter_next(s, &i);
        if (c == 0 || c == '/' || c == '\\' || c == ':' || c == '%')
            return false;
    }
    return s.n == 0 || (s.p[0] != ' ' && s.p[s.n - 1] != ' ' && s.p[s.n - 1] != '.');
}

static struct spellings *file_spellings(struct multipart_part *part, struct arena *a)
{
    if (part->spelt == NULL && (part->spelt = arena_alloc(a, sizeof(*part->spelt))) != NULL)
        spellings_of(part->file, SPAN_NONE, a, part->spelt);
    return part->spelt;
}

static struct span said_of(const struct multipart_form *f, const struct param *one, enum about about)
{
    const struct multipart_part *part = &f->part[one - f->names.v];
    return about == ABOUT_FILE ? part->file : about == ABOUT_TYPE ? part->type : one->value;
}

/* A type that is not said is another one to each server. */
static enum fit one_fits(struct multipart_form *f, struct param *one, enum about about, const struct body_question *q,
                         struct arena *a)
{
    static const struct spellings none = {.n = 0};
    struct multipart_part *part = &f->part[one - f->names.v];
    struct value is = {said_of(f, one, about), true, &none};
    if (cond_asks_presence(q))
        return cond_presence_fits(q, is.text.p != NULL, is.text.n == 0);
    if (about == ABOUT_TYPE)
        is.plain = is.text.p != NULL;
    if (about == ABOUT_FILE)
        is.plain = is_plain_file(is.text);
    if (about != ABOUT_TYPE && !q->strictly)
        is.other = about == ABOUT_FILE ? file_spellings(part, a) : param_spellings(one, a);
    return cond_value_fits(q, &is, a);
}

enum fit body_multipart_fits(struct body_view *v, const struct body_question *q, struct arena *a)
{
    struct multipart_form *f = v->multipart;
    struct fit_sum s = {.all = q->strictly};
    struct span name;
    enum about about = about_of(img_span(q->p, q->c->key), &name);
    uint32_t at = IMG_NONE;
    if (in_doubt(f, about, name))
        return FIT_MAYBE;
    for (struct param *one; (one = params_next(&f->names, params_key(name), &at)) != NULL;)
        fit_sum_add(&s, one_fits(f, one, about, q, a));
    if (!s.some && cond_asks_presence(q))
        return cond_presence_fits(q, false, true);
    return s.some ? s.fit : FIT_NO;
}

enum ambiguity_cause body_multipart_doubt(struct body_view *v, struct span key, struct arena *a)
{
    struct span name;
    enum about about = about_of(key, &name);
    (void)a;
    return in_doubt(v->multipart, about, name) ? AMBIGUITY_FIELD
           : about == ABOUT_FIELD              ? AMBIGUITY_NUMBER
                                               : AMBIGUITY_PART;
}

int body_multipart_param(struct span key, struct arena *a, struct span *name)
{
    (void)a;
    (void)about_of(key, name);
    return 0;
}

/* The first that does not fit. */
struct body_shown body_multipart_show(struct body_view *v, const struct body_question *q, struct arena *a)
{
    struct multipart_form *f = v->multipart;
    struct span name;
    enum about about = about_of(img_span(q->p, q->c->key), &name);
    uint32_t at = IMG_NONE;
    for (struct param *one; (one = params_next(&f->names, params_key(name), &at)) != NULL;) {
        struct span said = said_of(f, one, about);
        if (span_eq(one->name, name) && said.p != NULL && one_fits(f, one, about, q, a) != FIT_YES)
            return (struct body_shown){"", said.n ? said : SPAN("empty"), ""};
    }
    return (struct body_shown){.before = "not there"};
}
