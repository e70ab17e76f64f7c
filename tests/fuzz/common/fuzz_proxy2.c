/* A PROXY v2 header. More bytes never change a verdict; the model, written again without TLVs, parses to the same. */
#include "common/dynbuf.h"
#include "common/handshake/proxy2.h"
#include "tests/fuzz/fuzz.h"

static void add16(struct dynbuf *b, uint16_t v)
{
    (void)dynbuf_add_byte(b, (uint8_t)(v >> 8));
    (void)dynbuf_add_byte(b, (uint8_t)v);
}

static void check_round_trip(const struct proxy2 *p)
{
    struct dynbuf b;
    struct proxy2 again;
    size_t used, address = p->family == 4 ? 4 : p->family == 6 ? 16 : 0;
    MUST_HOLD(p->local == (address == 0));
    dynbuf_init(&b, PROXY2_MAX);
    (void)dynbuf_add(&b, SPAN("\r\n\r\n\0\r\nQUIT\n"));
    (void)dynbuf_add_byte(&b, p->local ? 0x20 : 0x21);
    (void)dynbuf_add_byte(&b, p->local ? 0 : p->family == 4 ? 0x11 : 0x21);
    add16(&b, (uint16_t)(address ? 2 * address + 4 : 0));
    (void)dynbuf_add(&b, span_of(p->src, address));
    (void)dynbuf_add(&b, span_of(p->dst, address));
    if (address) {
        add16(&b, p->src_port);
        add16(&b, p->dst_port);
    }
    MUST_HOLD(proxy2_parse(dynbuf_span(&b), &again, &used) == PROXY2_OK && used == b.n);
    MUST_HOLD(p->local == again.local && p->family == again.family && memcmp(p->src, again.src, 16) == 0 &&
              memcmp(p->dst, again.dst, 16) == 0 && p->src_port == again.src_port && p->dst_port == again.dst_port);
    dynbuf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    enum proxy2_result was = PROXY2_MORE;
    size_t used_then = 0;
    if (n > 2 * PROXY2_MAX)
        return 0;
    for (size_t k = 0; k <= n; k++) {
        struct proxy2 p;
        size_t used;
        uint8_t *copy = fuzz_copy(span_of(data, k));
        enum proxy2_result r = proxy2_parse(span_of(copy, k), &p, &used);
        free(copy);
        MUST_HOLD(was == PROXY2_MORE || (r == was && used == used_then));
        MUST_HOLD((r == PROXY2_OK) == (used > 0) && used <= k && used <= PROXY2_MAX);
        MUST_HOLD(r != PROXY2_MORE || k < PROXY2_MAX);
        if (r == PROXY2_OK && was == PROXY2_MORE)
            check_round_trip(&p);
        was = r;
        used_then = used;
    }
    return 0;
}
