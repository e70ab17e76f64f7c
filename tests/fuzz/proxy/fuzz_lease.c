/* The judge's search for leases. First byte: 0 the messages about leases, else in which form and coding one of a
 * known gateway is put into the bytes, or none is. Second: where. Third: how what passes through is cut. Found in the
 * whole is found in any pieces, and the other way; one that is there is found, and read as it is; a message that is
 * read, written again, is the same. */
#include "common/arena.h"
#include "common/lease/narrowed.h"
#include "proxy/judge/leases/search.h"
#include "proxy/judge/leases/table.h"
#include "tests/fuzz/fuzz.h"

enum {
    CODINGS = 8,
    ESCAPED = 4,
    NONE = 7 /* as they come */,
    UNDONE = 256 * 1024 /* escapes of more are not undone */
};

static const char tag[] = "QZ7XWK";
static struct judge judge;
static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static void message(struct span bytes)
{
    static struct wire_lease l;
    struct dynbuf b;
    struct msg_in m = msg_in(bytes);
    dynbuf_init(&b, 1 << 20);
    if (wire_get_lease(&m, &l) == 0 && msg_end(&m) == 0) {
        wire_put_lease(&b, &l);
        MUST_HOLD(span_eq(dynbuf_span(&b), bytes));
    }
    dynbuf_free(&b);
}

/* What a holder says that it made of one: what is read is bounded, and further layers change nothing of the first. */
static void narrowed(struct span bytes)
{
    static uint8_t room[LEASE_NARROWED_BYTES];
    struct lease_narrowed is, more;
    struct wire_layer layer;
    struct dynbuf b;
    uint64_t until;
    size_t n = 0;
    if (lease_narrowed_read(bytes, &is) != 0)
        return;
    for (struct span rest = is.layers; rest.n; n++)
        if (lease_narrowed_layer(&rest, room, &layer, &until) != 0)
            return;
    MUST_HOLD(n > 0 && n <= LEASE_NARROWED_LAYERS);
    dynbuf_init(&b, LEASE_NARROWED_MAX + 1);
    layer = (struct wire_layer){.effects = 2};
    if (lease_narrowed_make(bytes, &layer, 0, &b) == 0) {
        MUST_HOLD(lease_narrowed_read(dynbuf_span(&b), &more) == 0 && n < LEASE_NARROWED_LAYERS);
        MUST_HOLD(memcmp(&more.of, &is.of, sizeof(is.of)) == 0 && span_starts(more.layers, is.layers));
    }
    dynbuf_free(&b);
}

static struct exchange *exchange_of(struct span body)
{
    struct exchange *x = calloc(1, sizeof(*x));
    MUST_HOLD(x != NULL);
    if (judge.leases == NULL) {
        struct wire_lease l = {.tag = SPAN("QZ7XWK"), .state = LEASE_LIVE};
        MUST_HOLD((judge.leases = lease_table_new()) != NULL && lease_table_put(judge.leases, &l, 0) == 0);
    }
    x->judge = &judge;
    arena_init(&x->arena, 1 << 20);
    x->body = body_inline(body);
    MUST_HOLD(x->body != NULL);
    return x;
}

static void drop(struct exchange *x)
{
    body_unref(&x->body);
    arena_free(&x->arena);
    free(x);
}

static void put_escaped(struct dynbuf *b, struct span s, const char *before)
{
    for (size_t i = 0; i < s.n; i++)
        (void)dynbuf_addf(b, "%s%02X", before, s.p[i]);
}

static void put_coded(struct dynbuf *b, unsigned coding, struct span s)
{
    char *text = malloc(2 * s.n + 8);
    struct dynbuf once;
    MUST_HOLD(text != NULL);
    dynbuf_init(&once, 1 << 20);
    switch (coding) {
    case 0: (void)dynbuf_add(b, s); break;
    case 1: (void)dynbuf_add(b, span_of(text, base64_encode(s, text))); break;
    case 2:
        hex_text(s, text);
        (void)dynbuf_add(b, span_of(text, 2 * s.n));
        break;
    case 3: put_escaped(b, s, ""); break;
    case 4: put_escaped(b, s, "%"); break;
    case 5:
        put_escaped(&once, s, "%");
        put_escaped(b, dynbuf_span(&once), "%");
        break;
    default: put_escaped(b, s, "\\u00"); break;
    }
    dynbuf_free(&once);
    free(text);
}

/* What passes through, cut as this seed says: is it found? */
static bool in_pieces(struct span s, unsigned seed)
{
    struct exchange *x = exchange_of(SPAN_NONE);
    struct lease_hit hit;
    bool found = false;
    for (unsigned i = seed; s.n > 0 && !found; i = i * 5 + 3) {
        size_t n = 1 + i % (seed % 2 ? 4 : 40);
        found = lease_search_piece(x, span_first(s, n < s.n ? n : s.n), &hit);
        s = span_from(s, n < s.n ? n : s.n);
    }
    drop(x);
    return found;
}

/* planted: a lease that is in it as it is, if its text is to be read; empty: none is. */
static void searched(struct span s, struct span planted, bool escaped, bool is_there, unsigned seed)
{
    bool as_is;
    uint8_t *copy = fuzz_copy(s);
    struct span body = span_of(copy, s.n);
    struct exchange *x = exchange_of(body);
    struct lease_hit hit;
    size_t at = lease_find(judge.leases, body, &as_is);
    MUST_HOLD(at <= body.n && (at == body.n || body.n - at >= LEASE_TAG));
    MUST_HOLD(in_pieces(body, seed) == (at < body.n));
    bool found = lease_search_body(x, &hit);
    MUST_HOLD(found || (at == body.n && !is_there));
    MUST_HOLD(!is_there || escaped || at < body.n);
    MUST_HOLD(planted.n == 0 || span_eq(hit.text, planted));
    if (as_is) {
        struct span around = lease_around(body, at);
        MUST_HOLD(around.n == 0 || (around.p <= body.p + at && around.p + around.n >= body.p + at + LEASE_TAG &&
                                    around.p + around.n <= body.p + body.n));
    }
    drop(x);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dynbuf whole, all;
    bool as_is;
    uint8_t stream[LEASE_STREAM];
    char text[LEASE_TEXT_MAX];
    if (n < 3 || n > 64 * 1024)
        return 0;
    if (data[0] == 0) {
        uint8_t *copy = fuzz_copy(span_of(data + 1, n - 1));
        message(span_of(copy, n - 1));
        narrowed(span_of(copy, n - 1));
        free(copy);
        return 0;
    }
    unsigned coding = data[0] % CODINGS;
    enum lease_format f = (enum lease_format)(1 + (data[0] / CODINGS) % (LEASE_FORMAT_COUNT - 1));
    struct span rest = span_of(data + 3, n - 3);
    struct span before = span_first(rest, data[1] < rest.n ? data[1] : rest.n), behind = span_from(rest, before.n);
    memset(stream, data[1], sizeof(stream));
    size_t ntext = lease_text(f, tag, stream, text);
    dynbuf_init(&whole, 1 << 20);
    dynbuf_init(&all, 1 << 20);
    (void)dynbuf_add(&all, before);
    if (coding != NONE)
        (void)dynbuf_add(&all, span_of(text, ntext));
    (void)dynbuf_add(&all, behind);
    put_coded(&whole, coding == NONE ? 0 : coding, dynbuf_span(&all));
    MUST_HOLD(dynbuf_ok(&whole) && dynbuf_ok(&all));
    drop(exchange_of(SPAN_NONE)); /* there is a table */
    bool is_there = coding != NONE && (coding < ESCAPED || whole.n <= UNDONE);
    bool own = lease_find(judge.leases, before, &as_is) < before.n; /* the bytes themselves have one before it */
    reached |= coding != NONE;
    searched(dynbuf_span(&whole), coding == 0 && !own ? span_of(text, ntext) : SPAN_NONE, coding >= ESCAPED, is_there,
             data[2]);
    dynbuf_free(&whole);
    dynbuf_free(&all);
    return 0;
}
