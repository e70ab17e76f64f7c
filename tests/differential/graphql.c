/* What we read of a GraphQL document, for tests/differential/graphql.py.
 *
 * in:  a line for each document, in hex
 * out: the operations with the fields of their tops, fragments put in, and their arguments; or "refused" */
#include <stdio.h>
#include <stdlib.h>

#include "common/id.h"
#include "common/text/utf8.h"
#include "policy/body/graphql.h"

enum { LINE_MAX_BYTES = 1 << 18 };

static void put_text(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        printf("%02x", s.p[i]);
}

static void put_value(const struct json *j)
{
    const char *words[] = {[JSON_NULL] = "null", [JSON_BOOL] = j->truth ? "true" : "false",
                           [JSON_NUMBER] = "#",  [JSON_STRING] = "'",
                           [JSON_ARRAY] = "[",   [JSON_OBJECT] = "{",
                           [JSON_BAD] = "$"};
    printf("%s", words[j->type]);
    put_text(j->type == JSON_BAD || j->type == JSON_NUMBER || j->type == JSON_STRING ? j->text : SPAN_NONE);
    for (const struct json *at = j->child; at != NULL; at = at->next) {
        printf("%.*s%s", SPAN_FMT(at->key), j->type == JSON_OBJECT ? ":" : "");
        put_value(at);
        printf(",");
    }
    printf("%s", j->type == JSON_ARRAY ? "]" : j->type == JSON_OBJECT ? "}" : "");
}

static void put_selections(const struct graphql_definition *d)
{
    for (const struct graphql_selection *s = d->selections; s != NULL; s = s->next) {
        if (!s->top)
            continue;
        if (s->fragment != NULL) {
            put_selections(s->fragment);
            continue;
        }
        printf(" %.*s", SPAN_FMT(s->name));
        if (s->arguments != NULL)
            put_value(s->arguments);
    }
}

static void put_document(struct span text)
{
    static const char *const types[] = {"fragment", "query", "mutation", "subscription"};
    struct graphql_budget left = {GRAPHQL_TOKENS_MAX, GRAPHQL_ALIASES_MAX};
    enum ambiguity_cause why;
    struct arena a;
    arena_init(&a, 64 << 20);
    struct graphql_definition *first = utf8_run(text) == text.n ? graphql_parse(text, &left, &a, &why) : NULL;
    if (first == NULL)
        printf("refused");
    for (struct graphql_definition *d = first; d != NULL; d = d->next) {
        if (d->type == GRAPHQL_FRAGMENT)
            continue;
        printf("%s %.*s", types[d->type], SPAN_FMT(d->name));
        for (struct graphql_variable *v = d->variables; v != NULL; v = v->next) {
            printf(" $%.*s", SPAN_FMT(v->name));
            if (v->usual != NULL)
                put_value(v->usual);
        }
        put_selections(d);
        printf(";");
    }
    printf("\n");
    arena_free(&a);
}

int main(void)
{
    static char line[LINE_MAX_BYTES];
    static uint8_t text[LINE_MAX_BYTES / 2 + 1];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        size_t n = strcspn(line, "\n");
        if (hex_parse(span_of(line, n), text, n / 2) != 0)
            return 2;
        text[n / 2] = 0;
        put_document(span_of(text, n / 2));
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
