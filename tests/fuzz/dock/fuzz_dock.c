/* What callers of the sandbox API send is taken apart the same however it is cut, and nothing outside of what came is
 * read; what is read of a form is what the parser of whole bodies reads of it. */
#include "proxy/dock/parse/changes.h"
#include "proxy/dock/parse/envelope.h"
#include "proxy/dock/parse/form.h"
#include "tests/fuzz/fuzz.h"

enum { MOST = 4096 };

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static void frames(struct span in)
{
    struct envelope e, part;
    size_t used, some;
    uint8_t *copy = fuzz_copy(in);
    struct span all = span_of(copy, in.n);

    while (envelope_take(all, MOST, &e, &used) == ENVELOPE_FRAME) {
        MUST_HOLD(used >= ENVELOPE_HEAD && used <= all.n && e.payload.n <= MOST);
        MUST_HOLD(e.payload.n == used - ENVELOPE_HEAD);
        for (size_t cut = 0; cut < used; cut += 1 + used / 8)
            MUST_HOLD(envelope_take(span_first(all, cut), MOST, &part, &some) == ENVELOPE_MORE);
        all = span_from(all, used);
        reached = true;
    }
    free(copy);
}

/* What comes of a body in pieces: kinds of steps and bytes, one behind the other. The end is 0 it is none, 1 it is
 * cut short, 2 all of it was read. */
static int read_form(struct span in, size_t piece, struct dynbuf *told)
{
    struct form f;
    struct form_step s;
    struct dynbuf here;
    size_t used, fed = 0;
    enum form_got got = FORM_MORE;

    MUST_HOLD(form_begin(&f, SPAN("multipart/form-data; boundary=B")) == 0);
    dynbuf_init(&here, 1 << 20);
    while (got != FORM_BAD && (got != FORM_END || here.n > 0 || fed < in.n)) {
        uint8_t *copy = fuzz_copy(dynbuf_span(&here));
        got = form_step(&f, span_of(copy, here.n), &s, &used);
        MUST_HOLD(used <= here.n);
        if (got == FORM_PART) {
            (void)dynbuf_add(told, SPAN("\xff"
                                        "P"));
            (void)dynbuf_add(told, s.file);
        } else if (got == FORM_PART_END) {
            (void)dynbuf_add(told, SPAN("\xff"
                                        "E"));
        } else if (got == FORM_DATA) {
            (void)dynbuf_add(told, s.data);
        }
        free(copy);
        dynbuf_drop(&here, used);
        if (got != FORM_MORE && (got != FORM_END || here.n > 0))
            continue;
        if (fed == in.n)
            break;
        struct span more = span_first(span_from(in, fed), piece);
        (void)dynbuf_add(&here, more);
        fed += more.n;
    }
    dynbuf_free(&here);
    return got == FORM_BAD ? 0 : got == FORM_END ? 2 : 1;
}

static void forms(struct span in)
{
    struct dynbuf whole, cut;
    struct multipart m = {.boundary = SPAN("B"), .rest = in};
    struct span part;
    enum multipart_next next = MULTIPART_PART;

    dynbuf_init(&whole, 1 << 20);
    dynbuf_init(&cut, 1 << 20);
    int how = read_form(in, in.n ? in.n : 1, &whole);
    for (size_t piece = 1; piece < 8; piece += 3) {
        dynbuf_reset(&cut);
        MUST_HOLD(read_form(in, piece, &cut) == how);
        MUST_HOLD(how == 0 || span_eq(dynbuf_span(&cut), dynbuf_span(&whole)));
    }
    for (struct span rest = dynbuf_span(&whole); how == 2 && next == MULTIPART_PART;) {
        next = multipart_next(&m, &part);
        size_t end = span_find(rest, SPAN("\xff"
                                          "E"));
        MUST_HOLD(next != MULTIPART_PART || end < rest.n || span_index(in, 0xff) < in.n);
        if (next == MULTIPART_PART && span_index(in, 0xff) == in.n) {
            struct span content = span_from(part, span_find(part, SPAN("\r\n\r\n")) + 4);
            MUST_HOLD(span_ends(span_first(rest, end), content));
        }
        rest = span_from(rest, end + 2);
        reached = true;
    }
    dynbuf_free(&whole);
    dynbuf_free(&cut);
}

/* A line is taken when all of it is there, and no part of it before. */
static void changes(struct span in)
{
    static struct change c;
    size_t used, some;
    uint8_t *copy = fuzz_copy(in);
    struct span all = span_of(copy, in.n);

    while (change_take(all, &c, &used) == CHANGE_TAKEN) {
        MUST_HOLD(used > 0 && used <= all.n && c.n < used && all.p[used - 1] == '\n');
        MUST_HOLD((c.n > 0) == (change_type(c.what) != NULL));
        for (size_t cut = 0; cut < used; cut += 1 + used / 8)
            MUST_HOLD(change_take(span_first(all, cut), &c, &some) == CHANGE_MORE);
        all = span_from(all, used);
        reached = true;
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    if (data[0] & 2)
        changes(span_of(data + 1, n - 1));
    else if (data[0] & 1)
        forms(span_of(data + 1, n - 1));
    else
        frames(span_of(data + 1, n - 1));
    return 0;
}
