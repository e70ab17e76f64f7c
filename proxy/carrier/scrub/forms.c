#include "proxy/carrier/scrub/scrub.h"
#include "common/id.h"
#include "common/text/utf8.h"
#include "proxy/carrier/plan/plan.h"
#include "proxy/carrier/scrub/forms.h"

#include <stdlib.h>

/* What a percent-encoder leaves as it is. Real ones differ, so each of the common sets makes a form. */
enum keep { KEEP_UNRESERVED, KEEP_SLASH, KEEP_COMPONENT, KEEP_URI, KEEP_FORM, KEEP_NONE, KEEP_COUNT };

static bool among(uint8_t c, const char *set)
{
    return c != 0 && strchr(set, c) != NULL;
}

static bool kept(uint8_t c, enum keep k)
{
    bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    switch (k) {
    case KEEP_UNRESERVED: /* RFC 3986 section 2.3 */ return alnum || among(c, "-._~");
    case KEEP_SLASH: /* path encoders */ return alnum || among(c, "-._~/");
    case KEEP_COMPONENT: /* encodeURIComponent */ return alnum || among(c, "-._~!'()*");
    case KEEP_URI: /* encodeURI */ return alnum || among(c, "-._~!'()*;,/?:@&=+$#");
    case KEEP_FORM: /* application/x-www-form-urlencoded */ return alnum || among(c, "-._*");
    case KEEP_NONE:
    case KEEP_COUNT: break;
    }
    return false;
}

struct forms {
    struct dynbuf tmp;
    int (*emit)(void *arg, struct span form);
    void *arg;
};

static int give(struct forms *f)
{
    if (!dynbuf_ok(&f->tmp))
        return -1;
    int rc = f->emit(f->arg, dynbuf_span(&f->tmp));
    dynbuf_reset(&f->tmp);
    return rc;
}

static int percent(struct forms *f, struct span s, enum keep k, const char *digits)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (k == KEEP_FORM && c == ' ')
            c = '+';
        else if (!kept(c, k)) {
            uint8_t esc[3] = {'%', (uint8_t)digits[c >> 4], (uint8_t)digits[c & 15]};
            dynbuf_add(&f->tmp, span_of(esc, 3));
            continue;
        }
        dynbuf_add_byte(&f->tmp, c);
    }
    return give(f);
}

static int percents(struct forms *f, struct span s)
{
    for (int k = 0; k < KEEP_COUNT; k++)
        if (percent(f, s, (enum keep)k, "0123456789ABCDEF") != 0 ||
            percent(f, s, (enum keep)k, "0123456789abcdef") != 0)
            return -1;
    return 0;
}

static int hexes(struct forms *f, struct span s)
{
    const char *digits[2] = {"0123456789abcdef", "0123456789ABCDEF"};
    for (int v = 0; v < 2; v++) {
        for (size_t i = 0; i < s.n; i++) {
            uint8_t two[2] = {(uint8_t)digits[v][s.p[i] >> 4], (uint8_t)digits[v][s.p[i] & 15]};
            dynbuf_add(&f->tmp, span_of(two, 2));
        }
        if (give(f) != 0)
            return -1;
    }
    return 0;
}

/* One character, whole or (of what is no UTF-8) a byte: its code point. */
static uint32_t code_point(struct span c)
{
    static const uint8_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t v = c.p[0] & (c.n > 1 ? first_bits[c.n] : 0xffu);
    for (size_t i = 1; i < c.n; i++)
        v = v << 6 | (c.p[i] & 0x3fu);
    return v;
}

/* How an encoder writes a text: what it puts a backslash before, what it writes as a number, what it leaves. Each row
 * is what widespread ones do unless they are told otherwise; many agree on most secrets, and a form is entered once.
 */
struct json_style {
    const char *slashed, *numbered;
    bool ascii; /* beyond ASCII as numbers, too */
    bool upper;
    bool all; /* every character as a number */
};

static const struct json_style json_styles[] = {
    {"\"\\", "", false, false, false},         /* RFC 8259: only what must be */
    {"\"\\", "", true, false, false},          /* Python */
    {"\"\\/", "", false, false, false},        /* the slash as well */
    {"\"\\/", "", true, false, false},         /* PHP */
    {"\"\\", "<>&", false, false, false},      /* Go, Rails */
    {"\"\\", "<>&'", false, false, false},     /* Jinja's tojson */
    {"\"\\", "<>&='", false, false, false},    /* Gson */
    {"\\", "\"&'+<>`\x7f", true, true, false}, /* .NET */
    {"\\/", "\"<>&'", true, true, false},      /* PHP with JSON_HEX_* */
    {"\"\\", "<>/", false, true, false},       /* JavaScript's for script elements */
    {"\"\\", "<>&", false, true, false},       /* Django's json_script */
    {"", "\\'\"><&=-;`", false, true, false},  /* Django's escapejs */
    {"", "", false, false, true},              /* every one */
    {"", "", false, true, true},
};

static void json_number(struct dynbuf *out, uint32_t c, bool upper)
{
    uint32_t unit[2] = {c, 0};
    size_t n = 1;
    if (c > 0xffff) {
        unit[0] = 0xd800 + ((c - 0x10000) >> 10);
        unit[1] = 0xdc00 + ((c - 0x10000) & 0x3ff);
        n = 2;
    }
    for (size_t i = 0; i < n; i++)
        (void)dynbuf_addf(out, upper ? "\\u%04X" : "\\u%04x", unit[i]);
}

/* JSON strings: in the styles that spare what they can, or in those that spare nothing. */
static int jsons_in(struct forms *f, struct span s, bool all)
{
    for (size_t v = 0; v < sizeof(json_styles) / sizeof(json_styles[0]); v++) {
        const struct json_style *y = &json_styles[v];
        if (y->all != all)
            continue;
        for (size_t i = 0, n; i < s.n; i += n) {
            struct span rest = span_from(s, i);
            n = utf8_char(rest) ? utf8_char(rest) : 1;
            struct span c = span_first(rest, n);
            if (y->all || among(c.p[0], y->numbered) || (y->ascii && n > 1)) {
                json_number(&f->tmp, code_point(c), y->upper);
                continue;
            }
            if (among(c.p[0], y->slashed))
                dynbuf_add_byte(&f->tmp, '\\');
            dynbuf_add(&f->tmp, c);
        }
        if (give(f) != 0)
            return -1;
    }
    return 0;
}

static int jsons(struct forms *f, struct span s)
{
    return jsons_in(f, s, false);
}

static int json_numbers(struct forms *f, struct span s)
{
    return jsons_in(f, s, true);
}

/* Text in HTML and XML. What has a name: & < > " ' in this order; an empty one is left as it is. */
struct html_style {
    const char *name[5];
    const char *numbered; /* NULL: all but letters and digits */
    enum { DECIMAL, HEX_UPPER, HEX_LOWER } number;
};

#define AMP_LT_GT "&amp;", "&lt;", "&gt;"
static const struct html_style html_styles[] = {
    {{AMP_LT_GT, "&quot;", "&#39;"}, "", DECIMAL},      /* Rails, lodash */
    {{AMP_LT_GT, "&#34;", "&#39;"}, "", DECIMAL},       /* Go's EscapeString, MarkupSafe */
    {{AMP_LT_GT, "&quot;", "&#x27;"}, "", DECIMAL},     /* Python, Django, React */
    {{AMP_LT_GT, "&quot;", "&#039;"}, "", DECIMAL},     /* PHP */
    {{AMP_LT_GT, "&quot;", "&apos;"}, "", DECIMAL},     /* XML */
    {{AMP_LT_GT, "&quot;", ""}, "", DECIMAL},           /* Commons Text */
    {{AMP_LT_GT, "", ""}, "", DECIMAL},                 /* text between tags */
    {{AMP_LT_GT, "&#34;", "&#39;"}, "+", DECIMAL},      /* Go's templates */
    {{AMP_LT_GT, "&#34;", "&#39;"}, "+`= ", DECIMAL},   /* the same, in attributes without quotes */
    {{AMP_LT_GT, "&quot;", "&#x27;"}, "+`", HEX_UPPER}, /* .NET */
    {{AMP_LT_GT, "&quot;", "&#x27;"}, "`=", HEX_UPPER}, /* Handlebars */
    {{AMP_LT_GT, "&quot;", "&#39;"}, "/`=", HEX_UPPER}, /* Mustache */
    {{AMP_LT_GT, "&quot;", "&#x27;"}, "/", HEX_UPPER},  /* OWASP's six */
    {{AMP_LT_GT, "&quot;", "&#x27;"}, NULL, HEX_LOWER}, /* ESAPI */
    {{AMP_LT_GT, "&#34;", "&#39;"}, NULL, DECIMAL},
};

static void html_char(struct dynbuf *out, const struct html_style *y, struct span c)
{
    static const char order[] = "&<>\"'";
    const char *at = c.p[0] ? strchr(order, c.p[0]) : NULL;
    bool plain = c.n == 1 && kept(c.p[0], KEEP_UNRESERVED) && !among(c.p[0], "-._~");
    if (at != NULL && y->name[at - order][0])
        dynbuf_add(out, span_str(y->name[at - order]));
    else if (y->numbered == NULL ? !plain : among(c.p[0], y->numbered))
        (void)dynbuf_addf(out,
                          y->number == DECIMAL     ? "&#%u;"
                          : y->number == HEX_UPPER ? "&#x%X;"
                                                   : "&#x%x;",
                          (unsigned)code_point(c));
    else
        dynbuf_add(out, c);
}

static int htmls(struct forms *f, struct span s)
{
    for (size_t v = 0; v < sizeof(html_styles) / sizeof(html_styles[0]); v++) {
        for (size_t i = 0, n; i < s.n; i += n) {
            struct span rest = span_from(s, i);
            n = utf8_char(rest) ? utf8_char(rest) : 1;
            html_char(&f->tmp, &html_styles[v], span_first(rest, n));
        }
        if (give(f) != 0)
            return -1;
    }
    return 0;
}

/* Base64 of a text in which the secret begins at an offset of `before` bytes (mod 3): the characters that depend on
 * the secret alone. Those at the edges also hold bits of the neighbours. escaped: as a text that is escaped once
 * more; of the standard alphabet alone, for the other has nothing to escape. */
static int base64_inner(struct forms *f, struct span s, size_t before, bool escaped)
{
    int rc = -1;
    size_t n = before + s.n;
    uint8_t *plain = calloc(1, n);
    char *text = calloc(1, 4 * ((n + 2) / 3) + 1);
    if (plain == NULL || text == NULL)
        goto out;
    memcpy(plain + before, s.p, s.n);
    (void)base64_encode(span_of(plain, n), text);
    size_t from = (8 * before + 5) / 6, to = 8 * n / 6;
    struct span inner = span_of(text + from, to - from);
    if (escaped) {
        rc = jsons(f, inner) != 0 || htmls(f, inner) != 0 ||
                     percent(f, inner, KEEP_UNRESERVED, "0123456789ABCDEF") != 0 ||
                     percent(f, inner, KEEP_UNRESERVED, "0123456789abcdef") != 0
                 ? -1
                 : 0;
        goto out;
    }
    if (f->emit(f->arg, inner) != 0)
        goto out;
    for (size_t i = from; i < to; i++)
        text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
    rc = f->emit(f->arg, inner);
out:
    if (plain != NULL)
        explicit_bzero(plain, n);
    if (text != NULL)
        explicit_bzero(text, 4 * ((n + 2) / 3));
    free(plain);
    free(text);
    return rc;
}

static int literals(struct forms *f, struct span s)
{
    return f->emit(f->arg, s);
}

static int base64s(struct forms *f, struct span s)
{
    for (size_t before = 0; before < 3; before++)
        if (base64_inner(f, s, before, false) != 0)
            return -1;
    return 0;
}

static int base64s_escaped(struct forms *f, struct span s)
{
    for (size_t before = 0; before < 3; before++)
        if (base64_inner(f, s, before, true) != 0)
            return -1;
    return 0;
}

static const struct {
    struct scrub_form_kind kind;
    int (*make)(struct forms *f, struct span secret);
} kinds[] = {
#define X(name, make, says) {{name, says}, make},
    SCRUB_FORMS(X)
#undef X
};

const struct scrub_form_kind *scrub_form_kind(size_t i)
{
    return i < sizeof(kinds) / sizeof(kinds[0]) ? &kinds[i].kind : NULL;
}

int scrub_forms_of(size_t kind, struct span secret, int (*emit)(void *arg, struct span form), void *arg)
{
    struct forms f = {.emit = emit, .arg = arg};
    dynbuf_init(&f.tmp, PLAN_FORM_MOST * (size_t)SCRUB_SECRET_MAX + 64);
    int rc = kinds[kind].make(&f, secret);
    dynbuf_wipe(&f.tmp);
    return rc;
}

int scrub_forms(struct span secret, int (*emit)(void *arg, struct span form), void *arg)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && scrub_form_kind(i) != NULL; i++)
        rc = scrub_forms_of(i, secret, emit, arg);
    return rc;
}
