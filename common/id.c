#include "common/id.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/random.h>

int id_new(struct id *out)
{
    ssize_t n;
    do
        n = getrandom(out->b, sizeof(out->b), 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(out->b) ? 0 : -1;
}

bool id_is_none(const struct id *id)
{
    static const struct id none;
    return memcmp(id, &none, sizeof(none)) == 0;
}

bool id_eq(const struct id *a, const struct id *b)
{
    return span_eq_consttime(span_of(a->b, ID_BYTES), span_of(b->b, ID_BYTES));
}

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

void id_text(const struct id *id, char out[ID_TEXT + 1])
{
    /* 128 bits in 26 digits of 5: the last digit carries 3 bits and two zeros. */
    unsigned acc = 0, bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < ID_BYTES; i++) {
        acc = (acc << 8 | id->b[i]) & 0xfff;
        for (bits += 8; bits >= 5; bits -= 5)
            out[n++] = alphabet[acc >> (bits - 5) & 31];
    }
    out[n++] = alphabet[acc << (5 - bits) & 31];
    out[n] = '\0';
}

int id_parse(struct span text, struct id *out)
{
    unsigned acc = 0, bits = 0;
    size_t n = 0;
    if (text.n != ID_TEXT)
        return -1;
    for (size_t i = 0; i < text.n; i++) {
        const char *at = text.p[i] ? strchr(alphabet, text.p[i]) : NULL;
        if (at == NULL)
            return -1;
        acc = (acc << 5 | (unsigned)(at - alphabet)) & 0x1fff;
        bits += 5;
        if (bits >= 8 && n < ID_BYTES) {
            out->b[n++] = (uint8_t)(acc >> (bits - 8));
            bits -= 8;
        }
    }
    return n == ID_BYTES && (acc & ((1u << bits) - 1)) == 0 ? 0 : -1;
}

int hex_digit(uint8_t c)
{
    uint8_t low = c | 0x20;
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

int hex_number(struct span s, size_t n)
{
    int v = 0;
    for (size_t i = 0; i < n; i++) {
        int d = i < s.n ? hex_digit(s.p[i]) : -1;
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

void hex_text(struct span bytes, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.n; i++) {
        *out++ = digits[bytes.p[i] >> 4];
        *out++ = digits[bytes.p[i] & 15];
    }
    *out = '\0';
}

static int nibble(uint8_t c) /* of a digest: one spelling alone */
{
    return c >= 'A' && c <= 'F' ? -1 : hex_digit(c);
}

int hex_parse(struct span text, uint8_t *out, size_t n)
{
    if (text.n != 2 * n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int hi = nibble(text.p[2 * i]), lo = nibble(text.p[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return -1;
        out[i] = (uint8_t)(hi << 4 | lo);
    }
    return 0;
}

/* A digest that cannot be computed must not pass for one: there is no safe way on. */
static void must(int ok)
{
    if (ok != 1)
        abort();
}

struct digest_ctx *digest_begin(void)
{
    static EVP_MD *sha256; /* looked up once a process */
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    if (sha256 == NULL)
        sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    must(md != NULL && sha256 != NULL);
    must(EVP_DigestInit_ex(md, sha256, NULL));
    return (struct digest_ctx *)md;
}

void digest_add(struct digest_ctx *d, struct span bytes)
{
    must(EVP_DigestUpdate((EVP_MD_CTX *)d, bytes.p, bytes.n));
}

void digest_add_field(struct digest_ctx *d, struct span bytes)
{
    uint8_t len[8];
    for (int i = 0; i < 8; i++)
        len[i] = (uint8_t)((uint64_t)bytes.n >> (56 - 8 * i));
    digest_add(d, span_of(len, sizeof(len)));
    digest_add(d, bytes);
}

void digest_end(struct digest_ctx *d, struct digest *out)
{
    must(EVP_DigestFinal_ex((EVP_MD_CTX *)d, out->b, NULL));
    EVP_MD_CTX_free((EVP_MD_CTX *)d);
}

void digest_of(struct span bytes, struct digest *out)
{
    struct digest_ctx *d = digest_begin();
    digest_add(d, bytes);
    digest_end(d, out);
}

static const char b64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_encode(struct span in, char *dst)
{
    size_t n = 0;
    for (size_t i = 0; i < in.n; i += 3) {
        size_t left = in.n - i;
        uint32_t v = (uint32_t)in.p[i] << 16;
        if (left > 1)
            v |= (uint32_t)in.p[i + 1] << 8;
        if (left > 2)
            v |= in.p[i + 2];
        dst[n++] = b64[v >> 18];
        dst[n++] = b64[v >> 12 & 63];
        dst[n++] = left > 1 ? b64[v >> 6 & 63] : '=';
        dst[n++] = left > 2 ? b64[v & 63] : '=';
    }
    dst[n] = '\0';
    return n;
}

static int b64_value(uint8_t c)
{
    const char *at = c ? strchr(b64, c) : NULL;
    return at ? (int)(at - b64) : -1;
}

int base64_decode(struct span in, uint8_t *dst, size_t *n)
{
    *n = 0;
    if (in.n % 4 != 0)
        return -1;
    for (size_t i = 0; i < in.n; i += 4) {
        bool last = i + 4 == in.n;
        unsigned pad = last ? (in.p[i + 3] == '=') + (in.p[i + 3] == '=' && in.p[i + 2] == '=') : 0;
        uint32_t v = 0;
        for (unsigned k = 0; k < 4; k++) {
            int d = k >= 4 - pad ? 0 : b64_value(in.p[i + k]);
            if (d < 0)
                return -1;
            v = v << 6 | (uint32_t)d;
        }
        if ((pad == 1 && (v & 0xff)) || (pad == 2 && (v & 0xffff)))
            return -1;
        dst[(*n)++] = (uint8_t)(v >> 16);
        if (pad < 2)
            dst[(*n)++] = (uint8_t)(v >> 8);
        if (pad < 1)
            dst[(*n)++] = (uint8_t)v;
    }
    return 0;
}

int websocket_accept(struct span key, char out[WS_ACCEPT_TEXT + 1])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint8_t text[WS_KEY_TEXT + sizeof(guid) - 1], raw[20];
    unsigned n = 0;
    if (key.n != WS_KEY_TEXT)
        return -1;
    memcpy(text, key.p, WS_KEY_TEXT);
    memcpy(text + WS_KEY_TEXT, guid, sizeof(guid) - 1);
    if (EVP_Digest(text, sizeof(text), raw, &n, EVP_sha1(), NULL) != 1 || n != sizeof(raw))
        return -1;
    return base64_encode(span_of(raw, sizeof(raw)), out) == WS_ACCEPT_TEXT ? 0 : -1;
}
