/* Which binary files of a package are data, whatever reads them: pictures, fonts, sound and film, by their ending and
 * by how they begin, and so that no reading as JavaScript gets past their beginning. What the ending says and what
 * the bytes do may be two kinds of data: an icon is often a picture of another kind. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

enum { LOOKED_AT = 64 };

static const char *const endings[] = {".png",  ".jpg", ".jpeg", ".gif",  ".webp",  ".avif", ".ico",
                                      ".cur",  ".bmp", ".icns", ".woff", ".woff2", ".ttf",  ".ttc",
                                      ".otf",  ".eot", ".mp3",  ".m4a",  ".ogg",   ".oga",  ".opus",
                                      ".flac", ".wav", ".mp4",  ".m4v",  ".mov",   ".webm", ".pdf"};

/* Each is told by its first bytes: what stands only further behind may be the filling of a program's head. */
struct mark {
    size_t at, n;
    const char *is;
};
static const struct {
    struct mark first, more; /* more.n == 0: that is all of it */
} kinds[] = {
    {{0, 8, "\x89PNG\r\n\x1a\n"}, {0, 0, ""}},
    {{0, 3, "\xff\xd8\xff"}, {0, 0, ""}},
    {{0, 6, "GIF87a"}, {0, 0, ""}},
    {{0, 6, "GIF89a"}, {0, 0, ""}},
    {{0, 4, "RIFF"}, {8, 4, "WEBP"}},
    {{0, 4, "RIFF"}, {8, 4, "WAVE"}},
    {{0, 1, "\0"}, {4, 4, "ftyp"}}, /* a length, which is never so long */
    {{0, 1, "\0"}, {4, 4, "moov"}},
    {{0, 1, "\0"}, {4, 4, "mdat"}},
    {{0, 1, "\0"}, {4, 4, "wide"}},
    {{0, 4, "\0\0\1\0"}, {0, 0, ""}},
    {{0, 4, "\0\0\2\0"}, {0, 0, ""}},
    {{0, 2, "BM"}, {6, 4, "\0\0\0\0"}},
    {{0, 4, "icns"}, {0, 0, ""}},
    {{0, 4, "wOFF"}, {0, 0, ""}},
    {{0, 4, "wOF2"}, {0, 0, ""}},
    {{0, 4, "\0\1\0\0"}, {0, 0, ""}},
    {{0, 4, "true"}, {0, 0, ""}},
    {{0, 4, "ttcf"}, {0, 0, ""}},
    {{0, 4, "OTTO"}, {0, 0, ""}},
    {{0, 3, "ID3"}, {0, 0, ""}},
    {{0, 2, "\xff\xfb"}, {0, 0, ""}},
    {{0, 2, "\xff\xfa"}, {0, 0, ""}},
    {{0, 2, "\xff\xf3"}, {0, 0, ""}},
    {{0, 2, "\xff\xf2"}, {0, 0, ""}},
    {{0, 5, "OggS\0"}, {0, 0, ""}},
    {{0, 4, "fLaC"}, {0, 0, ""}},
    {{0, 4, "\x1a\x45\xdf\xa3"}, {0, 0, ""}},
    {{0, 5, "%PDF-"}, {0, 0, ""}},
};

static bool is_at(const unsigned char *p, size_t n, struct mark m)
{
    return n >= m.at + m.n && memcmp(p + m.at, m.is, m.n) == 0;
}

/* It begins with its own length, and has its mark behind that. */
static bool is_eot(const unsigned char *p, size_t n)
{
    return is_at(p, n, (struct mark){34, 2, "LP"}) && memcmp(p, "MZ", 2) != 0 &&
           ((size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24) == n;
}

static bool is_known(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (is_at(p, n, kinds[i].first) && is_at(p, n, kinds[i].more))
            return true;
    return false;
}

static bool in_name(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/* Of what opens a comment, a regular expression, a text or a template, which may all have any byte in them: does it,
 * at i? alone: nothing but a name is before it, behind which a slash divides, and a text is an error. */
static bool opens(const unsigned char *p, size_t n, size_t i, bool alone)
{
    size_t left = n - i;

    if (p[i] == '/')
        return !alone || left < 2 || p[i + 1] == '/' || p[i + 1] == '*';
    if (p[i] == '"' || p[i] == '\'')
        return !alone;
    return p[i] == '`' || (p[i] == '<' && (left < 4 || memcmp(p + i, "<!--", 4) == 0)) ||
           (p[i] == '-' && (left < 3 || memcmp(p + i, "-->", 3) == 0));
}

/* A byte that begins no token and no character, before anything that could hide it. alone: as far as letters go it
 * begins with a mark, which is no word of JavaScript's own before a slash or a text. */
static bool is_no_script(const unsigned char *p, size_t n, bool alone)
{
    if (p[0] == '%') /* which begins none */
        return true;
    for (size_t i = 0; i < n && i < LOOKED_AT; i++) {
        if (opens(p, n, i, alone))
            return false;
        if (alone && (p[i] == '"' || p[i] == '\''))
            return true;
        if ((p[i] < 0x20 && (p[i] < '\t' || p[i] > '\r')) || p[i] == 0x7f)
            return true;
        /* of these two none begins a character of UTF-8 */
        if ((p[i] >= 0x80 && p[i] < 0xc2 && (i == 0 || p[i - 1] < 0x80)) || p[i] > 0xf4)
            return true;
        alone &= in_name(p[i]);
    }
    return false;
}

bool package_data(const char *path, const char *p, size_t n)
{
    const unsigned char *bytes = (const unsigned char *)p;
    size_t npath = strlen(path);

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t m = strlen(endings[i]);
        if (npath > m && strcasecmp(path + npath - m, endings[i]) == 0)
            return (is_known(bytes, n) && is_no_script(bytes, n, true)) ||
                   (is_eot(bytes, n) && is_no_script(bytes, n, false));
    }
    return false;
}
