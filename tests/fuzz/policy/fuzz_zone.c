/* TZif data either gives offsets in order, of bounded number and size, or is refused in words. */
#include "policy/load/emit/zone.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct err e = {""};
    struct arena a;
    struct zone z;
    uint8_t *copy = fuzz_copy(span_of(data, n));
    arena_init(&a, 1 << 20);
    if (zone_read(span_of(copy, n), &a, &z, &e) == 0) {
        MUST_HOLD(z.n >= 1 && z.n <= ZONE_SHIFTS_MAX && z.until_s > z.shift[0].from_s);
        for (size_t i = 0; i < z.n; i++) {
            MUST_HOLD(z.shift[i].offset_s >= -26 * 3600 && z.shift[i].offset_s <= 26 * 3600);
            MUST_HOLD(z.shift[i].from_s < z.until_s && (i == 0 || z.shift[i].from_s > z.shift[i - 1].from_s));
        }
    } else {
        MUST_HOLD(e.text[0]);
    }
    arena_free(&a);
    free(copy);
    return 0;
}
