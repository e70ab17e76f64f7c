#include "proxy/carrier/scrub.h"
#include "common/id.h"

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

/* JSON strings: quote and backslash must be escaped, the slash may be. */
static int jsons(struct forms *f, struct span s)
{
    const char *escaped[2] = {"\"\\", "\"\\/"};
    for (int v = 0; v < 2; v++) {
        for (size_t i = 0; i < s.n; i++) {
            if (among(s.p[i], escaped[v]))
                dynbuf_add_byte(&f->tmp, '\\');
            dynbuf_add_byte(&f->tmp, s.p[i]);
        }
        if (give(f) != 0)
            return -1;
    }
    return 0;
}

/* Text in HTML and XML: the five characters, the two that have a numeric name in both its spellings. */
static int htmls(struct forms *f, struct span s)
{
    static const char *const name[3][5] = {{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"},
                                           {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"},
                                           {"&amp;", "&lt;", "&gt;", "&quot;", "&#x27;"}};
    for (int v = 0; v < 3; v++) {
        for (size_t i = 0; i < s.n; i++) {
            const char *at = s.p[i] ? strchr("&<>\"'", s.p[i]) : NULL;
            static const char order[] = "&<>\"'";
            if (at != NULL)
                dynbuf_add(&f->tmp, span_str(name[v][strchr(order, s.p[i]) - order]));
            else
                dynbuf_add_byte(&f->tmp, s.p[i]);
        }
        if (give(f) != 0)
            return -1;
    }
    return 0;
}

/* Base64 of a text in which the secret begins at an offset of `before` bytes (mod 3): the characters that depend on
 * the secret alone. Those at the edges also hold bits of the neighbours. */
static int base64_inner(struct forms *f, struct span s, size_t before)
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
    if (f->emit(f->arg, inner) != 0 || jsons(f, inner) != 0 ||
        percent(f, inner, KEEP_UNRESERVED, "0123456789ABCDEF") != 0 ||
        percent(f, inner, KEEP_UNRESERVED, "0123456789abcdef") != 0)
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

int scrub_forms(struct span secret, int (*emit)(void *arg, struct span form), void *arg)
{
    struct forms f = {.emit = emit, .arg = arg};
    dynbuf_init(&f.tmp, 6 * (size_t)SCRUB_SECRET_MAX);
    int rc = emit(arg, secret);
    for (size_t before = 0; rc == 0 && before < 3; before++)
        rc = base64_inner(&f, secret, before);
    if (rc == 0)
        rc = percents(&f, secret);
    if (rc == 0)
        rc = hexes(&f, secret);
    if (rc == 0)
        rc = jsons(&f, secret);
    if (rc == 0)
        rc = htmls(&f, secret);
    dynbuf_wipe(&f.tmp);
    return rc;
}
