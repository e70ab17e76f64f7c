/* Whatever a picture is, what is made of it is a PNG or a list within its bounds, or a word why there is none. */
#include "tests/fuzz/fuzz.h"
#include "web-approval/viewer/view.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct viewed v, again;
    struct dynbuf out, wire;

    if (n > (1 << 18))
        return 0;
    uint8_t *p = fuzz_copy(span_of(data, n));
    dynbuf_init(&out, VIEW_PNG_MAX);
    dynbuf_init(&wire, 64);
    view_make(span_of(p, n), &out, &v);
    viewed_put(&wire, &v);
    struct msg_in m = msg_in(dynbuf_span(&wire));
    MUST_HOLD(v.end < VIEW_BUSY);
    if (v.end == VIEW_SHOWN) {
        MUST_HOLD(viewed_get(&m, &again) == 0 && viewed_made(dynbuf_span(&out), &again));
        reached = true;
    }
    dynbuf_free(&wire);
    dynbuf_free(&out);
    free(p);
    return 0;
}
