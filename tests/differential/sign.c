/* What our signer makes of signed requests, for tests/differential/sign.py.
 *
 * in:  a line for each: Authorization, secret, stamp, path kind (aws, s3, tc3), method, path, query, payload,
 *      name=value,name=value,... ; every text in hex, separated by spaces, "-" for an empty one
 * out: the Authorization that we would write for the same fields, or "refused" */
#include <stdio.h>
#include <stdlib.h>

#include "common/sign/sign.h"

enum { TEXTS = 9, LINE_MAX_BYTES = 1 << 17 };

static struct span unhex(struct arena *a, struct span text)
{
    uint8_t *to = arena_alloc(a, text.n / 2 + 1);
    if (to == NULL || (!span_eq(text, SPAN("-")) && (text.n % 2 || hex_parse(text, to, text.n / 2) != 0)))
        exit(2);
    return span_of(to, span_eq(text, SPAN("-")) ? 0 : text.n / 2);
}

/* The fields that the claim names, as a verifying server takes them. */
static int add_fields(struct sign_request *r, struct arena *a, const struct sign_claim *claim, struct span list)
{
    struct span one, name, value;
    for (bool more = list.n > 0; more;) {
        more = span_cut(list, ',', &one, &list);
        if (!span_cut(one, '=', &name, &value))
            return -1;
        name = unhex(a, name);
        if (sign_claims(claim, name) && sign_add_field(r, a, name, unhex(a, value)) != 0)
            return -1;
    }
    return 0;
}

static int again(struct arena *a, const struct span text[TEXTS], struct dynbuf *out)
{
    struct sign_claim claim;
    struct sign_scope scope;
    struct sign_request r = {.nfields = 0};
    struct dynbuf path, query, sent;
    uint8_t key[SIGN_KEY];
    char signature[SIGN_TEXT + 1];
    bool tc3 = span_eq(text[3], SPAN("tc3"));
    enum sign_path how = tc3 ? SIGN_PATH_AS_SENT : span_eq(text[3], SPAN("s3")) ? SIGN_PATH_ONCE : SIGN_PATH_TWICE;
    int rc = -1;
    dynbuf_init(&path, LINE_MAX_BYTES);
    dynbuf_init(&query, LINE_MAX_BYTES);
    dynbuf_init(&sent, LINE_MAX_BYTES); /* as the front hands it on */
    if (sign_claim_read(text[0], &claim) != 0 ||
        sign_scope_of(claim.scheme, text[2], claim.region, claim.service, &scope) != 0)
        goto out;
    if (sign_canonical_path(text[5], how, &path) != 0 || http_canonical_query(text[6], &sent) != 0 ||
        (tc3 ? dynbuf_add(&query, text[6]) : sign_canonical_query(dynbuf_span(&sent), &query)) != 0)
        goto out;
    r.method = text[4];
    r.path = dynbuf_span(&path);
    r.query = dynbuf_span(&query);
    r.payload = text[7];
    if (add_fields(&r, a, &claim, text[8]) != 0 || sign_key(&scope, text[1], key) != 0 ||
        sign_request(&scope, key, &r, signature) != 0)
        goto out;
    rc = sign_authorization(&scope, claim.id, &r, signature, out);
out:
    dynbuf_free(&path);
    dynbuf_free(&query);
    dynbuf_free(&sent);
    return rc;
}

int main(void)
{
    static char line[LINE_MAX_BYTES];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        struct arena a;
        struct dynbuf out;
        struct span rest = span_str(line), text[TEXTS];
        rest.n -= rest.n > 0 && rest.p[rest.n - 1] == '\n';
        arena_init(&a, 1 << 20);
        dynbuf_init(&out, LINE_MAX_BYTES);
        for (size_t i = 0; i < TEXTS; i++) {
            (void)span_cut(rest, ' ', &text[i], &rest);
            if (i < TEXTS - 1)
                text[i] = unhex(&a, text[i]);
        }
        if (again(&a, text, &out) == 0)
            printf("%.*s\n", SPAN_FMT(dynbuf_span(&out)));
        else
            printf("refused\n");
        dynbuf_free(&out);
        arena_free(&a);
    }
    return 0;
}
