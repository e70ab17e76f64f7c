/* A set of recorded runs may be anybody's file: whatever was read of it is gone through to an end, gives the same
 * report twice, and what is foreign in it stands in the page as words. Input: a set. */
#include "broker/replay/report.h"
#include "tests/fuzz/fuzz.h"

enum { IN_MAX = 256 * 1024 };
static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static void put(struct span in, struct dynbuf *out)
{
    static const enum replay_fault faults[] = {REPLAY_MODEL, REPLAY_TOOL, REPLAY_WORKER};
    static struct score s;
    struct replay_set set;
    struct arena a;
    struct err e = {{0}};
    arena_init(&a, SET_ARENA_MAX);
    dynbuf_init(out, REPORT_MAX);
    if (set_read(in, &a, &set, &e) != 0) {
        MUST_HOLD(e.text[0] != '\0');
        (void)dynbuf_addf(out, "%s", e.text);
    } else if (score_set(&set, faults, 3, 2, &a, &s) == 0) {
        for (size_t i = 0; i < set.n; i++)
            reached |= s.run[i].state == AGAIN_ENDED;
        report_text(&s, out);
        report_json(&s, out);
        size_t before = out->n;
        report_page(&s, out);
        MUST_HOLD(!dynbuf_ok(out) ||
                  span_find(span_from(dynbuf_span(out), before), SPAN("<script")) == out->n - before);
    }
    arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dynbuf once, twice;
    if (n > IN_MAX)
        return 0;
    uint8_t *copy = fuzz_copy(span_of(data, n));
    put(span_of(copy, n), &once);
    put(span_of(copy, n), &twice);
    MUST_HOLD(span_eq(dynbuf_span(&once), dynbuf_span(&twice)));
    dynbuf_free(&once);
    dynbuf_free(&twice);
    free(copy);
    return 0;
}
