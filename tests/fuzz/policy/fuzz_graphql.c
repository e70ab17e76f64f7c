/* Bytes that claim to be GraphQL: a document, or a request in one of its forms (the first byte says which). What is
 * read has operations with fields at their top, whose names are names, within the bounds; and what ignores blanks,
 * commas and comments reads the same of a document with more of these. */
#include "common/text/utf8.h"
#include "policy/body/graphql.h"
#include "policy/body/parsers.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static void must_be_name(struct span s)
{
    MUST_HOLD(s.n > 0 && !(s.p[0] >= '0' && s.p[0] <= '9'));
    for (size_t i = 0; i < s.n; i++) {
        uint8_t low = s.p[i] | 0x20;
        MUST_HOLD((low >= 'a' && low <= 'z') || s.p[i] == '_' || (s.p[i] >= '0' && s.p[i] <= '9'));
    }
}

/* What is kept of a document: definitions, and what each selects. */
static size_t count(const struct graphql_definition *d)
{
    size_t n = 0;
    for (; d != NULL; d = d->next, n++)
        for (const struct graphql_selection *s = d->selections; s != NULL; s = s->next, n++) {
            must_be_name(s->name);
            MUST_HOLD(s->fragment == NULL || span_eq(s->fragment->name, s->name));
            MUST_HOLD(s->arguments == NULL || (s->top && s->arguments->type == JSON_OBJECT));
        }
    return n;
}

/* text: with a zero behind it. */
static void document(struct span text)
{
    static const char more[] = " ,\xef\xbb\xbf#}\r\n\t";
    struct graphql_budget left = {GRAPHQL_TOKENS_MAX, GRAPHQL_ALIASES_MAX}, again = left;
    enum ambiguity_cause why;
    struct arena a;
    arena_init(&a, 16 << 20);
    if (utf8_run(text) < text.n)
        return;
    const struct graphql_definition *is = graphql_parse(text, &left, &a, &why);
    MUST_HOLD(is != NULL || why == AMBIGUITY_GRAPHQL || why == AMBIGUITY_BODY_LARGE);
    uint8_t *own = malloc(text.n + sizeof(more));
    MUST_HOLD(own != NULL);
    memcpy(own, more, sizeof(more) - 1);
    memcpy(own + sizeof(more) - 1, text.p, text.n + 1);
    const struct graphql_definition *other = graphql_parse(span_of(own, sizeof(more) - 1 + text.n), &again, &a, &why);
    MUST_HOLD((is == NULL) == (other == NULL) || why == AMBIGUITY_BODY_LARGE);
    if (is != NULL && other != NULL)
        MUST_HOLD(count(is) == count(other) && left.tokens == again.tokens && left.aliases == again.aliases);
    reached |= is != NULL;
    free(own);
    arena_free(&a);
}

static void request(struct span said, unsigned form)
{
    struct http_field type = {SPAN("Content-Type"),
                              form == 1 ? SPAN("application/json") : SPAN("application/graphql")};
    struct request r = {.scheme = SPAN("https"), .host = SPAN("a.test"), .path = SPAN("/graphql"), .port = 443};
    struct body_view v = {.looked = false};
    struct body_found found = {.nfacts = 0};
    struct arena a;
    r.method = form == 3 ? SPAN("GET") : SPAN("POST");
    r.has_body = r.body_complete = form != 3;
    r.fields = &type;
    r.nfields = form != 3;
    *(form == 3 ? &r.query : &r.body) = said;
    r.has_query = form == 3;
    arena_init(&a, 32 << 20);
    enum ambiguity_cause why = body_graphql_look(&v, &r, &a);
    const struct graphql *g = v.graphql;
    MUST_HOLD(why == AMBIGUITY_NONE || g == NULL);
    if (g != NULL) {
        MUST_HOLD(g->noperations + g->nstored > 0 && g->noperations <= GRAPHQL_OPERATIONS_MAX);
        MUST_HOLD(g->nroots >= g->noperations && g->nroots <= GRAPHQL_ROOTS_MAX);
        for (size_t i = 0; i < g->nroots; i++)
            must_be_name(g->root[i].field->name);
        for (size_t i = 0; i < g->noperations; i++)
            MUST_HOLD(g->operation[i].of->type != GRAPHQL_FRAGMENT);
    }
    MUST_HOLD(body_graphql_find(&v, &r, SPAN_NONE, &a, &found) == NULL && found.nfacts > 0);
    for (size_t i = 0; !found.changes && i < g->noperations; i++)
        MUST_HOLD(g->operation[i].of->type == GRAPHQL_QUERY);
    MUST_HOLD(found.changes || (g != NULL && g->nstored == 0));
    reached |= g != NULL;
    arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1 || n > 1 << 16)
        return 0;
    bool whole = (data[0] & 3) == 0;
    uint8_t *own = malloc(n - 1 + whole);
    MUST_HOLD(own != NULL || n == 1);
    if (n > 1)
        memcpy(own, data + 1, n - 1);
    if (whole) {
        own[n - 1] = 0;
        document(span_of(own, n - 1));
    } else {
        request(span_of(own, n - 1), data[0] & 3);
    }
    free(own);
    return 0;
}
