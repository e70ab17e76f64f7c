#include "sandbox-shim/checkpoint/away/answer.h"

enum { CODE_MAX = 64, ENTITY_MAX = 8 };

static const struct {
    const char *name;
    char is;
} entities[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};

/* What stands between these two, behind which *rest is then. */
static bool between(struct span *rest, struct span begins, struct span ends, struct span *out)
{
    size_t at = span_find(*rest, begins);
    struct span behind = at < rest->n ? span_from(*rest, at + begins.n) : SPAN_NONE;
    size_t end = span_find(behind, ends);

    *out = end < behind.n ? span_first(behind, end) : SPAN_NONE;
    *rest = end < behind.n ? span_from(behind, end + ends.n) : SPAN_NONE;
    return end < behind.n;
}

/* Empty, where it is not there. */
static struct span part(struct span all, struct span begins, struct span ends)
{
    struct span out;

    (void)between(&all, begins, ends, &out);
    return out;
}

int answer_lease(struct span all, struct answer_lease *out)
{
    out->id = part(all, SPAN("\"AccessKeyId\":\""), SPAN("\""));
    out->secret = part(all, SPAN("\"SecretAccessKey\":\""), SPAN("\""));
    out->token = part(all, SPAN("\"Token\":\""), SPAN("\""));
    out->expires = part(all, SPAN("\"Expiration\":\""), SPAN("\""));
    return out->id.n > 0 && out->secret.n > 0 ? 0 : -1;
}

/* --- a refusal ----------------------------------------------------------------------- */

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Empty, where it is not plain. */
static struct span plain(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_letter(s.p[i]))
            return SPAN_NONE;
    return s.n <= CODE_MAX ? s : SPAN_NONE;
}

static struct span own_json(struct span all)
{
    return part(all, SPAN("\"code\":\""), SPAN("\""));
}

static struct span own_xml(struct span all)
{
    return part(all, SPAN("<CountersignCode>"), SPAN("</"));
}

struct span answer_code(struct span all)
{
    struct span code = plain(own_json(all));

    if (code.n == 0)
        code = plain(own_xml(all));
    if (code.n == 0)
        code = plain(part(all, SPAN("<Code>"), SPAN("</")));
    return code;
}

bool answer_is_ours(struct span all)
{
    return own_json(all).n > 0 || own_xml(all).n > 0;
}

/* --- a list ---------------------------------------------------------------------------- */

bool answer_name(struct span *rest, struct span *name)
{
    return between(rest, SPAN("<Key>"), SPAN("</Key>"), name);
}

/* Of XML, of its five or by its number, which is ASCII here. -1: it is none of these. */
static int entity(struct span s)
{
    uint64_t number;

    for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++)
        if (span_eq(s, span_str(entities[i].name)))
            return entities[i].is;
    return s.n > 1 && s.p[0] == '#' && span_u64(span_from(s, 1), 126, &number) == 0 && number > 32 ? (int)number : -1;
}

int answer_more(struct span all, struct dynbuf *token)
{
    struct span cut = part(all, SPAN("<IsTruncated>"), SPAN("<"));
    struct span is = part(all, SPAN("<NextContinuationToken>"), SPAN("<"));
    size_t end;

    dynbuf_reset(token);
    if (span_eq(cut, SPAN("false")))
        return 0;
    for (; is.n > 0; is = span_from(is, end)) {
        int c = is.p[0];
        end = 1;
        if (c == '&') {
            struct span name = part(span_first(is, is.n < ENTITY_MAX ? is.n : ENTITY_MAX), SPAN("&"), SPAN(";"));
            c = entity(name);
            end = name.n + 2;
        }
        if (c < 0 || dynbuf_add_byte(token, (uint8_t)c) != 0)
            return -1;
    }
    return span_eq(cut, SPAN("true")) && token->n > 0 ? 0 : -1;
}
