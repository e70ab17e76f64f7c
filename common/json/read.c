#include "common/json/json.h"

const struct json *json_get(const struct json *j, struct span key)
{
    if (j == NULL || j->type != JSON_OBJECT)
        return NULL;
    for (j = j->child; j; j = j->next)
        if (span_eq(j->key, key))
            return j;
    return NULL;
}

/* A reference token with ~0 and ~1 undone (RFC 6901 section 4) against a key; a bad escape equals nothing. */
static bool token_is(struct span token, struct span key)
{
    size_t k = 0;
    for (size_t i = 0; i < token.n; i++, k++) {
        uint8_t c = token.p[i];
        if (c == '~') {
            i++;
            if (i == token.n || (token.p[i] != '0' && token.p[i] != '1'))
                return false;
            c = token.p[i] == '0' ? '~' : '/';
        }
        if (k == key.n || key.p[k] != c)
            return false;
    }
    return k == key.n;
}

static const struct json *step(const struct json *j, struct span token)
{
    uint64_t index = 0;
    const struct json *at = j->child;
    if (j->type == JSON_OBJECT) {
        while (at && !token_is(token, at->key))
            at = at->next;
        return at;
    }
    if (j->type != JSON_ARRAY || span_u64(token, JSON_NODES_MAX, &index))
        return NULL;
    for (; at && index; index--)
        at = at->next;
    return at;
}

const struct json *json_pointer(const struct json *j, struct span pointer)
{
    struct span token;
    if (pointer.n == 0)
        return j;
    if (pointer.p[0] != '/')
        return NULL;
    pointer = span_from(pointer, 1);
    for (bool more = true; more && j;) {
        more = span_cut(pointer, '/', &token, &pointer);
        j = step(j, token);
    }
    return j;
}

struct span json_text(const struct json *j, struct span key)
{
    j = json_get(j, key);
    return j && j->type == JSON_STRING ? j->text : SPAN_NONE;
}

int json_u64(const struct json *j, struct span key, uint64_t *out)
{
    j = json_get(j, key);
    if (j == NULL || j->type != JSON_NUMBER)
        return -1;
    return span_u64(j->text, (uint64_t)1 << 53, out);
}
