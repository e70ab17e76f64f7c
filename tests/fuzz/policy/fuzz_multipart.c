/* A line that claims to be a Content-Type, and bytes that claim to be a form with files. What is read of it, written
 * plainly, is read as the same; and no part has what servers cut a body at. */
#include "common/dynbuf.h"
#include "common/text/multipart.h"
#include "policy/body/multipart.h"
#include "policy/body/parsers.h"
#include "tests/fuzz/fuzz.h"

enum { MADE_MAX = 1 << 20 };
static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static const struct multipart_form *look(struct body_view *v, struct span type, struct span body, struct arena *a)
{
    const struct http_field field = {SPAN("Content-Type"), type};
    struct request r = {.scheme = SPAN("https"), .host = SPAN("a.test"), .path = SPAN("/"), .port = 443};
    r.method = SPAN("POST");
    r.has_body = r.body_complete = true;
    r.body = body;
    r.fields = &field;
    r.nfields = 1;
    body_look(v, &r, a);
    MUST_HOLD((v->multipart != NULL && v->open == AMBIGUITY_NONE) == body_seen(v, COND_MULTIPART));
    return body_seen(v, COND_MULTIPART) ? v->multipart : NULL;
}

static void write_part(struct dynbuf *b, struct span name, const struct multipart_part *part)
{
    (void)dynbuf_addf(b, "--zzzz\r\nContent-Disposition: form-data; name=\"");
    (void)dynbuf_add(b, name);
    (void)dynbuf_add(b, part->file.p ? SPAN("\"; filename=\"") : SPAN_NONE);
    (void)dynbuf_add(b, part->file);
    (void)dynbuf_addf(b, "\"\r\n");
    if (part->type.p)
        (void)dynbuf_addf(b, "Content-Type: %.*s\r\n", SPAN_FMT(part->type));
    (void)dynbuf_addf(b, "\r\n");
    (void)dynbuf_add(b, part->content);
    (void)dynbuf_addf(b, "\r\n");
}

static void check_part(const struct multipart_form *f, size_t i, struct span boundary)
{
    const struct multipart_part *part = &f->part[i];
    const struct span cuts = SPAN("\"\\;\r\n");
    MUST_HOLD(span_find(part->content, boundary) == part->content.n);
    for (size_t k = 0; k < cuts.n; k++)
        MUST_HOLD(span_index(f->names.v[i].name, cuts.p[k]) == f->names.v[i].name.n &&
                  span_index(part->file, cuts.p[k]) == part->file.n);
    MUST_HOLD((part->file.p != NULL) == (part->is == MULTIPART_FILE));
    MUST_HOLD(part->is == MULTIPART_FILE || span_eq(f->names.v[i].value, part->content));
}

static void is_the_same(const struct multipart_form *f, struct span written)
{
    struct body_view v = {.looked = false};
    struct arena a;
    arena_init(&a, 64 << 20);
    const struct multipart_form *again = look(&v, SPAN("multipart/form-data; boundary=zzzz"), written, &a);
    MUST_HOLD(again != NULL && again->n == f->n);
    for (size_t i = 0; i < f->n; i++)
        MUST_HOLD(span_eq(again->names.v[i].name, f->names.v[i].name) && again->part[i].is == f->part[i].is &&
                  span_eq(again->part[i].file, f->part[i].file) && span_eq(again->part[i].type, f->part[i].type) &&
                  span_eq(again->part[i].content, f->part[i].content));
    arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span type, body;
    struct body_view v = {.looked = false};
    struct multipart_type is;
    struct dynbuf b;
    struct arena a;
    if (n > 1 << 16)
        return 0;
    (void)span_cut(span_of(data, n), '\n', &type, &body);
    uint8_t *own_type = fuzz_copy(type), *own = fuzz_copy(body);
    arena_init(&a, 64 << 20);
    dynbuf_init(&b, MADE_MAX);
    const struct multipart_form *f = look(&v, span_of(own_type, type.n), span_of(own, body.n), &a);
    if (f != NULL) {
        reached |= f->n > 0;
        MUST_HOLD(f->n <= MULTIPART_PARTS_MAX && multipart_type(type, &is) == 0);
        for (size_t i = 0; i < f->n; i++) {
            check_part(f, i, is.boundary);
            write_part(&b, f->names.v[i].name, &f->part[i]);
        }
        (void)dynbuf_addf(&b, "--zzzz--");
        /* The new boundary may stand in a part. */
        size_t times = 0;
        for (struct span rest = dynbuf_span(&b); rest.n > 0; times++)
            rest = span_from(rest, span_find(rest, SPAN("zzzz")) + 4);
        if (dynbuf_ok(&b) && times == f->n + 1)
            is_the_same(f, dynbuf_span(&b));
    }
    dynbuf_free(&b);
    arena_free(&a);
    free(own_type);
    free(own);
    return 0;
}
