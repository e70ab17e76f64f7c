#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sandbox-shim/inside/diff/shim_diff.h"

static FILE *out;
static char to[256], part[264]; /* what it is to be, and what it is until then */

void out_begin(const char *file)
{
    (void)snprintf(to, sizeof(to), "%s", file);
    (void)snprintf(part, sizeof(part), "%s.part", to);
    out = fopen(part, "we");
}

void out_raw(const char *text)
{
    if (out)
        (void)fputs(text, out);
}

void out_number(const char *key, uint64_t v)
{
    if (out)
        (void)fprintf(out, ",\"%s\":%llu", key, (unsigned long long)v);
}

/* Bytes of the character that begins here, 0: it is none. */
static size_t utf8(const unsigned char *p, size_t n)
{
    size_t need = p[0] < 0x80                   ? 1
                  : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                  : (p[0] & 0xf0) == 0xe0       ? 3
                  : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                                : 0;

    if (need == 0 || need > n)
        return 0;
    for (size_t i = 1; i < need; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
               (p[0] == 0xf4 && p[1] > 0x8f);
    return bad ? 0 : need;
}

bool text_is_utf8(const char *text, size_t n)
{
    for (size_t i = 0, is; i < n; i += is)
        if ((is = utf8((const unsigned char *)text + i, n - i)) == 0)
            return false;
    return true;
}

bool out_text(const char *text, size_t n, size_t max, bool *odd)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t used = 0, i = 0;

    if (!out)
        return false;
    (void)fputc('"', out);
    while (i < n && used < max) {
        size_t is = utf8(p + i, n - i);
        if (is == 0 || p[i] == 0) {
            (void)fprintf(out, "\\\\x%02x", p[i]);
            *odd = true;
        } else if (p[i] == '"' || p[i] == '\\') {
            (void)fprintf(out, "\\%c", p[i]);
        } else if (p[i] == '\n' || p[i] == '\t') {
            (void)fputs(p[i] == '\n' ? "\\n" : "\\t", out);
        } else if (p[i] < 0x20 || p[i] == 0x7f) {
            (void)fprintf(out, "\\u%04x", p[i]);
        } else {
            (void)fwrite(p + i, 1, is, out);
        }
        i += is ? is : 1;
        used += is && p[i] ? is : 4;
    }
    (void)fputc('"', out);
    return i == n;
}

int out_end(void)
{
    bool good = out && fflush(out) == 0 && !ferror(out);

    if (out && fclose(out) != 0)
        good = false;
    out = NULL;
    return good && rename(part, to) == 0 ? 0 : -1;
}

void over(const char *error)
{
    out_begin(DIFF_FILE);
    out_raw("{\"version\":1,\"error\":\"");
    out_raw(error);
    out_raw("\"}\n");
    _exit(out_end() == 0 ? 0 : 1);
}
