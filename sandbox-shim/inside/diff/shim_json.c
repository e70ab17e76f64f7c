#include "sandbox-shim/inside/diff/shim_json.h"

#include <stdint.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* Four hexadecimal digits. -1: they are none. */
static long hex4(const char *p, const char *end)
{
    long v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

/* Each of these says where what begins at p ends; NULL: it is not well-formed. */

static const char *text_end(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++) {
        if ((unsigned char)*p < 0x20)
            return NULL;
        if (*p != '\\')
            continue;
        if (++p == end || !strchr("\"\\/bfnrtu", *p) || *p == '\0')
            return NULL;
        if (*p == 'u' && hex4(p + 1, end) < 0)
            return NULL;
    }
    return p < end ? p + 1 : NULL;
}

static const char *digits(const char *p, const char *end)
{
    const char *from = p;

    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > from ? p : NULL;
}

static const char *number_end(const char *p, const char *end)
{
    p += *p == '-';
    if (p < end && *p == '0')
        p++;
    else if ((p = digits(p, end)) == NULL)
        return NULL;
    if (p < end && *p == '.' && (p = digits(p + 1, end)) == NULL)
        return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        p = digits(p, end);
    }
    return p;
}

static const char *word_end(const char *p, const char *end)
{
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(end - p) >= n && memcmp(p, words[i], n) == 0)
            return p + n;
    }
    return NULL;
}

static const char *plain_end(const char *p, const char *end)
{
    return p == end                                ? NULL
           : *p == '"'                             ? text_end(p, end)
           : *p == '-' || (*p >= '0' && *p <= '9') ? number_end(p, end)
                                                   : word_end(p, end);
}

/* Without recursion: what is open stands in a row. */
static const char *value_end(const char *p, const char *end)
{
    char open[JSON_DEEP];
    size_t deep = 0;
    bool fresh = false; /* right behind a bracket */

    for (;;) {
        p = space(p, end);
        if (deep > 0 && fresh && p < end && *p == (open[deep - 1] == '{' ? '}' : ']')) {
            p++;
            deep--;
        } else {
            if (deep > 0 && open[deep - 1] == '{') {
                if (p == end || *p != '"' || (p = text_end(p, end)) == NULL)
                    return NULL;
                p = space(p, end);
                if (p == end || *p++ != ':')
                    return NULL;
                p = space(p, end);
            }
            fresh = p < end && (*p == '{' || *p == '[');
            if (fresh && deep == JSON_DEEP)
                return NULL;
            if (fresh) {
                open[deep++] = *p++;
                continue;
            }
            if ((p = plain_end(p, end)) == NULL)
                return NULL;
        }
        for (fresh = false; deep > 0; p++, deep--) {
            p = space(p, end);
            if (p == end)
                return NULL;
            if (*p != (open[deep - 1] == '{' ? '}' : ']'))
                break;
        }
        if (deep == 0)
            return p;
        if (*p++ != ',')
            return NULL;
    }
}

struct value json_whole(const char *p, size_t n)
{
    if (n == 0)
        return (struct value){.n = 0};
    const char *end = p + n, *from = space(p, end), *to = from < end ? value_end(from, end) : NULL;
    if (to == NULL || space(to, end) != end)
        return (struct value){.n = 0};
    return (struct value){from, (size_t)(to - from)};
}

bool json_is(struct value v, char kind)
{
    return v.n > 0 && v.p[0] == kind;
}

bool json_next(struct value of, const char **at, struct value *key, struct value *v)
{
    bool named = json_is(of, '{');

    *key = (struct value){.n = 0};
    if (!named && !json_is(of, '['))
        return false;
    const char *end = of.p + of.n, *p = space((*at ? *at : of.p) + 1, end); /* behind the bracket or the comma */
    if (p >= end - 1)
        return false;
    if (named) {
        *key = (struct value){p, (size_t)(text_end(p, end) - p)};
        p = space(space(p + key->n, end) + 1, end);
    }
    *v = (struct value){p, (size_t)(value_end(p, end) - p)};
    *at = space(p + v->n, end);
    return true;
}

/* As readers do that pass over case: two letters beside ASCII are taken for s and k by them. */
static int folded(const char **text)
{
    const char *p = *text;

    *text += strncmp(p, "\xc5\xbf", 2) == 0 ? 2 : strncmp(p, "\xe2\x84\xaa", 3) == 0 ? 3 : 1;
    return *text == p + 1 ? tolower((unsigned char)*p) : *text == p + 2 ? 's' : 'k';
}

static bool folds_to(const char *text, const char *name)
{
    while (*text && *name)
        if (folded(&text) != folded(&name))
            return false;
    return *text == *name;
}

struct value json_member(struct value of, const char *name, bool *twice)
{
    struct value found = {.n = 0}, key, v;
    char text[JSON_KEY_MAX + 1];
    size_t times = 0;
    bool exact = false;

    for (const char *at = NULL; json_is(of, '{') && json_next(of, &at, &key, &v);)
        if (json_text(key, text, sizeof(text)) >= 0 && folds_to(text, name)) {
            exact |= strcmp(text, name) == 0;
            found = v;
            times++;
        }
    *twice |= times > 1 || (times == 1 && !exact);
    return times == 1 && exact ? found : (struct value){.n = 0};
}

/* A character, in UTF-8. How many bytes; 0: there is no room. */
static size_t put(char *to, size_t room, unsigned long c)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    if (n >= room)
        return 0;
    for (size_t i = n; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(lead[n] | c);
    return n;
}

/* What stands behind a backslash at *p, which is left behind it. */
static unsigned long escaped(const char **p, const char *end)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    char c = *(*p)++;
    const char *plain = strchr(from, c);

    if (c != 'u')
        return (unsigned char)(plain ? to[plain - from] : c);
    unsigned long one = (unsigned long)hex4(*p, end);
    *p += 4;
    if (one >= 0xd800 && one < 0xdc00 && end - *p > 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        unsigned long two = (unsigned long)hex4(*p + 2, end);
        if (two >= 0xdc00 && two < 0xe000) {
            *p += 6;
            return 0x10000 + ((one - 0xd800) << 10) + (two - 0xdc00);
        }
    }
    return one >= 0xd800 && one < 0xe000 ? 0xfffd : one;
}

long json_text(struct value v, char *to, size_t room)
{
    size_t n = 0;

    if (!json_is(v, '"') || room == 0)
        return -1;
    const char *p = v.p + 1, *end = v.p + v.n - 1;
    while (p < end) {
        if (*p != '\\') {
            if (*p == '\0' || n + 1 >= room)
                return -1;
            to[n++] = *p++;
            continue;
        }
        p++;
        unsigned long c = escaped(&p, end);
        size_t used = c ? put(to + n, room - n, c) : 0;
        if (used == 0)
            return -1;
        n += used;
    }
    to[n] = '\0';
    return (long)n;
}

static bool texts_same(struct value a, struct value b)
{
    char *one = malloc(a.n), *other = malloc(b.n);
    bool same =
        one && other && json_text(a, one, a.n) >= 0 && json_text(b, other, b.n) >= 0 && strcmp(one, other) == 0;

    free(one);
    free(other);
    return same;
}

/* The member of just that name; none where it stands twice. Below package.json itself names are told apart by case.
 */
static struct value member_exact(struct value of, const char *name)
{
    struct value found = {.n = 0}, key, v;
    char text[JSON_KEY_MAX + 1];
    size_t times = 0;

    for (const char *at = NULL; json_is(of, '{') && json_next(of, &at, &key, &v);)
        if (json_text(key, text, sizeof(text)) >= 0 && strcmp(text, name) == 0) {
            found = v;
            times++;
        }
    return times == 1 ? found : (struct value){.n = 0};
}

/* The members of the one are those of the other; arrays go by their order. */
static bool parts_same(struct value a, struct value b, unsigned deep)
{
    const char *at = NULL, *other_at = NULL;
    struct value key, v, other_key, other;
    char name[JSON_KEY_MAX + 1];
    size_t n = 0, m = 0;

    while (json_next(a, &at, &key, &v)) {
        n++;
        if (json_is(a, '[') ? !json_next(b, &other_at, &other_key, &other)
                            : json_text(key, name, sizeof(name)) < 0 || member_exact(a, name).n == 0 ||
                                  (other = member_exact(b, name)).n == 0)
            return false;
        if (!json_same(v, other, deep + 1))
            return false;
    }
    for (other_at = NULL; json_next(b, &other_at, &other_key, &other); m++)
        ;
    return n == m;
}

bool json_same(struct value a, struct value b, unsigned deep)
{
    if (a.n == 0 || b.n == 0 || deep > JSON_DEEP)
        return false;
    if (json_is(a, '"'))
        return json_is(b, '"') && texts_same(a, b);
    if (json_is(a, '{') || json_is(a, '['))
        return json_is(b, a.p[0]) && parts_same(a, b, deep);
    return (a.n == b.n && memcmp(a.p, b.p, a.n) == 0) ||
           ((a.p[0] == '-' || (a.p[0] >= '0' && a.p[0] <= '9')) &&
            (b.p[0] == '-' || (b.p[0] >= '0' && b.p[0] <= '9')) && strtod(a.p, NULL) == strtod(b.p, NULL));
}
