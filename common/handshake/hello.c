/* The name in a ClientHello: records, the message in them, its extensions, the one host_name. */
#include "common/handshake/hello.h"
#include "common/handshake/take.h"

enum {
    RECORD_HEADER = 5,
    RECORD_MAX = 1 << 14, /* RFC 8446 section 5.1 */
    MESSAGE_HEADER = 4,
    MESSAGE_CLIENT_HELLO = 1,
    RANDOM_BYTES = 32,
    SESSION_ID_MAX = 32,
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_ESNI = 0xffce, /* the drafts before ECH */
    EXTENSION_ECH = 0xfe0d,
    NAME_TYPE_HOST = 0,
    LABEL_MAX = 63,
};

/* 3.1 to 3.3: what TLS 1.0 to 1.3 write, in records and in the message. */
static bool version_known(uint8_t major, uint8_t minor)
{
    return major == 3 && minor >= 1 && minor <= 3;
}

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool label_good(struct span label)
{
    for (size_t i = 0; i < label.n; i++) {
        bool inside = i > 0 && i < label.n - 1, mark = label.p[i] == '-' || label.p[i] == '_';
        if (!is_letter(label.p[i]) && !is_digit(label.p[i]) && !(inside && mark))
            return false;
    }
    return label.n > 0 && label.n <= LABEL_MAX;
}

/* Whether something lenient would take a name with this last label for an IPv4 address: 1, 0177, 0x7f. */
static bool label_numeric(struct span label)
{
    bool hex = label.n >= 2 && label.p[0] == '0' && (label.p[1] | 0x20) == 'x';
    for (size_t i = hex ? 2 : 0; i < label.n; i++) {
        uint8_t c = label.p[i] | 0x20;
        if (!is_digit(label.p[i]) && !(hex && c >= 'a' && c <= 'f'))
            return false;
    }
    return true;
}

static enum hello_result take_name(struct span name, struct hello *h)
{
    struct span label, rest = name;
    if (name.n == 0 || name.n > HELLO_NAME_MAX)
        return HELLO_BAD_NAME;
    for (bool more = true; more;) {
        more = span_cut(rest, '.', &label, &rest);
        if (!label_good(label))
            return HELLO_BAD_NAME;
    }
    if (label_numeric(label))
        return HELLO_BAD_NAME;
    for (size_t i = 0; i < name.n; i++)
        h->name[i] = (char)(is_letter(name.p[i]) ? name.p[i] | 0x20 : name.p[i]);
    h->nname = name.n;
    return HELLO_OK;
}

/* RFC 6066 section 3. A name of another type, or a second one, is a name we do not take. */
static enum hello_result server_name(struct span body, struct hello *h)
{
    struct span list, name, only = SPAN_NONE;
    uint32_t type;
    size_t names = 0;
    bool other = false;
    if (!take_vector(&body, 2, &list) || body.n || list.n == 0)
        return HELLO_BAD;
    while (list.n) {
        if (!take_number(&list, 1, &type) || !take_vector(&list, 2, &name))
            return HELLO_BAD;
        other = other || type != NAME_TYPE_HOST;
        only = name;
        names++;
    }
    return names == 1 && !other ? take_name(only, h) : HELLO_BAD_NAME;
}

static enum hello_result extensions(struct span in, struct hello *h)
{
    uint8_t seen[65536 / 8] = {0};
    enum hello_result result = HELLO_NO_NAME;
    while (in.n) {
        struct span body;
        uint32_t type;
        if (!take_number(&in, 2, &type) || !take_vector(&in, 2, &body))
            return HELLO_BAD;
        if (seen[type / 8] & 1u << type % 8)
            return HELLO_BAD;
        seen[type / 8] |= (uint8_t)(1u << type % 8);
        if (type == EXTENSION_ECH || type == EXTENSION_ESNI)
            h->has_ech = true;
        if (type == EXTENSION_SERVER_NAME)
            result = server_name(body, h);
        if (result == HELLO_BAD)
            return HELLO_BAD;
    }
    return result;
}

/* The message without its header. RFC 8446 section 4.1.2; before TLS 1.3 the extensions could be absent. */
static enum hello_result client_hello(struct span in, struct hello *h)
{
    struct span random, session, suites, compression, list;
    uint32_t version;
    if (!take_number(&in, 2, &version) || !version_known((uint8_t)(version >> 8), (uint8_t)version))
        return HELLO_BAD;
    if (!take_bytes(&in, RANDOM_BYTES, &random) || !take_vector(&in, 1, &session) || session.n > SESSION_ID_MAX)
        return HELLO_BAD;
    if (!take_vector(&in, 2, &suites) || suites.n < 2 || suites.n % 2)
        return HELLO_BAD;
    if (!take_vector(&in, 1, &compression) || span_index(compression, 0) == compression.n)
        return HELLO_BAD; /* "no compression" must be offered */
    if (in.n == 0)
        return HELLO_NO_NAME;
    if (!take_vector(&in, 2, &list) || in.n)
        return HELLO_BAD;
    return extensions(list, h);
}

/* What the first n bytes of a record's header, or of the joined message, already show to be wrong. */
static bool record_header_bad(struct span in)
{
    if (in.n >= 1 && !hello_begins(in.p[0]))
        return true;
    if ((in.n >= 2 && in.p[1] != 3) || (in.n >= 3 && !version_known(in.p[1], in.p[2])))
        return true;
    if (in.n < RECORD_HEADER)
        return false;
    size_t n = (size_t)in.p[3] << 8 | in.p[4];
    return n == 0 || n > RECORD_MAX; /* empty handshake fragments: RFC 8446 section 5.1 */
}

/* The message's whole length, 0 while it is not known, HELLO_MAX + 1 when it is none that we take. */
static size_t message_length(const uint8_t *msg, size_t n)
{
    if (n >= 1 && msg[0] != MESSAGE_CLIENT_HELLO)
        return HELLO_MAX + 1;
    if (n < MESSAGE_HEADER)
        return 0;
    size_t length = MESSAGE_HEADER + ((size_t)msg[1] << 16 | (size_t)msg[2] << 8 | msg[3]);
    return length > HELLO_MAX ? HELLO_MAX + 1 : length;
}

/* A hello that is refused gives no name, whatever was read of it before. */
static enum hello_result nothing(struct hello *h)
{
    *h = (struct hello){.nname = 0};
    return HELLO_BAD;
}

/* Everything is looked at in the order in which it comes, and the message only once it is whole: so a longer `in`
 * never changes a verdict that a shorter one got. */
enum hello_result hello_parse(struct span in, struct hello *h)
{
    uint8_t msg[HELLO_MAX];
    size_t n = 0, at = 0;
    *h = (struct hello){.nname = 0};
    in = span_first(in, HELLO_MAX);
    for (;;) {
        struct span record = span_from(in, at);
        if (record_header_bad(record))
            return HELLO_BAD;
        if (record.n < RECORD_HEADER)
            break;
        size_t len = (size_t)record.p[3] << 8 | record.p[4];
        struct span part = span_first(span_from(record, RECORD_HEADER), len);
        if (at + RECORD_HEADER + len > HELLO_MAX)
            return HELLO_BAD;
        if (part.n)
            memcpy(msg + n, part.p, part.n);
        size_t whole = message_length(msg, n + part.n);
        if (whole > HELLO_MAX || (whole && n + len > whole))
            return HELLO_BAD; /* too long, no ClientHello, or more than one message in its records */
        n += part.n;
        if (whole && n == whole) {
            enum hello_result r = client_hello(span_of(msg + MESSAGE_HEADER, n - MESSAGE_HEADER), h);
            return r == HELLO_BAD ? nothing(h) : r;
        }
        if (part.n < len)
            break;
        at += RECORD_HEADER + len;
    }
    return in.n == HELLO_MAX ? HELLO_BAD : HELLO_MORE;
}
