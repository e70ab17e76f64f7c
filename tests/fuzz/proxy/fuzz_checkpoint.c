/* The list of a checkpoint, as it lies on the disk, is taken apart without a look outside of it, and what is taken is
 * what would be written: no name in it leads out of where it is put. */
#include "sandbox-shim/checkpoint/form.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static bool within(struct span part, struct span all)
{
    return part.n == 0 || (part.p >= all.p && part.p + part.n <= all.p + all.n);
}

static void rows(struct span all)
{
    struct msg_in m = msg_in(all);
    struct form_row r;
    struct dynbuf b;

    while (m.rest.n > 0 && form_get_row(&m, &r) == 0) {
        MUST_HOLD(within(r.name, all) && within(r.target, all) && within(r.pieces, all));
        MUST_HOLD(r.name.n > 0 && r.name.p[0] != '/' && !span_starts(r.name, SPAN("../")));
        MUST_HOLD(span_find(r.name, SPAN("/../")) == r.name.n && !span_ends(r.name, SPAN("/..")));
        MUST_HOLD(r.pieces.n == form_pieces(r.size) * FORM_MAC && (r.type == TAR_FILE || r.size == 0));
        dynbuf_init(&b, 2 * TAR_NAME_MAX + 64);
        form_put_row(&b, &r);
        MUST_HOLD(dynbuf_ok(&b) && span_ends(span_of(all.p, (size_t)(r.pieces.p - all.p)), dynbuf_span(&b)));
        dynbuf_free(&b);
        reached = true;
    }
}

static void head(struct span all)
{
    struct form_head h;
    struct dynbuf b;

    if (form_get_kept(all, &h) != 0)
        return;
    dynbuf_init(&b, FORM_HEAD_MAX);
    form_put_head(&b, &h);
    /* Of before there was a reach, it is as with an empty one. */
    MUST_HOLD(span_starts(dynbuf_span(&b), all) && (b.n == all.n || (h.reach.n == 0 && b.n == all.n + 4)));
    dynbuf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t *copy = fuzz_copy(span_of(data, n));
    const struct span all = span_of(copy, n);
    struct form_file f;

    if (form_split(all, &f) == 0) {
        MUST_HOLD(within(f.head, all) && within(f.head_mac, all) && within(f.rows, all) && within(f.rows_mac, all));
        head(f.head);
        rows(f.rows);
    }
    rows(all);
    free(copy);
    return 0;
}
