/* Whose client is it? Read off what the sandbox sent, which may be anything: it chooses words and nothing else. */
#include "proxy/judge/replies/dialect_rows.h"

/* The first field of this name, or empty. */
static struct span field(const struct dialect_client *c, struct span name)
{
    for (size_t i = 0; i < c->request->nfields; i++)
        if (span_ieq(c->request->field[i].name, name))
            return c->request->field[i].value;
    return SPAN_NONE;
}

static bool has(struct span s, struct span part)
{
    return span_find(s, part) < s.n;
}

static struct span agent(const struct dialect_client *c)
{
    return field(c, SPAN("user-agent"));
}

/* It may say so in one field or in several. */
static bool takes(const struct dialect_client *c, struct span media_type)
{
    for (size_t i = 0; i < c->request->nfields; i++)
        if (span_ieq(c->request->field[i].name, SPAN("accept")) && has(c->request->field[i].value, media_type))
            return true;
    return false;
}

static bool sends(const struct dialect_client *c, struct span media_type)
{
    return span_starts(field(c, SPAN("content-type")), media_type);
}

/* The host, or one below it. */
static bool at(const struct dialect_client *c, struct span host)
{
    struct span h = c->request->host;
    return span_eq(h, host) || (h.n > host.n && span_ends(h, host) && h.p[h.n - host.n - 1] == '.');
}

bool asks_git_info_refs(const struct dialect_client *c)
{
    return span_ends(c->request->path, SPAN("/info/refs")) && span_starts(c->request->query, SPAN("service=git-"));
}

bool asks_git_receive_pack(const struct dialect_client *c)
{
    return sends(c, SPAN("application/x-git-receive-pack-request"));
}

bool asks_git_lfs(const struct dialect_client *c)
{
    return takes(c, SPAN("application/vnd.git-lfs+json")) || span_starts(agent(c), SPAN("git-lfs/"));
}

bool asks_npm(const struct dialect_client *c)
{
    struct span by = agent(c);
    return field(c, SPAN("npm-command")).n || span_starts(by, SPAN("npm/")) || span_starts(by, SPAN("pnpm/")) ||
           span_starts(by, SPAN("yarn/"));
}

bool asks_pip(const struct dialect_client *c)
{
    return span_starts(agent(c), SPAN("pip/")) || span_starts(agent(c), SPAN("twine/"));
}

/* A credential's scope, KEY/DATE/REGION/SERVICE/aws4_request, has the slashes as %2F where it stands in a query. */
static struct span service_of_scope(struct span s)
{
    struct span before = span_first(s, span_find(s, SPAN("aws4_request")));
    size_t slash = span_ends(before, SPAN("/")) ? 1 : span_ends(before, SPAN("%2F")) ? 3 : 0;
    size_t end = before.n - slash, from = end;
    if (slash == 0 || before.n == s.n)
        return SPAN_NONE;
    for (; from > 0; from--) {
        uint8_t b = s.p[from - 1];
        if (b != '-' && (b < '0' || b > '9') && (b < 'a' || b > 'z'))
            break;
    }
    return span_of(s.p + from, end - from);
}

struct span dialect_aws_signature(const struct wire_request *r)
{
    for (size_t i = 0; i < r->nfields; i++) {
        struct span v = r->field[i].value;
        if (span_ieq(r->field[i].name, SPAN("authorization")) &&
            (span_starts(v, SPAN("AWS4-")) || span_starts(v, SPAN("AWS "))))
            return v;
    }
    return SPAN_NONE;
}

/* Which service of AWS, or of somebody who speaks as it does, by the signature; unsigned, by the host. Empty: none.
 */
static struct span aws_service(const struct dialect_client *c)
{
    struct span by = dialect_aws_signature(c->request), query = c->request->query, host = c->request->host;
    if (by.n == 0)
        by = c->aws_signature;
    if (span_starts(by, SPAN("AWS4-")))
        return service_of_scope(by);
    if (by.n)
        return SPAN("s3"); /* signed in the way that only stores of files still take */
    if (has(query, SPAN("X-Amz-Credential=")))
        return service_of_scope(span_from(query, span_find(query, SPAN("X-Amz-Credential="))));
    if (!at(c, SPAN("amazonaws.com")))
        return SPAN_NONE;
    if (span_starts(host, SPAN("s3.")) || span_starts(host, SPAN("s3-")) || has(host, SPAN(".s3.")) ||
        has(host, SPAN(".s3-")))
        return SPAN("s3");
    return span_first(host, span_index(host, '.'));
}

bool asks_s3(const struct dialect_client *c)
{
    return span_starts(aws_service(c), SPAN("s3"));
}

bool asks_aws_ec2(const struct dialect_client *c)
{
    return span_eq(aws_service(c), SPAN("ec2"));
}

bool asks_aws_query(const struct dialect_client *c)
{
    struct span service = aws_service(c);
    return span_eq(service, SPAN("cloudfront")) || span_eq(service, SPAN("route53")) ||
           (service.n && sends(c, SPAN("application/x-www-form-urlencoded")));
}

bool asks_aws_json(const struct dialect_client *c)
{
    return field(c, SPAN("x-amz-target")).n || aws_service(c).n;
}

/* What a server can do, in one answer: kubectl looks into no Status there, and shows a text. */
bool asks_kubernetes_discovery(const struct dialect_client *c)
{
    return takes(c, SPAN("apidiscovery.k8s.io"));
}

bool asks_kubernetes(const struct dialect_client *c)
{
    struct span by = agent(c);
    return field(c, SPAN("kubectl-command")).n || span_starts(by, SPAN("kubectl/")) ||
           has(by, SPAN(" kubernetes/")) || takes(c, SPAN("meta.k8s.io")) ||
           takes(c, SPAN("application/vnd.kubernetes."));
}

/* The paths of the specification: a registry may be at any host, and others have a /v2/ too. */
bool asks_oci(const struct dialect_client *c)
{
    struct span path = c->request->path;
    return span_eq(path, SPAN("/v2/")) || (span_starts(path, SPAN("/v2/")) &&
                                           (has(path, SPAN("/manifests/")) || has(path, SPAN("/blobs/")) ||
                                            has(path, SPAN("/referrers/")) || span_ends(path, SPAN("/tags/list"))));
}

bool asks_stripe(const struct dialect_client *c)
{
    return at(c, SPAN("stripe.com")) || field(c, SPAN("stripe-version")).n ||
           field(c, SPAN("x-stripe-client-user-agent")).n;
}

bool asks_slack_method(const struct dialect_client *c)
{
    return span_starts(c->request->path, SPAN("/api/"));
}

bool asks_slack(const struct dialect_client *c)
{
    return (at(c, SPAN("slack.com")) && asks_slack_method(c)) || span_starts(agent(c), SPAN("@slack:")) ||
           has(agent(c), SPAN("slackclient/"));
}

bool asks_anthropic(const struct dialect_client *c)
{
    return field(c, SPAN("anthropic-version")).n || at(c, SPAN("api.anthropic.com"));
}

bool asks_openai(const struct dialect_client *c)
{
    return at(c, SPAN("api.openai.com")) || has(agent(c), SPAN("OpenAI/"));
}

/* MCP says what it takes before it has a session; others are known by what they send, if it was read. */
bool asks_json_rpc(const struct dialect_client *c)
{
    struct span id;
    struct arena a;
    bool is = field(c, SPAN("mcp-session-id")).n || field(c, SPAN("mcp-protocol-version")).n ||
              field(c, SPAN("mcp-method")).n ||
              (takes(c, SPAN("application/json")) && takes(c, SPAN("text/event-stream")));
    if (is || !sends(c, SPAN("application/json")))
        return is;
    arena_init(&a, 4096);
    is = dialect_json_rpc(c->body, &a, &id);
    arena_free(&a);
    return is;
}

bool asks_graphql(const struct dialect_client *c)
{
    struct span path = c->request->path;
    return span_ends(path, SPAN("/graphql")) || span_ends(path, SPAN("/graphql.json")) ||
           takes(c, SPAN("application/graphql-response+json")) || sends(c, SPAN("application/graphql"));
}

/* Not by the host: who neither is gh nor names a media type of GitHub's reads problem+json, which has a `message`
 * too, and more. */
bool asks_github(const struct dialect_client *c)
{
    return takes(c, SPAN("application/vnd.github")) || field(c, SPAN("x-github-api-version")).n ||
           span_starts(agent(c), SPAN("GitHub CLI"));
}

bool asks_anything(const struct dialect_client *c)
{
    (void)c;
    return true;
}
