#include "sandbox-shim/inside/shim_tar.h"

#include <stdio.h>
#include <string.h>

#include "sandbox-shim/inside/diff/shim_tar_strict.h"

/* Where the fields of a header are. */
enum {
    AT_NAME = 0,
    NAME_BYTES = 100,
    AT_MODE = 100,
    AT_UID = 108,
    AT_GID = 116,
    AT_SIZE = 124,
    AT_MTIME = 136,
    AT_SUM = 148,
    SUM_BYTES = 8,
    AT_TYPE = 156,
    AT_TARGET = 157,
    AT_MAGIC = 257,
    AT_PREFIX = 345,
    PREFIX_BYTES = 155,
    NUMBER_BYTES = 8, /* of mode, user, group */
    LONG_BYTES = 12,  /* of size and time */
};
#define SIZE_MOST (INT64_MAX - TAR_BLOCK)

size_t tar_pad(uint64_t size)
{
    return (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

/* --- numbers and names --------------------------------------------------------------- */

/* Octal digits between blanks, ended by a blank, a NUL or the field; or GNU's form for large ones: a byte of 0x80,
 * then the number. */
static bool number(const uint8_t *p, size_t n, uint64_t *to)
{
    uint64_t v = 0;
    size_t i = 0;

    if (p[0] & 0x80) {
        v = p[0] & 0x7f; /* with 0x40 it is below zero, which then does not fit */
        for (i = 1; i < n; i++) {
            if (v >> 55 != 0)
                return false;
            v = v << 8 | p[i];
        }
        *to = v;
        return true;
    }
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        v = v << 3 | (uint64_t)(p[i] - '0'); /* 12 digits at most */
    *to = v;
    return i == n || p[i] == ' ' || p[i] == '\0';
}

static bool sum_ok(const uint8_t *b)
{
    uint64_t said, sum = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= AT_SUM && i < AT_SUM + SUM_BYTES ? ' ' : b[i];
    return number(b + AT_SUM, SUM_BYTES, &said) && said == sum;
}

/* Parts of a path, without `.` and empty ones. False: it is absolute, has a `..`, or does not fit. */
static bool name_clean(const char *from, char to[TAR_NAME_MAX + 1])
{
    size_t n = 0;

    if (*from == '/')
        return false;
    while (*from) {
        size_t part = strcspn(from, "/");
        if (part == 2 && memcmp(from, "..", 2) == 0)
            return false;
        if (part > 0 && !(part == 1 && *from == '.')) {
            if (n + 1 + part > TAR_NAME_MAX)
                return false;
            if (n > 0)
                to[n++] = '/';
            memcpy(to + n, from, part);
            n += part;
        }
        from += part + (from[part] == '/');
    }
    to[n] = '\0';
    return true;
}

/* A text of a record: without NUL, and not longer than it may be. */
static bool text_take(const uint8_t *p, size_t n, char to[TAR_NAME_MAX + 1])
{
    if (n > TAR_NAME_MAX || memchr(p, '\0', n))
        return false;
    memcpy(to, p, n);
    to[n] = '\0';
    return true;
}

/* --- what stands in place of a name --------------------------------------------------- */

static bool digits(const uint8_t *p, size_t n, uint64_t most, uint64_t *to)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9' || v > (most - (uint64_t)(p[i] - '0')) / 10)
            return false;
        v = v * 10 + (uint64_t)(p[i] - '0');
    }
    *to = v;
    return n > 0;
}

static bool key_is(const uint8_t *key, size_t n, const char *want)
{
    return n == strlen(want) && memcmp(key, want, n) == 0;
}

/* A record of a time has a fraction, and may be before 1970. */
static bool time_take(const uint8_t *p, size_t n, int64_t *to)
{
    bool before = n > 0 && *p == '-';
    const uint8_t *dot = memchr(p, '.', n);
    uint64_t v;

    if (!digits(p + before, (dot ? (size_t)(dot - p) : n) - before, INT64_MAX, &v))
        return false;
    *to = before ? -(int64_t)v : (int64_t)v;
    return true;
}

static const char *record(struct tar *t, const uint8_t *key, size_t nkey, const uint8_t *value, size_t n)
{
    if (key_is(key, nkey, "path")) {
        t->has_name = text_take(value, n, t->name);
        return t->has_name ? NULL : "a name in it is too long, or has a NUL";
    }
    if (key_is(key, nkey, "linkpath")) {
        t->has_target = text_take(value, n, t->target);
        return t->has_target ? NULL : "a link in it is too long, or has a NUL";
    }
    if (key_is(key, nkey, "size")) {
        t->has_size = digits(value, n, SIZE_MOST, &t->size);
        return t->has_size ? NULL : "a size in it is none";
    }
    if (key_is(key, nkey, "mtime")) {
        t->has_mtime = time_take(value, n, &t->mtime);
        return t->has_mtime ? NULL : "a time in it is none";
    }
    if (nkey >= 11 && memcmp(key, "GNU.sparse.", 11) == 0)
        return "it has a file with holes in a form that is not read here";
    return NULL;
}

static const char *odd(struct tar *t, const char *why)
{
    t->odd |= why != NULL;
    return why;
}

/* pax: `LENGTH KEY=VALUE\n`, LENGTH counting all of it. Those of a `g` are of no use here. */
static const char *records(struct tar *t, unsigned type)
{
    static const char *const broken = "its extended header is broken";
    const uint8_t *p = t->bytes, *end = t->bytes + t->nextra;

    while (p < end) {
        const uint8_t *blank = memchr(p, ' ', (size_t)(end - p));
        uint64_t all;
        if (!blank || !digits(p, (size_t)(blank - p), TAR_EXTRA_MAX, &all) || all > (size_t)(end - p) ||
            all < (size_t)(blank - p) + 3 || p[all - 1] != '\n')
            return broken;
        const uint8_t *key = blank + 1, *stop = p + all - 1, *is = memchr(key, '=', (size_t)(stop - key));
        if (!is)
            return broken;
        size_t nkey = (size_t)(is - key), nvalue = (size_t)(stop - is - 1);
        const char *why = t->strict ? odd(t, tar_strict_record(type, p, key, nkey, is + 1, nvalue)) : NULL;
        if (!why && type == 'x')
            why = record(t, key, nkey, is + 1, nvalue);
        if (why)
            return why;
        p += all;
    }
    return NULL;
}

static const char *extra_take(struct tar *t)
{
    size_t n = t->nextra;
    unsigned type = t->extra;

    t->extra = 0;
    if (type == 'x' || t->strict)
        return records(t, type);
    if (type != 'L' && type != 'K') /* g: of all that come, and nothing in it is of use here */
        return NULL;
    while (n > 0 && t->bytes[n - 1] == '\0')
        n--;
    bool ok = text_take(t->bytes, n, type == 'L' ? t->name : t->target);
    t->has_name |= type == 'L';
    t->has_target |= type == 'K';
    return ok ? NULL : "a name in it is too long, or has a NUL";
}

/* --- a header -------------------------------------------------------------------------- */

/* Of a field of the header; it need not end in NUL. */
static void text_field(const uint8_t *p, size_t n, char *to)
{
    n = strnlen((const char *)p, n);
    memcpy(to, p, n);
    to[n] = '\0';
}

static enum tar_type type_of(unsigned flag, const char *name)
{
    size_t n = strlen(name);

    switch (flag) {
    case '\0':
    case '0':
    case '7': return n > 0 && name[n - 1] == '/' ? TAR_FOLDER : TAR_FILE;
    case '1': return TAR_HARD_LINK;
    case '2': return TAR_LINK;
    case '5': return TAR_FOLDER;
    default: return TAR_OTHER;
    }
}

static const char *names_take(struct tar *t)
{
    const uint8_t *b = t->block;
    struct tar_member *m = &t->member;
    size_t n = 0;

    if (!t->has_name && memcmp(b + AT_MAGIC, "ustar\0", 6) == 0 && b[AT_PREFIX] != '\0') {
        text_field(b + AT_PREFIX, PREFIX_BYTES, t->name);
        n = strlen(t->name);
        t->name[n++] = '/';
    }
    if (!t->has_name)
        text_field(b + AT_NAME, NAME_BYTES, t->name + n);
    if (!t->has_target)
        text_field(b + AT_TARGET, NAME_BYTES, t->target);
    m->type = type_of(b[AT_TYPE], t->name);
    if (!name_clean(t->name, m->name))
        return "a name in it is absolute, too long, or leads out by ..";
    m->target[0] = '\0';
    if (m->type == TAR_LINK)
        memcpy(m->target, t->target, sizeof(m->target));
    else if (m->type == TAR_HARD_LINK && !name_clean(t->target, m->target))
        return "a link in it is absolute, too long, or leads out by ..";
    if ((m->type == TAR_LINK || m->type == TAR_HARD_LINK) && m->target[0] == '\0')
        return "a link in it leads nowhere";
    if (m->name[0] == '\0' && m->type != TAR_FOLDER)
        return "something in it has no name";
    return NULL;
}

static bool zero(const uint8_t *b)
{
    for (size_t i = 0; i < TAR_BLOCK; i++)
        if (b[i])
            return false;
    return true;
}

/* What comes behind this header. Only a file has content; of what is not known it is passed over. */
static const char *follow(struct tar *t, uint64_t size)
{
    unsigned flag = t->block[AT_TYPE];
    bool extra = flag == 'x' || flag == 'g' || flag == 'L' || flag == 'K';

    if (extra && size > TAR_EXTRA_MAX)
        return "an extended header in it is too long";
    if (flag == 'S' || flag == 'M' || flag == 'V' || flag == 'D')
        return "it has a form of GNU's that is not read here";
    t->extra = extra ? flag : 0;
    t->nextra = 0;
    t->left = flag >= '1' && flag <= '6' ? 0 : size;
    t->pad = tar_pad(t->left);
    return NULL;
}

static enum tar_got bad(struct tar *t, const char *why)
{
    t->why = why;
    t->ended = true;
    return TAR_BAD;
}

static const char *strict_member(struct tar *t, uint64_t size)
{
    unsigned flag = t->block[AT_TYPE];

    if ((t->has_size && t->size != size) || (flag >= '1' && flag <= '6' && size > 0))
        return odd(t, "a size in it is another for some programs");
    return odd(t, tar_strict_member(t->block, t->has_name ? t->name : NULL));
}

static enum tar_got head_take(struct tar *t)
{
    const uint8_t *b = t->block;
    struct tar_member *m = &t->member;
    uint64_t mode, size, mtime;
    const char *why = NULL;

    t->nblock = 0;
    if (zero(b)) {
        t->ended = true;
        return TAR_END;
    }
    if (memcmp(b + AT_MAGIC, "ustar", 5) != 0 || !sum_ok(b))
        return bad(t, "it is no tar stream, or broken");
    if (!number(b + AT_MODE, NUMBER_BYTES, &mode) || !number(b + AT_SIZE, LONG_BYTES, &size) || size > SIZE_MOST ||
        !number(b + AT_MTIME, LONG_BYTES, &mtime))
        return bad(t, "a number in it is none");
    if (t->strict && (why = odd(t, tar_strict_header(b))) != NULL)
        return bad(t, why);
    bool extra = b[AT_TYPE] == 'x' || b[AT_TYPE] == 'g' || b[AT_TYPE] == 'L' || b[AT_TYPE] == 'K';
    why = follow(t, !extra && t->has_size ? t->size : size);
    if (why || extra)
        return why ? bad(t, why) : TAR_MORE;
    if (t->strict && (why = strict_member(t, size)) != NULL)
        return bad(t, why);
    why = names_take(t);
    m->mode = (unsigned)(mode & 07777);
    m->mtime = t->has_mtime ? t->mtime : (int64_t)(mtime & INT64_MAX);
    m->size = m->type == TAR_FILE ? t->left : 0;
    if (m->type == TAR_FOLDER && t->left > 0)
        why = "a folder in it has content";
    t->has_name = t->has_target = t->has_size = t->has_mtime = false;
    return why ? bad(t, why) : TAR_MEMBER;
}

/* --- the stream -------------------------------------------------------------------------- */

static size_t least(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

/* Content: given out, kept or passed over. True: data is given out. */
static bool content(struct tar *t, const uint8_t *in, size_t n, size_t *used)
{
    size_t some = least(t->left, n);

    *used = some;
    t->left -= some;
    if (t->extra) {
        memcpy(t->bytes + t->nextra, in, some);
        t->nextra += some;
    } else if (t->member.type == TAR_FILE) {
        t->data = in;
        t->ndata = some;
        return true;
    }
    return false;
}

enum tar_got tar_step(struct tar *t, const uint8_t *in, size_t n, size_t *used)
{
    *used = 0;
    t->ndata = 0;
    if (t->ended)
        return t->why ? TAR_BAD : TAR_END;
    while (*used < n || (t->extra && t->left == 0 && t->pad == 0)) {
        const uint8_t *p = in + *used;
        size_t rest = n - *used, some = 0;
        if (t->left > 0) {
            bool given = content(t, p, rest, &some);
            *used += some;
            if (given)
                return TAR_DATA;
        } else if (t->pad > 0) {
            some = least(t->pad, rest);
            t->pad -= some;
            *used += some;
        } else if (t->extra) {
            const char *why = extra_take(t);
            if (why)
                return bad(t, why);
        } else {
            some = least(TAR_BLOCK - t->nblock, rest);
            memcpy(t->block + t->nblock, p, some);
            t->nblock += some;
            *used += some;
            enum tar_got got = t->nblock == TAR_BLOCK ? head_take(t) : TAR_MORE;
            if (got != TAR_MORE)
                return got;
        }
    }
    return TAR_MORE;
}

/* --- the other way round ------------------------------------------------------------------ */

/* n digits and a NUL; what does not fit stands in a record as well, or does not matter. */
static void put_octal(uint8_t *at, size_t n, uint64_t v)
{
    at[--n] = '\0';
    while (n > 0) {
        at[--n] = (uint8_t)('0' + (v & 7));
        v >>= 3;
    }
}

static void put_block(uint8_t *b, unsigned flag, unsigned mode, uint64_t size, uint64_t mtime)
{
    b[AT_TYPE] = (uint8_t)flag;
    put_octal(b + AT_MODE, NUMBER_BYTES, mode);
    put_octal(b + AT_UID, NUMBER_BYTES, 0);
    put_octal(b + AT_GID, NUMBER_BYTES, 0);
    put_octal(b + AT_SIZE, LONG_BYTES, size);
    put_octal(b + AT_MTIME, LONG_BYTES, mtime);
    memcpy(b + AT_MAGIC, "ustar", 5); /* and a NUL */
    memcpy(b + AT_MAGIC + 6, "00", 2);
    memset(b + AT_SUM, ' ', SUM_BYTES);
    unsigned sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += b[i];
    put_octal(b + AT_SUM, SUM_BYTES - 1, sum);
}

/* Its length counts itself. */
static size_t put_record(uint8_t *at, const char *key, const char *value)
{
    size_t n = strlen(key) + strlen(value) + 3, all = n + 1;
    char head[32];

    for (int digits_of = 1; digits_of < 6; digits_of++) {
        all = n + (size_t)digits_of;
        if (snprintf(head, sizeof(head), "%zu", all) == digits_of)
            break;
    }
    int k = snprintf(head, sizeof(head), "%zu %s=", all, key);
    memcpy(at, head, (size_t)k);
    memcpy(at + k, value, strlen(value));
    at[all - 1] = '\n';
    return all;
}

static size_t put_records(uint8_t *at, const struct tar_member *m)
{
    char text[32];
    size_t n = 0;

    if (strlen(m->name) > NAME_BYTES - 1)
        n += put_record(at + n, "path", m->name);
    if (strlen(m->target) > NAME_BYTES)
        n += put_record(at + n, "linkpath", m->target);
    if (m->size >> 33 != 0) {
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)m->size);
        n += put_record(at + n, "size", text);
    }
    if (m->mtime < 0 || m->mtime >> 33 != 0) {
        (void)snprintf(text, sizeof(text), "%lld", (long long)m->mtime);
        n += put_record(at + n, "mtime", text);
    }
    return n;
}

size_t tar_head(uint8_t out[TAR_HEAD_MAX], const struct tar_member *m)
{
    static const char flags[] = {[TAR_FILE] = '0', [TAR_FOLDER] = '5', [TAR_LINK] = '2', [TAR_HARD_LINK] = '1'};
    uint8_t *b = out;

    if (m->type == TAR_NONE || m->type >= TAR_OTHER || strnlen(m->name, sizeof(m->name)) > TAR_NAME_MAX ||
        strnlen(m->target, sizeof(m->target)) > TAR_NAME_MAX)
        return 0;
    memset(out, 0, TAR_HEAD_MAX);
    size_t n = put_records(out + TAR_BLOCK, m);
    if (n > 0) {
        memcpy(b, "././@PaxHeader", 14);
        put_block(b, 'x', 0644, n, 0);
        b += TAR_BLOCK + n + tar_pad(n);
    }
    size_t name = strlen(m->name), target = strlen(m->target);
    memcpy(b, m->name, least(name, NAME_BYTES - 1));
    if (m->type == TAR_FOLDER && name > 0 && name < NAME_BYTES - 1)
        b[name] = '/';
    memcpy(b + AT_TARGET, m->target, least(target, NAME_BYTES));
    put_block(b, (unsigned)flags[m->type], m->mode & 07777, m->size, m->mtime > 0 ? (uint64_t)m->mtime : 0);
    return (size_t)(b - out) + TAR_BLOCK;
}
