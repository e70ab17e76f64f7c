#include "proxy/judge/replies/dialect_rows.h"

#include <stdio.h>
#include <time.h>

#include "common/time/clock.h"

enum { REASON_MAX = 200, TEXT_MAX = 16 * 1024 };

#define XML       "<?xml version='1.0' encoding='UTF-8'?>\n"
#define XML_ERROR "<Code>%k</Code><Message>%w</Message><CountersignCode>%c</CountersignCode>"

/* A row a dialect: how it is recognised, and how it is written. Tried in the order of DIALECTS, so that who says
 * whose client it is comes before a shape that several have. */
static const struct row {
    dialect_asks *asks;
    dialect_write *write;
    struct dialect_shape shape; /* without `write` */
} rows[DIALECT_COUNT] = {
    [DIALECT_GIT_INFO_REFS] = {asks_git_info_refs, dialect_text},
    [DIALECT_GIT_RECEIVE_PACK] = {asks_git_receive_pack, dialect_git_push},
    [DIALECT_NPM] = {asks_npm, .shape = {"application/json", "{'error':%w,%o}"}},
    [DIALECT_PIP] = {asks_pip, dialect_text},
    [DIALECT_GIT_LFS] = {asks_git_lfs, .shape = {"application/vnd.git-lfs+json", "{'message':%w,%o}"}},
    [DIALECT_S3] = {asks_s3,
                    .shape = {"application/xml", XML "<Error>" XML_ERROR "<RequestId>%t</RequestId></Error>\n",
                              KINDS_AWS, .xml = true}},
    [DIALECT_AWS_EC2] = {asks_aws_ec2, .shape = {"text/xml;charset=UTF-8",
                                                 XML "<Response><Errors><Error>" XML_ERROR "</Error></Errors>"
                                                     "<RequestID>%t</RequestID></Response>\n",
                                                 KINDS_AWS, .xml = true}},
    [DIALECT_AWS_QUERY] = {asks_aws_query,
                           .shape = {"text/xml;charset=UTF-8",
                                     XML "<ErrorResponse><Error><Type>Sender</Type>" XML_ERROR "</Error>"
                                         "<RequestId>%t</RequestId></ErrorResponse>\n",
                                     KINDS_AWS, .xml = true}},
    [DIALECT_AWS_JSON] = {asks_aws_json,
                          .shape = {"application/x-amz-json-1.1", "{'__type':'%kException','message':%w,%o}",
                                    KINDS_AWS, .kind_field = "x-amzn-errortype", .kind_tail = "Exception"}},
    [DIALECT_KUBERNETES_DISCOVERY] = {asks_kubernetes_discovery, dialect_text},
    [DIALECT_KUBERNETES] = {asks_kubernetes,
                            .shape = {"application/json",
                                      "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure',"
                                      "'message':%w,'reason':'%k','code':%s,%o}",
                                      KINDS_KUBERNETES}},
    [DIALECT_OCI] = {asks_oci, .shape = {"application/json", "{'errors':[{'code':'%k','message':%w,'detail':{%o}}]}",
                                         KINDS_OCI}},
    [DIALECT_STRIPE] = {asks_stripe, .shape = {"application/json", "{'error':{'type':'%k','message':%w,%o}}",
                                               KINDS_OPENAI, .retry_field = "Stripe-Should-Retry"}},
    /* Slack says all but 429 with 200, so every client of its methods looks at `ok`; its SDK for Node repeats any
     * other status for half an hour. The upload of a file says by its status whether it was done. */
    [DIALECT_SLACK] = {asks_slack, .shape = {"application/json", "{'ok':false,'error':%w,%o}", .repeated_from = 400,
                                             .final = 200, .final_for = asks_slack_method}},
    [DIALECT_ANTHROPIC] = {asks_anthropic,
                           .shape = {"application/json", "{'type':'error','error':{'type':'%k','message':%w},%o}",
                                     KINDS_ANTHROPIC}},
    [DIALECT_OPENAI] = {asks_openai,
                        .shape = {"application/json",
                                  "{'error':{'message':%w,'type':'%k','param':null,'code':null,%o}}", KINDS_OPENAI}},
    [DIALECT_JSON_RPC] = {asks_json_rpc,
                          .shape = {"application/json",
                                    "{'jsonrpc':'2.0','id':%i,'error':{'code':-32010,'message':%w,'data':{%o}}}"}},
    [DIALECT_GRAPHQL] = {asks_graphql,
                         .shape = {"application/json", "{'errors':[{'message':%w,'extensions':{%o}}]}"}},
    /* Octokit repeats all but a few, of which this is one. */
    [DIALECT_GITHUB] = {asks_github,
                        .shape = {"application/json", "{'message':%w,%o}", .repeated_from = 409, .final = 422}},
    [DIALECT_PROBLEM] = {asks_anything, dialect_problem},
};

const char *dialect_name(enum dialect d)
{
    static const char *const names[] = {"unsaid",
#define X(id, word) word,
                                        DIALECTS(X)
#undef X
    };
    return (unsigned)d < DIALECT_COUNT ? names[d] : names[DIALECT_UNSAID];
}

enum dialect dialect_of(const struct dialect_client *c)
{
    unsigned d = c->said;
    if (d > DIALECT_UNSAID && d < DIALECT_COUNT)
        return c->said;
    for (d = DIALECT_UNSAID + 1; c->request != NULL && d < DIALECT_COUNT; d++)
        if (rows[d].asks(c))
            return (enum dialect)d;
    return DIALECT_PROBLEM;
}

void dialect_field(struct wire_answer *a, struct span name, struct span value)
{
    if (a->nfields < HTTP_FIELDS_MAX)
        a->field[a->nfields++] = (struct http_field){name, value};
}

struct span dialect_one_line(struct span s, size_t max, struct arena *a)
{
    s = span_trim(span_first(s, max));
    uint8_t *p = arena_alloc(a, s.n ? s.n : 1);
    if (p == NULL)
        return SPAN_NONE;
    for (size_t i = 0; i < s.n; i++)
        p[i] = s.p[i] >= 0x20 && s.p[i] < 0x7f ? s.p[i] : s.p[i] == '\n' || s.p[i] == '\t' ? ' ' : '?';
    return span_of(p, s.n);
}

/* One paragraph as one line: what a terminal would act on does not pass, UTF-8 does. */
static void line(struct dynbuf *out, struct span s)
{
    if (s.n == 0)
        return;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        /* 0xc2 0x80..0x9f are the C1 controls, which terminals obey too. */
        if (c == 0xc2 && i + 1 < s.n && s.p[i + 1] >= 0x80 && s.p[i + 1] < 0xa0) {
            dynbuf_add_byte(out, '?');
            i++;
        } else {
            dynbuf_add_byte(out, c == '\n' || c == '\t' ? ' ' : c < 0x20 || c == 0x7f ? '?' : c);
        }
    }
    dynbuf_add_byte(out, '\n');
}

void dialect_lines(const struct refusal *r, struct dynbuf *out)
{
    line(out, r->detail);
    if (r->asked.n && span_find(r->detail, r->asked) == r->detail.n) {
        dynbuf_add(out, SPAN("Asked: "));
        line(out, r->asked);
    }
    line(out, r->next);
    line(out, r->instead);
    for (size_t i = 0; i < r->nallowed && r->instead.n == 0; i++) {
        dynbuf_add(out, SPAN("Here: "));
        line(out, r->allowed[i]);
    }
    if (r->approval_url.n) {
        dynbuf_add(out, SPAN("Page: "));
        line(out, r->approval_url);
    }
}

int dialect_keep(struct dynbuf *b, struct arena *a, struct span *out)
{
    int rc = -1;
    *out = SPAN_NONE;
    if (dynbuf_ok(b)) {
        *out = arena_copy(a, dynbuf_span(b));
        rc = out->n == b->n ? 0 : -1;
    }
    dynbuf_free(b);
    return rc;
}

struct span dialect_time(uint64_t ms, struct arena *a)
{
    char text[UTC_TEXT];
    return ms > 0 && utc_text(ms, false, text) ? arena_copy(a, span_str(text)) : SPAN_NONE;
}

static struct span decimal(unsigned v, struct arena *a)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%u", v);
    return arena_copy(a, span_of(text, (size_t)n));
}

/* What every refusal says in its head, whatever its body looks like. */
static void common_head(const struct refusal *r, struct arena *a, struct wire_reply *out)
{
    struct wire_answer *h = &out->head;
    h->reason = dialect_one_line(r->title, REASON_MAX, a);
    out->close = r->close;
    dialect_field(h, SPAN("Cache-Control"), SPAN("no-store"));
    dialect_field(h, SPAN("Countersign-Decision"), span_str(r->decision));
    if (r->challenge.n)
        dialect_field(h, SPAN("WWW-Authenticate"), r->challenge);
    if (r->ticket.n)
        dialect_field(h, SPAN("Countersign-Ticket"), r->ticket);
    if (r->status_url.n) {
        struct dynbuf b;
        struct span link;
        dynbuf_init(&b, 1024);
        dynbuf_addf(&b, "<%.*s>; rel=\"status\"", SPAN_FMT(r->status_url));
        if (dialect_keep(&b, a, &link) == 0)
            dialect_field(h, SPAN("Link"), link);
    }
    if (r->rule.n)
        dialect_field(h, SPAN("Countersign-Rule"), dialect_one_line(r->rule, REASON_MAX, a));
    if (r->retry_after)
        dialect_field(h, SPAN("Retry-After"), decimal(r->retry_after, a));
    if (!r->retry) /* as Stainless makes SDKs of many APIs, which else repeat a 409, 429 and 5xx by themselves */
        dialect_field(h, SPAN("X-Should-Retry"), SPAN("false"));
}

int dialect_text(const struct dialect_client *c, const struct refusal *r, struct arena *a, struct wire_reply *out)
{
    struct dynbuf b;
    dynbuf_init(&b, TEXT_MAX);
    dialect_lines(r, &b);
    dialect_field(&out->head, SPAN("Content-Type"), SPAN("text/plain; charset=utf-8"));
    return dialect_keep(&b, a, &out->body);
}

#define ROUND(asks)                                                                                                  \
    {                                                                                                                \
        "application/json", "{'jsonrpc':'2.0','id':%i,'result':{'resultType':'input_required'," asks                 \
                            "'requestState':'%e','_meta':{%o}}}"                                                     \
    }
#define ASKED(params)                                                                                                \
    "'inputRequests':{'countersign':{'method':'elicitation/create','params':{'message':%w," params "}}},"

/* Nothing to approve with: what is said here comes from a sandbox. */
#define FORM                                                                                                         \
    "'answer':{'type':'string','title':'This request','default':'wait','oneOf':["                                    \
    "{'const':'wait','title':'Leave it: who may decide it does so on its page'},"                                    \
    "{'const':'deny','title':'Take it back: it is not sent'}]},"                                                     \
    "'reason':{'type':'string','title':'Why you take it back (if you like: it goes with the denial)',"               \
    "'maxLength':125}"

/* MCP (2026-07-28), Multi Round-Trip: a result, and the client does what it says and comes again. */
static const struct dialect_shape rounds[] = {
    [ELICIT_URL] = ROUND(ASKED("'mode':'url','elicitationId':'%t','url':%u")),
    [ELICIT_FORM] = ROUND(ASKED("'mode':'form','requestedSchema':{'type':'object','properties':{" FORM "}}")),
    [ELICIT_AGAIN] = ROUND(""),
};

static int body_of(const struct row *row, const struct dialect_client *c, const struct refusal *r, struct arena *a,
                   struct wire_reply *out)
{
    if (r->elicit == ELICIT_NO)
        return row->write ? row->write(c, r, a, out) : dialect_shape(&row->shape, c, r, a, out);
    struct refusal round = *r;
    round.status = 200;
    return dialect_shape(&rounds[r->elicit], c, &round, a, out);
}

void dialect_reply(const struct dialect_client *c, const struct refusal *r, struct arena *a, struct wire_reply *out)
{
    const struct row *row = &rows[dialect_of(c)];
    *out = (struct wire_reply){.head.status = (uint16_t)r->status};
    common_head(r, a, out);
    if (body_of(row, c, r, a, out) != 0)
        *out = (struct wire_reply){.head = {.status = (uint16_t)r->status, .reason = SPAN("Refused")}, .close = true};
}
