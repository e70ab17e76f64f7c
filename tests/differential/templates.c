/* What we make of a template, for tests/differential/templates.py.
 *
 * in:  a line for each: hash, how the signature is written, how the key is (numbers of common/sign/scheme.h), Unix
 * ms, key, template, field, method, path, query, host, body, id, then name value for each other part; every text in
 * hex, separated by spaces,
 *      "-" for an empty one; query with its '?'
 * out: the field, or "refused" */
#include <stdio.h>
#include <stdlib.h>

#include "common/id.h"
#include "common/sign/canonical.h"
#include "common/sign/hmac.h"

enum { LINE_MAX_BYTES = 1 << 18, GIVEN_MAX = 32 };

static struct span next_text(struct arena *a, struct span *rest)
{
    struct span text;
    (void)span_cut(*rest, ' ', &text, rest);
    uint8_t *to = arena_alloc(a, text.n / 2 + 1);
    if (to == NULL || (!span_eq(text, SPAN("-")) && hex_parse(text, to, text.n / 2) != 0))
        exit(2);
    return span_of(to, span_eq(text, SPAN("-")) ? 0 : text.n / 2);
}

static uint64_t next_number(struct span *rest)
{
    struct span text;
    uint64_t v = 0;
    (void)span_cut(*rest, ' ', &text, rest);
    if (span_u64(text, UINT64_MAX, &v) != 0)
        exit(2);
    return v;
}

/* The parts that the judge makes. */
static size_t make_given(struct arena *a, struct span body, struct span query, struct http_field *given, size_t n)
{
    static const struct {
        enum sign_part_kind k;
        struct span word;
    } digest[] = {{PART_BODY_SHA256, SPAN("body_sha256")},
                  {PART_BODY_SHA256_BASE64, SPAN("body_sha256_base64")},
                  {PART_BODY_SHA512, SPAN("body_sha512")},
                  {PART_BODY_SHA512_BASE64, SPAN("body_sha512_base64")}};
    struct dynbuf b;
    for (size_t i = 0; i < sizeof(digest) / sizeof(digest[0]); i++) {
        dynbuf_init(&b, 256);
        if (sign_body_part(digest[i].k, body, &b) != 0)
            exit(2);
        given[n++] = (struct http_field){digest[i].word, arena_keep(a, &b)};
    }
    dynbuf_init(&b, LINE_MAX_BYTES);
    if (sign_canonical_query(span_from(query, query.n > 0), &b) == 0)
        given[n++] = (struct http_field){SPAN("sorted_query"), arena_keep(a, &b)};
    return n;
}

static int again(struct arena *a, struct span rest, struct dynbuf *out)
{
    struct http_field given[GIVEN_MAX + 8];
    struct sign_facts f = {.given = given};
    uint8_t key[SIGN_HMAC_KEY_MAX];
    size_t n = 0;
    struct dynbuf text, signature;
    enum sign_hash hash = (enum sign_hash)next_number(&rest);
    enum sign_coding written = (enum sign_coding)next_number(&rest), key_is = (enum sign_coding)next_number(&rest);
    f.now_ms = next_number(&rest);
    struct span secret = next_text(a, &rest), template = next_text(a, &rest), field = next_text(a, &rest);
    struct span *const part[] = {&f.method, &f.path, &f.query, &f.host, &f.body, &f.id};
    for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
        *part[i] = next_text(a, &rest);
    for (; rest.n && f.ngiven < GIVEN_MAX; f.ngiven++) {
        given[f.ngiven].name = next_text(a, &rest);
        given[f.ngiven].value = next_text(a, &rest);
    }
    f.ngiven = make_given(a, f.body, f.query, given, f.ngiven);
    dynbuf_init(&text, LINE_MAX_BYTES);
    dynbuf_init(&signature, 256);
    int rc =
        sign_template_wrong(template, IN_TEMPLATE) == NULL && sign_template_wrong(field, IN_FIELD) == NULL ? 0 : -1;
    if (rc == 0 && (rc = sign_hmac_key(key_is, secret, key, &n)) == 0 && (rc = sign_expand(template, &f, &text)) == 0)
        rc = sign_hmac(hash, span_of(key, n), dynbuf_span(&text), written, &signature);
    f.signature = dynbuf_span(&signature);
    if (rc == 0)
        rc = sign_expand(field, &f, out);
    dynbuf_free(&text);
    dynbuf_free(&signature);
    return rc;
}

int main(void)
{
    static char line[LINE_MAX_BYTES];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        struct arena a;
        struct dynbuf out;
        struct span rest = span_str(line);
        rest.n -= rest.n > 0 && rest.p[rest.n - 1] == '\n';
        arena_init(&a, 1 << 20);
        dynbuf_init(&out, LINE_MAX_BYTES);
        if (again(&a, rest, &out) == 0)
            printf("%.*s\n", SPAN_FMT(dynbuf_span(&out)));
        else
            printf("refused\n");
        dynbuf_free(&out);
        arena_free(&a);
    }
    return 0;
}
