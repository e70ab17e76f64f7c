/* What the first process of a sandbox says is taken apart the same however it is cut, and nothing outside of what
 * came is read; a frame is never waited for that could not be taken. */
#include "sandbox-shim/warden/talk.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

/* The first frame, with only so many of its bytes there. */
static enum talk_got take(struct span in, struct talk *t, size_t *used)
{
    uint8_t *copy = fuzz_copy(in);
    enum talk_got got = talk_take(span_of(copy, in.n), t, used);
    if (got == TALK_FRAME) {
        MUST_HOLD(*used >= TALK_HEAD && *used <= in.n && *used <= TALK_IN_MAX);
        MUST_HOLD(t->bytes.n <= TALK_PIECE_MAX && t->why.n <= TALK_WHY_MAX);
        MUST_HOLD(t->bytes.n == 0 || (t->bytes.p >= copy && t->bytes.p + t->bytes.n <= copy + *used));
        MUST_HOLD(t->why.n == 0 || (t->why.p >= copy && t->why.p + t->why.n <= copy + *used));
        MUST_HOLD(t->type != TALK_END || t->how != TALK_LOST);
        reached = true;
    }
    MUST_HOLD(got != TALK_MORE || in.n < TALK_IN_MAX);
    t->bytes = t->why = SPAN_NONE;
    free(copy);
    return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span in = span_of(data, n);
    struct talk t, part;
    size_t used, some;

    while (take(in, &t, &used) == TALK_FRAME) {
        for (size_t cut = 0; cut < used; cut += 1 + used / 16)
            MUST_HOLD(take(span_first(in, cut), &part, &some) == TALK_MORE);
        MUST_HOLD(take(span_first(in, used), &part, &some) == TALK_FRAME && some == used && part.type == t.type &&
                  part.run == t.run && part.how == t.how && part.code == t.code);
        in = span_from(in, used);
    }
    return 0;
}
