/* Which binary files of a package are data, whatever reads them: pictures, fonts, sound and film, by their ending and
 * by how they begin, and so that no reading as JavaScript gets past their beginning. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <string.h>
#include <strings.h>

enum { LOOKED_AT = 64 };

static const struct {
    const char *ending, *begins;
    size_t at, n;
} kinds[] = {
    {".png", "\x89PNG\r\n\x1a\n", 0, 8},
    {".jpg", "\xff\xd8\xff", 0, 3},
    {".jpeg", "\xff\xd8\xff", 0, 3},
    {".gif", "GIF87a", 0, 6},
    {".gif", "GIF89a", 0, 6},
    {".webp", "WEBP", 8, 4},
    {".avif", "ftyp", 4, 4},
    {".ico", "\0\0\1\0", 0, 4},
    {".woff", "wOFF", 0, 4},
    {".woff2", "wOF2", 0, 4},
    {".ttf", "\0\1\0\0", 0, 4},
    {".otf", "OTTO", 0, 4},
    {".mp3", "ID3", 0, 3},
    {".mp3", "\xff\xfb", 0, 2},
    {".ogg", "OggS\0", 0, 5},
    {".flac", "fLaC", 0, 4},
    {".wav", "WAVE", 8, 4},
    {".mp4", "ftyp", 4, 4},
    {".webm", "\x1a\x45\xdf\xa3", 0, 4},
};

/* A byte that begins no token and no character, before anything that could hide it: a comment, a text, a template.
 */
static bool is_no_script(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n && i < LOOKED_AT; i++) {
        bool comment = p[i] == '/' && (i + 1 == n || p[i + 1] == '*' || p[i + 1] == '/');
        bool html = p[i] == '<' || p[i] == '-' || (i == 0 && p[i] == '#');
        if (comment || html || p[i] == '"' || p[i] == '\'' || p[i] == '`')
            return false;
        if ((p[i] < 0x20 && (p[i] < '\t' || p[i] > '\r')) || p[i] == 0x7f)
            return true;
        /* of these two none begins a character of UTF-8 */
        if ((p[i] >= 0x80 && p[i] < 0xc2 && (i == 0 || p[i - 1] < 0x80)) || p[i] > 0xf4)
            return true;
    }
    return false;
}

bool package_data(const char *path, const char *p, size_t n)
{
    size_t npath = strlen(path);

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t m = strlen(kinds[i].ending);
        if (npath > m && strcasecmp(path + npath - m, kinds[i].ending) == 0 && n >= kinds[i].at + kinds[i].n &&
            memcmp(p + kinds[i].at, kinds[i].begins, kinds[i].n) == 0)
            return is_no_script((const unsigned char *)p, n);
    }
    return false;
}
