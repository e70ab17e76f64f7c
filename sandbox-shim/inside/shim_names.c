#include "sandbox-shim/inside/shim_names.h"

#include <stdbool.h>
#include <string.h>

enum { HEADER = 12, OPT_BYTES = 11, TYPE_A = 1, TYPE_OPT = 41, CLASS_IN = 1 };
enum { FORMERR = 1, NXDOMAIN = 3, NOTIMP = 4, REFUSED = 5 };

static const uint8_t address[] = {0xc0, HEADER, 0, TYPE_A, 0, CLASS_IN, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1};
static const uint8_t opt[OPT_BYTES] = {0, 0, TYPE_OPT, 1232 >> 8, 1232 & 0xff};

static unsigned u16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static bool is_host_byte(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-';
}

/* Where the name ends, 0 when it is none in one piece. *host: of letters, digits and hyphens, and not an address. */
static size_t name_end(const uint8_t *q, size_t n, bool *host)
{
    size_t at = HEADER, letters = 0, labels = 0;

    *host = true;
    for (; at < n && q[at] != 0; at += 1 + q[at], labels++) {
        size_t label = q[at];
        if (label > 63 || label >= n - at || at + 1 + label - HEADER >= 255)
            return 0;
        letters = 0;
        for (size_t i = 1; i <= label; i++) {
            *host = *host && is_host_byte(q[at + i]);
            letters += q[at + i] < '0' || q[at + i] > '9';
        }
        if (q[at + 1] == '-' || q[at + label] == '-')
            *host = false;
    }
    /* The last label of a name is not a number; "localhost" is in the file of hosts. */
    *host = *host && labels > 0 && letters > 0 &&
            !(at >= HEADER + 10 && q[at - 10] == 9 && strncasecmp((const char *)q + at - 9, "localhost", 9) == 0);
    return at < n ? at + 1 : 0;
}

/* Exactly one OPT record, whose options fill it. */
static bool is_opt(const uint8_t *p, size_t n)
{
    if (n < OPT_BYTES || p[0] != 0 || u16(p + 1) != TYPE_OPT || u16(p + 9) != n - OPT_BYTES)
        return false;
    for (size_t at = OPT_BYTES; at < n; at += 4 + u16(p + at + 2))
        if (n - at < 4 || u16(p + at + 2) > n - at - 4)
            return false;
    return true;
}

static size_t answer_code(uint8_t *out, unsigned code)
{
    out[3] |= (uint8_t)(0x80 | code);
    return HEADER;
}

size_t names_answer(const uint8_t *query, size_t n, uint8_t out[NAMES_ANSWER_MAX])
{
    bool host, edns;
    size_t end;

    if (n < HEADER || query[2] & 0x80)
        return 0;
    memset(out, 0, HEADER);
    memcpy(out, query, 2);
    out[2] = (uint8_t)(0x84 | (query[2] & 0x79)); /* an answer, with authority */
    out[3] = query[3] & 0x10;
    if (query[2] & 0x78)
        return answer_code(out, NOTIMP);
    edns = u16(query + 10) == 1;
    if (n > NAMES_ASK_MAX || u16(query + 4) != 1 || u16(query + 6) != 0 || u16(query + 8) != 0 ||
        u16(query + 10) > 1 || (end = name_end(query, n, &host)) == 0 || n - end < 4)
        return answer_code(out, FORMERR);
    end += 4;
    if (edns ? !is_opt(query + end, n - end) : n != end)
        return answer_code(out, FORMERR);
    unsigned type = u16(query + end - 4), class = u16(query + end - 2);
    bool bad_version = edns && query[end + 6] != 0; /* 16: its low bits are 0, the others stand in the OPT record */
    unsigned code = bad_version ? 0 : class != CLASS_IN ? REFUSED : type == TYPE_A && !host ? NXDOMAIN : 0;
    bool found = code == 0 && type == TYPE_A && !bad_version;
    (void)answer_code(out, code);
    out[5] = 1;
    out[7] = found;
    out[11] = edns;
    memcpy(out + HEADER, query + HEADER, end - HEADER);
    if (found)
        memcpy(out + end, address, sizeof(address));
    end += found ? sizeof(address) : 0;
    if (edns)
        memcpy(out + end, opt, sizeof(opt));
    if (bad_version)
        out[end + 5] = 1;
    return end + (edns ? sizeof(opt) : 0);
}
