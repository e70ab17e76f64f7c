/* The table of keywords, and what looks things up in compiled schemas. */
#include "common/schema/checks.h"

const struct keyword schema_keywords[KW_COUNT] = {
#define X(id, name, argument, flags, check) [KW_##id] = {name, argument, flags, check},
    KEYWORDS(X)
#undef X
};

const struct rule *schema_rule(const struct node *n, enum keyword_id id)
{
    const struct rule *r = n->rules;
    while (r && r->word != &schema_keywords[id])
        r = r->next;
    return r;
}

bool schema_pointer_add(char *to, size_t cap, size_t *n, struct span token)
{
    size_t end = *n;
    if (end + 2 > cap)
        return false;
    to[end++] = '/';
    for (size_t i = 0; i < token.n; i++) {
        bool escaped = token.p[i] == '~' || token.p[i] == '/';
        if (end + (escaped ? 3 : 2) > cap) {
            to[*n] = '\0';
            return false;
        }
        to[end++] = escaped ? '~' : (char)token.p[i];
        if (escaped)
            to[end++] = token.p[i] == '~' ? '0' : '1';
    }
    to[end] = '\0';
    *n = end;
    return true;
}

const struct json *schema_number_past(const struct json *j)
{
    struct decimal d;
    if (j->type == JSON_NUMBER && !decimal_of(j->text, &d))
        return j;
    for (const struct json *c = j->child; c; c = c->next) {
        const struct json *past = schema_number_past(c);
        if (past)
            return past;
    }
    return NULL;
}

void schema_free(struct schema **s)
{
    if (*s == NULL)
        return;
    struct arena a = (*s)->arena; /* the schema itself lies in it */
    *s = NULL;
    arena_free(&a);
}
