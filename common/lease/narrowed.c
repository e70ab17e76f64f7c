#include "common/lease/narrowed.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { HEX_DIGEST = 2 * DIGEST_BYTES };

static const struct span prefix = {(const uint8_t *)"cs_", 3};

static int take_digest(struct span hex, struct digest *out)
{
    return hex.n == HEX_DIGEST ? hex_parse(hex, out->b, DIGEST_BYTES) : -1;
}

/* In one spelling, so that what is looked up and what is compared is the same. */
static bool is_hex(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= '0' && s.p[i] <= '9') && !(s.p[i] >= 'a' && s.p[i] <= 'f'))
            return false;
    return s.n > 0 && s.n % 2 == 0;
}

int lease_narrowed_read(struct span text, struct lease_narrowed *out)
{
    struct span rest, of, one;
    size_t n = 0;
    if (text.n > LEASE_NARROWED_MAX || !span_starts(text, prefix) || !span_cut(text, '.', &out->tag, &rest) ||
        out->tag.n != prefix.n + LEASE_TAG || !span_cut(rest, '.', &of, &rest) || !is_hex(of) ||
        take_digest(of, &out->of) != 0)
        return -1;
    out->layers = rest;
    while (span_cut(rest, '.', &one, &rest)) {
        if (!is_hex(one) || n++ == LEASE_NARROWED_LAYERS)
            return -1;
    }
    if (n == 0 || !is_hex(one) || take_digest(one, &out->mac) != 0)
        return -1;
    out->layers.n -= one.n + 1;
    return 0;
}

int lease_narrowed_layer(struct span *layers, uint8_t *bytes, struct wire_layer *out, uint64_t *expires_ms)
{
    struct wire_layer v[LEASE_LAYERS_MAX];
    struct span one;
    size_t n = 0;
    if (!span_cut(*layers, '.', &one, layers))
        *layers = SPAN_NONE;
    if (!is_hex(one) || one.n / 2 > LEASE_NARROWED_BYTES || hex_parse(one, bytes, one.n / 2) != 0)
        return -1;
    struct msg_in m = msg_in(span_of(bytes, one.n / 2));
    *expires_ms = msg_get_u64(&m);
    if (wire_get_layers(&m, v, &n) != 0 || msg_end(&m) != 0 || n != 1 || v[0].uses != 0 || v[0].rate != 0)
        return -1;
    *out = v[0];
    return 0;
}

static int hmac(struct span key, struct span over, struct digest *out)
{
    uint8_t made[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    int bad = HMAC(EVP_sha256(), key.p, (int)key.n, over.p, over.n, made, &n) == NULL || n != DIGEST_BYTES ? -1 : 0;
    if (bad == 0)
        memcpy(out->b, made, DIGEST_BYTES);
    explicit_bzero(made, sizeof(made));
    return bad;
}

static int add_layer(struct span hex, struct digest *mac)
{
    uint8_t bytes[LEASE_NARROWED_BYTES];
    const struct digest key = *mac;
    if (!is_hex(hex) || hex.n / 2 > sizeof(bytes) || hex_parse(hex, bytes, hex.n / 2) != 0)
        return -1;
    return hmac(span_of(key.b, DIGEST_BYTES), span_of(bytes, hex.n / 2), mac);
}

/* The text is what it is over, and not its key: HMAC hashes a key that is longer than a block, and that hash stands
 * in each that is made of the lease. */
static int first_mac(struct span text, struct digest *out)
{
    return hmac(SPAN("countersign narrowed lease 1"), text, out);
}

int lease_narrowed_mac(struct span text, struct span layers, struct digest *out)
{
    struct span one;
    int bad = first_mac(text, out);
    for (bool more = true; bad == 0 && more;) {
        more = span_cut(layers, '.', &one, &layers);
        bad = add_layer(one, out);
    }
    return bad;
}

/* A lease's own text, from which nobody has taken anything. */
static int whole(struct span text, struct lease_narrowed *out)
{
    size_t at;
    enum lease_format f = lease_format_of(text, &at);
    if (f == LEASE_NONE || lease_is_pair(f))
        return -1;
    *out = (struct lease_narrowed){.tag = span_of(text.p + at, LEASE_TAG)};
    digest_of(text, &out->of);
    return first_mac(text, &out->mac);
}

static void put_hex(struct dynbuf *out, struct span bytes)
{
    char *to = (char *)dynbuf_room(out, 2 * bytes.n + 1);
    if (to == NULL)
        return;
    hex_text(bytes, to);
    dynbuf_grew(out, 2 * bytes.n);
}

int lease_narrowed_make(struct span text, const struct wire_layer *layer, uint64_t expires_ms, struct dynbuf *out)
{
    struct lease_narrowed is, made;
    struct dynbuf b;
    size_t from = out->n;
    int bad = lease_narrowed_read(text, &is) == 0 || whole(text, &is) == 0 ? 0 : -1;
    if (bad != 0 || layer->uses != 0 || layer->rate != 0)
        return -1;
    dynbuf_init(&b, LEASE_NARROWED_BYTES);
    msg_put_u64(&b, expires_ms);
    wire_put_layers(&b, layer, 1);
    bad = dynbuf_ok(&b) ? hmac(span_of(is.mac.b, DIGEST_BYTES), dynbuf_span(&b), &made.mac) : -1;
    if (!span_starts(is.tag, prefix))
        (void)dynbuf_add(out, prefix);
    (void)dynbuf_add(out, is.tag);
    (void)dynbuf_add(out, SPAN("."));
    put_hex(out, span_of(is.of.b, DIGEST_BYTES));
    (void)dynbuf_add(out, SPAN("."));
    (void)dynbuf_add(out, is.layers);
    (void)dynbuf_add(out, is.layers.n ? SPAN(".") : SPAN_NONE);
    put_hex(out, dynbuf_span(&b));
    (void)dynbuf_add(out, SPAN("."));
    put_hex(out, span_of(made.mac.b, DIGEST_BYTES));
    dynbuf_free(&b);
    explicit_bzero(&made, sizeof(made));
    if (bad != 0 || !dynbuf_ok(out) || lease_narrowed_read(span_from(dynbuf_span(out), from), &made) != 0)
        return -1;
    return 0;
}
