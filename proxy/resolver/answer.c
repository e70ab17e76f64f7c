#include "proxy/resolver/answer.h"

enum { HEADER = 12, NAME_MAX_WIRE = 255, LABEL_MAX = 63, TEXT_MAX = 253 };
enum { TYPE_A = 1, TYPE_OPT = 41, CLASS_IN = 1, EDNS_BYTES = 1232 };
enum { NOERROR = 0, FORMERR = 1, NXDOMAIN = 3, NOTIMP = 4, REFUSED = 5, BADVERS = 16 };
enum { QR = 0x80, OPCODE = 0x78, AA = 0x04, RD = 0x01, RA = 0x80, CD = 0x10 };

struct question {
    size_t end; /* of the whole question, from the message's first byte */
    bool host;  /* its name is that of a host */
    unsigned type, class;
};

struct edns {
    bool here;
    unsigned version;
};

static unsigned u16(struct span s, size_t at)
{
    return (unsigned)s.p[at] << 8 | s.p[at + 1];
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(uint8_t c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* A label of a host name; *digits: of digits alone. */
static bool label_fits(struct span label, bool *digits)
{
    *digits = true;
    for (size_t i = 0; i < label.n; i++) {
        bool inside = i > 0 && i < label.n - 1, mark = label.p[i] == '-' || label.p[i] == '_';
        if (!is_alnum(label.p[i]) && !(inside && mark))
            return false;
        *digits = *digits && is_digit(label.p[i]);
    }
    return true;
}

static bool is_localhost(struct span label)
{
    static const char word[] = "localhost";
    if (label.n != sizeof(word) - 1)
        return false;
    for (size_t i = 0; i < label.n; i++)
        if ((label.p[i] | 0x20) != word[i])
            return false;
    return true;
}

/* -1: not a name in one piece. The root has no host; a last label of digits is an address, not a name. */
static int read_question(struct span q, struct question *out)
{
    size_t at = HEADER;
    bool digits = true, local = false;
    out->host = true;
    for (;;) {
        if (at >= q.n || q.p[at] > LABEL_MAX)
            return -1;
        size_t n = q.p[at++];
        if (n == 0)
            break;
        if (n > q.n - at || at + n - HEADER >= NAME_MAX_WIRE)
            return -1;
        struct span label = span_of(q.p + at, n);
        out->host = label_fits(label, &digits) && out->host;
        local = is_localhost(label);
        at += n;
    }
    if (q.n - at < 4)
        return -1;
    out->host = out->host && !digits && !local && at - HEADER - 2 <= TEXT_MAX;
    out->type = u16(q, at);
    out->class = u16(q, at + 2);
    out->end = at + 4;
    return 0;
}

/* What may stand behind the question: an OPT record whose options fill it exactly, and then nothing. */
static int read_edns(struct span q, size_t at, unsigned records, struct edns *e)
{
    enum { FIXED = 11 };
    *e = (struct edns){false, 0};
    if (records == 0)
        return at == q.n ? 0 : -1;
    if (records != 1 || q.n - at < FIXED || q.p[at] != 0 || u16(q, at + 1) != TYPE_OPT)
        return -1;
    e->here = true;
    e->version = q.p[at + 6];
    size_t rest = u16(q, at + 9);
    at += FIXED;
    if (rest != q.n - at)
        return -1;
    while (at < q.n) {
        if (q.n - at < 4 || u16(q, at + 2) > q.n - at - 4)
            return -1;
        at += 4 + u16(q, at + 2);
    }
    return 0;
}

static unsigned judge(const struct question *q, const struct edns *e)
{
    if (e->here && e->version != 0)
        return BADVERS;
    if (q->class != CLASS_IN)
        return REFUSED;
    return q->type == TYPE_A && !q->host ? NXDOMAIN : NOERROR;
}

static uint8_t *put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
    return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
    return put16(put16(p, v >> 16), v & 0xffff);
}

static void put_header(struct span query, unsigned code, bool question, bool record, bool opt, uint8_t *out)
{
    out[0] = query.p[0];
    out[1] = query.p[1];
    out[2] = (uint8_t)(QR | (query.p[2] & (OPCODE | RD)) | AA);
    out[3] = (uint8_t)(RA | (query.p[3] & CD) | (code & 0xf));
    put16(out + 4, question);
    put16(out + 6, record);
    put16(out + 8, 0);
    put16(out + 10, opt);
}

static uint8_t *put_address(uint8_t *p)
{
    p = put16(p, 0xc000 | HEADER); /* the name as it was asked */
    p = put16(p, TYPE_A);
    p = put16(p, CLASS_IN);
    p = put32(p, ANSWER_TTL);
    p = put16(p, 4);
    return put32(p, ANSWER_ADDRESS);
}

static uint8_t *put_edns(uint8_t *p, unsigned code)
{
    *p++ = 0;
    p = put16(p, TYPE_OPT);
    p = put16(p, EDNS_BYTES);
    p = put32(p, (uint32_t)(code >> 4) << 24);
    return put16(p, 0);
}

static size_t bare(struct span query, unsigned code, uint8_t *out)
{
    put_header(query, code, false, false, false, out);
    return HEADER;
}

size_t answer_make(struct span query, uint8_t out[ANSWER_MAX])
{
    struct question q;
    struct edns e;
    if (query.n < HEADER || query.p[2] & QR)
        return 0;
    if (query.p[2] & OPCODE)
        return bare(query, NOTIMP, out);
    if (query.n > ANSWER_ASK_MAX || u16(query, 4) != 1 || u16(query, 6) != 0 || u16(query, 8) != 0 ||
        read_question(query, &q) != 0 || read_edns(query, q.end, u16(query, 10), &e) != 0)
        return bare(query, FORMERR, out);
    unsigned code = judge(&q, &e);
    bool record = code == NOERROR && q.type == TYPE_A;
    put_header(query, code, true, record, e.here, out);
    memcpy(out + HEADER, query.p + HEADER, q.end - HEADER);
    uint8_t *p = out + q.end;
    if (record)
        p = put_address(p);
    if (e.here)
        p = put_edns(p, code);
    return (size_t)(p - out);
}
