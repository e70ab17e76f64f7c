/* A record is flat but for "rule" (an object) and "refs" (a list). Unknown members are read over: what the gateway
 * writes tomorrow is no reason to refuse today. A name that is there twice is. */
#include "cli/policy/record/record.h"

#include "common/id.h"
#include "common/text/utf8.h"
#include "common/time/instant.h"

struct scan {
    const uint8_t *p, *end;
    uint8_t *room, *room_end;
    const char *why;
    bool plain; /* no escape, no control character and nothing beyond ASCII in all of it: a text ends at its quote */
};

/* Signed: what is less than a blank is a control character, or beyond ASCII. */
typedef int8_t lanes __attribute__((vector_size(16)));

static inline lanes odd_bytes(const uint8_t *p)
{
    lanes x;
    memcpy(&x, p, sizeof(x));
    return (x < 0x20) | (x == '\\');
}

/* Seen once over the whole record, since nearly all are. */
static bool is_plain(struct span s)
{
    lanes odd = {0};
    uint64_t any[2];
    if (s.n < sizeof(odd))
        return false;
    for (size_t i = 0; i < s.n - sizeof(odd); i += sizeof(odd))
        odd |= odd_bytes(s.p + i);
    odd |= odd_bytes(s.p + s.n - sizeof(odd));
    memcpy(any, &odd, sizeof(any));
    return (any[0] | any[1]) == 0;
}

static bool bad(struct scan *s, const char *why)
{
    s->why = s->why ? s->why : why;
    return false;
}

static void blanks(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

static inline bool is(struct scan *s, uint8_t c)
{
    if (s->p < s->end && *s->p <= ' ')
        blanks(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

/* After the backslash and the 'u'; a pair of surrogates is one character, a lone one none. */
static bool escape_u(struct scan *s, uint8_t **to)
{
    int hi = hex_number(span_of(s->p, (size_t)(s->end - s->p)), 4);
    uint32_t c = (uint32_t)hi;
    if (hi < 0 || (hi >= 0xdc00 && hi < 0xe000))
        return bad(s, "an escape that is none");
    s->p += 4;
    if (hi >= 0xd800 && hi < 0xdc00) {
        int lo = s->end - s->p >= 6 && s->p[0] == '\\' && s->p[1] == 'u' ? hex_number(span_of(s->p + 2, 4), 4) : -1;
        if (lo < 0xdc00 || lo >= 0xe000)
            return bad(s, "half of a surrogate pair");
        c = 0x10000 + ((uint32_t)(hi - 0xd800) << 10) + (uint32_t)(lo - 0xdc00);
        s->p += 6;
    }
    *to += utf8_put(c, *to);
    return true;
}

static bool escape(struct scan *s, uint8_t **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    if (s->p == s->end)
        return bad(s, "a text without an end");
    uint8_t c = *s->p++;
    const char *at = c ? memchr(from, c, sizeof(from) - 1) : NULL;
    if (at) {
        *(*to)++ = (uint8_t)into[at - from];
        return true;
    }
    return c == 'u' ? escape_u(s, to) : bad(s, "an escape that is none");
}

/* A byte of x that is c, or less than 0x20, has its high bit set in the answer; so may bytes above such a one. */
static uint64_t bytes_of(uint64_t x, uint8_t c)
{
    const uint64_t ones = 0x0101010101010101u;
    x ^= ones * c;
    return (x - ones) & ~x & ones * 0x80;
}

/* Where a text ends or stops being plain; *high: it has bytes beyond ASCII. */
static inline const uint8_t *plain_end(const uint8_t *p, const uint8_t *end, uint64_t *high)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t x;
    for (; end - p >= 8; p += 8) {
        memcpy(&x, p, 8);
        uint64_t stop = bytes_of(x, '"') | bytes_of(x, '\\') | ((x - ones * 0x20) & ~x & ones * 0x80);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (stop != 0) { /* the lowest bit of them is of the first such byte */
            unsigned bit = (unsigned)__builtin_ctzll(stop);
            *high |= x & ones * 0x80 & (((uint64_t)1 << bit) - 1);
            return p + bit / 8;
        }
#else
        if (stop != 0)
            break;
#endif
        *high |= x & ones * 0x80;
    }
    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20)
        *high |= *p++ & 0x80;
    return p;
}

/* After its first quote. An escape never has fewer bytes than what it stands for: the room is as large as the text.
 */
static bool text_rest(struct scan *s, struct span *out)
{
    const uint8_t *from = s->p;
    uint8_t *to = s->room;
    uint64_t high = 0;
    s->p = plain_end(from, s->end, &high);
    if (s->p < s->end && *s->p == '"') {
        *out = span_of(from, (size_t)(s->p++ - from));
    } else {
        for (;;) {
            size_t n = (size_t)(s->p - from);
            if (n > (size_t)(s->room_end - to) || s->p == s->end || *s->p < 0x20)
                return bad(s, "a text without an end, or a control character in it");
            if (n)
                memcpy(to, from, n);
            to += n;
            if (*s->p++ == '"')
                break;
            if (s->room_end - to < 4 || !escape(s, &to))
                return bad(s, "too long");
            from = s->p;
            s->p = plain_end(from, s->end, &high);
        }
        *out = span_of(s->room, (size_t)(to - s->room));
        s->room = to;
    }
    return high == 0 || utf8_run(*out) == out->n || bad(s, "bytes that are not UTF-8");
}

/* The same of a plain record. */
static inline bool plain_rest(struct scan *s, struct span *out)
{
    const uint8_t *from = s->p, *end = memchr(from, '"', (size_t)(s->end - from));
    if (end == NULL)
        return bad(s, "a text without an end, or a control character in it");
    *out = span_of(from, (size_t)(end - from));
    s->p = end + 1;
    return true;
}

static inline bool text(struct scan *s, struct span *out)
{
    if (!is(s, '"'))
        return bad(s, "a text was to come");
    return s->plain ? plain_rest(s, out) : text_rest(s, out);
}

static bool number(struct scan *s, uint64_t *out)
{
    enum { SURE = 18 }; /* so many digits fit */
    const uint8_t *from;
    uint64_t v = 0;
    blanks(s);
    from = s->p;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        v = v * 10 + (uint64_t)(*s->p++ - '0');
    size_t n = (size_t)(s->p - from);
    if (n > 0 && n <= SURE && (n == 1 || *from != '0')) {
        *out = v;
        return true;
    }
    return span_u64(span_of(from, (size_t)(s->p - from)), UINT64_MAX / 2, out) == 0 ||
           bad(s, "a number was to come, whole and not negative");
}

static bool word(struct scan *s, struct span want)
{
    if ((size_t)(s->end - s->p) < want.n || memcmp(s->p, want.p, want.n) != 0)
        return false;
    s->p += want.n;
    return true;
}

static bool truth(struct scan *s, bool *out)
{
    blanks(s);
    *out = word(s, SPAN("true"));
    return *out || word(s, SPAN("false")) || bad(s, "true or false was to come");
}

static bool refs(struct scan *s, struct span *out)
{
    uint8_t *from = s->room;
    struct span one;
    unsigned n = 0;
    if (!is(s, '['))
        return bad(s, "a list was to come");
    if (is(s, ']'))
        return true;
    do {
        if (!text(s, &one) || n++ == RECORD_REFS_MOST || span_index(one, '\n') < one.n)
            return bad(s, "refs that make no sense");
        /* Together in the room: one that was escaped is there already, at its end. */
        if ((size_t)(s->room_end - s->room) < one.n + 1)
            return bad(s, "too long");
        uint8_t *to = one.p >= from && one.p < s->room ? (uint8_t *)(uintptr_t)one.p : s->room;
        memmove(to, one.p, one.n);
        to[one.n] = '\n';
        s->room = to + one.n + 1;
    } while (is(s, ','));
    *out = span_of(from, (size_t)(s->room - from) - 1);
    return is(s, ']') || bad(s, "a list without an end");
}

static bool of_literal(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
}

/* A value of a name that is not known here, without looking into it; nested no deeper than records are. */
static bool skip_deep(struct scan *s)
{
    enum { DEEP = 8 };
    uint8_t close[DEEP];
    unsigned depth = 0;
    struct span any;
    do {
        blanks(s);
        if (s->p == s->end)
            return bad(s, "it ends too soon");
        uint8_t c = *s->p;
        if (c == '"') {
            uint8_t *room = s->room;
            if (!text(s, &any))
                return false;
            s->room = room;
        } else if (c == '{' || c == '[') {
            if (depth == DEEP)
                return bad(s, "too deep");
            close[depth++] = c == '{' ? '}' : ']';
            s->p++;
        } else if (depth && (c == close[depth - 1])) {
            depth--;
            s->p++;
        } else if (c == ',' || c == ':' ? depth == 0 : !of_literal(c)) {
            return bad(s, "a value was to come");
        } else {
            do
                s->p++;
            while (depth == 0 && s->p < s->end && of_literal(*s->p));
        }
    } while (depth);
    return true;
}

static inline bool skip(struct scan *s)
{
    struct span any;
    blanks(s);
    return s->p < s->end && *s->p == '"' && s->plain ? text(s, &any) : skip_deep(s);
}

/* How a member is read, by its name. */
enum kind { MEMBER_TEXT, MEMBER_NUMBER, MEMBER_TRUTH, MEMBER_FALSITY, MEMBER_REFS, MEMBER_RULE, MEMBER_OTHER };
struct member {
    struct span name;
    enum kind kind;
    uint8_t first; /* of its name */
    size_t at;
};
#define MEMBER(name_, kind_, field)                                                                                  \
    {                                                                                                                \
        SPAN(name_), kind_, (uint8_t)(name_)[0], offsetof(struct record, field)                                      \
    }
/* In the order the gateway writes them: looked for from where the last one was found. */
static const struct member members[] = {
    MEMBER("seq", MEMBER_NUMBER, seq),
    MEMBER("time", MEMBER_TEXT, time),
    MEMBER("kind", MEMBER_TEXT, kind),
    MEMBER("exchange", MEMBER_TEXT, exchange),
    MEMBER("ticket", MEMBER_TEXT, ticket),
    MEMBER("state", MEMBER_TEXT, state),
    MEMBER("outcome", MEMBER_OTHER, seq),
    MEMBER("status", MEMBER_OTHER, seq),
    MEMBER("bytes_out", MEMBER_OTHER, seq),
    MEMBER("bytes_in", MEMBER_OTHER, seq),
    MEMBER("delivered", MEMBER_OTHER, seq),
    MEMBER("sandbox", MEMBER_TEXT, sandbox),
    MEMBER("session", MEMBER_OTHER, seq),
    MEMBER("method", MEMBER_TEXT, method),
    MEMBER("scheme", MEMBER_TEXT, scheme),
    MEMBER("host", MEMBER_TEXT, host),
    MEMBER("port", MEMBER_NUMBER, port),
    MEMBER("path", MEMBER_TEXT, path),
    MEMBER("verdict", MEMBER_TEXT, verdict),
    MEMBER("code", MEMBER_TEXT, code),
    MEMBER("cause", MEMBER_OTHER, seq),
    MEMBER("op", MEMBER_TEXT, op),
    MEMBER("effect", MEMBER_TEXT, effect),
    MEMBER("resource", MEMBER_TEXT, resource),
    MEMBER("credential", MEMBER_TEXT, credential),
    MEMBER("rule", MEMBER_RULE, rule),
    MEMBER("body", MEMBER_TRUTH, body),
    MEMBER("type", MEMBER_TEXT, type),
    MEMBER("upgrade", MEMBER_TRUTH, upgrade),
    MEMBER("refs", MEMBER_REFS, refs),
    MEMBER("range", MEMBER_OTHER, seq),
    MEMBER("range_sent", MEMBER_OTHER, seq),
    MEMBER("policy", MEMBER_OTHER, seq),
    MEMBER("request", MEMBER_TEXT, request),
    MEMBER("enforced", MEMBER_FALSITY, shadow),
};
static const struct member of_rule[] = {MEMBER("id", MEMBER_TEXT, rule), MEMBER("file", MEMBER_TEXT, rule_file),
                                        MEMBER("line", MEMBER_NUMBER, rule_line)};

static bool object(struct scan *s, const struct member *v, size_t n, struct record *r);

static bool value(struct scan *s, const struct member *m, struct record *r)
{
    void *to = (uint8_t *)r + m->at;
    bool yes = false;
    switch (m->kind) {
    case MEMBER_TEXT: return text(s, to);
    case MEMBER_NUMBER: return number(s, to);
    case MEMBER_REFS: return refs(s, to);
    case MEMBER_OTHER: return skip(s); /* named here so that it is met in its place */
    case MEMBER_RULE: return object(s, of_rule, sizeof(of_rule) / sizeof(of_rule[0]), r);
    case MEMBER_TRUTH: return truth(s, to);
    case MEMBER_FALSITY:
        if (!truth(s, &yes))
            return false;
        *(bool *)to = !yes;
        return true;
    }
    return false;
}

/* Both of n bytes; short ones, as names are, without a call. */
static inline bool same(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint64_t x, y, v, w;
    if (n > 16)
        return memcmp(a, b, n) == 0;
    if (n < 8) {
        for (size_t i = 0; i < n; i++)
            if (a[i] != b[i])
                return false;
        return true;
    }
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    memcpy(&v, a + n - 8, 8);
    memcpy(&w, b + n - 8, 8);
    return ((x ^ y) | (v ^ w)) == 0;
}

static inline bool is_named(const struct member *m, struct span name)
{
    return m->name.n == name.n && m->name.p[0] == name.p[0] && same(m->name.p, name.p, name.n);
}

/* From where the last one was found, and around; n: none. */
static inline size_t find(const struct member *v, size_t n, size_t from, struct span name)
{
    for (size_t i = from; i < n; i++)
        if (is_named(&v[i], name))
            return i;
    for (size_t i = 0; i < from; i++)
        if (is_named(&v[i], name))
            return i;
    return n;
}

/* Of a plain record: is it one of those that follow the last? Then it is read over, with its colon. n: it is not. */
static inline size_t follows(struct scan *s, const struct member *v, size_t n, size_t from)
{
    const uint8_t *p = s->p;
    size_t left = (size_t)(s->end - p);
    if (left < 2 || p[0] != '"')
        return n;
    for (size_t i = from; i < n; i++) {
        size_t len = v[i].name.n;
        if (v[i].first != p[1] || left < len + 3 || p[len + 1] != '"' || p[len + 2] != ':' ||
            !same(v[i].name.p, p + 1, len))
            continue;
        s->p = p + len + 3;
        return i;
    }
    return n;
}

static inline bool member(struct scan *s, const struct member *v, size_t n, size_t at, size_t *here)
{
    struct span name;
    uint8_t *room = s->room;
    *here = s->plain ? follows(s, v, n, at) : n;
    if (*here != n)
        return true;
    if (!text(s, &name) || !is(s, ':'))
        return bad(s, "a name and its value were to come");
    *here = name.n ? find(v, n, at, name) : n;
    s->room = room;
    return true;
}

static bool object(struct scan *s, const struct member *v, size_t n, struct record *r)
{
    uint64_t seen = 0;
    size_t at = 0, here;
    if (!is(s, '{'))
        return bad(s, "an object was to come");
    if (is(s, '}'))
        return true;
    do {
        if (!member(s, v, n, at, &here))
            return false;
        if (here == n) {
            if (!skip(s))
                return false;
            continue;
        }
        if (seen >> here & 1)
            return bad(s, "a name that is there twice");
        seen |= (uint64_t)1 << here;
        if (!value(s, &v[here], r))
            return false;
        at = here + 1;
    } while (is(s, ','));
    return is(s, '}') || bad(s, "an object without an end");
}

bool record_scan(struct span json, uint8_t *room, struct record *r, const char **why)
{
    struct scan s = {.p = json.p, .end = json.p + json.n, .room = room, .room_end = room + RECORD_BYTES_MAX};
    *r = (struct record){0};
    *why = "longer than records are";
    if (json.n == 0 || json.n > RECORD_BYTES_MAX)
        return false;
    s.plain = is_plain(json);
    bool good = object(&s, members, sizeof(members) / sizeof(members[0]), r);
    blanks(&s);
    if (good && s.p != s.end)
        good = bad(&s, "something after its end");
    *why = s.why;
    return good;
}

static bool digits(struct span s, size_t at, size_t n, unsigned *out)
{
    unsigned v = 0;
    for (size_t i = 0; i < n; i++) {
        if (at + i >= s.n || s.p[at + i] < '0' || s.p[at + i] > '9')
            return false;
        v = v * 10 + (unsigned)(s.p[at + i] - '0');
    }
    *out = v;
    return true;
}

int record_time(struct span t, uint64_t *ms)
{
    unsigned y, mo, d, h, mi, s, rest = 0;
    bool whole = t.n == 20 && t.p[19] == 'Z', fine = t.n == 24 && t.p[19] == '.' && t.p[23] == 'Z';
    if ((!whole && !fine) || !digits(t, 0, 4, &y) || !digits(t, 5, 2, &mo) || !digits(t, 8, 2, &d) ||
        !digits(t, 11, 2, &h) || !digits(t, 14, 2, &mi) || !digits(t, 17, 2, &s) ||
        (fine && !digits(t, 20, 3, &rest)))
        return -1;
    if (t.p[4] != '-' || t.p[7] != '-' || t.p[10] != 'T' || t.p[13] != ':' || t.p[16] != ':')
        return -1;
    if (y < 1970 || mo < 1 || mo > 12 || d < 1 || d > instant_days_of_month(y, mo) || h > 23 || mi > 59 || s > 60)
        return -1;
    *ms = (((uint64_t)instant_days_to(y, mo, d) * 24 + h) * 60 + mi) * 60000 + s * 1000 + rest;
    return 0;
}
