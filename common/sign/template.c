#include "common/sign/template.h"

static const struct {
    struct span word;
    unsigned where;
} parts[] = {[PART_TEXT] = {{NULL, 0}, IN_TEMPLATE | IN_FIELD},
#define X(id, word, where) [PART_##id] = {SPAN(word), where},
             SIGN_PARTS(X)
#undef X
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

/* As a canonical form has it, so that two texts of one field are the same. */
static bool is_field(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') && s.p[i] != '-')
            return false;
    return s.n > 0 && s.n <= 64;
}

static int placeholder(struct span word, struct sign_part *out)
{
    struct span header = parts[PART_HEADER].word;
    *out = (struct sign_part){.text = word};
    if (span_starts(word, header)) {
        out->kind = PART_HEADER;
        out->field = span_from(word, header.n);
        return is_field(out->field) ? 1 : -1;
    }
    for (size_t i = PART_TEXT + 1; i < PARTS; i++)
        if (i != PART_HEADER && span_eq(word, parts[i].word)) {
            out->kind = (enum sign_part_kind)i;
            return 1;
        }
    return -1;
}

int sign_part_next(struct span *rest, struct sign_part *out)
{
    size_t n = 0;
    if (rest->n == 0)
        return 0;
    if (rest->p[0] == '{') {
        size_t end = span_index(*rest, '}');
        if (end == rest->n)
            return -1;
        struct span word = span_of(rest->p + 1, end - 1);
        *rest = span_from(*rest, end + 1);
        return placeholder(word, out);
    }
    while (n < rest->n && rest->p[n] != '{' && rest->p[n] != '}')
        n++;
    if (n == 0)
        return -1;
    *out = (struct sign_part){.kind = PART_TEXT, .text = span_first(*rest, n)};
    *rest = span_from(*rest, n);
    return 1;
}

bool sign_part_of_body(enum sign_part_kind k)
{
    return k >= PART_BODY && k <= PART_BODY_SHA512_BASE64;
}

bool sign_template_has(struct span text, enum sign_part_kind k)
{
    struct sign_part p;
    while (sign_part_next(&text, &p) > 0)
        if (p.kind == k)
            return true;
    return false;
}

static bool plain(struct span s, unsigned where)
{
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] < ' ' && !(where == IN_TEMPLATE && s.p[i] == '\n')) || s.p[i] >= 0x7f)
            return false;
    return true;
}

const char *sign_template_wrong(struct span text, unsigned where)
{
    struct sign_part p;
    struct span rest = text;
    bool any = false, body = false;
    int more;
    if (text.n > (where == IN_TEMPLATE ? SIGN_TEMPLATE_MAX : SIGN_FORMAT_MAX))
        return where == IN_TEMPLATE ? "is longer than 1024 bytes" : "is longer than 256 bytes";
    if (!plain(text, where))
        return where == IN_TEMPLATE ? "must be plain ASCII, with \\n for the end of a line" : "must be plain ASCII";
    while ((more = sign_part_next(&rest, &p)) > 0) {
        if (body)
            return "goes on behind {body}, which may be anything: it can stand at the end alone";
        if ((parts[p.kind].where & where) == 0)
            return where == IN_TEMPLATE ? "has {token} or {signature}, which can stand in headers: alone"
                                        : "has a part of the request, which can stand in sign: alone";
        any |= p.kind != PART_TEXT;
        body = p.kind == PART_BODY;
    }
    if (more < 0)
        return "has a brace that begins or ends no placeholder there is";
    return any ? NULL : "has no placeholder";
}

/* ---- where one part ends and the next begins ---- */

/* Do all values of it have one length? */
static bool is_fixed(enum sign_part_kind k)
{
    return k == PART_TEXT || (sign_part_of_body(k) && k != PART_BODY) || (k >= PART_TIME && k <= PART_ISO_TIME);
}

static bool one_of(uint8_t c, const char *also)
{
    bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z', digit = c >= '0' && c <= '9';
    return letter || digit || (c != '\0' && strchr(also, c) != NULL);
}

/* May this byte stand in it? */
static bool may_have(enum sign_part_kind k, uint8_t c)
{
    switch (k) {
    case PART_METHOD: return one_of(c, "!#$%&'*+-.^_`|~");
    case PART_HOST: return one_of(c, ".-:[]");
    case PART_ID: return c > ' ' && c < 0x7f && c != '/' && c != ',' && c != ':';
    case PART_PATH: return c > ' ' && c != '?' && c != '#';
    case PART_QUERY:
    case PART_SORTED_QUERY:
    case PART_TARGET: return c > ' ' && c != '#';
    case PART_HEADER: return c >= ' ' || c == '\t';
    default: return !is_fixed(k);
    }
}

/* What the next part begins with; 0: with nothing certain. */
static uint8_t first_of(const struct sign_part *p)
{
    bool path = p->kind == PART_PATH || p->kind == PART_TARGET;
    return p->kind == PART_TEXT ? p->text.p[0] : path ? '/' : 0;
}

struct span sign_template_open_end(struct span text)
{
    struct sign_part p, last = {.kind = PART_TEXT};
    while (sign_part_next(&text, &p) > 0) {
        uint8_t first = first_of(&p);
        if (!is_fixed(last.kind) && (first == 0 || may_have(last.kind, first)))
            return last.text;
        last = p;
    }
    return SPAN_NONE;
}
