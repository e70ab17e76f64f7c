/* SOCKS5 messages, each judged byte by byte in the order in which it comes: the first bad byte decides. */
#include "common/handshake/socks5.h"
#include "common/handshake/take.h"

enum { PROTOCOL = 5, LOGIN = 1, COMMAND_CONNECT = 1, ADDRESS_V4 = 1, ADDRESS_NAME = 3, ADDRESS_V6 = 4 };

enum socks5_result socks5_greeting(struct span in, enum socks5_method want, enum socks5_method *method, size_t *used)
{
    struct span rest = in, offered;
    uint32_t version, count;
    *method = SOCKS5_NO_METHOD;
    *used = 0;
    if (!take_number(&rest, 1, &version))
        return SOCKS5_MORE;
    if (version != PROTOCOL || (want != SOCKS5_NONE && want != SOCKS5_PASSWORD))
        return SOCKS5_BAD;
    if (!take_number(&rest, 1, &count))
        return SOCKS5_MORE;
    if (count == 0)
        return SOCKS5_BAD;
    bool whole = take_bytes(&rest, count, &offered);
    if (!whole)
        offered = rest;
    if (span_index(offered, SOCKS5_NO_METHOD) < offered.n) /* an answer, not an offer */
        return SOCKS5_BAD;
    if (!whole)
        return SOCKS5_MORE;
    if (span_index(offered, (uint8_t)want) < offered.n)
        *method = want;
    *used = in.n - rest.n;
    return SOCKS5_OK;
}

/* One length and as many bytes, at least one. */
static enum socks5_result take_word(struct span *s, struct span *word)
{
    if (s->n && s->p[0] == 0)
        return SOCKS5_BAD;
    return take_vector(s, 1, word) ? SOCKS5_OK : SOCKS5_MORE;
}

enum socks5_result socks5_login(struct span in, struct span *user, struct span *password, size_t *used)
{
    struct span rest = in, name, word;
    uint32_t version;
    enum socks5_result r;
    *user = *password = SPAN_NONE;
    *used = 0;
    if (!take_number(&rest, 1, &version))
        return SOCKS5_MORE;
    if (version != LOGIN)
        return SOCKS5_BAD;
    r = take_word(&rest, &name);
    if (r == SOCKS5_OK)
        r = take_word(&rest, &word);
    if (r != SOCKS5_OK)
        return r;
    *user = name;
    *password = word;
    *used = in.n - rest.n;
    return SOCKS5_OK;
}

/* Letters, digits, '-' and '.': what a host name may be is for the caller's rules, but no other byte is in one. */
static bool name_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

static enum socks5_result take_name(struct span *s, struct socks5_request *r)
{
    struct span name;
    uint32_t n;
    if (!take_number(s, 1, &n))
        return SOCKS5_MORE;
    if (n == 0 || n > SOCKS5_NAME_MAX)
        return SOCKS5_BAD;
    bool whole = take_bytes(s, n, &name);
    if (!whole)
        name = *s;
    for (size_t i = 0; i < name.n; i++)
        if (!name_byte(name.p[i]))
            return SOCKS5_BAD;
    if (!whole)
        return SOCKS5_MORE;
    memcpy(r->host, name.p, name.n);
    r->nhost = name.n;
    return SOCKS5_OK;
}

static enum socks5_result take_destination(struct span *s, uint32_t type, struct socks5_request *r)
{
    struct span address;
    if (type == ADDRESS_NAME)
        return take_name(s, r);
    if (!take_bytes(s, type == ADDRESS_V4 ? 4 : 16, &address))
        return SOCKS5_MORE;
    memcpy(r->address, address.p, address.n);
    r->family = type == ADDRESS_V4 ? 4 : 6;
    return SOCKS5_OK;
}

/* VER, CMD, RSV and ATYP, as many as there are. */
static bool head_bad(struct span in, enum socks5_reply *why)
{
    *why = SOCKS5_FAILURE;
    if (in.n >= 1 && in.p[0] != PROTOCOL)
        return true;
    if (in.n >= 2 && in.p[1] != COMMAND_CONNECT) {
        *why = SOCKS5_BAD_COMMAND;
        return true;
    }
    if (in.n >= 3 && in.p[2] != 0)
        return true;
    *why = SOCKS5_BAD_ADDRESS;
    return in.n >= 4 && in.p[3] != ADDRESS_V4 && in.p[3] != ADDRESS_NAME && in.p[3] != ADDRESS_V6;
}

enum socks5_result socks5_request(struct span in, struct socks5_request *r, size_t *used, enum socks5_reply *why)
{
    struct socks5_request got = {.nhost = 0};
    struct span rest = span_from(in, 4);
    uint32_t port;
    enum socks5_result result;
    *r = got;
    *used = 0;
    if (head_bad(in, why))
        return SOCKS5_BAD;
    if (in.n < 4)
        return SOCKS5_MORE;
    result = take_destination(&rest, in.p[3], &got);
    if (result != SOCKS5_OK)
        return result;
    if (!take_number(&rest, 2, &port))
        return SOCKS5_MORE;
    if (port == 0)
        return SOCKS5_BAD;
    got.port = (uint16_t)port;
    *r = got;
    *why = SOCKS5_SUCCEEDED;
    *used = in.n - rest.n;
    return SOCKS5_OK;
}

void socks5_reply(enum socks5_reply r, uint8_t out[SOCKS5_REPLY_BYTES])
{
    const uint8_t reply[SOCKS5_REPLY_BYTES] = {PROTOCOL, (uint8_t)r, 0, ADDRESS_V4};
    memcpy(out, reply, sizeof reply);
}
