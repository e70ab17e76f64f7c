#include "proxy/judge/evaluation/template.h"

#include "common/sign/canonical.h"
#include "common/sign/hmac.h"
#include "proxy/judge/evaluation/signing.h"

enum { QUERY_MAX = 3 * HTTP_TARGET_MAX, PARTS_MAX = 256 * 1024 };

/* All parts of the template, then those of its fields. -1: fn says so, or a text that the loader would have refused.
 */
static int each_part(const struct policy *p, const struct credential *c,
                     int (*fn)(void *arg, const struct sign_part *part), void *arg)
{
    struct span name, rest = c->hmac.sign;
    struct sign_part part;
    size_t i = 0;
    do {
        int more;
        while ((more = sign_part_next(&rest, &part)) > 0)
            if (fn(arg, &part) != 0)
                return -1;
        if (more < 0)
            return -1;
    } while (policy_signed_field(p, c, i++, &name, &rest));
    return 0;
}

static int stop_at_body(void *arg, const struct sign_part *part)
{
    return sign_part_of_body(part->kind) ? -1 : 0;
}

bool template_of_body(const struct policy *p, const struct credential *c)
{
    return each_part(p, c, stop_at_body, NULL) != 0;
}

/* ---- what is asked of the request ---- */

struct taken {
    const struct exchange *x;
    struct outbound leaves;
    struct wire_sign w;
    struct arena a;
    bool only_asked; /* whether it can be: no digest is made */
    const char *why;
};

/* The one field of this name, as it leaves; none is empty, to whoever verifies too. -1: there are several, or one
 * that only some take for it. */
static int only_field(const struct taken *t, struct span name, struct span *value)
{
    const struct wire_request *r = &t->x->request;
    size_t n = 0;
    *value = SPAN_NONE;
    for (size_t i = 0; i < r->nfields; i++)
        if (http_name_same(r->field[i].name, name) && outbound_keeps(&t->leaves, &r->field[i])) {
            *value = r->field[i].value;
            n += span_ieq(r->field[i].name, name) ? 1 : 2;
        }
    return n > 1 ? -1 : 0;
}

static int refused(struct taken *t, const char *why)
{
    t->why = why;
    return -1;
}

static int value_of(struct taken *t, const struct sign_part *part, struct span *value)
{
    struct dynbuf b;
    if (part->kind == PART_HEADER)
        return only_field(t, part->field, value) == 0
                   ? 0
                   : refused(t, "It has a field twice that is signed for its service, which can be read as either. ");
    *value = SPAN_NONE;
    if (t->only_asked && part->kind != PART_SORTED_QUERY)
        return 0;
    dynbuf_init(&b, QUERY_MAX);
    int rc = part->kind == PART_SORTED_QUERY ? sign_canonical_query(t->x->request.query, &b)
                                             : sign_body_part(part->kind, body_bytes(t->x->body), &b);
    *value = arena_copy(&t->a, dynbuf_span(&b));
    if (rc == 0 && value->n < b.n)
        rc = -1;
    dynbuf_free(&b);
    return rc == 0 ? 0 : refused(t, "Its query has more parts than can be signed, or a broken escape. ");
}

/* What the keeper cannot know: once each. */
static int take(void *arg, const struct sign_part *part)
{
    struct taken *t = arg;
    bool digest = sign_part_of_body(part->kind) && part->kind != PART_BODY;
    struct span value;
    if (part->kind != PART_HEADER && part->kind != PART_SORTED_QUERY && !digest)
        return 0;
    for (size_t i = 0; i < t->w.nfields; i++)
        if (span_eq(t->w.field[i].name, part->text))
            return 0;
    if (t->w.nfields == HTTP_FIELDS_MAX || value_of(t, part, &value) != 0)
        return -1;
    t->w.field[t->w.nfields++] = (struct http_field){part->text, value};
    return 0;
}

/* arena_free of t->a after either. */
static int take_all(const struct exchange *x, const struct credential *c, bool only_asked, struct taken *t)
{
    const struct wire_request *r = &x->request;
    const struct policy *p = x->now.image->policy;
    *t = (struct taken){.x = x, .leaves = outbound_of(r, true, SPAN_NONE, true), .only_asked = only_asked};
    arena_init(&t->a, PARTS_MAX);
    signing_slots(p, c, &t->leaves);
    t->w.method = r->method;
    t->w.path = r->path;
    t->w.query = r->has_query ? arena_join(&t->a, SPAN("?"), r->query) : SPAN_NONE;
    if (r->has_query && t->w.query.p == NULL)
        return -1;
    if (sign_template_has(c->hmac.sign, PART_BODY))
        t->w.payload = body_bytes(x->body);
    if (t->w.payload.n > BODY_INLINE_MAX)
        return refused(t, "Its body is larger than what the signature for its service is made over. ");
    return each_part(p, c, take, t);
}

const char *template_refuses(const struct exchange *x, const struct credential *c)
{
    struct taken t;
    int rc = take_all(x, c, true, &t);
    arena_free(&t.a);
    return rc == 0 ? NULL : t.why != NULL ? t.why : "Its parts cannot be put together for a signature. ";
}

int template_put(const struct exchange *x, const struct credential *c, struct dynbuf *b)
{
    struct taken t;
    int rc = take_all(x, c, false, &t);
    if (rc == 0)
        wire_put_sign(b, &t.w);
    arena_free(&t.a);
    return rc == 0 && dynbuf_ok(b) ? 0 : -1;
}
