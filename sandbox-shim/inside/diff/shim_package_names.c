/* Names that are one file on some system: they differ in case, in what it leaves out, or in dots and blanks at the
 * end of a part, or one is a folder of the other. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* PACKAG~1.JSO is another file's second name on Windows: eight characters, the last a tilde and digits, and three. */
static bool is_short(const char *part, size_t n)
{
    size_t base = 0, ending = 0, digits = 0, dots = 0;

    for (size_t i = 0; i < n; i++) {
        bool begins = (part[i] & 0xc0) != 0x80; /* a character, not a byte */
        if (part[i] == '.') {
            dots++;
            continue;
        }
        *(dots ? &ending : &base) += begins;
        if (dots == 0)
            digits = part[i] == '~' ? 1 : digits > 0 && isdigit((unsigned char)part[i]) ? digits + 1 : 0;
    }
    return dots <= 1 && digits > 1 && base <= 8 && ending <= 3;
}

/* A colon leads to a stream of a file, or to a drive. */
static bool odd(const char *name)
{
    if (strpbrk(name, ":\\"))
        return true;
    for (const char *p = name; *p; p += *p == '/') {
        size_t n = strcspn(p, "/"), named = n;
        while (named > 0 && (p[named - 1] == '.' || p[named - 1] == ' ')) /* which Windows leaves out */
            named--;
        if (is_short(p, named))
            return true;
        p += n;
    }
    return false;
}

/* Letters that are several in capitals, or of ASCII by another name; and characters that a file system leaves out. */
static const struct {
    uint32_t from, to; /* all between */
    const char *is;
} letters[] = {
    {0xdf, 0xdf, "ss"},         {0x1e9e, 0x1e9e, "ss"},  {0x17f, 0x17f, "s"},    {0x212a, 0x212a, "k"},
    {0x212b, 0x212b, "\u00e5"}, {0xfb00, 0xfb00, "ff"},  {0xfb01, 0xfb01, "fi"}, {0xfb02, 0xfb02, "fl"},
    {0xfb03, 0xfb03, "ffi"},    {0xfb04, 0xfb04, "ffl"}, {0xfb05, 0xfb06, "st"}, {0x130, 0x131, "i"},
    {0xad, 0xad, ""},           {0x200b, 0x200f, ""},    {0x202a, 0x202e, ""},   {0x2060, 0x206f, ""},
    {0xfeff, 0xfeff, ""},       {0x307, 0x307, ""},
};

/* Capitals, the small letter of each so many behind it; every: else every second one is a capital. */
static const struct {
    uint32_t from, to;
    int by;
    bool every;
} capitals[] = {
    {'A', 'Z', 32, true},       {0xc0, 0xd6, 32, true},     {0xd8, 0xde, 32, true},       {0x100, 0x12e, 1, false},
    {0x132, 0x136, 1, false},   {0x139, 0x147, 1, false},   {0x14a, 0x176, 1, false},     {0x178, 0x178, -121, true},
    {0x179, 0x17d, 1, false},   {0x1cd, 0x1db, 1, false},   {0x1de, 0x1ee, 1, false},     {0x1f8, 0x21e, 1, false},
    {0x222, 0x232, 1, false},   {0x386, 0x386, 38, true},   {0x388, 0x38a, 37, true},     {0x38c, 0x38c, 64, true},
    {0x38e, 0x38f, 63, true},   {0x391, 0x3a1, 32, true},   {0x3a3, 0x3ab, 32, true},     {0x3c2, 0x3c2, 1, true},
    {0x400, 0x40f, 80, true},   {0x410, 0x42f, 32, true},   {0x460, 0x480, 1, false},     {0x48a, 0x4be, 1, false},
    {0x4c1, 0x4cd, 1, false},   {0x4d0, 0x52e, 1, false},   {0x531, 0x556, 48, true},     {0x1e00, 0x1e94, 1, false},
    {0x1ea0, 0x1efe, 1, false}, {0xff21, 0xff3a, 32, true}, {0x10400, 0x10427, 40, true},
};

static uint32_t small(uint32_t c)
{
    for (size_t i = 0; i < sizeof(capitals) / sizeof(capitals[0]); i++)
        if (c >= capitals[i].from && c <= capitals[i].to && (capitals[i].every || (c - capitals[i].from) % 2 == 0))
            return (uint32_t)((int64_t)c + capitals[i].by);
    return c;
}

/* One character of UTF-8, as which names were taken (shim_tar_strict.c). */
static const char *character(const char *p, uint32_t *c)
{
    unsigned char lead = (unsigned char)*p++;

    *c = lead < 0x80 ? lead : lead < 0xe0 ? lead & 0x1f : lead < 0xf0 ? lead & 0xf : lead & 7;
    for (; (*p & 0xc0) == 0x80; p++)
        *c = *c << 6 | (*p & 0x3f);
    return p;
}

static size_t character_put(char *to, uint32_t c)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(lead[n] | c);
    return n;
}

static size_t fold_one(char *to, uint32_t c)
{
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
        if (c >= letters[i].from && c <= letters[i].to) {
            size_t n = strlen(letters[i].is);
            memcpy(to, letters[i].is, n);
            return n;
        }
    return character_put(to, small(c));
}

/* In small letters, each part without what Windows leaves out at its end. */
static char *fold(const char *name)
{
    char *to = malloc(strlen(name) * 2 + 4); /* none becomes longer than twice what it is */
    size_t n = 0;
    uint32_t c;

    while (to && *name) {
        while (*name == '/' && n > 0 && (to[n - 1] == '.' || to[n - 1] == ' '))
            n--;
        name = character(name, &c);
        n += fold_one(to + n, c);
    }
    while (to && n > 0 && (to[n - 1] == '.' || to[n - 1] == ' '))
        n--;
    if (to)
        to[n] = '\0';
    return to;
}

const char *names_add(struct names *l, const char *name, bool is_folder)
{
    if (odd(name))
        return "odd";
    if (l->n == NAMES_MAX)
        return "large";
    if (!l->at && (l->at = calloc(NAMES_MAX, sizeof(*l->at))) == NULL)
        return "failed";
    char *is = fold(name);
    if (!is)
        return "failed";
    l->at[l->n++] = (struct name_of){is, is_folder};
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct name_of *)a)->is, ((const struct name_of *)b)->is);
}

const char *names_differ(const struct names *l)
{
    if (l->n > 0)
        qsort(l->at, l->n, sizeof(*l->at), by_name);
    for (size_t i = 1; i < l->n; i++)
        if (by_name(&l->at[i - 1], &l->at[i]) == 0 && !(l->at[i].folder && l->at[i - 1].folder))
            return l->at[i].is;
    for (size_t i = 0; i < l->n; i++)
        for (char *slash = l->at[i].is; (slash = strchr(slash, '/')) != NULL; slash++) {
            *slash = '\0';
            const struct name_of *of = bsearch(&l->at[i], l->at, i, sizeof(*l->at), by_name);
            *slash = '/';
            if (of && !of->folder) /* what is in it is in a folder of its name */
                return l->at[i].is;
        }
    return NULL;
}

void names_free(struct names *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->at[i].is);
    free(l->at);
    *l = (struct names){.n = 0};
}
