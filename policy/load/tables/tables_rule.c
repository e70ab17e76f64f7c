/* The grammar of rules: what one is about, and what may come of it. One row a key; KEY_LATER rows are known and
 * refused. */
#include "policy/load/tables/tables.h"

#include "policy/load/read/scalar.h"

static const struct choice decide_names[] = {
    {"deny", VERDICT_DENY}, {"hold", VERDICT_HOLD}, {"allow", VERDICT_ALLOW}, {0}};
static const struct choice effect_bits[] = {{"read", 1u << EFFECT_READ},
                                            {"write", 1u << EFFECT_WRITE},
                                            {"delete", 1u << EFFECT_DELETE},
                                            {"admin", 1u << EFFECT_ADMIN},
                                            {"spend", 1u << EFFECT_SPEND},
                                            {"exec", 1u << EFFECT_EXEC},
                                            {0}};
static const struct choice service_bits[] = {
    {"upload-pack", GIT_UPLOAD_PACK}, {"receive-pack", GIT_RECEIVE_PACK}, {0}};
static const struct choice reason_names[] = {{"required", 1}, {"optional", 0}, {0}};

static void read_tri(struct loader *l, const struct node *n, void *field)
{
    struct number *out = field;
    uint64_t v = 0;
    out->at = n;
    const char *why = n->kind == NODE_TEXT ? scalar_bool(n->text, n->plain, &v) : "is true or false";
    if (why)
        load_problem(l, n, "P008", "%.*s %s", SPAN_FMT(n->key->text), why);
    out->v = v ? TRI_TRUE : TRI_FALSE;
}

static const struct key git_keys[] = {
    {.name = "refs", .type = KEY_TEXTS, .at = AT(m_git, refs), .help = "refs/heads/agent/*"},
    {.name = "force",
     .type = KEY_CALL,
     .at = AT(m_git, force),
     .call = read_tri,
     .help = "an update counts as forced"},
    {.name = "delete", .type = KEY_CALL, .at = AT(m_git, delete), .call = read_tri, .help = "the ref is deleted"},
    {.name = "service",
     .type = KEY_SOME_OF,
     .at = AT(m_git, service),
     .choices = service_bits,
     .help = "fetch or push"},
    LATER("max_pack"),
    {0}};
static const struct table git_table = {"git:", sizeof(struct m_git), git_keys};

static const struct key ws_keys[] = {
    {.name = "subprotocol", .type = KEY_TEXTS, .at = AT(m_ws, subprotocols), .help = "one that is offered fits"},
    {0}};
static const struct table ws_table = {"ws:", sizeof(struct m_ws), ws_keys};

static const struct choice send_bits[] = {{"text", WS_SENDS_TEXT}, {"binary", WS_SENDS_BINARY}, {0}};
static const struct key messages_keys[] = {{.name = "send",
                                            .type = KEY_SOME_OF,
                                            .at = AT(m_messages, send),
                                            .choices = send_bits,
                                            .flags = KEY_NEEDED,
                                            .help = "text, binary or [text, binary]"},
                                           {.name = "max",
                                            .type = KEY_SIZE,
                                            .at = AT(m_messages, max),
                                            .lo = 1,
                                            .hi = WS_MAX_MOST,
                                            .help = "of one message, default 64KiB"},
                                           {.name = "total",
                                            .type = KEY_SIZE,
                                            .at = AT(m_messages, total),
                                            .lo = 1,
                                            .hi = 1ull << 40,
                                            .help = "of all messages, default 16MiB"},
                                           {.name = "within",
                                            .type = KEY_TIME,
                                            .at = AT(m_messages, within),
                                            .lo = 1000,
                                            .hi = 7 * 86400000ull,
                                            .help = "then it is closed, default 1h"},
                                           {0}};
static const struct table messages_table = {"messages:", sizeof(struct m_messages), messages_keys};

#define CONDITIONS                                                                                                   \
    {.name = "equals", .type = KEY_TEXTS, .at = AT(m_cond, equals), .help = "this value, or one of these"},          \
        {.name = "in", .type = KEY_TEXTS, .at = AT(m_cond, in), .help = "one of these values"},                      \
        {.name = "glob", .type = KEY_TEXTS, .at = AT(m_cond, glob), .help = "* matches any run of characters"},      \
        {.name = "int_lte",                                                                                          \
         .type = KEY_COUNT,                                                                                          \
         .at = AT(m_cond, at_most),                                                                                  \
         .hi = COND_NUMBER_MAX,                                                                                      \
         .help = "a whole number of at most this"},                                                                  \
        {.name = "int_gte",                                                                                          \
         .type = KEY_COUNT,                                                                                          \
         .at = AT(m_cond, at_least),                                                                                 \
         .hi = COND_NUMBER_MAX,                                                                                      \
         .help = "a whole number of at least this"},                                                                 \
        {.name = "exists", .type = KEY_BOOL, .at = AT(m_cond, exists), .help = "true: it is there"},                 \
    {                                                                                                                \
        .name = "absent", .type = KEY_BOOL, .at = AT(m_cond, absent), .help = "true: it is not there"                \
    }

static const struct key json_keys[] = {{.name = "pointer",
                                        .type = KEY_TEXT,
                                        .at = AT(m_cond, pointer),
                                        .flags = KEY_NEEDED,
                                        .help = "where in the body, RFC 6901: /amount"},
                                       CONDITIONS,
                                       {0}};
static const struct table json_table = {"an entry of json:", sizeof(struct m_cond), json_keys};
static const struct key form_keys[] = {
    {.name = "field", .type = KEY_TEXT, .at = AT(m_cond, field), .flags = KEY_NEEDED, .help = "its name"},
    CONDITIONS,
    {0}};
static const struct table form_table = {"an entry of form:", sizeof(struct m_cond), form_keys};
static const struct key multipart_keys[] = {
    {.name = "field", .type = KEY_TEXT, .at = AT(m_cond, field), .help = "the value of the field of this name"},
    {.name = "file", .type = KEY_TEXT, .at = AT(m_cond, file), .help = "the file name of the file of this name"},
    {.name = "content_type", .type = KEY_TEXT, .at = AT(m_cond, content_type), .help = "of the part of this name"},
    CONDITIONS,
    {0}};
static const struct table multipart_table = {"an entry of multipart:", sizeof(struct m_cond), multipart_keys};

static const struct key argument_keys[] = {
    {.name = "pointer",
     .type = KEY_TEXT,
     .at = AT(m_cond, pointer),
     .flags = KEY_NEEDED,
     .help = "the field, its argument, on into that: /createIssue/input/title"},
    CONDITIONS,
    {0}};
static const struct table argument_table = {"an entry of arguments:", sizeof(struct m_cond), argument_keys};
static const struct key graphql_keys[] = {
    {.name = "type", .type = KEY_TEXTS, .at = AT(m_graphql, types), .help = "query, mutation, subscription"},
    {.name = "fields", .type = KEY_TEXTS, .at = AT(m_graphql, fields), .help = "at the top: createIssue, add*"},
    {.name = "arguments",
     .type = KEY_LIST,
     .at = AT(m_graphql, arguments),
     .table = &argument_table,
     .help = "of fields at the top"},
    {.name = "operation", .type = KEY_TEXTS, .at = AT(m_graphql, operations), .help = "its name: the client's word"},
    {.name = "persisted",
     .type = KEY_TEXTS,
     .at = AT(m_graphql, persisted),
     .help = "hash or id of a document that the server has, in place of one"},
    {0}};
static const struct table graphql_table = {"graphql:", sizeof(struct m_graphql), graphql_keys};

static const struct key jsonrpc_keys[] = {
    {.name = "method", .type = KEY_TEXTS, .at = AT(m_jsonrpc, methods), .help = "such as eth_call, eth_get*"},
    {.name = "params",
     .type = KEY_LIST,
     .at = AT(m_jsonrpc, params),
     .table = &json_table,
     .help = "of its params, by pointers into them: /0/to"},
    {0}};
static const struct table jsonrpc_table = {"jsonrpc:", sizeof(struct m_jsonrpc), jsonrpc_keys};
static const struct key mcp_keys[] = {
    {.name = "method", .type = KEY_TEXTS, .at = AT(m_jsonrpc, methods), .help = "such as tools/call, tools/*"},
    {.name = "tool", .type = KEY_TEXTS, .at = AT(m_jsonrpc, tools), .help = "that tools/call names"},
    {.name = "arguments",
     .type = KEY_LIST,
     .at = AT(m_jsonrpc, arguments),
     .table = &json_table,
     .help = "of the tool, by pointers into them: /repo"},
    {0}};
static const struct table mcp_table = {"mcp:", sizeof(struct m_jsonrpc), mcp_keys};

static const struct key match_keys[] = {
    {.name = "host", .type = KEY_TEXTS, .at = AT(m_match, hosts), .help = "exact, *.one label, **.one or more"},
    {.name = "scheme",
     .type = KEY_SOME_OF,
     .at = AT(m_match, schemes),
     .choices = scheme_choices,
     .help = "default https"},
    {.name = "port",
     .type = KEY_COUNTS,
     .at = AT(m_match, ports),
     .lo = 1,
     .hi = 65535,
     .help = "default 443, with http 80"},
    {.name = "method", .type = KEY_TEXTS, .at = AT(m_match, methods), .help = "GET, POST ..."},
    {.name = "path", .type = KEY_TEXTS, .at = AT(m_match, paths), .help = "* or {name} one segment, ** any number"},
    {.name = "query", .type = KEY_PAIRS, .at = AT(m_match, query), .help = "every occurrence must fit"},
    {.name = "query_names",
     .type = KEY_TEXTS,
     .at = AT(m_match, query_names),
     .flags = KEY_EMPTY,
     .help = "the query has no other names, none twice; []: there is none"},
    {.name = "header", .type = KEY_PAIRS, .at = AT(m_match, header), .help = "every occurrence must fit"},
    {.name = "op", .type = KEY_TEXTS, .at = AT(m_match, ops), .help = "operation of a pack, git.push or npm.**"},
    {.name = "effect",
     .type = KEY_SOME_OF,
     .at = AT(m_match, effects),
     .choices = effect_bits,
     .help = "what it does"},
    {.name = "resource",
     .type = KEY_TEXTS,
     .at = AT(m_match, resources),
     .help = "what it is done to, github:acme/*"},
    {.name = "git", .type = KEY_MAP, .at = AT(m_match, git), .table = &git_table, .help = "refs of a push"},
    {.name = "json", .type = KEY_LIST, .at = AT(m_match, json), .table = &json_table, .help = "of a JSON body"},
    {.name = "form", .type = KEY_LIST, .at = AT(m_match, form), .table = &form_table, .help = "of a form's fields"},
    {.name = "multipart",
     .type = KEY_LIST,
     .at = AT(m_match, multipart),
     .table = &multipart_table,
     .help = "of the parts of a form with files"},
    {.name = "graphql",
     .type = KEY_MAP,
     .at = AT(m_match, graphql),
     .table = &graphql_table,
     .help = "what operations of GraphQL ask for"},
    {.name = "jsonrpc",
     .type = KEY_MAP,
     .at = AT(m_match, jsonrpc),
     .table = &jsonrpc_table,
     .help = "methods of JSON-RPC"},
    {.name = "mcp", .type = KEY_MAP, .at = AT(m_match, mcp), .table = &mcp_table, .help = "tools of MCP"},
    LATER("aws"),
    LATER("k8s"),
    {.name = "ws", .type = KEY_MAP, .at = AT(m_match, ws), .table = &ws_table, .help = "only WebSocket upgrades"},
    LATER("body"),
    {0}};
static const struct table match_table = {"match:", sizeof(struct m_match), match_keys};
static const struct table except_table = {"an entry of except:", sizeof(struct m_match), match_keys};

static const struct key grants_keys[] = {{.name = "uses",
                                          .type = KEY_COUNT,
                                          .at = AT(m_grants, uses),
                                          .hi = GRANT_USES_MOST,
                                          .help = "at most, default 10; 0: no grants"},
                                         {.name = "within",
                                          .type = KEY_TIME,
                                          .at = AT(m_grants, within),
                                          .lo = 1000,
                                          .hi = GRANT_WITHIN_MOST,
                                          .help = "at most so long, default 1h"},
                                         {.name = "effects",
                                          .type = KEY_SOME_OF,
                                          .at = AT(m_grants, effects),
                                          .choices = effect_bits,
                                          .help = "of which requests, default read and write"},
                                         {0}};
static const struct table grants_table = {"grants:", sizeof(struct m_grants), grants_keys};
static const struct choice diff_choices[] = {{"required", DIFF_REQUIRED}, {"optional", DIFF_OPTIONAL}, {0}};
static const struct key escalate_keys[] = {{.name = "after",
                                            .type = KEY_TIME,
                                            .at = AT(m_escalate, after),
                                            .lo = 1000,
                                            .hi = ESCALATE_AFTER_MOST,
                                            .flags = KEY_NEEDED,
                                            .help = "when nobody has decided for so long"},
                                           {.name = "to",
                                            .type = KEY_TEXT,
                                            .at = AT(m_escalate, to),
                                            .flags = KEY_NEEDED,
                                            .help = "an entry of approvers:, who may approve then as well"},
                                           {0}};
static const struct table escalate_table = {"escalate:", sizeof(struct m_escalate), escalate_keys};
static const struct key approve_keys[] = {TEXT(m_approve, by, "by", "an entry of approvers:"),
                                          {.name = "within",
                                           .type = KEY_TIME,
                                           .at = AT(m_approve, within),
                                           .lo = 1000,
                                           .hi = 30 * 86400000ull,
                                           .help = "then it expires"},
                                          {.name = "reason",
                                           .type = KEY_ONE_OF,
                                           .at = AT(m_approve, reason),
                                           .choices = reason_names,
                                           .help = "of the approver"},
                                          {.name = "inline_wait",
                                           .type = KEY_TIME,
                                           .at = AT(m_approve, inline_wait),
                                           .hi = 600000,
                                           .help = "the client waits so long"},
                                          {.name = "grants",
                                           .type = KEY_MAP,
                                           .at = AT(m_approve, grants),
                                           .table = &grants_table,
                                           .help = "how many more of the same shape a yes may cover"},
                                          {.name = "gates",
                                           .type = KEY_TEXTS,
                                           .at = AT(m_approve, gates),
                                           .help = "entries of gates:, each of which may deny it"},
                                          {.name = "escalate",
                                           .type = KEY_MAPS,
                                           .at = AT(m_approve, escalate),
                                           .table = &escalate_table,
                                           .help = "who is asked as well when nobody has decided for a while"},
                                          {.name = "diff",
                                           .type = KEY_ONE_OF,
                                           .at = AT(m_approve, diff),
                                           .choices = diff_choices,
                                           .help = "of a push, what it changes: required or optional"},
                                          PEOPLE_KEYS(m_approve),
                                          {0}};
static const struct table approve_table = {"approve:", sizeof(struct m_approve), approve_keys};

static const struct key window_keys[] = {
    {.name = "days", .type = KEY_TEXTS, .at = AT(m_window, days), .help = "mon, or mon-fri; default: all"},
    {.name = "hours", .type = KEY_TEXTS, .at = AT(m_window, hours), .help = "\"08:00-18:00\"; default: all day"},
    {.name = "zone",
     .type = KEY_TEXT,
     .at = AT(m_window, zone),
     .flags = KEY_NEEDED,
     .help = "whose clock it is: Europe/Berlin, or UTC"},
    {0}};
static const struct table window_table = {"when:", sizeof(struct m_window), window_keys};

static const struct choice per_names[] = {
    {"sandbox", LIMIT_PER_SANDBOX}, {"session", LIMIT_PER_SESSION}, {"all", LIMIT_PER_ALL}, {0}};
static const struct key sum_keys[] = {TEXT(m_sum, field, "field", "of a form, a whole number"),
                                      TEXT(m_sum, pointer, "pointer", "into JSON, RFC 6901: /amount"),
                                      {.name = "max",
                                       .type = KEY_COUNT,
                                       .at = AT(m_sum, max),
                                       .lo = 1,
                                       .hi = LIMIT_SUM_MOST,
                                       .flags = KEY_NEEDED,
                                       .help = "what all of them may come to"},
                                      {.name = "every",
                                       .type = KEY_TIME,
                                       .at = AT(m_sum, every),
                                       .lo = LIMIT_WINDOW_LEAST,
                                       .hi = LIMIT_WINDOW_MOST,
                                       .flags = KEY_NEEDED,
                                       .help = "in any so long a time, 1s to 31d"},
                                      {0}};
static const struct table sum_table = {"sum:", sizeof(struct m_sum), sum_keys};
static const struct key limits_keys[] = {{.name = "per",
                                          .type = KEY_ONE_OF,
                                          .at = AT(m_limits, per),
                                          .choices = per_names,
                                          .help = "whose use is counted, default sandbox"},
                                         {.name = "requests",
                                          .type = KEY_RATES,
                                          .at = AT(m_limits, requests),
                                          .lo = 1,
                                          .hi = LIMIT_REQUESTS_MOST,
                                          .help = "20/1d: at most so many in any so long a time"},
                                         {.name = "sum",
                                          .type = KEY_MAPS,
                                          .at = AT(m_limits, sum),
                                          .table = &sum_table,
                                          .help = "of a field, such as money"},
                                         {0}};
static const struct table limits_table = {"limits:", sizeof(struct m_limits), limits_keys};

static const struct key rule_keys[] = {
    {.name = "id",
     .type = KEY_TEXT,
     .at = AT(m_rule, id),
     .flags = KEY_NEEDED,
     .help = "a name for errors and audit"},
    {.name = "scope", .type = KEY_TEXTS, .at = AT(m_rule, scope), .help = "entries of scopes:; default: all"},
    {.name = "match",
     .type = KEY_MAP,
     .at = AT(m_rule, match),
     .table = &match_table,
     .flags = KEY_NEEDED,
     .help = "what it is about"},
    {.name = "except", .type = KEY_LIST, .at = AT(m_rule, except), .table = &except_table, .help = "but not"},
    {.name = "decide",
     .type = KEY_ONE_OF,
     .at = AT(m_rule, decide),
     .choices = decide_names,
     .flags = KEY_NEEDED,
     .help = "allow, hold or deny"},
    {.name = "use", .type = KEY_TEXT, .at = AT(m_rule, use), .help = "an entry of credentials:"},
    {.name = "approve", .type = KEY_MAP, .at = AT(m_rule, approve), .table = &approve_table, .help = "of a hold"},
    {.name = "messages",
     .type = KEY_MAP,
     .at = AT(m_rule, messages),
     .table = &messages_table,
     .help = "what may be sent after a WebSocket upgrade; default: nothing"},
    {.name = "say",
     .type = KEY_PROSE,
     .at = AT(m_rule, say),
     .help = "the client is told this, with {name} of the path"},
    {.name = "instead", .type = KEY_PROSE, .at = AT(m_rule, instead), .help = "and what is allowed instead"},
    {.name = "when",
     .type = KEY_MAPS,
     .at = AT(m_rule, when),
     .table = &window_table,
     .help = "only then; default: always"},
    {.name = "limits",
     .type = KEY_MAP,
     .at = AT(m_rule, limits),
     .table = &limits_table,
     .help = "so much in so long"},
    {.name = "over",
     .type = KEY_TEXT,
     .at = AT(m_rule, over),
     .help = "the rule that holds what is past a limit; default: it is denied"},
    {0}};
const struct table rule_table = {"a rule", sizeof(struct m_rule), rule_keys};
