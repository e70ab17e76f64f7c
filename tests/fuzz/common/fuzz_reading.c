/* Whatever a held request is, it is taken apart within its bounds, and what blocks is told. Input: a byte for its
 * type, one for where the query ends, then query and body. */
#include "tests/fuzz/fuzz.h"
#include "web-approval/reading/reading.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

/* Touched, for the sanitizers. */
static size_t sum(struct span s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i];
    return n;
}

static void told(const struct reading *r)
{
    bool blocks = false;
    size_t n = 0;

    MUST_HOLD(r->nflags <= READING_FLAGS && r->nsaid <= READING_ROWS);
    for (size_t i = 0; i < r->nflags; i++) {
        blocks |= r->flag[i].blocks;
        n += sum(r->flag[i].name) + sum(r->flag[i].value);
    }
    for (size_t i = 0; i < r->nsaid; i++)
        n += sum(r->said[i].name) + sum(r->said[i].value) + sum(r->said[i].opened);
    MUST_HOLD(r->npictures <= READING_PICTURES && (!r->is_picture || r->npictures > 0 || r->blocks));
    for (size_t i = 0; i < r->npictures; i++) {
        MUST_HOLD(r->picture[i].bytes.n > 0);
        n += sum(r->picture[i].name) + sum(r->picture[i].type) + sum(r->picture[i].bytes);
    }
    MUST_HOLD(blocks == r->blocks);
    reached |= n > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct span fields[] = {
        SPAN("[]"),
        SPAN("[[\"content-type\",\"application/json\"]]"),
        SPAN("[[\"content-type\",\"application/x-www-form-urlencoded\"]]"),
        SPAN("[[\"content-type\",\"multipart/form-data; boundary=b\"]]"),
        SPAN("[[\"content-type\",\"text/plain\"]]"),
        SPAN("[[\"content-type\",\"application/json\"],[\"content-encoding\",\"gzip\"]]"),
        SPAN("[[\"content-type\",\"image/png\"]]"),
        SPAN("[[\"content-type\",\"multipart/related; boundary=b\"]]")};
    struct reading r, again;
    struct differs d[4];
    struct arena a;

    if (n < 2 || n > (1 << 20))
        return 0;
    uint8_t *p = fuzz_copy(span_of(data + 2, n - 2));
    struct span in = span_of(p, n - 2);
    struct asked q = {
        .method = SPAN("POST"), .host = SPAN("h"), .effect = SPAN("write"), .reason = span_first(in, data[1])};
    arena_init(&a, READING_ARENA);
    q.fields = json_parse(fields[data[0] % (sizeof fields / sizeof fields[0])], &a);
    q.path = q.query = span_first(in, data[1]);
    q.body = q.all = span_from(in, data[1]);
    q.cut = data[0] >= 0x80; /* then it is longer than is taken apart, and its pictures are found all the same */
    reading_make(&q, &a, &r);
    told(&r);
    reading_make(&q, &a, &again);
    MUST_HOLD(again.blocks || reading_differs(&r, &again, d, 4) == 0 || r.nsaid > 1);
    arena_free(&a);
    free(p);
    return 0;
}
