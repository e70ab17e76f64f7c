#include "sandbox-shim/inside/diff/shim_tar_strict.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sandbox-shim/inside/shim_tar.h"

/* Where the fields are that this is about. */
enum {
    AT_NAME = 0,
    NAME_BYTES = 100,
    AT_SIZE = 124,
    SIZE_BYTES = 12,
    AT_SUM = 148,
    SUM_BYTES = 8,
    AT_TYPE = 156,
    AT_TARGET = 157,
    AT_MAGIC = 257,
    AT_PREFIX = 345,
    PREFIX_SHORT = 130, /* where the byte behind it is zero: times may follow */
    PREFIX_BYTES = 155,
};

/* Bytes of the UTF-8 character that begins here; 0: it is none. */
static size_t character(const uint8_t *p, size_t n)
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
    return (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
                   (p[0] == 0xf4 && p[1] > 0x8f)
               ? 0
               : need;
}

/* No control character, and UTF-8: others end a text at the one, and count the bytes of the other differently. */
static bool plain(const uint8_t *p, size_t n)
{
    for (size_t used; n > 0; p += used, n -= used)
        if (*p < 0x20 || *p == 0x7f || (used = character(p, n)) == 0)
            return false;
    return true;
}

static bool key_in(const uint8_t *key, size_t n, const char *const *list)
{
    for (; *list; list++)
        if (n == strlen(*list) && memcmp(key, *list, n) == 0)
            return true;
    return false;
}

const char *tar_strict_record(unsigned type, const uint8_t *length, const uint8_t *key, size_t nkey,
                              const uint8_t *value, size_t n)
{
    static const char *const alone[] = {"path", "mtime", "atime", "ctime",   "uid", "gid",
                                        "size", "uname", "gname", "comment", NULL};
    static const char *const for_all[] = {"comment", NULL};

    if (*length == '0')
        return "the length of a record in it has a zero in front, which is a record for some programs alone";
    if (!plain(value, n))
        return "a record in it has a control character, or is no UTF-8: programs differ in where it ends";
    if (!key_in(key, nkey, type == 'g' ? for_all : alone))
        return "an extended header in it says what programs follow differently";
    return NULL;
}

/* A text up to its NUL, and nothing behind it. */
static bool field(const uint8_t *p, size_t n)
{
    size_t is = strnlen((const char *)p, n);

    for (size_t i = is; i < n; i++)
        if (p[i] != 0)
            return false;
    return plain(p, is);
}

static bool octal(const uint8_t *p, size_t n)
{
    size_t i = 0;

    while (i < n && p[i] == ' ')
        i++;
    size_t from = i;
    while (i < n && p[i] >= '0' && p[i] <= '7')
        i++;
    return i > from && i < n; /* what ends it stands in the field */
}

const char *tar_strict_header(const uint8_t *b)
{
    static const char types[] = "01234567xg";
    unsigned flag = b[AT_TYPE];

    if (memcmp(b + AT_MAGIC,
               "ustar\0"
               "00",
               8) != 0)
        return "a header in it is not of ustar's version 00: programs differ in its name";
    if (flag != '\0' && !strchr(types, (int)flag))
        return "it has a kind of member that programs read differently";
    if (b[AT_NAME] == '\0' || !field(b + AT_NAME, NAME_BYTES) || !field(b + AT_TARGET, NAME_BYTES) ||
        !field(b + AT_PREFIX, PREFIX_SHORT) ||
        (b[AT_PREFIX + PREFIX_SHORT] != 0 &&
         (memchr(b + AT_PREFIX, 0, PREFIX_SHORT) || !field(b + AT_PREFIX, PREFIX_BYTES))))
        return "a name in a header has something behind its end, or a control character, or is none";
    if (!octal(b + AT_SIZE, SIZE_BYTES) || !octal(b + AT_SUM, SUM_BYTES))
        return "a number in a header is written as programs read differently";
    if (b[AT_TARGET] != '\0' && flag != '1' && flag != '2')
        return "a header that is no link's leads elsewhere: programs differ in what it is";
    return NULL;
}

const char *tar_strict_member(const uint8_t *b, const char *path)
{
    char own[NAME_BYTES + PREFIX_BYTES + 2];
    const char *name = (const char *)b + AT_NAME, *prefix = (const char *)b + AT_PREFIX;
    const char *is = path ? path : own, *at;

    (void)snprintf(own, sizeof(own), "%.*s%s%.*s", (int)strnlen(prefix, PREFIX_BYTES), prefix, *prefix ? "/" : "",
                   (int)strnlen(name, NAME_BYTES), name);
    /* npm reads a record in pieces, and drops one whose character is torn: then the header's own name counts. */
    for (at = is; path && *at; at++)
        if ((*at & 0x80) && strcmp(path, own) != 0)
            return "a name in it is another in its record than in its header";
    for (at = is; *at; at += *at == '/') {
        size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && *at == '.'))
            return "a name in it has a part that is empty, or a dot: programs differ in what they leave out";
        at += n;
    }
    return strchr(is, '\\') ? "a name in it has a backslash, which is a slash for some programs" : NULL;
}
