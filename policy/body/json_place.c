/* Where in the text of a JSON body a string stands. The text was parsed: what is looked for here is only places. */
#include "policy/body/parsers.h"

static size_t past_blanks(struct span t, size_t at)
{
    while (at < t.n && (t.p[at] == ' ' || t.p[at] == '\t' || t.p[at] == '\n' || t.p[at] == '\r'))
        at++;
    return at;
}

/* Behind the string whose opening quote stands there. */
static size_t past_string(struct span t, size_t at)
{
    for (at++; at < t.n && t.p[at] != '"'; at++)
        at += t.p[at] == '\\';
    return at + 1;
}

static size_t past_word(struct span t, size_t at)
{
    while (at < t.n && span_index(SPAN(",:]} \t\r\n"), t.p[at]) == 8)
        at++;
    return at;
}

/* Behind the value that begins there, and the blanks behind it. */
static size_t past_value(struct span t, size_t at)
{
    size_t depth = 0;
    do {
        uint8_t c = at < t.n ? t.p[at] : 0;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        if (c == '"')
            at = past_string(t, at);
        else if (c != 0 && span_index(SPAN("{}[],:"), c) < 6)
            at++;
        else
            at = past_word(t, at);
        at = past_blanks(t, at);
    } while (depth > 0 && at < t.n);
    return at;
}

/* From the opening bracket of j to where the value of its child begins. */
static size_t into(struct span t, size_t at, const struct json *j, const struct json *child)
{
    at = past_blanks(t, at + 1);
    for (const struct json *m = j->child; m != NULL; m = m->next) {
        if (j->type == JSON_OBJECT)
            at = past_blanks(t, past_blanks(t, past_string(t, at)) + 1);
        if (m == child)
            break;
        at = past_blanks(t, past_value(t, at) + 1);
    }
    return at;
}

int body_json_string(struct body_view *v, struct span text, struct span pointer, struct arena *a, size_t *at,
                     size_t *n, struct span *is)
{
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    const struct json *j = v->json;
    size_t from = past_blanks(text, 0);
    for (struct span rest = pointer; rest.n && j != NULL;) {
        rest = span_from(rest, 1);
        struct span token = span_first(rest, span_index(rest, '/'));
        rest = span_from(rest, token.n);
        const struct json *child = body_json_child(v, j, token, &doubt, a);
        if (child != NULL)
            from = into(text, from, j, child);
        j = child;
    }
    if (doubt != AMBIGUITY_NONE || j == NULL || j->type != JSON_STRING)
        return -1;
    size_t to = past_string(text, from);
    if (to > text.n || to < from + 2)
        return -1;
    *at = from + 1;
    *n = to - from - 2;
    *is = j->text;
    return 0;
}
