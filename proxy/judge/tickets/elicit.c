#include "proxy/judge/tickets/elicit.h"

#include <stdio.h>

#include "common/json/json.h"
#include "common/sign/claim.h"
#include "common/text/utf8.h"
#include "common/text/visible.h"

enum { TREE_MAX = 1024 * 1024, MARK = 16 };

#define STATE "countersign:"

static void mark_of(struct span desk_url, char out[MARK + 1])
{
    struct digest d;
    digest_of(desk_url, &d);
    for (size_t i = 0; i < MARK / 2; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", d.b[i]);
}

struct span elicit_state(struct span desk_url, unsigned round, struct span ticket, struct arena *a)
{
    char text[128], mark[MARK + 1];
    mark_of(desk_url, mark);
    int n = snprintf(text, sizeof(text), STATE "%s:%u:%.*s", mark, round, SPAN_FMT(span_first(ticket, ID_TEXT)));
    return arena_copy(a, span_of(text, (size_t)n));
}

static struct span one_field(const struct wire_request *r, struct span name)
{
    struct span found = SPAN_NONE;
    for (size_t i = 0; i < r->nfields; i++)
        if (span_ieq(r->field[i].name, name)) {
            if (found.n)
                return SPAN_NONE;
            found = r->field[i].value;
        }
    return found;
}

/* A round is there for these, and its method stands in a field as well (SEP-2243). */
static bool may_ask(struct span method)
{
    return span_eq(method, SPAN("tools/call")) || span_eq(method, SPAN("prompts/get")) ||
           span_eq(method, SPAN("resources/read"));
}

/* A body in a coding, or one that a field speaks of: another body would be another request. */
static bool is_bound(const struct wire_request *r)
{
    static const struct span names[] = {SPAN("content-encoding"), SPAN("content-digest"),      SPAN("repr-digest"),
                                        SPAN("digest"),           SPAN("content-md5"),         SPAN("signature"),
                                        SPAN("signature-input"),  SPAN("x-amz-content-sha256")};
    struct sign_claim c;
    for (size_t i = 0; i < r->nfields; i++) {
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
            if (span_ieq(r->field[i].name, names[k]))
                return true;
        if (span_ieq(r->field[i].name, SPAN("authorization")) && sign_claim_read(r->field[i].value, &c) == 0)
            return true;
    }
    return false;
}

static bool is_call(const struct wire_request *r, const struct json *j, struct span method)
{
    const struct json *id = json_get(j, SPAN("id"));
    return j != NULL && span_eq(json_text(j, SPAN("jsonrpc")), SPAN("2.0")) &&
           span_eq(json_text(j, SPAN("method")), method) && id != NULL &&
           (id->type == JSON_STRING || id->type == JSON_NUMBER);
}

static bool is_object(const struct json *j)
{
    return j != NULL && j->type == JSON_OBJECT;
}

/* An empty "elicitation" is one that shows forms, as it was before there were others. */
static enum elicit_by what_it_can(const struct json *params)
{
    const struct json *meta = json_get(params, SPAN("_meta"));
    const struct json *can =
        json_get(json_get(meta, SPAN("io.modelcontextprotocol/clientCapabilities")), SPAN("elicitation"));
    if (!is_object(can))
        return ELICIT_NO;
    if (is_object(json_get(can, SPAN("url"))))
        return ELICIT_URL;
    return can->count == 0 || is_object(json_get(can, SPAN("form"))) ? ELICIT_FORM : ELICIT_NO;
}

/* Is it our state, and of which round? */
static bool is_ours(struct span state, struct span desk_url, unsigned *round)
{
    char mark[MARK + 1];
    struct span rest, said, number, ticket;
    uint64_t n;
    mark_of(desk_url, mark);
    if (!span_starts(state, SPAN(STATE)) || !span_cut(span_from(state, sizeof(STATE) - 1), ':', &said, &rest) ||
        !span_eq(said, span_str(mark)) || !span_cut(rest, ':', &number, &ticket))
        return false;
    *round = span_u64(number, ELICIT_ROUNDS, &n) == 0 ? (unsigned)n : ELICIT_ROUNDS;
    return true;
}

/* Their words, as the field of that name has its: cut at so many bytes, whole characters, of which none hides or
 * reorders others. Not text: none. -1: no memory. */
static int take_reason(const struct json *content, struct arena *a, struct span *out)
{
    struct span in = span_first(span_trim(json_text(content, SPAN("reason"))), ELICIT_REASON_MAX);
    uint8_t *p = arena_alloc(a, in.n + 1);
    size_t n = 0;
    in = span_first(in, utf8_run(in));
    if (p == NULL)
        return -1;
    for (size_t i = 0, len; i < in.n; i += len) {
        char escape[VISIBLE_ESCAPE_MAX];
        enum visible_kind k = visible_char(span_from(in, i), &len, escape);
        if (k == VISIBLE_ASCII || k == VISIBLE_OTHER)
            for (size_t at = 0; at < len; at++)
                p[n++] = in.p[i + at];
        else
            p[n++] = ' ';
    }
    *out = span_trim(span_of(p, n));
    return 0;
}

/* Who only closed what was shown said neither yes nor no: nothing is taken back, and nothing is asked by itself. Of a
 * form that was sent, "deny" takes back, whatever stands beside it, and nothing else in it means anything. -1: no
 * memory. */
static int what_it_says(const struct json *params, unsigned round, struct arena *a, struct elicit *out)
{
    const struct json *said = json_get(json_get(params, SPAN("inputResponses")), SPAN("countersign"));
    const struct json *content = json_get(said, SPAN("content"));
    struct span action = json_text(said, SPAN("action"));
    bool denied = span_eq(action, SPAN("accept")) && span_eq(json_text(content, SPAN("answer")), SPAN("deny"));
    out->declined = denied || span_eq(action, SPAN("decline"));
    out->round = round + 1;
    out->by =
        out->declined || span_eq(action, SPAN("cancel")) || out->round > ELICIT_ROUNDS ? ELICIT_NO : ELICIT_AGAIN;
    return denied ? take_reason(content, a, &out->reason) : 0;
}

/* ---- the call without the round: cut out of the bytes, so that the rest of them is what it was ---- */

static struct span trim(struct span s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t' || s.p[0] == '\r' || s.p[0] == '\n'))
        s = span_from(s, 1);
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r' || s.p[s.n - 1] == '\n'))
        s.n--;
    return s;
}

/* Behind the value that begins at p; the text is JSON. */
static const uint8_t *behind(const uint8_t *p, const uint8_t *end)
{
    unsigned depth = 0;
    bool text = false;
    for (; p < end; p++) {
        if (text && *p == '\\') {
            p++;
        } else if (*p == '"') {
            text = !text;
        } else if (!text && (*p == '{' || *p == '[')) {
            depth++;
        } else if (!text && (*p == '}' || *p == ']' || *p == ',')) {
            if (depth == 0)
                return p;
            depth -= *p != ',';
        }
    }
    return end;
}

/* The member that begins in *rest, behind the brace or the comma: its key as it is written, and all of it. False:
 * there is none. */
static bool next_member(struct span *rest, struct span *key, struct span *value, struct span *all)
{
    if (rest->n == 0)
        return false;
    const uint8_t *end = rest->p + rest->n, *p = behind(rest->p, end);
    *all = trim(span_of(rest->p, (size_t)(p - rest->p)));
    *rest = p < end && *p == ',' ? span_from(*rest, (size_t)(p - rest->p) + 1) : SPAN_NONE;
    if (all->n < 2 || all->p[0] != '"')
        return false;
    size_t n = span_index(span_from(*all, 1), '"') + 1; /* a key with an escape is none of ours */
    struct span is = trim(span_from(*all, n + 1));
    *key = span_of(all->p + 1, n - 1);
    *value = is.n > 0 && is.p[0] == ':' ? trim(span_from(is, 1)) : SPAN_NONE;
    return true;
}

/* params as it is written, in the body. */
static struct span params_of(struct span body)
{
    struct span rest = span_from(trim(body), 1), key, value, all;
    while (next_member(&rest, &key, &value, &all))
        if (span_eq(key, SPAN("params")))
            return value;
    return SPAN_NONE;
}

/* False: it is not written as expected (a key with escapes); -1 of *rc: no memory. */
static bool take_off(struct span body, struct arena *a, struct span *out, int *rc)
{
    struct span params = params_of(body), rest = span_from(params, 1), key, value, all;
    struct dynbuf b;
    unsigned taken = 0, kept = 0;
    if (params.n < 2)
        return false;
    dynbuf_init(&b, body.n);
    dynbuf_add(&b, span_of(body.p, (size_t)(params.p - body.p) + 1));
    while (next_member(&rest, &key, &value, &all)) {
        if (span_eq(key, SPAN("requestState")) || span_eq(key, SPAN("inputResponses"))) {
            taken++;
            continue;
        }
        if (kept++ > 0)
            dynbuf_add_byte(&b, ',');
        dynbuf_add(&b, all);
    }
    const uint8_t *end = params.p + params.n - 1;
    dynbuf_add(&b, span_of(end, (size_t)(body.p + body.n - end)));
    *out = dynbuf_ok(&b) ? arena_copy(a, dynbuf_span(&b)) : SPAN_NONE;
    *rc = dynbuf_ok(&b) && out->n == b.n ? 0 : -1;
    dynbuf_free(&b);
    return taken > 0;
}

/* What is left is the call: JSON, without what was ours. */
static bool is_without(struct span body)
{
    struct arena own;
    arena_init(&own, TREE_MAX);
    const struct json *params = json_get(json_parse(body, &own), SPAN("params"));
    bool is = is_object(params) && json_get(params, SPAN("requestState")) == NULL &&
              json_get(params, SPAN("inputResponses")) == NULL;
    arena_free(&own);
    return is;
}

int elicit_read(const struct wire_request *r, struct span body, struct span desk_url, struct arena *a,
                struct elicit *out)
{
    struct span method = one_field(r, SPAN("mcp-method"));
    struct arena own;
    unsigned round = 0;
    int rc = 0;
    *out = (struct elicit){.by = ELICIT_NO};
    if (!span_eq(r->method, SPAN("POST")) || !may_ask(method) || is_bound(r) || body.n == 0 ||
        body.n > ELICIT_BODY_MAX)
        return 0;
    arena_init(&own, TREE_MAX);
    const struct json *j = json_parse(body, &own), *params = json_get(j, SPAN("params"));
    if (!is_call(r, j, method) || !is_object(params))
        goto out;
    const struct json *state = json_get(params, SPAN("requestState"));
    if (state != NULL && state->type == JSON_STRING && is_ours(state->text, desk_url, &round)) {
        if (!take_off(body, a, &out->body, &rc) || rc != 0 || !is_without(out->body)) {
            out->body = SPAN_NONE;
            goto out;
        }
        out->own = true;
        rc = what_it_says(params, round, a, out);
    } else if (state == NULL && body.n <= ELICIT_BODY_MAX / 2 && json_get(params, SPAN("inputResponses")) == NULL) {
        out->by =
            what_it_can(params); /* in the middle of a round of the server's own it would lose that one's state */
    }
out:
    arena_free(&own);
    return rc;
}
